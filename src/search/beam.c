// SPDX-License-Identifier: MIT
// Beam search over many sentences at once.
//
// One generation:
//
//   1. the last tokens of all live hypotheses of all sentences are fed in one step
//   2. rank gives each row its k best continuations: sum so far + log p(token), best first
//   3. a sentence's rows are merged into one falling sequence of candidates
//   4. the finishing policy draws from it: some candidates end, some live on
//   5. decoder rows without a live hypothesis are dropped; sentences that are done leave
//
// The first generation of a sentence has one row (the empty hypothesis), so no two hypotheses of a
// beam are ever the same. Running sums are never normalised by length; finished ones are (tree.c).
// Candidates of equal score are drawn in beam order, then by token id: no result depends on where
// a row lies in memory or on the other sentences. A score of -inf never becomes a hypothesis.
#include "search/search_int.h"

#include <math.h>

// ---- merging a sentence's rows -----------------------------------------------------------------

dgm_merge dgm_merge_open(dgm_search *s, const dgm_place *p)
{
    for (int j = 0; j < p->row_count; j++) s->merge_at[j] = 0;
    return (dgm_merge){.s = s, .p = p, .at = s->merge_at};
}

// Rows are sorted already (ties: lower token first), so the best candidate is the best of their
// heads; among equal heads the lower row wins. At most 2 B are drawn from B rows.
bool dgm_merge_next(dgm_merge *m, dgm_candidate *c)
{
    const dgm_rows *r = &m->s->rows;
    const size_t k = (size_t)m->s->k;
    const int first = m->p->first_row;
    int best = -1;
    float best_score = -INFINITY; // the end of a row, too: (-inf, no token)
    for (int j = 0; j < m->p->row_count; j++) {
        if (m->at[j] == m->s->k) continue;
        const float score = r->score[(size_t)(first + j) * k + (size_t)m->at[j]];
        if (score > best_score) {
            best = j;
            best_score = score;
        }
    }
    if (best < 0) return false;
    const int row = first + best;
    *c = (dgm_candidate){.hypo = r->hypo[row],
                         .row = row,
                         .token = r->token[(size_t)row * k + (size_t)m->at[best]],
                         .score = best_score};
    m->at[best]++;
    return true;
}

// ---- one sentence ------------------------------------------------------------------------------

// The step at the maximum length only asks for end symbols. Those that the policy took by their own
// rank are finished; of the others the hypothesis is cut off.
static void close_sentence(dgm_search *s, dgm_place *p)
{
    for (int j = 0; s->finish->cut && j < p->now.count; j++)
        if (!p->now.live[j].ended && dgm_row_may_end(s, p->first_row + j))
            dgm_place_end(s, p, j, s->rows.watch_score[p->first_row + j], false);
    p->next.count = p->now.count = 0;
    p->done = true;
}

static void expand(dgm_search *s, dgm_place *p)
{
    dgm_merge merge = dgm_merge_open(s, p);
    s->finish->take(s, p, &merge);
    for (int j = 0; s->finish->spare && j < p->now.count; j++)
        if (!p->now.live[j].ended && dgm_row_may_end(s, p->first_row + j))
            dgm_place_spare(s, p, j, s->rows.watch_score[p->first_row + j]);
    if (p->tokens == p->max_length) {
        close_sentence(s, p);
        return;
    }
    dgm_place_swap(p);
    p->done = p->now.count == 0 || s->finish->stop(s, p);
    if (!p->done && p->tokens == p->max_length && s->finish->force_end) {
        for (int j = 0; j < p->now.count; j++) dgm_place_end(s, p, j, p->now.live[j].score, false);
        p->done = true;
    }
    if (p->done) p->now.count = 0;
}

// ---- as a search -------------------------------------------------------------------------------

static dgm_status advance(dgm_search *s, dgm_error *err)
{
    return dgm_generation(s, expand, err);
}

static dgm_status check(const dgm_search_config *c, dgm_error *err)
{
    (void)c, (void)err;
    return DGM_OK;
}

static int candidates(const dgm_search_config *c)
{
    return c->beam + 1; // finish.c says why
}

const dgm_search_ops dgm_search_beam = {
    .name = "beam", .check = check, .candidates = candidates, .advance = advance};
