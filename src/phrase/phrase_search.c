// SPDX-License-Identifier: MIT
// Stack decoding with cube pruning; see phrase_decode_private.h.
//
// Stack k holds hypotheses that cover k words. A finished stack is cut into groups of equal cover
// and last phrase; each group and each span that may follow make an edge to a later stack: a grid
// of the group's hypotheses, best first, times the span's options, best first. A stack is filled
// from one queue over the corners of all its edges:
//
//     pop the best item; if its score is an estimate (no language model across the phrases' border
//     yet), compute it and put it back; else it is a hypothesis: its right and, from the first
//     column, its lower neighbour enter the queue
//
// so that most corners are never scored exactly. After `pops` hypotheses the rest is left. With
// more pops than there are items the search is exhaustive, up to `stack` and the jumps allowed.
//
// Hypotheses recombine when nothing that follows can tell them apart: cover, last phrase's end,
// language model state, and with orientations also its beginning and what it says about the next.
#include <string.h>

#include "base/heap.h"
#include "base/mem.h"
#include "base/sort.h"
#include "phrase/phrase_decode_private.h"

int dgm_pb_turn(int previous_begin, int previous_end, int begin, int end)
{
    if (begin == previous_end) return 0;
    return end == previous_begin ? 1 : 2;
}

int dgm_pb_jump(int previous_end, int begin)
{
    return begin > previous_end ? begin - previous_end : previous_end - begin;
}

// ---- cover ------------------------------------------------------------------------------------

static bool is_free(const dgm_pb_cover *c, int begin, int end)
{
    if (begin < c->gap) return false;
    int at = begin - c->gap, length = end - begin;
    if (at >= 64) return true;
    uint64_t bits = (((uint64_t)1 << length) - 1) << at;
    return (c->mask & bits) == 0;
}

static dgm_pb_cover cover_with(dgm_pb_cover c, int begin, int end)
{
    if (begin > c.gap) {
        c.mask |= (((uint64_t)1 << (end - begin)) - 1) << (begin - c.gap);
        return c;
    }
    c.mask = end - begin < 64 ? c.mask >> (end - begin) : 0;
    c.gap = end;
    while (c.mask & 1) {
        c.mask >>= 1;
        c.gap++;
    }
    return c;
}

static double future_of(const dgm_pb_decoder *d, const dgm_pb_cover *c)
{
    double sum = 0;
    int at = c->gap;
    uint64_t mask = c->mask;
    size_t stride = (size_t)d->width + 1;
    while (mask) { // gaps before covered words
        int length = 0;
        while (!(mask & 1)) mask >>= 1, length++;
        sum += d->future[(size_t)at * stride + (size_t)length];
        at += length;
        while (mask & 1) mask >>= 1, at++;
    }
    return sum + d->tail[at];
}

// ---- edges ------------------------------------------------------------------------------------

// May a phrase begin .. end follow? The jump to it, and the jump back to the first gap, are short
// enough. A phrase at the first gap can always follow, so no hypothesis gets stuck.
static bool reachable(const dgm_pb_decoder *d, const dgm_pb_hyp *h, int begin, int end)
{
    int limit = d->m->p.jump;
    if (dgm_pb_jump(h->end, begin) > limit) return false;
    return begin == h->cover.gap || end - h->cover.gap <= limit;
}

static dgm_status add_edge(dgm_pb_decoder *d, int from, dgm_pb_hyp **hyps, int count, int begin,
                           int end, dgm_error *err)
{
    const double *w = d->m->p.weights.w;
    const dgm_pb_hyp *h = hyps[0];
    dgm_pb_stack *to = &d->stacks[from + end - begin];
    DGM_TRY(dgm_grow(&to->edges, &to->edge_cap, to->edge_count + 1, sizeof *to->edges, err));
    dgm_pb_edge *e = &to->edges[to->edge_count++];
    *e = (dgm_pb_edge){.hyps = hyps,
                       .hyp_count = count,
                       .span = &d->spans[begin * d->longest + end - begin - 1],
                       .cover = cover_with(h->cover, begin, end),
                       .turn = dgm_pb_turn(h->begin, h->end, begin, end)};
    e->constant = -dgm_pb_jump(h->end, begin) * w[DGM_PB_DISTORTION] + future_of(d, &e->cover);
    d->stats.edges++;
    return DGM_OK;
}

