// SPDX-License-Identifier: MIT
// AVX2: the k best scores. The text is kernel/topk_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx2.h"

#define TOPK_F32 topk_f32_avx2
#include "kernel/topk_tmpl.h"

void dgm_topk_init_avx2(dgm_kernels *k)
{
    k->topk_name = "topk_avx2";
    k->topk_f32 = topk_f32_avx2;
}
