// SPDX-License-Identifier: MIT
// Checks of outputs from weights that lie by rows: lists of ids, rows of the batch, ends of rows.
// Integers against sums in 64 bits, f32 against the reference bit by bit and against doubles.
#include <math.h>
#include <string.h>

#include "checkkernel/checkkernel.h"

enum { A, W, A_SCALE, W_SCALE, BIAS, C, D, IDS, OUTPUTS = 23 };

typedef struct shape {
    int m, k, count, lda, ldc, width; // width: bytes of an element; 4 is float
    bool bias;
} shape;

static int depth(const shape *s)
{
    if (s->width == 1) return dgm_gemm_i8_depth(s->k);
    return s->width == 2 ? dgm_gemm_i16_depth(s->k) : s->k;
}

static void fill(ck *c, const shape *s, void *a, void *w)
{
    if (s->width == 4) {
        ck_fill(c, a, (size_t)s->m * (size_t)s->lda, CK_UNIT);
        ck_fill(c, w, (size_t)OUTPUTS * (size_t)s->k, CK_UNIT);
        return;
    }
    const bool extreme = ck_below(c, 4) == 0;
    for (int r = 0; r < s->m; r++)
        for (int i = 0; i < s->lda; i++) {
            const size_t at = (size_t)r * (size_t)s->lda + (size_t)i;
            const int q = i >= s->k ? 0 : extreme ? 127 : ck_below(c, 255) - 127;
            if (s->width == 1)
                ((uint8_t *)a)[at] = (uint8_t)(q + 128);
            else
                ((int16_t *)a)[at] = (int16_t)(q * 4);
        }
    for (size_t i = 0; i < (size_t)OUTPUTS * (size_t)s->k; i++) {
        const int q = extreme ? -128 : ck_below(c, 256) - 128;
        if (s->width == 1)
            ((int8_t *)w)[i] = (int8_t)q;
        else
            ((int16_t *)w)[i] = (int16_t)(q * 8);
    }
}

static int64_t exact(const shape *s, const void *a, const void *w, int r, int32_t id)
{
    int64_t sum = 0;
    for (int i = 0; i < s->k; i++) {
        const size_t at = (size_t)r * (size_t)s->lda + (size_t)i;
        const size_t of = (size_t)id * (size_t)s->k + (size_t)i;
        if (s->width == 1) {
            const int v = ((const int8_t *)w)[of];
            sum += (int64_t)(((const uint8_t *)a)[at] - 128) * (v < -127 ? -127 : v);
        } else {
            sum += (int64_t)((const int16_t *)a)[at] * ((const int16_t *)w)[of];
        }
    }
    return sum;
}

static void compare(ck *c, const dgm_dots_args *g, const shape *s, const float *ref)
{
    for (int r = 0; r < s->m && !c->failed; r++)
        for (int i = 0; i < s->count && !c->failed; i++) {
            const size_t at = (size_t)r * (size_t)s->ldc + (size_t)i;
            const int32_t id = g->ids[i];
            const float bias = s->bias ? g->bias[id] : 0;
            if (s->width == 4) {
                double sum = 0;
                for (int j = 0; j < s->k; j++)
                    sum += (double)((const float *)g->a)[r * s->lda + j] *
                           (double)((const float *)g->w)[id * s->k + j];
                ck_near(c, "against doubles", (double)g->c[at], sum + (double)bias, 1e-4, 1e-4);
                ck_same(c, "against the reference", &g->c[at], &ref[at], 1);
                continue;
            }
            const float scale = g->a_scale[r] * (g->w_scale ? g->w_scale[id] : g->w_scale_all);
            const float sum = (float)exact(s, g->a, g->w, r, id);
            const float want = s->bias ? fmaf(sum, scale, bias) : sum * scale;
            ck_same(c, "against exact sums", &g->c[at], &want, 1);
        }
}

