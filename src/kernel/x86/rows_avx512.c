// SPDX-License-Identifier: MIT
// AVX-512: norms, softmax, reductions, element-wise operations, gather.
// The text is kernel/norm_tmpl.h and kernel/rows_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"

#define NORM_ROWS norm_rows_avx512
#define SOFTMAX_F32 softmax_f32_avx512
#define MAX_F32 max_f32_avx512
#define SUM_EXP_F32 sum_exp_f32_avx512
#define ACT_F32 act_f32_avx512
#define ADD_F32 add_f32_avx512
#define AXPY_F32 axpy_f32_avx512
#define DOT_F32 dot_f32_avx512
#define GATHER_F32 gather_f32_avx512
#define GATHER_I8 gather_i8_avx512
#include "kernel/norm_tmpl.h"
#include "kernel/rows_tmpl.h"

void dgm_rows_init_avx512(dgm_kernels *k)
{
    k->rows_name = "rows_avx512";
    k->norm_rows = norm_rows_avx512;
    k->softmax_f32 = softmax_f32_avx512;
    k->max_f32 = max_f32_avx512;
    k->sum_exp_f32 = sum_exp_f32_avx512;
    k->act_f32 = act_f32_avx512;
    k->add_f32 = add_f32_avx512;
    k->axpy_f32 = axpy_f32_avx512;
    k->dot_f32 = dot_f32_avx512;
    k->gather_f32 = gather_f32_avx512;
    k->gather_i8 = gather_i8_avx512;
}
