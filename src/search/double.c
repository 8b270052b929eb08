// SPDX-License-Identifier: MIT
// Beam search with a model that writes two words a step (Imamura and Sumita 2020).
//
// One generation feeds every live hypothesis' last pair and gets two hidden vectors a row, left and
// right; rank gives each its best words; double_topk.c makes the sentence's 3W best pairs of them.
// Then:
//
//   of the first W pairs, those with EOD on either side are finished hypotheses
//   of all 3W in order, those without EOD fill the beam up to W
//
// This is the policy `refill`; the others (finish.c) draw from the same 3W. One row with a sure
// left EOD can take most of the 3W, so a beam may get smaller; it is done when nothing lives.
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
// Scores of a whole: sum of both words' log-probabilities; its length counts real words and one
// end.
#include "search/double_private.h"

#include <math.h>
#include <string.h>

// ---- a generation -------------------------------------------------------------------------------

// The start pair is two nodes: attention of both sides has a place.
static void begin(dgm_place *p)
{
    if (p->node_count > 1) return;
    p->nodes[1] = (dgm_node){.parent = 0, .token = DGM_NO_TOKEN, .score = 0.0f};
    p->node_count = 2;
    p->now.live[0].node = 1;
}

static float *attention_of(const dgm_search *s, const dgm_place *p, int32_t node)
{
    return p->attention ? p->attention + (size_t)node * (size_t)s->config.max_source : NULL;
}

static dgm_status feed(dgm_search *s, dgm_error *err)
{
    dgm_rows *r = &s->rows;
    dgm_pairs *d = s->pairs;
    if (r->count == 0) return DGM_OK;
    for (int part = 0; part < s->part_count; part++) {
        const dgm_model_info *info = s->info[part];
        for (int i = 0; i < r->count; i++) {
            const dgm_place *p = &s->places[r->place[i]];
            const int32_t right = p->now.live[r->hypo[i]].node, left = p->nodes[right].parent;
            const bool start = left == 0;
            r->steps[i] = (dgm_step_row){p->now.rows[r->hypo[i] * s->part_count + part],
                                         {start ? info->start : p->nodes[left].token,
                                          start ? info->start_second : p->nodes[right].token}};
            d->align[2 * i] = attention_of(s, p, left);
            d->align[2 * i + 1] = attention_of(s, p, right);
        }
        // Alignments are the first part's: attention of different networks does not add up.
        dgm_step_result out = {.rows = r->rows + (size_t)part * (size_t)s->capacity,
                               .align = part == 0 && s->config.alignment ? d->align : NULL};
        DGM_TRY(dgm_step(s->parts[part].state, r->count, r->steps, &out, err));
        r->hidden[part] = out.hidden;
    }
    s->stats.steps++;
    s->stats.rows += (uint64_t)r->count;
    return DGM_OK;
}

static void deny_end(const dgm_search *s, dgm_terms *t)
{
    t->deny = s->deny_early;
    t->deny_count = s->deny_early_count;
}

// Terms of both sides of a row.
static void fill_terms(dgm_search *s, int row)
{
    dgm_pairs *d = s->pairs;
    const int place = s->rows.place[row], hypo = s->rows.hypo[row];
    const dgm_place *p = &s->places[place];
    const int last = s->scorer_count - 1; // prefix forcing
    dgm_scorer *prefix = &s->scorers[last];
    const int32_t state = p->now.states[hypo * s->scorer_count + last];
    // Even with a word beside EOD too short. (Too short by one with (EOD, EOD): see `ending`.)
    const bool early = p->tokens + 1 < s->config.min_length && p->tokens + 1 < p->max_length;
    dgm_terms t = {.lambda = 1.0f,
                   .deny = early ? s->deny_early : s->deny,
                   .deny_count = early ? s->deny_early_count : s->deny_count};
    dgm_terms *left = &d->terms[2 * row], *right = &d->terms[2 * row + 1], next = t;
    *left = *right = t;
    left->base = p->now.live[hypo].score;
    dgm_scorer_terms(prefix, place, state, left);
    dgm_scorer_terms(prefix, place, dgm_scorer_advance(prefix, place, state, 0), &next);
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
    d->watch[2 * row] = d->watch[2 * row + 1] = s->eos;
}

