// SPDX-License-Identifier: MIT
// Private to tools/pairs*.c: results of forced decoding.
#ifndef DGM_TOOLS_PAIRS_BOX_H
#define DGM_TOOLS_PAIRS_BOX_H

#include "dragoman/tools.h"

typedef struct dgm_pair_box {
    dgm_pair_scores pub; // first: what the caller sees
    dgm_pair_score *items;
    const dgm_pair_score **list; // the items
} dgm_pair_box;

// So many, all empty; NULL: no memory. dgm_pair_scores_free frees it.
dgm_pair_box *dgm_pair_box_open(size_t count);

#endif
