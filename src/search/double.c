// SPDX-License-Identifier: MIT
// Beam search with a model that writes two words a step (Imamura and Sumita 2020).
//
// One generation feeds every live hypothesis' last pair and gets two hidden vectors a row, left and
// right; rank gives each its best words; double_topk.c makes the sentence's 3W best pairs of them.
// From these the finishing policy draws (finish.c). The paper's is `refill`:
//
//   of the first W pairs, those with EOD on either side are finished hypotheses
//   of all 3W in order, those without EOD fill the beam up to W
//
// One row with a sure left EOD can take most of the 3W, so a beam may get smaller; it is done when
// nothing lives.
//
// A path has two nodes a pair, left then right, behind nodes 0 and 1 for the start pair; ends have
// nodes for their last pair, too, EOD and all. So the words of a node's row were chosen by the
// vectors of its grandparent, left or right alike, and a result is the pairs unfolded.
//
//   node   0 <- 1 <- y1 <- y5 <- y2 <- y4 <- y3 <- EOD          attention of y2: that seen by y1
//
// A forced prefix acts on the left words (or on both, where pairs go from left to right); until it
// is used up no side may end: from both ends n forced words make at least 2 n - 1. A forced end
// acts on the right words in the same way (or, from right to left, as a prefix does elsewhere).
// What else is asked of words (constraints, evidence, repetition, lattices) is double_rules.c's.
// Scores of a whole: sum of both words' log-probabilities; its length counts real words and one
// end.
#include "search/double_private.h"

#include <math.h>
#include <string.h>

// ---- a generation -------------------------------------------------------------------------------

// The start pair is two nodes: attention of both sides has a place.
static void begin_sentence(dgm_active *p)
{
    if (p->node_count > 1) return;
    p->nodes[1] = (dgm_node){.parent = 0, .token = DGM_NO_TOKEN, .score = 0.0f};
    p->node_count = 2;
    p->now.live[0].node = 1;
}

void dgm_pair_begin(dgm_search *s)
{
    for (int i = 0; i < s->config.sentences; i++)
        if (s->active[i].used) begin_sentence(&s->active[i]);
}

static void deny_end(const dgm_search *s, dgm_terms *t)
{
    t->deny = s->deny_early;
    t->deny_count = s->deny_early_count;
}

static void allow_named(const dgm_constraint *c, const int32_t *list, int count, dgm_terms *t)
{
    if (!list || t->allow) return;
    dgm_terms_allow(t, list, count);
    t->allow_name = dgm_constraint_list_name(c, list);
}

// With few pairs to go what is lacking cannot wait for the model: the right half has to begin a word that a term can
// stand before, and the left one to end the term that it has said.
static void hurry(const dgm_search *s, const dgm_active *p, int hypo, dgm_terms *left, dgm_terms *right)
{
    const dgm_constraint *c = p->constraint, *c_right = p->constraint_right;
    const int32_t state = p->now.states[hypo * s->scorer_count + s->scorer_count - 2];
    const int32_t state_right = p->now.live[hypo].state_right, *list = NULL, *deny;
    int count = 0, denied, missing = dgm_pair_missing(s, p, hypo);
    const bool pending = dgm_constraint_pending(c, state), pending_right = dgm_constraint_pending(c_right, state_right);
    if (pending || pending_right) missing = dgm_constraint_missing(c, dgm_constraint_start(c)); // of what may be lost
    if (missing == 0 || p->max_length - p->tokens > 2 * missing + 3) return;
    if (pending_right) {
        dgm_constraint_limits(c_right, state_right, &list, &count, &deny, &denied);
        allow_named(c_right, list, count, right);
    } else if (dgm_constraint_glued(c_right, state_right) &&
               (pending || !dgm_constraint_under_way(c_right, state_right))) {
        list = dgm_constraint_beginnings(c_right, &count);
        allow_named(c_right, list, count, right);
    }
    if (!pending) return;
    dgm_constraint_limits(c, state, &list, &count, &deny, &denied);
    allow_named(c, list, count, left);
}

