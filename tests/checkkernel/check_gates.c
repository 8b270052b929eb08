// SPDX-License-Identifier: MIT
// Checks of the recurrent gates: bits against the C reference (also in place), the C reference
// against the formulas of kernels.h in double precision.
//
// The bound of each element is derived, not chosen. u = 2^-24 is the relative error of one
// rounding; math_tmpl.h promises 3 ulp for sigmoid and 5 for tanh, an ulp being at most 2 u of the
// value. So, to first order, with s = fl(x + h) off by u |s|:
//     sigmoid(s)   6 u f + u |s| f (1 - f)                              f the value
//     tanh(a)      10 u |g| + e_a (1 - g^2)                             g the value, e_a a's error
//     gru's a      e_r |h| + u |a|                                      a = fma(r, h, x)
//     gru          e_z (|state| + |g|) + (1 - z) (e_g + 2 u |g|) + u |out|
//     lstm's cell  e_f |c| + e_i |g| + i (e_g + u |g|) + u |c'|         c' = fma(f, c, i g)
//     lstm         e_o |t| + o e_t + u |out|                            t = tanh(c')
//     ssru         e_f (|c| + |x|) + 2 u (1 - f) |x| + u |c'|
// The GRU's is the large one: h may be 40 here, and r's error is multiplied by it before tanh,
// 1.5e-5 where tanh is steep; at |h| <= 1 all of them stay near 2e-6. Terms of second order
// (products of two errors, at most 1e-4 of the first) and flushed denormals are in `slack`.
#include <math.h>
#include <string.h>

#include "checkkernel/checkkernel.h"

enum { X, H, STATE, OUT, CELL, WANT, WANT_CELL };

// A value and how far the kernel's may be from it.
typedef struct real {
    double value, error;
} real;

static const double u = 0x1p-24;

static real sigmoid(double s)
{
    const double f = 1 / (1 + exp(-s));
    return (real){f, 6 * u * f + u * fabs(s) * f * (1 - f)};
}

static real tanh_of(double a, double error)
{
    const double g = tanh(a);
    return (real){g, 10 * u * fabs(g) + error * (1 - g * g)};
}

static double slack(double error)
{
    return error * 1.001 + 1e-30;
}

typedef void one_case(ck *c, size_t n, ck_kind kind);

static void walk(ck *c, one_case *body)
{
    for (int i = 0; ck_sizes[i] && !c->failed; i++)
        for (int kind = 0; kind < CK_KINDS && !c->failed; kind++) {
            ck_begin(c, "n %d, data kind %d", ck_sizes[i], kind);
            body(c, (size_t)ck_sizes[i], (ck_kind)kind);
            if (!c->failed) ck_guards(c);
        }
}

static float *filled(ck *c, int slot, size_t n, ck_kind kind)
{
    float *x = ck_floats(c, slot, n);
    ck_fill(c, x, n, kind);
    return x;
}

static void gru_case(ck *c, size_t n, ck_kind kind)
{
    const float *x = filled(c, X, 3 * n, kind), *h = filled(c, H, 3 * n, kind);
    const float *state = filled(c, STATE, n, CK_UNIT);
    float *out = ck_floats(c, OUT, n), *want = ck_floats(c, WANT, n);
    c->ref->gru_f32(want, state, x, h, (int)n);
    c->now->gru_f32(out, state, x, h, (int)n);
    if (!ck_same(c, "out", out, want, n)) return;
    memcpy(out, state, n * sizeof *out);
    c->now->gru_f32(out, out, x, h, (int)n);
    if (!ck_same(c, "out in place", out, want, n)) return;
    if (!c->is_reference || kind > CK_WIDE) return;
    for (size_t i = 0; i < n; i++) {
        const double xg = x[2 * n + i], hg = h[2 * n + i], old = state[i];
        const real r = sigmoid((double)x[i] + h[i]), z = sigmoid((double)x[n + i] + h[n + i]);
        const double a = xg + r.value * hg;
        const real g = tanh_of(a, r.error * fabs(hg) + u * fabs(a));
        const double y = z.value * old + (1 - z.value) * g.value;
        const double fresh = (1 - z.value) * (g.error + 2 * u * fabs(g.value));
        const double error = z.error * (fabs(old) + fabs(g.value)) + fresh + u * fabs(y);
        ck_near(c, "out", out[i], y, slack(error), 0);
    }
}

