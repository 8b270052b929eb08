// SPDX-License-Identifier: MIT
// Checks of bf16: rounding, products, outputs from weights that lie by rows.
//
// Versions that widen must have the bits of a plain chain of fmaf in order of k; those of a unit must lie within
// k * 2^-22 of the sum of absolute products. All must give a row the same bits in any company.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "checkkernel/checkkernel.h"

enum { A, W, REAL, BIAS, C, RESIDUAL, PACKED, ONE, ROWS, IDS, WIDE_A, WIDE_W, ALL = 320, OUTPUTS = 23 };

// ---- rounding ------------------------------------------------------------------------------

void check_round_bf16(ck *c)
{
    for (int kind = 0; kind < CK_KINDS; kind++)
        for (const int *n = ck_sizes; *n && !c->failed; n++) {
            const int depth = dgm_gemm_bf16_depth(*n);
            ck_begin(c, "n %d kind %d", *n, kind);
            float *x = ck_floats(c, REAL, (size_t)*n);
            uint16_t *y = ck_bytes(c, A, (size_t)depth * 2, 2);
            ck_fill(c, x, (size_t)*n, (ck_kind)kind);
            for (int i = 0; i < *n && kind == CK_UNIT; i += 3) x[i] = 1.0f + (float)i * 0x1p-8f; // ties
            c->now->round_bf16(y, x, *n);
            for (int i = 0; i < depth; i++) {
                const uint16_t want = i < *n ? dgm_float_to_bf16(x[i]) : 0;
                if (y[i] != want) {
                    ck_fail(c, "y[%d] is %04x, not %04x", i, y[i], want);
                    return;
                }
                // Half a unit in the last place at most.
                if (i < *n && isfinite(x[i]) && fabsf(x[i]) < 3e38f)
                    ck_near(c, "rounded", dgm_bf16_to_float(y[i]), x[i], 0x1p-134, 0x1p-8);
            }
            if (!ck_guards(c)) return;
        }
    ck_begin(c, "benchmark");
    float *x = ck_aligned(c, REAL, 1024);
    uint16_t *y = ck_bytes(c, A, 2048, 64);
    for (ck_bench_begin(c, "n = 1024"); ck_bench_next(c);) c->now->round_bf16(y, x, 1024);
}

// ---- products ------------------------------------------------------------------------------

typedef struct shape {
    int m, n, k;
    bool bias, residual, alias, listed;
    dgm_act act;
    int n_begin, n_end, lda, ldc, ldw;
} shape;

typedef struct data {
    uint16_t *a, *w;
    float *bias, *c, *residual;
    int32_t *rows; // listed: which row of w is column j
    void *packed;
} data;

// Numbers in bf16, k of them in each of `rows` rows and zeros behind.
static void fill(ck *c, uint16_t *to, int rows, int k, int stride, ck_kind kind)
{
    float *real = ck_floats(c, REAL, (size_t)k);
    memset(to, 0, (size_t)rows * (size_t)stride * sizeof *to);
    for (int r = 0; r < rows; r++) {
        ck_fill(c, real, (size_t)k, kind);
        for (int i = 0; i < k; i++) to[(size_t)r * (size_t)stride + (size_t)i] = dgm_float_to_bf16(real[i]);
    }
}

static void run(ck *c, const shape *s, const data *d, float *out, int first, int rows)
{
    const dgm_gemm_bf16_args args = {
        .c = out,
        .a = d->a + (size_t)first * (size_t)s->lda,
        .packed = d->packed,
        .bias = s->bias ? d->bias : NULL,
        .residual = !s->residual ? NULL : s->alias ? out : d->residual + (size_t)first * (size_t)s->ldc,
        .m = rows,
        .n = s->n,
        .k = s->k,
        .n_begin = s->n_begin,
        .n_end = s->n_end,
        .lda = s->lda,
        .ldc = s->ldc,
        .ldr = s->ldc,
        .act = s->act,
        .cold = s->m % 2};
    c->now->gemm_bf16.run(&args);
}

static float expected(ck *c, const shape *s, const data *d, int r, int j, double *slack)
{
    const size_t row = (size_t)(s->listed ? d->rows[j] : j);
    const uint16_t *a = d->a + (size_t)r * (size_t)s->lda, *w = d->w + row * (size_t)s->ldw;
    float sum = 0.0f;
    double size = 0;
    for (int i = 0; i < s->k; i++) {
        const float x = dgm_bf16_to_float(a[i]), y = dgm_bf16_to_float(w[i]);
        sum = fmaf(x, y, sum);
        size += fabs((double)x * (double)y);
    }
    *slack = size * s->k * ldexp(1.0, -22) + 1e-37;
    if (s->bias) sum += d->bias[j];
    c->ref->act_f32(&sum, &sum, 1, s->act);
    if (s->residual) sum += d->residual[(size_t)r * (size_t)s->ldc + (size_t)(j - s->n_begin)];
    return sum;
}

