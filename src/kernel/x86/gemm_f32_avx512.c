// SPDX-License-Identifier: MIT
// Packed f32 product for AVX-512; layout and epilogue are in kernel/gemm_f32_tmpl.h.
//
// Panels are 64 columns wide: four zmm registers for each of up to six rows (24 sums, 4 registers
// of W, 1 broadcast element of A). Every sum is one chain of fma over k from 0, whatever the tile,
// so a row's result does not depend on the number of rows.
//
// Order: for each panel, all row tiles. The panel comes from memory or L3 once and from L2 for the
// further tiles (64 x 512 floats are 128 KiB); at six rows a tile asks for 11 bytes a cycle on a
// core with one 512-bit fma per cycle, 21 on one with two, which L2 gives. Rows are split evenly
// (8 = 4 + 4, not 6 + 2). Up to three rows the product is bound by reading W; then one tile covers
// 4 or 2 panels, which keeps more lines in flight.
//
// Prefetch, measured on Zen 4: fetching every line in software costs 10 to 25 % in L2 and L3, where
// the hardware's own is better. Every second line, 16 KiB ahead, leads the hardware over the end
// of its 4 KiB pages: +10 to 25 % for one or two rows from memory, -10 % from L3, a loss for more
// rows; so it is done for up to three rows of a large matrix. A matrix that fits L2 is read at the
// pace of L2 into L1: every second line a little ahead into L1 gives +7 % for one row of 512 x 512
// and +3 % for two, and costs as much in L3. Where there are several row tiles the
// next panel is fetched into L2 meanwhile: +35 % for 8 rows from memory.
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"
#include "kernel/gemm_f32_tmpl.h"

enum {
    WIDTH = DGM_GEMM_COLUMNS, // columns of a panel
    VECTORS = WIDTH / 16,
    ROWS = 6,        // of a tile
    PANELS = 4,      // of a tile, at most
    LINE = 16,       // floats
    FAR = 64,        // elements of k that are fetched ahead into L2
    LARGE = 8 << 20, // bytes of a matrix from which on that pays
    NEAR = 4,        // elements of k that are fetched ahead into L1
    SMALL = 1 << 20  // bytes of a matrix up to which that pays
};

// How a tile prefetches.
typedef enum fetch {
    FETCH_NONE,
    FETCH_NEAR, // its own panels, NEAR ahead into L1
    FETCH_FAR,  // its own panels, FAR ahead into L2
    FETCH_NEXT  // two lines of `ahead` for each element of k
} fetch;

// Rows r.., columns j..: rows x (panels * 64) sums.
static inline __attribute__((always_inline)) void tile(const dgm_gemm_f32_args *g, int r, int j,
                                                       const int rows, const int panels,
                                                       const fetch how, const float *ahead)
{
    const size_t lda = (size_t)g->lda, next = (size_t)g->k * WIDTH;
    const float *a = g->a + (size_t)r * lda, *w = gemm_panel(g, j);
    __m512 s[ROWS][PANELS * VECTORS];
    for (int i = 0; i < rows; i++)
        for (int t = 0; t < panels * VECTORS; t++) s[i][t] = _mm512_setzero_ps();
    for (int x = 0; x < g->k; x++, a++, w += WIDTH) {
        if (how == FETCH_NEXT) {
            _mm_prefetch((const char *)ahead, _MM_HINT_T1);
            _mm_prefetch((const char *)(ahead + LINE), _MM_HINT_T1);
            ahead += 2 * LINE;
        }
        for (int p = 0; p < panels; p++) {
            const float *const at = w + (size_t)p * next;
            if (how == FETCH_NEAR) {
                _mm_prefetch((const char *)(at + NEAR * WIDTH), _MM_HINT_T0);
                _mm_prefetch((const char *)(at + NEAR * WIDTH + 2 * LINE), _MM_HINT_T0);
            }
            if (how == FETCH_FAR) {
                _mm_prefetch((const char *)(at + FAR * WIDTH), _MM_HINT_T1);
                _mm_prefetch((const char *)(at + FAR * WIDTH + 2 * LINE), _MM_HINT_T1);
            }
            __m512 b[VECTORS];
            for (int t = 0; t < VECTORS; t++) b[t] = _mm512_load_ps(at + 16 * t);
            for (int i = 0; i < rows; i++) {
                const __m512 v = _mm512_set1_ps(a[(size_t)i * lda]);
                for (int t = 0; t < VECTORS; t++)
                    s[i][p * VECTORS + t] = _mm512_fmadd_ps(v, b[t], s[i][p * VECTORS + t]);
            }
        }
    }
    if (gemm_is_plain(g, j, panels * WIDTH)) {
        for (int i = 0; i < rows; i++)
            for (int t = 0; t < panels * VECTORS; t++)
                _mm512_storeu_ps(gemm_result(g, r + i, j) + 16 * t, s[i][t]);
        return;
    }
    float sums[ROWS * VECTORS * 16] __attribute__((aligned(64)));
    for (int i = 0; i < rows; i++)
        for (int t = 0; t < panels * VECTORS; t++)
            _mm512_store_ps(sums + (i * panels * VECTORS + t) * 16, s[i][t]);
    gemm_finish(g, sums, r, rows, j, panels * WIDTH);
}

