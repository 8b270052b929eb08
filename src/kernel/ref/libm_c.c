// SPDX-License-Identifier: MIT
// Activations and gates with the C library's expf and tanhf, one element after the other.
//
// Not a level of the ladder: what a decoder without SIMD activations does, kept as the baseline
// that polynomials and look-up tables are measured against (dgm_kernels_use_libm). Results agree
// with the polynomials within their stated errors, not in bits, and depend on the C library.
#include <math.h>

#include "kernel/kernels_private.h"

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static void gru_libm_c(float *out, const float *state, const float *x, const float *h, int n)
{
    for (int i = 0; i < n; i++) {
        float r = sigmoid(x[i] + h[i]), z = sigmoid(x[n + i] + h[n + i]);
        float g = tanhf(x[2 * n + i] + r * h[2 * n + i]);
        out[i] = z * state[i] + (1.0f - z) * g;
    }
}

static void lstm_libm_c(float *out, float *cell_out, const float *cell, const float *x,
                        const float *h, int n)
{
    for (int j = 0; j < n; j++) {
        float i = sigmoid(x[j] + h[j]), f = sigmoid(x[n + j] + h[n + j]);
        float g = tanhf(x[2 * n + j] + h[2 * n + j]), o = sigmoid(x[3 * n + j] + h[3 * n + j]);
        float c = f * cell[j] + i * g;
        cell_out[j] = c;
        out[j] = o * tanhf(c);
    }
}

static void ssru_libm_c(float *out, float *cell_out, const float *cell, const float *x,
                        const float *fx, int n)
{
    for (int i = 0; i < n; i++) {
        float f = sigmoid(fx[i]), c = f * cell[i] + (1.0f - f) * x[i];
        cell_out[i] = c;
        out[i] = c > 0.0f ? c : 0.0f;
    }
}

static float activate(float x, dgm_act act)
{
    const float inner = 0.79788456f * (x + 0.044715f * x * x * x); // sqrt(2 / pi)
    switch (act) {
    case DGM_ACT_RELU:
        return x > 0.0f ? x : 0.0f;
    case DGM_ACT_RELU10:
        return x > 10.0f ? 10.0f : x > 0.0f ? x : 0.0f;
    case DGM_ACT_SWISH:
        return x * sigmoid(x);
    case DGM_ACT_GELU:
        return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case DGM_ACT_GELU_TANH:
        return 0.5f * x * (1.0f + tanhf(inner));
    case DGM_ACT_TANH:
        return tanhf(x);
    case DGM_ACT_SIGMOID:
        return sigmoid(x);
    case DGM_ACT_GELU_SIGMOID:
        return x * sigmoid(1.702f * x);
    default:
        return x;
    }
}

static void act_libm_c(float *y, const float *x, int n, dgm_act act)
{
    for (int i = 0; i < n; i++) y[i] = activate(x[i], act);
}

void dgm_kernels_use_libm(dgm_kernels *k)
{
    k->act_f32 = act_libm_c;
    k->gru_f32 = gru_libm_c;
    k->lstm_f32 = lstm_libm_c;
    k->ssru_f32 = ssru_libm_c;
    k->gates_name = "gates_libm";
}
