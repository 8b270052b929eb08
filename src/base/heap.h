// SPDX-License-Identifier: MIT
// Binary heaps in arrays: the element that goes ahead of all others comes first.
//
// AHEAD(x, y) is a macro or function that says whether element x goes ahead of element y; where it
// never holds both ways and orders all of them, so does the heap, whatever came in when.
//
//     push   DGM_HEAP_UP(heap, count, item, AHEAD); count++;
//     pop    top = heap[0]; last = heap[--count]; DGM_HEAP_DOWN(heap, count, 0, last, AHEAD);
#ifndef DGM_BASE_HEAP_H
#define DGM_BASE_HEAP_H

#include <stddef.h>

// Puts `item` where element `from` was, or above it.
#define DGM_HEAP_UP(heap, from, item, AHEAD)                                                       \
    do {                                                                                           \
        size_t dgm_at = (size_t)(from);                                                            \
        for (; dgm_at > 0 && AHEAD((item), (heap)[(dgm_at - 1) / 2]); dgm_at = (dgm_at - 1) / 2)   \
            (heap)[dgm_at] = (heap)[(dgm_at - 1) / 2];                                             \
        (heap)[dgm_at] = (item);                                                                   \
    } while (0)

// Puts `item` where element `from` of `count` was, or below it.
#define DGM_HEAP_DOWN(heap, count, from, item, AHEAD)                                              \
    do {                                                                                           \
        const size_t dgm_count = (size_t)(count);                                                  \
        size_t dgm_at = (size_t)(from);                                                            \
        for (size_t dgm_c; (dgm_c = 2 * dgm_at + 1) < dgm_count; dgm_at = dgm_c) {                 \
            if (dgm_c + 1 < dgm_count && AHEAD((heap)[dgm_c + 1], (heap)[dgm_c])) dgm_c++;         \
            if (!AHEAD((heap)[dgm_c], (item))) break;                                              \
            (heap)[dgm_at] = (heap)[dgm_c];                                                        \
        }                                                                                          \
        (heap)[dgm_at] = (item);                                                                   \
    } while (0)

#endif
