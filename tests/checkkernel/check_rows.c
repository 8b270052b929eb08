// SPDX-License-Identifier: MIT
// Checks of the row kernels: bits against the C reference, the C reference against formulas in
// double precision, and the accuracy that kernel/math_tmpl.h promises for exp and the activations.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkkernel/checkkernel.h"

enum { X, Y, WANT, GAMMA, BETA };

// Walks sizes and kinds of data; body sees n and kind and runs one case.
typedef void one_case(ck *c, int n, ck_kind kind);

static void walk(ck *c, one_case *body)
{
    for (int i = 0; ck_sizes[i] && !c->failed; i++)
        for (int kind = 0; kind < CK_KINDS && !c->failed; kind++) {
            ck_begin(c, "n %d, data kind %d", ck_sizes[i], kind);
            body(c, ck_sizes[i], (ck_kind)kind);
            if (!c->failed) ck_guards(c);
        }
}

static float *filled(ck *c, int slot, int n, ck_kind kind)
{
    float *x = ck_floats(c, slot, (size_t)n);
    ck_fill(c, x, (size_t)n, kind);
    return x;
}

static bool is_tame(ck_kind kind)
{
    return kind == CK_UNIT || kind == CK_WIDE;
}

// ---- softmax and reductions ----------------------------------------------------------------

static double largest(const float *x, int n)
{
    double max = -INFINITY;
    for (int i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    return max;
}

static double exp_sum(const float *x, int n, double max)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp(x[i] - max);
    return sum;
}

static void softmax_case(ck *c, int n, ck_kind kind)
{
    const float *x = filled(c, X, n, kind);
    float *y = ck_floats(c, Y, (size_t)n), *want = ck_floats(c, WANT, (size_t)n);
    memcpy(y, x, (size_t)n * sizeof *y);
    memcpy(want, x, (size_t)n * sizeof *y);
    c->ref->softmax_f32(want, n);
    c->now->softmax_f32(y, n);
    if (!ck_same(c, "y", y, want, (size_t)n)) return;
    if (!c->is_reference || kind == CK_SPECIAL) return;
    const double max = largest(x, n), sum = max == -INFINITY ? 1 : exp_sum(x, n, max);
    for (int i = 0; i < n; i++)
        ck_near(c, "y", y[i], max == -INFINITY ? 0 : exp(x[i] - max) / sum, 1e-7, 2e-6);
}

static void softmax_edges(ck *c)
{
    float x[40];
    ck_begin(c, "edges");
    c->now->softmax_f32(x, 0);
    for (int n = 1; n <= 40; n++) {
        for (int i = 0; i < n; i++) x[i] = -INFINITY;
        c->now->softmax_f32(x, n);
        for (int i = 0; i < n; i++) ck_near(c, "softmax of -inf", x[i], 0, 0, 0);
        x[n / 2] = NAN;
        c->now->softmax_f32(x, n);
        for (int i = 0; i < n; i++)
            if (!isnan(x[i])) ck_fail(c, "a NaN must make the row NaN (n %d)", n);
    }
}

void check_softmax_f32(ck *c)
{
    walk(c, softmax_case);
    softmax_edges(c);
    ck_begin(c, "benchmark");
    float *x = ck_aligned(c, X, 4096);
    for (ck_bench_begin(c, "n = 32"); ck_bench_next(c);) c->now->softmax_f32(x, 32);
    for (ck_bench_begin(c, "n = 4096"); ck_bench_next(c);) c->now->softmax_f32(x, 4096);
}

static void max_case(ck *c, int n, ck_kind kind)
{
    const float *x = filled(c, X, n, kind);
    const float want = c->ref->max_f32(x, n), got = c->now->max_f32(x, n);
    if (!ck_same(c, "max", &got, &want, 1)) return;
    if (c->is_reference && kind != CK_SPECIAL) ck_near(c, "max", got, largest(x, n), 0, 0);
}

