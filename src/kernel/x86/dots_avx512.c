// SPDX-License-Identifier: MIT
// AVX-512: a few outputs of a layer from weights that lie by rows, f32 and bf16. The text is
// kernel/dots_tmpl.h; integers stay with AVX2 until VNNI.
#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"

#define DOTS_F32 dots_f32_avx512
#define DOTS_BF16 dots_bf16_avx512
#include "kernel/dots_tmpl.h"

void dgm_dots_init_avx512(dgm_kernels *k)
{
    k->dots_f32 = dots_f32_avx512;
    k->dots_bf16 = dots_bf16_avx512;
}
