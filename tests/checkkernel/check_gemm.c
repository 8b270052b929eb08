// SPDX-License-Identifier: MIT
// Checks of the packed products: values, epilogue, ranges of columns, independence of rows.
//
// A fused version must have the bits of a plain chain of fmaf in order of k; the C version, which
// may round twice, must lie within k * 2^-23 of the sum of absolute products.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkkernel/checkkernel.h"

typedef struct shape {
    int m, n, k;
    bool bias, residual, alias;
    dgm_act act;
    int n_begin, n_end;
    int lda, ldc, ldw;
} shape;

typedef struct data {
    float *a, *w, *bias, *c, *want, *residual;
    void *packed;
} data;

enum { A, W, BIAS, C, WANT, RESIDUAL, PACKED, ONE };

static void run(ck *c, const shape *s, const data *d, float *out, int first, int rows)
{
    const size_t width = (size_t)s->ldc;
    const float *residual = s->alias ? out : d->residual;
    const dgm_gemm_f32_args args = {.c = out,
                                    .a = d->a + (size_t)first * (size_t)s->lda,
                                    .packed = d->packed,
                                    .bias = s->bias ? d->bias : NULL,
                                    .residual = !s->residual ? NULL
                                                : s->alias   ? out
                                                             : residual + (size_t)first * width,
                                    .m = rows,
                                    .n = s->n,
                                    .k = s->k,
                                    .n_begin = s->n_begin,
                                    .n_end = s->n_end,
                                    .lda = s->lda,
                                    .ldc = s->ldc,
                                    .ldr = s->ldc,
                                    .act = s->act};
    c->now->gemm_f32.run(&args);
}

// One element: the chain in fmaf, the epilogue by the reference's own kernels.
static float expected(ck *c, const shape *s, const data *d, int r, int j, double *slack)
{
    const float *a = d->a + (size_t)r * (size_t)s->lda, *w = d->w + (size_t)j * (size_t)s->ldw;
    float sum = 0.0f;
    double size = 0;
    for (int i = 0; i < s->k; i++) {
        sum = fmaf(a[i], w[i], sum);
        size += fabs((double)a[i] * (double)w[i]);
    }
    *slack = size * s->k * ldexp(1.0, -23) + 1e-37;
    if (s->bias) sum += d->bias[j];
    c->ref->act_f32(&sum, &sum, 1, s->act);
    if (s->residual) sum += d->residual[(size_t)r * (size_t)s->ldc + (size_t)(j - s->n_begin)];
    return sum;
}

static bool compare(ck *c, const shape *s, const data *d)
{
    const bool exact = strcmp(c->now->gemm_f32.name, "gemm_f32_c") != 0;
    for (int r = 0; r < s->m; r++)
        for (int j = s->n_begin; j < s->n_end; j++) {
            double slack;
            const float want = expected(c, s, d, r, j, &slack);
            const float *got = &d->c[(size_t)r * (size_t)s->ldc + (size_t)(j - s->n_begin)];
            char name[48];
            snprintf(name, sizeof name, "c[%d, %d]", r, j);
            // Activations grow differences by little more than 1 (gelu: 1.13).
            if (exact ? !ck_same(c, name, got, &want, 1)
                      : !ck_near(c, name, *got, want, 1.2 * slack, 1e-6))
                return false;
        }
    return true;
}

// The gap between rows of c (ldc > width) is not written.
static bool gap_is_clean(ck *c, const shape *s, const data *d)
{
    const int width = s->n_end - s->n_begin;
    for (int r = 0; r + 1 < s->m; r++)
        for (int j = width; j < s->ldc; j++) {
            uint32_t bits;
            memcpy(&bits, &d->c[(size_t)r * (size_t)s->ldc + (size_t)j], 4);
            if (bits != 0xa5a5a5a5u) return ck_fail(c, "wrote between rows %d and %d", r, r + 1);
        }
    return true;
}

static void one_shape(ck *c, const shape *s, ck_kind kind)
{
    data d;
    const int width = s->n_end - s->n_begin;
    const size_t size = (size_t)(s->m - 1) * (size_t)s->ldc + (size_t)width;
    ck_begin(c, "m %d n %d k %d columns %d..%d act %d%s%s%s lda %d ldc %d kind %d", s->m, s->n,
             s->k, s->n_begin, s->n_end, (int)s->act, s->bias ? " bias" : "",
             s->residual ? " residual" : "", s->alias ? " in place" : "", s->lda, s->ldc,
             (int)kind);
    d.a = ck_floats(c, A, (size_t)(s->m - 1) * (size_t)s->lda + (size_t)s->k);
    d.w = ck_floats(c, W, (size_t)(s->n - 1) * (size_t)s->ldw + (size_t)s->k);
    d.bias = ck_floats(c, BIAS, (size_t)s->n);
    d.c = ck_floats(c, C, size);
    d.residual = ck_floats(c, RESIDUAL, size);
    d.packed = ck_bytes(c, PACKED, c->now->gemm_f32.packed_size(s->n, s->k), 64);
    ck_fill(c, d.a, (size_t)(s->m - 1) * (size_t)s->lda + (size_t)s->k, kind);
    ck_fill(c, d.w, (size_t)(s->n - 1) * (size_t)s->ldw + (size_t)s->k, kind);
    ck_fill(c, d.bias, (size_t)s->n, CK_UNIT);
    ck_fill(c, d.residual, size, CK_UNIT);
    c->now->gemm_f32.pack(d.packed, d.w, s->n, s->k, s->ldw);
    if (s->alias)
        for (int r = 0; r < s->m; r++)
            memcpy(d.c + (size_t)r * (size_t)s->ldc, d.residual + (size_t)r * (size_t)s->ldc,
                   (size_t)width * sizeof(float));
    run(c, s, &d, d.c, 0, s->m);
    if (!ck_guards(c) || !compare(c, s, &d) || !gap_is_clean(c, s, &d)) return;

    // Each row alone has the bits it has among the others.
    float *one = ck_floats(c, ONE, (size_t)s->ldc);
    for (int r = 0; r < s->m && r < 9; r++) {
        const size_t at = (size_t)r * (size_t)s->ldc;
        memcpy(one, d.residual + at, (size_t)width * sizeof(float));
        run(c, s, &d, one, r, 1);
        if (!ck_same(c, "row alone", one, d.c + at, (size_t)width)) return;
    }
    ck_guards(c);
}

