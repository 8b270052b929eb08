// SPDX-License-Identifier: MIT
// Attention of up to four query rows over cached keys and values, on a 16-lane vector.
//
// attend_<isa>.c includes a vec_<isa>.h, names ATTEND and ATTEND_ADD_F32 and includes this;
// attend_f16_<isa>.c names ATTEND alone and defines ATTEND_HALF: keys and values are then half
// precision, converted exactly when they are loaded.
// Per head: e_j = fold(lanes of q . k_j) * scale, or with a bias fma(fold, scale, bias_j); p =
// softmax(e) (reduce_tmpl.h);
// out = chain of fma over j = 0..n-1. The lane sums of 16 keys are folded together by a tree of
// transposing adds, which has the fold order of the contract without one reduction per key.
// The keys that all queries share are loaded once for all of them, the rest query by query; the
// numbers are the same either way. No keys: out is zero. A NaN or +inf score makes the row NaN.
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

#define ATTEND_FN static inline __attribute__((always_inline))
#define ATTEND_FETCH(p) __builtin_prefetch(p, 0, 2)

enum {
    ATTEND_GROUP = 16,                     // keys whose sums are folded together
    ATTEND_LINE = 64 / sizeof(attend_elem) // elements of a cache line
};

ATTEND_FN const attend_elem *attend_row(const void *base, const dgm_attend_args *a,
                                        const int32_t *index, int j)
{
    const size_t row = index ? (size_t)index[j] : (size_t)j;
    return (const attend_elem *)base + row * a->stride;
}

// The row that the next call reads in place of row j; any row if there is none.
ATTEND_FN const attend_elem *attend_ahead(const void *base, const dgm_attend_args *a,
                                          const attend_elem *here, int j)
{
    return j < a->next_n ? (const attend_elem *)base + (size_t)a->next[j] * a->stride : here;
}

// Query rows first .. first + count - 1, one head at a time.
typedef struct attend_walk {
    const dgm_attend_args *a;
    int first, begin, end; // keys begin .. end - 1 of the first query's list
} attend_walk;

// Lane sums of q . key for `width` keys and `count` queries, n elements from `skip` on.
ATTEND_FN void attend_lanes(vf lanes[][ATTEND_GROUP], const attend_walk *w, const int count, int at,
                            const int width, const attend_elem *const *keys,
                            const attend_elem *const *ahead, size_t skip, const int n)
{
    const int whole = n & ~15, rest = n & 15;
    const float *const *q = w->a->q + w->first;
    vf sum[16];
    for (int i = 0; i < count * width; i++) sum[i] = vf_set(0.0f);
    for (int i = 0; i < whole; i += 16)
        for (int t = 0; t < width; t++) {
            const vf k = ATTEND_LOAD(keys[at + t] + skip + i);
            if (i % ATTEND_LINE == 0) ATTEND_FETCH(ahead[at + t] + skip + i);
            for (int r = 0; r < count; r++)
                sum[r * width + t] = vf_fma(vf_load(q[r] + skip + i), k, sum[r * width + t]);
        }
    for (int t = 0; rest && t < width; t++) {
        const vf k = ATTEND_LOAD_N(keys[at + t] + skip + whole, rest);
        for (int r = 0; r < count; r++)
            sum[r * width + t] =
                vf_fma(vf_load_n(q[r] + skip + whole, rest), k, sum[r * width + t]);
    }
    for (int r = 0; r < count; r++)
        for (int t = 0; t < width; t++) lanes[r][at + t] = sum[r * width + t];
}

