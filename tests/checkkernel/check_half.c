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

static void one_shape(ck *c, int n, int heads, int dk, int dv, bool gathered)
{
    const size_t width = (size_t)(heads * (dk > dv ? dk : dv));
    const size_t stride = width + (size_t)ck_below(c, 3);
    const int pool = gathered ? 2 * n + 1 : n;
    const size_t total = (pool > 0 ? (size_t)(pool - 1) : 0) * stride + width;
    ck_begin(c, "n %d heads %d dk %d dv %d%s", n, heads, dk, dv, gathered ? " gathered" : "");
    uint16_t *k = ck_bytes(c, K, total * 2, 2), *v = ck_bytes(c, V, total * 2, 2);
    float *wide_k = ck_floats(c, WIDE_K, total), *wide_v = ck_floats(c, WIDE_V, total);
    float *q = ck_floats(c, Q, (size_t)(heads * dk));
    fill_both(c, k, wide_k, total);
    fill_both(c, v, wide_v, total);
    ck_fill(c, q, (size_t)(heads * dk), CK_UNIT);
    int32_t *index = NULL;
    if (gathered) {
        index = ck_bytes(c, INDEX, (size_t)n * 4, 4);
        for (int j = 0; j < n; j++) index[j] = ck_below(c, pool);
    }
    const size_t outs = (size_t)(heads * dv), weights = (size_t)(heads * n);
    dgm_attend_args a = {.out = ck_floats(c, WANT, outs), .q = q, .k = wide_k, .v = wide_v,
                         .index = index, .stride = stride, .n = n, .heads = heads, .dk = dk,
                         .dv = dv, .scale = 0.3f, .weights = ck_floats(c, WANT_WEIGHTS, weights)};
    const dgm_attend_args want = a;
    c->ref->attend_f32(&a);
    a.out = ck_floats(c, OUT, outs);
    a.weights = ck_floats(c, WEIGHTS, weights);
    a.k = k;
    a.v = v;
    c->now->attend_f16(&a);
    if (ck_same(c, "weights", a.weights, want.weights, weights))
        if (ck_same(c, "out", a.out, want.out, outs)) ck_guards(c);
}

void check_attend_f16(ck *c)
{
    static const int widths[] = {32, 64, 128, 16, 1, 7, 20, 33, 65, 96, 200};
    for (int i = 0; i < 200 && !c->failed; i++) {
        const int dk = widths[ck_below(c, 11)];
        one_shape(c, ck_below(c, 70), 1 + ck_below(c, 8), dk,
                  ck_below(c, 2) ? dk : widths[ck_below(c, 11)], ck_below(c, 2));
    }
    enum { N = 30, H = 8, D = 64 };
    ck_begin(c, "benchmark");
    uint16_t *k = ck_bytes(c, K, N * H * D * 2, 64), *v = ck_bytes(c, V, N * H * D * 2, 64);
    memset(k, 0x31, N * H * D * 2);
    memset(v, 0x31, N * H * D * 2);
    dgm_attend_args a = {.out = ck_aligned(c, OUT, H * D), .q = ck_aligned(c, Q, H * D), .k = k,
                         .v = v, .stride = H * D, .n = N, .heads = H, .dk = D, .dv = D,
                         .scale = 0.125f, .weights = ck_aligned(c, WEIGHTS, H * N)};
    ck_bench_begin(c, "30 keys, 8 x 64");
    while (ck_bench_next(c)) c->now->attend_f16(&a);
}