// Rows of a batch of 64 against batches of every other size.
static void rows_are_independent(ck *c)
{
    enum { N = 200, K = 100, M = 64 };
    shape s = {.m = M, .n = N, .k = K, .n_end = N, .lda = K, .ldc = N, .ldw = K};
    data d = {0};
    ck_begin(c, "independence of rows");
    d.a = ck_floats(c, A, M * K);
    d.w = ck_floats(c, W, N * K);
    d.c = ck_floats(c, C, M * N);
    d.want = ck_floats(c, WANT, M * N);
    d.packed = ck_bytes(c, PACKED, c->now->gemm_f32.packed_size(N, K), 64);
    ck_fill(c, d.a, M * K, CK_UNIT);
    ck_fill(c, d.w, N * K, CK_UNIT);
    c->now->gemm_f32.pack(d.packed, d.w, N, K, K);
    run(c, &s, &d, d.want, 0, M);
    for (int rows = 1; rows < M; rows++)
        for (int r = 0; r < M; r += rows) {
            const int count = r + rows < M ? rows : M - r;
            snprintf(c->where, sizeof c->where, "rows %d at %d against 64", count, r);
            run(c, &s, &d, d.c, r, count);
            if (!ck_same(c, "c", d.c, d.want + r * N, (size_t)count * N)) return;
        }
    ck_guards(c);
}

static void bench(ck *c)
{
    static const int sizes[][3] = {{1, 512, 512}, {4, 512, 512}, {32, 512, 512}, {32, 2048, 512}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char label[48];
        shape s = {.m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2]};
        s.n_end = s.ldc = s.n;
        s.lda = s.ldw = s.k;
        data d = {0};
        ck_begin(c, "benchmark");
        d.a = ck_aligned(c, A, (size_t)s.m * (size_t)s.k);
        d.w = ck_aligned(c, W, (size_t)s.n * (size_t)s.k);
        d.c = ck_aligned(c, C, (size_t)s.m * (size_t)s.n);
        d.packed = ck_bytes(c, PACKED, c->now->gemm_f32.packed_size(s.n, s.k), 64);
        c->now->gemm_f32.pack(d.packed, d.w, s.n, s.k, s.k);
        snprintf(label, sizeof label, "m = %d, k = %d, n = %d", s.m, s.k, s.n);
        for (ck_bench_begin(c, label); ck_bench_next(c);) run(c, &s, &d, d.c, 0, s.m);
    }
}

static shape random_shape(ck *c)
{
    shape s = {.m = 1 + ck_below(c, 20), .n = 1 + ck_below(c, 300), .k = 1 + ck_below(c, 70)};
    s.bias = ck_below(c, 2);
    s.residual = ck_below(c, 2);
    s.alias = s.residual && ck_below(c, 2);
    s.act = ck_below(c, 2) ? (dgm_act)ck_below(c, DGM_ACT_COUNT) : DGM_ACT_NONE;
    const int blocks = (s.n + DGM_GEMM_COLUMNS - 1) / DGM_GEMM_COLUMNS;
    s.n_begin = ck_below(c, blocks) * DGM_GEMM_COLUMNS;
    const int left = blocks - s.n_begin / DGM_GEMM_COLUMNS;
    s.n_end = s.n_begin + (1 + ck_below(c, left)) * DGM_GEMM_COLUMNS;
    if (s.n_end > s.n) s.n_end = s.n;
    s.lda = s.k + ck_below(c, 5);
    s.ldw = s.k + ck_below(c, 5);
    s.ldc = s.n_end - s.n_begin + ck_below(c, 5);
    return s;
}

void check_gemm_f32(ck *c)
{
    static const int rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 19, 33, 64};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && !c->failed; i++) {
        shape s = {.m = rows[i], .n = 65 + ck_below(c, 200), .k = 1 + ck_below(c, 40)};
        s.n_end = s.ldc = s.n;
        s.lda = s.ldw = s.k;
        one_shape(c, &s, CK_UNIT);
    }
    for (int i = 0; i < 150 && !c->failed; i++) {
        const shape s = random_shape(c);
        static const ck_kind kinds[] = {CK_UNIT, CK_UNIT, CK_WIDE, CK_DENORMAL};
        one_shape(c, &s, kinds[i % 4]);
    }
    shape large = {.m = 7, .n = 129, .k = 2048, .n_end = 129, .lda = 2048, .ldc = 129, .ldw = 2048};
    if (!c->failed) one_shape(c, &large, CK_UNIT);
    if (!c->failed) rows_are_independent(c);
    if (!c->failed) bench(c);
}
