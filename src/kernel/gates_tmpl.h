// SPDX-License-Identifier: MIT
// The gates of recurrent cells over a 16-lane vector; the products with the weights are done.
//
// gates_<isa>.c includes a vec_<isa>.h, names GRU_F32, LSTM_F32 and SSRU_F32 and includes this.
// The formulas are those of kernels.h with these roundings, all element-wise:
//   gru   out = fma(z, state, (1 - z) * g)
//   lstm  c' = fma(sig(f), c, sig(i) * tanh(g)), each gate's input is one sum x + h
//   ssru  c' = fma(f, c, (1 - f) * x), out = max(0, c')
// table_tmpl.h includes this with its own GATES_SIGMOID and GATES_TANH.
#include "kernel/math_tmpl.h"

#ifndef GATES_SIGMOID
#define GATES_SIGMOID math_sigmoid
#define GATES_TANH math_tanh
#endif

// A vector of n elements, n = 16 (constant in the main loops) or less.
static inline __attribute__((always_inline)) vf gates_load(const float *p, int n)
{
    return n == 16 ? vf_load(p) : vf_load_n(p, n);
}

static inline __attribute__((always_inline)) void gates_store(float *p, vf a, int n)
{
    if (n == 16)
        vf_store(p, a);
    else
        vf_store_n(p, a, n);
}

static inline __attribute__((always_inline)) void
gates_gru(float *out, const float *state, const float *x, const float *h, size_t n, int count)
{
    vf r = GATES_SIGMOID(vf_add(gates_load(x, count), gates_load(h, count)));
    vf z = GATES_SIGMOID(vf_add(gates_load(x + n, count), gates_load(h + n, count)));
    vf g = GATES_TANH(vf_fma(r, gates_load(h + 2 * n, count), gates_load(x + 2 * n, count)));
    vf fresh = vf_mul(vf_sub(vf_set(1.0f), z), g);
    gates_store(out, vf_fma(z, gates_load(state, count), fresh), count);
}

static void GRU_F32(float *out, const float *state, const float *x, const float *h, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) gates_gru(out + i, state + i, x + i, h + i, (size_t)n, 16);
    if (i < n) gates_gru(out + i, state + i, x + i, h + i, (size_t)n, n - i);
}

static inline __attribute__((always_inline)) void gates_lstm(float *out, float *cell_out,
                                                             const float *cell, const float *x,
                                                             const float *h, size_t n, int count)
{
    vf i = GATES_SIGMOID(vf_add(gates_load(x, count), gates_load(h, count)));
    vf f = GATES_SIGMOID(vf_add(gates_load(x + n, count), gates_load(h + n, count)));
    vf g = GATES_TANH(vf_add(gates_load(x + 2 * n, count), gates_load(h + 2 * n, count)));
    vf o = GATES_SIGMOID(vf_add(gates_load(x + 3 * n, count), gates_load(h + 3 * n, count)));
    vf c = vf_fma(f, gates_load(cell, count), vf_mul(i, g));
    gates_store(cell_out, c, count);
    gates_store(out, vf_mul(o, GATES_TANH(c)), count);
}

static void LSTM_F32(float *out, float *cell_out, const float *cell, const float *x, const float *h,
                     int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16)
        gates_lstm(out + i, cell_out + i, cell + i, x + i, h + i, (size_t)n, 16);
    if (i < n) gates_lstm(out + i, cell_out + i, cell + i, x + i, h + i, (size_t)n, n - i);
}

static inline __attribute__((always_inline)) void gates_ssru(float *out, float *cell_out,
                                                             const float *cell, const float *x,
                                                             const float *fx, int count)
{
    vf f = GATES_SIGMOID(gates_load(fx, count));
    vf fresh = vf_mul(vf_sub(vf_set(1.0f), f), gates_load(x, count));
    vf c = vf_fma(f, gates_load(cell, count), fresh);
    gates_store(cell_out, c, count);
    gates_store(out, math_relu(c), count);
}

static void SSRU_F32(float *out, float *cell_out, const float *cell, const float *x,
                     const float *fx, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) gates_ssru(out + i, cell_out + i, cell + i, x + i, fx + i, 16);
    if (i < n) gates_ssru(out + i, cell_out + i, cell + i, x + i, fx + i, n - i);
}
