// SPDX-License-Identifier: MIT
// Packed bf16 product for AVX-512 without a unit for bf16; the loops are in kernel/x86/gemm_zmm_tmpl.h.
//
// A pair of numbers in 32 bits becomes two floats: the even one shifted up, the odd one with the lower half cleared.
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"
#include "kernel/gemm_int_tmpl.h"

enum { ZMM_REAL = 1 };

typedef struct zmm_group {
    __m512 even, odd;
} zmm_group;

static inline zmm_group zmm_prepare(__m512i group)
{
    const __m512i upper = _mm512_set1_epi32((int32_t)0xffff0000);
    return (zmm_group){_mm512_castsi512_ps(_mm512_slli_epi32(group, 16)),
                       _mm512_castsi512_ps(_mm512_and_si512(group, upper))};
}

static inline __m512i zmm_dot(__m512i sums, zmm_group a, __m512i w)
{
    const zmm_group b = zmm_prepare(w);
    const __m512 even = _mm512_fmadd_ps(a.even, b.even, _mm512_castsi512_ps(sums));
    return _mm512_castps_si512(_mm512_fmadd_ps(a.odd, b.odd, even));
}

#include "kernel/x86/gemm_zmm_tmpl.h"

static void gemm_bf16_run_avx512(const dgm_gemm_bf16_args *g)
{
    zmm_product z = zmm_from_bf16(g);
    zmm_run(&z);
}

void dgm_gemm_bf16_init_avx512(dgm_kernels *k)
{
    k->gemm_bf16.name = "gemm_bf16_avx512";
    k->gemm_bf16.run = gemm_bf16_run_avx512;
}