// Scores of a walk, 16 keys after 16 keys and head by head. dk is given again, and whether there is a
// bias, so that the usual cases can be constants.
ATTEND_FN void attend_scores(const attend_walk *w, const int count, const int dk, const bool biased)
{
    enum { SPAN = VF_SUMS < 8 ? VF_SUMS : 8 };
    const dgm_attend_args *a = w->a;
    const int width = count * SPAN <= 16 ? SPAN : 16 / count;
    const vf scale = vf_set(a->scale);
    for (int j = w->begin; j < w->end; j += ATTEND_GROUP) {
        const int n = w->end - j < ATTEND_GROUP ? w->end - j : ATTEND_GROUP;
        const attend_elem *keys[ATTEND_GROUP], *ahead[ATTEND_GROUP];
        // Places without a key repeat the last one; their scores are overwritten or not looked at.
        for (int t = 0; t < ATTEND_GROUP; t++) {
            const int key = j + (t < n ? t : n - 1);
            keys[t] = attend_row(a->k, a, a->index[w->first], key);
            ahead[t] = attend_ahead(a->k, a, keys[t], key);
        }
        for (int h = 0; h < a->heads; h++) {
            const size_t skip = (size_t)h * (size_t)dk;
            vf lanes[DGM_ATTEND_QUERIES][ATTEND_GROUP];
            for (int t = 0; t < ATTEND_GROUP; t += width) {
                if (t < n)
                    attend_lanes(lanes, w, count, t, width, keys, ahead, skip, dk);
                else
                    for (int r = 0; r < count; r++)
                        for (int i = 0; i < width; i++) lanes[r][t + i] = vf_set(0.0f);
            }
            for (int r = 0; r < count; r++) {
                vf e = vf_fold_add_16(lanes[r]);
                if (biased) {
                    const float *add = a->bias[w->first + r] + (size_t)h * a->bias_stride + j;
                    e = vf_fma(e, scale, n == ATTEND_GROUP ? vf_load(add) : vf_load_n(add, n));
                } else {
                    e = vf_mul(e, scale);
                }
                const size_t row = (size_t)(h * dgm_attend_stride(a->n[w->first + r]));
                vf_store(a->weights[w->first + r] + row + j, e);
            }
        }
    }
}

// `vectors` vectors of values from d on for each of `heads` neighbouring heads and `count` queries:
// enough chains of fma to hide the latency of one.
ATTEND_FN void attend_values(const attend_walk *w, const int count, int h, int d, const int heads,
                             const int vectors)
{
    const dgm_attend_args *a = w->a;
    const size_t skip = (size_t)h * (size_t)a->dv + (size_t)d;
    const int per = heads * vectors; // with several heads, d is 0 and vectors cover dv
    int stride[DGM_ATTEND_QUERIES];
    for (int r = 0; r < count; r++) stride[r] = dgm_attend_stride(a->n[w->first + r]);
    vf sum[16];
    for (int r = 0; r < count; r++)
        for (int i = 0; i < per; i++)
            sum[r * per + i] =
                w->begin ? vf_load(a->out[w->first + r] + skip + 16 * i) : vf_set(0.0f);
    for (int j = w->begin; j < w->end; j++) {
        const attend_elem *v = attend_row(a->v, a, a->index[w->first], j);
        const attend_elem *ahead = attend_ahead(a->v, a, v, j);
        for (int g = 0; g < heads; g++) {
            vf row[8];
            for (int i = 0; i < vectors; i++) {
                const size_t at = skip + (size_t)(16 * (g * vectors + i));
                row[i] = ATTEND_LOAD(v + at);
                if (16 * i % ATTEND_LINE == 0) ATTEND_FETCH(ahead + at);
            }
            for (int r = 0; r < count; r++) {
                const size_t line = (size_t)((h + g) * stride[r]);
                const vf p = vf_set(a->weights[w->first + r][line + (size_t)j]);
                for (int i = 0; i < vectors; i++) {
                    vf *s = &sum[r * per + g * vectors + i];
                    *s = vf_fma(p, row[i], *s);
                }
            }
        }
    }
    for (int r = 0; r < count; r++)
        for (int i = 0; i < per; i++)
            vf_store(a->out[w->first + r] + skip + 16 * i, sum[r * per + i]);
}

