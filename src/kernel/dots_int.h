// SPDX-License-Identifier: MIT
// What the versions of dots_f32, dots_i8 and dots_i16 share: blocks of outputs, the epilogue of
// exact sums.
#ifndef DGM_KERNEL_DOTS_INT_H
#define DGM_KERNEL_DOTS_INT_H

#include <math.h>

#include "kernel/kernels.h"

enum { DOTS_COLUMNS = 4, DOTS_AHEAD = 16 };

// Addresses of the rows of outputs i .. i + 3 of the list; behind its end the last one stands in.
// Returns how many are real. Asks for the rows of the outputs DOTS_AHEAD further on, into the second
// cache: the first has room for 24 lines under way, and waits when rows of eight and more come on
// top. (Zen 4, 15 % of 250,000 x 1024 in i8: 3.6 ms; into the first cache 4.8 ms.)
static inline int dots_block(const dgm_dots_args *g, int i, size_t elem, const void **w)
{
    const int n = g->count - i < DOTS_COLUMNS ? g->count - i : DOTS_COLUMNS;
    const size_t bytes = (size_t)g->k * elem;
    for (int j = 0; j < DOTS_COLUMNS; j++) {
        const int at = i + (j < n ? j : n - 1);
        w[j] = (const char *)g->w + (size_t)g->ids[at] * bytes;
        if (i + j + DOTS_AHEAD >= g->count) continue;
        const char *next = (const char *)g->w + (size_t)g->ids[i + j + DOTS_AHEAD] * bytes;
        for (size_t b = 0; b < bytes; b += 64) __builtin_prefetch(next + b, 0, 2);
    }
    return n;
}

// Sums of row r with outputs i .. i + n - 1, as the products of gemm_int.h finish them.
static inline void dots_finish(const dgm_dots_args *g, int r, int i, int n, const int32_t *sums)
{
    float *c = g->c + (size_t)r * (size_t)g->ldc + i;
    for (int j = 0; j < n; j++) {
        const int32_t id = g->ids[i + j];
        const float scale = g->a_scale[r] * (g->w_scale ? g->w_scale[id] : g->w_scale_all);
        c[j] = g->bias ? fmaf((float)sums[j], scale, g->bias[id]) : (float)sums[j] * scale;
    }
}

#endif
