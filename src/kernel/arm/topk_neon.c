// SPDX-License-Identifier: MIT
// NEON: the k best scores. The text is kernel/topk_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/arm/vec_neon.h"

#define TOPK_F32 topk_f32_neon
#include "kernel/topk_tmpl.h"

void dgm_topk_init_neon(dgm_kernels *k)
{
    k->topk_name = "topk_neon";
    k->topk_f32 = topk_f32_neon;
}
