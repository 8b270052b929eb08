// SPDX-License-Identifier: MIT
// Sampling from models that write two words a step: every pair is drawn from the model's distribution.
//
// The model's words of a pair do not see each other: P(l, r) = P(l) P(r). So the two are drawn one after the other,
// each as sample.c draws a word: of the best tokens of its side (top-k), of these the shortest beginning that holds a
// share top-p of their weights, at the temperature. What a pair with an end may say is decided by the length that it
// makes, which depends on the ends alone: l is drawn with the weight of what may stand beside it, then r of that.
//
// Where rules tie words together (constraints, lattices, evidence, repetition: double_rules.c) pairs are drawn whole,
// of the best words of both sides (32 at most) and of those that constraints or the lattice name, in proportion to exp
// of the pair's score with what the rules add. With constraints only pairs behind which the rest can still be said
// count, and where the sentence lacks something the weight of its end is shared out among the pairs that bring some of
// it.
#include "search/double_private.h"

#include <math.h>

static double cooling(const dgm_search *s)
{
    return s->config.temperature > 0.0f ? 1.0 / (double)s->config.temperature : 1.0;
}

// One side of a row: its list, and the weight of what may be drawn of it.
typedef struct side {
    const float *score;
    const int32_t *token;
    double cool;
    int count;        // that may be drawn
    double words, end; // weights of words, and of the end
} side;

static double weight_of(const side *x, int i)
{
    return exp(((double)x->score[i] - (double)x->score[0]) * x->cool);
}

static side open_side(const dgm_search *s, int vector)
{
    const size_t first = (size_t)vector * (size_t)s->k;
    const double share = s->config.top_p > 0.0f ? (double)s->config.top_p : 1.0;
    side x = {.score = s->rows.score + first, .token = s->rows.token + first, .cool = cooling(s)};
    double sum = 0, held = 0;
    int all = 0;
    for (; all < s->k && x.score[all] > -INFINITY; all++) sum += weight_of(&x, all);
    for (; x.count < all && held < share * sum; x.count++) {
        const double heavy = weight_of(&x, x.count);
        held += heavy;
        *(x.token[x.count] == s->eos ? &x.end : &x.words) += heavy;
    }
    return x;
}

// ---- without rules -----------------------------------------------------------------------------

// What may be drawn: weights of words and of the end, each taken so many times.
static int draw_side(const dgm_search *s, const side *x, double words, double end, double unit)
{
    const double wanted = unit * (x->words * words + x->end * end);
    double at = 0;
    int last = -1;
    for (int i = 0; i < x->count; i++) {
        const double heavy = weight_of(x, i) * (x->token[i] == s->eos ? end : words);
        if (!(heavy > 0.0)) continue;
        at += heavy;
        last = i;
        if (wanted < at) break;
    }
    return last; // the last where rounding left nothing
}

// May a pair of a word or an end and a word or an end be said here?
static double may_be(const dgm_search *s, const dgm_active *p, bool left_ends, bool right_ends)
{
    const dgm_candidate c = {.token = left_ends ? s->eos : DGM_NO_TOKEN, .second = right_ends ? s->eos : DGM_NO_TOKEN};
    if (left_ends || right_ends) return dgm_pair_may_end(s, p, &c) ? 1.0 : 0.0;
    return 1.0; // at the maximum length it is cut off
}

static bool draw_free(dgm_search *s, const dgm_active *p, int row, int lane, dgm_candidate *c)
{
    const side left = open_side(s, 2 * row), right = open_side(s, 2 * row + 1);
    const double beside_word = may_be(s, p, false, false) * right.words + may_be(s, p, false, true) * right.end;
    const double beside_end = may_be(s, p, true, false) * right.words + may_be(s, p, true, true) * right.end;
    const int l = draw_side(s, &left, beside_word, beside_end, dgm_sample_uniform(s, p, lane, 0));
    if (l < 0) return false;
    const bool ends = left.token[l] == s->eos;
    const int r = draw_side(s, &right, may_be(s, p, ends, false), may_be(s, p, ends, true),
                            dgm_sample_uniform(s, p, lane, 1));
    if (r < 0) return false;
    *c = (dgm_candidate){.hypo = s->rows.hypo[row],
                         .row = row,
                         .token = left.token[l],
                         .second = right.token[r],
                         .first = left.score[l],
                         .score = left.score[l] + right.score[r]};
    return true;
}

// ---- with rules --------------------------------------------------------------------------------

