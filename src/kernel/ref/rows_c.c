// SPDX-License-Identifier: MIT
// C reference: norms, softmax, reductions, element-wise operations, gather.
//
// The text is kernel/norm_tmpl.h and kernel/rows_tmpl.h, on plain-C vectors (ref/vec_c.h);
// it is the contract that every other version meets bit by bit.
#include "kernel/kernels_private.h"
#include "kernel/ref/vec_c.h"

#define NORM_ROWS norm_rows_c
#define SOFTMAX_F32 softmax_f32_c
#define MAX_F32 max_f32_c
#define SUM_EXP_F32 sum_exp_f32_c
#define ACT_F32 act_f32_c
#define ADD_F32 add_f32_c
#define AXPY_F32 axpy_f32_c
#define DOT_F32 dot_f32_c
#define GATHER_F32 gather_f32_c
#define GATHER_I8 gather_i8_c
#include "kernel/norm_tmpl.h"
#include "kernel/rows_tmpl.h"

void dgm_rows_init_c(dgm_kernels *k)
{
    k->rows_name = "rows_c";
    k->norm_rows = norm_rows_c;
    k->softmax_f32 = softmax_f32_c;
    k->max_f32 = max_f32_c;
    k->sum_exp_f32 = sum_exp_f32_c;
    k->act_f32 = act_f32_c;
    k->add_f32 = add_f32_c;
    k->axpy_f32 = axpy_f32_c;
    k->dot_f32 = dot_f32_c;
    k->gather_f32 = gather_f32_c;
    k->gather_i8 = gather_i8_c;
}
