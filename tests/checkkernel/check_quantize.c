// SPDX-License-Identifier: MIT
// Checks of the quantisation of rows: against the formula in double precision, and bit by bit
// against the reference on every kind of row.
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "checkkernel/checkkernel.h"

enum { X, Q, WANT };

static double largest(const float *x, int n)
{
    double m = 0;
    for (int i = 0; i < n; i++)
        if (fabs((double)x[i]) > m) m = fabs((double)x[i]);
    return m;
}

// Rows of ordinary numbers: the scale, the bounds and half a step of error.
static void oracle_i8(ck *c, const uint8_t *q, float scale, const float *x, int n)
{
    const double m = largest(x, n);
    ck_near(c, "scale", scale, m > 0 ? m / 127 : 1, 0, 1e-6);
    for (int i = 0; i < n && !c->failed; i++) {
        if (q[i] == 0) ck_fail(c, "q[%d] is below -127", i);
        ck_near(c, "value", ((double)q[i] - 128) * scale, x[i], 0.5001 * scale, 1e-6);
    }
    for (int i = n; i < dgm_gemm_i8_depth(n) && !c->failed; i++)
        if (q[i] != 128) ck_fail(c, "padding q[%d] is %d", i, q[i]);
}

static void oracle_i16(ck *c, const int16_t *q, float scale, const float *x, int n, int limit)
{
    const double m = largest(x, n);
    int exponent;
    if (frexpf(scale, &exponent) != 0.5f) ck_fail(c, "scale %g is no power of 2", (double)scale);
    // The next finer scale would leave the limit.
    if (m > 0 && rint(2 * m / scale) <= limit) ck_fail(c, "scale %g is too coarse", (double)scale);
    for (int i = 0; i < n && !c->failed; i++) {
        if (q[i] > limit || q[i] < -limit) ck_fail(c, "q[%d] is %d", i, q[i]);
        ck_near(c, "value", q[i] * (double)scale, x[i], 0.5 * scale, 1e-7);
    }
    for (int i = n; i < dgm_gemm_i16_depth(n) && !c->failed; i++)
        if (q[i] != 0) ck_fail(c, "padding q[%d] is %d", i, q[i]);
}

static void fill(ck *c, float *x, int n, int kind)
{
    ck_fill(c, x, (size_t)n, kind < CK_KINDS ? (ck_kind)kind : CK_UNIT);
    if (kind == CK_KINDS) memset(x, 0, (size_t)n * sizeof *x);
    if (kind == CK_KINDS + 1) // halves: ties go to even
        for (int i = 0; i < n; i++) x[i] = i ? 0.5f * (float)(ck_below(c, 509) - 254) : 127.0f;
}

void check_quantize_i8(ck *c)
{
    for (int s = 0; ck_sizes[s] && !c->failed; s++)
        for (int kind = 0; kind < CK_KINDS + 2 && !c->failed; kind++) {
            const int n = ck_sizes[s];
            const size_t bytes = (size_t)dgm_gemm_i8_depth(n);
            float got, want;
            ck_begin(c, "n %d kind %d", n, kind);
            float *x = ck_floats(c, X, (size_t)n);
            uint8_t *q = ck_bytes(c, Q, bytes, 1), *p = ck_bytes(c, WANT, bytes, 1);
            fill(c, x, n, kind);
            c->now->quantize_i8(q, &got, x, n);
            c->ref->quantize_i8(p, &want, x, n);
            if (!ck_guards(c) || !ck_same(c, "scale", &got, &want, 1)) return;
            for (size_t i = 0; i < bytes; i++)
                if (q[i] != p[i]) {
                    ck_fail(c, "q[%zu] is %d, expected %d", i, q[i], p[i]);
                    return;
                }
            if (c->is_reference && kind != CK_SPECIAL && kind != CK_MASKED && kind != CK_DENORMAL)
                oracle_i8(c, q, got, x, n);
        }
    ck_begin(c, "benchmark");
    float *x = ck_aligned(c, X, 512), scale;
    uint8_t *q = ck_bytes(c, Q, 512, 64);
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);) c->now->quantize_i8(q, &scale, x, 512);
}

// Half a step of error, or the bound where the scale is too small for the number.
static void oracle_static(ck *c, const uint8_t *q, float scale, const float *x, int n)
{
    for (int i = 0; i < n && !c->failed; i++) {
        const double most = 127.0 * (double)scale;
        const double want = fmax(-most, fmin(most, (double)x[i]));
        ck_near(c, "value", ((double)q[i] - 128) * scale, want, 0.5001 * scale, 1e-6);
    }
    for (int i = n; i < dgm_gemm_i8_depth(n) && !c->failed; i++)
        if (q[i] != 128) ck_fail(c, "padding q[%d] is %d", i, q[i]);
}

