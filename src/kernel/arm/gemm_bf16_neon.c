// SPDX-License-Identifier: MIT
// Packed bf16 product for NEON; the loops are in gemm_neon_tmpl.h.
//
// A pair of numbers in 32 bits becomes two floats: the even one shifted up, the odd one with the lower half cleared.
#include <arm_neon.h>

#include "kernel/kernels_private.h"
#include "kernel/arm/vec_neon.h"
#include "kernel/gemm_int_tmpl.h"

enum { NEON_ROWS = 2, NEON_WIDE = 8 };

typedef float32x4_t neon_sums;

static inline neon_sums neon_zero(void)
{
    return vdupq_n_f32(0.0f);
}

static inline int8x16_t neon_prepare(int8x16_t group)
{
    return group;
}

static inline float32x4_t even(int8x16_t pairs)
{
    return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_s8(pairs), 16));
}

static inline float32x4_t odd(int8x16_t pairs)
{
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_s8(pairs), vdupq_n_u32(0xffff0000u)));
}

static inline neon_sums neon_dot(neon_sums s, int8x16_t a, int8x16_t w)
{
    return vfmaq_f32(vfmaq_f32(s, even(a), even(w)), odd(a), odd(w));
}

static inline int32x4_t neon_result(neon_sums s)
{
    return vreinterpretq_s32_f32(s);
}

#include "kernel/arm/gemm_neon_tmpl.h"

static void gemm_bf16_run_neon(const dgm_gemm_bf16_args *g)
{
    const neon_product y = {.a = (const char *)g->a,
                            .lda = (size_t)g->lda * 2,
                            .packed = g->packed,
                            .panel_size = bf16_panel_size(g->k),
                            .steps = dgm_gemm_bf16_depth(g->k) / 2,
                            .m = g->m,
                            .out = bf16_out(g)};
    neon_run(&y);
}

void dgm_gemm_bf16_init_neon(dgm_kernels *k)
{
    k->gemm_bf16.name = "gemm_bf16_neon";
    k->gemm_bf16.run = gemm_bf16_run_neon;
}