static bool compare(ck *c, const shape *s, const data *d)
{
    const char *name = c->now->gemm_bf16.name;
    const bool unit = strcmp(name, "gemm_bf16_avx512bf16") == 0 || strcmp(name, "gemm_bf16_amx") == 0;
    for (int r = 0; r < s->m; r++)
        for (int j = s->n_begin; j < s->n_end; j++) {
            double slack;
            char what[48];
            const float want = expected(c, s, d, r, j, &slack);
            const float *got = &d->c[(size_t)r * (size_t)s->ldc + (size_t)(j - s->n_begin)];
            snprintf(what, sizeof what, "c[%d, %d]", r, j);
            // Activations grow differences by little more than 1 (gelu: 1.13).
            const bool good = unit ? ck_near(c, what, *got, want, 1.2 * slack, 1e-6) : ck_same(c, what, got, &want, 1);
            if (!good) return false;
        }
    return true;
}

static data make_data(ck *c, const shape *s, ck_kind kind)
{
    const size_t size = (size_t)(s->m - 1) * (size_t)s->ldc + (size_t)(s->n_end - s->n_begin);
    const int rows = s->listed ? ALL : s->n;
    data d = {.a = ck_bytes(c, A, (size_t)s->m * (size_t)s->lda * 2, 2),
              .w = ck_bytes(c, W, (size_t)rows * (size_t)s->ldw * 2, 2),
              .bias = ck_floats(c, BIAS, (size_t)s->n),
              .c = ck_floats(c, C, size),
              .residual = ck_floats(c, RESIDUAL, size),
              .rows = ck_bytes(c, ROWS, (size_t)s->n * 4, 4),
              .packed = ck_bytes(c, PACKED, c->now->gemm_bf16.packed_size(s->n, s->k), 64)};
    fill(c, d.a, s->m, s->k, s->lda, kind);
    fill(c, d.w, rows, s->k, s->ldw, kind);
    ck_fill(c, d.bias, (size_t)s->n, CK_UNIT);
    ck_fill(c, d.residual, size, CK_UNIT);
    for (int j = 0; j < s->n; j++) d.rows[j] = ck_below(c, ALL);
    c->now->gemm_bf16.pack(d.packed, d.w, s->listed ? d.rows : NULL, s->n, s->k, s->ldw);
    if (s->alias) memcpy(d.c, d.residual, size * sizeof(float));
    return d;
}

static void one_shape(ck *c, const shape *s, ck_kind kind)
{
    ck_begin(c, "m %d n %d k %d columns %d..%d act %d bias %d residual %d alias %d listed %d lda %d", s->m, s->n, s->k,
             s->n_begin, s->n_end, (int)s->act, s->bias, s->residual, s->alias, s->listed, s->lda);
    data d = make_data(c, s, kind);
    run(c, s, &d, d.c, 0, s->m);
    if (!ck_guards(c) || !compare(c, s, &d)) return;

    // Parts of the batch have the bits they have in it.
    const size_t width = (size_t)(s->n_end - s->n_begin);
    float *one = ck_floats(c, ONE, (size_t)s->m * (size_t)s->ldc);
    for (int rows = 1; rows < s->m; rows = rows * 2 + 1)
        for (int r = 0; r < s->m; r += rows) {
            const int count = s->m - r < rows ? s->m - r : rows;
            for (int i = 0; i < count; i++)
                memcpy(one + (size_t)i * (size_t)s->ldc, d.residual + (size_t)(r + i) * (size_t)s->ldc, width * 4);
            run(c, s, &d, one, r, count);
            for (int i = 0; i < count; i++)
                if (!ck_same(c, "part of the rows", one + (size_t)i * (size_t)s->ldc,
                             d.c + (size_t)(r + i) * (size_t)s->ldc, width))
                    return;
        }
    ck_guards(c);
}