static dgm_status expand_group(dgm_pb_decoder *d, int from, dgm_pb_hyp **hyps, int count,
                               dgm_error *err)
{
    const dgm_pb_hyp *h = hyps[0];
    int limit = d->m->p.jump, last = h->end + limit;
    for (int begin = h->cover.gap; begin < d->n && begin <= last; begin++)
        for (int end = begin + 1; end <= d->n && end - begin <= d->longest; end++) {
            if (!is_free(&h->cover, begin, end)) break;
            if (d->spans[begin * d->longest + end - begin - 1].count == 0) continue;
            if (reachable(d, h, begin, end))
                DGM_TRY(add_edge(d, from, hyps, count, begin, end, err));
        }
    return DGM_OK;
}

// Groups together, best group first, best hypothesis of a group first.
static int by_group(const void *context, uint32_t x, uint32_t y)
{
    dgm_pb_hyp *const *hyps = context;
    const dgm_pb_hyp *a = hyps[x], *b = hyps[y];
    if (a->cover.gap != b->cover.gap) return a->cover.gap < b->cover.gap ? -1 : 1;
    if (a->cover.mask != b->cover.mask) return a->cover.mask < b->cover.mask ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool same_group(const dgm_pb_hyp *a, const dgm_pb_hyp *b)
{
    return a->cover.gap == b->cover.gap && a->cover.mask == b->cover.mask && a->end == b->end &&
           a->begin == b->begin;
}

static dgm_status expand_stack(dgm_pb_decoder *d, int k, dgm_error *err)
{
    dgm_pb_stack *s = &d->stacks[k];
    uint32_t *order = DGM_ARENA_ARRAY(&d->arena, uint32_t, (size_t)s->count);
    dgm_pb_hyp **sorted = DGM_ARENA_ARRAY(&d->arena, dgm_pb_hyp *, (size_t)s->count);
    if (!order || !sorted) return dgm_pb_full(err);
    dgm_sort_indices(order, (size_t)s->count, by_group, s->hyps);
    for (int i = 0; i < s->count; i++) sorted[i] = s->hyps[order[i]];
    for (int i = 0, end; i < s->count; i = end) {
        for (end = i + 1; end < s->count && same_group(sorted[i], sorted[end]);) end++;
        DGM_TRY(expand_group(d, k, sorted + i, end - i, err));
    }
    return DGM_OK;
}

// ---- queue ------------------------------------------------------------------------------------

static bool ahead(const dgm_pb_item *a, const dgm_pb_item *b)
{
    return a->total > b->total || (a->total == b->total && a->serial < b->serial);
}

#define AHEAD(x, y) ahead(&(x), &(y))

static dgm_status heap_push(dgm_pb_decoder *d, dgm_pb_item item, dgm_error *err)
{
    DGM_TRY(dgm_grow(&d->heap, &d->heap_cap, d->heap_count + 1, sizeof *d->heap, err));
    DGM_HEAP_UP(d->heap, d->heap_count, item, AHEAD);
    d->heap_count++;
    return DGM_OK;
}

static dgm_pb_item heap_pop(dgm_pb_decoder *d)
{
    dgm_pb_item top = d->heap[0], last = d->heap[--d->heap_count];
    DGM_HEAP_DOWN(d->heap, d->heap_count, 0, last, AHEAD);
    return top;
}

// Weighted orientations of a phrase behind a hypothesis.
static double turn_score(const dgm_pb_decoder *d, const dgm_pb_edge *e, const dgm_pb_hyp *h,
                         const dgm_pb_option *o)
{
    if (!d->m->oriented) return 0;
    double score = d->m->p.weights.w[DGM_PB_REORDERING + e->turn] * o->turn[e->turn];
    return h->option ? score + h->option->next[e->turn] : score;
}

// A corner of an edge's grid enters the queue with its estimate.
static dgm_status push_corner(dgm_pb_decoder *d, const dgm_pb_edge *e, int row, int column,
                              dgm_error *err)
{
    if (row >= e->hyp_count || column >= e->span->count) return DGM_OK;
    const dgm_pb_hyp *h = e->hyps[row];
    const dgm_pb_option *o = &e->span->options[column];
    dgm_pb_item item = {.edge = e, .row = row, .column = column, .serial = d->serial++};
    item.total = h->score + o->estimate + e->constant + turn_score(d, e, h, o);
    return heap_push(d, item, err);
}

// The hypothesis of a corner, exactly scored.
static dgm_status make_hyp(dgm_pb_decoder *d, dgm_pb_item *item, dgm_error *err)
{
    const dgm_pb_edge *e = item->edge;
    dgm_pb_hyp *parent = e->hyps[item->row];
    const dgm_pb_option *o = &e->span->options[item->column];
    dgm_pb_hyp *h = DGM_ARENA_ARRAY(&d->arena, dgm_pb_hyp, 1);
    if (!h) return dgm_pb_full(err);
    *h = (dgm_pb_hyp){.parent = parent,
                      .option = o,
                      .cover = e->cover,
                      .begin = o->begin,
                      .end = o->end,
                      .node = -1,
                      .lm = parent->lm};
    double lm = 0;
    for (int i = 0; i < o->count; i++) lm += dgm_pb_lm_step(d, &h->lm, o->lm_words[i], &h->lm);
    const double *w = d->m->p.weights.w;
    double future = future_of(d, &e->cover);
    h->score = parent->score + o->score + w[DGM_PB_LM] * lm + turn_score(d, e, parent, o) +
               (e->constant - future);
    h->total = h->score + future;
    d->stats.evaluated++;
    item->made = h;
    item->total = h->total;
    return DGM_OK;
}

// ---- recombination ----------------------------------------------------------------------------

static uint64_t hash_of(const dgm_pb_hyp *h)
{
    uint64_t v = h->cover.mask * 0x9e3779b97f4a7c15u;
    v ^= v >> 31;
    v = (v + (uint64_t)h->cover.gap * 131 + (uint64_t)h->end) * 0x9e3779b97f4a7c15u;
    v ^= v >> 29;
    uint32_t node = h->lm.length ? h->lm.node[h->lm.length - 1] : 0;
    v = (v + node * 7u + (uint64_t)h->lm.length) * 0x9e3779b97f4a7c15u;
    return v ^ v >> 32;
}

static bool same_future(const dgm_pb_decoder *d, const dgm_pb_hyp *a, const dgm_pb_hyp *b)
{
    if (a->cover.gap != b->cover.gap || a->cover.mask != b->cover.mask || a->end != b->end ||
        a->lm.length != b->lm.length)
        return false;
    int k = a->lm.length;
    if (k && a->lm.node[k - 1] != b->lm.node[k - 1]) return false;
    if (!d->m->oriented) return true;
    // Probabilities, not weighted ones: features of what follows must be the same, too.
    return a->begin == b->begin &&
           memcmp(a->option->turn + 3, b->option->turn + 3, 3 * sizeof *a->option->turn) == 0;
}

// Puts a hypothesis into the stack that is being filled, or among the losers of its equal there.
static void recombine(dgm_pb_decoder *d, dgm_pb_stack *s, dgm_pb_hyp *h)
{
    dgm_pb_hyp **bucket = &d->table[hash_of(h) & (d->table_size - 1)];
    for (dgm_pb_hyp **p = bucket; *p; p = &(*p)->chain) {
        dgm_pb_hyp *known = *p;
        if (!same_future(d, known, h)) continue;
        d->stats.recombined++;
        if (h->score <= known->score) {
            h->lost = known->lost;
            known->lost = h;
            return;
        }
        // The newcomer is better: it takes place and losers over.
        h->chain = known->chain;
        *p = h;
        h->lost = known;
        for (int i = s->count - 1; i >= 0; i--)
            if (s->hyps[i] == known) {
                s->hyps[i] = h;
                break;
            }
        return;
    }
    h->chain = *bucket;
    *bucket = h;
    s->hyps[s->count++] = h;
}

static int by_total(const void *context, uint32_t x, uint32_t y)
{
    dgm_pb_hyp *const *hyps = context;
    if (hyps[x]->total != hyps[y]->total) return hyps[x]->total > hyps[y]->total ? -1 : 1;
    return x < y ? -1 : x > y;
}

static dgm_status cut_stack(dgm_pb_decoder *d, dgm_pb_stack *s, dgm_error *err)
{
    int most = d->m->p.stack;
    if (s->count <= most) return DGM_OK;
    uint32_t *order = DGM_ARENA_ARRAY(&d->arena, uint32_t, (size_t)s->count);
    dgm_pb_hyp **kept = DGM_ARENA_ARRAY(&d->arena, dgm_pb_hyp *, (size_t)most);
    if (!order || !kept) return dgm_pb_full(err);
    dgm_sort_indices(order, (size_t)s->count, by_total, s->hyps);
    for (int i = 0; i < most; i++) kept[i] = s->hyps[order[i]];
    s->hyps = kept;
    s->count = most;
    return DGM_OK;
}

static dgm_status fill_stack(dgm_pb_decoder *d, int k, dgm_error *err)
{
    dgm_pb_stack *s = &d->stacks[k];
    int pops = d->m->p.pops;
    s->hyps = DGM_ARENA_ARRAY(&d->arena, dgm_pb_hyp *, (size_t)pops);
    if (!s->hyps) return dgm_pb_full(err);
    s->count = 0;
    d->heap_count = 0;
    memset(d->table, 0, d->table_size * sizeof *d->table);
    for (size_t i = 0; i < s->edge_count; i++) DGM_TRY(push_corner(d, &s->edges[i], 0, 0, err));
    while (pops > 0 && d->heap_count > 0) {
        dgm_pb_item item = heap_pop(d);
        if (!item.made) {
            DGM_TRY(make_hyp(d, &item, err));
            if (d->heap_count > 0 && ahead(&d->heap[0], &item)) {
                DGM_TRY(heap_push(d, item, err));
                continue;
            }
        }
        pops--;
        d->stats.hypotheses++;
        recombine(d, s, item.made);
        DGM_TRY(push_corner(d, item.edge, item.row, item.column + 1, err));
        if (item.column == 0) DGM_TRY(push_corner(d, item.edge, item.row + 1, 0, err));
    }
    return cut_stack(d, s, err);
}

// ---- the whole --------------------------------------------------------------------------------

// Complete hypotheses meet in one end, behind </s>. Each gets an end of its own first.
static dgm_status finish(dgm_pb_decoder *d, dgm_error *err)
{
    const dgm_pb_stack *s = &d->stacks[d->n];
    d->end = NULL;
    for (int i = 0; i < s->count; i++) {
        dgm_pb_hyp *e = DGM_ARENA_ARRAY(&d->arena, dgm_pb_hyp, 1);
        if (!e) return dgm_pb_full(err);
        *e = (dgm_pb_hyp){.parent = s->hyps[i], .cover = s->hyps[i]->cover, .node = -1};
        double lm = dgm_pb_lm_step(d, &s->hyps[i]->lm, d->m->lm->eos, NULL);
        e->score = e->total = s->hyps[i]->score + d->m->p.weights.w[DGM_PB_LM] * lm;
        if (!d->end) {
            d->end = e;
        } else if (e->score > d->end->score) {
            e->lost = d->end;
            d->end = e;
        } else {
            e->lost = d->end->lost;
            d->end->lost = e;
        }
    }
    DGM_FAIL_IF(!d->end, err, DGM_ERR_TEXT, "no translation was found"); // cannot be
    return DGM_OK;
}

static dgm_status start(dgm_pb_decoder *d, dgm_error *err)
{
    dgm_pb_hyp *h = DGM_ARENA_ARRAY(&d->arena, dgm_pb_hyp, 1);
    dgm_pb_hyp **first = DGM_ARENA_ARRAY(&d->arena, dgm_pb_hyp *, 1);
    if (!h || !first) return dgm_pb_full(err);
    *h = (dgm_pb_hyp){.begin = -1, .node = -1};
    dgm_lm_begin(d->m->lm, &h->lm);
    *first = h;
    d->stacks[0].hyps = first;
    d->stacks[0].count = 1;
    return DGM_OK;
}

dgm_status dgm_pb_search(dgm_pb_decoder *d, dgm_error *err)
{
    size_t stacks = (size_t)d->n + 1, before = d->stack_cap;
    DGM_TRY(dgm_grow(&d->stacks, &d->stack_cap, stacks, sizeof *d->stacks, err));
    if (d->stack_cap > before)
        memset(d->stacks + before, 0, (d->stack_cap - before) * sizeof *d->stacks);
    for (size_t k = 0; k < stacks; k++) d->stacks[k].edge_count = 0;
    d->serial = 0;
    DGM_TRY(start(d, err));
    for (int k = 0; k <= d->n; k++) {
        if (k > 0) DGM_TRY(fill_stack(d, k, err));
        if (k < d->n) DGM_TRY(expand_stack(d, k, err));
    }
    return finish(d, err);
}
