// SPDX-License-Identifier: MIT
// Finishing policies: which candidates of a step end a hypothesis, which live on, and when a
// sentence is done. Each belongs to a published system; compare two searches under one policy only.
//
//   policy       a candidate with the end symbol        the live beam            done when
//   margin       leaves if among the best B             refilled to B            3.0 ahead
//   shrink       leaves if among the best B - |T|       B - |T| for good         |T| = B
//   mask         takes one of the B places of its step  the rest of these B;     nothing lives
//                                                       the next step refills
//   refill       leaves if among the best B             refilled to B            |H| >= B
//   huggingface  enters the store if among the best B;  refilled to B            store full and
//                the store keeps its best B                                      not to be beaten
//     -early     the same                               the same                 store full
//     -never     the same                               the same                 the same, at the best length
//   first:K      leaves if among the best B             refilled to B            |H| >= K
//   marian       as shrink                              as shrink                as shrink
//   ctranslate2  as refill, but not in the first step;  refilled to B            |H| >= B, or K (:K); without
//     (:K)       behind a prefix only the best one                               penalties |H| >= N and the best
//                                                                                candidate of some step ended
//
// T, H: finished so far. N: size of the n-best list.
// 3.0 ahead: best finished - best live, raw sums. Not to be beaten: best
// live <= worst stored, as if the live one ended now; at the best length: with -never the sum of the
// live one is divided as if it had the maximum length already, where a length penalty favours that. K: at
// least the size of the n-best list; the step that reaches it is made whole, so there may be more, and the
// best of them count.
//
// All are done when nothing lives, and at the maximum length:
//   margin, shrink, refill,  every live hypothesis ends there with the model's score of the end
//   first                    symbol, so that all sums are of whole sentences
//   mask                     only ends among the best B count, as before; a sentence without any
//                            takes the best end that some live row had at some step (second store)
//   huggingface, -early,     the end symbol is forced at log-probability 0
//   -never
//     -cut, -early-cut,      nothing is forced: the last words compete as they are with the ends of
//     -never-cut, marian,    their own step, and their length counts no end symbol
//   ctranslate2
// Constrained sentences, whatever the policy, are also done when the best live hypothesis, at its present
// length, is behind what the result will hold. With a length penalty that is a heuristic, as margin's rule
// is: so they are asked when as many are finished as the beam has places, not as many as the n-best
// list. The first translation then does not depend on the size of the list, and is better where it
// was another one (docs/manual/CONSTRAINTS.md).
//
// The margin is exact only for sums of log-probabilities without a length penalty; with one, or
// with scorers that reward, it is a heuristic. Inside a lattice it is not asked: its paths end soon.
//
// B + 1 candidates of each row are enough for all of them. A candidate behind B + 1 others of its
// own row is not among the best B of the sentence; and as only one of those others is the end
// symbol, at least B of them go on, so it is not needed to refill the beam either.
#include "search/search_private.h"

#include <math.h>

// Draws until the beam is full again; only the first `width` may finish.
static void take_refill(dgm_search *s, dgm_active *p, dgm_merge *m)
{
    dgm_candidate c;
    for (int seen = 0; p->next.count < p->width && dgm_merge_next(m, &c); seen++) {
        if (!dgm_candidate_ends(s, &c))
            dgm_active_keep(s, p, &c);
        else if (seen < p->width)
            dgm_active_end(s, p, &c, true);
    }
}

// Draws exactly `places` candidates, ends and all.
static void take_places(dgm_search *s, dgm_active *p, dgm_merge *m, int places)
{
    dgm_candidate c;
    for (int i = 0; i < places && dgm_merge_next(m, &c); i++) {
        if (dgm_candidate_ends(s, &c))
            dgm_active_end(s, p, &c, true);
        else
            dgm_active_keep(s, p, &c);
    }
}

static int places_shrink(const dgm_search *s, const dgm_active *p)
{
    (void)s;
    return p->width - p->ended;
}