static void rank(dgm_search *s)
{
    dgm_rows *r = &s->rows;
    dgm_pairs *d = s->pairs;
    if (r->ranked == 0) return;
    bool subset = false;
    const dgm_mat seen = dgm_mat_rows(r->hidden[s->vocabsel.part], 0, 2 * r->ranked);
    if (s->vocabsel.ops->look) s->vocabsel.ops->look(&s->vocabsel, seen);
    for (int i = 0; i < r->ranked; i++) {
        const dgm_place *p = &s->places[r->place[i]];
        fill_terms(s, i);
        const dgm_candidates *list = i > 0 ? d->candidates[2 * i - 1] : NULL;
        if (i == p->first_row) {
            list = s->vocabsel.ops->select(&s->vocabsel, r->place[i], 2 * i,
                                           dgm_mat_rows(seen, 2 * i, 2 * p->row_count));
            if (p->tokens == 0)
                s->stats.candidates += (uint64_t)(list ? list->count : s->info[0]->target_vocab);
        }
        d->candidates[2 * i] = d->candidates[2 * i + 1] = list;
        subset |= list != NULL;
    }
    dgm_rank_part parts[DGM_PARTS_MAX];
    dgm_rank rank = dgm_rank_rows(s, parts, 0, 2 * r->ranked);
    rank.candidates = subset ? d->candidates : NULL;
    rank.more = NULL;
    rank.terms = d->terms;
    rank.k = s->k;
    rank.watch_count = 1;
    rank.watch = d->watch;
    rank.watch_score = d->watch_score;
    rank.score = d->score;
    rank.token = d->token;
    dgm_op_rank(s->exec, &rank);
    dgm_rank_count(s, &rank);
    s->stats.rank_rows += (uint64_t)rank.rows;
    s->stats.leads += (uint64_t)r->ranked;
}

// ---- keeping and ending -------------------------------------------------------------------------

// Two nodes behind a live hypothesis; the right one.
static int32_t add_pair(dgm_place *p, int hypo, int32_t left, float left_score, int32_t right,
                        float score)
{
    const int32_t node = p->node_count;
    p->node_count += 2;
    p->nodes[node] =
        (dgm_node){.parent = p->now.live[hypo].node, .token = left, .score = left_score};
    p->nodes[node + 1] = (dgm_node){.parent = node, .token = right, .score = score};
    return node + 1;
}

static void keep(dgm_search *s, dgm_place *p, const dgm_pair *c, int32_t left, int32_t right)
{
    const int parts = s->part_count, scorers = s->scorer_count, at = p->next.count++;
    const int hypo = s->rows.hypo[c->row], place = (int)(p - s->places);
    const int32_t node = add_pair(p, hypo, left, c->left_score, right, c->score);
    p->next.live[at] = (dgm_live){.node = node, .score = c->score};
    p->next.origins[at] = c->row;
    for (int i = 0; i < parts; i++)
        p->next.rows[at * parts + i] = s->rows.rows[i * s->capacity + c->row];
    for (int i = 0; i < scorers; i++) {
        int32_t state = p->now.states[hypo * scorers + i];
        state = dgm_scorer_advance(&s->scorers[i], place, state, left);
        if (s->info[0]->order != DGM_ORDER_BIDIRECTIONAL)
            state = dgm_scorer_advance(&s->scorers[i], place, state, right);
        p->next.states[at * scorers + i] = state;
    }
}

// Words of a hypothesis that ends with this pair.
static int whole_length(const dgm_search *s, const dgm_place *p, int32_t left, int32_t right)
{
    if (left == s->eos)
        return p->tokens + (right != s->eos && s->info[0]->order == DGM_ORDER_BIDIRECTIONAL);
    return p->tokens + 1;
}

static void end(dgm_search *s, dgm_place *p, dgm_store *store, int hypo, int32_t left,
                float left_score, int32_t right, float sum, bool finished)
{
    if (!(sum > -INFINITY)) return; // also not a number
    const int length = whole_length(s, p, left, right) + 1;
    const dgm_ended e = {.node = add_pair(p, hypo, left, left_score, right, sum),
                         .length = length,
                         .sum = sum,
                         .score = dgm_final_score(p, sum, length),
                         .finished = finished};
    dgm_place_store(s, p, store, &e);
}

// May a hypothesis end with this pair here? (EOD, EOD) may be a word too short where (x, EOD) is
// not, and (x, EOD) a word too long.
static bool ending(const dgm_search *s, const dgm_place *p, int32_t left, int32_t right)
{
    const int length = whole_length(s, p, left, right);
    const int least = s->config.min_length < p->max_length ? s->config.min_length : p->max_length;
    return length >= least && length <= p->max_length;
}

static bool may_say(const dgm_terms *t, int32_t token)
{
    bool allowed = !t->allow;
    for (int i = 0; i < t->allow_count; i++) allowed |= t->allow[i] == token;
    for (int i = 0; i < t->deny_count; i++) allowed &= t->deny[i] != token;
    return allowed;
}

