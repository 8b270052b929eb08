// SPDX-License-Identifier: MIT
// The searches by name, in the order of features_table.c. A new one is a file that defines its
// dgm_search_ops, and a row here (docs/internals/ADDING_A_SEARCH.md).
#include "search/search_private.h"

#include <stddef.h>

const dgm_search_ops *const dgm_search_table[] = {
    &dgm_search_greedy,
    &dgm_search_beam,
    &dgm_search_cube,
    &dgm_search_sample,
    &dgm_search_double,
    &dgm_search_mask,
    NULL,
};