static int places_mask(const dgm_search *s, const dgm_active *p)
{
    (void)s;
    return p->width;
}

static void take_shrink(dgm_search *s, dgm_active *p, dgm_merge *m)
{
    take_places(s, p, m, places_shrink(s, p));
}

static void take_mask(dgm_search *s, dgm_active *p, dgm_merge *m)
{
    take_places(s, p, m, places_mask(s, p));
}

// Is this the step behind what a translation must begin with, the model's own first tokens included?
static bool is_behind_prefix(const dgm_search *s, const dgm_active *p)
{
    return p->tokens == p->prefix_count && (p->prefix_count > 0 || s->lead_count > 1);
}

// As refill. But behind a prefix all candidates are of one row, and there CTranslate2 lets an end be that is not the
// best of them, though not finish: its place in the beam is lost for this step.
static void take_ctranslate2(dgm_search *s, dgm_active *p, dgm_merge *m)
{
    const bool alone = is_behind_prefix(s, p) && !p->constraint;
    int places = p->width;
    dgm_candidate c;
    for (int seen = 0; p->next.count < places && dgm_merge_next(m, &c); seen++) {
        if (!dgm_candidate_ends(s, &c)) {
            dgm_active_keep(s, p, &c);
        } else if (seen < p->width) {
            if (seen > 0 && alone)
                places--;
            else
                dgm_active_end(s, p, &c, true);
            p->top_ended |= seen == 0;
        }
    }
}

// The first one, unless a diversity penalty changed the order of drawing. With constraints a
// hypothesis counts as if it had paid for what it lacks (banks.c).
static float best_live(const dgm_search *s, const dgm_active *p)
{
    float best = -INFINITY;
    for (int j = 0; j < p->now.count; j++) {
        const float score = p->now.live[j].score - dgm_hypo_debt(s, p, j);
        if (score > best) best = score;
    }
    return best;
}

// Can a live hypothesis no longer rise? Without a length penalty that divides, and without rewards of
// other scorers than constraints and prefixes, its score only falls.
static bool only_falls(const dgm_search *s, const dgm_active *p)
{
    enum { PLAIN_SCORERS = 2 };
    return p->lengths.length_penalty <= 0.0f && p->lengths.word_penalty >= 0.0f &&
           s->scorer_count == PLAIN_SCORERS;
}

// Translations that are asked for; of a sentence that is narrower than the search, no more than that.
static int asked_for(const dgm_search *s, const dgm_active *p)
{
    return s->config.nbest < p->width ? s->config.nbest : p->width;
}

// How many have to be finished before those that live are compared with them.
static int wanted(const dgm_search *s, const dgm_active *p)
{
    return p->constraint && !only_falls(s, p) ? p->width : asked_for(s, p);
}

// With an n-best list the search goes on until there are n; for n = 1 this is the paper's rule.
static bool stop_margin(const dgm_search *s, const dgm_active *p)
{
    return !p->walk && p->ended >= wanted(s, p) &&
           p->best_sum - best_live(s, p) >= s->config.margin;
}

static bool stop_full(const dgm_search *s, const dgm_active *p)
{
    (void)s;
    return p->ended >= p->width;
}

// Algorithm 1 of Imamura and Sumita (2020), whose K is the number of translations asked for.
static bool stop_first(const dgm_search *s, const dgm_active *p)
{
    const int most = s->config.first > s->config.nbest ? s->config.first : s->config.nbest;
    return p->ended >= (p->width < s->width ? asked_for(s, p) : most);
}

static bool stop_never(const dgm_search *s, const dgm_active *p)
{
    (void)s, (void)p;
    return false;
}

// transformers' early_stopping=False: the best live hypothesis is compared as if it ended now, with
// the tokens it has so far.
static bool stop_huggingface(const dgm_search *s, const dgm_active *p)
{
    if (p->store.count < p->width) return false;
    const float best = dgm_final_score(p, best_live(s, p), p->tokens + dgm_counted_lead(s));
    return best <= p->store.items[p->width - 1].score;
}

