// SPDX-License-Identifier: MIT
// Greedy search: the best token of every step, until that is the end symbol.
//
// One row per sentence and one candidate per row. No finishing policy is at work, except that
// `huggingface` forces the end symbol at the maximum length at log-probability 0, `marian` and
// `ctranslate2` do without one, where the others ask the model for its score in one more step; and
// `ctranslate2` begins with a word. Results are those of beam search at beam 1 under
// shrink, refill and first:1; mask differs where a sentence never ends, margin and first:2 (or more)
// where they search on.
#include "search/search_private.h"

#include <math.h>

// The best candidate; false: none has a finite score.
static bool draw(dgm_search *s, dgm_active *p, dgm_candidate *best)
{
    const int row = p->first_row;
    const size_t place = (size_t)row * (size_t)s->k; // somebody may want to see more of the best
    if (p->constraint || s->finish->never_empty) {
        dgm_words_only room;
        dgm_rows_deny_end(s, p);
        dgm_merge rows = dgm_rows_merge(s, p), merge = dgm_banks_filter(s, p, &rows);
        dgm_merge words = dgm_first_words(s, p, &merge, &room);
        return dgm_merge_next(&words, best);
    }
    *best = (dgm_candidate){.hypo = s->rows.hypo[row],
                            .row = row,
                            .token = s->rows.token[place],
                            .score = s->rows.score[place]};
    return best->score > -INFINITY;
}

static void expand(dgm_search *s, dgm_active *p)
{
    dgm_candidate best;
    const bool any = draw(s, p, &best);
    if (any && dgm_candidate_ends(s, &best)) {
        dgm_active_end(s, p, &best, true);
        p->done = true;
    } else if (dgm_active_full(s, p)) {
        const dgm_candidate end = dgm_row_end(s, p->first_row);
        dgm_active_end(s, p, &end, false);
        p->done = true;
    } else if (!any) {
        p->done = true;
    } else {
        dgm_active_keep(s, p, &best);
        dgm_active_swap(s, p);
        if (dgm_active_full(s, p) && s->finish->force_end) {
            if (dgm_hypo_complete(s, p, 0)) dgm_active_force(s, p, 0);
            p->done = true;
        }
    }
    if (p->done) p->now.count = 0;
}

static dgm_status advance(dgm_search *s, dgm_error *err)
{
    return dgm_generation(s, expand, err);
}

static int candidates(const dgm_search_config *c)
{
    return dgm_finish_table[c->finish].never_empty ? 2 : 1; // one of them may be the end
}

const dgm_search_ops dgm_search_greedy = {
    .name = "greedy", .tokens = 1, .grows = true, .shares = true, .candidates = candidates, .advance = advance};
