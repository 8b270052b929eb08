// SPDX-License-Identifier: MIT
// What the versions of dots_f32, dots_i8 and dots_i16 share: blocks of outputs, the epilogue of
// exact sums.
#ifndef DGM_KERNEL_DOTS_INT_H
#define DGM_KERNEL_DOTS_INT_H

#include <math.h>

#include "kernel/kernels.h"

enum { DOTS_COLUMNS = 4, DOTS_AHEAD = 16 };

// A block of outputs i .. i + 3 of the list: the addresses of their rows (behind the list's end the
// last one stands in), how many are real, and the rows DOTS_AHEAD outputs further on, which the
// loop over the first row of the batch asks for as it goes (dots_fetch).
typedef struct dots_rows {
    const char *w[DOTS_COLUMNS], *next[DOTS_COLUMNS];
    int count;
} dots_rows;

static inline dots_rows dots_block(const dgm_dots_args *g, int i, size_t elem)
{
    dots_rows b = {.count = g->count - i < DOTS_COLUMNS ? g->count - i : DOTS_COLUMNS};
    const size_t bytes = (size_t)g->k * elem;
    for (int j = 0; j < DOTS_COLUMNS; j++) {
        const int at = i + (j < b.count ? j : b.count - 1);
        const int ahead = at + DOTS_AHEAD < g->count ? at + DOTS_AHEAD : at;
        b.w[j] = (const char *)g->w + (size_t)g->ids[at] * bytes;
        b.next[j] = (const char *)g->w + (size_t)g->ids[ahead] * bytes;
    }
    return b;
}

// Asks for the line `at` bytes into the rows to come, one by one between the products: the first
// cache has room for 24 lines under way, and a burst of rows would wait for them. Into the second
// cache, for the same reason.
static inline void dots_fetch(const dots_rows *b, size_t at)
{
    for (int j = 0; j < DOTS_COLUMNS; j++) __builtin_prefetch(b->next[j] + at, 0, 2);
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
