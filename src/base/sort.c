// SPDX-License-Identifier: MIT
// Heap sort of indices; see sort.h.
#include "base/sort.h"

static void sift_down(uint32_t *v, size_t root, size_t n, dgm_compare compare, const void *context)
{
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= n) return;
        if (child + 1 < n && compare(context, v[child], v[child + 1]) < 0) child++;
        if (compare(context, v[root], v[child]) >= 0) return;
        uint32_t t = v[root];
        v[root] = v[child];
        v[child] = t;
        root = child;
    }
}

void dgm_sort_indices(uint32_t *v, size_t n, dgm_compare compare, const void *context)
{
    for (size_t i = 0; i < n; i++) v[i] = (uint32_t)i;
    for (size_t i = n / 2; i-- > 0;) sift_down(v, i, n, compare, context);
    for (size_t end = n; end-- > 1;) {
        uint32_t t = v[0];
        v[0] = v[end];
        v[end] = t;
        sift_down(v, 0, end, compare, context);
    }
}
