// SPDX-License-Identifier: MIT
// Checks of the integer products: exact sums, epilogue, ranges of columns, candidate rows, packing.
//
// Every element is compared bit by bit with a sum in 64 bits and an epilogue made of the
// reference's own operations. Both types run through one set of shapes; what differs is in
// `product` below. Extremes (all numbers at their bounds, alternating signs) show saturation where
// an instruction has it.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkkernel/checkkernel.h"
#include "kernel/variants.h"

typedef struct shape {
    int m, n, k;
    bool bias, residual, alias, listed, extreme;
    dgm_act act;
    int n_begin, n_end;
    int lda, ldc, ldw;
} shape;

typedef struct data {
    void *a, *w, *packed;
    int32_t *rows; // listed: which row of w is column j
    float *a_scale, *w_scale, *bias, *c, *residual;
    int limit; // i16: what packing returned
} data;

enum { A, W, A_SCALE, W_SCALE, BIAS, C, RESIDUAL, PACKED, ONE, ROWS, Q, ALL = 320 };

typedef struct product {
    int width; // bytes of an element
    int (*depth)(int k);
    size_t (*packed_size)(ck *c, int n, int k);
    void (*fill)(ck *c, const shape *s, data *d);
    void (*pack)(ck *c, const shape *s, data *d);
    void (*run)(ck *c, const shape *s, const data *d, float *out, int first, int rows);
    int64_t (*multiply)(const data *d, size_t a, size_t w); // one product
    bool scale_per_row;
} product;

// ---- i8 ------------------------------------------------------------------------------------

static size_t i8_packed_size(ck *c, int n, int k)
{
    return c->now->gemm_i8.packed_size(n, k);
}

static void i8_fill(ck *c, const shape *s, data *d)
{
    uint8_t *a = d->a;
    int8_t *w = d->w;
    const bool same = ck_below(c, 2);
    for (int r = 0; r < s->m; r++)
        for (int i = 0; i < s->k; i++) {
            const int q = ck_below(c, 255) - 127;
            a[(size_t)r * (size_t)s->lda + (size_t)i] = (uint8_t)(128 + (!s->extreme     ? q
                                                                         : same || q > 0 ? 127
                                                                                         : -127));
        }
    for (int r = 0; r < s->m; r++) // the padding stands for zero
        memset(a + (size_t)r * (size_t)s->lda + s->k, 128,
               (size_t)(dgm_gemm_i8_depth(s->k) - s->k));
    for (int j = 0; j < s->n; j++)
        for (int i = 0; i < s->k; i++) {
            const int q = ck_below(c, 255) - 127;
            w[(size_t)j * (size_t)s->ldw + (size_t)i] = (int8_t)(!s->extreme              ? q
                                                                 : (same ? j % 2 : q > 0) ? 127
                                                                                          : -127);
        }
}

static void i8_pack(ck *c, const shape *s, data *d)
{
    c->now->gemm_i8.pack(d->packed, d->w, s->listed ? d->rows : NULL, s->n, s->k, s->ldw);
}

