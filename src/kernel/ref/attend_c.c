// SPDX-License-Identifier: MIT
// C reference: attention of one query row.
//
// The text is kernel/attend_tmpl.h, on plain-C vectors (ref/vec_c.h);
// it is the contract that every other version meets bit by bit.
#include "kernel/kernels_private.h"
#include "kernel/ref/vec_c.h"

#define ATTEND attend_f32_c
#define ATTEND_ADD_F32 attend_add_f32_c
#include "kernel/attend_tmpl.h"
#define ATTEND_BLOCKS attend_blocks_f32_c
#include "kernel/attend_blocks_tmpl.h"

void dgm_attend_init_c(dgm_kernels *k)
{
    k->attend_name = "attend_c";
    k->attend_f32 = attend_f32_c;
    k->attend_blocks_f32 = attend_blocks_f32_c;
    k->attend_add_f32 = attend_add_f32_c;
}
