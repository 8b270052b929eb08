// SPDX-License-Identifier: MIT
// tanh and sigmoid by look-up table over a 16-lane vector, and what is made of them: activations
// and gates. The text of tables_<isa>.c.
//
// tanh: linear interpolation between tanh(i / 64), |x| < 8; beyond, 1. The error of interpolation
// is at most h^2 / 8 max|tanh''| = 2.4e-5, and rounding adds nothing that shows.
// sigmoid(x) = 0.5 + 0.5 tanh(x / 2): half of that. A NaN gives a NaN (the index is bounded apart
// from the fraction, so that nothing outside the table is read). Every operation is one of
// vec_<isa>.h: the same bits on every ISA. Measured on Zen 4 (checkkernel --bench), 512 elements of
// tanh: with AVX-512 0.12 us by polynomial (math_tmpl.h, exact to a few ulp) and 0.56 us by table,
// with AVX2 0.13 and 0.51, in plain C 7.2 and 1.3: tables pay only where there is no vector fma.
// Included after a vec_<isa>.h with ACT_TABLE_F32, GRU_F32, LSTM_F32 and SSRU_F32 defined.
#include "kernel/math_tmpl.h"

static inline vf table_tanh(vf x)
{
    const vf end = vf_set(8.0f), half = vf_set(0.5f), magic = vf_set(12582912.0f);
    const vf a = vf_abs(x), t = vf_mul(vf_min(end, a), vf_set(64.0f)); // a NaN stays one
    // Rounded after taking a half away: floor, except that a whole number may give the one below,
    // whose interval ends there.
    const vf bounded = vf_mul(vf_min(a, end), vf_set(64.0f)); // a NaN becomes the end
    const vf i = vf_max(vf_sub(vf_add(vf_sub(bounded, half), magic), magic), vf_set(0.0f));
    const vf low = vf_gather(dgm_tanh_table, i), high = vf_gather(dgm_tanh_table + 1, i);
    const vf y = vf_fma(vf_sub(t, i), vf_sub(high, low), low);
    return vf_select_lt(x, vf_set(0.0f), vf_sub(vf_set(0.0f), y), y);
}

static inline vf table_sigmoid(vf x)
{
    const vf half = vf_set(0.5f);
    return vf_fma(half, table_tanh(vf_mul(half, x)), half);
}

static inline vf table_act(vf x, dgm_act act)
{
    return act == DGM_ACT_TANH      ? table_tanh(x)
           : act == DGM_ACT_SIGMOID ? table_sigmoid(x)
                                    : math_act(x, act);
}

static void ACT_TABLE_F32(float *y, const float *x, int n, dgm_act act)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) vf_store(y + i, table_act(vf_load(x + i), act));
    if (i < n) vf_store_n(y + i, table_act(vf_load_n(x + i, n - i), act), n - i);
}

#define GATES_SIGMOID table_sigmoid
#define GATES_TANH table_tanh
#include "kernel/gates_tmpl.h"
