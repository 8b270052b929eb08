// SPDX-License-Identifier: MIT
// Checks of tanh and sigmoid by look-up table: bits against the C reference (also in place), the C
// reference against libm within the bounds of kernel/table_tmpl.h.
#include <math.h>
#include <string.h>

#include "checkkernel/checkkernel.h"

enum { X, H, STATE, OUT, CELL, WANT, WANT_CELL };

static const double BOUND = 2.4e-5; // of tanh; sigmoid has half

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

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void act_case(ck *c, size_t n, ck_kind kind)
{
    const float *x = filled(c, X, n, kind);
    float *y = ck_floats(c, OUT, n), *want = ck_floats(c, WANT, n);
    for (int act = 0; act < DGM_ACT_COUNT; act++) {
        c->ref->act_table_f32(want, x, (int)n, (dgm_act)act);
        c->now->act_table_f32(y, x, (int)n, (dgm_act)act);
        if (!ck_same(c, "y", y, want, n)) return;
        memcpy(y, x, n * sizeof *y);
        c->now->act_table_f32(y, y, (int)n, (dgm_act)act);
        if (!ck_same(c, "y in place", y, want, n)) return;
        if (!c->is_reference || (act != DGM_ACT_TANH && act != DGM_ACT_SIGMOID)) continue;
        for (size_t i = 0; i < n; i++)
            if (act == DGM_ACT_TANH)
                ck_near(c, "tanh", y[i], tanh(x[i]), BOUND, 0);
            else
                ck_near(c, "sigmoid", y[i], sigmoid(x[i]), BOUND / 2, 0);
    }
}

// Every 2^-12 up to beyond the end of the table, both signs, and the points of the table.
static void scan(ck *c)
{
    enum { N = 4096 };
    double worst = 0;
    float *x = ck_floats(c, X, N), *y = ck_floats(c, OUT, N);
    for (int block = -10; block < 10; block++) {
        for (int i = 0; i < N; i++) x[i] = (float)block + (float)i / N;
        c->now->act_table_f32(y, x, N, DGM_ACT_TANH);
        for (int i = 0; i < N; i++) {
            const double e = fabs(y[i] - tanh(x[i]));
            if (e > worst) worst = e;
        }
    }
    if (worst > BOUND) ck_fail(c, "error of tanh is %.3g", worst);
}

void check_act_table_f32(ck *c)
{
    walk(c, act_case);
    ck_begin(c, "every 2^-12 in [-10, 10]");
    if (!c->failed) scan(c);
    ck_begin(c, "benchmark");
    const float *x = ck_aligned(c, X, 512);
    float *y = ck_aligned(c, OUT, 512);
    for (ck_bench_begin(c, "tanh by table, n = 512"); ck_bench_next(c);)
        c->now->act_table_f32(y, x, 512, DGM_ACT_TANH);
    for (ck_bench_begin(c, "tanh by polynomial, n = 512"); ck_bench_next(c);)
        c->now->act_f32(y, x, 512, DGM_ACT_TANH);
    for (ck_bench_begin(c, "sigmoid by table, n = 512"); ck_bench_next(c);)
        c->now->act_table_f32(y, x, 512, DGM_ACT_SIGMOID);
    for (ck_bench_begin(c, "sigmoid by polynomial, n = 512"); ck_bench_next(c);)
        c->now->act_f32(y, x, 512, DGM_ACT_SIGMOID);
}

static void gru_case(ck *c, size_t n, ck_kind kind)
{
    const float *x = filled(c, X, 3 * n, kind), *h = filled(c, H, 3 * n, kind);
    const float *state = filled(c, STATE, n, CK_UNIT);
    float *out = ck_floats(c, OUT, n), *want = ck_floats(c, WANT, n);
    c->ref->gru_table_f32(want, state, x, h, (int)n);
    c->now->gru_table_f32(out, state, x, h, (int)n);
    if (!ck_same(c, "out", out, want, n)) return;
    if (!c->is_reference || kind != CK_UNIT) return;
    c->ref->gru_f32(want, state, x, h, (int)n);
    for (size_t i = 0; i < n; i++) ck_near(c, "out", out[i], want[i], 4 * BOUND, 0);
}

void check_gru_table_f32(ck *c)
{
    walk(c, gru_case);
    ck_begin(c, "benchmark");
    const float *x = ck_aligned(c, X, 3 * 512), *h = ck_aligned(c, H, 3 * 512);
    float *out = ck_aligned(c, OUT, 512);
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);)
        c->now->gru_table_f32(out, out, x, h, 512);
}

static void lstm_case(ck *c, size_t n, ck_kind kind)
{
    const float *x = filled(c, X, 4 * n, kind), *h = filled(c, H, 4 * n, kind);
    const float *state = filled(c, STATE, n, CK_UNIT);
    float *out = ck_floats(c, OUT, n), *want = ck_floats(c, WANT, n);
    float *cell = ck_floats(c, CELL, n), *want_cell = ck_floats(c, WANT_CELL, n);
    c->ref->lstm_table_f32(want, want_cell, state, x, h, (int)n);
    c->now->lstm_table_f32(out, cell, state, x, h, (int)n);
    if (!ck_same(c, "out", out, want, n) || !ck_same(c, "cell", cell, want_cell, n)) return;
    if (!c->is_reference || kind != CK_UNIT) return;
    c->ref->lstm_f32(want, want_cell, state, x, h, (int)n);
    for (size_t i = 0; i < n; i++) {
        ck_near(c, "out", out[i], want[i], 5 * BOUND, 0);
        ck_near(c, "cell", cell[i], want_cell[i], 4 * BOUND, 0);
    }
}

void check_lstm_table_f32(ck *c)
{
    walk(c, lstm_case);
}

static void ssru_case(ck *c, size_t n, ck_kind kind)
{
    const float *x = filled(c, X, n, kind), *fx = filled(c, H, n, kind);
    const float *state = filled(c, STATE, n, CK_UNIT);
    float *out = ck_floats(c, OUT, n), *want = ck_floats(c, WANT, n);
    float *cell = ck_floats(c, CELL, n), *want_cell = ck_floats(c, WANT_CELL, n);
    c->ref->ssru_table_f32(want, want_cell, state, x, fx, (int)n);
    c->now->ssru_table_f32(out, cell, state, x, fx, (int)n);
    if (!ck_same(c, "out", out, want, n) || !ck_same(c, "cell", cell, want_cell, n)) return;
    if (!c->is_reference || kind != CK_UNIT) return;
    c->ref->ssru_f32(want, want_cell, state, x, fx, (int)n);
    for (size_t i = 0; i < n; i++) ck_near(c, "cell", cell[i], want_cell[i], 2 * BOUND, 0);
}

void check_ssru_table_f32(ck *c)
{
    walk(c, ssru_case);
}
