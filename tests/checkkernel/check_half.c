// SPDX-License-Identifier: MIT
// Checks of half precision: conversion, and attention over half-precision keys and values. The
// reference is held against attend_f32 on the converted numbers, which it must equal bit by bit.
#include <string.h>

#include "base/bytes.h"
#include "checkkernel/checkkernel.h"

enum { X, Y, WANT, Q, K, V, OUT, WEIGHTS, WANT_WEIGHTS, INDEX, WIDE_K, WIDE_V };

static bool same_halves(ck *c, const uint16_t *got, const uint16_t *want, int n)
{
    for (int i = 0; i < n; i++) {
        const float a = dgm_half_to_float(got[i]), b = dgm_half_to_float(want[i]);
        if (got[i] != want[i] && (a == a || b == b))
            return ck_fail(c, "element %d is %04x, not %04x", i, got[i], want[i]);
    }
    return true;
}

void check_half_f32(ck *c)
{
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (const int *n = ck_sizes; *n && !c->failed; n++) {
            ck_begin(c, "n %d kind %d", *n, kind);
            float *x = ck_floats(c, X, (size_t)*n);
            uint16_t *y = ck_bytes(c, Y, (size_t)*n * 2, 2);
            uint16_t *want = ck_bytes(c, WANT, (size_t)*n * 2, 2);
            ck_fill(c, x, (size_t)*n, (ck_kind)kind);
            // What halves round: around their smallest and largest numbers.
            for (int i = 0; i < *n && kind == CK_WIDE; i += 3)
                x[i] *= ck_below(c, 2) ? 0x1p-24f : 0x1p11f;
            c->ref->half_f32(want, x, *n);
            c->now->half_f32(y, x, *n);
            if (!same_halves(c, y, want, *n) || !ck_guards(c)) return;
        }
    ck_begin(c, "benchmark");
    float *x = ck_aligned(c, X, 1024);
    uint16_t *y = ck_bytes(c, Y, 2048, 64);
    ck_bench_begin(c, "n = 1024");
    while (ck_bench_next(c)) c->now->half_f32(y, x, 1024);
}

// Random halves and the same numbers as floats.
static void fill_both(ck *c, uint16_t *half, float *wide, size_t n)
{
    ck_fill(c, wide, n, CK_UNIT);
    c->ref->half_f32(half, wide, (int)n);
    for (size_t i = 0; i < n; i++) wide[i] = dgm_half_to_float(half[i]);
}

static void one_shape(ck *c, int n, int heads, int dk, int dv, bool gathered, int queries)
{
    const size_t width = (size_t)(heads * (dk > dv ? dk : dv)),
                 stride = width + (size_t)ck_below(c, 3);
    const int pool = gathered ? 2 * n + 1 : n, shared = ck_below(c, n + 1);
    const size_t total = (pool > 0 ? (size_t)(pool - 1) : 0) * stride + width;
    ck_begin(c, "n %d heads %d dk %d dv %d%s queries %d shared %d", n, heads, dk, dv,
             gathered ? " gathered" : "", queries, shared);
    uint16_t *k = ck_bytes(c, K, total * 2, 2), *v = ck_bytes(c, V, total * 2, 2);
    float *wide_k = ck_floats(c, WIDE_K, total), *wide_v = ck_floats(c, WIDE_V, total);
    float *q = ck_floats(c, Q, (size_t)(queries * heads * dk));
    fill_both(c, k, wide_k, total);
    fill_both(c, v, wide_v, total);
    ck_fill(c, q, (size_t)(queries * heads * dk), CK_UNIT);
    int32_t *index = ck_bytes(c, INDEX, (size_t)(queries * n) * 4, 4);
    const size_t outs = (size_t)(heads * dv), weights = (size_t)(heads * dgm_attend_stride(n));
    float *want = ck_floats(c, WANT, (size_t)queries * outs),
          *out = ck_floats(c, OUT, (size_t)queries * outs);
    float *want_weights = ck_floats(c, WANT_WEIGHTS, (size_t)queries * weights);
    float *got_weights = ck_floats(c, WEIGHTS, (size_t)queries * weights);
    dgm_attend_args a = {.k = wide_k,
                         .v = wide_v,
                         .stride = stride,
                         .heads = heads,
                         .dk = dk,
                         .dv = dv,
                         .scale = 0.3f,
                         .queries = queries};
    a.shared = queries == 1 ? 0 : gathered ? shared : n;
    for (int r = 0; r < queries; r++) {
        for (int j = 0; j < n; j++)
            index[r * n + j] = r > 0 && j < shared ? index[j] : ck_below(c, pool + !pool);
        a.index[r] = gathered ? index + r * n : NULL;
        a.n[r] = n;
        a.q[r] = q + r * heads * dk;
        a.out[r] = want + (size_t)r * outs;
        a.weights[r] = want_weights + (size_t)r * weights;
    }
    c->ref->attend_f32(&a);
    for (int r = 0; r < queries; r++) {
        a.out[r] = out + (size_t)r * outs;
        a.weights[r] = got_weights + (size_t)r * weights;
    }
    a.k = k;
    a.v = v;
    c->now->attend_f16(&a);
    if (ck_same_weights(c, got_weights, want_weights, queries * heads, n))
        if (ck_same(c, "out", out, want, (size_t)queries * outs)) ck_guards(c);
}

void check_attend_f16(ck *c)
{
    static const int widths[] = {32, 64, 128, 16, 1, 7, 20, 33, 65, 96, 200};
    for (int i = 0; i < 200 && !c->failed; i++) {
        const int dk = widths[ck_below(c, 11)];
        one_shape(c, ck_below(c, 70), 1 + ck_below(c, 8), dk,
                  ck_below(c, 2) ? dk : widths[ck_below(c, 11)], ck_below(c, 2),
                  1 + ck_below(c, 4));
    }
    enum { N = 30, H = 8, D = 64 };
    for (int queries = 1; queries <= 4; queries += 3) {
        ck_begin(c, "benchmark");
        uint16_t *k = ck_bytes(c, K, N * H * D * 2, 64), *v = ck_bytes(c, V, N * H * D * 2, 64);
        memset(k, 0x31, N * H * D * 2);
        memset(v, 0x31, N * H * D * 2);
        float *q = ck_aligned(c, Q, 4 * H * D), *out = ck_aligned(c, OUT, 4 * H * D);
        float *weights = ck_aligned(c, WEIGHTS, 4 * H * (N + 32));
        dgm_attend_args a = {.k = k,
                             .v = v,
                             .stride = H * D,
                             .heads = H,
                             .dk = D,
                             .dv = D,
                             .scale = 0.125f,
                             .queries = queries,
                             .shared = queries > 1 ? N : 0};
        for (int r = 0; r < queries; r++) {
            a.n[r] = N;
            a.q[r] = q + r * H * D;
            a.out[r] = out + r * H * D;
            a.weights[r] = weights + r * H * (N + 32);
        }
        ck_bench_begin(c, queries == 1 ? "30 keys, 8 x 64" : "30 keys, 8 x 64, 4 queries");
        while (ck_bench_next(c)) c->now->attend_f16(&a);
    }
}
