// SPDX-License-Identifier: MIT
// Packed f32 product for AVX2 with FMA; layout and epilogue are in kernel/gemm_f32_tmpl.h.
//
// Panels are 16 columns wide: two ymm registers for each of up to six rows (12 sums, 2 registers
// of W, 1 broadcast element of A). Every sum is one chain of fma over k from 0, whatever the tile:
// a row's result does not depend on the number of rows and has the bits of the AVX-512 version.
//
// Order: for each panel, all row tiles; a panel of k = 512 is 32 KiB, so further tiles find most
// of it in L1. Up to three rows the product is bound by reading W; then one tile covers 4 or 2
// panels, which keeps more lines in flight. Where there are several row tiles the first one
// fetches the next panel into L2 (see gemm_f32_avx512.c on prefetching).
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx2.h"
#include "kernel/gemm_f32_tmpl.h"

enum {
    WIDTH = 16, // columns of a panel
    VECTORS = WIDTH / 8,
    ROWS = 6,   // of a tile
    PANELS = 4, // of a tile, at most
    LINE = 16   // floats
};

// Rows r.., columns j..: rows x (panels * 16) sums. `lines` lines of `ahead` are fetched into L2
// for each element of k.
static inline __attribute__((always_inline)) void tile(const dgm_gemm_f32_args *g, int r, int j,
                                                       const int rows, const int panels,
                                                       const float *ahead, const int lines)
{
    const size_t lda = (size_t)g->lda, next = (size_t)g->k * WIDTH;
    const float *a = g->a + (size_t)r * lda, *w = gemm_panel(g, j);
    __m256 s[ROWS][PANELS * VECTORS];
    for (int i = 0; i < rows; i++)
        for (int t = 0; t < panels * VECTORS; t++) s[i][t] = _mm256_setzero_ps();
    for (int x = 0; x < g->k; x++, a++, w += WIDTH) {
        for (int t = 0; t < lines; t++, ahead += LINE)
            _mm_prefetch((const char *)ahead, _MM_HINT_T1);
        for (int p = 0; p < panels; p++) {
            const __m256 b0 = _mm256_load_ps(w + (size_t)p * next);
            const __m256 b1 = _mm256_load_ps(w + (size_t)p * next + 8);
            for (int i = 0; i < rows; i++) {
                const __m256 v = _mm256_broadcast_ss(a + (size_t)i * lda);
                s[i][p * VECTORS] = _mm256_fmadd_ps(v, b0, s[i][p * VECTORS]);
                s[i][p * VECTORS + 1] = _mm256_fmadd_ps(v, b1, s[i][p * VECTORS + 1]);
            }
        }
    }
    if (gemm_is_plain(g, j, panels * WIDTH)) {
        for (int i = 0; i < rows; i++)
            for (int t = 0; t < panels * VECTORS; t++)
                _mm256_storeu_ps(gemm_result(g, r + i, j) + 8 * t, s[i][t]);
        return;
    }
    float sums[ROWS * VECTORS * 8] __attribute__((aligned(64)));
    for (int i = 0; i < rows; i++)
        for (int t = 0; t < panels * VECTORS; t++)
            _mm256_store_ps(sums + (i * panels * VECTORS + t) * 8, s[i][t]);
    gemm_finish(g, sums, r, rows, j, panels * WIDTH);
}

// One, two or three rows: several panels at once. The packed matrix is padded to 64 columns, so
// that a group of panels that begins before n_end is whole.
static void few_rows(const dgm_gemm_f32_args *g)
{
    if (g->m == 1)
        for (int j = g->n_begin; j < g->n_end; j += 4 * WIDTH) tile(g, 0, j, 1, 4, NULL, 0);
    else if (g->m == 2)
        for (int j = g->n_begin; j < g->n_end; j += 2 * WIDTH) tile(g, 0, j, 2, 2, NULL, 0);
    else
        for (int j = g->n_begin; j < g->n_end; j += 2 * WIDTH) tile(g, 0, j, 3, 2, NULL, 0);
}

static inline __attribute__((always_inline)) void
tile_rows(const dgm_gemm_f32_args *g, int r, int j, int rows, const float *ahead, const int lines)
{
    switch (rows) {
    case 3:
        tile(g, r, j, 3, 1, ahead, lines);
        break;
    case 4:
        tile(g, r, j, 4, 1, ahead, lines);
        break;
    case 5:
        tile(g, r, j, 5, 1, ahead, lines);
        break;
    default:
        tile(g, r, j, 6, 1, ahead, lines);
        break;
    }
}

static size_t gemm_f32_packed_size_avx2(int n, int k)
{
    return gemm_packed_size(n, k);
}

static void gemm_f32_pack_avx2(void *packed, const float *w, int n, int k, int ldw)
{
    gemm_pack(packed, w, n, k, ldw, WIDTH);
}

static void gemm_f32_run_avx2(const dgm_gemm_f32_args *g)
{
    if (g->m <= 0) return;
    if (g->m <= 3) {
        few_rows(g);
        return;
    }
    const int tiles = (g->m + ROWS - 1) / ROWS;
    const int limit = g->n_end - g->n_begin > DGM_GEMM_COLUMNS ? g->n : g->n_end;
    for (int j = g->n_begin; j < g->n_end; j += WIDTH) {
        const bool more = tiles > 1 && limit - j > WIDTH;
        for (int t = 0, r = 0; t < tiles; t++) {
            const int rows = (g->m - r + tiles - t - 1) / (tiles - t);
            if (more && t == 0)
                tile_rows(g, r, j, rows, gemm_panel(g, j + WIDTH), 1);
            else
                tile_rows(g, r, j, rows, NULL, 0);
            r += rows;
        }
    }
}

void dgm_gemm_f32_init_avx2(dgm_kernels *k)
{
    k->gemm_f32 = (dgm_gemm_f32_ops){.name = "gemm_f32_avx2",
                                     .packed_size = gemm_f32_packed_size_avx2,
                                     .pack = gemm_f32_pack_avx2,
                                     .run = gemm_f32_run_avx2};
}
