// SPDX-License-Identifier: MIT
// Reductions of one row and softmax over a 16-lane vector, shared by rows_tmpl.h and attend_tmpl.h.
//
// One accumulator vector, in order of i: the fixed order of the numeric contract. Included after a
// vec_<isa>.h; all functions are static.
#ifndef DGM_KERNEL_REDUCE_TMPL_H
#define DGM_KERNEL_REDUCE_TMPL_H

#include <math.h>

#include "kernel/math_tmpl.h"

enum { REDUCE_FEW = 4 }; // vectors of a row that stay in registers

static inline float reduce_sum(const float *x, int n)
{
    const int whole = n & ~15, rest = n & 15;
    vf sum = vf_set(0.0f);
    for (int i = 0; i < whole; i += 16) sum = vf_add(sum, vf_load(x + i));
    if (rest) sum = vf_add(sum, vf_load_n(x + whole, rest));
    return vf_fold_add(sum);
}

static inline float reduce_dot(const float *a, const float *b, int n)
{
    const int whole = n & ~15, rest = n & 15;
    vf sum = vf_set(0.0f);
    for (int i = 0; i < whole; i += 16) sum = vf_fma(vf_load(a + i), vf_load(b + i), sum);
    if (rest) sum = vf_fma(vf_load_n(a + whole, rest), vf_load_n(b + whole, rest), sum);
    return vf_fold_add(sum);
}

// A NaN comes through if no later element shares its lane; callers that care look at the sum.
static inline float reduce_max(const float *x, int n)
{
    const int whole = n & ~15, rest = n & 15;
    const vf lowest = vf_set(-INFINITY);
    vf max = lowest;
    for (int i = 0; i < whole; i += 16) max = vf_max(max, vf_load(x + i));
    if (rest) max = vf_max(max, vf_blend_n(vf_load_n(x + whole, rest), lowest, rest));
    return vf_fold_max(max);
}

// x = exp(x - max) * (1 / sum). A row of -inf becomes zeros; +inf or NaN anywhere makes every
// element NaN.
static inline void reduce_softmax(float *x, int n)
{
    const int whole = n & ~15, rest = n & 15;
    const float top = reduce_max(x, n);
    vf max = vf_set(top), sum = vf_set(0.0f);
    // -inf - -inf is NaN; with 0 instead the exponentials are 0.
    if (top == -INFINITY) max = vf_set(0.0f);
    for (int i = 0; i < whole; i += 16) {
        vf e = math_exp_down(vf_sub(vf_load(x + i), max));
        vf_store(x + i, e);
        sum = vf_add(sum, e);
    }
    if (rest) {
        vf e = math_exp_down(vf_sub(vf_load_n(x + whole, rest), max));
        vf_store_n(x + whole, e, rest);
        sum = vf_add(sum, vf_keep_n(e, rest));
    }
    const float total = vf_fold_add(sum);
    // Zero only if every element was -inf: the largest contributes exp(0) = 1.
    if (total == 0.0f) return;
    const vf scale = vf_set(1.0f / total);
    for (int i = 0; i < whole; i += 16) vf_store(x + i, vf_mul(vf_load(x + i), scale));
    if (rest) vf_store_n(x + whole, vf_mul(vf_load_n(x + whole, rest), scale), rest);
}

// The same for a row that is padded to whole vectors, `vectors` of them, the last with n elements if n
// is not 0: all of it in registers, without masks. What a masked store wrote, and what lies behind it,
// can be loaded again only when it has reached the cache. The padding becomes 0.
static inline __attribute__((always_inline)) void reduce_softmax_few(float *x, const int vectors, int n)
{
    vf e[REDUCE_FEW], max = vf_set(-INFINITY), sum = vf_set(0.0f);
    for (int i = 0; i < vectors; i++) e[i] = vf_load(x + 16 * i);
    if (n) e[vectors - 1] = vf_blend_n(e[vectors - 1], max, n); // exp gives 0
    for (int i = 0; i < vectors; i++) max = vf_max(max, e[i]);
    const float top = vf_fold_max(max);
    max = vf_set(top == -INFINITY ? 0.0f : top);
    for (int i = 0; i < vectors; i++) e[i] = math_exp_down(vf_sub(e[i], max));
    for (int i = 0; i < vectors; i++) sum = vf_add(sum, e[i]);
    const float total = vf_fold_add(sum);
    const vf scale = vf_set(total == 0.0f ? 1.0f : 1.0f / total);
    for (int i = 0; i < vectors; i++) vf_store(x + 16 * i, vf_mul(e[i], scale));
}

// Softmax of n elements in a row that is padded to whole vectors.
static inline void reduce_softmax_padded(float *x, int n)
{
    const int vectors = (n + 15) / 16, rest = n & 15;
    if (vectors == 1) {
        reduce_softmax_few(x, 1, rest);
    } else if (vectors == 2) {
        reduce_softmax_few(x, 2, rest);
    } else if (vectors == 3) {
        reduce_softmax_few(x, 3, rest);
    } else if (vectors == REDUCE_FEW) {
        reduce_softmax_few(x, REDUCE_FEW, rest);
    } else {
        float *last = x + (n & ~15);
        if (rest) vf_store(last, vf_blend_n(vf_load(last), vf_set(-INFINITY), rest));
        reduce_softmax(x, 16 * vectors);
    }
}

#endif
