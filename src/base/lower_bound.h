// SPDX-License-Identifier: MIT
// Binary search in ascending lists.
#ifndef DGM_BASE_LOWER_BOUND_H
#define DGM_BASE_LOWER_BOUND_H

#include <stdbool.h>
#include <stdint.h>

// Sets `at`, a variable of `type`, to the first of first .. end - 1 for which `before` does not
// hold; end: it holds for all of them. `before` is an expression that reads `at`, and holds for the
// beginning of the range only:
//
//     size_t at;
//     DGM_LOWER_BOUND(size_t, at, 0, count, list[at] < value);
#define DGM_LOWER_BOUND(type, at, first, end, before)                                              \
    do {                                                                                           \
        type dgm_low = (first), dgm_high = (end);                                                  \
        while (dgm_low < dgm_high) {                                                               \
            (at) = dgm_low + (dgm_high - dgm_low) / 2;                                             \
            if (before)                                                                            \
                dgm_low = (at) + 1;                                                                \
            else                                                                                   \
                dgm_high = (at);                                                                   \
        }                                                                                          \
        (at) = dgm_low;                                                                            \
    } while (0)

// The first of an ascending list of ids that is not below `id`; count: all are.
static inline int dgm_lower_id(const int32_t *ids, int count, int32_t id)
{
    int at;
    DGM_LOWER_BOUND(int, at, 0, count, ids[at] < id);
    return at;
}

// Where `id` stands in an ascending list; -1: nowhere.
static inline int dgm_find_id(const int32_t *ids, int count, int32_t id)
{
    const int at = dgm_lower_id(ids, count, id);
    return at < count && ids[at] == id ? at : -1;
}

static inline bool dgm_holds_id(const int32_t *ids, int count, int32_t id)
{
    return dgm_find_id(ids, count, id) >= 0;
}

#endif
