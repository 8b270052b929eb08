// SPDX-License-Identifier: MIT
// Packed u8 x i8 product for NEON with matrix products (smmla); layout and epilogue are in
// kernel/gemm_int_tmpl.h.
//
// smmla multiplies 2 rows x 8 k of A with 2 columns x 8 k of W into 2 x 2 sums. Two steps of a
// panel hold 4 + 4 bytes of a column; interleaving their 32-bit groups puts the 8 bytes of a column
// side by side, two columns to a register. A tile is 4 rows x 16 columns (16 sums); an odd row at
// the end is left to the dot products, as one row is bound by reading W.
#include <arm_neon.h>

#include "kernel/kernels_private.h"
#include "kernel/arm/vec_neon.h"
#include "kernel/gemm_int_tmpl.h"

enum { STEP = PANEL * 4, ROWS = 4, COLUMNS = 16 };

// 8 elements of two rows, q + 128 -> q.
static inline int8x16_t two_rows(const uint8_t *a, size_t lda)
{
    const int8x16_t x = vreinterpretq_s8_u8(vcombine_u8(vld1_u8(a), vld1_u8(a + lda)));
    return veorq_s8(x, vdupq_n_s8(-128));
}

// Rows r.. (2 or 4 of them), columns j .. j + 15.
static inline __attribute__((always_inline)) void tile(const dgm_gemm_i8_args *g, int r, int j,
                                                       const int rows)
{
    const size_t lda = (size_t)g->lda;
    const uint8_t *a = g->a + (size_t)r * lda;
    const int8_t *w = i8_panel(g, j) + (size_t)(j % PANEL) * 4;
    const int depth = dgm_gemm_i8_depth(g->k);
    int32x4_t s[ROWS / 2][COLUMNS / 2]; // [pair of rows][pair of columns]: 2 x 2 sums
    for (int i = 0; i < rows / 2; i++)
        for (int t = 0; t < COLUMNS / 2; t++) s[i][t] = vdupq_n_s32(0);
    for (int x = 0; x < depth; x += 8, a += 8, w += 2 * STEP) {
        int8x16_t v[ROWS / 2];
        for (int i = 0; i < rows / 2; i++) v[i] = two_rows(a + (size_t)(2 * i) * lda, lda);
        for (int t = 0; t < COLUMNS / 4; t++) {
            const int32x4_t first = vreinterpretq_s32_s8(vld1q_s8(w + 16 * t));
            const int32x4_t second = vreinterpretq_s32_s8(vld1q_s8(w + STEP + 16 * t));
            const int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(first, second));
            const int8x16_t high = vreinterpretq_s8_s32(vzip2q_s32(first, second));
            for (int i = 0; i < rows / 2; i++) {
                s[i][2 * t] = vmmlaq_s32(s[i][2 * t], v[i], low);
                s[i][2 * t + 1] = vmmlaq_s32(s[i][2 * t + 1], v[i], high);
            }
        }
    }
    const int_out out = i8_out(g);
    int32_t sums[ROWS * COLUMNS];
    for (int i = 0; i < rows / 2; i++)
        for (int t = 0; t < COLUMNS / 2; t++) {
            vst1_s32(sums + 2 * i * COLUMNS + 2 * t, vget_low_s32(s[i][t]));
            vst1_s32(sums + (2 * i + 1) * COLUMNS + 2 * t, vget_high_s32(s[i][t]));
        }
    int_finish(&out, sums, r, rows, j, COLUMNS);
}

static void gemm_i8_run_i8mm(const dgm_gemm_i8_args *g)
{
    const int pairs = g->m / 2 * 2;
    for (int j = g->n_begin; j < g->n_end; j += COLUMNS) {
        int r = 0;
        for (; pairs - r >= ROWS; r += ROWS) tile(g, r, j, ROWS);
        if (r < pairs) tile(g, r, j, 2);
    }
    if (pairs < g->m) {
        const size_t row = (size_t)pairs;
        dgm_gemm_i8_args last = *g;
        last.m = 1;
        last.a += row * (size_t)g->lda;
        last.a_scale += row;
        if (last.q)
            last.q += row * (size_t)g->ldq;
        else
            last.c += row * (size_t)g->ldc;
        if (last.residual) last.residual += row * (size_t)g->ldr;
        dgm_gemm_i8_run_dotprod(&last);
    }
}

void dgm_gemm_i8_init_i8mm(dgm_kernels *k)
{
    k->gemm_i8.name = "gemm_i8_i8mm";
    k->gemm_i8.run = gemm_i8_run_i8mm;
}
