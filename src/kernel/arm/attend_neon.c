// SPDX-License-Identifier: MIT
// NEON: attention of one query row. The text is kernel/attend_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/arm/vec_neon.h"

#define ATTEND attend_f32_neon
#define ATTEND_ADD_F32 attend_add_f32_neon
#include "kernel/attend_tmpl.h"
#define ATTEND_BLOCKS attend_blocks_f32_neon
#include "kernel/attend_blocks_tmpl.h"

void dgm_attend_init_neon(dgm_kernels *k)
{
    k->attend_name = "attend_neon";
    k->attend_f32 = attend_f32_neon;
    k->attend_blocks_f32 = attend_blocks_f32_neon;
    k->attend_add_f32 = attend_add_f32_neon;
}