// deep: rows of A that do not fit into a first cache, and are multiplied a part at a time.
static shape random_shape(ck *c, bool deep)
{
    shape s = {.m = 1 + ck_below(c, 70), .n = 1 + ck_below(c, 300), .k = 1 + ck_below(c, 140)};
    if (deep) s.m += 32, s.n = 1 + s.n % 130, s.k += 240 + s.k;
    s.bias = ck_below(c, 2);
    s.residual = ck_below(c, 2);
    s.alias = s.residual && ck_below(c, 2);
    s.listed = ck_below(c, 2);
    s.act = ck_below(c, 2) ? (dgm_act)ck_below(c, DGM_ACT_COUNT) : DGM_ACT_NONE;
    const int blocks = (s.n + DGM_GEMM_COLUMNS - 1) / DGM_GEMM_COLUMNS;
    s.n_begin = ck_below(c, blocks) * DGM_GEMM_COLUMNS;
    s.n_end = s.n_begin + (1 + ck_below(c, blocks - s.n_begin / DGM_GEMM_COLUMNS)) * DGM_GEMM_COLUMNS;
    if (s.n_end > s.n) s.n_end = s.n;
    s.lda = dgm_gemm_bf16_depth(s.k) + ck_below(c, 2) * DGM_GEMM_BF16_DEPTH;
    s.ldw = s.k + ck_below(c, 5);
    s.ldc = s.n_end - s.n_begin + ck_below(c, 5);
    return s;
}

static void bench(ck *c)
{
    static const int sizes[][3] = {{1, 512, 512}, {4, 512, 512}, {32, 512, 512}, {32, 2048, 512}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char label[48];
        shape s = {.m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2]};
        s.n_end = s.ldc = s.n;
        s.lda = s.ldw = s.k;
        ck_begin(c, "benchmark");
        data d = make_data(c, &s, CK_UNIT);
        snprintf(label, sizeof label, "m = %d, k = %d, n = %d", s.m, s.k, s.n);
        for (ck_bench_begin(c, label); ck_bench_next(c);) run(c, &s, &d, d.c, 0, s.m);
    }
}

void check_gemm_bf16(ck *c)
{
    for (int i = 0; i < 120 && !c->failed; i++) {
        static const ck_kind kinds[] = {CK_UNIT, CK_UNIT, CK_WIDE};
        const shape s = random_shape(c, i % 15 == 14);
        one_shape(c, &s, kinds[i % 3]);
    }
    shape large = {.m = 7, .n = 129, .k = 2048, .n_end = 129, .lda = 2048, .ldc = 129, .ldw = 2048};
    if (!c->failed) one_shape(c, &large, CK_UNIT);
    if (!c->failed && c->bench) bench(c);
}

// ---- by rows -------------------------------------------------------------------------------

// The same bits as dots_f32 of the reference with the same numbers.
static void one_list(ck *c, int k)
{
    const int m = 1 + ck_below(c, 5), count = ck_below(c, 11), lda = dgm_gemm_bf16_depth(k);
    ck_begin(c, "m %d k %d count %d", m, k, count);
    uint16_t *a = ck_bytes(c, A, (size_t)(m * lda) * 2, 2), *w = ck_bytes(c, W, (size_t)(OUTPUTS * k) * 2, 2);
    float *wide_a = ck_floats(c, WIDE_A, (size_t)(m * lda)), *wide_w = ck_floats(c, WIDE_W, (size_t)(OUTPUTS * k));
    float *bias = ck_floats(c, BIAS, OUTPUTS), *got = ck_floats(c, C, (size_t)(m * count));
    float *want = ck_floats(c, RESIDUAL, (size_t)(m * count));
    int32_t *ids = ck_bytes(c, IDS, (size_t)count * 4, 4);
    fill(c, a, m, k, lda, CK_UNIT);
    fill(c, w, OUTPUTS, k, k, CK_UNIT);
    ck_fill(c, bias, OUTPUTS, CK_UNIT);
    for (int i = 0; i < m * lda; i++) wide_a[i] = dgm_bf16_to_float(a[i]);
    for (int i = 0; i < OUTPUTS * k; i++) wide_w[i] = dgm_bf16_to_float(w[i]);
    for (int i = 0; i < count; i++) ids[i] = ck_below(c, OUTPUTS);
    dgm_dots_args g = {.c = want, .a = wide_a, .w = wide_w, .ids = ids, .m = m, .k = k, .count = count, .lda = lda,
                       .ldc = count, .bias = ck_below(c, 2) ? bias : NULL};
    c->ref->dots_f32(&g);
    g.c = got;
    g.a = a;
    g.w = w;
    c->now->dots_bf16(&g);
    if (ck_guards(c)) ck_same(c, "against f32", got, want, (size_t)(m * count));
}

void check_dots_bf16(ck *c)
{
    for (int i = 0; ck_sizes[i] && !c->failed; i++)
        for (int n = 0; n < 4 && !c->failed; n++) one_list(c, ck_sizes[i]);
}
