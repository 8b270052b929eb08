// SPDX-License-Identifier: MIT
// What a translation must not damage, for programs; see dragoman/text.h.
#include <string.h>

#include "base/mem.h"
#include "text/protect.h"

static dgm_protector protector(const char *source, const char *target)
{
    return dgm_protector_for(dgm_text_of(source), dgm_text_of(target));
}

dgm_status dgm_protected_find(const char *text, size_t size, const char *source, const char *target,
                              dgm_protected **found, size_t *count, dgm_error *err)
{
    DGM_FAIL_IF(!found || !count || (!text && size), err, DGM_ERR_ARGUMENT,
                "dgm_protected_find needs a text and where to put what it finds");
    *found = NULL;
    *count = 0;
    const dgm_text in = {text ? text : "", size};
    const size_t bad = dgm_utf8_first_bad(in);
    DGM_FAIL_IF(bad < size, err, DGM_ERR_TEXT, "invalid UTF-8 at byte %zu", bad + 1);
    const dgm_protector p = protector(source, target);
    dgm_protected_list list = {0};
    dgm_status st = dgm_grow(&list.items, &list.cap, 1, sizeof *list.items, err); // never NULL
    if (st == DGM_OK) st = dgm_protect_find(&p, in, &list, err);
    if (st != DGM_OK) {
        dgm_free(list.items);
        return st;
    }
    *found = list.items;
    *count = list.count;
    return DGM_OK;
}

void dgm_protected_free(dgm_protected **found)
{
    if (!found) return;
    dgm_free(*found);
    *found = NULL;
}

// Is it a part of the text, as dgm_protected_find gives them?
static bool is_part(size_t size, const dgm_protected *one)
{
    return one->begin < one->end && one->end <= size;
}

size_t dgm_protected_check(const char *text, size_t size, const dgm_protected *found, size_t count,
                           const char *source, const char *target, const char *translation,
                           size_t translation_size, unsigned char *kept)
{
    const dgm_protector p = protector(source, target);
    size_t all = 0;
    for (size_t i = 0; text && translation && found && i < count; i++) {
        unsigned char one = 0;
        if (is_part(size, &found[i]))
            all += dgm_protect_check(&p, (dgm_text){text, size}, &found[i], 1,
                                     (dgm_text){translation, translation_size}, &one);
        if (kept) kept[i] = one;
    }
    return all;
}

size_t dgm_protected_write(const char *text, size_t size, const dgm_protected *one, const char *source,
                           const char *target, char *out, size_t room)
{
    const dgm_protector p = protector(source, target);
    dgm_writer w = {0};
    if (out && room) out[0] = 0;
    if (!text || !one || !is_part(size, one)) return 0;
    dgm_protect_write(&p, (dgm_text){text, size}, one, &w);
    const size_t n = w.failed ? 0 : w.size;
    if (out && room) {
        const size_t fits = n < room ? n : room - 1;
        if (fits) memcpy(out, w.data, fits);
        out[fits] = 0;
    }
    dgm_writer_free(&w);
    return n;
}
