// SPDX-License-Identifier: MIT
// Graphs along a line of weights (Macherey et al. 2008); see mert_private.h.
//
// Over w + gamma d a partial path is a ray: value + gamma slope. A node keeps the upper envelope of
// the rays of all partial paths that lead to it, from left to right, with slopes that rise; an arc
// adds its own value and slope to all of them, which moves no crossing. So the envelope of a node
// is that of the shifted envelopes of the arcs into it,
//
//     node 0: {0 + 0 gamma}        node v: envelope of the union over arcs u -> v of u's + arc
//
// and that of the ends holds every path that is the best anywhere on the line, without any other
// having been looked at whole. Envelopes are merged pairwise in the order of slopes: linear in
// their lengths. What is best only where no step may go is left out at every node.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "phrase/mert_private.h"

// Puts a ray behind those with lower slopes and drops what it hides.
static void put_ray(const dgm_mert_scratch *x, dgm_mert_ray *list, size_t *count, dgm_mert_ray ray)
{
    size_t n = *count;
    ray.from = x->low;
    while (n > 0) {
        const dgm_mert_ray *top = &list[n - 1];
        if (ray.slope <= top->slope) { // equal: they come in the order of slopes
            if (ray.value <= top->value) return;
            n--;
            continue;
        }
        double at = (top->value - ray.value) / (ray.slope - top->slope);
        if (at >= x->high) return;
        if (at > top->from) {
            ray.from = at;
            break;
        }
        n--;
    }
    list[n++] = ray;
    *count = n;
}

// merged[0] becomes the envelope of itself and the rays behind an arc.
static dgm_status merge(dgm_mert_scratch *x, size_t *count, size_t first, size_t last, double value,
                        double slope, uint32_t edge, dgm_error *err)
{
    size_t need = *count + (last - first), n = 0, i = 0, k = first;
    DGM_TRY(dgm_grow(&x->merged[1], &x->merged_cap[1], need, sizeof *x->merged[1], err));
    const dgm_mert_ray *old = x->merged[0];
    while (i < *count || k < last) {
        double here = k < last ? x->rays[k].slope + slope : INFINITY;
        if (i < *count && old[i].slope <= here) {
            put_ray(x, x->merged[1], &n, old[i++]);
        } else {
            dgm_mert_ray ray = {.slope = here,
                                .value = x->rays[k].value + value,
                                .edge = edge,
                                .back = (uint32_t)k};
            put_ray(x, x->merged[1], &n, ray);
            k++;
        }
    }
    dgm_mert_ray *t = x->merged[0];
    size_t cap = x->merged_cap[0];
    x->merged[0] = x->merged[1];
    x->merged_cap[0] = x->merged_cap[1];
    x->merged[1] = t;
    x->merged_cap[1] = cap;
    *count = n;
    return DGM_OK;
}

static dgm_status keep_node(dgm_mert_scratch *x, int32_t node, size_t count, dgm_error *err)
{
    size_t at = x->first[node];
    DGM_TRY(dgm_grow(&x->rays, &x->ray_cap, at + count, sizeof *x->rays, err));
    if (count) memcpy(x->rays + at, x->merged[0], count * sizeof *x->rays);
    x->first[node + 1] = at + count;
    return DGM_OK;
}

// Envelopes of all nodes; a node that nothing leads to has none.
static dgm_status sweep(const dgm_mert_set *s, const dgm_mert_offer *h, const double *value,
                        const double *d, int axis, dgm_mert_scratch *x, dgm_error *err)
{
    DGM_TRY(dgm_grow(&x->first, &x->first_cap, (size_t)h->nodes + 1, sizeof *x->first, err));
    DGM_TRY(dgm_grow(&x->rays, &x->ray_cap, 1, sizeof *x->rays, err));
    x->rays[0] = (dgm_mert_ray){.from = x->low};
    x->first[0] = 0;
    x->first[1] = 1;
    size_t e = 0;
    for (int32_t node = 1; node < h->nodes; node++) {
        size_t count = 0;
        for (; e < h->edge_count && h->edge[e].to == node; e++) {
            const float *f = h->feature + e * (size_t)s->features;
            double slope = axis >= 0 ? (double)f[axis] : dgm_mert_dot(f, d, s->features);
            int32_t from = h->edge[e].from;
            DGM_TRY(merge(x, &count, x->first[from], x->first[from + 1], value[e], slope,
                          (uint32_t)e, err));
        }
        DGM_TRY(keep_node(x, node, count, err));
    }
    return DGM_OK;
}

