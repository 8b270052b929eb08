// SPDX-License-Identifier: MIT
// Packed u8 x i8 product for NEON with dot products (sdot); the loops are in gemm_neon_tmpl.h.
#include <arm_neon.h>

#include "kernel/kernels_private.h"
#include "kernel/arm/vec_neon.h"
#include "kernel/gemm_int_tmpl.h"

enum { NEON_ROWS = 4, NEON_WIDE = 16 };

typedef int32x4_t neon_sums;

static inline neon_sums neon_zero(void)
{
    return vdupq_n_s32(0);
}

static inline int8x16_t neon_prepare(int8x16_t group)
{
    return veorq_s8(group, vdupq_n_s8(-128)); // q + 128 -> q
}

static inline neon_sums neon_dot(neon_sums s, int8x16_t a, int8x16_t w)
{
    return vdotq_s32(s, a, w);
}

static inline int32x4_t neon_result(neon_sums s)
{
    return s;
}

#include "kernel/arm/gemm_neon_tmpl.h"

void dgm_gemm_i8_run_dotprod(const dgm_gemm_i8_args *g)
{
    const neon_product y = neon_from_i8(g);
    neon_run(&y);
}

void dgm_gemm_i8_init_dotprod(dgm_kernels *k)
{
    k->gemm_i8.name = "gemm_i8_dotprod";
    k->gemm_i8.run = dgm_gemm_i8_run_dotprod;
}
