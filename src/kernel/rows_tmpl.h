// SPDX-License-Identifier: MIT
// Row operations over a 16-lane vector: softmax, reductions, element-wise, gather. Norms are in norm_tmpl.h.
//
// rows_<isa>.c includes a vec_<isa>.h, names the functions (SOFTMAX_F32 and so on) and includes
// this file. The order of operations is the contract: element i belongs to lane i mod 16, lanes
// accumulate in order of i, then fold. A short last vector is filled with what changes nothing.
// Aliasing is as in kernels.h: an output is read, if at all, only at the element being written.
#include <math.h>

#include "kernel/reduce_tmpl.h"

static void SOFTMAX_F32(float *x, int n)
{
    reduce_softmax(x, n);
}

static float MAX_F32(const float *x, int n)
{
    return reduce_max(x, n);
}

// A row of -inf (max = -inf) has the sum 0.
static float SUM_EXP_F32(const float *x, int n, float max)
{
    if (max == -INFINITY) return 0.0f;
    const vf top = vf_set(max);
    const int whole = n & ~15, rest = n & 15;
    vf sum = vf_set(0.0f);
    for (int i = 0; i < whole; i += 16)
        sum = vf_add(sum, math_exp_down(vf_sub(vf_load(x + i), top)));
    if (rest) {
        vf e = math_exp_down(vf_sub(vf_load_n(x + whole, rest), top));
        sum = vf_add(sum, vf_keep_n(e, rest));
    }
    return vf_fold_add(sum);
}

static inline __attribute__((always_inline)) void rows_map(float *y, const float *x, int n,
                                                           vf (*function)(vf))
{
    const int whole = n & ~15, rest = n & 15;
    for (int i = 0; i < whole; i += 16) vf_store(y + i, function(vf_load(x + i)));
    if (rest) vf_store_n(y + whole, function(vf_load_n(x + whole, rest)), rest);
}

static inline vf rows_copy(vf x)
{
    return x;
}

static void ACT_F32(float *y, const float *x, int n, dgm_act act)
{
    switch (act) {
    case DGM_ACT_RELU:
        rows_map(y, x, n, math_relu);
        return;
    case DGM_ACT_RELU10:
        rows_map(y, x, n, math_relu10);
        return;
    case DGM_ACT_SWISH:
        rows_map(y, x, n, math_swish);
        return;
    case DGM_ACT_GELU:
        rows_map(y, x, n, math_gelu);
        return;
    case DGM_ACT_GELU_TANH:
        rows_map(y, x, n, math_gelu_tanh);
        return;
    case DGM_ACT_TANH:
        rows_map(y, x, n, math_tanh);
        return;
    case DGM_ACT_SIGMOID:
        rows_map(y, x, n, math_sigmoid);
        return;
    case DGM_ACT_GELU_SIGMOID:
        rows_map(y, x, n, math_gelu_sigmoid);
        return;
    case DGM_ACT_NONE:
    case DGM_ACT_COUNT:
        break;
    }
    if (y != x) rows_map(y, x, n, rows_copy);
}

static void ADD_F32(float *y, const float *a, const float *b, int n)
{
    const int whole = n & ~15, rest = n & 15;
    for (int i = 0; i < whole; i += 16) vf_store(y + i, vf_add(vf_load(a + i), vf_load(b + i)));
    if (rest) {
        vf r = vf_add(vf_load_n(a + whole, rest), vf_load_n(b + whole, rest));
        vf_store_n(y + whole, r, rest);
    }
}

static void AXPY_F32(float *y, const float *x, int n, float scale)
{
    const vf s = vf_set(scale);
    const int whole = n & ~15, rest = n & 15;
    for (int i = 0; i < whole; i += 16) vf_store(y + i, vf_fma(s, vf_load(x + i), vf_load(y + i)));
    if (rest) {
        vf r = vf_fma(s, vf_load_n(x + whole, rest), vf_load_n(y + whole, rest));
        vf_store_n(y + whole, r, rest);
    }
}

static float DOT_F32(const float *a, const float *b, int n)
{
    return reduce_dot(a, b, n);
}

static void GATHER_F32(float *y, const float *row, const float *add, int n, float scale)
{
    const vf s = vf_set(scale);
    const int whole = n & ~15, rest = n & 15;
    for (int i = 0; i < whole; i += 16) {
        vf x = vf_load(row + i);
        vf_store(y + i, add ? vf_fma(x, s, vf_load(add + i)) : vf_mul(x, s));
    }
    if (rest) {
        vf x = vf_load_n(row + whole, rest);
        vf r = add ? vf_fma(x, s, vf_load_n(add + whole, rest)) : vf_mul(x, s);
        vf_store_n(y + whole, r, rest);
    }
}

// q * row_scale is rounded once, so that the value is the one a table converted to f32 would hold.
static void GATHER_I8(float *y, const int8_t *row, float row_scale, const float *add, int n,
                      float scale)
{
    const vf s = vf_set(scale), t = vf_set(row_scale);
    const int whole = n & ~15, rest = n & 15;
    for (int i = 0; i < whole; i += 16) {
        vf x = vf_mul(vf_load_i8(row + i), t);
        vf_store(y + i, add ? vf_fma(x, s, vf_load(add + i)) : vf_mul(x, s));
    }
    if (rest) {
        vf x = vf_mul(vf_load_i8_n(row + whole, rest), t);
        vf r = add ? vf_fma(x, s, vf_load_n(add + whole, rest)) : vf_mul(x, s);
        vf_store_n(y + whole, r, rest);
    }
}
