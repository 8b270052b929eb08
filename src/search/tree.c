// SPDX-License-Identifier: MIT
// Hypotheses of one sentence: the tree of back-pointers, the stores of completed ones, the result.
//
// Nodes are handed out from the front of the sentence's array and never given back before the sentence
// leaves: a generation adds at most `width` of them, so 1 + width * (max_length + 1) suffice. (The
// last generation only looks for end symbols; what it keeps besides is thrown away.)
// A completed hypothesis needs no node of its own, only its last real token's. Where a step has two
// tokens (double.c), a pair is two nodes, the left word's before the right word's, and the pair that
// ends a hypothesis has nodes, too: it may hold a word.
//
// Length normalisation happens here and nowhere else: score = (sum - word_penalty * n) / n^penalty
// with n = real tokens + 1 for the end symbol. Policies of transformers count the model's own first
// tokens, too, and no end symbol where they cut off without one. (Marian subtracts its word penalty in the same
// place, from finished hypotheses, end symbol counted.)
#include "search/search_private.h"

#include <math.h>
#include <string.h>

#include "base/sort.h"

void dgm_active_reset(dgm_search *s, dgm_active *p)
{
    (void)s;
    p->lead = p->tokens = p->steps = 0;
    p->nodes[0] = (dgm_node){.parent = -1, .token = DGM_NO_TOKEN, .score = 0.0f};
    p->node_count = 1;
    p->now.count = 1;
    p->now.live[0] = (dgm_live){.node = 0, .score = 0.0f, .ended = false};
    p->now.origins[0] = 0;
    p->next.count = 0;
    p->store.count = p->spare.count = 0;
    p->ended = p->again_count = 0;
    p->best_sum = -INFINITY;
    p->top_ended = false;
    p->row_count = 0;
    p->done = false;
}

// The candidate's nodes behind its hypothesis' path; the last one.
static int32_t add_nodes(const dgm_search *s, dgm_active *p, const dgm_candidate *c)
{
    int32_t parent = p->now.live[c->hypo].node;
    if (s->pairs) {
        p->nodes[p->node_count] = (dgm_node){.parent = parent, .token = c->token, .score = c->first};
        parent = p->node_count++;
    }
    p->nodes[p->node_count] = (dgm_node){
        .parent = parent, .token = s->pairs ? c->second : c->token, .score = c->score};
    return p->node_count++;
}

// Scorers follow the text from its beginning: of a pair from both ends, the left word.
static int32_t next_state(dgm_search *s, int active, int scorer, int32_t state,
                          const dgm_candidate *c)
{
    state = dgm_scorer_advance(&s->scorers[scorer], active, state, c->token);
    if (s->pairs && s->info[0]->order != DGM_ORDER_BIDIRECTIONAL)
        state = dgm_scorer_advance(&s->scorers[scorer], active, state, c->second);
    return state;
}

void dgm_active_keep(dgm_search *s, dgm_active *p, const dgm_candidate *c)
{
    const int parts = s->part_count, scorers = s->scorer_count, at = p->next.count++;
    const int32_t node = add_nodes(s, p, c);
    p->next.live[at] = (dgm_live){
        .node = node, .score = c->score, .lane = p->now.live[c->hypo].lane, .state_right = c->state_right};
    p->next.origins[at] = c->row;
    for (int i = 0; i < parts; i++)
        p->next.rows[at * parts + i] = s->rows.rows[i * s->capacity + c->row];
    const int active = (int)(p - s->active);
    for (int i = 0; i < scorers; i++)
        p->next.states[at * scorers + i] =
            next_state(s, active, i, p->now.states[c->hypo * scorers + i], c);
}

void dgm_active_swap(const dgm_search *s, dgm_active *p)
{
    dgm_beam old = p->now;
    p->now = p->next;
    p->next = old;
    p->next.count = 0;
    p->tokens += s->vectors;
}

