// SPDX-License-Identifier: MIT
// Products in 128-bit registers: the loops that gemm_i8_neon, gemm_i8_dotprod, gemm_i16_neon and
// gemm_bf16_neon share. Layout and epilogue are in kernel/gemm_int_tmpl.h.
//
// A step is 256 bytes of W, 16 bytes (4 columns) to a register, and one broadcast 32-bit group of
// each row of A. The including file defines
//     enum { NEON_ROWS, NEON_WIDE };          rows of a tile; registers of W of a one-row tile
//     typedef ... neon_sums;                  running sums of 4 columns
//     neon_sums neon_zero(void);
//     int8x16_t neon_prepare(int8x16_t group);
//     neon_sums neon_dot(neon_sums s, int8x16_t a, int8x16_t w);
//     int32x4_t neon_result(neon_sums s);     the sums of the 4 columns
// and includes this afterwards; all functions are static. Tiles of several rows are 16 columns
// wide. Integer sums are exact, so the order is free; those of floats are chains over the steps in every tile.
#ifndef DGM_KERNEL_ARM_GEMM_NEON_TMPL_H
#define DGM_KERNEL_ARM_GEMM_NEON_TMPL_H

#define INLINE static inline __attribute__((always_inline))

enum { STEP = PANEL * 4, SUMS = NEON_ROWS * 4 > NEON_WIDE ? NEON_ROWS * 4 : NEON_WIDE };

// Any args struct in bytes and steps.
typedef struct neon_product {
    const char *a;
    size_t lda; // bytes
    const char *packed;
    size_t panel_size; // bytes
    int steps;         // of a panel
    int m;
    int_out out;
} neon_product;

// Rows r.., columns j..: rows x (4 * vectors) results.
INLINE void neon_tile(const neon_product *y, int r, int j, const int rows, const int vectors)
{
    const size_t lda = y->lda;
    const char *a = y->a + (size_t)r * lda;
    const char *w = y->packed + (size_t)(j / PANEL) * y->panel_size + (size_t)(j % PANEL) * 4;
    neon_sums s[SUMS];
    for (int i = 0; i < rows * vectors; i++) s[i] = neon_zero();
    for (int x = 0; x < y->steps; x++, a += 4, w += STEP)
        for (int i = 0; i < rows; i++) {
            int32_t group;
            memcpy(&group, a + (size_t)i * lda, sizeof group);
            const int8x16_t v = neon_prepare(vreinterpretq_s8_s32(vdupq_n_s32(group)));
            for (int t = 0; t < vectors; t++)
                s[i * vectors + t] =
                    neon_dot(s[i * vectors + t], v, vld1q_s8((const int8_t *)w + 16 * t));
        }
    int32_t sums[SUMS * 4];
    for (int i = 0; i < rows * vectors; i++) vst1q_s32(sums + 4 * i, neon_result(s[i]));
    int_finish(&y->out, sums, r, rows, j, 4 * vectors);
}

static void neon_run(const neon_product *y)
{
    for (int j = y->out.n_begin; j < y->out.n_end; j += PANEL) {
        int r = 0;
        for (; y->m - r >= NEON_ROWS; r += NEON_ROWS)
            for (int t = 0; t < PANEL; t += 16) neon_tile(y, r, j + t, NEON_ROWS, 4);
        for (; r < y->m; r++)
            for (int t = 0; t < PANEL; t += 4 * NEON_WIDE) neon_tile(y, r, j + t, 1, NEON_WIDE);
    }
}

static inline __attribute__((unused)) neon_product neon_from_i8(const dgm_gemm_i8_args *g)
{
    return (neon_product){.a = (const char *)g->a,
                          .lda = (size_t)g->lda,
                          .packed = g->packed,
                          .panel_size = i8_panel_size(g->k),
                          .steps = dgm_gemm_i8_depth(g->k) / 4,
                          .m = g->m,
                          .out = i8_out(g)};
}

static inline __attribute__((unused)) neon_product neon_from_i16(const dgm_gemm_i16_args *g)
{
    return (neon_product){.a = (const char *)g->a,
                          .lda = (size_t)g->lda * 2,
                          .packed = g->packed,
                          .panel_size = i16_panel_size(g->k),
                          .steps = dgm_gemm_i16_depth(g->k) / 2,
                          .m = g->m,
                          .out = i16_out(g)};
}

#endif
