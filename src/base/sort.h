// SPDX-License-Identifier: MIT
// Sorting of index lists without allocation (qsort may allocate) and without a slow worst case
// (input comes from files). A heap sort: not stable, so compare must break ties if order matters.
// Short lists are kept sorted by insertion.
#ifndef DGM_BASE_SORT_H
#define DGM_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Negative, zero, positive: element a comes before, with, after element b.
typedef int (*dgm_compare)(const void *context, uint32_t a, uint32_t b);

// Fills v with 0 .. n-1 in the order that compare gives.
void dgm_sort_indices(uint32_t *v, size_t n, dgm_compare compare, const void *context);

// Puts `item` into a sorted list of `at` elements with room for one more. `ahead` is an expression
// that says whether it comes before list[at - 1]; it stays behind its equals, so that inserting one
// after the other is a stable sort. `at`, a variable, is where it stands afterwards.
//
//     int at = count++;
//     DGM_INSERT(list, at, item, item.score > list[at - 1].score);
#define DGM_INSERT(list, at, item, ahead)                                                          \
    do {                                                                                           \
        for (; (at) > 0 && (ahead); (at)--) (list)[at] = (list)[(at) - 1];                         \
        (list)[at] = (item);                                                                       \
    } while (0)

// `id` into an ascending list without doubles; returns its new length.
static inline int dgm_insert_id(int32_t *ids, int count, int32_t id)
{
    int at = count;
    while (at > 0 && ids[at - 1] > id) at--;
    if (at > 0 && ids[at - 1] == id) return count;
    memmove(ids + at + 1, ids + at, (size_t)(count - at) * sizeof *ids);
    ids[at] = id;
    return count + 1;
}

#endif
