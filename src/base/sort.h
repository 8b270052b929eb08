// SPDX-License-Identifier: MIT
// Sorting of index lists without allocation (qsort may allocate) and without a slow worst case
// (input comes from files). A heap sort: not stable, so compare must break ties if order matters.
#ifndef DGM_BASE_SORT_H
#define DGM_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

// Negative, zero, positive: element a comes before, with, after element b.
typedef int (*dgm_compare)(const void *context, uint32_t a, uint32_t b);

// Fills v with 0 .. n-1 in the order that compare gives.
void dgm_sort_indices(uint32_t *v, size_t n, dgm_compare compare, const void *context);

#endif
