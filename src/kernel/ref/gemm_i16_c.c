// SPDX-License-Identifier: MIT
// C reference of the packed i16 product, and the packing that all ISAs share.
//
// Contract: kernel/gemm_int.h; layout and epilogue: kernel/gemm_int_tmpl.h. As long as a row's |q|
// stays within the limit that packing returned, no partial sum in any order leaves 32 bits: every
// one is bounded by limit * sum |w|. Beyond the limit sums wrap around, on every ISA alike.
#include "kernel/kernels_private.h"
#include "kernel/ref/vec_c.h"
#include "kernel/gemm_int_tmpl.h"

static size_t gemm_i16_packed_size_c(int n, int k)
{
    return int_panels(n) * i16_panel_size(k);
}

static int64_t sum_of_sizes(const int16_t *w, int k)
{
    int64_t sum = 0;
    for (int i = 0; i < k; i += 1024) { // 1024 of them fit in 32 bits
        int32_t part = 0;
        for (int j = i; j < k && j < i + 1024; j++) part += w[j] < 0 ? -(int32_t)w[j] : w[j];
        sum += part;
    }
    return sum;
}

static int gemm_i16_pack_c(void *packed, const int16_t *w, const int32_t *rows, int n, int k,
                           int ldw)
{
    int16_t *panel = packed;
    int64_t largest = 1;
    for (int j = 0; j < n; j++) {
        const size_t row = (size_t)(rows ? rows[j] : j);
        const int64_t sum = sum_of_sizes(w + row * (size_t)ldw, k);
        if (sum > largest) largest = sum;
    }
    for (int j = 0; j < n; j += PANEL, panel += i16_panel_size(k) / sizeof *panel)
        pairs_pack_panel(panel, w, rows, j, n - j < PANEL ? n - j : PANEL, k, ldw);
    const int64_t limit = INT32_MAX / largest;
    return limit < 32767 ? (int)limit : 32767;
}

// sums[0..64) of one row a [depth] with a panel; unsigned, so that a row beyond the limit wraps.
static void block(int32_t sums[PANEL], const int16_t *a, const int16_t *w, int depth)
{
    uint32_t s[PANEL] = {0};
    for (int i = 0; i < depth; i += 2, a += 2, w += 2 * PANEL)
        for (int j = 0; j < PANEL; j++)
            s[j] += (uint32_t)(a[0] * w[2 * j]) + (uint32_t)(a[1] * w[2 * j + 1]);
    memcpy(sums, s, sizeof s);
}

static void gemm_i16_run_c(const dgm_gemm_i16_args *g)
{
    const int_out out = i16_out(g);
    int32_t sums[PANEL];
    for (int j = g->n_begin; j < g->n_end; j += PANEL)
        for (int r = 0; r < g->m; r++) {
            block(sums, g->a + (size_t)r * (size_t)g->lda, i16_panel(g, j),
                  dgm_gemm_i16_depth(g->k));
            int_finish(&out, sums, r, 1, j, PANEL);
        }
}

void dgm_gemm_i16_init_c(dgm_kernels *k)
{
    k->gemm_i16 = (dgm_gemm_i16_ops){.name = "gemm_i16_c",
                                     .packed_size = gemm_i16_packed_size_c,
                                     .pack = gemm_i16_pack_c,
                                     .run = gemm_i16_run_c};
}
