// SPDX-License-Identifier: MIT
// C reference: the k best scores.
//
// The text is kernel/topk_tmpl.h, on plain-C vectors (ref/vec_c.h);
// it is the contract that every other version meets bit by bit.
#include "kernel/kernels_private.h"
#include "kernel/ref/vec_c.h"

#define TOPK_F32 topk_f32_c
#include "kernel/topk_tmpl.h"

void dgm_topk_init_c(dgm_kernels *k)
{
    k->topk_name = "topk_c";
    k->topk_f32 = topk_f32_c;
}