// transformers' early_stopping="never": a length penalty that divides favours long translations, so the best live
// hypothesis is compared as if it had the greatest length there is.
static bool stop_beaten(const dgm_search *s, const dgm_active *p)
{
    if (!(p->lengths.length_penalty > 0)) return stop_huggingface(s, p);
    if (p->store.count < p->width) return false;
    const int longest = dgm_counted_length(s, p->max_length + 1, false);
    return dgm_final_score(p, best_live(s, p), longest) <= p->store.items[p->width - 1].score;
}

// CTranslate2 leaves early where sums only fall: nothing becomes better than what once was the best and ended.
static bool stop_ctranslate2(const dgm_search *s, const dgm_active *p)
{
    if (fabsf(p->lengths.length_penalty) > 0 || fabsf(s->config.coverage) > 0)
        return p->width == s->width && s->config.first > 0 ? stop_first(s, p) : stop_full(s, p);
    return p->top_ended && p->ended >= wanted(s, p);
}

// Constrained sentences: banks keep hypotheses alive that no longer have a chance. Over when the
// best of them, at its present length, is behind what the result will hold. Of a glance that is one translation.
static bool stop_behind(const dgm_search *s, const dgm_active *p)
{
    if (!p->constraint && !p->glance) return false;
    const int count = p->glance ? 1 : wanted(s, p);
    if (p->store.count < count) return false;
    const float best = dgm_final_score(p, best_live(s, p), dgm_counted_length(s, p->tokens + 1, true));
    return best <= p->store.items[count - 1].score;
}

const dgm_finish_ops dgm_finish_table[DGM_FINISH_COUNT] = {
    [DGM_FINISH_MARGIN] = {.take = take_refill, .stop = stop_margin, .cut = true},
    [DGM_FINISH_SHRINK] = {.take = take_shrink,
                           .places = places_shrink,
                           .stop = stop_full,
                           .cut = true},
    [DGM_FINISH_MASK] = {.take = take_mask,
                         .places = places_mask,
                         .stop = stop_never,
                         .spare = true},
    [DGM_FINISH_REFILL] = {.take = take_refill, .stop = stop_full, .cut = true},
    [DGM_FINISH_HUGGINGFACE] = {.take = take_refill,
                                .stop = stop_huggingface,
                                .force_end = true,
                                .counts_lead = true},
    [DGM_FINISH_FIRST] = {.take = take_refill, .stop = stop_first, .cut = true},
    [DGM_FINISH_HUGGINGFACE_CUT] = {.take = take_refill,
                                    .stop = stop_huggingface,
                                    .force_end = true,
                                    .endless = true,
                                    .counts_lead = true},
    [DGM_FINISH_HUGGINGFACE_EARLY] = {.take = take_refill,
                                      .stop = stop_full,
                                      .force_end = true,
                                      .counts_lead = true},
    [DGM_FINISH_HUGGINGFACE_EARLY_CUT] = {.take = take_refill,
                                          .stop = stop_full,
                                          .force_end = true,
                                          .endless = true,
                                          .counts_lead = true},
    [DGM_FINISH_HUGGINGFACE_NEVER] = {.take = take_refill,
                                      .stop = stop_beaten,
                                      .force_end = true,
                                      .counts_lead = true},
    [DGM_FINISH_HUGGINGFACE_NEVER_CUT] = {.take = take_refill,
                                          .stop = stop_beaten,
                                          .force_end = true,
                                          .endless = true,
                                          .counts_lead = true},
    [DGM_FINISH_MARIAN] = {.take = take_shrink,
                           .places = places_shrink,
                           .stop = stop_full,
                           .force_end = true,
                           .endless = true,
                           .exact_factor = true},
    [DGM_FINISH_CTRANSLATE2] = {.take = take_ctranslate2,
                                .stop = stop_ctranslate2,
                                .force_end = true,
                                .endless = true,
                                .counts_lead = true,
                                .never_empty = true,
                                .free_prefix = true},
};

