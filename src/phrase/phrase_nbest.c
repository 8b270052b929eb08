// SPDX-License-Identifier: MIT
// Lists of the best translations, and the graph they come from; see phrase_decode_private.h.
//
// Hypotheses that recombined are kept with the winner, so the search leaves a graph: a node is a
// winner, an arc into it one of its ways, its own or a loser's, from that one's parent. Paths are
// taken from the end to the start, best first: a queue holds beginnings of such paths, each with
// the score of its best completion, which is known exactly (the score of the node it has reached),
// so paths come out in order and nothing is expanded in vain.
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "base/mem.h"
#include "base/words.h"
#include "phrase/phrase_decode_private.h"

// A path from the end back to a node, as the way last taken and what came before.
typedef struct path {
    const struct path *later;
    const dgm_pb_hyp *way; // its parent is the node reached
    double rest;           // score between the node reached and the end
    double score;          // of the best whole path
    uint64_t serial;
} path;

typedef struct queue {
    path **heap;
    size_t count, cap;
    uint64_t serial;
} queue;

static bool ahead(const path *a, const path *b)
{
    return a->score > b->score || (a->score == b->score && a->serial < b->serial);
}

static dgm_status push(queue *q, path *p, dgm_error *err)
{
    p->serial = q->serial++;
    DGM_TRY(dgm_grow(&q->heap, &q->cap, q->count + 1, sizeof *q->heap, err));
    DGM_HEAP_UP(q->heap, q->count, p, ahead);
    q->count++;
    return DGM_OK;
}

static path *pop(queue *q)
{
    path *top = q->heap[0], *last = q->heap[--q->count];
    DGM_HEAP_DOWN(q->heap, q->count, 0, last, ahead);
    return top;
}

// All ways into a node, continuing a path (NULL: at the end).
static dgm_status extend(dgm_pb_decoder *d, queue *q, const path *from, const dgm_pb_hyp *node,
                         dgm_error *err)
{
    for (const dgm_pb_hyp *way = node; way; way = way->lost) {
        path *p = DGM_ARENA_ARRAY(&d->arena, path, 1);
        if (!p) return dgm_pb_full(err);
        double added = way->score - way->parent->score, rest = from ? from->rest : 0;
        *p = (path){.later = from, .way = way, .rest = rest + added};
        p->score = way->parent->score + p->rest;
        DGM_TRY(push(q, p, err));
    }
    return DGM_OK;
}

// ---- a path's translation ---------------------------------------------------------------------

static void add_features(dgm_pb_decoder *d, const dgm_pb_option *o, const dgm_pb_option *before,
                         dgm_lm_state *lm, double *f)
{
    int begin = before ? before->begin : -1, end = before ? before->end : 0;
    int turn = dgm_pb_turn(begin, end, o->begin, o->end);
    if (d->m->oriented) {
        f[DGM_PB_REORDERING + turn] += o->turn[turn];
        if (before) f[DGM_PB_REORDERING + 3 + turn] += before->turn[3 + turn];
    }
    f[DGM_PB_DISTORTION] -= dgm_pb_jump(end, o->begin);
    for (int i = 0; i < o->count; i++) f[DGM_PB_LM] += dgm_pb_lm_step(d, lm, o->lm_words[i], lm);
    f[DGM_PB_WORDS] -= o->count;
    f[DGM_PB_PHRASES] += 1;
    for (int k = 0; k < DGM_PHRASE_SCORES; k++) f[DGM_PB_TABLE + k] += o->table[k];
    if (o->unknown) f[DGM_PB_UNKNOWN] += DGM_PB_LOG_FLOOR;
}

// The translation of a whole path; its score is made from its features.
static dgm_status describe(dgm_pb_decoder *d, const path *p, dgm_pb_translation *t, dgm_error *err)
{
    int words = 0, segments = 0;
    for (const path *x = p; x; x = x->later)
        if (x->way->option) {
            words += x->way->option->count;
            segments++;
        }
    dgm_text *text = DGM_ARENA_ARRAY(&d->arena, dgm_text, (size_t)words);
    dgm_pb_segment *segment = DGM_ARENA_ARRAY(&d->arena, dgm_pb_segment, (size_t)segments);
    if ((words && !text) || (segments && !segment)) return dgm_pb_full(err);
    *t = (dgm_pb_translation){.words = text, .segments = segment};
    dgm_lm_state lm;
    dgm_lm_begin(d->m->lm, &lm);
    const dgm_pb_option *before = NULL;
    for (const path *x = p; x; x = x->later) {
        const dgm_pb_option *o = x->way->option;
        if (!o) continue;
        add_features(d, o, before, &lm, t->features);
        segment[t->segment_count++] =
            (dgm_pb_segment){o->begin, o->end, t->count, o->count, o->links};
        for (int i = 0; i < o->count; i++) text[t->count++] = o->words[i];
        before = o;
    }
    t->features[DGM_PB_LM] += dgm_pb_lm_step(d, &lm, d->m->lm->eos, NULL);
    t->score = dgm_pb_dot(&d->m->p.weights, t->features);
    return DGM_OK;
}

// ---- lists ------------------------------------------------------------------------------------

