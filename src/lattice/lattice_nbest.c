// SPDX-License-Identifier: MIT
// The n best paths of a lattice, best first: A* with the exact score of the best continuation as
// its estimate, so that whatever is popped lies on a path at least as good as all that are left.
//
// A hypothesis is the beginning of a path. With `distinct` it is the beginning of a text: all paths
// that say the same so far, of which the best one to each node is kept as a member,
//
//     hypothesis  | first member, count | score of the best whole path | ended? |   heap of these
//     member      | node | last arc | member it came from | score so far |
//
// and it is expanded by all arcs that leave its members, grouped by word and marks. So each text is
// popped once, however many paths say it. Two sequences of words can still be one text ("ab" and
// "a~" "b"): the texts of results are compared. Empty arcs are taken out of the lattice before.
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "base/mem.h"
#include "base/sort.h"
#include "lattice/lattice.h"

enum { HYPOTHESES_MAX = 1 << 22 };
#define NOBODY UINT32_MAX

typedef struct member {
    int32_t node;
    uint32_t arc, parent; // NOBODY: the start
    double score;
} member;

typedef struct hypothesis {
    uint32_t first, count;
    double score;
    bool whole;
} hypothesis;

typedef struct nbest {
    const dgm_lattice *l;
    bool distinct;
    double *behind; // [nodes] score of the best way to an end
    member *members;
    size_t member_count, member_cap;
    hypothesis *hyps;
    size_t hyp_count, hyp_cap;
    uint32_t *heap; // of hypotheses
    size_t heap_count, heap_cap;
    member *fresh; // what the hypothesis at hand leads to
    size_t fresh_count, fresh_cap;
    uint32_t *order; // of fresh
    size_t order_cap;
    uint32_t *at_node; // [nodes] member of the new hypothesis that stands there, + 1
    uint32_t *path;
    size_t path_cap;
    dgm_words seen; // texts
    dgm_writer text;
} nbest;

// ---- heap --------------------------------------------------------------------------------------

// Ties: the hypothesis made first.
static bool before(const nbest *s, uint32_t a, uint32_t b)
{
    if (s->hyps[a].score != s->hyps[b].score) return s->hyps[a].score > s->hyps[b].score;
    return a < b;
}

#define BEFORE(x, y) before(s, (x), (y))

static dgm_status push(nbest *s, uint32_t hyp, dgm_error *err)
{
    DGM_TRY(dgm_grow(&s->heap, &s->heap_cap, s->heap_count + 1, sizeof *s->heap, err));
    DGM_HEAP_UP(s->heap, s->heap_count, hyp, BEFORE);
    s->heap_count++;
    return DGM_OK;
}

static uint32_t pop(nbest *s)
{
    const uint32_t top = s->heap[0], last = s->heap[--s->heap_count];
    DGM_HEAP_DOWN(s->heap, s->heap_count, 0, last, BEFORE);
    return top;
}

// ---- expansion ---------------------------------------------------------------------------------

static dgm_status begin_hypothesis(nbest *s, size_t members, dgm_error *err)
{
    DGM_FAIL_IF(s->hyp_count >= HYPOTHESES_MAX, err, DGM_ERR_UNSUPPORTED,
                "too many paths of this lattice are nearly as good as its best: prune it first");
    DGM_TRY(
        dgm_grow(&s->members, &s->member_cap, s->member_count + members, sizeof *s->members, err));
    return dgm_grow(&s->hyps, &s->hyp_cap, s->hyp_count + 1, sizeof *s->hyps, err);
}

// Members fresh[order[from .. to)], of which the best at each node is kept.
static dgm_status add_group(nbest *s, size_t from, size_t to, dgm_error *err)
{
    DGM_TRY(begin_hypothesis(s, to - from, err));
    hypothesis h = {.first = (uint32_t)s->member_count, .score = -INFINITY};
    for (size_t i = from; i < to; i++) {
        const member *m = &s->fresh[s->order[i]];
        uint32_t *slot = &s->at_node[m->node];
        if (*slot == 0) {
            s->members[s->member_count++] = *m;
            *slot = (uint32_t)s->member_count;
            h.count++;
        } else if (m->score > s->members[*slot - 1].score) {
            s->members[*slot - 1] = *m;
        } else {
            continue;
        }
        if (m->score + s->behind[m->node] > h.score) h.score = m->score + s->behind[m->node];
    }
    for (uint32_t i = 0; i < h.count; i++) s->at_node[s->members[h.first + i].node] = 0;
    s->hyps[s->hyp_count] = h;
    return push(s, (uint32_t)s->hyp_count++, err);
}

// The best member that may end, as a whole path: it keeps the member's way.
static dgm_status add_end(nbest *s, const hypothesis *h, dgm_error *err)
{
    hypothesis whole = {.count = 1, .score = -INFINITY, .whole = true};
    for (uint32_t i = h->first; i < h->first + h->count; i++) {
        const double score = s->members[i].score + (double)s->l->ends[s->members[i].node];
        if (score > whole.score) whole.score = score, whole.first = i;
    }
    if (whole.score == -INFINITY) return DGM_OK;
    DGM_TRY(begin_hypothesis(s, 0, err));
    s->hyps[s->hyp_count] = whole;
    return push(s, (uint32_t)s->hyp_count++, err);
}

static int compare_words(const nbest *s, uint32_t a, uint32_t b)
{
    const dgm_lattice_arc *x = &s->l->arcs[s->fresh[a].arc], *y = &s->l->arcs[s->fresh[b].arc];
    if (x->word != y->word) return x->word < y->word ? -1 : 1;
    if (x->glue != y->glue) return x->glue < y->glue ? -1 : 1;
    return 0;
}

