// SPDX-License-Identifier: MIT
// Packed i16 product for AVX-512 VNNI (vpdpwssd); the loops are in kernel/x86/gemm_zmm_tmpl.h.
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"
#include "kernel/gemm_int_tmpl.h"

enum { ZMM_REAL = 0 };

typedef __m512i zmm_group;

static inline zmm_group zmm_prepare(__m512i group)
{
    return group;
}

static inline __m512i zmm_dot(__m512i sums, zmm_group a, __m512i w)
{
    return _mm512_dpwssd_epi32(sums, a, w);
}

#include "kernel/x86/gemm_zmm_tmpl.h"

static void gemm_i16_run_vnni(const dgm_gemm_i16_args *g)
{
    zmm_product z = zmm_from_i16(g);
    zmm_run(&z);
}

void dgm_gemm_i16_init_vnni(dgm_kernels *k)
{
    k->gemm_i16.name = "gemm_i16_vnni";
    k->gemm_i16.run = gemm_i16_run_vnni;
}
