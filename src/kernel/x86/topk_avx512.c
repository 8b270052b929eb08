// SPDX-License-Identifier: MIT
// AVX-512: the k best scores. The text is kernel/topk_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"

#define TOPK_F32 topk_f32_avx512
#include "kernel/topk_tmpl.h"

void dgm_topk_init_avx512(dgm_kernels *k)
{
    k->topk_name = "topk_avx512";
    k->topk_f32 = topk_f32_avx512;
}
