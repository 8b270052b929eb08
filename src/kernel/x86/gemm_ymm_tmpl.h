// SPDX-License-Identifier: MIT
// Products in ymm registers: the loops that gemm_i8_avx2, gemm_i16_avx2 and gemm_bf16_avx2 share. Layout
// and epilogue are in kernel/gemm_int_tmpl.h; gemm_zmm_tmpl.h is the wider version.
//
// A step is 256 bytes of W (eight registers of 8 columns) and one broadcast 32-bit group of each
// row of A. The including file defines
//     enum { YMM_ROWS };                              rows of a tile
//     typedef ... ymm_group;                          what a broadcast group of A is kept as
//     ymm_group ymm_prepare(__m256i group);
//     __m256i ymm_dot(__m256i sums, ymm_group a, __m256i w);   8 columns, one step
// and includes this afterwards; all functions are static. One row takes a whole step at a time
// (8 sums), several rows half of it (YMM_ROWS * 4 sums). Integer sums are exact, so the
// order is free; those of floats (in the bits of __m256i) are chains over the steps in every tile.
#ifndef DGM_KERNEL_X86_GEMM_YMM_TMPL_H
#define DGM_KERNEL_X86_GEMM_YMM_TMPL_H

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

enum { STEP = PANEL * 4, SUMS = YMM_ROWS * 4 > 8 ? YMM_ROWS * 4 : 8 };

// Any args struct in bytes and steps.
typedef struct ymm_product {
    const char *a;
    size_t lda; // bytes
    const char *packed;
    size_t panel_size; // bytes
    int steps;         // of a panel
    int m;
    int_out out;
} ymm_product;

// Rows r.., columns j..: rows x (8 * vectors) results.
INLINE void ymm_tile(const ymm_product *y, int r, int j, const int rows, const int vectors)
{
    const size_t lda = y->lda;
    const char *a = y->a + (size_t)r * lda;
    const char *w = y->packed + (size_t)(j / PANEL) * y->panel_size + (size_t)(j % PANEL) * 4;
    __m256i s[SUMS];
    UNROLLED for (int i = 0; i < rows * vectors; i++) s[i] = _mm256_setzero_si256();
    for (int x = 0; x < y->steps; x++, a += 4, w += STEP) {
        UNROLLED for (int i = 0; i < rows; i++)
        {
            int32_t group;
            memcpy(&group, a + (size_t)i * lda, sizeof group);
            const ymm_group v = ymm_prepare(_mm256_set1_epi32(group));
            UNROLLED for (int t = 0; t < vectors; t++)
            {
                const __m256i b = _mm256_load_si256((const __m256i *)(w + 32 * t));
                s[i * vectors + t] = ymm_dot(s[i * vectors + t], v, b);
            }
        }
    }
    int32_t sums[SUMS * 8] __attribute__((aligned(32)));
    UNROLLED for (int i = 0; i < rows * vectors; i++)
        _mm256_store_si256((__m256i *)(sums + 8 * i), s[i]);
    int_finish(&y->out, sums, r, rows, j, 8 * vectors);
}

static void ymm_run(const ymm_product *y)
{
    for (int j = y->out.n_begin; j < y->out.n_end; j += PANEL) {
        int r = 0;
        for (; y->m - r >= YMM_ROWS; r += YMM_ROWS) {
            ymm_tile(y, r, j, YMM_ROWS, 4);
            ymm_tile(y, r, j + 32, YMM_ROWS, 4);
        }
        for (; r < y->m; r++) ymm_tile(y, r, j, 1, 8);
    }
}

#endif
