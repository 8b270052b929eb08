// SPDX-License-Identifier: MIT
// NEON: norms, softmax, reductions, element-wise operations, gather.
// The text is kernel/norm_tmpl.h and kernel/rows_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/arm/vec_neon.h"

#define NORM_ROWS norm_rows_neon
#define SOFTMAX_F32 softmax_f32_neon
#define MAX_F32 max_f32_neon
#define SUM_EXP_F32 sum_exp_f32_neon
#define ACT_F32 act_f32_neon
#define ADD_F32 add_f32_neon
#define AXPY_F32 axpy_f32_neon
#define DOT_F32 dot_f32_neon
#define GATHER_F32 gather_f32_neon
#define GATHER_I8 gather_i8_neon
#include "kernel/norm_tmpl.h"
#include "kernel/rows_tmpl.h"

void dgm_rows_init_neon(dgm_kernels *k)
{
    k->rows_name = "rows_neon";
    k->norm_rows = norm_rows_neon;
    k->softmax_f32 = softmax_f32_neon;
    k->max_f32 = max_f32_neon;
    k->sum_exp_f32 = sum_exp_f32_neon;
    k->act_f32 = act_f32_neon;
    k->add_f32 = add_f32_neon;
    k->axpy_f32 = axpy_f32_neon;
    k->dot_f32 = dot_f32_neon;
    k->gather_f32 = gather_f32_neon;
    k->gather_i8 = gather_i8_neon;
}