// The words of the path that ends with an arc, whatever led to it being told by `back`.
static dgm_status collect_words(const dgm_mert_offer *h, dgm_mert_scratch *x,
                                const dgm_mert_ray *last, size_t *count, dgm_error *err)
{
    size_t n = 0;
    for (const dgm_mert_ray *r = last; r != x->rays; r = &x->rays[r->back]) // rays[0]: the start
        n += h->edge[r->edge].count;
    DGM_TRY(dgm_grow(&x->words, &x->word_cap, n, sizeof *x->words, err));
    *count = n;
    for (const dgm_mert_ray *r = last; r != x->rays; r = &x->rays[r->back]) {
        const dgm_mert_edge *e = &h->edge[r->edge];
        n -= e->count;
        if (e->count) memcpy(x->words + n, h->word + e->word, e->count * sizeof *x->words);
    }
    return DGM_OK;
}

dgm_status dgm_mert_envelope(const dgm_mert_set *s, size_t sentence, const double *value,
                             const double *direction, int axis, dgm_mert_scratch *x,
                             dgm_mert_segment segment, void *cookie, dgm_error *err)
{
    const dgm_mert_offer *h = &s->offers[sentence];
    int32_t row[DGM_METRIC_WIDTH_MAX];
    DGM_TRY(sweep(s, h, value, direction, axis, x, err));
    size_t count = 0;
    // Ends meet in an arc that adds nothing and is skipped again below.
    for (size_t i = 0; i < h->end_count; i++) {
        int32_t end = h->end[i];
        DGM_TRY(merge(x, &count, x->first[end], x->first[end + 1], 0, 0, 0, err));
    }
    for (size_t i = 0; i < count; i++) {
        size_t words;
        DGM_TRY(collect_words(h, x, &x->rays[x->merged[0][i].back], &words, err));
        DGM_TRY(dgm_mert_row_of(s, sentence, x->words, words, row, err));
        DGM_TRY(segment(cookie, x->merged[0][i].from, row, err));
    }
    return DGM_OK;
}

// ---- one point --------------------------------------------------------------------------------

typedef struct visit { // the best way to a node
    double score;
    uint32_t edge;
} visit;

static dgm_status trace(const dgm_mert_set *s, size_t sentence, const visit *best, int32_t end,
                        int32_t *row, dgm_error *err)
{
    const dgm_mert_offer *h = &s->offers[sentence];
    size_t n = 0, count;
    for (int32_t v = end; v > 0; v = h->edge[best[v].edge].from) n += h->edge[best[v].edge].count;
    uint32_t *words = dgm_calloc(n + 1, sizeof *words);
    if (!words) return dgm_no_memory(err);
    count = n;
    for (int32_t v = end; v > 0; v = h->edge[best[v].edge].from) {
        const dgm_mert_edge *e = &h->edge[best[v].edge];
        n -= e->count;
        if (e->count) memcpy(words + n, h->word + e->word, e->count * sizeof *words);
    }
    dgm_status st = dgm_mert_row_of(s, sentence, words, count, row, err);
    dgm_free(words);
    return st;
}

dgm_status dgm_mert_best_path(const dgm_mert_set *s, size_t sentence, const double *weights,
                              int32_t *row, dgm_error *err)
{
    const dgm_mert_offer *h = &s->offers[sentence];
    visit *best = dgm_calloc((size_t)h->nodes, sizeof *best);
    if (!best) return dgm_no_memory(err);
    for (int32_t v = 1; v < h->nodes; v++) best[v].score = -INFINITY;
    for (size_t e = 0; e < h->edge_count; e++) {
        const float *f = h->feature + e * (size_t)s->features;
        double score = best[h->edge[e].from].score + dgm_mert_dot(f, weights, s->features);
        if (score > best[h->edge[e].to].score) best[h->edge[e].to] = (visit){score, (uint32_t)e};
    }
    int32_t end = h->end[0];
    for (size_t i = 1; i < h->end_count; i++)
        if (best[h->end[i]].score > best[end].score) end = h->end[i];
    dgm_status st = trace(s, sentence, best, end, row, err);
    dgm_free(best);
    return st;
}
