// SPDX-License-Identifier: MIT
// Posteriors of n-grams in a lattice: the probability of the paths that contain them.
//
// Forward and backward sums give expected counts: a path that contains u twice counts twice. Paths
// are to count once, so the lattice is taken apart first (compare Blackwood et al., 2010):
//
//   1. by the sums of what lies behind each node, scores become probabilities of going on:
//      P(arc | node). A path is then a walk, and alpha(point) the probability to come by
//   2. nodes are split into points (node, last three tokens; of a lower order fewer), so that an arc
//      of a point completes one n-gram of each length, known by itself; the end is an arc with the
//      end symbol
//   3. u is completed by some arcs. With one, P(u) = alpha P(arc). With several, walks that have
//      completed u already must not count again: m(point), their share of alpha, is carried along
//      the arcs between the first and the last that complete u, and
//          P(u) = sum over these arcs of (alpha - m)(from) P(arc)
//
// Arcs are made in topological order, so a range of them is walked from left to right. Only n-grams
// that occur in several places cost a walk, and one as long as these places are apart.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "score/posterior.h"

enum { HISTORY_MAX = DGM_LMBR_ORDER - 1 };

typedef struct point {
    int32_t node, count; // of the lattice; tokens in the history
    int32_t token[HISTORY_MAX];
    uint32_t next; // point of the same node; 0: none
    double alpha;
} point;

typedef struct walk_arc {
    uint32_t from, to; // points; to 0: the end
    double p;
} walk_arc;

// Arc `arc` completes an n-gram.
typedef struct event {
    uint32_t ngram, arc;
} event;

typedef struct splitter {
    dgm_posteriors *p;
    const dgm_lattice *l;
    double scale;
    int history;    // tokens of a point, at most
    size_t most;    // arcs
    double *behind; // [nodes] log sums
    uint32_t *head; // [nodes] its last point
    point *points;  // [point_count]; 0 is not used
    walk_arc *arcs;
    event *events;
    uint32_t *table; // point by (node, history)
    size_t point_count, point_cap, arc_count, arc_cap, event_count, event_cap, table_size;
    double *m;          // [points]
    uint32_t *at, *arc; // events by n-gram: arcs of u are arc[at[u]] .. arc[at[u + 1])
} splitter;

// ---- points ------------------------------------------------------------------------------------

static bool same(const point *a, const point *b)
{
    return a->node == b->node && a->count == b->count &&
           memcmp(a->token, b->token, (size_t)a->count * sizeof *a->token) == 0;
}

static size_t slot_of(const splitter *s, const point *x)
{
    uint64_t h = (uint64_t)x->node;
    for (int i = 0; i < x->count; i++)
        h = (h ^ h >> 29 ^ (uint64_t)(x->token[i] + 1)) * 0x9E3779B97F4A7C15u;
    size_t at = (size_t)((h * 0x9E3779B97F4A7C15u) >> 32) & (s->table_size - 1);
    while (s->table[at] && !same(&s->points[s->table[at]], x)) at = (at + 1) & (s->table_size - 1);
    return at;
}

static dgm_status grow_table(splitter *s, dgm_error *err)
{
    const size_t size = s->table_size ? s->table_size * 2 : 1024;
    uint32_t *table = dgm_calloc(size, sizeof *table);
    if (!table) return dgm_no_memory(err);
    dgm_free(s->table);
    s->table = table;
    s->table_size = size;
    for (size_t i = 1; i < s->point_count; i++) table[slot_of(s, &s->points[i])] = (uint32_t)i;
    return DGM_OK;
}

static dgm_status point_of(splitter *s, const point *x, uint32_t *number, dgm_error *err)
{
    if (s->table_size < 2 * (s->point_count + 1)) DGM_TRY(grow_table(s, err));
    const size_t at = slot_of(s, x);
    if (s->table[at] == 0) {
        DGM_TRY(dgm_grow(&s->points, &s->point_cap, s->point_count + 1, sizeof *s->points, err));
        const uint32_t made = (uint32_t)s->point_count++;
        s->points[made] = *x;
        s->points[made].alpha = 0;
        s->points[made].next = s->head[x->node];
        s->head[x->node] = made;
        s->table[at] = made;
    }
    *number = s->table[at];
    return DGM_OK;
}

// ---- arcs --------------------------------------------------------------------------------------

// The n-grams that end with `token` behind a history.
static dgm_status add_events(splitter *s, const point *x, int32_t token, uint32_t arc,
                             dgm_error *err)
{
    int32_t tokens[DGM_LMBR_ORDER];
    memcpy(tokens, x->token, (size_t)x->count * sizeof *tokens);
    tokens[x->count] = token;
    DGM_TRY(dgm_grow(&s->events, &s->event_cap, s->event_count + DGM_LMBR_ORDER, sizeof *s->events,
                     err));
    for (int skip = 0; skip <= x->count; skip++) {
        event *e = &s->events[s->event_count++];
        e->arc = arc;
        DGM_TRY(dgm_posteriors_node(s->p, tokens + skip, x->count + 1 - skip, &e->ngram, err));
    }
    return DGM_OK;
}

