// SPDX-License-Identifier: MIT
// Sampling: every translation is drawn token by token from the model's distribution.
//
// A sentence's n-best list is n independent draws (lanes), its rows are neighbours as in a beam:
//
//   1. rank gives each row its k best tokens with their log-probabilities, best first
//   2. weight of token i = exp((score_i - score_0) / temperature)
//   3. top-p: the shortest beginning of the list that holds a share p of these weights
//   4. one uniform number picks a token of that beginning, in proportion to the weights
//
// The first step has one row, from which all lanes draw. Lanes may come to the same translation;
// results are ranked by score, which is the model's own (with penalties), whatever the temperature.
//
// The uniform number is a hash of the seed, the sentence's tokens, the lane and the step: no state
// is carried along. So a translation does not depend on batch, order, threads, on being thrown out
// and admitted again, or on how many other lanes there are; the same sentence twice gives the same.
// No finishing policy is at work, except that `huggingface` forces the end at the maximum length.
//
// Models of pairs: sample_pairs.c.
//
// With constraints (banks.c) only tokens are drawn behind which everything can still be said. To the tokens of step 3
// come those that a row offers, and where the sentence lacks something the weight of its end is shared out among the
// offers by their own weights: where the model would end, it says what is missing.
#include "search/search_private.h"

#include <math.h>

#include "base/clock.h"

uint64_t dgm_sample_fingerprint(const dgm_search_request *r)
{
    dgm_rng rng = {(uint64_t)r->source.count << 32 | (uint64_t)r->prefix_count};
    for (int i = 0; i < r->source.count; i++)
        rng.state = dgm_rng_next(&rng) ^ (uint64_t)r->source.ids[i];
    for (int i = 0; i < r->prefix_count; i++)
        rng.state = dgm_rng_next(&rng) ^ (uint64_t)r->prefix[i];
    return dgm_rng_next(&rng);
}

double dgm_sample_uniform(const dgm_search *s, const dgm_active *p, int lane, int word)
{
    dgm_rng rng = {s->config.seed};
    rng.state = dgm_rng_next(&rng) ^ p->fingerprint;
    rng.state = dgm_rng_next(&rng) ^ ((uint64_t)lane << 32 | (uint64_t)(p->tokens + word));
    return dgm_rng_unit(&rng);
}

// Column of the row's list, or -1: it has no token of a finite score.
static int draw(const dgm_search *s, int row, double unit)
{
    const float *score = s->rows.score + (size_t)row * (size_t)s->k;
    const double cool = s->config.temperature > 0.0f ? 1.0 / (double)s->config.temperature : 1.0;
    const double share = s->config.top_p > 0.0f ? (double)s->config.top_p : 1.0;
    double sum = 0, held = 0, at = 0;
    int count = 0, last = 0;
    for (; count < s->k && score[count] > -INFINITY; count++)
        sum += exp(((double)score[count] - (double)score[0]) * cool);
    if (count == 0) return -1;
    for (; last < count && held < share * sum; last++)
        held += exp(((double)score[last] - (double)score[0]) * cool);
    for (int i = 0; i < last; i++) {
        at += exp(((double)score[i] - (double)score[0]) * cool);
        if (unit * held < at) return i;
    }
    return last - 1; // rounding
}

// ---- with constraints --------------------------------------------------------------------------

// What a row may say, from which one is drawn.
typedef struct lots {
    const dgm_search *s;
    const dgm_active *p;
    int row, hypo;
    double cool, best; // scores are taken relative to the best
    double sum;        // of the weights that were counted
    double wanted;     // the sum at which one is drawn
    dgm_candidate drawn;
    bool any;
} lots;

static double weight(const lots *l, float score)
{
    return score > -INFINITY ? exp(((double)score - l->best) * l->cool) : 0.0;
}

// One more lot of so much weight; it is the one where the sum passes `wanted`.
static void add_lot(lots *l, int column, int32_t token, float score, double heavy)
{
    if (heavy <= 0.0) return;
    l->sum += heavy;
    if (l->any && l->wanted < l->sum - heavy) return;
    l->any = true;
    l->drawn = (dgm_candidate){.hypo = l->hypo, .row = l->row, .column = column, .token = token, .score = score};
}

// Lots of the tokens that are among the best (the first `count` of the row's list), and of the offers. share: by which
// the weight of each offer grows.
static double add_lots(lots *l, int count, double share)
{
    const dgm_search *s = l->s;
    const size_t first = (size_t)l->row * (size_t)s->k;
    double offered = 0;
    for (int i = 0; i < count; i++) {
        const int32_t token = s->rows.token[first + (size_t)i];
        const float score = s->rows.score[first + (size_t)i];
        if (dgm_banks_offer(s, l->row, token) >= 0 || !dgm_banks_completes(s, l->p, l->hypo, token)) continue;
        add_lot(l, i, token, score, weight(l, score));
    }
    for (int i = 0; i < dgm_banks_offers(s, l->row); i++) {
        float score;
        const int32_t token = dgm_banks_offered(s, l->row, i, &score);
        if (!dgm_banks_completes(s, l->p, l->hypo, token)) continue;
        offered += weight(l, score);
        add_lot(l, s->k, token, score, weight(l, score) * share);
    }
    return offered;
}