// Terms of both sides of a row.
void dgm_pair_terms(dgm_search *s, int row)
{
    dgm_rows *r = &s->rows;
    const int active = r->active[row], hypo = r->hypo[row];
    const dgm_active *p = &s->active[active];
    const int last = s->scorer_count - 1; // prefix forcing
    dgm_scorer *prefix = &s->scorers[last];
    const int32_t state = p->now.states[hypo * s->scorer_count + last];
    // Even with a word beside EOD too short. (Too short by one with (EOD, EOD): see dgm_pair_may_end.)
    const bool early = p->tokens + 1 < s->config.min_length && p->tokens + 1 < p->max_length;
    dgm_terms t = {.lambda = 1.0f,
                   .deny = early ? s->deny_early : s->deny,
                   .deny_count = early ? s->deny_early_count : s->deny_count};
    dgm_terms *left = &r->terms[2 * row], *right = &r->terms[2 * row + 1], next = t;
    *left = *right = t;
    left->base = p->now.live[hypo].score;
    dgm_scorer_terms(prefix, active, state, left);
    dgm_scorer_terms(prefix, active, dgm_scorer_advance(prefix, active, state, 0), &next);
    if (s->info[0]->order != DGM_ORDER_BIDIRECTIONAL) {
        right->allow = next.allow;
        right->allow_count = next.allow_count;
        right->deny_count = next.deny_count;
    } else {
        const int pairs = p->tokens / 2;
        if (next.allow) deny_end(s, right); // more of the prefix is to come than this pair has
        if (pairs + 1 < p->behind_count) deny_end(s, left);
        if (pairs < p->behind_count) {
            right->allow = &p->behind[pairs];
            right->allow_count = 1;
            right->deny_count = 0;
        }
    }
    if (p->constraint_right && dgm_banks_short(p)) hurry(s, p, hypo, left, right);
    r->watch[2 * row] = r->watch[2 * row + 1] = s->eos;
    if (p->walk) dgm_pair_follow_lattice(s, p, row);
}

// ---- candidates ---------------------------------------------------------------------------------

// May a hypothesis end with this pair here? (EOD, EOD) may be a word too short where (x, EOD) is
// not, and (x, EOD) a word too long.
bool dgm_pair_may_end(const dgm_search *s, const dgm_active *p, const dgm_candidate *c)
{
    const int length = dgm_whole_length(s, p, c);
    const int least = s->config.min_length < p->max_length ? s->config.min_length : p->max_length;
    return length >= least && length <= p->max_length;
}

bool dgm_pair_may_say(const dgm_terms *t, int32_t token)
{
    bool allowed = !t->allow;
    for (int i = 0; i < t->allow_count; i++) allowed |= t->allow[i] == token;
    for (int i = 0; i < t->deny_count; i++) allowed &= t->deny[i] != token;
    return allowed;
}

// (EOD, EOD), or the best left word and EOD.
dgm_candidate dgm_pair_best_end(const dgm_search *s, const dgm_active *p, int row)
{
    const dgm_rows *r = &s->rows;
    const int at = 2 * row;
    const float *watched = r->watch_score + at;
    const size_t list = (size_t)at * (size_t)s->k;
    const size_t x = r->token[list] == s->eos && s->k > 1; // place of the best left word
    dgm_candidate end = {.hypo = r->hypo[row],
                         .row = row,
                         .token = s->eos,
                         .second = s->eos,
                         .first = watched[0],
                         .score = -INFINITY};
    dgm_candidate word = end;
    if (!dgm_pair_may_say(&r->terms[at + 1], s->eos)) return end;
    if (dgm_pair_may_say(&r->terms[at], s->eos) && dgm_pair_may_end(s, p, &end)) end.score = watched[0] + watched[1];
    word.token = r->token[list + x];
    word.first = r->score[list + x];
    word.score = word.first + watched[1];
    if (word.token < 0 || word.token == s->eos || !dgm_pair_may_end(s, p, &word)) return end;
    if (end.score > -INFINITY &&
        dgm_final_score(p, end.score, p->tokens + 1) >= dgm_final_score(p, word.score, p->tokens + 2))
        return end;
    return word;
}

// A pair that may not end a hypothesis here is as if it were denied.
static bool next_pair(dgm_merge *m, dgm_candidate *c)
{
    const dgm_search *s = m->s;
    const dgm_pairs *d = s->pairs;
    while (m->at < d->found_count) {
        const dgm_pair *pair = &d->found[m->at++];
        const int32_t *left = s->rows.token + (size_t)(2 * pair->row) * (size_t)s->k;
        const int32_t *right = left + s->k;
        *c = (dgm_candidate){.hypo = s->rows.hypo[pair->row],
                             .row = pair->row,
                             .column = pair->left,
                             .token = left[pair->left],
                             .second = right[pair->right],
                             .first = pair->left_score,
                             .score = pair->score};
        if (!dgm_candidate_ends(s, c) || dgm_pair_may_end(s, m->p, c)) return true;
    }
    return false;
}

