// SPDX-License-Identifier: MIT
// Do a model's probabilities behind a context add up to 1? For models of any size: of the millions
// of words only those that were seen behind the context are looked at, as the others share what it
// backs off to,
//
//     S(h) = sum over w seen behind h of p(w | h) + backoff(h) (S(h') - sum over them of p(w | h'))
//
// where h' is h without its first word and S() of nothing is the sum over all words but <s>, which
// is never asked for. Numbers are the model's own, so this is the sum over the whole vocabulary,
// up to rounding. Called by `dragoman lm check` and the tests.
#include <math.h>
#include <string.h>

#include "base/lower_bound.h"
#include "lm/lm.h"

typedef struct context {
    uint32_t word[DGM_LM_ORDER_MAX];
    int length;
} context;

static dgm_lm_state state_behind(const dgm_lm *lm, const uint32_t *words, int count)
{
    dgm_lm_state s;
    dgm_lm_empty(&s);
    for (int i = 0; i < count; i++) dgm_lm_step(lm, &s, words[i], &s, NULL);
    return s;
}

static double sum_of_words(const dgm_lm *lm)
{
    double sum = 0;
    for (uint32_t w = 0; w < lm->words; w++)
        if (w != lm->bos) sum += pow(10, (double)dgm_lm_prob(lm, 1, w));
    return sum;
}

// S of the last `length` words before `end`; `all` is S of nothing.
static double sum_behind(const dgm_lm *lm, const uint32_t *end, int length, double all)
{
    dgm_lm_state s = state_behind(lm, end - length, length);
    if (length == 0 || s.length == 0) return all;
    double shorter = sum_behind(lm, end, length - 1, all);
    uint32_t node = s.length == length ? s.node[length - 1] : DGM_LM_NONE;
    if (node == DGM_LM_NONE) return shorter; // never seen: it backs off for nothing
    dgm_lm_state less = state_behind(lm, end - length + 1, length - 1);
    uint64_t begin, stop;
    dgm_lm_children(lm, length, node, &begin, &stop);
    double seen = 0, below = 0;
    for (uint64_t i = begin; i < stop; i++) {
        uint32_t w = dgm_lm_node_word(lm, length + 1, i);
        seen += pow(10, (double)dgm_lm_prob(lm, length + 1, i));
        below += pow(10, dgm_lm_step(lm, &less, w, NULL, NULL));
    }
    return seen + pow(10, (double)dgm_lm_backoff(lm, length, node)) * (shorter - below);
}

static uint64_t first_child(const dgm_lm *lm, int order, uint64_t i)
{
    uint64_t begin, end;
    dgm_lm_children(lm, order, (uint32_t)i, &begin, &end);
    return begin;
}

// The words of node i of an order: parents are found by bisection over their children.
static context words_of(const dgm_lm *lm, int order, uint64_t i)
{
    context c = {.length = order};
    for (int n = order; n > 1; n--) {
        c.word[n - 1] = dgm_lm_node_word(lm, n, i);
        uint64_t behind; // the parent: the last one whose children begin at i or before
        DGM_LOWER_BOUND(uint64_t, behind, 1, lm->level[n - 1].count,
                        first_child(lm, n - 1, behind) <= i);
        i = behind - 1;
    }
    c.word[0] = (uint32_t)i;
    return c;
}

double dgm_lm_check(const dgm_lm *lm, uint64_t contexts, uint64_t seed, double *mean)
{
    double all = sum_of_words(lm), worst = fabs(all - 1), total = 0;
    uint64_t state = seed * 2654435761u + 1, tried = 0;
    for (uint64_t k = 0; k < contexts && lm->order > 1; k++) {
        int order = 1 + (int)(k % (uint64_t)(lm->order - 1)); // every length as often
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (lm->level[order].count == 0) continue;
        context c = words_of(lm, order, (state >> 16) % lm->level[order].count);
        bool ends = false; // nothing follows </s>
        for (int i = 0; i < c.length; i++) ends = ends || c.word[i] == lm->eos;
        if (ends) continue;
        double off = fabs(sum_behind(lm, c.word + c.length, c.length, all) - 1);
        if (off > worst) worst = off;
        total += off;
        tried++;
    }
    if (mean) *mean = tried ? total / (double)tried : fabs(all - 1);
    return worst;
}
