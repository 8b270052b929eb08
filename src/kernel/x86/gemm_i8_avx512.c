// SPDX-License-Identifier: MIT
// Packed u8 x i8 product for AVX-512 BW without VNNI; the loops are in kernel/x86/gemm_zmm_tmpl.h.
//
// vpmaddubsw multiplies unsigned with signed bytes and saturates sums of two at 16 bits. With
// |q| <= 127 as the unsigned operand and the weights (|w| <= 127) negated where q is negative the
// sum of two is at most 2 * 127 * 127 < 2^15: exact. Negation is a masked subtraction.
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"
#include "kernel/gemm_int_tmpl.h"

enum { ZMM_REAL = 0 };

typedef struct zmm_group {
    __m512i size;       // |q|
    __mmask64 negative; // q < 0
} zmm_group;

static inline zmm_group zmm_prepare(__m512i group)
{
    const __m512i q = _mm512_xor_si512(group, _mm512_set1_epi8((char)0x80)); // q + 128 -> q
    return (zmm_group){.size = _mm512_abs_epi8(q), .negative = _mm512_movepi8_mask(q)};
}

static inline __m512i zmm_dot(__m512i sums, zmm_group a, __m512i w)
{
    const __m512i v = _mm512_mask_sub_epi8(w, a.negative, _mm512_setzero_si512(), w);
    const __m512i pairs = _mm512_maddubs_epi16(a.size, v);
    return _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

#include "kernel/x86/gemm_zmm_tmpl.h"

static void gemm_i8_run_avx512(const dgm_gemm_i8_args *g)
{
    zmm_product z = zmm_from_i8(g);
    zmm_run(&z);
}

void dgm_gemm_i8_init_avx512(dgm_kernels *k)
{
    k->gemm_i8.name = "gemm_i8_avx512";
    k->gemm_i8.run = gemm_i8_run_avx512;
}