void check_quantize_i8_static(ck *c)
{
    static const float shares[] = {1.0f, 0.25f, 3.0f}; // of the row's own scale
    for (int s = 0; ck_sizes[s] && !c->failed; s++)
        for (int kind = 0; kind < CK_KINDS + 2 && !c->failed; kind++) {
            const int n = ck_sizes[s];
            const size_t bytes = (size_t)dgm_gemm_i8_depth(n);
            ck_begin(c, "n %d kind %d", n, kind);
            float *x = ck_floats(c, X, (size_t)n);
            uint8_t *q = ck_bytes(c, Q, bytes, 1), *p = ck_bytes(c, WANT, bytes, 1);
            fill(c, x, n, kind);
            const bool plain = kind != CK_SPECIAL && kind != CK_MASKED && kind != CK_DENORMAL;
            const double own = plain ? largest(x, n) / 127 : 0;
            const float scale = shares[(s + kind) % 3] * (own >= 1e-20 ? (float)own : 0.01f);
            c->now->quantize_i8_static(q, x, n, scale);
            c->ref->quantize_i8_static(p, x, n, scale);
            if (!ck_guards(c)) return;
            for (size_t i = 0; i < bytes; i++)
                if (q[i] != p[i]) {
                    ck_fail(c, "q[%zu] is %d, expected %d", i, q[i], p[i]);
                    return;
                }
            if (c->is_reference && plain) oracle_static(c, q, scale, x, n);
        }
    ck_begin(c, "benchmark");
    float *x = ck_aligned(c, X, 512);
    uint8_t *q = ck_bytes(c, Q, 512, 64);
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);)
        c->now->quantize_i8_static(q, x, 512, 0.01f);
}

static void oracle_i16_static(ck *c, const int16_t *q, float scale, const float *x, int n, int limit)
{
    for (int i = 0; i < n && !c->failed; i++) {
        const double most = (double)limit * (double)scale;
        const double want = fmax(-most, fmin(most, (double)x[i]));
        ck_near(c, "value", (double)q[i] * (double)scale, want, 0.5001 * (double)scale, 1e-6);
        if (q[i] > limit || q[i] < -limit) ck_fail(c, "q[%d] is %d, the limit %d", i, q[i], limit);
    }
    for (int i = n; i < dgm_gemm_i16_depth(n) && !c->failed; i++)
        if (q[i] != 0) ck_fail(c, "padding q[%d] is %d", i, q[i]);
}

// Scales at which rows just fit, saturate, and use a few of the bits; all kinds of numbers.
void check_quantize_i16_static(ck *c)
{
    static const int shifts[] = {0, -3, 4};
    for (int s = 0; ck_sizes[s] && !c->failed; s++)
        for (int kind = 0; kind < CK_KINDS + 2 && !c->failed; kind++) {
            const int n = ck_sizes[s], limit = 1 + ck_below(c, 32767);
            const size_t bytes = (size_t)dgm_gemm_i16_depth(n) * sizeof(int16_t);
            ck_begin(c, "n %d kind %d limit %d", n, kind, limit);
            float *x = ck_floats(c, X, (size_t)n);
            int16_t *q = ck_bytes(c, Q, bytes, 2), *p = ck_bytes(c, WANT, bytes, 2);
            fill(c, x, n, kind);
            const bool plain = kind != CK_SPECIAL && kind != CK_MASKED && kind != CK_DENORMAL;
            const double own = plain ? largest(x, n) / limit : 0;
            int exponent = 0;
            frexp(own >= 1e-20 ? own : 0.01, &exponent);
            const float scale = ldexpf(1.0f, exponent + shifts[(s + kind) % 3]);
            c->now->quantize_i16_static(q, x, n, scale, limit);
            c->ref->quantize_i16_static(p, x, n, scale, limit);
            if (!ck_guards(c)) return;
            for (size_t i = 0; i < bytes / sizeof *q; i++)
                if (q[i] != p[i]) {
                    ck_fail(c, "q[%zu] is %d, expected %d", i, q[i], p[i]);
                    return;
                }
            if (c->is_reference && plain) oracle_i16_static(c, q, scale, x, n, limit);
        }
    ck_begin(c, "benchmark");
    float *x = ck_aligned(c, X, 512);
    int16_t *q = ck_bytes(c, Q, 1024, 64);
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);)
        c->now->quantize_i16_static(q, x, 512, 0x1p-9f, 4000);
}

void check_quantize_i16(ck *c)
{
    for (int s = 0; ck_sizes[s] && !c->failed; s++)
        for (int kind = 0; kind < CK_KINDS + 2 && !c->failed; kind++) {
            const int n = ck_sizes[s], limit = 1 + ck_below(c, 32767);
            const size_t bytes = (size_t)dgm_gemm_i16_depth(n) * sizeof(int16_t);
            float got, want;
            ck_begin(c, "n %d kind %d limit %d", n, kind, limit);
            float *x = ck_floats(c, X, (size_t)n);
            int16_t *q = ck_bytes(c, Q, bytes, 2), *p = ck_bytes(c, WANT, bytes, 2);
            fill(c, x, n, kind);
            if (n % 7 == 0) // scales at the ends of the range
                for (int i = 0; i < n; i++) x[i] *= n % 2 ? 3e37f : 1e-29f;
            c->now->quantize_i16(q, &got, x, n, limit);
            c->ref->quantize_i16(p, &want, x, n, limit);
            if (!ck_guards(c) || !ck_same(c, "scale", &got, &want, 1)) return;
            for (size_t i = 0; i < bytes / sizeof *q; i++)
                if (q[i] != p[i]) {
                    ck_fail(c, "q[%zu] is %d, expected %d", i, q[i], p[i]);
                    return;
                }
            if (c->is_reference && kind != CK_SPECIAL && kind != CK_MASKED && kind != CK_DENORMAL &&
                n % 7 != 0)
                oracle_i16(c, q, got, x, n, limit);
        }
    ck_begin(c, "benchmark");
    float *x = ck_aligned(c, X, 512), scale;
    int16_t *q = ck_bytes(c, Q, 1024, 64);
    for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);)
        c->now->quantize_i16(q, &scale, x, 512, 4000);
}