// false: nothing can be said.
static bool draw_completing(dgm_search *s, const dgm_active *p, int row, double unit, dgm_candidate *c)
{
    const float *score = s->rows.score + (size_t)row * (size_t)s->k;
    const double share = s->config.top_p > 0.0f ? (double)s->config.top_p : 1.0;
    lots l = {.s = s,
              .p = p,
              .row = row,
              .hypo = s->rows.hypo[row],
              .cool = s->config.temperature > 0.0f ? 1.0 / (double)s->config.temperature : 1.0,
              .best = score[0] > -INFINITY ? (double)score[0] : 0.0};
    double sum = 0, held = 0;
    int last = 0;
    for (int i = 0; i < dgm_banks_offers(s, row); i++) { // an offer may be all there is
        float own;
        dgm_banks_offered(s, row, i, &own);
        if (!(score[0] > -INFINITY) && own > -INFINITY && (i == 0 || (double)own > l.best)) l.best = (double)own;
    }
    for (int i = 0; i < s->k && score[i] > -INFINITY; i++) sum += weight(&l, score[i]);
    for (; last < s->k && score[last] > -INFINITY && held < share * sum; last++) held += weight(&l, score[last]);
    const double offered = add_lots(&l, last, 1.0);
    const double end = dgm_hypo_complete(s, p, l.hypo) ? 0.0 : weight(&l, s->rows.watch_score[row]);
    const double grows = offered > 0.0 ? 1.0 + end / offered : 1.0;
    l.wanted = unit * (l.sum + (grows - 1.0) * offered);
    l.sum = 0.0;
    l.any = false;
    add_lots(&l, last, grows);
    *c = l.drawn;
    return l.any;
}

// ---- one draw ----------------------------------------------------------------------------------

static bool draw_any(dgm_search *s, const dgm_active *p, int row, int lane, dgm_candidate *c)
{
    if (p->constraint) return draw_completing(s, p, row, dgm_sample_uniform(s, p, lane, 0), c);
    const int column = draw(s, row, dgm_sample_uniform(s, p, lane, 0));
    const size_t at = (size_t)row * (size_t)s->k + (size_t)(column < 0 ? 0 : column);
    *c = (dgm_candidate){.hypo = s->rows.hypo[row],
                         .row = row,
                         .column = column,
                         .token = s->rows.token[at],
                         .score = s->rows.score[at]};
    return column >= 0;
}

static void take(dgm_search *s, dgm_active *p, int row, int lane)
{
    dgm_candidate c;
    const bool any = draw_any(s, p, row, lane, &c);
    if (any && dgm_candidate_ends(s, &c)) {
        dgm_active_end(s, p, &c, true);
    } else if (dgm_active_full(s, p)) {
        const dgm_candidate end = dgm_row_end(s, row);
        dgm_active_end(s, p, &end, false);
    } else if (any) {
        dgm_active_keep(s, p, &c);
        p->next.live[p->next.count - 1].lane = lane;
    }
}

void dgm_sample_expand(dgm_search *s, dgm_active *p, dgm_sample_take one)
{
    const int lanes = p->tokens == 0 ? s->width : p->row_count;
    for (int i = 0; i < lanes; i++) {
        const int row = p->tokens == 0 ? p->first_row : p->first_row + i;
        one(s, p, row, p->tokens == 0 ? i : p->now.live[s->rows.hypo[row]].lane);
    }
    dgm_active_swap(s, p);
    p->done = p->now.count == 0;
    if (!p->done && dgm_active_full(s, p) && s->finish->force_end) {
        for (int j = 0; j < p->now.count; j++)
            if (dgm_hypo_complete(s, p, j)) dgm_active_force(s, p, j);
        p->done = true;
    }
    if (p->done) p->now.count = 0;
}

static void expand(dgm_search *s, dgm_active *p)
{
    dgm_sample_expand(s, p, take);
}

static dgm_status advance(dgm_search *s, dgm_error *err)
{
    return dgm_generation(s, expand, err);
}

dgm_status dgm_sample_check(const dgm_search_config *c, dgm_error *err)
{
    DGM_FAIL_IF(!(c->temperature >= 0.0f) || isinf(c->temperature), err, DGM_ERR_ARGUMENT,
                "temperature is %g; it must be a positive number, or 0: 1",
                (double)c->temperature);
    DGM_FAIL_IF(!(c->top_p >= 0.0f && c->top_p <= 1.0f), err, DGM_ERR_ARGUMENT,
                "top-p is %g; it must be 0 to 1", (double)c->top_p);
    DGM_FAIL_IF(c->top_k < 0 || c->top_k > DGM_SAMPLE_MOST, err, DGM_ERR_ARGUMENT,
                "top-k is %d; it must be 0 to %d", c->top_k, DGM_SAMPLE_MOST);
    return DGM_OK;
}

int dgm_sample_candidates(const dgm_search_config *c)
{
    return c->top_k > 0 ? c->top_k : DGM_SAMPLE_MOST;
}

const dgm_search_ops dgm_search_sample = {
    .name = "sample",
    .tokens = 1,
    .shares = true,
    .check = dgm_sample_check,
    .candidates = dgm_sample_candidates,
    .advance = advance};