// The best way for every live hypothesis to end here, whatever the lists hold: (EOD, EOD), or the
// best left word and EOD. No way: -inf.
static void fill_ends(dgm_search *s, const dgm_place *p)
{
    dgm_pairs *d = s->pairs;
    for (int j = 0; j < p->row_count; j++) {
        const int at = 2 * (p->first_row + j);
        const size_t list = (size_t)at * (size_t)s->k;
        const int x = d->token[list] == s->eos && s->k > 1; // place of the best left word
        const int32_t word = d->token[list + (size_t)x];
        dgm_pair_end *e = &d->ends[j];
        *e = (dgm_pair_end){.left = s->eos, .left_score = d->watch_score[at], .sum = -INFINITY};
        if (!may_say(&d->terms[at + 1], s->eos)) continue;
        if (may_say(&d->terms[at], s->eos) && ending(s, p, s->eos, s->eos))
            e->sum = e->left_score + d->watch_score[at + 1];
        if (word < 0 || word == s->eos || !ending(s, p, word, s->eos)) continue;
        const float left = d->score[list + (size_t)x], sum = left + d->watch_score[at + 1];
        if (e->sum > -INFINITY &&
            dgm_final_score(p, e->sum, p->tokens + 1) >= dgm_final_score(p, sum, p->tokens + 2))
            continue;
        *e = (dgm_pair_end){.left = word, .left_score = left, .sum = sum};
    }
}

static void end_now(dgm_search *s, dgm_place *p, dgm_store *store, int hypo, bool finished)
{
    const dgm_pair_end *e = &s->pairs->ends[hypo];
    end(s, p, store, hypo, e->left, e->left_score, s->eos, e->sum, finished);
}

// The finishing policy's draws. A pair that may not end a hypothesis here is as if it were denied.
static void take(dgm_search *s, dgm_place *p, int count, bool closing)
{
    const dgm_pairs *d = s->pairs;
    const int places = s->finish->places ? s->finish->places(s, p) : -1;
    for (int i = 0, seen = 0; i < count; i++) {
        const dgm_pair *c = &d->found[i];
        const size_t at = (size_t)(2 * c->row) * (size_t)s->k;
        const int32_t left = d->token[at + (size_t)c->left];
        const int32_t right = d->token[at + (size_t)s->k + (size_t)c->right];
        const bool ends = left == s->eos || right == s->eos;
        if (ends && !ending(s, p, left, right)) continue;
        if (places >= 0 && seen == places) break;
        if (ends && seen < s->width) {
            const int hypo = s->rows.hypo[c->row];
            p->now.live[hypo].ended = true;
            end(s, p, &p->store, hypo, left, c->left_score, right, c->score, true);
        }
        if (!ends && !closing && p->next.count < s->width) keep(s, p, c, left, right);
        if (places < 0 && p->next.count == s->width) break;
        seen++;
    }
}

static void expand(dgm_search *s, dgm_place *p)
{
    dgm_pairs *d = s->pairs;
    const dgm_pair_lists lists = {d->score, s->k, p->first_row, p->row_count};
    const int count = s->config.double_exact
                          ? dgm_double_exact(&lists, s->width, d->heap, d->found)
                          : dgm_double_topk(&lists, s->width, d->lefts, d->found, d->at);
    const bool closing = p->tokens + 2 > p->max_length; // no whole pair more
    fill_ends(s, p);
    take(s, p, count, closing);
    for (int j = 0; s->finish->spare && j < p->now.count; j++)
        if (!p->now.live[j].ended) end_now(s, p, &p->spare, j, false);
    if (closing) {
        for (int j = 0; s->finish->cut && j < p->now.count; j++)
            if (!p->now.live[j].ended) end_now(s, p, &p->store, j, false);
        p->next.count = p->now.count = 0;
        p->done = true;
        return;
    }
    dgm_place_swap(p);
    p->tokens++; // a pair
    dgm_place_prune(s, p);
    p->done = p->now.count == 0 || s->finish->stop(s, p);
    if (p->done && p->now.count > 0 && s->config.finish == DGM_FINISH_MARGIN) s->stats.early++;
    if (!p->done && p->tokens + 2 > p->max_length && s->finish->force_end) {
        for (int j = 0; j < p->now.count; j++) {
            const float sum = p->now.live[j].score;
            end(s, p, &p->store, j, s->eos, sum, s->eos, sum, false);
        }
        p->done = true;
    }
    if (p->done) p->now.count = 0;
}

// ---- results ------------------------------------------------------------------------------------

