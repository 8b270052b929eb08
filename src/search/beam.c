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
#include "search/search_private.h"

#include <math.h>

// ---- merging a sentence's rows -----------------------------------------------------------------

// Rows are sorted already (ties: lower token first), so the best candidate is the best of their
// heads; among equal heads the lower row wins. At most 2 B are drawn from B rows.
// With a diversity penalty d a row's i-th candidate is drawn as if its score were i d lower, so
// that siblings give way to other rows' words: rows stay sorted by that, too. The score is kept.
// hand->best holds what the heads are compared by.
static bool next_head(dgm_merge *m, dgm_candidate *c)
{
    const dgm_search *s = m->s;
    const dgm_rows *r = &s->rows;
    float *heads = m->p->hand->best;
    int *at = m->data; // [rows of the sentence] next candidate of each
    int best = -1;
    float best_key = -INFINITY; // the end of a row, too: (-inf, no token)
    for (int j = 0; j < m->p->row_count; j++) {
        if (heads[j] > best_key) {
            best = j;
            best_key = heads[j];
        }
    }
    if (best < 0) return false;
    const int row = m->p->first_row + best, column = at[best]++;
    const size_t place = (size_t)row * (size_t)s->k + (size_t)column;
    *c = (dgm_candidate){.hypo = r->hypo[row],
                         .row = row,
                         .column = column,
                         .token = r->token[place],
                         .score = r->score[place]};
    heads[best] = column + 1 < s->k ? r->score[place + 1] - s->config.diversity * (float)(column + 1) : -INFINITY;
    return true;
}

dgm_merge dgm_rows_merge(dgm_search *s, const dgm_active *p)
{
    dgm_hand *h = p->hand;
    for (int j = 0; j < p->row_count; j++) {
        h->merge_at[j] = 0;
        h->lines[j] = p->first_row + j;
        h->best[j] = s->rows.score[(size_t)h->lines[j] * (size_t)s->k];
    }
    return (dgm_merge){
        .next = next_head, .s = s, .p = p, .data = h->merge_at, .lines = h->lines};
}

static void expand(dgm_search *s, dgm_active *p)
{
    for (int j = 0; j < p->row_count && dgm_active_wants_ends(s, p); j++)
        p->hand->ends[j] = dgm_row_end(s, p->first_row + j);
    dgm_words_only room;
    dgm_rows_deny_end(s, p);
    dgm_merge rows = dgm_rows_merge(s, p);
    if (p->constraint) rows = dgm_banks_filter(s, p, &rows);
    dgm_merge words = dgm_first_words(s, p, &rows, &room);
    dgm_active_expand(s, p, &words);
}

// ---- as a search -------------------------------------------------------------------------------

static dgm_status advance(dgm_search *s, dgm_error *err)
{
    return dgm_generation(s, expand, err);
}

static int candidates(const dgm_search_config *c)
{
    return c->beam + 1; // finish.c says why
}

const dgm_search_ops dgm_search_beam = {
    .name = "beam", .tokens = 1, .grows = true, .shares = true, .candidates = candidates, .advance = advance};