void check_max_f32(ck *c)
{
    walk(c, max_case);
    ck_near(c, "max of nothing", c->now->max_f32(NULL, 0), -INFINITY, 0, 0);
    ck_begin(c, "benchmark");
    const float *x = ck_aligned(c, X, 32000);
    float sink = 0;
    for (ck_bench_begin(c, "n = 32000"); ck_bench_next(c);) sink += c->now->max_f32(x, 32000);
    if (isnan(sink)) ck_fail(c, "NaN");
}

static void sum_exp_case(ck *c, int n, ck_kind kind)
{
    const float *x = filled(c, X, n, kind);
    const float max = c->ref->max_f32(x, n);
    const float want = c->ref->sum_exp_f32(x, n, max), got = c->now->sum_exp_f32(x, n, max);
    if (!ck_same(c, "sum", &got, &want, 1)) return;
    if (c->is_reference && kind != CK_SPECIAL && max > -INFINITY)
        ck_near(c, "sum", got, exp_sum(x, n, max), 0, 1e-6);
}

// exp itself, one element at a time: the error of math_tmpl.h, exact ends. What lies above 0 is
// checked through the activations, which use the other exponential.
static void exp_accuracy(ck *c)
{
    ck_begin(c, "exp");
    for (int i = 0; i < 40000 && !c->failed; i++) {
        const float x = ck_uniform(c, -87.3f, 0.0f);
        const double want = exp((double)x);
        ck_near(c, "exp", c->now->sum_exp_f32(&x, 1, 0.0f), want, 0,
                1.8e-7 + 3e-9 * (double)fabsf(x));
    }
    static const float ends[][2] = {{-INFINITY, 0}, {-1e30f, 0}, {-87.34f, 0},
                                    {-0.0f, 1},     {0, 1},      {NAN, NAN}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        ck_near(c, "exp", c->now->sum_exp_f32(&ends[i][0], 1, 0.0f), ends[i][1], 0, 0);
}

void check_sum_exp_f32(ck *c)
{
    walk(c, sum_exp_case);
    if (!c->failed) exp_accuracy(c);
    ck_begin(c, "benchmark");
    const float *x = ck_aligned(c, X, 32000);
    float sink = 0;
    for (ck_bench_begin(c, "n = 32000"); ck_bench_next(c);)
        sink += c->now->sum_exp_f32(x, 32000, 1.0f);
    if (isnan(sink)) ck_fail(c, "NaN");
}

static void dot_case(ck *c, int n, ck_kind kind)
{
    const float *a = filled(c, X, n, kind), *b = filled(c, Y, n, kind);
    const float want = c->ref->dot_f32(a, b, n), got = c->now->dot_f32(a, b, n);
    if (!ck_same(c, "dot", &got, &want, 1)) return;
    if (!c->is_reference || !is_tame(kind)) return;
    double sum = 0, size = 0;
    for (int i = 0; i < n; i++) {
        sum += (double)a[i] * b[i];
        size += fabs((double)a[i] * b[i]);
    }
    ck_near(c, "dot", got, sum, size * 1e-6, 0);
}

void check_dot_f32(ck *c)
{
    walk(c, dot_case);
    ck_begin(c, "benchmark");
    const float *x = ck_aligned(c, X, 512);
    float sink = 0;
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);) sink += c->now->dot_f32(x, x, 512);
    if (isnan(sink)) ck_fail(c, "NaN");
}

// ---- element-wise --------------------------------------------------------------------------

static double act_exact(double x, dgm_act act)
{
    switch (act) {
    case DGM_ACT_RELU:
        return x > 0 ? x : 0;
    case DGM_ACT_RELU10:
        return x > 10 ? 10 : x > 0 ? x : 0;
    case DGM_ACT_SWISH:
        return x / (1 + exp(-x));
    case DGM_ACT_GELU:
        return 0.5 * x * erfc(-x * sqrt(0.5));
    case DGM_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case DGM_ACT_TANH:
        return tanh(x);
    case DGM_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case DGM_ACT_GELU_SIGMOID:
        return x / (1 + exp(-1.702 * x));
    case DGM_ACT_NONE:
    case DGM_ACT_COUNT:
        break;
    }
    return x;
}