// ---- steps without an end, and without a choice -------------------------------------------------

void dgm_rows_deny_end(dgm_search *s, const dgm_active *p)
{
    if (!s->finish->never_empty || !dgm_active_early(s, p) || p->constraint || p->walk || !s->config.normalise)
        return;
    for (int row = p->first_row; row < p->first_row + p->row_count; row++) {
        const float end = expf(s->rows.watch_score[row] - p->now.live[s->rows.hypo[row]].score);
        const float gain = end < 1.0f ? -log1pf(-end) : 0.0f;
        float *score = s->rows.score + (size_t)row * (size_t)s->k;
        for (int i = 0; i < s->k; i++) score[i] += gain;
    }
}

static bool next_given(dgm_merge *m, dgm_candidate *c)
{
    const dgm_words_only *w = m->data;
    if (!dgm_merge_next(w->m, c)) return false;
    c->score = m->p->now.live[c->hypo].score;
    return true;
}

static bool next_word(dgm_merge *m, dgm_candidate *c)
{
    const dgm_words_only *w = m->data;
    while (dgm_merge_next(w->m, c)) {
        if (dgm_candidate_ends(m->s, c)) continue;
        c->score += w->gain;
        return true;
    }
    return false;
}

dgm_merge dgm_first_words(dgm_search *s, const dgm_active *p, dgm_merge *m, dgm_words_only *room)
{
    const bool begun = p->tokens > 0 || s->lead_count > 1; // the model's own first tokens count for CTranslate2
    if (s->finish->free_prefix && p->tokens < p->prefix_count) {
        *room = (dgm_words_only){m, 0.0f};
        return (dgm_merge){.next = next_given, .s = s, .p = p, .data = room, .lines = m->lines, .behind = m->behind};
    }
    if (!s->finish->never_empty || begun || p->constraint || p->walk) return *m;
    const float end = expf(dgm_row_end(s, p->first_row).score); // 0 where it is forbidden anyhow
    *room = (dgm_words_only){m, s->config.normalise && end < 1.0f ? -log1pf(-end) : 0.0f};
    return (dgm_merge){.next = next_word, .s = s, .p = p, .data = room, .lines = m->lines, .behind = m->behind};
}

// ---- one step of a sentence ---------------------------------------------------------------------

// The step at the maximum length only asks for end symbols. Those that the policy took by their own
// rank are finished; of the others the hypothesis is cut off.
static void close_sentence(dgm_search *s, dgm_active *p)
{
    for (int j = 0; s->finish->cut && j < p->now.count; j++)
        if (!p->now.live[j].ended) dgm_active_end(s, p, &p->hand->ends[j], false);
    p->next.count = p->now.count = 0;
    p->done = true;
}

void dgm_active_expand(dgm_search *s, dgm_active *p, dgm_merge *m)
{
    s->finish->take(s, p, m);
    for (int j = 0; s->finish->spare && j < p->now.count; j++)
        if (!p->now.live[j].ended) dgm_active_spare(s, p, &p->hand->ends[j]);
    if (dgm_active_full(s, p)) {
        close_sentence(s, p);
        return;
    }
    dgm_active_swap(s, p);
    dgm_active_prune(s, p);
    dgm_active_settle(s, p);
    p->done = p->now.count == 0 || s->finish->stop(s, p) || stop_behind(s, p);
    if (p->done && p->now.count > 0 && s->config.finish == DGM_FINISH_MARGIN) p->hand->early++;
    // A forced end is a step of its own, after the policy was asked; a hypothesis that is cut off completes
    // in this one, with those that ended.
    if ((!p->done || s->finish->endless) && dgm_active_full(s, p) && s->finish->force_end) {
        for (int j = 0; j < p->now.count; j++)
            if (dgm_hypo_complete(s, p, j)) dgm_active_force(s, p, j);
        p->done = true;
    }
    if (p->done) p->now.count = 0;
}
