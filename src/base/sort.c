// SPDX-License-Identifier: MIT
// Heap sort of indices; see sort.h.
#include "base/sort.h"

#include "base/heap.h"

// The largest first: it goes to the end.
#define AHEAD(x, y) (compare(context, (y), (x)) < 0)

void dgm_sort_indices(uint32_t *v, size_t n, dgm_compare compare, const void *context)
{
    for (size_t i = 0; i < n; i++) v[i] = (uint32_t)i;
    for (size_t i = n / 2; i-- > 0;) {
        const uint32_t moved = v[i];
        DGM_HEAP_DOWN(v, n, i, moved, AHEAD);
    }
    for (size_t end = n; end-- > 1;) {
        const uint32_t last = v[end];
        v[end] = v[0];
        DGM_HEAP_DOWN(v, end, 0, last, AHEAD);
    }
}
