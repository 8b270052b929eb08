// SPDX-License-Identifier: MIT
// Decoding inside a lattice, as a scorer: the state of a hypothesis is a node of its sentence's
// lattice (walk.h), and a row may only take the tokens that leave it. A sentence without a lattice
// is left alone. A hypothesis never gets stuck: every node of a lattice lies on a path to an end.
#include "score/walk.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/lower_bound.h"
#include "base/mem.h"
#include "base/sort.h"
#include "score/score.h"

// ---- making ------------------------------------------------------------------------------------

void dgm_walk_free(dgm_walk **out)
{
    dgm_walk *w = *out;
    if (!w) return;
    dgm_free(w->first);
    dgm_free(w->ids);
    dgm_free(w->next);
    dgm_free(w->adds);
    dgm_free(w->tokens);
    dgm_free(w->back_first);
    dgm_free(w->back);
    dgm_free(w->from);
    dgm_free(w->ends);
    for (int i = 0; i < 2; i++) {
        dgm_free(w->set[i]);
        dgm_free(w->sum[i]);
    }
    dgm_free(w->mark);
    dgm_free(w->lengths);
    dgm_free(w->depths);
    dgm_free(w);
    *out = NULL;
}

static void put(dgm_walk *w, int32_t *at, int32_t id, int32_t next, float add)
{
    w->ids[*at] = id;
    w->next[*at] = next;
    if (w->adds) w->adds[*at] = add;
    ++*at;
}

// Arcs of a node are ascending; the end symbol goes in between.
static void put_node(dgm_walk *w, const dgm_lattice *l, int32_t node, int32_t eos, float weight,
                     int32_t *at)
{
    bool ends = l->ends[node] > -INFINITY;
    w->first[node] = *at;
    for (size_t i = l->first[node]; i < l->first[node + 1]; i++) {
        const dgm_lattice_arc *a = &l->arcs[i];
        if (ends && eos < a->word) {
            put(w, at, eos, -1, weight * l->ends[node]);
            ends = false;
        }
        put(w, at, a->word, a->to, weight * a->score);
    }
    if (ends) put(w, at, eos, -1, weight * l->ends[node]);
}

static int by_token(const void *context, uint32_t a, uint32_t b)
{
    const dgm_lattice_arc *arcs = context;
    if (arcs[a].word != arcs[b].word) return arcs[a].word < arcs[b].word ? -1 : 1;
    return a < b ? -1 : a > b;
}

static dgm_status list_tokens(dgm_walk *w, const dgm_lattice *l, dgm_error *err)
{
    uint32_t *order = dgm_malloc((l->arc_count + 1) * sizeof *order);
    if (!order) return dgm_no_memory(err);
    dgm_sort_indices(order, l->arc_count, by_token, l->arcs);
    for (size_t i = 0; i < l->arc_count; i++) {
        const int32_t token = l->arcs[order[i]].word;
        if (w->token_count == 0 || w->tokens[w->token_count - 1] != token)
            w->tokens[w->token_count++] = token;
    }
    dgm_free(order);
    return DGM_OK;
}

dgm_status dgm_walk_make(dgm_walk **out, const dgm_lattice *l, int32_t eos, float weight,
                         dgm_error *err)
{
    const size_t nodes = (size_t)l->node_count, entries = l->arc_count + nodes;
    dgm_walk *w = *out = dgm_calloc(1, sizeof *w);
    if (!w) return dgm_no_memory(err);
    w->node_count = l->node_count;
    w->longest = (int)dgm_lattice_longest(l);
    w->first = dgm_malloc((nodes + 1) * sizeof *w->first);
    w->ids = dgm_malloc(entries * sizeof *w->ids);
    w->next = dgm_malloc(entries * sizeof *w->next);
    w->adds = weight != 0.0f ? dgm_malloc(entries * sizeof *w->adds) : NULL;
    w->tokens = dgm_malloc((l->arc_count + 1) * sizeof *w->tokens);
    dgm_status st = w->first && w->ids && w->next && w->tokens && (w->adds || weight == 0.0f)
                        ? list_tokens(w, l, err)
                        : dgm_no_memory(err);
    if (st != DGM_OK) {
        dgm_walk_free(out);
        return st;
    }
    int32_t at = 0;
    for (int32_t n = 0; n < l->node_count; n++) put_node(w, l, n, eos, weight, &at);
    w->first[l->node_count] = at;
    return DGM_OK;
}

int32_t dgm_walk_find(const dgm_walk *w, int32_t node, int32_t token)
{
    const int32_t first = w->first[node];
    const int at = dgm_find_id(w->ids + first, w->first[node + 1] - first, token);
    return at < 0 ? -1 : first + at;
}

// ---- as a scorer -------------------------------------------------------------------------------

static dgm_status admit(dgm_scorer *s, int active, const dgm_score_sentence *sentence,
                        int32_t *state, dgm_error *err)
{
    (void)err;
    ((const dgm_walk **)s->data)[active] = sentence->walk;
    *state = 0;
    return DGM_OK;
}

// A state of -1 is behind the end symbol, or where another scorer forced a token that the lattice
// does not have: nothing may follow.
static void terms(dgm_scorer *s, int active, int32_t state, dgm_terms *t)
{
    const dgm_walk *w = ((const dgm_walk **)s->data)[active];
    if (!w) return;
    const int32_t first = state < 0 ? 0 : w->first[state];
    dgm_terms_allow(t, w->ids + first, state < 0 ? 0 : w->first[state + 1] - first);
    if (w->adds) dgm_terms_add(t, t->allow, w->adds + first, t->allow_count);
}

static int32_t advance(dgm_scorer *s, int active, int32_t state, int32_t token)
{
    const dgm_walk *w = ((const dgm_walk **)s->data)[active];
    if (!w || state < 0) return state;
    const int32_t at = dgm_walk_find(w, state, token);
    return at < 0 ? -1 : w->next[at];
}

static void leave(dgm_scorer *s, int active)
{
    ((const dgm_walk **)s->data)[active] = NULL;
}

static const dgm_scorer_ops ops = {.name = "lattice",
                                   .admit = admit,
                                   .terms = terms,
                                   .advance = advance,
                                   .leave = leave};

size_t dgm_score_walk_bytes(int sentences)
{
    return dgm_arena_cost((size_t)sentences * sizeof(dgm_walk *));
}

dgm_status dgm_score_walk(dgm_scorer *s, dgm_arena *arena, int sentences, dgm_error *err)
{
    const dgm_walk **walks = DGM_ARENA_ARRAY(arena, const dgm_walk *, (size_t)sentences);
    if (!walks)
        return dgm_fail(err, DGM_ERR_MEMORY,
                        "the workspace is too small for the lattices of %d sentences", sentences);
    for (int i = 0; i < sentences; i++) walks[i] = NULL;
    *s = (dgm_scorer){.ops = &ops, .data = walks};
    return DGM_OK;
}
