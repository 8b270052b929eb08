// SPDX-License-Identifier: MIT
// Lists the pieces of a serialised SentencePiece model, so that importers can number them without
// the SentencePiece library (which belongs to text/).
//
// The model is a protocol-buffer message; field 1, repeated, holds the pieces:
// {1: spelling, 2: score, 3: kind}. Everything else is skipped.
#ifndef DGM_IMPORT_SPM_LIST_H
#define DGM_IMPORT_SPM_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

typedef enum dgm_spm_kind {
    DGM_SPM_NORMAL = 1,
    DGM_SPM_UNKNOWN = 2,
    DGM_SPM_CONTROL = 3,
    DGM_SPM_USER_DEFINED = 4,
    DGM_SPM_UNUSED = 5,
    DGM_SPM_BYTE = 6
} dgm_spm_kind;

typedef struct dgm_spm_item {
    const char *piece; // view into the model, not terminated
    size_t size;
    int kind;
} dgm_spm_item;

static inline dgm_text dgm_spm_spelling(const dgm_spm_item *item)
{
    return (dgm_text){item->piece, item->size};
}

typedef struct dgm_spm_list {
    dgm_spm_item *items; // [count] item i is piece id i
    size_t count, cap;
} dgm_spm_list;

// data must outlive the list. A model without pieces is an error.
dgm_status dgm_spm_list_read(dgm_spm_list *list, const void *data, size_t size, dgm_error *err);
void dgm_spm_list_free(dgm_spm_list *list); // accepts a zeroed list

#endif
