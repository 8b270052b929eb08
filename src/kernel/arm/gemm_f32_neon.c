// SPDX-License-Identifier: MIT
// Packed f32 product for NEON; layout and epilogue are in kernel/gemm_f32_tmpl.h.
//
// Panels are 16 columns wide: four registers for each of up to four rows (16 sums, 4 registers of
// W, 1 broadcast element of A). Every sum is one chain of fma over k from 0, whatever the tile.
#include <arm_neon.h>

#include "kernel/kernels_private.h"
#include "kernel/arm/vec_neon.h"
#include "kernel/gemm_f32_tmpl.h"

enum { WIDTH = 16, ROWS = 4 };

static inline __attribute__((always_inline)) void tile(const dgm_gemm_f32_args *g, int r, int j,
                                                       const int rows)
{
    const size_t lda = (size_t)g->lda;
    const float *a = g->a + (size_t)r * lda, *w = gemm_panel(g, j);
    float32x4_t s[ROWS][4];
    for (int i = 0; i < rows; i++)
        for (int t = 0; t < 4; t++) s[i][t] = vdupq_n_f32(0.0f);
    for (int x = 0; x < g->k; x++, a++, w += WIDTH)
        for (int i = 0; i < rows; i++) {
            const float32x4_t v = vdupq_n_f32(a[(size_t)i * lda]);
            for (int t = 0; t < 4; t++) s[i][t] = vfmaq_f32(s[i][t], v, vld1q_f32(w + 4 * t));
        }
    float sums[ROWS * WIDTH];
    for (int i = 0; i < rows; i++)
        for (int t = 0; t < 4; t++) vst1q_f32(sums + i * WIDTH + 4 * t, s[i][t]);
    gemm_finish(g, sums, r, rows, j, WIDTH);
}

static size_t gemm_f32_packed_size_neon(int n, int k)
{
    return gemm_packed_size(n, k);
}

static void gemm_f32_pack_neon(void *packed, const float *w, int n, int k, int ldw)
{
    gemm_pack(packed, w, n, k, ldw, WIDTH);
}

static void gemm_f32_run_neon(const dgm_gemm_f32_args *g)
{
    for (int j = g->n_begin; j < g->n_end; j += WIDTH) {
        int r = 0;
        for (; g->m - r >= ROWS; r += ROWS) tile(g, r, j, ROWS);
        switch (g->m - r) {
        case 3:
            tile(g, r, j, 3);
            break;
        case 2:
            tile(g, r, j, 2);
            break;
        case 1:
            tile(g, r, j, 1);
            break;
        default:
            break;
        }
    }
}

void dgm_gemm_f32_init_neon(dgm_kernels *k)
{
    k->gemm_f32 = (dgm_gemm_f32_ops){.name = "gemm_f32_neon",
                                     .packed_size = gemm_f32_packed_size_neon,
                                     .pack = gemm_f32_pack_neon,
                                     .run = gemm_f32_run_neon};
}