// Hypothesis `from` becomes number `to`, which is not behind it.
static void move_live(const dgm_search *s, dgm_beam *b, int from, int to)
{
    const int parts = s->part_count, scorers = s->scorer_count;
    b->live[to] = b->live[from];
    b->origins[to] = b->origins[from];
    memmove(b->rows + to * parts, b->rows + from * parts, (size_t)parts * sizeof *b->rows);
    memmove(b->states + to * scorers, b->states + from * scorers,
            (size_t)scorers * sizeof *b->states);
}

void dgm_active_prune(const dgm_search *s, dgm_active *p)
{
    if (s->config.beam_width == 0.0f) return;
    dgm_beam *b = &p->now;
    int *bank = p->hand->merge_at; // all 0 unless the sentence has constraints: banks do not compete
    float *best = p->hand->best;   // of the hypothesis' bank
    for (int j = 0; j < b->count; j++) bank[j] = dgm_hypo_bank(s, p, j);
    for (int j = 0; j < b->count; j++) {
        best[j] = -INFINITY;
        for (int i = 0; i < b->count; i++)
            if (bank[i] == bank[j] && b->live[i].score > best[j]) best[j] = b->live[i].score;
    }
    int count = 0;
    for (int j = 0; j < b->count; j++) {
        if (b->live[j].score < best[j] + logf(s->config.beam_width)) continue;
        move_live(s, b, j, count++);
    }
    b->count = count;
}

static int32_t ancestor(const dgm_node *nodes, int32_t node, int steps)
{
    while (steps-- > 0) node = nodes[node].parent;
    return node;
}

void dgm_active_settle(const dgm_search *s, dgm_active *p)
{
    dgm_beam *b = &p->now;
    if (p->settle <= 0 || p->tokens <= p->settle || b->count < 2 || !s->ops->grows || p->constraint) return;
    int best = 0, count = 0;
    for (int j = 1; j < b->count; j++)
        if (b->live[j].score > b->live[best].score) best = j;
    const int32_t settled = ancestor(p->nodes, b->live[best].node, p->settle);
    for (int j = 0; j < b->count; j++)
        if (ancestor(p->nodes, b->live[j].node, p->settle) == settled) move_live(s, b, j, count++);
    b->count = count;
}

float dgm_final_score(const dgm_active *p, float sum, int length)
{
    return dgm_length_normalise(sum - p->lengths.word_penalty * (float)length, length,
                                p->lengths.length_penalty);
}

int dgm_counted_lead(const dgm_search *s)
{
    return s->finish->counts_lead ? s->lead_count - 1 : 0;
}

int dgm_counted_length(const dgm_search *s, int length, bool finished)
{
    const bool endless = !finished && s->finish->endless && length > 1;
    return length + dgm_counted_lead(s) - (endless ? 1 : 0);
}

// The store keeps its best `width`; an equal newcomer ranks behind.
static void insert(dgm_store *store, int width, const dgm_ended *e)
{
    if (store->count == width && !(e->score > store->items[width - 1].score)) return;
    int at = store->count < width ? store->count++ : width - 1;
    DGM_INSERT(store->items, at, *e, e->score > store->items[at - 1].score);
}

int dgm_whole_length(const dgm_search *s, const dgm_active *p, const dgm_candidate *c)
{
    if (!s->pairs) return p->tokens;
    if (c->token != s->eos) return p->tokens + 1;
    // (EOD, x): from both ends x stands in the middle, else it is dropped.
    return p->tokens + (c->second != s->eos && s->info[0]->order == DGM_ORDER_BIDIRECTIONAL);
}

static dgm_ended complete(dgm_search *s, dgm_active *p, const dgm_candidate *c, bool finished)
{
    const int active = (int)(p - s->active), length = dgm_whole_length(s, p, c) + 1;
    float score = c->score;
    for (int i = 0; i < s->scorer_count; i++)
        score = dgm_scorer_finish(&s->scorers[i], active,
                                  p->now.states[c->hypo * s->scorer_count + i], score);
    const int32_t node = s->pairs ? add_nodes(s, p, c) : p->now.live[c->hypo].node;
    return (dgm_ended){.node = node,
                       .length = length,
                       .sum = c->score,
                       .score = dgm_final_score(p, score, dgm_counted_length(s, length, finished)) +
                                dgm_coverage(s, p, node, finished),
                       .finished = finished};
}

