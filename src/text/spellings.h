// SPDX-License-Identifier: MIT
// A list of spellings in one block of memory, with a hash table over it: the ids of a vocabulary.
#ifndef DGM_TEXT_SPELLINGS_H
#define DGM_TEXT_SPELLINGS_H

#include "base/bytes.h"
#include "base/status.h"

typedef struct dgm_spelling_list {
    dgm_text *items; // [count] into storage
    size_t count;
    char *storage;
    uint32_t *slots; // [mask + 1] index + 1, 0 = free
    uint32_t mask;
} dgm_spelling_list;

// Copies a list of valid UTF-8. The first of equal spellings is the one that is found.
dgm_status dgm_spelling_list_init(dgm_spelling_list *s, const dgm_text *from, size_t count, dgm_error *err);
void dgm_spelling_list_free(dgm_spelling_list *s); // accepts all zero
int32_t dgm_spelling_find(const dgm_spelling_list *s, dgm_text t); // -1: not there

#endif