static void act_case(ck *c, int n, ck_kind kind)
{
    const float *x = filled(c, X, n, kind);
    float *y = ck_floats(c, Y, (size_t)n), *want = ck_floats(c, WANT, (size_t)n);
    for (int act = 0; act < DGM_ACT_COUNT; act++) {
        c->ref->act_f32(want, x, n, (dgm_act)act);
        c->now->act_f32(y, x, n, (dgm_act)act);
        if (!ck_same(c, "y", y, want, (size_t)n)) return;
        memcpy(y, x, (size_t)n * sizeof *y);
        c->now->act_f32(y, y, n, (dgm_act)act);
        if (!ck_same(c, "y in place", y, want, (size_t)n)) return;
        if (!c->is_reference || !is_tame(kind)) continue;
        for (int i = 0; i < n; i++)
            ck_near(c, "act", y[i], act_exact(x[i], (dgm_act)act), 1.5e-7 * fmax(1, fabs(x[i])),
                    3e-7);
    }
}

// What happens at and beyond the ends.
static void act_limits(ck *c)
{
    static const struct {
        dgm_act act;
        float x, y;
    } rows[] = {{DGM_ACT_RELU, -INFINITY, 0},    {DGM_ACT_RELU, INFINITY, INFINITY},
                {DGM_ACT_RELU10, INFINITY, 10},  {DGM_ACT_SWISH, -INFINITY, 0},
                {DGM_ACT_SWISH, -1e30f, 0},      {DGM_ACT_SWISH, INFINITY, INFINITY},
                {DGM_ACT_GELU, -INFINITY, 0},    {DGM_ACT_GELU, INFINITY, INFINITY},
                {DGM_ACT_GELU_TANH, -1e30f, 0},  {DGM_ACT_GELU_TANH, 1e30f, 1e30f},
                {DGM_ACT_TANH, -INFINITY, -1},   {DGM_ACT_TANH, 1e30f, 1},
                {DGM_ACT_SIGMOID, -INFINITY, 0}, {DGM_ACT_SIGMOID, INFINITY, 1},
                {DGM_ACT_TANH, 1e-30f, 1e-30f},  {DGM_ACT_SIGMOID, 0, 0.5f},
                {DGM_ACT_GELU_SIGMOID, -INFINITY, 0},
                {DGM_ACT_GELU_SIGMOID, INFINITY, INFINITY}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float y;
        ck_begin(c, "act %d of %g", (int)rows[i].act, (double)rows[i].x);
        c->now->act_f32(&y, &rows[i].x, 1, rows[i].act);
        ck_near(c, "y", y, rows[i].y, 2e-36, 1e-6);
    }
    for (int act = 0; act < DGM_ACT_COUNT; act++) {
        float x = NAN;
        ck_begin(c, "act %d of NaN", act);
        c->now->act_f32(&x, &x, 1, (dgm_act)act);
        if (!isnan(x)) ck_fail(c, "not a NaN");
    }
}

void check_act_f32(ck *c)
{
    static const char *const names[] = {"none, n = 512",  "relu, n = 512",   "relu10, n = 512",
                                        "swish, n = 512", "gelu, n = 512",   "gelu_tanh, n = 512",
                                        "tanh, n = 512",  "sigmoid, n = 512",
                                        "gelu_sigmoid, n = 512"};
    walk(c, act_case);
    if (!c->failed) act_limits(c);
    ck_begin(c, "benchmark");
    const float *x = ck_aligned(c, X, 512);
    float *y = ck_aligned(c, Y, 512);
    for (int act = 0; act < DGM_ACT_COUNT; act++)
        for (ck_bench_begin(c, names[act]); ck_bench_next(c);)
            c->now->act_f32(y, x, 512, (dgm_act)act);
}

