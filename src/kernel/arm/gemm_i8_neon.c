// SPDX-License-Identifier: MIT
// Packed u8 x i8 product for NEON without dot products; the loops are in gemm_neon_tmpl.h.
//
// Bytes are multiplied to 16 bits, neighbours added into 32 bits: a column of the step becomes two
// sums, which are added at the end. Products are at most 127 * 127: nothing overflows.
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
    return veorq_s8(group, vdupq_n_s8(-128)); // q + 128 -> q
}

static inline neon_sums neon_dot(neon_sums s, int8x16_t a, int8x16_t w)
{
    s.low = vpadalq_s16(s.low, vmull_s8(vget_low_s8(a), vget_low_s8(w)));
    s.high = vpadalq_s16(s.high, vmull_high_s8(a, w));
    return s;
}

static inline int32x4_t neon_result(neon_sums s)
{
    return vpaddq_s32(s.low, s.high);
}

#include "kernel/arm/gemm_neon_tmpl.h"

static void gemm_i8_run_neon(const dgm_gemm_i8_args *g)
{
    const neon_product y = neon_from_i8(g);
    neon_run(&y);
}

void dgm_gemm_i8_init_neon(dgm_kernels *k)
{
    k->gemm_i8.name = "gemm_i8_neon";
    k->gemm_i8.run = gemm_i8_run_neon;
}
