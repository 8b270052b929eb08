// SPDX-License-Identifier: MIT
// Checks of the recurrent gates: bits against the C reference (also in place), the C reference
// against the formulas of kernels.h in double precision.
#include <math.h>
#include <string.h>

#include "checkkernel/checkkernel.h"

enum { X, H, STATE, OUT, CELL, WANT, WANT_CELL };

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
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
        const double r = sigmoid((double)x[i] + h[i]), z = sigmoid((double)x[n + i] + h[n + i]);
        const double g = tanh(x[2 * n + i] + r * h[2 * n + i]);
        ck_near(c, "out", out[i], z * state[i] + (1 - z) * g, 2e-5, 0);
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
        const double in = sigmoid((double)x[i] + h[i]), f = sigmoid((double)x[n + i] + h[n + i]);
        const double g = tanh((double)x[2 * n + i] + h[2 * n + i]);
        const double o = sigmoid((double)x[3 * n + i] + h[3 * n + i]), s = f * state[i] + in * g;
        ck_near(c, "cell", cell[i], s, 2e-5, 0);
        ck_near(c, "out", out[i], o * tanh(s), 2e-5, 0);
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
        const double f = sigmoid(fx[i]), s = f * state[i] + (1 - f) * x[i];
        ck_near(c, "cell", cell[i], s, 1e-6 * fmax(1, fabs(x[i])), 0);
        ck_near(c, "out", out[i], s > 0 ? s : 0, 1e-6 * fmax(1, fabs(x[i])), 0);
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
