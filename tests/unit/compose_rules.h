// SPDX-License-Identifier: MIT
// The rules of compose.h as they are written down: whether a sentence is allowed, and its score.
#ifndef DGM_TESTS_UNIT_COMPOSE_RULES_H
#define DGM_TESTS_UNIT_COMPOSE_RULES_H

#include "unit/compose_asked.h"

// ---- the rules ---------------------------------------------------------------------------------

// How often a term may be said: as often as it and another of the same words may together, 0: any number. Where another
// demand holds its words, they may be said besides.
static int limit_of(const problem *p, int term)
{
    const words *own = &p->terms[term];
    int sum = 0;
    if (p->begin.count && occurrences(&p->begin, own)) return 0;
    if (p->end.count && !same_words(&p->end, own) && occurrences(&p->end, own)) return 0;
    for (int t = 0; t < p->term_count; t++) {
        if (same_words(&p->terms[t], own)) {
            if (!p->most[t]) return 0;
            sum += p->most[t];
        } else if (occurrences(&p->terms[t], own)) {
            return 0;
        }
    }
    return sum;
}

static bool meets(const problem *p, const words *w)
{
    if (!(p->kinds & CONSTRAINTS)) return true;
    for (int t = 0; t < p->term_count; t++) {
        int wanted = 1;
        for (int k = 0; k < t; k++) wanted += same_words(&p->terms[k], &p->terms[t]);
        const int said = occurrences(w, &p->terms[t]), most = limit_of(p, t);
        if (said < wanted || (most && said > most)) return false;
    }
    if (p->ban.count && occurrences(w, &p->ban)) return false;
    return stands_at(w, &p->begin, 0) && stands_at(w, &p->end, w->count - p->end.count);
}

// Share of the evidence that holds the n-gram; all in the order of writing.
static double posterior(const problem *p, const words *gram)
{
    static const double shares[] = {0.5, 0.3, 0.2};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        words w = p->right ? turn(&p->evidence[i]) : p->evidence[i];
        w.ids[w.count++] = p->end_token;
        if (occurrences(&w, gram)) sum += shares[i];
    }
    return sum;
}

// Is an n-gram forced on the model, word by word, by a beginning or an end? That may repeat itself.
static bool is_forced(const problem *p, const words *read, int at, int n)
{
    if (!(p->kinds & CONSTRAINTS)) return false;
    if (p->kinds & LATTICE && (p->pairs || p->right)) return false; // they are the lattice's matter
    return (!p->right && at + n <= p->begin.count) || ((p->right || p->both) && at >= read->count - p->end.count);
}

static bool repeats_itself(const problem *p, const words *read)
{
    const int n = p->beside == UNIGRAMS ? 1 : 2;
    for (int b = 1; b + n <= read->count; b++)
        for (int a = 0; a < b; a++)
            if (memcmp(read->ids + a, read->ids + b, (size_t)n * sizeof *read->ids) == 0 &&
                !(is_forced(p, read, a, n) && is_forced(p, read, b, n)))
                return true;
    return false;
}

// What the word at `at` of a sentence with its end adds to the sum.
static double rule(const problem *p, const words *w, int at)
{
    double add = 0;
    bool said = false;
    for (int i = 0; i < at; i++) said |= w->ids[i] == w->ids[at];
    if (p->kinds & REPETITION && said) add -= log((double)repetition);
    if (!(p->kinds & LMBR)) return add;
    add += (double)weights.theta[0];
    for (int n = 1; n <= DGM_LMBR_ORDER && n <= at + 1; n++) {
        words gram = {.count = n};
        memcpy(gram.ids, w->ids + at + 1 - n, (size_t)n * sizeof *gram.ids);
        add += (double)weights.theta[n] * posterior(p, &gram);
    }
    return add;
}

// The words that may stand at a place, in the order of writing.
static unsigned candidates_of(const problem *p, int before, int place)
{
    if (p->lists == WHOLE || p->rescored) return ~0u;
    return p->own[p->pairs ? place / 2 : place] | p->needed | p->next[before];
}

static double log_share_of(const problem *p, int model, int before, int place, int word)
{
    const unsigned candidates = candidates_of(p, before, place);
    const float *row = last[model] + before * vocab, *now = table_time[model] + place * vocab;
    double z = 0;
    for (int k = 0; k < vocab; k++)
        if (candidates & bit_of(k)) z += exp((double)row[k] + (double)now[k]);
    if (!(candidates & bit_of(word))) return -INFINITY;
    return (double)row[word] + (double)now[word] - log(z);
}