typedef struct lots {
    const dgm_search *s;
    const dgm_active *p;
    int missing;       // subwords before the pair
    double cool, best; // scores are taken relative to the best
    double sum, brings; // weights of all, and of those that bring some of what is missing
    double grows;       // by which the weight of the latter is multiplied
    double wanted;      // the sum at which one is drawn; negative: they are only counted
    dgm_candidate drawn, end; // the best end
    bool any, ends;
} lots;

static void find_best(void *cookie, const dgm_candidate *c)
{
    lots *x = cookie;
    if (!x->any || (double)c->score > x->best) x->best = (double)c->score;
    x->any = true;
}

static void add_lot(void *cookie, const dgm_candidate *c)
{
    lots *x = cookie;
    const dgm_active *p = x->p;
    const bool ends = dgm_candidate_ends(x->s, c);
    double heavy = exp(((double)c->score - x->best) * x->cool);
    if (ends && (!x->ends || c->score > x->end.score)) {
        x->end = *c;
        x->ends = true;
    }
    if (!ends && p->constraint) {
        if (dgm_banks_hopeless(x->s, p, c)) return;
        const bool brings = dgm_constraint_missing(p->constraint, c->state) < x->missing;
        if (brings) x->brings += heavy;
        if (brings) heavy *= x->grows;
    }
    if (!(heavy > 0.0)) return;
    x->sum += heavy;
    if (x->wanted < 0.0 || (x->any && x->wanted < x->sum - heavy)) return;
    x->any = true;
    x->drawn = *c;
}

// What the model gives to ends that constraints do not allow, of all that it gives: in the units of lots.
static double weight_of_end(const side *left, const side *right, const lots *x)
{
    const double first = ((double)left->score[0] + (double)right->score[0] - x->best) * x->cool;
    return exp(first) * (left->end * (right->words + right->end) + left->words * right->end);
}

static bool draw_ruled(dgm_search *s, const dgm_active *p, int row, int lane, dgm_candidate *c, dgm_candidate *end)
{
    const side left = open_side(s, 2 * row), right = open_side(s, 2 * row + 1);
    lots x = {.s = s, .p = p, .missing = dgm_pair_missing(s, p, s->rows.hypo[row]), .cool = cooling(s), .grows = 1.0};
    int lefts = left.count, rights = right.count;
    dgm_pair_each(s, p, row, lefts, rights, find_best, &x);
    if (!x.any) { // of all words, if there is nothing among those that may be drawn
        lefts = rights = s->k;
        dgm_pair_each(s, p, row, lefts, rights, find_best, &x);
    }
    if (!x.any) return false;
    x.wanted = -1.0;
    dgm_pair_each(s, p, row, lefts, rights, add_lot, &x);
    if (x.missing > 0 && x.brings > 0.0 && left.count > 0 && right.count > 0)
        x.grows = 1.0 + weight_of_end(&left, &right, &x) / x.brings;
    x.wanted = dgm_sample_uniform(s, p, lane, 0) * (x.sum + (x.grows - 1.0) * x.brings);
    x.sum = x.brings = 0.0;
    x.any = false;
    dgm_pair_each(s, p, row, lefts, rights, add_lot, &x);
    *c = x.drawn;
    if (x.ends) *end = x.end;
    return x.any;
}

// ---- one draw ----------------------------------------------------------------------------------

static void take(dgm_search *s, dgm_active *p, int row, int lane)
{
    dgm_candidate c, end = {.hypo = s->rows.hypo[row], .row = row, .score = -INFINITY};
    const bool ruled = dgm_pair_ruled(s, p);
    const bool any = ruled ? draw_ruled(s, p, row, lane, &c, &end) : draw_free(s, p, row, lane, &c);
    if (any && dgm_candidate_ends(s, &c)) {
        dgm_active_end(s, p, &c, true);
    } else if (dgm_active_full(s, p)) {
        if (!ruled) end = dgm_pair_best_end(s, p, row);
        dgm_active_end(s, p, &end, false);
    } else if (any) {
        dgm_active_keep(s, p, &c);
        p->next.live[p->next.count - 1].lane = lane;
    }
}

static void expand(dgm_search *s, dgm_active *p)
{
    dgm_sample_expand(s, p, take);
}

static dgm_status advance(dgm_search *s, dgm_error *err)
{
    dgm_pair_begin(s);
    return dgm_generation(s, expand, err);
}

const dgm_search_ops dgm_search_sample_pairs = {.name = "sample",
                                                .tokens = 2,
                                                .check = dgm_sample_check,
                                                .candidates = dgm_sample_candidates,
                                                .nodes = dgm_pair_nodes,
                                                .lay_out = dgm_pair_lay_out,
                                                .terms = dgm_pair_terms,
                                                .advance = advance,
                                                .trace = dgm_pair_trace};