void check_gru_f32(ck *c)
{
    walk(c, gru_case);
    ck_begin(c, "benchmark");
    const float *x = ck_aligned(c, X, 3 * 512), *h = ck_aligned(c, H, 3 * 512);
    float *out = ck_aligned(c, OUT, 512);
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);) c->now->gru_f32(out, out, x, h, 512);
}

static void lstm_case(ck *c, size_t n, ck_kind kind)
{
    const float *x = filled(c, X, 4 * n, kind), *h = filled(c, H, 4 * n, kind);
    const float *state = filled(c, STATE, n, CK_UNIT);
    float *out = ck_floats(c, OUT, n), *want = ck_floats(c, WANT, n);
    float *cell = ck_floats(c, CELL, n), *want_cell = ck_floats(c, WANT_CELL, n);
    c->ref->lstm_f32(want, want_cell, state, x, h, (int)n);
    c->now->lstm_f32(out, cell, state, x, h, (int)n);
    if (!ck_same(c, "out", out, want, n) || !ck_same(c, "cell", cell, want_cell, n)) return;
    memcpy(cell, state, n * sizeof *cell);
    c->now->lstm_f32(out, cell, cell, x, h, (int)n);
    if (!ck_same(c, "out in place", out, want, n)) return;
    if (!ck_same(c, "cell in place", cell, want_cell, n)) return;
    if (!c->is_reference || kind > CK_WIDE) return;
    for (size_t i = 0; i < n; i++) {
        const real in = sigmoid((double)x[i] + h[i]), f = sigmoid((double)x[n + i] + h[n + i]);
        const double a = (double)x[2 * n + i] + h[2 * n + i], old = state[i];
        const real g = tanh_of(a, u * fabs(a)), o = sigmoid((double)x[3 * n + i] + h[3 * n + i]);
        const double s = f.value * old + in.value * g.value;
        const double error = f.error * fabs(old) + in.error * fabs(g.value) +
                             in.value * (g.error + u * fabs(g.value)) + u * fabs(s);
        const real t = tanh_of(s, error);
        const double y = o.value * t.value;
        ck_near(c, "cell", cell[i], s, slack(error), 0);
        ck_near(c, "out", out[i], y,
                slack(o.error * fabs(t.value) + o.value * t.error + u * fabs(y)), 0);
    }
}

void check_lstm_f32(ck *c)
{
    walk(c, lstm_case);
    ck_begin(c, "benchmark");
    const float *x = ck_aligned(c, X, 4 * 512), *h = ck_aligned(c, H, 4 * 512);
    float *out = ck_aligned(c, OUT, 512), *cell = ck_aligned(c, CELL, 512);
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);)
        c->now->lstm_f32(out, cell, cell, x, h, 512);
}

static void ssru_case(ck *c, size_t n, ck_kind kind)
{
    const float *x = filled(c, X, n, kind), *fx = filled(c, H, n, kind);
    const float *state = filled(c, STATE, n, CK_UNIT);
    float *out = ck_floats(c, OUT, n), *want = ck_floats(c, WANT, n);
    float *cell = ck_floats(c, CELL, n), *want_cell = ck_floats(c, WANT_CELL, n);
    c->ref->ssru_f32(want, want_cell, state, x, fx, (int)n);
    c->now->ssru_f32(out, cell, state, x, fx, (int)n);
    if (!ck_same(c, "out", out, want, n) || !ck_same(c, "cell", cell, want_cell, n)) return;
    memcpy(cell, state, n * sizeof *cell);
    c->now->ssru_f32(out, cell, cell, x, fx, (int)n);
    if (!ck_same(c, "out in place", out, want, n)) return;
    if (!ck_same(c, "cell in place", cell, want_cell, n)) return;
    if (!c->is_reference || kind > CK_WIDE) return;
    for (size_t i = 0; i < n; i++) {
        const real f = sigmoid(fx[i]);
        const double old = state[i], s = f.value * old + (1 - f.value) * x[i];
        const double error =
            f.error * (fabs(old) + fabs(x[i])) + 2 * u * (1 - f.value) * fabs(x[i]) + u * fabs(s);
        ck_near(c, "cell", cell[i], s, slack(error), 0);
        ck_near(c, "out", out[i], s > 0 ? s : 0, slack(error), 0);
    }
}

void check_ssru_f32(ck *c)
{
    walk(c, ssru_case);
    ck_begin(c, "benchmark");
    const float *x = ck_aligned(c, X, 512);
    float *out = ck_aligned(c, OUT, 512), *cell = ck_aligned(c, CELL, 512);
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);)
        c->now->ssru_f32(out, cell, cell, x, x, 512);
}
