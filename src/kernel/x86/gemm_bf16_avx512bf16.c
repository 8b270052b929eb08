// SPDX-License-Identifier: MIT
// Packed bf16 product for AVX-512 BF16 (vdpbf16ps); the loops are in kernel/x86/gemm_zmm_tmpl.h.
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"
#include "kernel/gemm_int_tmpl.h"

enum { ZMM_REAL = 1 };

typedef __m512bh zmm_group;

static inline zmm_group zmm_prepare(__m512i group)
{
    return (__m512bh)group;
}

static inline __m512i zmm_dot(__m512i sums, zmm_group a, __m512i w)
{
    return _mm512_castps_si512(_mm512_dpbf16_ps(_mm512_castsi512_ps(sums), a, (__m512bh)w));
}

#include "kernel/x86/gemm_zmm_tmpl.h"

static void gemm_bf16_run_avx512bf16(const dgm_gemm_bf16_args *g)
{
    zmm_product z = zmm_from_bf16(g);
    zmm_run(&z);
}

void dgm_gemm_bf16_init_avx512bf16(dgm_kernels *k)
{
    k->gemm_bf16.name = "gemm_bf16_avx512bf16";
    k->gemm_bf16.run = gemm_bf16_run_avx512bf16;
}