static double log_share(const problem *p, int before, int place, int word)
{
    const double first = log_share_of(p, 0, before, place, word);
    return p->beside == ENSEMBLE ? (first + log_share_of(p, 1, before, place, word)) / MODELS : first;
}

// What the model says of a sentence, in the order of writing.
static double model_sum(const problem *p, const words *w)
{
    double sum = 0;
    for (int i = 0; i <= w->count; i++)
        sum += log_share(p, i ? w->ids[i - 1] : vocab - 1, i, i < w->count ? w->ids[i] : TOY_EOS);
    return sum;
}

// The same of a pair behind another.
static double pair_sum(const problem *p, const int32_t *before, int pair, int32_t left, int32_t right)
{
    return log_share(p, before[0], 2 * pair, left) + log_share(p, before[1], 2 * pair + 1, right);
}

// Of words in pairs, the best of all ways to write them: what a pair with an end says besides is free in one direction,
// unless there is a lattice, and from both ends the word in the middle may stand on either side.
static double pairs_sum(const problem *p, const words *w)
{
    const int32_t end = p->end_token;
    double best = -(double)INFINITY;
    for (int way = 0; way < 2; way++) {
        int32_t before[2] = {vocab - 1, TOY_EOS};
        const int n = w->count, lefts = p->both ? (way ? n / 2 : (n + 1) / 2) : n, rights = n - lefts;
        double sum = 0;
        const bool forced = p->both && !(p->kinds & LATTICE); // else they are the lattice's matter
        if (forced && (lefts < p->begin.count || rights < p->end.count)) continue;
        for (int t = 0; t < n / 2; t++) {
            const int32_t left = p->both ? w->ids[t] : w->ids[2 * t];
            const int32_t right = p->both ? w->ids[n - 1 - t] : w->ids[2 * t + 1];
            sum += pair_sum(p, before, t, left, right);
            before[0] = left;
            before[1] = right;
        }
        if (n % 2) {
            const int32_t word = p->both ? w->ids[n / 2] : w->ids[n - 1];
            if (way && !p->both) continue;
            best = fmax(best, sum + pair_sum(p, before, n / 2, way ? end : word, way ? word : end));
            continue;
        }
        best = fmax(best, sum + pair_sum(p, before, n / 2, end, end));
        for (int32_t x = FIRST; x < FIRST + WORDS && !p->both && !(p->kinds & LATTICE); x++)
            best = fmax(best, sum + pair_sum(p, before, n / 2, end, x));
    }
    return best;
}

// The sum of a whole sentence; -inf: something forbids it.
static double score_of(const problem *p, const words *read)
{
    words w = p->right ? turn(read) : *read;
    if (!meets(p, read) || (p->beside == MINIMUM && read->count < SHORTEST)) return -INFINITY;
    if (p->kinds & NO_REPEAT && repeats_itself(p, read)) return -INFINITY;
    double sum = (p->kinds & LMBR ? (double)weights.lambda : 1.0) * (p->pairs ? pairs_sum(p, &w) : model_sum(p, &w));
    if (p->kinds & LATTICE) sum += (double)lattice_weight * lattice_toy_score(p->lattice, read->ids, read->count);
    w.ids[w.count++] = p->end_token;
    for (int i = 0; i < w.count; i++) sum += rule(p, &w, i);
    return sum;
}

// Of so many words: a model of tables looks at all source tokens alike, in every step, with both words of a pair.
static double covered(const problem *p, int count)
{
    const int looks = p->pairs ? 2 * (count / 2 + 1) : count + 1;
    return p->beside == COVERAGE ? (double)coverage * SOURCE * log(fmin(1.0, (double)looks / SOURCE)) : 0.0;
}

static double best_of_all(const problem *p)
{
    double best = -INFINITY;
    for (int n = 0, many = 1; n <= LONGEST; n++, many *= WORDS)
        for (int k = 0; k < many; k++) {
            words w = {.count = n};
            for (int i = 0, rest = k; i < n; i++, rest /= WORDS) w.ids[i] = FIRST + rest % WORDS;
            best = fmax(best, score_of(p, &w) / (n + 1) + covered(p, n));
        }
    return best;
}

#endif