static void run(const dgm_kernels *k, const dgm_dots_args *g, int width)
{
    if (width == 1)
        k->dots_i8(g);
    else if (width == 2)
        k->dots_i16(g);
    else
        k->dots_f32(g);
}

static void one_case(ck *c, int k, int width)
{
    shape s = {.m = 1 + ck_below(c, 5), .k = k, .count = ck_below(c, 11), .width = width};
    s.bias = ck_below(c, 2);
    s.lda = depth(&s) + (width == 4 ? ck_below(c, 3) : 0);
    s.ldc = s.count + ck_below(c, 3);
    ck_begin(c, "m %d k %d count %d", s.m, s.k, s.count);
    const size_t rows = (size_t)s.m * (size_t)s.lda, out = (size_t)s.m * (size_t)(s.ldc + 1);
    void *a = ck_bytes(c, A, rows * (size_t)width, (size_t)width);
    void *w = ck_bytes(c, W, (size_t)OUTPUTS * (size_t)k * (size_t)width, (size_t)width);
    float *a_scale = ck_floats(c, A_SCALE, (size_t)s.m), *w_scale = ck_floats(c, W_SCALE, OUTPUTS);
    float *bias = ck_floats(c, BIAS, OUTPUTS), *got = ck_floats(c, C, out);
    float *want = ck_floats(c, D, out);
    int32_t *ids = ck_bytes(c, IDS, (size_t)s.count * 4, 4);
    fill(c, &s, a, w);
    ck_fill(c, a_scale, (size_t)s.m, CK_UNIT);
    ck_fill(c, w_scale, OUTPUTS, CK_UNIT);
    ck_fill(c, bias, OUTPUTS, CK_UNIT);
    for (int i = 0; i < s.count; i++) ids[i] = ck_below(c, 4) ? ck_below(c, OUTPUTS) : OUTPUTS - 1;
    dgm_dots_args g = {.c = want, .a = a, .a_scale = a_scale, .w = w, .ids = ids, .m = s.m,
                       .k = k, .count = s.count, .lda = s.lda, .ldc = s.ldc,
                       .w_scale = width == 1 ? w_scale : NULL, .w_scale_all = 0.03125f,
                       .bias = s.bias ? bias : NULL};
    run(c->ref, &g, width);
    g.c = got;
    run(c->now, &g, width);
    compare(c, &g, &s, want);
    ck_guards(c);
}

static void check(ck *c, int width, const char *label)
{
    for (int i = 0; ck_sizes[i] && !c->failed; i++)
        for (int n = 0; n < 4 && !c->failed; n++) one_case(c, ck_sizes[i], width);
    enum { K = 512, N = 8192, LIST = 1024 };
    ck_begin(c, "benchmark");
    const size_t size = (size_t)width;
    void *a = ck_bytes(c, A, K * size, 64), *w = ck_bytes(c, W, (size_t)N * K * size, 64);
    float *scale = ck_aligned(c, W_SCALE, N), *out = ck_aligned(c, C, LIST);
    int32_t *ids = ck_bytes(c, IDS, LIST * 4, 4);
    memset(a, 0, K * size);
    memset(w, 0, (size_t)N * K * size);
    for (int i = 0; i < LIST; i++) ids[i] = i * (N / LIST) + ck_below(c, N / LIST);
    const dgm_dots_args g = {.c = out, .a = a, .a_scale = scale, .w = w, .ids = ids, .m = 1,
                             .k = K, .count = LIST, .lda = K, .ldc = LIST, .w_scale = scale};
    for (ck_bench_begin(c, label); ck_bench_next(c);) run(c->now, &g, width);
}

void check_dots_f32(ck *c)
{
    check(c, 4, "1,024 of 8,192 x 512");
}

void check_dots_i8(ck *c)
{
    check(c, 1, "1,024 of 8,192 x 512");
}

void check_dots_i16(ck *c)
{
    check(c, 2, "1,024 of 8,192 x 512");
}
