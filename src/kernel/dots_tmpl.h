// SPDX-License-Identifier: MIT
// A few outputs of a layer from weights that lie by rows, over a 16-lane vector: dots_f32.
//
// dots_<isa>.c includes a vec_<isa>.h, names the function (DOTS_F32) and includes this file. An
// element is the contract's reduction: lane i mod 16, in order of i, then the fold. Four outputs go
// side by side, so that four chains hide the latency of one; rows come inside, since the four rows
// of weights then lie in the first cache. Outputs are far apart in memory and too short for a
// hardware prefetcher to learn: those of the next blocks are asked for by hand (dots_int.h).
#include "kernel/dots_int.h"
#include "kernel/reduce_tmpl.h"

static inline void dots_4_f32(const float *a, const dots_rows *b, int k, bool fetch,
                              float out[DOTS_COLUMNS])
{
    const int whole = k & ~15, rest = k & 15;
    const float *w0 = (const float *)(const void *)b->w[0];
    const float *w1 = (const float *)(const void *)b->w[1];
    const float *w2 = (const float *)(const void *)b->w[2];
    const float *w3 = (const float *)(const void *)b->w[3];
    vf s0 = vf_set(0.0f), s1 = s0, s2 = s0, s3 = s0;
    for (int i = 0; i < whole; i += 16) {
        const vf x = vf_load(a + i);
        if (fetch) dots_fetch(b, (size_t)i * sizeof(float));
        s0 = vf_fma(x, vf_load(w0 + i), s0);
        s1 = vf_fma(x, vf_load(w1 + i), s1);
        s2 = vf_fma(x, vf_load(w2 + i), s2);
        s3 = vf_fma(x, vf_load(w3 + i), s3);
    }
    if (rest) {
        const vf x = vf_load_n(a + whole, rest);
        s0 = vf_fma(x, vf_load_n(w0 + whole, rest), s0);
        s1 = vf_fma(x, vf_load_n(w1 + whole, rest), s1);
        s2 = vf_fma(x, vf_load_n(w2 + whole, rest), s2);
        s3 = vf_fma(x, vf_load_n(w3 + whole, rest), s3);
    }
    out[0] = vf_fold_add(s0);
    out[1] = vf_fold_add(s1);
    out[2] = vf_fold_add(s2);
    out[3] = vf_fold_add(s3);
}

static void DOTS_F32(const dgm_dots_args *g)
{
    for (int i = 0; i < g->count; i += DOTS_COLUMNS) {
        const dots_rows b = dots_block(g, i, sizeof(float));
        for (int r = 0; r < g->m; r++) {
            float sums[DOTS_COLUMNS];
            dots_4_f32((const float *)g->a + (size_t)r * (size_t)g->lda, &b, g->k, r == 0, sums);
            float *c = g->c + (size_t)r * (size_t)g->ldc + i;
            for (int j = 0; j < b.count; j++)
                c[j] = g->bias ? sums[j] + g->bias[g->ids[i + j]] : sums[j];
        }
    }
}