static int by_word(const void *context, uint32_t a, uint32_t b)
{
    const int words = compare_words(context, a, b);
    return words ? words : a < b ? -1 : a > b;
}

static dgm_status expand(nbest *s, uint32_t hyp, dgm_error *err)
{
    const dgm_lattice *l = s->l;
    const hypothesis h = s->hyps[hyp];
    DGM_TRY(add_end(s, &h, err));
    s->fresh_count = 0;
    for (uint32_t i = h.first; i < h.first + h.count; i++) {
        const member m = s->members[i];
        const size_t arcs = l->first[m.node + 1] - l->first[m.node];
        DGM_TRY(dgm_grow(&s->fresh, &s->fresh_cap, s->fresh_count + arcs, sizeof *s->fresh, err));
        for (size_t k = l->first[m.node]; k < l->first[m.node + 1]; k++)
            s->fresh[s->fresh_count++] = (member){.node = l->arcs[k].to,
                                                  .arc = (uint32_t)k,
                                                  .parent = i,
                                                  .score = m.score + (double)l->arcs[k].score};
    }
    DGM_TRY(dgm_grow(&s->order, &s->order_cap, s->fresh_count + 1, sizeof *s->order, err));
    if (s->distinct)
        dgm_sort_indices(s->order, s->fresh_count, by_word, s);
    else
        for (size_t i = 0; i < s->fresh_count; i++) s->order[i] = (uint32_t)i;
    for (size_t from = 0, to; from < s->fresh_count; from = to) {
        to = from + 1;
        while (s->distinct && to < s->fresh_count &&
               compare_words(s, s->order[from], s->order[to]) == 0)
            to++;
        DGM_TRY(add_group(s, from, to, err));
    }
    return DGM_OK;
}

// ---- results -----------------------------------------------------------------------------------

static dgm_status trace(nbest *s, const hypothesis *h, dgm_lattice_path *path, dgm_error *err)
{
    size_t count = 0;
    for (uint32_t m = h->first; s->members[m].arc != NOBODY; m = s->members[m].parent) count++;
    DGM_TRY(dgm_grow(&s->path, &s->path_cap, count + 1, sizeof *s->path, err));
    size_t at = count;
    for (uint32_t m = h->first; s->members[m].arc != NOBODY; m = s->members[m].parent)
        s->path[--at] = s->members[m].arc;
    *path = (dgm_lattice_path){.lattice = s->l, .score = h->score, .arcs = s->path, .count = count};
    return DGM_OK;
}

// Was the text of this path given already?
static dgm_status is_news(nbest *s, const dgm_lattice_path *path, bool *news, dgm_error *err)
{
    *news = true;
    if (!s->distinct || s->l->words.count == 0) return DGM_OK; // tokens: their sequence is the text
    const size_t known = s->seen.count;
    uint32_t number;
    s->text.size = 0;
    DGM_TRY(dgm_lattice_spell(s->l, path->arcs, path->count, &s->text, err));
    DGM_TRY(dgm_words_add(&s->seen, (dgm_text){(const char *)s->text.data, s->text.size}, &number,
                          err));
    *news = s->seen.count > known;
    return DGM_OK;
}

static dgm_status search(nbest *s, size_t n, dgm_lattice_take take, void *cookie, dgm_error *err)
{
    dgm_lattice_backward(s->l, false, 1.0, s->behind);
    DGM_TRY(begin_hypothesis(s, 1, err));
    s->members[s->member_count++] = (member){.node = 0, .arc = NOBODY, .parent = NOBODY};
    s->hyps[s->hyp_count++] = (hypothesis){.first = 0, .count = 1, .score = s->behind[0]};
    DGM_TRY(push(s, 0, err));
    for (size_t given = 0; given < n && s->heap_count > 0;) {
        const uint32_t top = pop(s);
        if (!s->hyps[top].whole) {
            DGM_TRY(expand(s, top, err));
            continue;
        }
        dgm_lattice_path path;
        bool news = false;
        DGM_TRY(trace(s, &s->hyps[top], &path, err));
        DGM_TRY(is_news(s, &path, &news, err));
        if (!news) continue;
        given++;
        if (!take(cookie, &path)) break;
    }
    return DGM_OK;
}

dgm_status dgm_lattice_nbest(const dgm_lattice *l, size_t n, bool distinct, dgm_lattice_take take,
                             void *cookie, dgm_error *err)
{
    dgm_lattice *full = NULL;
    bool empty = false;
    for (size_t i = 0; i < l->arc_count; i++) empty |= l->arcs[i].word < 0;
    if (distinct && empty) DGM_TRY(dgm_lattice_without_empty(l, &full, err));
    nbest s = {.l = full ? full : l, .distinct = distinct};
    s.behind = dgm_malloc((size_t)s.l->node_count * sizeof *s.behind);
    s.at_node = dgm_calloc((size_t)s.l->node_count, sizeof *s.at_node);
    dgm_status st = s.behind && s.at_node ? search(&s, n, take, cookie, err) : dgm_no_memory(err);
    dgm_free(s.behind);
    dgm_free(s.at_node);
    dgm_free(s.members);
    dgm_free(s.hyps);
    dgm_free(s.heap);
    dgm_free(s.fresh);
    dgm_free(s.order);
    dgm_free(s.path);
    dgm_words_free(&s.seen);
    dgm_writer_free(&s.text);
    dgm_lattice_close(&full);
    return st;
}
