// SPDX-License-Identifier: MIT
// Small bits of memory that live as long as a document: text that a reader makes for tags, notes for its writer.
#ifndef DGM_DOCUMENT_KEPT_PRIVATE_H
#define DGM_DOCUMENT_KEPT_PRIVATE_H

#include <stddef.h>

#include "base/bytes.h"

typedef struct dgm_kept {
    struct dgm_kept_block *first;
} dgm_kept;

void *dgm_kept_add(dgm_kept *k, size_t size); // NULL: no memory
// A text that ends with NUL, of two parts; NULL: no memory.
char *dgm_kept_text(dgm_kept *k, dgm_text a, dgm_text b);
void dgm_kept_free(dgm_kept *k); // accepts all zero

#endif