// One tile of rows: several panels at once as far as registers and the matrix allow.
static inline __attribute__((always_inline)) void
one_tile(const dgm_gemm_f32_args *g, const int rows, const int panels, const fetch how)
{
    int j = g->n_begin;
    for (; g->n_end - j > (panels - 1) * WIDTH; j += panels * WIDTH)
        tile(g, 0, j, rows, panels, how, NULL);
    if (panels > 1)
        for (; j < g->n_end; j += WIDTH) tile(g, 0, j, rows, 1, how, NULL);
}

static void few_rows(const dgm_gemm_f32_args *g)
{
    const size_t bytes = (size_t)g->n * (size_t)g->k * sizeof(float);
    const fetch how = bytes >= LARGE ? FETCH_FAR : bytes <= SMALL ? FETCH_NEAR : FETCH_NONE;
    switch (g->m) {
    case 1:
        if (how == FETCH_FAR)
            one_tile(g, 1, 2, FETCH_FAR);
        else if (how == FETCH_NEAR)
            one_tile(g, 1, 4, FETCH_NEAR);
        else
            one_tile(g, 1, 4, FETCH_NONE);
        return;
    case 2:
        if (how == FETCH_FAR)
            one_tile(g, 2, 2, FETCH_FAR);
        else if (how == FETCH_NEAR)
            one_tile(g, 2, 2, FETCH_NEAR);
        else
            one_tile(g, 2, 2, FETCH_NONE);
        return;
    case 3:
        if (how == FETCH_FAR)
            one_tile(g, 3, 2, FETCH_FAR);
        else
            one_tile(g, 3, 2, FETCH_NONE);
        return;
    case 4:
        one_tile(g, 4, 1, FETCH_NONE);
        return;
    case 5:
        one_tile(g, 5, 1, FETCH_NONE);
        return;
    default:
        one_tile(g, 6, 1, FETCH_NONE);
        return;
    }
}

static inline __attribute__((always_inline)) void
tile_rows(const dgm_gemm_f32_args *g, int r, int j, int rows, const fetch how, const float *ahead)
{
    switch (rows) {
    case 3:
        tile(g, r, j, 3, 1, how, ahead);
        break;
    case 4:
        tile(g, r, j, 4, 1, how, ahead);
        break;
    case 5:
        tile(g, r, j, 5, 1, how, ahead);
        break;
    default:
        tile(g, r, j, 6, 1, how, ahead);
        break;
    }
}

static size_t gemm_f32_packed_size_avx512(int n, int k)
{
    return gemm_packed_size(n, k);
}

static void gemm_f32_pack_avx512(void *packed, const float *w, int n, int k, int ldw)
{
    gemm_pack(packed, w, n, k, ldw, WIDTH);
}

static void gemm_f32_run_avx512(const dgm_gemm_f32_args *g)
{
    if (g->m <= 0) return;
    if (g->m <= ROWS) {
        few_rows(g);
        return;
    }
    const int tiles = (g->m + ROWS - 1) / ROWS;
    // A caller who asks for several panels usually goes on behind them; one at a time may skip.
    const int limit = g->n_end - g->n_begin > WIDTH ? g->n : g->n_end;
    for (int j = g->n_begin; j < g->n_end; j += WIDTH) {
        // The lines of the next panel, 4 for each element of k, are shared out over the tiles.
        const bool more = limit - j > WIDTH;
        const float *ahead = gemm_panel(g, j) + (size_t)g->k * WIDTH;
        const float *const stop = ahead + (size_t)g->k * WIDTH;
        for (int t = 0, r = 0; t < tiles; t++) {
            const int rows = (g->m - r + tiles - t - 1) / (tiles - t);
            if (more && ahead < stop) {
                tile_rows(g, r, j, rows, FETCH_NEXT, ahead);
                ahead += (size_t)g->k * 2 * LINE;
            } else {
                tile_rows(g, r, j, rows, FETCH_NONE, NULL);
            }
            r += rows;
        }
    }
}

void dgm_gemm_f32_init_avx512(dgm_kernels *k)
{
    k->gemm_f32 = (dgm_gemm_f32_ops){.name = "gemm_f32_avx512",
                                     .packed_size = gemm_f32_packed_size_avx512,
                                     .pack = gemm_f32_pack_avx512,
                                     .run = gemm_f32_run_avx512};
}
