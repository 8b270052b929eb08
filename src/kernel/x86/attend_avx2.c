// SPDX-License-Identifier: MIT
// AVX2: attention of one query row. The text is kernel/attend_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx2.h"

#define ATTEND attend_f32_avx2
#define ATTEND_ADD_F32 attend_add_f32_avx2
#include "kernel/attend_tmpl.h"
#define ATTEND_BLOCKS attend_blocks_f32_avx2
#include "kernel/attend_blocks_tmpl.h"

void dgm_attend_init_avx2(dgm_kernels *k)
{
    k->attend_name = "attend_avx2";
    k->attend_f32 = attend_f32_avx2;
    k->attend_blocks_f32 = attend_blocks_f32_avx2;
    k->attend_add_f32 = attend_add_f32_avx2;
}