// The last elements of one head, for one query.
static inline void attend_values_rest(const attend_walk *w, int r, int h, int d)
{
    const dgm_attend_args *a = w->a;
    const size_t skip = (size_t)h * (size_t)a->dv + (size_t)d;
    const float *p = a->weights[r] + h * dgm_attend_stride(a->n[r]);
    const int n = a->dv - d;
    vf sum = w->begin ? vf_load_n(a->out[r] + skip, n) : vf_set(0.0f);
    for (int j = w->begin; j < w->end; j++) {
        const attend_elem *v = attend_row(a->v, a, a->index[w->first], j);
        sum = vf_fma(vf_set(p[j]), ATTEND_LOAD_N(v + skip, n), sum);
    }
    vf_store_n(a->out[r] + skip, sum, n);
}

// One head of any width.
ATTEND_FN void attend_values_head(const attend_walk *w, const int count, int h)
{
    const int dv = w->a->dv;
    int d = 0;
    for (; d + 64 <= dv; d += 64) attend_values(w, count, h, d, 1, 4);
    for (; d + 16 <= dv; d += 16) attend_values(w, count, h, d, 1, 1);
    for (int r = 0; d < dv && r < count; r++) attend_values_rest(w, w->first + r, h, d);
}

// All heads, in groups that fill the registers.
ATTEND_FN void attend_values_all(const attend_walk *w, const int count)
{
    const dgm_attend_args *a = w->a;
    const int group = a->dv == 64 ? (count > 2 ? 1 : 2) : a->dv == 32 ? (count > 2 ? 2 : 4) : 1;
    int h = 0;
    for (; group > 1 && a->heads - h >= group; h += group) {
        if (a->dv == 64)
            attend_values(w, count, h, 0, count > 2 ? 1 : 2, 4);
        else
            attend_values(w, count, h, 0, count > 2 ? 2 : 4, 2);
    }
    for (; h < a->heads; h++) attend_values_head(w, count, h);
}

ATTEND_FN void attend_scores_of(const attend_walk *w, const int count)
{
    if (w->a->bias_stride)
        attend_scores(w, count, w->a->dk, true);
    else if (w->a->dk == 64)
        attend_scores(w, count, 64, false);
    else if (w->a->dk == 32)
        attend_scores(w, count, 32, false);
    else
        attend_scores(w, count, w->a->dk, false);
}

// `count` queries: what they share together, the rest one by one.
ATTEND_FN void attend_queries(const dgm_attend_args *a, int first, const int count)
{
    const attend_walk together = {a, first, 0, count > 1 ? a->shared : a->n[first]};
    attend_scores_of(&together, count);
    for (int r = first; r < first + count && count > 1; r++) {
        const attend_walk alone = {a, r, a->shared, a->n[r]};
        attend_scores_of(&alone, 1);
    }
    for (int r = first; r < first + count; r++)
        for (int h = 0; h < a->heads; h++)
            reduce_softmax_padded(a->weights[r] + h * dgm_attend_stride(a->n[r]), a->n[r]);
    attend_values_all(&together, count);
    for (int r = first; r < first + count && count > 1; r++) {
        const attend_walk alone = {a, r, a->shared, a->n[r]};
        if (a->n[r] > a->shared) attend_values_all(&alone, 1);
    }
}

static void ATTEND(const dgm_attend_args *a)
{
    int r = 0;
    if (VF_SUMS >= 16 && a->shared > 0) { // registers for several rows
        for (; a->queries - r >= 4; r += 4) attend_queries(a, r, 4);
        for (; a->queries - r >= 2; r += 2) attend_queries(a, r, 2);
    }
    for (; r < a->queries; r++) attend_queries(a, r, 1);
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
    const dgm_attend_args sum = {.out = {a->out},
                                 .weights = {a->weights},
                                 .n = {a->n},
                                 .queries = 1,
                                 .v = a->v,
                                 .stride = (size_t)a->dv,
                                 .heads = 1,
                                 .dv = a->dv};
    const attend_walk walk = {&sum, 0, 0, a->n};
    attend_values_head(&walk, 1, 0);
}
#endif
