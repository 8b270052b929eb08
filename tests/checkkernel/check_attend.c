// SPDX-License-Identifier: MIT
// Checks of attention: bits against the C reference, the C reference against double precision.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkkernel/checkkernel.h"

enum { Q, K, V, OUT, WANT, WEIGHTS, WANT_WEIGHTS, INDEX, W, BIAS };

typedef struct shape {
    int n, heads, dk, dv;
    bool gathered;
    int queries, shared; // shared <= n; later queries have one key more than the one before
} shape;

static size_t row_of(const dgm_attend_args *a, int r, int j)
{
    return (a->index[r] ? (size_t)a->index[r][j] : (size_t)j) * a->stride;
}

static void multi_oracle(ck *c, const dgm_attend_args *a, int r)
{
    const float *k = a->k, *v = a->v;
    const int n = a->n[r];
    for (int h = 0; h < a->heads; h++) {
        double p[512], sum = 0, max = -INFINITY;
        for (int j = 0; j < n; j++) {
            p[j] = 0;
            for (int d = 0; d < a->dk; d++)
                p[j] +=
                    (double)a->q[r][h * a->dk + d] * k[row_of(a, r, j) + (size_t)(h * a->dk + d)];
            p[j] *= a->scale;
            if (a->bias_stride) p[j] += a->bias[r][(size_t)h * a->bias_stride + (size_t)j];
            max = p[j] > max ? p[j] : max;
        }
        for (int j = 0; j < n; j++) sum += p[j] = exp(p[j] - max);
        for (int j = 0; j < n; j++)
            ck_near(c, "weight", a->weights[r][h * dgm_attend_stride(n) + j], p[j] / sum, 1e-5, 1e-4);
        for (int d = 0; d < a->dv; d++) {
            double out = 0;
            for (int j = 0; j < n; j++)
                out += p[j] / sum * v[row_of(a, r, j) + (size_t)(h * a->dv + d)];
            ck_near(c, "out", a->out[r][h * a->dv + d], out, 1e-4, 1e-4);
        }
    }
}

// Lists of keys: the first `shared` are one list, the rest is drawn for each query.
static void fill_lists(ck *c, const shape *s, dgm_attend_args *a, int pool)
{
    const int longest = s->n + s->queries;
    int32_t *lists = ck_bytes(c, INDEX, (size_t)(longest * s->queries) * 4, 4);
    for (int r = 0; r < s->queries; r++) {
        int32_t *own = lists + r * longest;
        for (int j = 0; j < longest; j++)
            own[j] = r > 0 && j < s->shared ? lists[j] : ck_below(c, pool + !pool);
        a->index[r] = s->gathered ? own : NULL;
        a->n[r] = s->gathered ? s->n + r : s->n;
    }
    a->queries = s->queries;
    a->shared = s->queries == 1 ? 0 : s->gathered ? s->shared : s->n;
    if (s->gathered && ck_below(c, 2)) { // what the next call reads
        a->next = lists;
        a->next_n = ck_below(c, s->n + 1);
    }
}

static void point(dgm_attend_args *a, float *out, float *weights)
{
    for (int r = 0; r < a->queries; r++) {
        a->out[r] = out;
        a->weights[r] = weights;
        out += a->heads * a->dv;
        weights += a->heads * dgm_attend_stride(a->n[r]);
    }
}

// Every third shape: numbers that are added to scores, of heads that lie apart.
static void fill_bias(ck *c, const shape *s, dgm_attend_args *a)
{
    if (ck_below(c, 3)) return;
    a->bias_stride = (size_t)(s->n + s->queries + ck_below(c, 5));
    const size_t size = (size_t)s->heads * a->bias_stride;
    float *bias = ck_floats(c, BIAS, (size_t)s->queries * size);
    ck_fill(c, bias, (size_t)s->queries * size, CK_UNIT);
    for (int r = 0; r < s->queries; r++) a->bias[r] = bias + (size_t)r * size;
}