static void trace(dgm_search *s, const dgm_place *p, const dgm_ended *e, int index)
{
    const size_t longest = (size_t)s->config.max_length;
    const size_t source = (size_t)s->config.max_source, cols = (size_t)p->source_count;
    int32_t *tokens = s->tokens + (size_t)index * longest;
    float *scores = s->word_scores ? s->word_scores + (size_t)index * (longest + 1) : NULL;
    float *align = s->alignment ? s->alignment + (size_t)index * longest * source : NULL;
    int32_t *flat = s->pairs->words, *nodes = flat + longest + 2, *order = nodes + longest + 2;
    int count = 0;
    // Nothing at all: the empty answer has no pairs.
    for (int32_t node = e->node; node > 1; node = p->nodes[node].parent) count++;
    for (int32_t node = e->node, t = count; t-- > 0; node = p->nodes[node].parent) {
        flat[t] = p->nodes[node].token;
        nodes[t] = node;
    }
    const int words = dgm_double_unfold(s->info[0]->order, flat, count / 2, s->eos, order);
    float rest = e->sum;
    for (int t = 0; t < words; t++) {
        const dgm_node *n = &p->nodes[nodes[order[t]]];
        const float own = n->score - p->nodes[n->parent].score;
        tokens[t] = n->token;
        rest -= own;
        if (scores) scores[t] = own;
        if (align) // the vector of the same side in the pair before chose it
            memcpy(align + (size_t)t * cols, attention_of(s, p, p->nodes[n->parent].parent),
                   cols * sizeof *align);
    }
    if (scores) scores[words] = rest;
    s->hypotheses[index] = (dgm_hypothesis){.tokens = tokens,
                                            .count = words,
                                            .score = e->score,
                                            .sum = e->sum,
                                            .word_scores = scores,
                                            .alignment = align,
                                            .finished = e->finished};
}

// ---- as a search --------------------------------------------------------------------------------

static dgm_status advance(dgm_search *s, dgm_error *err)
{
    for (int i = 0; i < s->config.places; i++)
        if (s->places[i].used) begin(&s->places[i]);
    dgm_rows_collect(s);
    DGM_TRY(feed(s, err));
    rank(s);
    DGM_TRY(dgm_exec_status(s->exec, err));
    for (int i = 0; i < s->config.places; i++)
        if (s->places[i].used) expand(s, &s->places[i]);
    dgm_rows_retain(s);
    return DGM_OK;
}

static dgm_status check(const dgm_search_config *c, dgm_error *err)
{
    DGM_FAIL_IF(c->coverage > 0.0f, err, DGM_ERR_ARGUMENT,
                "a coverage penalty is not made for two words a step");
    DGM_FAIL_IF(c->no_repeat > 0 || (c->repetition > 0.0f && c->repetition != 1.0f), err,
                DGM_ERR_ARGUMENT,
                "with two words a step repetition cannot be watched: a word does not know the "
                "other one of its pair");
    return DGM_OK;
}

static int candidates(const dgm_search_config *c)
{
    return 3 * c->beam;
}

// Pairs that live on, and those that end or might have (policy mask): of every generation.
static int nodes(const dgm_search_config *c)
{
    return 2 + 6 * c->beam * (c->max_length / 2 + 2);
}

static void lay_out(dgm_carve *c, dgm_search *s)
{
    const size_t rows = 2 * (size_t)s->capacity, k = (size_t)s->k, width = (size_t)s->width;
    dgm_pairs *d = DGM_CARVE(c, dgm_pairs, 1), counted;
    s->pairs = d;
    if (!d) d = &counted;
    d->terms = DGM_CARVE(c, dgm_terms, rows);
    d->candidates = DGM_CARVE(c, const dgm_candidates *, rows);
    d->watch = DGM_CARVE(c, int32_t, rows);
    d->watch_score = DGM_CARVE(c, float, rows);
    d->score = DGM_CARVE(c, float, rows *k);
    d->token = DGM_CARVE(c, int32_t, rows * k);
    d->align = DGM_CARVE(c, float *, rows);
    d->lefts = DGM_CARVE(c, dgm_pair, 2 * width);
    d->found = DGM_CARVE(c, dgm_pair, 3 * width);
    // Every pop of the exact search lets in at most two cells.
    d->heap = DGM_CARVE(c, dgm_pair, width + 3 * width);
    d->at = DGM_CARVE(c, int, 2 * width);
    d->ends = DGM_CARVE(c, dgm_pair_end, width);
    d->words = DGM_CARVE(c, int32_t, 3 * ((size_t)s->config.max_length + 2));
}

const dgm_search_ops dgm_search_double = {.name = "double",
                                          .tokens = 2,
                                          .check = check,
                                          .candidates = candidates,
                                          .nodes = nodes,
                                          .lay_out = lay_out,
                                          .advance = advance,
                                          .trace = trace};