void dgm_active_store(dgm_active *p, dgm_store *store, const dgm_ended *e)
{
    if (!(e->score > -INFINITY)) return;
    if (store == &p->store) {
        p->ended++;
        if (e->sum > p->best_sum) p->best_sum = e->sum;
    }
    insert(store, p->width, e);
}

void dgm_active_end(dgm_search *s, dgm_active *p, const dgm_candidate *c, bool finished)
{
    p->now.live[c->hypo].ended = true;
    if (!(c->score > -INFINITY)) return; // also not a number
    const dgm_ended e = complete(s, p, c, finished);
    dgm_active_store(p, &p->store, &e);
}

void dgm_active_force(dgm_search *s, dgm_active *p, int hypo)
{
    const float sum = p->now.live[hypo].score;
    const dgm_candidate c = {
        .hypo = hypo, .token = s->eos, .second = s->eos, .first = sum, .score = sum};
    dgm_active_end(s, p, &c, false);
}

void dgm_active_spare(dgm_search *s, dgm_active *p, const dgm_candidate *c)
{
    if (!(c->score > -INFINITY)) return;
    const dgm_ended e = complete(s, p, c, false);
    dgm_active_store(p, &p->spare, &e);
}

// ---- results ----------------------------------------------------------------------------------

dgm_hypothesis *dgm_result_room(dgm_search *s, const dgm_ended *e, int index, dgm_room *room)
{
    const size_t longest = (size_t)s->config.max_length, source = (size_t)s->config.max_source;
    const size_t at = (size_t)index;
    *room = (dgm_room){.tokens = s->tokens + at * longest,
                       .scores = s->word_scores ? s->word_scores + at * (longest + 1) : NULL,
                       .align = s->alignment ? s->alignment + at * longest * source : NULL};
    s->hypotheses[index] = (dgm_hypothesis){.tokens = room->tokens,
                                            .score = e->score,
                                            .sum = e->sum,
                                            .word_scores = room->scores,
                                            .alignment = room->align,
                                            .finished = e->finished};
    return &s->hypotheses[index];
}

// Walks back from the last token and fills what the caller asked for. Token t was chosen by the row
// that its parent's token was fed to, so its attention is stored with the parent.
static void trace(dgm_search *s, const dgm_active *p, const dgm_ended *e, int index)
{
    const size_t source = (size_t)s->config.max_source, cols = (size_t)p->source_count;
    dgm_room room;
    const int count = dgm_result_room(s, e, index, &room)->count = e->length - 1;
    int32_t node = e->node;
    if (room.scores) room.scores[count] = e->sum - p->nodes[node].score;
    for (int t = count - 1; t >= 0; t--) {
        const dgm_node *n = &p->nodes[node];
        room.tokens[t] = n->token;
        if (room.scores) room.scores[t] = n->score - p->nodes[n->parent].score;
        if (room.align)
            memcpy(room.align + (size_t)t * cols, p->attention + (size_t)n->parent * source,
                   cols * sizeof *room.align);
        node = n->parent;
    }
}

static void swap_floats(float *a, float *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float x = a[i];
        a[i] = b[i];
        b[i] = x;
    }
}

// A model that writes from right to left: its results in the order of reading.
static void turn(dgm_search *s, const dgm_active *p, const dgm_ended *e, int index)
{
    const size_t cols = (size_t)p->source_count;
    dgm_room room;
    dgm_hypothesis *h = dgm_result_room(s, e, index, &room);
    h->count = e->length - 1;
    for (int a = 0, b = h->count - 1; a < b; a++, b--) {
        const int32_t token = room.tokens[a];
        room.tokens[a] = room.tokens[b];
        room.tokens[b] = token;
        if (room.scores) swap_floats(&room.scores[a], &room.scores[b], 1);
        if (room.align)
            swap_floats(room.align + (size_t)a * cols, room.align + (size_t)b * cols, cols);
    }
}