static void add_case(ck *c, int n, ck_kind kind)
{
    const float *a = filled(c, X, n, kind), *b = filled(c, GAMMA, n, kind);
    float *y = ck_floats(c, Y, (size_t)n), *want = ck_floats(c, WANT, (size_t)n);
    for (int i = 0; i < n; i++) want[i] = a[i] + b[i];
    c->now->add_f32(y, a, b, n);
    if (!ck_same(c, "y", y, want, (size_t)n)) return;
    memcpy(y, a, (size_t)n * sizeof *y);
    c->now->add_f32(y, y, b, n);
    if (!ck_same(c, "y over a", y, want, (size_t)n)) return;
    memcpy(y, b, (size_t)n * sizeof *y);
    c->now->add_f32(y, a, y, n);
    ck_same(c, "y over b", y, want, (size_t)n);
}

void check_add_f32(ck *c)
{
    walk(c, add_case);
    ck_begin(c, "benchmark");
    const float *x = ck_aligned(c, X, 512);
    float *y = ck_aligned(c, Y, 512);
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);) c->now->add_f32(y, x, x, 512);
}

static void axpy_case(ck *c, int n, ck_kind kind)
{
    const float *x = filled(c, X, n, kind);
    float *y = filled(c, Y, n, kind), *want = ck_floats(c, WANT, (size_t)n);
    const float scale = ck_uniform(c, -2.0f, 2.0f);
    for (int i = 0; i < n; i++) want[i] = fmaf(scale, x[i], y[i]);
    c->now->axpy_f32(y, x, n, scale);
    ck_same(c, "y", y, want, (size_t)n);
}

void check_axpy_f32(ck *c)
{
    walk(c, axpy_case);
    ck_begin(c, "benchmark");
    float *x = ck_aligned(c, X, 512), *y = ck_aligned(c, Y, 512);
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);) c->now->axpy_f32(y, x, 512, 0.5f);
}

// ---- gather --------------------------------------------------------------------------------

static void gather_f32_case(ck *c, int n, ck_kind kind)
{
    const float *row = filled(c, X, n, kind);
    const float *add = ck_below(c, 2) ? filled(c, BETA, n, kind) : NULL;
    float *y = ck_floats(c, Y, (size_t)n), *want = ck_floats(c, WANT, (size_t)n);
    const float scale = ck_uniform(c, 0.0f, 30.0f);
    for (int i = 0; i < n; i++) want[i] = add ? fmaf(row[i], scale, add[i]) : row[i] * scale;
    c->now->gather_f32(y, row, add, n, scale);
    ck_same(c, "y", y, want, (size_t)n);
}

void check_gather_f32(ck *c)
{
    walk(c, gather_f32_case);
    ck_begin(c, "benchmark");
    float *x = ck_aligned(c, X, 512), *y = ck_aligned(c, Y, 512);
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);) c->now->gather_f32(y, x, x, 512, 0.5f);
}

static void gather_i8_case(ck *c, int n, ck_kind kind)
{
    int8_t *row = ck_bytes(c, X, (size_t)n, 1);
    for (int i = 0; i < n; i++) row[i] = (int8_t)(ck_below(c, 256) - 128);
    const float *add = ck_below(c, 2) ? filled(c, BETA, n, kind) : NULL;
    float *y = ck_floats(c, Y, (size_t)n), *want = ck_floats(c, WANT, (size_t)n);
    const float scale = ck_uniform(c, 0.0f, 30.0f), row_scale = ck_uniform(c, 0.0f, 0.1f);
    for (int i = 0; i < n; i++) {
        const float q = (float)row[i] * row_scale;
        want[i] = add ? fmaf(q, scale, add[i]) : q * scale;
    }
    c->now->gather_i8(y, row, row_scale, add, n, scale);
    ck_same(c, "y", y, want, (size_t)n);
}

void check_gather_i8(ck *c)
{
    walk(c, gather_i8_case);
    ck_begin(c, "benchmark");
    const int8_t *row = ck_bytes(c, X, 512, 1);
    float *y = ck_aligned(c, Y, 512), *x = ck_aligned(c, BETA, 512);
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);)
        c->now->gather_i8(y, row, 0.1f, x, 512, 0.5f);
}
