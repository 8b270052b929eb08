// SPDX-License-Identifier: MIT
// Spellings of ids; see spellings.h.
#include "text/spellings.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "text/unicode.h"

int32_t dgm_spelling_find(const dgm_spelling_list *s, dgm_text t)
{
    if (s->count == 0) return -1;
    for (uint32_t at = dgm_hash_text(t) & s->mask; s->slots[at]; at = (at + 1) & s->mask) {
        uint32_t i = s->slots[at] - 1;
        if (dgm_text_equal(s->items[i], t)) return (int32_t)i;
    }
    return -1;
}

void dgm_spelling_list_free(dgm_spelling_list *s)
{
    dgm_free(s->items);
    dgm_free(s->storage);
    dgm_free(s->slots);
    *s = (dgm_spelling_list){0};
}

dgm_status dgm_spelling_list_init(dgm_spelling_list *s, const dgm_text *from, size_t count, dgm_error *err)
{
    if (count == 0) return DGM_OK;
    size_t bytes = 0, slots = 4;
    for (size_t i = 0; i < count; i++) {
        DGM_FAIL_IF(!dgm_utf8_valid(from[i]), err, DGM_ERR_FORMAT, "word %zu is not valid UTF-8",
                    i);
        bytes += from[i].size;
    }
    while (slots < count * 2) slots *= 2;
    s->items = dgm_calloc(count, sizeof *s->items);
    s->storage = dgm_malloc(bytes);
    s->slots = dgm_calloc(slots, sizeof *s->slots);
    if (!s->items || !s->storage || !s->slots) return dgm_no_memory(err);
    s->mask = (uint32_t)(slots - 1);
    char *end = s->storage;
    for (size_t i = 0; i < count; i++) {
        s->items[i] = (dgm_text){end, from[i].size};
        if (from[i].size) memcpy(end, from[i].data, from[i].size);
        end += from[i].size;
        if (dgm_spelling_find(s, s->items[i]) >= 0) {
            s->count = i + 1;
            continue;
        }
        uint32_t at = dgm_hash_text(s->items[i]) & s->mask;
        while (s->slots[at]) at = (at + 1) & s->mask;
        s->slots[at] = (uint32_t)i + 1;
        s->count = i + 1;
    }
    return DGM_OK;
}
