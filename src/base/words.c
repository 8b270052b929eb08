// SPDX-License-Identifier: MIT
// Spellings and their numbers; see words.h. Open addressing over the hashes of the spellings.
#include "base/words.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

void dgm_words_free(dgm_words *w)
{
    dgm_free(w->bytes);
    dgm_free(w->at);
    dgm_free(w->hash);
    dgm_free(w->slot);
    *w = (dgm_words){0};
}

// The slot that holds the spelling, or the free one where it belongs.
static size_t slot_of(const dgm_words *w, dgm_text t, uint32_t hash)
{
    size_t mask = w->slots - 1, i = hash & mask;
    for (; w->slot[i] != 0; i = (i + 1) & mask) {
        uint32_t n = w->slot[i] - 1;
        if (w->hash[n] == hash && dgm_text_equal(dgm_words_spell(w, n), t)) break;
    }
    return i;
}

static dgm_status grow_slots(dgm_words *w, dgm_error *err)
{
    if ((w->count + 1) * 2 <= w->slots) return DGM_OK;
    size_t slots = w->slots ? w->slots * 2 : 1024;
    uint32_t *slot = dgm_calloc(slots, sizeof *slot);
    if (!slot) return dgm_no_memory(err);
    for (size_t n = 0; n < w->count; n++) {
        size_t i = w->hash[n] & (slots - 1);
        while (slot[i] != 0) i = (i + 1) & (slots - 1);
        slot[i] = (uint32_t)n + 1;
    }
    dgm_free(w->slot);
    w->slot = slot;
    w->slots = slots;
    return DGM_OK;
}

dgm_status dgm_words_add(dgm_words *w, dgm_text t, uint32_t *number, dgm_error *err)
{
    DGM_TRY(grow_slots(w, err));
    uint32_t hash = dgm_hash_text(t);
    size_t i = slot_of(w, t, hash);
    if (w->slot[i] != 0) {
        *number = w->slot[i] - 1;
        return DGM_OK;
    }
    DGM_FAIL_IF(w->count >= INT32_MAX, err, DGM_ERR_UNSUPPORTED, "more than 2^31 different words");
    DGM_TRY(dgm_grow(&w->at, &w->at_cap, w->count + 2, sizeof *w->at, err));
    DGM_TRY(dgm_grow(&w->hash, &w->hash_cap, w->count + 1, sizeof *w->hash, err));
    DGM_TRY(dgm_grow(&w->bytes, &w->byte_cap, w->byte_count + t.size + 1, 1, err));
    if (t.size) memcpy(w->bytes + w->byte_count, t.data, t.size);
    w->at[w->count] = w->byte_count;
    w->byte_count += t.size;
    w->at[w->count + 1] = w->byte_count;
    w->hash[w->count] = hash;
    *number = (uint32_t)w->count;
    w->slot[i] = (uint32_t)++w->count;
    return DGM_OK;
}

int64_t dgm_words_find(const dgm_words *w, dgm_text t)
{
    if (w->slots == 0) return -1;
    size_t i = slot_of(w, t, dgm_hash_text(t));
    return (int64_t)w->slot[i] - 1;
}

dgm_text dgm_words_spell(const dgm_words *w, uint32_t number)
{
    if (number >= w->count) return (dgm_text){"", 0};
    return (dgm_text){w->bytes + w->at[number], (size_t)(w->at[number + 1] - w->at[number])};
}
