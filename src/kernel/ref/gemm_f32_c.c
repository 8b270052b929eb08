// SPDX-License-Identifier: MIT
// C reference of the packed f32 product; layout and epilogue are in kernel/gemm_f32_tmpl.h.
//
// Contract: each sum is one chain over i = 0 .. k-1, starting at 0, so that a row's result depends
// on nothing but the row. The SIMD versions fuse multiply and add (they agree with each other bit
// by bit); so does this one where the machine has the instruction. Where it does not, a fused
// operation is a library call per element, twenty times slower than a product and a sum: this one
// version then rounds twice. The difference to the exact sum stays below k * 2^-24 * sum |a w|.
#include <math.h>

#include "kernel/kernels_private.h"
#include "kernel/ref/vec_c.h"
#include "kernel/gemm_f32_tmpl.h"

enum { BLOCK = 32 }; // columns of a panel: eight vectors of the base x86-64

static inline float multiply_add(float a, float b, float c)
{
#ifdef FP_FAST_FMAF
    return fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

// sum[0..32) for one row a [k] and 32 columns of a panel.
static void block(float sum[BLOCK], const float *a, const float *w, int k)
{
    for (int j = 0; j < BLOCK; j++) sum[j] = 0.0f;
    for (int i = 0; i < k; i++, w += BLOCK)
        for (int j = 0; j < BLOCK; j++) sum[j] = multiply_add(a[i], w[j], sum[j]);
}

static size_t gemm_f32_packed_size_c(int n, int k)
{
    return gemm_packed_size(n, k);
}

static void gemm_f32_pack_c(void *packed, const float *w, int n, int k, int ldw)
{
    gemm_pack(packed, w, n, k, ldw, BLOCK);
}

static void gemm_f32_run_c(const dgm_gemm_f32_args *g)
{
    float sum[BLOCK];
    for (int j = g->n_begin; j < g->n_end; j += BLOCK)
        for (int r = 0; r < g->m; r++) {
            block(sum, g->a + (size_t)r * (size_t)g->lda, gemm_panel(g, j), g->k);
            gemm_finish(g, sum, r, 1, j, BLOCK);
        }
}

void dgm_gemm_f32_init_c(dgm_kernels *k)
{
    k->gemm_f32 = (dgm_gemm_f32_ops){.name = "gemm_f32_c",
                                     .packed_size = gemm_f32_packed_size_c,
                                     .pack = gemm_f32_pack_c,
                                     .run = gemm_f32_run_c};
}
