// SPDX-License-Identifier: MIT
// Checks of attention: bits against the C reference, the C reference against double precision.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkkernel/checkkernel.h"

enum { Q, K, V, OUT, WANT, WEIGHTS, WANT_WEIGHTS, INDEX, W };

typedef struct shape {
    int n, heads, dk, dv;
    bool gathered;
} shape;

static void multi_oracle(ck *c, const dgm_attend_args *a)
{
    for (int h = 0; h < a->heads; h++) {
        double p[512], sum = 0, max = -INFINITY;
        for (int j = 0; j < a->n; j++) {
            const size_t row = a->index ? (size_t)a->index[j] : (size_t)j;
            p[j] = 0;
            for (int d = 0; d < a->dk; d++)
                p[j] += (double)a->q[h * a->dk + d] *
                        ((const float *)a->k)[row * a->stride + (size_t)(h * a->dk + d)];
            p[j] *= a->scale;
            max = p[j] > max ? p[j] : max;
        }
        for (int j = 0; j < a->n; j++) sum += p[j] = exp(p[j] - max);
        for (int j = 0; j < a->n; j++)
            ck_near(c, "weight", a->weights[h * a->n + j], p[j] / sum, 1e-5, 1e-4);
        for (int d = 0; d < a->dv; d++) {
            double out = 0;
            for (int j = 0; j < a->n; j++) {
                const size_t row = a->index ? (size_t)a->index[j] : (size_t)j;
                out +=
                    p[j] / sum * ((const float *)a->v)[row * a->stride + (size_t)(h * a->dv + d)];
            }
            ck_near(c, "out", a->out[h * a->dv + d], out, 1e-4, 1e-4);
        }
    }
}

static void one_shape(ck *c, const shape *s, ck_kind kind)
{
    const size_t dk = (size_t)(s->heads * s->dk), dv = (size_t)(s->heads * s->dv);
    const size_t stride = (dk > dv ? dk : dv) + (size_t)ck_below(c, 3);
    const int pool = s->gathered ? 2 * s->n + 1 : s->n;
    const size_t rows = pool > 0 ? (size_t)(pool - 1) : 0, weights = (size_t)(s->heads * s->n);
    ck_begin(c, "n %d heads %d dk %d dv %d%s kind %d", s->n, s->heads, s->dk, s->dv,
             s->gathered ? " gathered" : "", (int)kind);
    float *q = ck_floats(c, Q, dk), *k = ck_floats(c, K, rows * stride + dk);
    float *v = ck_floats(c, V, rows * stride + dv);
    int32_t *index = NULL;
    ck_fill(c, q, dk, kind);
    ck_fill(c, k, rows * stride + dk, kind == CK_WIDE ? CK_UNIT : kind);
    ck_fill(c, v, rows * stride + dv, CK_UNIT);
    if (s->gathered) {
        index = ck_bytes(c, INDEX, (size_t)s->n * 4, 4);
        for (int j = 0; j < s->n; j++) index[j] = ck_below(c, pool);
    }
    dgm_attend_args a = {.out = ck_floats(c, WANT, dv),
                         .q = q,
                         .k = k,
                         .v = v,
                         .index = index,
                         .stride = stride,
                         .n = s->n,
                         .heads = s->heads,
                         .dk = s->dk,
                         .dv = s->dv,
                         .scale = ck_uniform(c, 0.05f, 1.0f),
                         .weights = ck_floats(c, WANT_WEIGHTS, weights)};
    const dgm_attend_args want = a;
    c->ref->attend_f32(&a);
    a.out = ck_floats(c, OUT, dv);
    a.weights = ck_floats(c, WEIGHTS, weights);
    c->now->attend_f32(&a);
    if (!ck_same(c, "weights", a.weights, want.weights, weights)) return;
    if (!ck_same(c, "out", a.out, want.out, dv) || !ck_guards(c)) return;
    if (c->is_reference && kind == CK_UNIT && s->n > 0) multi_oracle(c, &a);
}

