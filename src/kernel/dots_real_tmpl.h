// SPDX-License-Identifier: MIT
// The text of dots_f32 and dots_bf16, included once for each by dots_tmpl.h with
//     DOTS, DOTS_4               names of the function and of its inner loop
//     DOTS_TYPE                  what a number is stored as
//     DOTS_LOAD, DOTS_LOAD_N     16 of them, or the first few, as f32
// An element is the contract's reduction: lane i mod 16, in order of i, then the fold. Four outputs go
// side by side, so that four chains hide the latency of one; rows come inside, since the four rows
// of weights then lie in the first cache. Outputs are far apart in memory and too short for a
// hardware prefetcher to learn: those of the next blocks are asked for by hand (dots_int.h).
static inline void DOTS_4(const DOTS_TYPE *a, const dots_rows *b, int k, bool fetch,
                          float out[DOTS_COLUMNS])
{
    const int whole = k & ~15, rest = k & 15;
    const DOTS_TYPE *w0 = (const DOTS_TYPE *)(const void *)b->w[0];
    const DOTS_TYPE *w1 = (const DOTS_TYPE *)(const void *)b->w[1];
    const DOTS_TYPE *w2 = (const DOTS_TYPE *)(const void *)b->w[2];
    const DOTS_TYPE *w3 = (const DOTS_TYPE *)(const void *)b->w[3];
    vf s0 = vf_set(0.0f), s1 = s0, s2 = s0, s3 = s0;
    for (int i = 0; i < whole; i += 16) {
        const vf x = DOTS_LOAD(a + i);
        if (fetch) dots_fetch(b, (size_t)i * sizeof(DOTS_TYPE));
        s0 = vf_fma(x, DOTS_LOAD(w0 + i), s0);
        s1 = vf_fma(x, DOTS_LOAD(w1 + i), s1);
        s2 = vf_fma(x, DOTS_LOAD(w2 + i), s2);
        s3 = vf_fma(x, DOTS_LOAD(w3 + i), s3);
    }
    if (rest) {
        const vf x = DOTS_LOAD_N(a + whole, rest);
        s0 = vf_fma(x, DOTS_LOAD_N(w0 + whole, rest), s0);
        s1 = vf_fma(x, DOTS_LOAD_N(w1 + whole, rest), s1);
        s2 = vf_fma(x, DOTS_LOAD_N(w2 + whole, rest), s2);
        s3 = vf_fma(x, DOTS_LOAD_N(w3 + whole, rest), s3);
    }
    out[0] = vf_fold_add(s0);
    out[1] = vf_fold_add(s1);
    out[2] = vf_fold_add(s2);
    out[3] = vf_fold_add(s3);
}

static void DOTS(const dgm_dots_args *g)
{
    for (int i = 0; i < g->count; i += DOTS_COLUMNS) {
        const dots_rows b = dots_block(g, i, sizeof(DOTS_TYPE));
        for (int r = 0; r < g->m; r++) {
            float sums[DOTS_COLUMNS];
            DOTS_4((const DOTS_TYPE *)g->a + (size_t)r * (size_t)g->lda, &b, g->k, r == 0, sums);
            float *c = g->c + (size_t)r * (size_t)g->ldc + i;
            for (int j = 0; j < b.count; j++)
                c[j] = g->bias ? sums[j] + g->bias[g->ids[i + j]] : sums[j];
        }
    }
}

#undef DOTS
#undef DOTS_4
#undef DOTS_TYPE
#undef DOTS_LOAD
#undef DOTS_LOAD_N