static void expand(dgm_search *s, dgm_active *p)
{
    dgm_pairs *d = s->pairs;
    if (dgm_pair_ruled(s, p)) {
        dgm_merge pairs = dgm_pair_rules(s, p);
        dgm_merge ruled = dgm_banks_filter(s, p, &pairs);
        dgm_active_expand(s, p, &ruled);
        return;
    }
    const dgm_pair_lists lists = {s->rows.score, s->k, p->first_row, p->row_count};
    d->found_count = s->config.double_exact
                         ? dgm_double_exact(&lists, p->width, d->heap, d->found)
                         : dgm_double_topk(&lists, p->width, d->lefts, d->found, d->at);
    for (int j = 0; j < p->row_count; j++) p->hand->ends[j] = dgm_pair_best_end(s, p, p->first_row + j);
    dgm_merge merge = {.next = next_pair, .s = s, .p = p};
    dgm_active_expand(s, p, &merge);
}

// ---- results ------------------------------------------------------------------------------------

void dgm_pair_trace(dgm_search *s, const dgm_active *p, const dgm_ended *e, int index)
{
    const size_t longest = (size_t)s->config.max_length;
    const size_t source = (size_t)s->config.max_source, cols = (size_t)p->source_count;
    int32_t *flat = s->pairs->words, *nodes = flat + longest + 2, *order = nodes + longest + 2;
    int count = 0;
    // Nothing at all: the empty answer has no pairs.
    for (int32_t node = e->node; node > 1; node = p->nodes[node].parent) count++;
    for (int32_t node = e->node, t = count; t-- > 0; node = p->nodes[node].parent) {
        flat[t] = p->nodes[node].token;
        nodes[t] = node;
    }
    dgm_room room;
    const int words = dgm_result_room(s, e, index, &room)->count =
        dgm_double_unfold(s->info[0]->order, flat, count / 2, s->eos, order);
    float rest = e->sum;
    for (int t = 0; t < words; t++) {
        const dgm_node *n = &p->nodes[nodes[order[t]]];
        const float own = n->score - p->nodes[n->parent].score;
        room.tokens[t] = n->token;
        rest -= own;
        if (room.scores) room.scores[t] = own;
        if (room.align) // the vector of the same side in the pair before chose it
            memcpy(room.align + (size_t)t * cols,
                   p->attention + (size_t)p->nodes[n->parent].parent * source,
                   cols * sizeof *room.align);
    }
    if (room.scores) room.scores[words] = rest;
}

// ---- as a search --------------------------------------------------------------------------------

static dgm_status advance(dgm_search *s, dgm_error *err)
{
    dgm_pair_begin(s);
    return dgm_generation(s, expand, err);
}

static int candidates(const dgm_search_config *c)
{
    return 3 * c->beam;
}

// Pairs that live on, and those that end or might have (policy mask): of every generation.
int dgm_pair_nodes(const dgm_search_config *c)
{
    return 2 + 6 * c->beam * (c->max_length / 2 + 2);
}

void dgm_pair_lay_out(dgm_carve *c, dgm_search *s)
{
    const size_t width = (size_t)s->width;
    dgm_pairs *d = DGM_CARVE(c, dgm_pairs, 1), counted;
    s->pairs = d;
    if (!d) d = &counted;
    d->lefts = DGM_CARVE(c, dgm_pair, 2 * width);
    d->found = DGM_CARVE(c, dgm_pair, 3 * width);
    // Every pop of the exact search lets in at most two cells.
    d->heap = DGM_CARVE(c, dgm_pair, width + 3 * width);
    d->at = DGM_CARVE(c, int, 2 * width);
    d->words = DGM_CARVE(c, int32_t, 3 * ((size_t)s->config.max_length + 2));
    d->most = dgm_pair_most(s);
    d->said = DGM_CARVE(c, int32_t, 2 * ((size_t)s->config.max_length + 4));
    d->whole = DGM_CARVE(c, int32_t, 2 * (size_t)s->config.max_length + 8);
    d->table = DGM_CARVE(c, char, dgm_pair_table_bytes());
    d->ways = DGM_CARVE(c, int32_t, (size_t)s->capacity *DGM_PAIR_WAYS);
    d->sure = DGM_CARVE(c, int32_t, 2 * (size_t)s->capacity);
    d->kept = DGM_CARVE(c, dgm_candidate, (size_t)d->most);
    d->kept_count = DGM_CARVE(c, int, DGM_PAIR_SHELVES);
    d->ruled = DGM_CARVE(c, dgm_candidate, width *(size_t)d->most);
}

const dgm_search_ops dgm_search_double = {.name = "double",
                                          .tokens = 2,
                                          .candidates = candidates,
                                          .nodes = dgm_pair_nodes,
                                          .lay_out = dgm_pair_lay_out,
                                          .terms = dgm_pair_terms,
                                          .advance = advance,
                                          .trace = dgm_pair_trace};
