// SPDX-License-Identifier: MIT
// Checks of attention over blocks: bits against the C reference, every query on its own against the
// group it came in, the C reference against double precision, f16 against f32.
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "checkkernel/checkkernel.h"

enum { Q, BLOCKS, HALVES, OUT, WANT, WEIGHTS, WANT_WEIGHTS, SINGLE, SINGLE_WEIGHTS };

typedef struct problem {
    dgm_attend_blocks_args a; // out and weights not set
    float *wide;              // the blocks' numbers as floats
    int queries;
} problem;

static size_t key_at(const dgm_attend_blocks_args *a, int j, int h, int d)
{
    return (size_t)(j / 16) * a->block + (size_t)((h * a->dk + d) * 16 + j % 16);
}

static size_t value_at(const dgm_attend_blocks_args *a, int j, int h, int d)
{
    return (size_t)(j / 16) * a->block + (size_t)(a->heads * a->dk * 16) +
           (size_t)((h * 16 + j % 16) * a->dv + d);
}

static void oracle(ck *c, const problem *p, const dgm_attend_blocks_args *a, int r)
{
    for (int h = 0; h < a->heads; h++) {
        double w[512], sum = 0, max = -INFINITY;
        for (int j = 0; j < a->n; j++) {
            w[j] = 0;
            for (int d = 0; d < a->dk; d++)
                w[j] += (double)a->q[r][h * a->dk + d] * (double)p->wide[key_at(a, j, h, d)];
            w[j] *= (double)a->scale;
            max = w[j] > max ? w[j] : max;
        }
        for (int j = 0; j < a->n; j++) sum += w[j] = exp(w[j] - max);
        for (int j = 0; j < a->n; j++)
            ck_near(c, "weight", a->weights[r][h * dgm_attend_stride(a->n) + j], w[j] / sum, 1e-5, 1e-4);
        for (int d = 0; d < a->dv; d++) {
            double out = 0;
            for (int j = 0; j < a->n; j++)
                out += w[j] / sum * (double)p->wide[value_at(a, j, h, d)];
            ck_near(c, "out", a->out[r][h * a->dv + d], out, 1e-4, 1e-4);
        }
    }
}

// Random blocks, also beyond n.
static void fill(ck *c, problem *p, int n, int heads, int dk, int dv, bool half)
{
    dgm_attend_blocks_args *a = &p->a;
    int pool = (n + 15) / 16;
    *a = (dgm_attend_blocks_args){.n = n, .heads = heads, .dk = dk, .dv = dv};
    a->block = (size_t)(heads * (dk + dv) * 16);
    a->scale = ck_uniform(c, 0.05f, 1.0f);
    p->wide = ck_floats(c, BLOCKS, (size_t)pool * a->block);
    ck_fill(c, p->wide, (size_t)pool * a->block, CK_UNIT);
    a->blocks = p->wide;
    if (!half) return;
    size_t total = (size_t)pool * a->block;
    uint16_t *halves = ck_bytes(c, HALVES, total * 2, 2);
    c->ref->half_f32(halves, p->wide, (int)total);
    for (size_t i = 0; i < total; i++) p->wide[i] = dgm_half_to_float(halves[i]);
    a->blocks = halves;
}

static void point(problem *p, float *q, float *out, float *weights)
{
    dgm_attend_blocks_args *a = &p->a;
    a->queries = p->queries;
    for (int r = 0; r < p->queries; r++) {
        a->q[r] = q + r * a->heads * a->dk;
        a->out[r] = out + r * a->heads * a->dv;
        a->weights[r] = weights + r * a->heads * dgm_attend_stride(a->n);
    }
}

static void one_shape(ck *c, int n, int heads, int dk, int dv, int queries, bool half)
{
    ck_begin(c, "n %d heads %d dk %d dv %d queries %d", n, heads, dk, dv, queries);
    problem p = {.queries = queries};
    fill(c, &p, n, heads, dk, dv, half);
    const size_t outs = (size_t)(queries * heads * dv);
    const size_t weights = (size_t)(queries * heads * dgm_attend_stride(n));
    float *q = ck_floats(c, Q, (size_t)(queries * heads * dk));
    ck_fill(c, q, (size_t)(queries * heads * dk), CK_UNIT);
    float *want = ck_floats(c, WANT, outs), *want_weights = ck_floats(c, WANT_WEIGHTS, weights);
    float *out = ck_floats(c, OUT, outs), *got_weights = ck_floats(c, WEIGHTS, weights);
    float *single = ck_floats(c, SINGLE, (size_t)(heads * dv));
    float *single_weights = ck_floats(c, SINGLE_WEIGHTS, (size_t)(heads * dgm_attend_stride(n)));
    // Half precision is held against floats: converting is exact.
    dgm_attend_blocks_args a;
    point(&p, q, want, want_weights);
    a = p.a;
    a.blocks = p.wide;
    c->ref->attend_blocks_f32(&a);
    if (c->is_reference && n > 0)
        for (int r = 0; r < queries; r++) oracle(c, &p, &a, r);
    void (*run)(const dgm_attend_blocks_args *) =
        half ? c->now->attend_blocks_f16 : c->now->attend_blocks_f32;
    point(&p, q, out, got_weights);
    run(&p.a);
    if (!ck_same_weights(c, got_weights, want_weights, queries * heads, n)) return;
    if (!ck_same(c, "out", out, want, outs) || !ck_guards(c)) return;
    for (int r = 0; r < queries; r++) {
        a = p.a;
        a.queries = 1;
        a.q[0] = p.a.q[r];
        a.out[0] = single;
        a.weights[0] = single_weights;
        run(&a);
        if (!ck_same(c, "alone", single, p.a.out[r], (size_t)(heads * dv)) || !ck_guards(c)) return;
    }
}

static void check(ck *c, bool half)
{
    static const int widths[] = {32, 64, 128, 16, 1, 7, 20, 33, 65, 96, 200};
    for (int i = 0; i < 200 && !c->failed; i++) {
        const int dk = widths[ck_below(c, 11)];
        one_shape(c, ck_below(c, 70), 1 + ck_below(c, 8), dk,
                  ck_below(c, 2) ? dk : widths[ck_below(c, 11)], 1 + ck_below(c, 4), half);
    }
    for (int queries = 1; queries <= 4; queries += 3) {
        enum { N = 30, H = 8, D = 64 };
        ck_begin(c, "benchmark");
        problem p = {.queries = queries};
        fill(c, &p, N, H, D, D, half);
        point(&p, ck_aligned(c, Q, 4 * H * D), ck_aligned(c, OUT, 4 * H * D),
              ck_aligned(c, WEIGHTS, 4 * H * (N + 32)));
        ck_bench_begin(c, queries == 1 ? "30 keys, 8 x 64, 1 query" : "30 keys, 8 x 64, 4 queries");
        while (ck_bench_next(c))
            (half ? c->now->attend_blocks_f16 : c->now->attend_blocks_f32)(&p.a);
    }
}

void check_attend_blocks_f32(ck *c)
{
    check(c, false);
}

void check_attend_blocks_f16(ck *c)
{
    check(c, true);
}
