// SPDX-License-Identifier: MIT
// Packed i16 product for NEON; the loops are in gemm_neon_tmpl.h.
//
// Each of the two products of a column has its own 32-bit sum; they are added at the end.
#include <arm_neon.h>

#include "kernel/kernels_private.h"
#include "kernel/arm/vec_neon.h"
#include "kernel/gemm_int_tmpl.h"

enum { NEON_ROWS = 2, NEON_WIDE = 8 };

typedef struct neon_sums {
    int32x4_t low, high; // columns 0, 1 and 2, 3; two sums each
} neon_sums;

static inline neon_sums neon_zero(void)
{
    return (neon_sums){vdupq_n_s32(0), vdupq_n_s32(0)};
}

static inline int8x16_t neon_prepare(int8x16_t group)
{
    return group;
}

static inline neon_sums neon_dot(neon_sums s, int8x16_t a, int8x16_t w)
{
    const int16x8_t x = vreinterpretq_s16_s8(a), y = vreinterpretq_s16_s8(w);
    s.low = vmlal_s16(s.low, vget_low_s16(x), vget_low_s16(y));
    s.high = vmlal_high_s16(s.high, x, y);
    return s;
}

static inline int32x4_t neon_result(neon_sums s)
{
    return vpaddq_s32(s.low, s.high);
}

#include "kernel/arm/gemm_neon_tmpl.h"

static void gemm_i16_run_neon(const dgm_gemm_i16_args *g)
{
    const neon_product y = neon_from_i16(g);
    neon_run(&y);
}

void dgm_gemm_i16_init_neon(dgm_kernels *k)
{
    k->gemm_i16.name = "gemm_i16_neon";
    k->gemm_i16.run = gemm_i16_run_neon;
}
