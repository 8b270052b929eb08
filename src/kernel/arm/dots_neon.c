// SPDX-License-Identifier: MIT
// NEON: a few outputs of a layer from weights that lie by rows, f32 and bf16. The text is
// kernel/dots_tmpl.h; the integer loops of the C reference are left to the compiler.
#include "kernel/kernels_private.h"
#include "kernel/arm/vec_neon.h"

#define DOTS_F32 dots_f32_neon
#define DOTS_BF16 dots_bf16_neon
#include "kernel/dots_tmpl.h"

void dgm_dots_init_neon(dgm_kernels *k)
{
    k->dots_f32 = dots_f32_neon;
    k->dots_bf16 = dots_bf16_neon;
}