static dgm_gemm_i8_args i8_args(const shape *s, const data *d, float *out, int first, int rows)
{
    return (dgm_gemm_i8_args){.c = out,
                              .a = (const uint8_t *)d->a + (size_t)first * (size_t)s->lda,
                              .a_scale = d->a_scale + first,
                              .packed = d->packed,
                              .w_scale = d->w_scale,
                              .bias = s->bias ? d->bias : NULL,
                              .residual = !s->residual ? NULL
                                          : s->alias   ? out
                                                     : d->residual + (size_t)first * (size_t)s->ldc,
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
}

static void i8_run(ck *c, const shape *s, const data *d, float *out, int first, int rows)
{
    const dgm_gemm_i8_args args = i8_args(s, d, out, first, rows);
    c->now->gemm_i8.run(&args);
}

static int64_t i8_multiply(const data *d, size_t a, size_t w)
{
    return (int64_t)(((const uint8_t *)d->a)[a] - 128) * ((const int8_t *)d->w)[w];
}

// ---- i16 -----------------------------------------------------------------------------------

static size_t i16_packed_size(ck *c, int n, int k)
{
    return c->now->gemm_i16.packed_size(n, k);
}

// Weights first: the rows must respect the limit that packing returns.
static void i16_fill(ck *c, const shape *s, data *d)
{
    int16_t *w = d->w;
    const int bits = 1 + ck_below(c, 15);
    for (int j = 0; j < s->n; j++)
        for (int i = 0; i < s->k; i++) {
            const int top = (1 << bits) - 1, q = ck_below(c, 2 * top + 1) - top;
            w[(size_t)j * (size_t)s->ldw + (size_t)i] = (int16_t)(!s->extreme ? q
                                                                  : q > 0     ? top
                                                                              : -top);
        }
}

static void i16_pack(ck *c, const shape *s, data *d)
{
    int16_t *a = d->a;
    d->limit =
        c->now->gemm_i16.pack(d->packed, d->w, s->listed ? d->rows : NULL, s->n, s->k, s->ldw);
    if (d->limit < 1 || d->limit > 32767) ck_fail(c, "limit is %d", d->limit);
    for (int r = 0; r < s->m; r++) {
        int16_t *row = a + (size_t)r * (size_t)s->lda;
        for (int i = 0; i < s->k; i++) {
            const int q = ck_below(c, 2 * d->limit + 1) - d->limit;
            row[i] = (int16_t)(!s->extreme ? q : q > 0 ? d->limit : -d->limit);
        }
        memset(row + s->k, 0, (size_t)(dgm_gemm_i16_depth(s->k) - s->k) * sizeof *row);
    }
}

static void i16_run(ck *c, const shape *s, const data *d, float *out, int first, int rows)
{
    const dgm_gemm_i16_args args = {.c = out,
                                    .a = (const int16_t *)d->a + (size_t)first * (size_t)s->lda,
                                    .a_scale = d->a_scale + first,
                                    .packed = d->packed,
                                    .w_scale = d->w_scale[0],
                                    .bias = s->bias ? d->bias : NULL,
                                    .residual = !s->residual ? NULL
                                                : s->alias
                                                    ? out
                                                    : d->residual + (size_t)first * (size_t)s->ldc,
                                    .m = rows,
                                    .n = s->n,
                                    .k = s->k,
                                    .n_begin = s->n_begin,
                                    .n_end = s->n_end,
                                    .lda = s->lda,
                                    .ldc = s->ldc,
                                    .ldr = s->ldc,
                                    .act = s->act};
    c->now->gemm_i16.run(&args);
}

static int64_t i16_multiply(const data *d, size_t a, size_t w)
{
    return (int64_t)((const int16_t *)d->a)[a] * ((const int16_t *)d->w)[w];
}

static const product i8 = {
    1, dgm_gemm_i8_depth, i8_packed_size, i8_fill, i8_pack, i8_run, i8_multiply, true};
static const product i16 = {
    2, dgm_gemm_i16_depth, i16_packed_size, i16_fill, i16_pack, i16_run, i16_multiply, false};

// ---- common --------------------------------------------------------------------------------

static bool compare(ck *c, const product *p, const shape *s, const data *d)
{
    for (int r = 0; r < s->m; r++)
        for (int j = s->n_begin; j < s->n_end; j++) {
            const size_t row = (size_t)(s->listed ? d->rows[j] : j);
            int64_t sum = 0;
            for (int i = 0; i < s->k; i++)
                sum += p->multiply(d, (size_t)r * (size_t)s->lda + (size_t)i,
                                   row * (size_t)s->ldw + (size_t)i);
            if (sum > INT32_MAX || sum < -INT32_MAX) return ck_fail(c, "sum leaves 32 bits");
            const float scale = d->a_scale[r] * d->w_scale[p->scale_per_row ? j : 0];
            float want = s->bias ? fmaf((float)sum, scale, d->bias[j]) : (float)sum * scale;
            c->ref->act_f32(&want, &want, 1, s->act);
            const size_t at = (size_t)r * (size_t)s->ldc + (size_t)(j - s->n_begin);
            if (s->residual) want += d->residual[at];
            char name[48];
            snprintf(name, sizeof name, "c[%d, %d]", r, j);
            if (!ck_same(c, name, &d->c[at], &want, 1)) return false;
        }
    // The gap between rows of c (ldc > width) is not written.
    for (int r = 0; r + 1 < s->m; r++)
        for (int j = s->n_end - s->n_begin; j < s->ldc; j++) {
            uint32_t bits;
            memcpy(&bits, &d->c[(size_t)r * (size_t)s->ldc + (size_t)j], 4);
            if (bits != 0xa5a5a5a5u) return ck_fail(c, "wrote between rows %d and %d", r, r + 1);
        }
    return true;
}

static data take(ck *c, const product *p, const shape *s)
{
    data d;
    const int width = s->n_end - s->n_begin;
    const size_t size = (size_t)(s->m - 1) * (size_t)s->ldc + (size_t)width,
                 bytes = (size_t)p->width;
    d.a = ck_bytes(c, A, ((size_t)(s->m - 1) * (size_t)s->lda + (size_t)p->depth(s->k)) * bytes,
                   bytes);
    d.w = ck_bytes(c, W, ((size_t)(s->n - 1) * (size_t)s->ldw + (size_t)s->k) * bytes, bytes);
    d.rows = ck_bytes(c, ROWS, (size_t)s->n * sizeof *d.rows, sizeof *d.rows);
    d.a_scale = ck_floats(c, A_SCALE, (size_t)s->m);
    d.w_scale = ck_floats(c, W_SCALE, (size_t)s->n);
    d.bias = ck_floats(c, BIAS, (size_t)s->n);
    d.c = ck_floats(c, C, size);
    d.residual = ck_floats(c, RESIDUAL, size);
    d.packed = ck_bytes(c, PACKED, p->packed_size(c, s->n, s->k), 64);
    for (int j = 0; j < s->n; j++) d.rows[j] = ck_below(c, s->n);
    for (int r = 0; r < s->m; r++) d.a_scale[r] = ck_uniform(c, 1e-4f, 1e-2f);
    for (int j = 0; j < s->n; j++) d.w_scale[j] = ck_uniform(c, 1e-4f, 1e-2f);
    ck_fill(c, d.bias, (size_t)s->n, CK_UNIT);
    ck_fill(c, d.residual, size, CK_UNIT);
    p->fill(c, s, &d);
    p->pack(c, s, &d);
    return d;
}

static void one_shape(ck *c, const product *p, const shape *s)
{
    const int width = s->n_end - s->n_begin;
    ck_begin(c, "m %d n %d k %d columns %d..%d act %d%s%s%s%s%s lda %d ldc %d", s->m, s->n, s->k,
             s->n_begin, s->n_end, (int)s->act, s->bias ? " bias" : "",
             s->residual ? " residual" : "", s->alias ? " in place" : "",
             s->listed ? " listed" : "", s->extreme ? " extreme" : "", s->lda, s->ldc);
    data d = take(c, p, s);
    if (c->failed) return;
    if (s->alias)
        for (int r = 0; r < s->m; r++)
            memcpy(d.c + (size_t)r * (size_t)s->ldc, d.residual + (size_t)r * (size_t)s->ldc,
                   (size_t)width * sizeof(float));
    p->run(c, s, &d, d.c, 0, s->m);
    if (!ck_guards(c) || !compare(c, p, s, &d)) return;

    // Each row alone has the bits it has among the others.
    float *one = ck_floats(c, ONE, (size_t)s->ldc);
    for (int r = 0; r < s->m && r < 9; r++) {
        const size_t at = (size_t)r * (size_t)s->ldc;
        memcpy(one, d.residual + at, (size_t)width * sizeof(float));
        p->run(c, s, &d, one, r, 1);
        if (!ck_same(c, "row alone", one, d.c + at, (size_t)width)) return;
    }
    ck_guards(c);
}

static shape plain_shape(const product *p, int m, int n, int k)
{
    shape s = {.m = m, .n = n, .k = k, .n_end = n, .ldc = n, .ldw = k};
    s.lda = p->depth(k);
    return s;
}

// deep: rows of A that do not fit into a first cache, and are multiplied a part at a time.
static shape random_shape(ck *c, const product *p, bool deep)
{
    const int most = ck_below(c, 4) ? 36 : 100; // beyond two blocks of 32 rows, too
    const int m = deep ? 33 + ck_below(c, 120) : 1 + ck_below(c, most);
    shape s = plain_shape(p, m, 1 + ck_below(c, ALL), 1 + (deep ? 500 + ck_below(c, 700) : ck_below(c, 200)));
    s.bias = ck_below(c, 2);
    s.residual = ck_below(c, 2);
    s.alias = s.residual && ck_below(c, 2);
    s.listed = ck_below(c, 3) == 0;
    s.extreme = ck_below(c, 4) == 0;
    s.act = ck_below(c, 2) ? (dgm_act)ck_below(c, DGM_ACT_COUNT) : DGM_ACT_NONE;
    const int blocks = (s.n + DGM_GEMM_COLUMNS - 1) / DGM_GEMM_COLUMNS;
    s.n_begin = ck_below(c, blocks) * DGM_GEMM_COLUMNS;
    const int left = blocks - s.n_begin / DGM_GEMM_COLUMNS;
    s.n_end = s.n_begin + (1 + ck_below(c, left)) * DGM_GEMM_COLUMNS;
    if (s.n_end > s.n) s.n_end = s.n;
    s.lda += ck_below(c, 5);
    s.ldw += ck_below(c, 5);
    s.ldc = s.n_end - s.n_begin + ck_below(c, 5);
    return s;
}

static void bench(ck *c, const product *p)
{
    static const int sizes[][3] = {{1, 512, 512}, {4, 512, 512}, {32, 512, 512}, {32, 2048, 512}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && c->bench; i++) {
        char label[48];
        shape s = plain_shape(p, sizes[i][0], sizes[i][1], sizes[i][2]);
        ck_begin(c, "benchmark");
        const data d = take(c, p, &s);
        snprintf(label, sizeof label, "m = %d, k = %d, n = %d", s.m, s.k, s.n);
        for (ck_bench_begin(c, label); ck_bench_next(c);) p->run(c, &s, &d, d.c, 0, s.m);
    }
}

static void check(ck *c, const product *p)
{
    for (int m = 1; m <= 34 && !c->failed; m++) {
        shape s = plain_shape(p, m, 65 + ck_below(c, 300), 1 + ck_below(c, 150));
        s.bias = m % 2;
        s.act = m % 3 ? DGM_ACT_NONE : DGM_ACT_RELU;
        one_shape(c, p, &s);
    }
    for (int i = 0; i < 200 && !c->failed; i++) {
        const shape s = random_shape(c, p, i % 12 == 11);
        one_shape(c, p, &s);
    }
    static const int large[][3] = {{7, 129, 2048}, {64, 192, 512}, {3, 64, 4100}, {17, 700, 64}};
    for (size_t i = 0; i < 2 * sizeof large / sizeof large[0] && !c->failed; i++) {
        shape s = plain_shape(p, large[i / 2][0], large[i / 2][1], large[i / 2][2]);
        s.extreme = i % 2;
        one_shape(c, p, &s);
    }
    if (!c->failed) bench(c, p);
}

// The one weight that does not fit is taken as the nearest that does.
static void lowest_weight(ck *c)
{
    enum { K = 64 };
    static const float unit = 1.0f;
    ck_begin(c, "weight -128");
    uint8_t *a = ck_bytes(c, A, K, 1);
    int8_t *w = ck_bytes(c, W, K, 1);
    void *packed = ck_bytes(c, PACKED, c->now->gemm_i8.packed_size(1, K), 64);
    float *y = ck_floats(c, C, 1);
    memset(w, -128, K);
    c->now->gemm_i8.pack(packed, w, NULL, 1, K, K);
    for (int q = -127; q <= 127; q += 127) {
        memset(a, 128 + q, K);
        const dgm_gemm_i8_args args = {.c = y,
                                       .a = a,
                                       .a_scale = &unit,
                                       .packed = packed,
                                       .w_scale = &unit,
                                       .m = 1,
                                       .n = 1,
                                       .k = K,
                                       .n_end = 1,
                                       .lda = K,
                                       .ldc = 1};
        c->now->gemm_i8.run(&args);
        const float want = (float)(-127 * q * K);
        if (!ck_same(c, "c", y, &want, 1)) return;
    }
    ck_guards(c);
}

// Results as bytes are those of quantising the floats.
static void as_bytes(ck *c)
{
    for (int i = 0; i < 100 && !c->failed; i++) {
        shape s = random_shape(c, &i8, i % 12 == 11);
        s.alias = false;
        const int width = s.n_end - s.n_begin, ldq = width + ck_below(c, 5);
        ck_begin(c, "m %d n %d k %d columns %d..%d act %d as bytes", s.m, s.n, s.k, s.n_begin,
                 s.n_end, (int)s.act);
        const data d = take(c, &i8, &s);
        dgm_gemm_i8_args args = i8_args(&s, &d, d.c, 0, s.m);
        c->now->gemm_i8.run(&args);
        args.c = NULL;
        args.q = ck_bytes(c, Q, (size_t)(s.m - 1) * (size_t)ldq + (size_t)width, 1);
        args.ldq = ldq;
        args.q_scale = ck_uniform(c, 0.001f, 0.05f); // some results are too large for it
        c->now->gemm_i8.run(&args);
        uint8_t want[ALL + DGM_GEMM_I8_DEPTH];
        for (int r = 0; r < s.m; r++) {
            c->ref->quantize_i8_static(want, d.c + (size_t)r * (size_t)s.ldc, width, args.q_scale);
            if (memcmp(args.q + (size_t)r * (size_t)ldq, want, (size_t)width) != 0) {
                ck_fail(c, "row %d differs", r);
                return;
            }
        }
        if (!ck_guards(c)) return;
    }
}

// Packing: the reference's bytes, of matrices of any bytes, listed rows, panels and lines that are not full.
static void packing(ck *c)
{
    for (int round = 0; round < 60 && !c->failed; round++) {
        const int n = 1 + ck_below(c, 200), k = 1 + ck_below(c, 200), ldw = k + ck_below(c, 3);
        const size_t size = c->ref->gemm_i8.packed_size(n, k), bytes = (size_t)(n - 1) * (size_t)ldw + (size_t)k;
        ck_begin(c, "packing n %d k %d", n, k);
        int8_t *w = ck_bytes(c, W, bytes, 1), *got = ck_bytes(c, PACKED, size, 64), *want = ck_bytes(c, ONE, size, 64);
        int32_t *rows = ck_bytes(c, ROWS, (size_t)n * sizeof *rows, sizeof *rows);
        for (size_t i = 0; i < bytes; i++) w[i] = (int8_t)(ck_below(c, 256) - 128);
        for (int j = 0; j < n; j++) rows[j] = ck_below(c, n);
        const int32_t *listed = round % 2 ? rows : NULL;
        c->now->gemm_i8.pack(got, w, listed, n, k, ldw);
        c->ref->gemm_i8.pack(want, w, listed, n, k, ldw);
        for (size_t i = 0; i < size && !c->failed; i++)
            if (got[i] != want[i]) ck_fail(c, "byte %zu is %d, expected %d", i, got[i], want[i]);
        if (!c->failed) ck_guards(c);
    }
    ck_begin(c, "benchmark");
    int8_t *w = ck_bytes(c, W, 64 * 512, 64);
    void *packed = ck_bytes(c, PACKED, c->ref->gemm_i8.packed_size(64, 512), 64);
    for (ck_bench_begin(c, "packing 64x512"); ck_bench_next(c);) c->now->gemm_i8.pack(packed, w, NULL, 64, 512, 512);
}

#if defined(__x86_64__)
// Tiles in software count products: they make those of as many rows as the table of variants gives them, no others.
static void rows_of_tiles(ck *c)
{
    static const uint8_t a[64 * 64];
    static const float a_scale[64], w_scale[64];
    static const int8_t w[64 * 64];
    ck_begin(c, "rows in tiles");
    void *packed = ck_bytes(c, PACKED, c->now->gemm_i8.packed_size(64, 64), 64);
    float *y = ck_floats(c, C, 64 * 64);
    c->now->gemm_i8.pack(packed, w, NULL, 64, 64, 64);
    bool in_tiles[65] = {false};
    for (int m = 1; m <= 64; m++) {
        const dgm_gemm_i8_args args = {.c = y, .a = a, .a_scale = a_scale, .packed = packed, .w_scale = w_scale, .m = m,
                                       .n = 64, .k = 64, .n_end = 64, .lda = 64, .ldc = 64};
        const unsigned before = ck_soft_products_i8();
        c->now->gemm_i8.run(&args);
        in_tiles[m] = ck_soft_products_i8() != before;
    }
    if (!in_tiles[64]) return; // another level
    for (int m = 1; m <= 64; m++)
        if (in_tiles[m] != (m >= dgm_variant_tile_rows(64, 64)))
            ck_fail(c, "%d rows: tiles are not as in the table", m);
}
#else
static void rows_of_tiles(ck *c)
{
    (void)c;
}
#endif

void check_gemm_i8(ck *c)
{
    rows_of_tiles(c);
    if (!c->failed) lowest_weight(c);
    if (!c->failed) packing(c);
    check(c, &i8);
    if (!c->failed) as_bytes(c);
}

void check_gemm_i16(ck *c)
{
    check(c, &i16);
}
