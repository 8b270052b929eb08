// SPDX-License-Identifier: MIT
// Norms of rows, and the same rows as bytes for a product, over a 16-lane vector.
//
// rows_<isa>.c includes a vec_<isa>.h, names NORM_ROWS and includes this. The order of operations is the contract, as
// in rows_tmpl.h:
//   layer norm  mean = sum(x) / n, d = x - mean, var = sum(d * d) / n with fma, s = 1 / sqrt(var + eps),
//               y = fma(d * s, gamma, beta), or (d * s) * gamma without beta
//   RMS norm    s = 1 / sqrt(sum(x * x) / n + eps), y = (x * s) * gamma
// A sum is one chain of dependent additions; up to NORM_TOGETHER rows are walked over side by side, so that a core has
// more than one to work on, and the largest |y| is found while y is stored.
#include <math.h>

#include "kernel/bytes_tmpl.h"
#include "kernel/kernels.h"

enum { NORM_TOGETHER = 4 };

// Some rows of a call: what is known of each of them so far.
typedef struct norm_rows_state {
    const float *x[NORM_TOGETHER];
    float *y[NORM_TOGETHER];
    vf mean[NORM_TOGETHER], scale[NORM_TOGETHER], range[NORM_TOGETHER];
} norm_rows_state;

#define NORM_FN static inline __attribute__((always_inline))
#define NORM_EACH for (int r = 0; r < rows; r++)

NORM_FN vf norm_load(const float *p, int n)
{
    return n == 16 ? vf_load(p) : vf_load_n(p, n);
}

NORM_FN void norm_store(float *p, vf a, int n)
{
    if (n == 16)
        vf_store(p, a);
    else
        vf_store_n(p, a, n);
}

NORM_FN vf norm_keep(vf a, int n)
{
    return n == 16 ? a : vf_keep_n(a, n);
}

// y = x + add, which is what is normalised.
NORM_FN void norm_add(norm_rows_state *s, const dgm_norm_args *a, int row, const int rows)
{
    NORM_EACH {
        const float *add = a->add + (size_t)(row + r) * (size_t)a->ld_add;
        for (int i = 0; i < a->n; i += 16) {
            const int n = a->n - i < 16 ? a->n - i : 16;
            norm_store(s->y[r] + i, vf_add(norm_load(s->x[r] + i, n), norm_load(add + i, n)), n);
        }
        s->x[r] = s->y[r];
    }
}

// Elements i .. i + n - 1 of every row, of which `sum` is taken: x, d * d or x * x.
typedef enum norm_sum { NORM_SUM, NORM_SQUARES_ABOUT_MEAN, NORM_SQUARES } norm_sum;

NORM_FN void norm_sum_at(const norm_rows_state *s, vf *sum, int i, int n, const int rows, const norm_sum of)
{
    NORM_EACH {
        const vf x = norm_load(s->x[r] + i, n);
        if (of == NORM_SUM) {
            sum[r] = vf_add(sum[r], x);
        } else {
            const vf d = of == NORM_SQUARES ? x : norm_keep(vf_sub(x, s->mean[r]), n);
            sum[r] = vf_fma(d, d, sum[r]);
        }
    }
}

// sum / n of every row.
NORM_FN void norm_means(const norm_rows_state *s, float *mean, int n, const int rows, const norm_sum of)
{
    vf sum[NORM_TOGETHER];
    NORM_EACH sum[r] = vf_set(0.0f);
    for (int i = 0; i < (n & ~15); i += 16) norm_sum_at(s, sum, i, 16, rows, of);
    if (n & 15) norm_sum_at(s, sum, n & ~15, n & 15, rows, of);
    NORM_EACH mean[r] = vf_fold_add(sum[r]) / (float)n;
}

NORM_FN void norm_apply_at(norm_rows_state *s, const dgm_norm_args *a, int i, int n, const int rows, const bool rms)
{
    const vf gamma = norm_load(a->gamma + i, n);
    const vf beta = a->beta ? norm_load(a->beta + i, n) : vf_set(0.0f);
    NORM_EACH {
        const vf x = norm_load(s->x[r] + i, n);
        const vf d = vf_mul(rms ? x : vf_sub(x, s->mean[r]), s->scale[r]);
        const vf y = a->beta ? vf_fma(d, gamma, beta) : vf_mul(d, gamma);
        norm_store(s->y[r] + i, y, n);
        s->range[r] = vf_max(vf_abs(norm_keep(y, n)), s->range[r]);
    }
}

NORM_FN void norm_few(const dgm_norm_args *a, int row, const int rows, const bool rms)
{
    norm_rows_state s;
    float mean[NORM_TOGETHER];
    NORM_EACH {
        s.x[r] = a->x + (size_t)(row + r) * (size_t)a->ldx;
        s.y[r] = a->y + (size_t)(row + r) * (size_t)a->ldy;
        s.range[r] = vf_set(0.0f);
    }
    if (a->add) norm_add(&s, a, row, rows);
    if (!rms) {
        norm_means(&s, mean, a->n, rows, NORM_SUM);
        NORM_EACH s.mean[r] = vf_set(mean[r]);
    }
    norm_means(&s, mean, a->n, rows, rms ? NORM_SQUARES : NORM_SQUARES_ABOUT_MEAN);
    NORM_EACH s.scale[r] = vf_set(1.0f / sqrtf(mean[r] + a->eps));
    for (int i = 0; i < (a->n & ~15); i += 16) norm_apply_at(&s, a, i, 16, rows, rms);
    if (a->n & 15) norm_apply_at(&s, a, a->n & ~15, a->n & 15, rows, rms);
    for (int r = 0; a->q && r < rows; r++) {
        uint8_t *q = a->q + (size_t)(row + r) * (size_t)a->ldq;
        if (a->given_scale > 0) {
            quantize_bytes(q, s.y[r], a->n, 1.0f / a->given_scale);
            a->scale[row + r] = a->given_scale;
        } else {
            quantize_by_range(q, &a->scale[row + r], s.y[r], a->n, vf_fold_max(s.range[r]));
        }
    }
}

static void NORM_ROWS(const dgm_norm_args *a)
{
    int row = 0;
    for (; a->rows - row >= NORM_TOGETHER; row += NORM_TOGETHER)
        if (a->rms)
            norm_few(a, row, NORM_TOGETHER, true);
        else
            norm_few(a, row, NORM_TOGETHER, false);
    for (; row < a->rows; row++)
        if (a->rms)
            norm_few(a, row, 1, true);
        else
            norm_few(a, row, 1, false);
}