static void trace_in_order(dgm_search *s, const dgm_active *p, const dgm_ended *e, int index)
{
    if (s->ops->trace) {
        s->ops->trace(s, p, e, index);
        return;
    }
    trace(s, p, e, index);
    if (s->info[0]->order == DGM_ORDER_R2L) turn(s, p, e, index);
}

// The deepest node that two paths have in common; their tokens are counted, *depth becomes its.
static int32_t meet(const dgm_node *nodes, int32_t a, int *depth, int32_t b, int other)
{
    for (; *depth > other; (*depth)--) a = nodes[a].parent;
    for (; other > *depth; other--) b = nodes[b].parent;
    for (; a != b; (*depth)--) {
        a = nodes[a].parent;
        b = nodes[b].parent;
    }
    return a;
}

// Live hypotheses, and of the finished ones the best: the others cannot become it, unless they are
// scored again. Where there are too few, the result may be one that the policy spared.
int dgm_active_shared(dgm_search *s, const dgm_active *p)
{
    if (!s->ops->grows || s->info[0]->order != DGM_ORDER_L2R || p->again_count) return 0;
    const int most = s->config.rescore ? s->config.nbest : 1;
    if (p->now.count == 0 || (s->finish->spare && p->store.count < most)) return 0;
    int32_t node = p->now.live[0].node;
    int depth = p->tokens;
    for (int i = 1; i < p->now.count; i++)
        node = meet(p->nodes, node, &depth, p->now.live[i].node, p->tokens);
    for (int i = 0; i < p->store.count && i < most; i++)
        node = meet(p->nodes, node, &depth, p->store.items[i].node, p->store.items[i].length - 1);
    for (int t = depth - 1; t >= 0; t--, node = p->nodes[node].parent)
        s->tokens[t] = p->nodes[node].token;
    return depth;
}

bool dgm_active_goes_on(const dgm_search *s, const dgm_active *p, int count,
                        bool (*fits)(const void *cookie, int32_t token), const void *cookie)
{
    const int most = s->config.rescore ? s->config.nbest : 1;
    if (p->now.count == 0 || p->tokens <= count) return false;
    for (int i = 0; i < p->now.count; i++) {
        const int32_t next = ancestor(p->nodes, p->now.live[i].node, p->tokens - count - 1);
        if (!fits(cookie, p->nodes[next].token)) return false;
    }
    for (int i = 0; i < p->store.count && i < most; i++) {
        const int more = p->store.items[i].length - 1 - count;
        if (more < 1) continue; // it ends there
        const int32_t next = ancestor(p->nodes, p->store.items[i].node, more - 1);
        if (!fits(cookie, p->nodes[next].token)) return false;
    }
    return true;
}

void dgm_active_report(dgm_search *s, dgm_active *p, dgm_search_sink sink, void *cookie)
{
    int count = 0;
    for (int i = 0; i < p->store.count && count < s->config.nbest; i++)
        trace_in_order(s, p, &p->store.items[i], count++);
    for (int i = 0; i < p->spare.count && count < s->config.nbest; i++)
        trace_in_order(s, p, &p->spare.items[i], count++);
    // No token ever had a finite score (a damaged model, a constraint that cannot be met): every
    // sentence still has an answer, the empty one, at the score of nothing.
    if (count == 0) {
        const dgm_ended nothing = {.length = 1, .sum = -INFINITY, .score = -INFINITY};
        trace_in_order(s, p, &nothing, count++);
    }
    s->stats.sentences++;
    s->stats.tokens += (uint64_t)s->hypotheses[0].count;
    const dgm_search_result result = {.id = p->id,
                                      .hypotheses = s->hypotheses,
                                      .count = count,
                                      .source_count = p->source_count,
                                      .steps = p->steps};
    sink(cookie, &result);
}
