// SPDX-License-Identifier: MIT
// Checks of top-k against a full sort: order, ties, unused places, several calls, lists of ids.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkkernel/checkkernel.h"

enum { X, IDS, SCORE, TOKEN, ALL, COUNT_MAX = 4200, K_MAX = 64 };

typedef struct entry {
    float score;
    int32_t token;
} entry;

static int by_rank(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return (x->token > y->token) - (x->token < y->token);
}

// Scores with many ties, -inf and NaN when asked for.
static void fill_scores(ck *c, float *x, int n, ck_kind kind)
{
    ck_fill(c, x, (size_t)n, kind);
    if (ck_below(c, 2)) return;
    for (int i = 0; i < n; i++)
        if (isfinite(x[i])) x[i] = (float)ck_below(c, 9);
}

// Offers n scores in random pieces, in ascending or any order of pieces.
static void offer(ck *c, dgm_topk *list, const float *x, const int32_t *ids, int n)
{
    const int cut = ck_below(c, n + 1), base = ids ? 0 : 1000;
    const bool backward = ck_below(c, 2);
    for (int part = 0; part < 2; part++) {
        const bool second = backward ? part == 0 : part == 1;
        const int from = second ? cut : 0, count = second ? n - cut : cut;
        c->now->topk_f32(list, x + from, count, base + from, ids ? ids + from : NULL);
    }
}

static void one_case(ck *c, int n, int k, ck_kind kind)
{
    static entry all[COUNT_MAX];
    ck_begin(c, "n %d k %d kind %d", n, k, (int)kind);
    float *x = ck_floats(c, X, (size_t)n), *score = ck_floats(c, SCORE, (size_t)k);
    int32_t *token = ck_bytes(c, TOKEN, (size_t)k * 4, 4), *ids = NULL;
    fill_scores(c, x, n, kind);
    if (ck_below(c, 2)) {
        ids = ck_bytes(c, IDS, (size_t)n * 4, 4);
        for (int i = 0, id = 0; i < n; i++) ids[i] = id += 1 + ck_below(c, 5);
    }
    int count = 0;
    for (int i = 0; i < n; i++)
        if (x[i] > -INFINITY) all[count++] = (entry){x[i], ids ? ids[i] : 1000 + i};
    qsort(all, (size_t)count, sizeof all[0], by_rank);
    for (int i = 0; i < k; i++) {
        score[i] = -INFINITY;
        token[i] = -1;
    }
    dgm_topk list = {score, token, k};
    offer(c, &list, x, ids, n);
    for (int i = 0; i < k; i++) {
        const entry want = i < count ? all[i] : (entry){-INFINITY, -1};
        // Equal scores are equal even if one is -0.
        if (score[i] != want.score || token[i] != want.token) {
            ck_fail(c, "place %d is (%g, %d), expected (%g, %d)", i, (double)score[i],
                    (int)token[i], (double)want.score, (int)want.token);
            return;
        }
    }
    ck_guards(c);
}

void check_topk_f32(ck *c)
{
    static const int widths[] = {1, 2, 4, 5, 12, 16, 30, K_MAX};
    for (int i = 0; ck_sizes[i] && !c->failed; i++)
        for (int kind = 0; kind < CK_KINDS && !c->failed; kind++)
            for (int k = 0; k < 3 && !c->failed; k++)
                one_case(c, ck_sizes[i], widths[ck_below(c, 8)], (ck_kind)kind);
    enum { N = 32000 };
    ck_begin(c, "benchmark");
    float *x = ck_aligned(c, X, N), *score = ck_aligned(c, SCORE, 4);
    int32_t *token = ck_bytes(c, TOKEN, 16, 4);
    dgm_topk list = {score, token, 4};
    c->now->topk_f32(&list, x, 0, 0, NULL);
    for (ck_bench_begin(c, "n = 32000, k = 4"); ck_bench_next(c);) {
        for (int i = 0; i < 4; i++) {
            score[i] = -INFINITY;
            token[i] = -1;
        }
        c->now->topk_f32(&list, x, N, 0, NULL);
    }
    enum { CHUNK = 512, WIDE = 9 };
    score = ck_aligned(c, SCORE, WIDE);
    token = ck_bytes(c, TOKEN, WIDE * sizeof *token, 4);
    list = (dgm_topk){score, token, WIDE};
    for (ck_bench_begin(c, "n = 512, k = 9"); ck_bench_next(c);) {
        for (int i = 0; i < WIDE; i++) {
            score[i] = -INFINITY;
            token[i] = -1;
        }
        c->now->topk_f32(&list, x, CHUNK, 0, NULL);
    }
}
