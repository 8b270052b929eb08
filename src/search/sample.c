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

static double uniform(const dgm_search *s, const dgm_active *p, int lane)
{
    dgm_rng rng = {s->config.seed};
    rng.state = dgm_rng_next(&rng) ^ p->fingerprint;
    rng.state = dgm_rng_next(&rng) ^ ((uint64_t)lane << 32 | (uint64_t)p->tokens);
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

static void take(dgm_search *s, dgm_active *p, int row, int lane)
{
    const int hypo = s->rows.hypo[row], column = draw(s, row, uniform(s, p, lane));
    const size_t at = (size_t)row * (size_t)s->k + (size_t)(column < 0 ? 0 : column);
    const dgm_candidate c = {.hypo = hypo,
                             .row = row,
                             .column = column,
                             .token = s->rows.token[at],
                             .score = s->rows.score[at]};
    if (column >= 0 && dgm_candidate_ends(s, &c)) {
        dgm_active_end(s, p, &c, true);
    } else if (dgm_active_full(s, p)) {
        const dgm_candidate end = dgm_row_end(s, row);
        dgm_active_end(s, p, &end, false);
    } else if (column >= 0) {
        dgm_active_keep(s, p, &c);
        p->next.live[p->next.count - 1].lane = lane;
    }
}

static void expand(dgm_search *s, dgm_active *p)
{
    const int lanes = p->tokens == 0 ? s->width : p->row_count;
    for (int i = 0; i < lanes; i++) {
        const int row = p->tokens == 0 ? p->first_row : p->first_row + i;
        take(s, p, row, p->tokens == 0 ? i : p->now.live[s->rows.hypo[row]].lane);
    }
    dgm_active_swap(s, p);
    p->done = p->now.count == 0;
    if (!p->done && dgm_active_full(s, p) && s->finish->force_end) {
        for (int j = 0; j < p->now.count; j++) dgm_active_force(s, p, j);
        p->done = true;
    }
    if (p->done) p->now.count = 0;
}

static dgm_status advance(dgm_search *s, dgm_error *err)
{
    return dgm_generation(s, expand, err);
}

static dgm_status check(const dgm_search_config *c, dgm_error *err)
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

static int candidates(const dgm_search_config *c)
{
    return c->top_k > 0 ? c->top_k : DGM_SAMPLE_MOST;
}

const dgm_search_ops dgm_search_sample = {
    .name = "sample",
    .tokens = 1, .check = check, .candidates = candidates, .advance = advance};
