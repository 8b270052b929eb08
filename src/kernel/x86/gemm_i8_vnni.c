// SPDX-License-Identifier: MIT
// Packed u8 x i8 product for AVX-512 VNNI; the loops are in kernel/x86/gemm_zmm_tmpl.h.
//
// vpdpbusd adds four products of unsigned and signed bytes to a 32-bit sum without saturation. The
// rows are stored as q + 128, so a sum starts at -128 * (the column's sum of weights), which lies
// behind the panel.
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
    return _mm512_dpbusd_epi32(sums, a, w);
}

#include "kernel/x86/gemm_zmm_tmpl.h"

void dgm_gemm_i8_run_vnni(const dgm_gemm_i8_args *g)
{
    zmm_product z = zmm_from_i8(g);
    z.has_start = true;
    zmm_run(&z);
}

void dgm_gemm_i8_init_vnni(dgm_kernels *k)
{
    k->gemm_i8.name = "gemm_i8_vnni";
    k->gemm_i8.run = dgm_gemm_i8_run_vnni;
}
