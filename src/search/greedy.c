// SPDX-License-Identifier: MIT
// Greedy search: the best token of every step, until that is the end symbol.
//
// One row per sentence and one candidate per row. No finishing policy is at work, except that
// `huggingface` forces the end symbol at the maximum length at log-probability 0, where the others
// ask the model for its score in one more step. Results are those of beam search at beam 1 under
// shrink and refill; mask differs where a sentence never ends, margin where it searches on.
#include "search/search_private.h"

#include <math.h>

static void expand(dgm_search *s, dgm_place *p)
{
    const int row = p->first_row;
    dgm_candidate best = {.hypo = 0,
                          .row = row,
                          .token = s->rows.token[row * s->k],
                          .score = s->rows.score[row * s->k]};
    if (p->constraint) {
        dgm_banks_clear(s);
        dgm_banks_add_row(s, p, 0, row, 0.0f);
        dgm_banks_choose(s, p, 1);
        if (s->banks.order_count > 0)
            best = s->banks.order[0];
        else
            best.score = -INFINITY;
    }
    const bool nothing = !(best.score > -INFINITY);
    if (!nothing && best.token == s->eos) {
        dgm_place_end(s, p, 0, best.score, true);
        p->done = true;
    } else if (p->tokens == p->max_length) {
        if (dgm_row_may_end(s, row)) dgm_place_end(s, p, 0, s->rows.watch_score[row], false);
        p->done = true;
    } else if (nothing) {
        p->done = true;
    } else {
        dgm_place_keep(s, p, &best);
        dgm_place_swap(p);
        if (p->tokens == p->max_length && s->finish->force_end) {
            if (dgm_hypo_complete(s, p, 0)) dgm_place_end(s, p, 0, p->now.live[0].score, false);
            p->done = true;
        }
    }
    if (p->done) p->now.count = 0;
}

static dgm_status advance(dgm_search *s, dgm_error *err)
{
    return dgm_generation(s, expand, err);
}

static dgm_status check(const dgm_search_config *c, dgm_error *err)
{
    DGM_FAIL_IF(c->beam != 1, err, DGM_ERR_ARGUMENT, "greedy search has a beam of 1, not %d",
                c->beam);
    return DGM_OK;
}

static int candidates(const dgm_search_config *c)
{
    (void)c;
    return 1;
}

const dgm_search_ops dgm_search_greedy = {
    .name = "greedy", .tokens = 1, .check = check, .candidates = candidates, .advance = advance};
