// SPDX-License-Identifier: MIT
// Attention of one query row over cached keys and values, on a 16-lane vector.
//
// attend_<isa>.c includes a vec_<isa>.h, names ATTEND and ATTEND_ADD_F32 and includes this;
// attend_f16_<isa>.c names ATTEND alone and defines ATTEND_HALF: keys and values are then half
// precision, converted exactly when they are loaded.
// Per head: e_j = fold(lanes of q . k_j) * scale; p = softmax(e) (reduce_tmpl.h);
// out = chain of fma over j = 0..n-1. The lane sums of 16 keys are folded together by a tree of
// transposing adds, which has the fold order of the contract without one reduction per key.
// No keys: out is zero. A NaN or +inf score makes the row NaN.
#include "kernel/reduce_tmpl.h"

#ifdef ATTEND_HALF
typedef uint16_t attend_elem;
#define ATTEND_LOAD vf_load_f16
#define ATTEND_LOAD_N vf_load_f16_n
#else
typedef float attend_elem;
#define ATTEND_LOAD vf_load
#define ATTEND_LOAD_N vf_load_n
#endif

enum { ATTEND_GROUP = 16 }; // keys whose sums are folded together

static inline const attend_elem *attend_row(const attend_elem *base, const dgm_attend_args *a, int j)
{
    const size_t row = a->index ? (size_t)a->index[j] : (size_t)j;
    return base + row * a->stride;
}

// Lane sums of q . key for VF_SUMS keys (as many as registers hold), n elements from `skip` on.
static inline __attribute__((always_inline)) void
attend_lanes(vf *lanes, const float *q, const attend_elem *const *keys, size_t skip, int n)
{
    const int whole = n & ~15, rest = n & 15;
    vf sum[VF_SUMS];
    for (int t = 0; t < VF_SUMS; t++) sum[t] = vf_set(0.0f);
    for (int i = 0; i < whole; i += 16) {
        const vf x = vf_load(q + i);
        for (int t = 0; t < VF_SUMS; t++) 
            sum[t] = vf_fma(x, ATTEND_LOAD(keys[t] + skip + i), sum[t]);
    }
    if (rest) {
        const vf x = vf_load_n(q + whole, rest);
        for (int t = 0; t < VF_SUMS; t++)
            sum[t] = vf_fma(x, ATTEND_LOAD_N(keys[t] + skip + whole, rest), sum[t]);
    }
    for (int t = 0; t < VF_SUMS; t++) lanes[t] = sum[t];
}

// All scores, 16 keys after 16 keys and head by head. dk is given again so that the usual sizes
// can be constants.
static inline __attribute__((always_inline)) void attend_scores(const dgm_attend_args *a,
                                                                const int dk)
{
    const vf scale = vf_set(a->scale);
    for (int j = 0; j < a->n; j += ATTEND_GROUP) {
        const int count = a->n - j < ATTEND_GROUP ? a->n - j : ATTEND_GROUP;
        const attend_elem *keys[ATTEND_GROUP];
        // Places without a key repeat the last one; their scores are not stored.
        for (int t = 0; t < ATTEND_GROUP; t++)
            keys[t] = attend_row(a->k, a, j + (t < count ? t : count - 1));
        for (int h = 0; h < a->heads; h++) {
            const size_t skip = (size_t)h * (size_t)dk;
            float *score = a->weights + (size_t)h * (size_t)a->n + j;
            vf lanes[ATTEND_GROUP];
            for (int t = 0; t < ATTEND_GROUP; t += VF_SUMS) {
                if (t >= count) // never where VF_SUMS is 16
                    for (int i = 0; i < VF_SUMS; i++) lanes[t + i] = vf_set(0.0f);
                else
                    attend_lanes(lanes + t, a->q + skip, keys + t, skip, dk);
            }
            const vf e = vf_mul(vf_fold_add_16(lanes), scale);
            if (count == ATTEND_GROUP)
                vf_store(score, e);
            else
                vf_store_n(score, e, count);
        }
    }
}

// `vectors` vectors of values for each of `heads` neighbouring heads: eight chains of fma hide the
// latency of one. v and out begin at the first head's part, p at its weights.
static inline __attribute__((always_inline)) void attend_values(const dgm_attend_args *a,
                                                                const float *p,
                                                                const attend_elem *v, float *out,
                                                                const int heads, const int vectors)
{
    vf sum[8];
    for (int i = 0; i < heads * vectors; i++) sum[i] = vf_set(0.0f);
    for (int j = 0; j < a->n; j++) {
        const attend_elem *row = attend_row(v, a, j);
        for (int h = 0; h < heads; h++) {
            const vf w = vf_set(p[(size_t)h * (size_t)a->n + (size_t)j]);
            for (int i = 0; i < vectors; i++) {
                vf *s = &sum[h * vectors + i];
                *s = vf_fma(w, ATTEND_LOAD(row + 16 * (h * vectors + i)), *s);
            }
        }
    }
    for (int i = 0; i < heads * vectors; i++) vf_store(out + 16 * i, sum[i]);
}

static inline void attend_values_rest(const dgm_attend_args *a, const float *p,
                                      const attend_elem *v, float *out, int n)
{
    vf sum = vf_set(0.0f);
    for (int j = 0; j < a->n; j++)
        sum = vf_fma(vf_set(p[j]), ATTEND_LOAD_N(attend_row(v, a, j), n), sum);
    vf_store_n(out, sum, n);
}

// One head of any width.
static void attend_values_head(const dgm_attend_args *a, const float *p, const attend_elem *v,
                               float *out)
{
    int d = 0;
    for (; d + 128 <= a->dv; d += 128) attend_values(a, p, v + d, out + d, 1, 8);
    for (; d + 64 <= a->dv; d += 64) attend_values(a, p, v + d, out + d, 1, 4);
    for (; d + 16 <= a->dv; d += 16) attend_values(a, p, v + d, out + d, 1, 1);
    if (d < a->dv) attend_values_rest(a, p, v + d, out + d, a->dv - d);
}

static void ATTEND(const dgm_attend_args *a)
{
    switch (a->dk) {
    case 32:
        attend_scores(a, 32);
        break;
    case 64:
        attend_scores(a, 64);
        break;
    case 128:
        attend_scores(a, 128);
        break;
    default:
        attend_scores(a, a->dk);
        break;
    }
    for (int h = 0; h < a->heads; h++) reduce_softmax(a->weights + (size_t)h * (size_t)a->n, a->n);
    int h = 0;
    while (h < a->heads) {
        const float *p = a->weights + (size_t)h * (size_t)a->n;
        const attend_elem *v = (const attend_elem *)a->v + (size_t)h * (size_t)a->dv;
        float *out = a->out + (size_t)h * (size_t)a->dv;
        if (a->dv == 64 && a->heads - h >= 2) {
            attend_values(a, p, v, out, 2, 4);
            h += 2;
        } else if (a->dv == 32 && a->heads - h >= 4) {
            attend_values(a, p, v, out, 4, 2);
            h += 4;
        } else {
            attend_values_head(a, p, v, out);
            h++;
        }
    }
}

#ifdef ATTEND_ADD_F32
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
    const dgm_attend_args sum = {.n = a->n, .stride = (size_t)a->dv, .dv = a->dv};
    attend_values_head(&sum, a->weights, a->v, a->out);
}
#endif
