// SPDX-License-Identifier: MIT
// exp, tanh, sigmoid and the activations as fixed polynomials over a 16-lane vector.
//
// Included after a vec_<isa>.h; all functions are static. Each is one sequence of IEEE operations,
// so every ISA gives the same bits. The coefficients are minimax fits (weighted least squares,
// Lawson re-weighting, 40 digits) rounded to single precision. Errors measured on every 37th float
// (tests/checkkernel/check_rows.c bounds them):
//   exp      at most 1.0 ulp;   x < -87.3365 gives 0 (no denormals), x >= 88.7228 gives +inf
//   exp_down relative error at most 1.8e-7 + 3e-9 |x| for -87.3365 <= x <= 88, below it 0
//   tanh     at most 5 ulp;     |x| >= 9.02 gives +-1
//   sigmoid  at most 3 ulp where the result is normal
//   gelu     absolute error at most 1.5e-7 * max(1, |x|), swish the same
// A NaN gives a NaN. swish, gelu_sigmoid (both to 2e-36), gelu and gelu_tanh tend to 0 at -inf and to
// +inf at +inf.
#ifndef DGM_KERNEL_MATH_TMPL_H
#define DGM_KERNEL_MATH_TMPL_H

#include "kernel/kernels.h"

// exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, exp(r) = 1 + r + r^2 q(r).
static inline vf math_exp(vf x)
{
    const vf magic = vf_set(12582912.0f); // 1.5 * 2^23: the sum is rounded to an integer
    vf t = vf_fma(x, vf_set(0x1.715476p+0f), magic);
    vf n = vf_sub(t, magic);
    vf r = vf_fma(n, vf_set(-0x1.62e4p-1f), x); // ln 2, upper 15 bits: n times it is exact
    r = vf_fma(n, vf_set(-0x1.7f7d1cp-20f), r); // and the rest
    vf q = vf_set(0.00138145983807f);
    q = vf_fma(q, r, vf_set(0.00836871231413f));
    q = vf_fma(q, r, vf_set(0.0416683877443f));
    q = vf_fma(q, r, vf_set(0.166665206663f));
    q = vf_fma(q, r, vf_set(0.499999934497f));
    vf p = vf_fma(vf_mul(r, r), q, r);
    p = vf_scale_exponent(vf_add(p, vf_set(1.0f)), t);
    p = vf_select_lt(x, vf_set(-87.33654022216797f), vf_set(0.0f), p);
    // Too large or NaN: the product is +inf or NaN.
    return vf_select_lt(x, vf_set(88.72283935546875f), p, vf_mul(x, vf_set(0x1.fffffep+127f)));
}

// exp(x) for softmax, where x <= 0: one coefficient less, ln 2 in one part (|n| is largest where
// the result no longer counts) and no case for what is too large. A NaN stays one unless its low
// bits are used.
static inline vf math_exp_down(vf x)
{
    const vf magic = vf_set(12582912.0f);
    vf t = vf_fma(x, vf_set(0x1.715476p+0f), magic);
    vf r = vf_fma(vf_sub(t, magic), vf_set(-0x1.62e43p-1f), x);
    vf p = vf_set(0.008290306665f);
    p = vf_fma(p, r, vf_set(0.0418979749084f));
    p = vf_fma(p, r, vf_set(0.16667637229f));
    p = vf_fma(p, r, vf_set(0.499991506338f));
    p = vf_fma(p, r, vf_set(0.999999701977f));
    p = vf_scale_exponent(vf_fma(p, r, vf_set(1.0f)), t);
    return vf_select_lt(x, vf_set(-87.33654022216797f), vf_set(0.0f), p);
}

// tanh(x) = x P(x^2) / Q(x^2) for |x| <= 9.02, where it reaches 1 in single precision.
static inline vf math_tanh(vf x)
{
    const vf one = vf_set(1.0f);
    vf y = vf_max(vf_set(-9.02f), vf_min(vf_set(9.02f), x));
    vf s = vf_mul(y, y);
    vf p = vf_set(-1.22009438255e-11f);
    p = vf_fma(p, s, vf_set(3.05817612045e-8f));
    p = vf_fma(p, s, vf_set(2.80061703351e-5f));
    p = vf_fma(p, s, vf_set(0.00386826642781f));
    p = vf_fma(p, s, vf_set(0.136798669036f));
    p = vf_fma(p, s, vf_set(0.999999998721f));
    vf q = vf_set(1.28727422794e-6f);
    q = vf_fma(q, s, vf_set(0.000393852107931f));
    q = vf_fma(q, s, vf_set(0.0272456168512f));
    q = vf_fma(q, s, vf_set(0.470131989787f));
    q = vf_fma(q, s, one);
    vf t = vf_div(vf_mul(y, p), q);
    return vf_max(vf_set(-1.0f), vf_min(one, t));
}

