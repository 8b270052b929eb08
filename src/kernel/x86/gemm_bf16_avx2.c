// SPDX-License-Identifier: MIT
// Packed bf16 product for AVX2 with FMA; the loops are in kernel/x86/gemm_ymm_tmpl.h.
//
// A pair of numbers in 32 bits becomes two floats: the even one shifted up, the odd one with the lower half cleared.
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx2.h"
#include "kernel/gemm_int_tmpl.h"

enum { YMM_ROWS = 2 };

typedef struct ymm_group {
    __m256 even, odd;
} ymm_group;

static inline ymm_group ymm_prepare(__m256i group)
{
    const __m256i upper = _mm256_set1_epi32((int32_t)0xffff0000);
    return (ymm_group){_mm256_castsi256_ps(_mm256_slli_epi32(group, 16)),
                       _mm256_castsi256_ps(_mm256_and_si256(group, upper))};
}

static inline __m256i ymm_dot(__m256i sums, ymm_group a, __m256i w)
{
    const ymm_group b = ymm_prepare(w);
    const __m256 even = _mm256_fmadd_ps(a.even, b.even, _mm256_castsi256_ps(sums));
    return _mm256_castps_si256(_mm256_fmadd_ps(a.odd, b.odd, even));
}

#include "kernel/x86/gemm_ymm_tmpl.h"

static void gemm_bf16_run_avx2(const dgm_gemm_bf16_args *g)
{
    const ymm_product y = {.a = (const char *)g->a,
                           .lda = (size_t)g->lda * 2,
                           .packed = g->packed,
                           .panel_size = bf16_panel_size(g->k),
                           .steps = dgm_gemm_bf16_depth(g->k) / 2,
                           .m = g->m,
                           .out = bf16_out(g)};
    ymm_run(&y);
}

void dgm_gemm_bf16_init_avx2(dgm_kernels *k)
{
    k->gemm_bf16.name = "gemm_bf16_avx2";
    k->gemm_bf16.run = gemm_bf16_run_avx2;
}
