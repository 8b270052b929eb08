// SPDX-License-Identifier: MIT
// Packed u8 x i8 product for AVX2; the loops are in kernel/x86/gemm_ymm_tmpl.h.
//
// vpmaddubsw multiplies unsigned with signed bytes and saturates sums of two at 16 bits. With
// |q| <= 127 as the unsigned operand and the weights (|w| <= 127) given the sign of q the sum of
// two is at most 2 * 127 * 127 < 2^15: exact.
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx2.h"
#include "kernel/gemm_int_tmpl.h"

enum { YMM_ROWS = 2 };

typedef struct ymm_group {
    __m256i q, size; // and |q|
} ymm_group;

static inline ymm_group ymm_prepare(__m256i group)
{
    const __m256i q = _mm256_xor_si256(group, _mm256_set1_epi8((char)0x80)); // q + 128 -> q
    return (ymm_group){.q = q, .size = _mm256_abs_epi8(q)};
}

static inline __m256i ymm_dot(__m256i sums, ymm_group a, __m256i w)
{
    const __m256i pairs = _mm256_maddubs_epi16(a.size, _mm256_sign_epi8(w, a.q));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#include "kernel/x86/gemm_ymm_tmpl.h"

static void gemm_i8_run_avx2(const dgm_gemm_i8_args *g)
{
    const ymm_product y = {.a = (const char *)g->a,
                           .lda = (size_t)g->lda,
                           .packed = g->packed,
                           .panel_size = i8_panel_size(g->k),
                           .steps = dgm_gemm_i8_depth(g->k) / 4,
                           .m = g->m,
                           .out = i8_out(g)};
    ymm_run(&y);
}

void dgm_gemm_i8_init_avx2(dgm_kernels *k)
{
    k->gemm_i8.name = "gemm_i8_avx2";
    k->gemm_i8.run = gemm_i8_run_avx2;
}