// 1 / (1 + exp(-x))
static inline vf math_sigmoid(vf x)
{
    const vf one = vf_set(1.0f);
    return vf_div(one, vf_add(one, math_exp(vf_sub(vf_set(0.0f), x))));
}

// x / (1 + exp(-x)), with the exponential of math_exp_down for -x, in powers of -r. Beyond +-87 the
// quotient is 0 or x.
static inline vf math_swish(vf x)
{
    const vf magic = vf_set(12582912.0f), one = vf_set(1.0f);
    vf top = vf_max(vf_set(-87.0f), x);
    vf y = vf_min(vf_set(87.0f), top);
    vf t = vf_fma(y, vf_set(-0x1.715476p+0f), magic);
    vf r = vf_fma(vf_sub(t, magic), vf_set(0x1.62e43p-1f), y);
    vf p = vf_set(-0.008290306665f);
    p = vf_fma(p, r, vf_set(0.0418979749084f));
    p = vf_fma(p, r, vf_set(-0.16667637229f));
    p = vf_fma(p, r, vf_set(0.499991506338f));
    p = vf_fma(p, r, vf_set(-0.999999701977f));
    p = vf_scale_exponent(vf_fma(p, r, one), t);
    return vf_div(top, vf_add(p, one));
}

// x Phi(x) = max(x, 0) - a Phi(-a), a = |x|, Phi(-a) = exp(-a^2 / 2) R(u), u = 1 / (1 + a / 4).
// a is bounded where the second term has become 0.
static inline vf math_gelu(vf x)
{
    const vf one = vf_set(1.0f);
    vf a = vf_min(vf_set(14.0f), vf_abs(x));
    vf u = vf_div(one, vf_fma(a, vf_set(0.25f), one));
    vf p = vf_set(-0.092309018313f);
    p = vf_fma(p, u, vf_set(0.343910798157f));
    p = vf_fma(p, u, vf_set(-0.269217552033f));
    p = vf_fma(p, u, vf_set(0.280846321846f));
    p = vf_fma(p, u, vf_set(0.0266681711202f));
    p = vf_fma(p, u, vf_set(0.111061317426f));
    p = vf_fma(p, u, vf_set(0.0990399385644f));
    vf e = math_exp(vf_mul(vf_mul(a, vf_set(-0.5f)), a));
    return vf_sub(vf_max(vf_set(0.0f), x), vf_mul(vf_mul(a, e), vf_mul(p, u)));
}

// 0.5 x (1 + tanh(y)) = x sigmoid(2 y), y = sqrt(2 / pi) (x + 0.044715 x^3)
static inline vf math_gelu_tanh(vf x)
{
    vf y = vf_max(vf_set(-200.0f), x);
    vf s = vf_mul(y, y);
    vf t = vf_mul(y, vf_fma(s, vf_set(0.0713548162726f), vf_set(1.59576912161f)));
    return vf_mul(y, math_sigmoid(t));
}

// x sigmoid(1.702 x); bounded where it has become 0
static inline vf math_gelu_sigmoid(vf x)
{
    vf y = vf_max(vf_set(-51.0f), x);
    return vf_mul(y, math_sigmoid(vf_mul(y, vf_set(1.702f))));
}

static inline vf math_relu(vf x)
{
    return vf_max(vf_set(0.0f), x);
}

static inline vf math_relu10(vf x)
{
    return vf_min(vf_set(10.0f), vf_max(vf_set(0.0f), x));
}

// For places where the choice is made per vector; loops over long rows choose outside.
static inline vf math_act(vf x, dgm_act act)
{
    switch (act) {
    case DGM_ACT_RELU:
        return math_relu(x);
    case DGM_ACT_RELU10:
        return math_relu10(x);
    case DGM_ACT_SWISH:
        return math_swish(x);
    case DGM_ACT_GELU:
        return math_gelu(x);
    case DGM_ACT_GELU_TANH:
        return math_gelu_tanh(x);
    case DGM_ACT_TANH:
        return math_tanh(x);
    case DGM_ACT_SIGMOID:
        return math_sigmoid(x);
    case DGM_ACT_GELU_SIGMOID:
        return math_gelu_sigmoid(x);
    case DGM_ACT_NONE:
    case DGM_ACT_COUNT:
        break;
    }
    return x;
}

#endif