void check_attend_f32(ck *c)
{
    static const int widths[] = {32, 64, 128, 16, 1, 7, 20, 33, 65, 96, 200};
    for (int i = 0; i < 400 && !c->failed; i++) {
        shape s = {.n = ck_below(c, 70), .heads = 1 + ck_below(c, 8)};
        s.dk = widths[ck_below(c, 11)];
        s.dv = ck_below(c, 2) ? s.dk : widths[ck_below(c, 11)];
        s.gathered = ck_below(c, 2);
        one_shape(c, &s, (ck_kind)(i % CK_KINDS));
    }
    shape large = {.n = 300, .heads = 8, .dk = 64, .dv = 64, .gathered = true};
    if (!c->failed) one_shape(c, &large, CK_UNIT);
    for (int gathered = 0; gathered < 2; gathered++) {
        enum { N = 30, H = 8, D = 64 };
        ck_begin(c, "benchmark");
        int32_t *index = ck_bytes(c, INDEX, N * 4, 4);
        dgm_attend_args a = {.out = ck_aligned(c, OUT, H * D),
                             .q = ck_aligned(c, Q, H * D),
                             .k = ck_aligned(c, K, N * H * D),
                             .v = ck_aligned(c, V, N * H * D),
                             .stride = H * D,
                             .n = N,
                             .heads = H,
                             .dk = D,
                             .dv = D,
                             .scale = 0.125f,
                             .weights = ck_aligned(c, WEIGHTS, H * N)};
        for (int j = 0; j < N; j++) index[j] = j * 7 % N;
        if (gathered) a.index = index;
        ck_bench_begin(c, gathered ? "30 keys, 8 x 64, gathered" : "30 keys, 8 x 64");
        while (ck_bench_next(c)) c->now->attend_f32(&a);
    }
}

// ---- additive ------------------------------------------------------------------------------

static void additive_oracle(ck *c, const dgm_attend_add_args *a)
{
    double p[512], sum = 0, max = -INFINITY;
    for (int j = 0; j < a->n; j++) {
        p[j] = 0;
        for (int d = 0; d < a->da; d++)
            p[j] += a->w[d] * tanh((double)a->q[d] + a->k[j * a->da + d]);
        max = p[j] > max ? p[j] : max;
    }
    for (int j = 0; j < a->n; j++) sum += p[j] = exp(p[j] - max);
    for (int d = 0; d < a->dv; d++) {
        double out = 0;
        for (int j = 0; j < a->n; j++) out += p[j] / sum * a->v[j * a->dv + d];
        ck_near(c, "out", a->out[d], out, 1e-4, 1e-4);
    }
}

static void additive_case(ck *c, int n, int da, int dv, ck_kind kind)
{
    const size_t keys = (size_t)n * (size_t)da, values = (size_t)n * (size_t)dv;
    ck_begin(c, "n %d da %d dv %d kind %d", n, da, dv, (int)kind);
    float *q = ck_floats(c, Q, (size_t)da), *w = ck_floats(c, W, (size_t)da);
    float *k = ck_floats(c, K, keys), *v = ck_floats(c, V, values);
    ck_fill(c, q, (size_t)da, kind);
    ck_fill(c, w, (size_t)da, CK_UNIT);
    ck_fill(c, k, keys, kind);
    ck_fill(c, v, values, CK_UNIT);
    dgm_attend_add_args a = {.out = ck_floats(c, WANT, (size_t)dv),
                             .q = q,
                             .w = w,
                             .k = k,
                             .v = v,
                             .n = n,
                             .da = da,
                             .dv = dv,
                             .weights = ck_floats(c, WANT_WEIGHTS, (size_t)n)};
    const dgm_attend_add_args want = a;
    c->ref->attend_add_f32(&a);
    a.out = ck_floats(c, OUT, (size_t)dv);
    a.weights = ck_floats(c, WEIGHTS, (size_t)n);
    c->now->attend_add_f32(&a);
    if (!ck_same(c, "weights", a.weights, want.weights, (size_t)n)) return;
    if (!ck_same(c, "out", a.out, want.out, (size_t)dv) || !ck_guards(c)) return;
    if (c->is_reference && kind == CK_UNIT && n > 0) additive_oracle(c, &a);
}

void check_attend_add_f32(ck *c)
{
    for (int i = 0; i < 200 && !c->failed; i++)
        additive_case(c, ck_below(c, 50), 1 + ck_below(c, 140), 1 + ck_below(c, 300),
                      (ck_kind)(i % CK_KINDS));
    enum { N = 30, DA = 512, DV = 1024 };
    if (!c->failed) additive_case(c, N, DA, DV, CK_UNIT);
    ck_begin(c, "benchmark");
    dgm_attend_add_args a = {.out = ck_aligned(c, OUT, DV),
                             .q = ck_aligned(c, Q, DA),
                             .w = ck_aligned(c, W, DA),
                             .k = ck_aligned(c, K, N * DA),
                             .v = ck_aligned(c, V, N * DV),
                             .n = N,
                             .da = DA,
                             .dv = DV,
                             .weights = ck_aligned(c, WEIGHTS, N)};
    for (ck_bench_begin(c, "30 keys, 512, 1024"); ck_bench_next(c);) c->now->attend_add_f32(&a);
}
