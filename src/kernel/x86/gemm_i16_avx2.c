// SPDX-License-Identifier: MIT
// Packed i16 product for AVX2 (vpmaddwd); the loops are in kernel/x86/gemm_ymm_tmpl.h.
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx2.h"
#include "kernel/gemm_int_tmpl.h"

enum { YMM_ROWS = 3 };

typedef __m256i ymm_group;

static inline ymm_group ymm_prepare(__m256i group)
{
    return group;
}

static inline __m256i ymm_dot(__m256i sums, ymm_group a, __m256i w)
{
    return _mm256_add_epi32(sums, _mm256_madd_epi16(a, w));
}

#include "kernel/x86/gemm_ymm_tmpl.h"

static void gemm_i16_run_avx2(const dgm_gemm_i16_args *g)
{
    const ymm_product y = {.a = (const char *)g->a,
                           .lda = (size_t)g->lda * 2,
                           .packed = g->packed,
                           .panel_size = i16_panel_size(g->k),
                           .steps = dgm_gemm_i16_depth(g->k) / 2,
                           .m = g->m,
                           .out = i16_out(g)};
    ymm_run(&y);
}

void dgm_gemm_i16_init_avx2(dgm_kernels *k)
{
    k->gemm_i16.name = "gemm_i16_avx2";
    k->gemm_i16.run = gemm_i16_run_avx2;
}
