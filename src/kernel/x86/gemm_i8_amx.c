// SPDX-License-Identifier: MIT
// Packed u8 x i8 product for AMX; layout and epilogue are in kernel/gemm_int_tmpl.h.
//
// tdpbusd multiplies a tile of A (16 rows x 64 bytes of k) with a tile of W (16 groups of k x 16
// columns): the packed panel as it lies, a row of the tile being 64 bytes of a step. Sums wrap
// without saturation; the start values of the columns are added in the epilogue.
//   up to 16 rows: tiles 0-3 are the sums of 64 columns, 4 is A, 6 and 7 are W in turn
//   32 rows: tiles 0-3 are 2 x 2 sums (32 rows x 32 columns), 4 and 5 A, 6 and 7 W
// The second form loads half as much for each product. Rows are taken 32 at a time, what is left
// (1..31) as one or two blocks of the first form, with the height of the tiles set to the rows
// there are, so that nothing beyond them is read.
//
// Up to FEW rows the product is bound by reading W, which needs no tiles: that is left to VNNI. The
// system's permission to use tiles has been asked for when the flag was set (kernel/cpu.c).
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"
#include "kernel/gemm_int_tmpl.h"

enum { STEP = PANEL * 4, DEEP = 16 * STEP, FEW = 4 };

// What ldtilecfg reads.
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "the processor's layout");

// Tiles 0-3 hold sums, 4 and 5 rows of A: `rows` high. 6 and 7 hold W.
static void configure(int rows)
{
    tile_config c = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        c.bytes_per_row[i] = 64;
        c.rows[i] = (uint8_t)(i < 6 ? rows : 16);
    }
    _tile_loadconfig(&c);
}

// sums [rows, columns] + the start values of the columns, then the epilogue.
static void finish(const dgm_gemm_i8_args *g, int32_t *sums, int r, int rows, int j, int columns)
{
    const int_out out = i8_out(g);
    const int8_t *start = i8_panel(g, j) + (size_t)dgm_gemm_i8_depth(g->k) * PANEL + j % PANEL * 4;
    for (int t = 0; t < columns; t += 16) {
        const __m512i first = _mm512_loadu_si512(start + 4 * t);
        for (int i = 0; i < rows; i++) {
            int32_t *s = sums + i * columns + t;
            _mm512_storeu_si512(s, _mm512_add_epi32(_mm512_loadu_si512(s), first));
        }
    }
    int_finish(&out, sums, r, rows, j, columns);
}

// Up to 16 rows x 64 columns.
static void block_16(const dgm_gemm_i8_args *g, int r, int rows, int j)
{
    int32_t sums[16 * 64] __attribute__((aligned(64)));
    const uint8_t *a = g->a + (size_t)r * (size_t)g->lda;
    const int8_t *w = i8_panel(g, j);
    const int depth = dgm_gemm_i8_depth(g->k);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int x = 0; x < depth; x += 64, w += DEEP) {
        _tile_loadd(4, a + x, g->lda);
        _tile_loadd(6, w, STEP);
        _tile_dpbusd(0, 4, 6);
        _tile_loadd(7, w + 64, STEP);
        _tile_dpbusd(1, 4, 7);
        _tile_loadd(6, w + 128, STEP);
        _tile_dpbusd(2, 4, 6);
        _tile_loadd(7, w + 192, STEP);
        _tile_dpbusd(3, 4, 7);
    }
    _tile_stored(0, sums, 64 * 4);
    _tile_stored(1, sums + 16, 64 * 4);
    _tile_stored(2, sums + 32, 64 * 4);
    _tile_stored(3, sums + 48, 64 * 4);
    finish(g, sums, r, rows, j, 64);
}

// 32 rows x 32 columns.
static void block_32(const dgm_gemm_i8_args *g, int r, int j)
{
    int32_t sums[32 * 32] __attribute__((aligned(64)));
    const uint8_t *a = g->a + (size_t)r * (size_t)g->lda, *b = a + 16 * (size_t)g->lda;
    const int8_t *w = i8_panel(g, j) + j % PANEL * 4;
    const int depth = dgm_gemm_i8_depth(g->k);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int x = 0; x < depth; x += 64, w += DEEP) {
        _tile_loadd(6, w, STEP);
        _tile_loadd(4, a + x, g->lda);
        _tile_dpbusd(0, 4, 6);
        _tile_loadd(5, b + x, g->lda);
        _tile_dpbusd(2, 5, 6);
        _tile_loadd(7, w + 64, STEP);
        _tile_dpbusd(1, 4, 7);
        _tile_dpbusd(3, 5, 7);
    }
    _tile_stored(0, sums, 32 * 4);
    _tile_stored(1, sums + 16, 32 * 4);
    _tile_stored(2, sums + 16 * 32, 32 * 4);
    _tile_stored(3, sums + 16 * 32 + 16, 32 * 4);
    finish(g, sums, r, 32, j, 32);
}

static void gemm_i8_run_amx(const dgm_gemm_i8_args *g)
{
    if (g->m <= FEW) {
        dgm_gemm_i8_run_vnni(g);
        return;
    }
    const int whole = g->m / 16 * 16, pairs = g->m / 32 * 32;
    configure(16);
    for (int j = g->n_begin; j < g->n_end; j += PANEL) {
        for (int r = 0; r < pairs; r += 32) {
            block_32(g, r, j);
            if (g->n_end - j > 32) block_32(g, r, j + 32);
        }
        if (pairs < whole) block_16(g, pairs, 16, j);
    }
    if (whole < g->m) {
        configure(g->m - whole);
        for (int j = g->n_begin; j < g->n_end; j += PANEL) block_16(g, whole, g->m - whole, j);
    }
    _tile_release();
}

void dgm_gemm_i8_init_amx(dgm_kernels *k)
{
    k->gemm_i8.name = "gemm_i8_amx";
    k->gemm_i8.run = gemm_i8_run_amx;
}
