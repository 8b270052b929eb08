// SPDX-License-Identifier: MIT
// Attention of one query row over cached keys and values, on a 16-lane vector.
//
// attend_<isa>.c includes a vec_<isa>.h, names ATTEND_F32 and ATTEND_ADD_F32 and includes this.
// Per head: e_j = fold(lanes of q . k_j) * scale; p = softmax(e) (reduce_tmpl.h);
// out = chain of fma over j = 0..n-1. The lane sums of 16 keys are folded together by a tree of
// transposing adds, which has the fold order of the contract without one reduction per key.
// No keys: out is zero. A NaN or +inf score makes the row NaN.
#include "kernel/reduce_tmpl.h"

enum { ATTEND_GROUP = 16 };

static inline const float *attend_row(const float *base, const dgm_attend_args *a, int j)
{
    const size_t row = a->index ? (size_t)a->index[j] : (size_t)j;
    return base + row * a->stride;
}

// Lane sums of q . k, n elements.
static inline __attribute__((always_inline)) vf attend_lanes(const float *q, const float *k, int n)
{
    const int whole = n & ~15, rest = n & 15;
    vf sum = vf_set(0.0f);
    for (int i = 0; i < whole; i += 16) sum = vf_fma(vf_load(q + i), vf_load(k + i), sum);
    if (rest) sum = vf_fma(vf_load_n(q + whole, rest), vf_load_n(k + whole, rest), sum);
    return sum;
}

// The scores of one head; n is given again so that the usual sizes can be constants.
static inline __attribute__((always_inline)) void attend_scores(const dgm_attend_args *a,
                                                                const float *q, const float *k,
                                                                float *score, int dk)
{
    const vf scale = vf_set(a->scale);
    vf lanes[ATTEND_GROUP];
    for (int j = 0; j < a->n; j += ATTEND_GROUP) {
        const int count = a->n - j < ATTEND_GROUP ? a->n - j : ATTEND_GROUP;
        for (int t = 0; t < count; t++) lanes[t] = attend_lanes(q, attend_row(k, a, j + t), dk);
        for (int t = count; t < ATTEND_GROUP; t++) lanes[t] = vf_set(0.0f);
        const vf e = vf_mul(vf_fold_add_16(lanes), scale);
        if (count == ATTEND_GROUP) vf_store(score + j, e);
        else vf_store_n(score + j, e, count);
    }
}

// out[0..16 * vectors) = sum over j of p[j] * v_j; several vectors hide the latency of the chain.
static inline __attribute__((always_inline)) void attend_values(const dgm_attend_args *a,
                                                                const float *p, const float *v,
                                                                float *out, int vectors)
{
    vf sum[8];
    for (int i = 0; i < vectors; i++) sum[i] = vf_set(0.0f);
    for (int j = 0; j < a->n; j++) {
        const float *row = attend_row(v, a, j);
        const vf w = vf_set(p[j]);
        for (int i = 0; i < vectors; i++) sum[i] = vf_fma(w, vf_load(row + 16 * i), sum[i]);
    }
    for (int i = 0; i < vectors; i++) vf_store(out + 16 * i, sum[i]);
}

static inline void attend_values_rest(const dgm_attend_args *a, const float *p, const float *v,
                                      float *out, int n)
{
    vf sum = vf_set(0.0f);
    for (int j = 0; j < a->n; j++)
        sum = vf_fma(vf_set(p[j]), vf_load_n(attend_row(v, a, j), n), sum);
    vf_store_n(out, sum, n);
}

static void ATTEND_F32(const dgm_attend_args *a)
{
    for (int h = 0; h < a->heads; h++) {
        const float *q = a->q + (size_t)h * (size_t)a->dk;
        const float *k = a->k + (size_t)h * (size_t)a->dk;
        const float *v = a->v + (size_t)h * (size_t)a->dv;
        float *out = a->out + (size_t)h * (size_t)a->dv;
        float *p = a->weights + (size_t)h * (size_t)a->n;
        switch (a->dk) {
        case 32: attend_scores(a, q, k, p, 32); break;
        case 64: attend_scores(a, q, k, p, 64); break;
        case 128: attend_scores(a, q, k, p, 128); break;
        default: attend_scores(a, q, k, p, a->dk); break;
        }
        reduce_softmax(p, a->n);
        int d = 0;
        for (; d + 128 <= a->dv; d += 128) attend_values(a, p, v + d, out + d, 8);
        for (; d + 64 <= a->dv; d += 64) attend_values(a, p, v + d, out + d, 4);
        for (; d + 32 <= a->dv; d += 32) attend_values(a, p, v + d, out + d, 2);
        for (; d + 16 <= a->dv; d += 16) attend_values(a, p, v + d, out + d, 1);
        if (d < a->dv) attend_values_rest(a, p, v + d, out + d, a->dv - d);
    }
}

// Lane sums of w . tanh(q + k), n elements; w is zero beyond the end.
static inline vf attend_add_lanes(const float *w, const float *q, const float *k, int n)
{
    const int whole = n & ~15, rest = n & 15;
    vf sum = vf_set(0.0f);
    for (int i = 0; i < whole; i += 16) {
        vf t = math_tanh(vf_add(vf_load(q + i), vf_load(k + i)));
        sum = vf_fma(vf_load(w + i), t, sum);
    }
    if (rest) {
        vf t = math_tanh(vf_add(vf_load_n(q + whole, rest), vf_load_n(k + whole, rest)));
        sum = vf_fma(vf_load_n(w + whole, rest), t, sum);
    }
    return sum;
}

static void ATTEND_ADD_F32(const dgm_attend_add_args *a)
{
    for (int j = 0; j < a->n; j++) {
        const float *k = a->k + (size_t)j * (size_t)a->da;
        a->weights[j] = vf_fold_add(attend_add_lanes(a->w, a->q, k, a->da));
    }
    reduce_softmax(a->weights, a->n);
    const dgm_attend_args sum = {.n = a->n, .stride = (size_t)a->dv};
    int d = 0;
    for (; d + 128 <= a->dv; d += 128) attend_values(&sum, a->weights, a->v + d, a->out + d, 8);
    for (; d + 16 <= a->dv; d += 16) attend_values(&sum, a->weights, a->v + d, a->out + d, 1);
    if (d < a->dv) attend_values_rest(&sum, a->weights, a->v + d, a->out + d, a->dv - d);
}