static dgm_status add_arc(splitter *s, uint32_t from, uint32_t to, int32_t token, double p,
                          dgm_error *err)
{
    DGM_FAIL_IF(s->arc_count >= s->most, err, DGM_ERR_UNSUPPORTED,
                "the n-grams of the lattice stand at more than %zu positions: prune it or "
                "raise the limit", s->most);
    DGM_TRY(dgm_grow(&s->arcs, &s->arc_cap, s->arc_count + 1, sizeof *s->arcs, err));
    const uint32_t arc = (uint32_t)s->arc_count++;
    s->arcs[arc] = (walk_arc){from, to, p};
    if (to) s->points[to].alpha += s->points[from].alpha * p;
    if (token < 0) return DGM_OK;
    const point x = s->points[from];
    return add_events(s, &x, token, arc, err);
}

static dgm_status leave_point(splitter *s, uint32_t from, int32_t end, dgm_error *err)
{
    const dgm_lattice *l = s->l;
    const point x = s->points[from];
    for (size_t i = l->first[x.node]; i < l->first[x.node + 1]; i++) {
        const dgm_lattice_arc *a = &l->arcs[i];
        point y = x;
        uint32_t to = 0;
        y.node = a->to;
        if (a->word >= 0 && s->history > 0) { // else it says nothing, or nobody will ask
            if (y.count == s->history)
                memmove(y.token, y.token + 1, (size_t)(y.count - 1) * sizeof *y.token);
            else
                y.count++;
            y.token[y.count - 1] = a->word;
        }
        DGM_TRY(point_of(s, &y, &to, err));
        const double p =
            exp(s->scale * (double)a->score + s->behind[a->to] - s->behind[x.node]);
        DGM_TRY(add_arc(s, from, to, a->word, p, err));
    }
    if (!(l->ends[x.node] > -INFINITY)) return DGM_OK;
    return add_arc(s, from, 0, end, exp(s->scale * (double)l->ends[x.node] - s->behind[x.node]),
                   err);
}

static dgm_status split(splitter *s, int32_t end, dgm_error *err)
{
    const size_t nodes = (size_t)s->l->node_count;
    s->behind = dgm_calloc(nodes, sizeof *s->behind);
    s->head = dgm_calloc(nodes, sizeof *s->head);
    if (!s->behind || !s->head) return dgm_no_memory(err);
    dgm_lattice_backward(s->l, true, s->scale, s->behind);
    DGM_TRY(dgm_grow(&s->points, &s->point_cap, 1, sizeof *s->points, err));
    s->points[0] = (point){.node = -1};
    s->point_count = 1;
    uint32_t start = 0;
    DGM_TRY(point_of(s, &(point){.node = 0}, &start, err));
    s->points[start].alpha = 1;
    for (int32_t n = 0; n < s->l->node_count; n++)
        for (uint32_t i = s->head[n]; i; i = s->points[i].next)
            DGM_TRY(leave_point(s, i, end, err));
    return DGM_OK;
}

// ---- n-grams -----------------------------------------------------------------------------------

static dgm_status sort_events(splitter *s, dgm_error *err)
{
    const size_t ngrams = s->p->count;
    s->at = dgm_calloc(ngrams + 2, sizeof *s->at);
    s->arc = dgm_calloc(s->event_count + 1, sizeof *s->arc);
    s->m = dgm_calloc(s->point_count, sizeof *s->m);
    if (!s->at || !s->arc || !s->m) return dgm_no_memory(err);
    for (size_t i = 0; i < s->event_count; i++) s->at[s->events[i].ngram + 2]++;
    for (size_t u = 2; u < ngrams + 2; u++) s->at[u] += s->at[u - 1];
    for (size_t i = 0; i < s->event_count; i++)
        s->arc[s->at[s->events[i].ngram + 1]++] = s->events[i].arc;
    return DGM_OK;
}

static double probability(splitter *s, const uint32_t *arc, size_t count)
{
    if (count == 1) return s->points[s->arcs[arc[0]].from].alpha * s->arcs[arc[0]].p;
    double sum = 0;
    size_t k = 0;
    for (uint32_t i = arc[0]; i <= arc[count - 1]; i++) {
        const walk_arc *a = &s->arcs[i];
        double in = s->m[a->from];
        if (arc[k] == i) {
            sum += (s->points[a->from].alpha - in) * a->p;
            in = s->points[a->from].alpha;
            k++;
        }
        if (a->to) s->m[a->to] += in * a->p;
    }
    for (uint32_t i = arc[0]; i <= arc[count - 1]; i++) s->m[s->arcs[i].to] = 0;
    return sum;
}

dgm_status dgm_posteriors_lattice(dgm_posteriors *p, const dgm_lattice *subwords, double scale,
                                  int32_t end, size_t most, dgm_error *err)
{
    splitter s = {.p = p,
                  .l = subwords,
                  .scale = scale,
                  .history = dgm_posteriors_order(p) - 1,
                  .most = most};
    dgm_status st = split(&s, end, err);
    if (st == DGM_OK) st = sort_events(&s, err);
    for (size_t u = 1; st == DGM_OK && u < p->count; u++) {
        const size_t count = s.at[u + 1] - s.at[u];
        if (count == 0) continue;
        const double value = probability(&s, s.arc + s.at[u], count);
        p->nodes[u].p = value < 1 ? value : 1; // rounding
    }
    dgm_free(s.behind);
    dgm_free(s.head);
    dgm_free(s.points);
    dgm_free(s.arcs);
    dgm_free(s.events);
    dgm_free(s.table);
    dgm_free(s.m);
    dgm_free(s.at);
    dgm_free(s.arc);
    return st;
}
