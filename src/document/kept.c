// SPDX-License-Identifier: MIT
// Memory that lives as long as a document; see kept_private.h.
#include "document/kept_private.h"

#include <string.h>

#include "base/mem.h"

typedef struct dgm_kept_block {
    struct dgm_kept_block *next;
    max_align_t content[];
} dgm_kept_block;

void *dgm_kept_add(dgm_kept *k, size_t size)
{
    dgm_kept_block *p = size < SIZE_MAX - sizeof *p ? dgm_malloc(sizeof *p + size) : NULL;
    if (!p) return NULL;
    p->next = k->first;
    k->first = p;
    return p->content;
}

char *dgm_kept_text(dgm_kept *k, dgm_text a, dgm_text b)
{
    char *text = dgm_kept_add(k, a.size + b.size + 1);
    if (!text) return NULL;
    if (a.size > 0) memcpy(text, a.data, a.size);
    if (b.size > 0) memcpy(text + a.size, b.data, b.size);
    text[a.size + b.size] = '\0';
    return text;
}

void dgm_kept_free(dgm_kept *k)
{
    while (k->first) {
        dgm_kept_block *next = k->first->next;
        dgm_free(k->first);
        k->first = next;
    }
}