static void one_shape(ck *c, const shape *s, ck_kind kind)
{
    const size_t dk = (size_t)(s->heads * s->dk), dv = (size_t)(s->heads * s->dv);
    const size_t stride = (dk > dv ? dk : dv) + (size_t)ck_below(c, 3);
    const int pool = s->gathered ? 2 * s->n + 1 : s->n, queries = s->queries;
    const size_t rows = pool > 0 ? (size_t)(pool - 1) : 0;
    ck_begin(c, "n %d heads %d dk %d dv %d%s queries %d shared %d kind %d", s->n, s->heads, s->dk,
             s->dv, s->gathered ? " gathered" : "", queries, s->shared, (int)kind);
    float *q = ck_floats(c, Q, (size_t)queries * dk), *k = ck_floats(c, K, rows * stride + dk);
    float *v = ck_floats(c, V, rows * stride + dv);
    ck_fill(c, q, (size_t)queries * dk, kind);
    ck_fill(c, k, rows * stride + dk, kind == CK_WIDE ? CK_UNIT : kind);
    ck_fill(c, v, rows * stride + dv, CK_UNIT);
    dgm_attend_args a = {
        .k = k, .v = v, .stride = stride, .heads = s->heads, .dk = s->dk, .dv = s->dv};
    a.scale = ck_uniform(c, 0.05f, 1.0f);
    fill_lists(c, s, &a, pool);
    fill_bias(c, s, &a);
    size_t weights = 0, outs = (size_t)queries * dv;
    for (int r = 0; r < queries; r++) {
        a.q[r] = q + (size_t)r * dk;
        weights += (size_t)(s->heads * dgm_attend_stride(a.n[r]));
    }
    point(&a, ck_floats(c, WANT, outs), ck_floats(c, WANT_WEIGHTS, weights));
    const dgm_attend_args want = a;
    c->ref->attend_f32(&a);
    point(&a, ck_floats(c, OUT, outs), ck_floats(c, WEIGHTS, weights));
    c->now->attend_f32(&a);
    for (int r = 0; r < queries; r++)
        if (!ck_same_weights(c, a.weights[r], want.weights[r], s->heads, a.n[r])) return;
    if (!ck_same(c, "out", a.out[0], want.out[0], outs) || !ck_guards(c)) return;
    for (int r = 0; r < queries && c->is_reference && kind == CK_UNIT; r++)
        if (a.n[r] > 0) multi_oracle(c, &a, r);
}

void check_attend_f32(ck *c)
{
    static const int widths[] = {32, 64, 128, 16, 1, 7, 20, 33, 65, 96, 200};
    for (int i = 0; i < 400 && !c->failed; i++) {
        shape s = {.n = ck_below(c, 70), .heads = 1 + ck_below(c, 8)};
        s.dk = widths[ck_below(c, 11)];
        s.dv = ck_below(c, 2) ? s.dk : widths[ck_below(c, 11)];
        s.gathered = ck_below(c, 2);
        s.queries = 1 + ck_below(c, 4);
        s.shared = ck_below(c, s.n + 1);
        one_shape(c, &s, (ck_kind)(i % CK_KINDS));
    }
    shape large = {.n = 300, .heads = 8, .dk = 64, .dv = 64, .gathered = true, .queries = 1};
    if (!c->failed) one_shape(c, &large, CK_UNIT);
    for (int queries = 1; queries <= 4; queries += 3) {
        enum { N = 30, H = 8, D = 64 };
        ck_begin(c, "benchmark");
        int32_t *index = ck_bytes(c, INDEX, N * 4, 4);
        dgm_attend_args a = {.k = ck_aligned(c, K, N * H * D),
                             .v = ck_aligned(c, V, N * H * D),
                             .stride = H * D,
                             .heads = H,
                             .dk = D,
                             .dv = D,
                             .scale = 0.125f,
                             .queries = queries,
                             .shared = queries > 1 ? 24 : 0};
        for (int j = 0; j < N; j++) index[j] = j * 7 % N;
        float *q = ck_aligned(c, Q, 4 * H * D);
        for (int r = 0; r < queries; r++) {
            a.n[r] = N;
            a.index[r] = index;
            a.q[r] = q + r * H * D;
        }
        point(&a, ck_aligned(c, OUT, 4 * H * D), ck_aligned(c, WEIGHTS, 4 * H * (N + 32)));
        ck_bench_begin(c,
                       queries == 1 ? "30 keys, 8 x 64" : "30 keys, 8 x 64, 4 queries, 24 shared");
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