// Is this translation new? Remembers it.
static dgm_status is_new(dgm_words *seen, dgm_writer *w, const dgm_pb_translation *t, bool *fresh,
                         dgm_error *err)
{
    w->size = 0;
    for (int i = 0; i < t->count; i++) {
        dgm_write_bytes(w, t->words[i].data, t->words[i].size);
        dgm_write_u8(w, '\n');
    }
    if (w->failed) return dgm_no_memory(err);
    size_t before = seen->count;
    uint32_t number;
    DGM_TRY(dgm_words_add(seen, (dgm_text){(const char *)w->data, w->size}, &number, err));
    *fresh = seen->count > before;
    return DGM_OK;
}

static dgm_status take_paths(dgm_pb_decoder *d, queue *q, dgm_pb_translation *list, int *count,
                             dgm_words *seen, dgm_writer *w, dgm_error *err)
{
    // Lists without repetition look at so many paths at most.
    int64_t left = d->m->p.distinct ? (int64_t)d->m->p.nbest * 50 : d->m->p.nbest;
    DGM_TRY(extend(d, q, NULL, d->end, err));
    while (*count < d->m->p.nbest && left > 0 && q->count > 0) {
        path *p = pop(q);
        if (p->way->parent->parent) {
            DGM_TRY(extend(d, q, p, p->way->parent, err));
            continue;
        }
        left--;
        bool fresh = true;
        DGM_TRY(describe(d, p, &list[*count], err));
        if (d->m->p.distinct) DGM_TRY(is_new(seen, w, &list[*count], &fresh, err));
        *count += fresh;
    }
    return DGM_OK;
}

dgm_status dgm_pb_list(dgm_pb_decoder *d, dgm_pb_translation **list, int *count, dgm_error *err)
{
    *count = 0;
    *list = DGM_ARENA_ARRAY(&d->arena, dgm_pb_translation, (size_t)d->m->p.nbest);
    if (!*list) return dgm_pb_full(err);
    queue q = {0};
    dgm_words seen = {0};
    dgm_writer w = {0};
    dgm_status st = take_paths(d, &q, *list, count, &seen, &w, err);
    dgm_free(q.heap);
    dgm_words_free(&seen);
    dgm_writer_free(&w);
    return st;
}

// ---- graph ------------------------------------------------------------------------------------

typedef struct arcs {
    dgm_pb_arc *item; // in the arena
    size_t count, room;
} arcs;

// Marks what leads to the end, backwards through the stacks; winners only are nodes.
static void mark(dgm_pb_hyp *node)
{
    for (dgm_pb_hyp *way = node; way; way = way->lost) way->parent->node = 0;
}

static void add_arcs(arcs *a, const dgm_pb_hyp *node, int number)
{
    for (const dgm_pb_hyp *way = node; way; way = way->lost)
        a->item[a->count++] = (dgm_pb_arc){.from = way->parent->node,
                                           .to = number,
                                           .words = way->option ? way->option->words : NULL,
                                           .count = way->option ? way->option->count : 0,
                                           .score = way->score - way->parent->score,
                                           .way = way};
}

void dgm_pb_arc_features(dgm_pb_decoder *d, const dgm_pb_arc *arc, double *features)
{
    const dgm_pb_hyp *way = arc->way;
    dgm_lm_state lm = way->parent->lm;
    memset(features, 0, DGM_PB_FEATURES * sizeof *features);
    if (way->option)
        add_features(d, way->option, way->parent->option, &lm, features);
    else
        features[DGM_PB_LM] = dgm_pb_lm_step(d, &lm, d->m->lm->eos, NULL);
}

static size_t ways(const dgm_pb_hyp *node)
{
    size_t n = 0;
    for (; node; node = node->lost) n++;
    return n;
}

dgm_status dgm_pb_graph(dgm_pb_decoder *d, const dgm_pb_arc **out, size_t *count, int *nodes,
                        dgm_error *err)
{
    *out = NULL;
    *count = 0;
    DGM_FAIL_IF(!d->end, err, DGM_ERR_ARGUMENT, "nothing has been translated yet");
    arcs a = {.room = ways(d->end)};
    for (int k = 0; k <= d->n; k++)
        for (int i = 0; i < d->stacks[k].count; i++) d->stacks[k].hyps[i]->node = -1;
    mark(d->end);
    for (int k = d->n; k > 0; k--)
        for (int i = 0; i < d->stacks[k].count; i++) {
            dgm_pb_hyp *h = d->stacks[k].hyps[i];
            if (h->node < 0) continue;
            mark(h);
            a.room += ways(h);
        }
    a.item = DGM_ARENA_ARRAY(&d->arena, dgm_pb_arc, a.room);
    if (!a.item) return dgm_pb_full(err);
    int number = 0;
    for (int k = 0; k <= d->n; k++)
        for (int i = 0; i < d->stacks[k].count; i++) {
            dgm_pb_hyp *h = d->stacks[k].hyps[i];
            if (h->node < 0) continue;
            h->node = number++;
            if (k > 0) add_arcs(&a, h, h->node);
        }
    add_arcs(&a, d->end, number++);
    *out = a.item;
    *count = a.count;
    *nodes = number;
    return DGM_OK;
}
