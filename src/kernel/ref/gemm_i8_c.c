// SPDX-License-Identifier: MIT
// C reference of the packed u8 x i8 product, and the packing that all ISAs share.
//
// Contract: kernel/gemm_int.h; layout and epilogue: kernel/gemm_int_tmpl.h. Sums are exact, so
// their order is free and every version has the same bits. This one adds signed products (the
// panel's start values are for the versions that multiply unsigned bytes). Pairs of products fit
// in 16 bits (2 * 127 * 127 < 2^15): that lets compilers use 16-bit multiplies.
#include "kernel/kernels_private.h"
#include "kernel/ref/vec_c.h"
#include "kernel/gemm_int_tmpl.h"

static size_t gemm_i8_packed_size_c(int n, int k)
{
    return int_panels(n) * i8_panel_size(k);
}

// Up to 64 weights of a row, -128 taken as -127, zeros behind them; returns their sum.
static int32_t take_row(int8_t line[64], const int8_t *w, int count)
{
    int32_t sum = 0;
    if (count < 64) memset(line, 0, 64);
    for (int i = 0; i < count; i++) {
        line[i] = w[i] < -127 ? -127 : w[i];
        sum += line[i];
    }
    return sum;
}

// Line by line of the rows: 64 elements of each of 64 rows fill 4 KiB of the panel.
static void pack_panel(int8_t *panel, const int8_t *w, const int32_t *rows, int first, int columns,
                       int k, int ldw)
{
    const int depth = dgm_gemm_i8_depth(k);
    int32_t start[PANEL] = {0};
    for (int i0 = 0; i0 < depth; i0 += 64) {
        int8_t *out = panel + (size_t)i0 * PANEL;
        if (columns < PANEL) memset(out, 0, 64 * PANEL);
        for (int j = 0; j < columns; j++) {
            int8_t line[64];
            const size_t row = (size_t)(rows ? rows[first + j] : first + j);
            const int count = k - i0 < 64 ? k - i0 : 64;
            start[j] -= 128 * take_row(line, w + row * (size_t)ldw + i0, count);
            for (int g = 0; g < 16; g++) memcpy(out + (g * PANEL + j) * 4, line + 4 * g, 4);
        }
    }
    memcpy(panel + (size_t)depth * PANEL, start, sizeof start);
}

static void gemm_i8_pack_c(void *packed, const int8_t *w, const int32_t *rows, int n, int k,
                           int ldw)
{
    int8_t *panel = packed;
    for (int j = 0; j < n; j += PANEL, panel += i8_panel_size(k))
        pack_panel(panel, w, rows, j, n - j < PANEL ? n - j : PANEL, k, ldw);
}

// sums[0..64) of one row a [depth] with a panel.
static void block(int32_t sums[PANEL], const uint8_t *a, const int8_t *w, int depth)
{
    memset(sums, 0, PANEL * sizeof *sums);
    for (int i = 0; i < depth; i += 4, a += 4, w += 4 * PANEL) {
        const int16_t a0 = (int16_t)(a[0] - 128), a1 = (int16_t)(a[1] - 128);
        const int16_t a2 = (int16_t)(a[2] - 128), a3 = (int16_t)(a[3] - 128);
        for (int j = 0; j < PANEL; j++) {
            const int16_t low = (int16_t)(a0 * w[4 * j] + a1 * w[4 * j + 1]);
            const int16_t high = (int16_t)(a2 * w[4 * j + 2] + a3 * w[4 * j + 3]);
            sums[j] += low + high;
        }
    }
}

static void gemm_i8_run_c(const dgm_gemm_i8_args *g)
{
    const int_out out = i8_out(g);
    int32_t sums[PANEL];
    for (int j = g->n_begin; j < g->n_end; j += PANEL)
        for (int r = 0; r < g->m; r++) {
            block(sums, g->a + (size_t)r * (size_t)g->lda, i8_panel(g, j), dgm_gemm_i8_depth(g->k));
            int_finish(&out, sums, r, 1, j, PANEL);
        }
}

void dgm_gemm_i8_init_c(dgm_kernels *k)
{
    k->gemm_i8 = (dgm_gemm_i8_ops){.name = "gemm_i8_c",
                                   .layout = "i8-64x4",
                                   .packed_size = gemm_i8_packed_size_c,
                                   .pack = gemm_i8_pack_c,
                                   .run = gemm_i8_run_c};
}
