// SPDX-License-Identifier: MIT
// Whole lattices: best and summed scores, posteriors, pruning, union, empty arcs, reversal.
//
// Nodes are in topological order and arcs sorted by the node they leave, so one pass over the arcs
// forwards or backwards sees every node after all of its predecessors or successors.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "lattice/lattice.h"

static double log_add(double a, double b)
{
    if (a < b) {
        const double t = a;
        a = b;
        b = t;
    }
    return b == -INFINITY ? a : a + log1p(exp(b - a));
}

static double combine(bool sum, double a, double b)
{
    if (sum) return log_add(a, b);
    return a > b ? a : b;
}

void dgm_lattice_backward(const dgm_lattice *l, bool sum, double scale, double *best)
{
    if (!sum) scale = 1.0;
    for (int32_t n = 0; n < l->node_count; n++)
        best[n] = l->ends[n] > -INFINITY ? scale * (double)l->ends[n] : -INFINITY;
    for (size_t i = l->arc_count; i-- > 0;) {
        const dgm_lattice_arc *a = &l->arcs[i];
        best[a->from] = combine(sum, best[a->from], scale * (double)a->score + best[a->to]);
    }
}

void dgm_lattice_forward(const dgm_lattice *l, bool sum, double scale, double *best)
{
    if (!sum) scale = 1.0;
    for (int32_t n = 0; n < l->node_count; n++) best[n] = n == 0 ? 0.0 : -INFINITY;
    for (size_t i = 0; i < l->arc_count; i++) {
        const dgm_lattice_arc *a = &l->arcs[i];
        best[a->to] = combine(sum, best[a->to], best[a->from] + scale * (double)a->score);
    }
}

dgm_status dgm_lattice_posteriors(const dgm_lattice *l, double scale, double *arcs, double *ends,
                                  dgm_error *err)
{
    const size_t n = (size_t)l->node_count;
    double *before = dgm_malloc(2 * n * sizeof *before);
    if (!before) return dgm_no_memory(err);
    double *behind = before + n;
    dgm_lattice_forward(l, true, scale, before);
    dgm_lattice_backward(l, true, scale, behind);
    for (size_t i = 0; i < l->arc_count; i++) {
        const dgm_lattice_arc *a = &l->arcs[i];
        arcs[i] = exp(before[a->from] + scale * (double)a->score + behind[a->to] - behind[0]);
    }
    for (size_t i = 0; ends && i < n; i++)
        ends[i] =
            l->ends[i] > -INFINITY ? exp(before[i] + scale * (double)l->ends[i] - behind[0]) : 0.0;
    dgm_free(before);
    return DGM_OK;
}

// ---- copies ------------------------------------------------------------------------------------

// A new lattice with the nodes' names, ends and spellings of l, without arcs.
static dgm_status begin_copy(const dgm_lattice *l, dgm_lattice **out, dgm_error *err)
{
    DGM_TRY(dgm_lattice_open(out, err));
    if (l->name && !((*out)->name = dgm_strdup(l->name))) return dgm_no_memory(err);
    for (int32_t i = 0, node; i < l->node_count; i++) {
        DGM_TRY(dgm_lattice_add_node(*out, l->lines[i], &node, err));
        (*out)->ends[node] = l->ends[i];
    }
    return DGM_OK;
}

// The arc's word into another lattice's spellings.
static dgm_status carry_word(const dgm_lattice *l, dgm_lattice *to, dgm_lattice_arc *a,
                             dgm_error *err)
{
    uint32_t word = 0;
    if (a->word < 0 || l->words.count == 0) return DGM_OK; // nothing, or a token
    DGM_TRY(dgm_words_add(&to->words, dgm_words_spell(&l->words, (uint32_t)a->word), &word, err));
    a->word = (int32_t)word;
    return DGM_OK;
}

// Seals a copy, or throws it away after a failure.
static dgm_status end_copy(dgm_status st, dgm_lattice **out, dgm_error *err)
{
    if (st == DGM_OK) st = dgm_lattice_seal(*out, true, err);
    if (st != DGM_OK) dgm_lattice_close(out);
    return st;
}

// ---- pruning -----------------------------------------------------------------------------------

typedef struct pruning {
    double *through; // [arcs] score of the best path with this arc
    double *ending;  // [nodes] of the best path that ends here
} pruning;

static int by_through(const void *context, uint32_t a, uint32_t b)
{
    const double *through = context;
    if (through[a] != through[b]) return through[a] > through[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

static dgm_status measure(const dgm_lattice *l, pruning *p, double *best, dgm_error *err)
{
    const size_t n = (size_t)l->node_count;
    double *before = dgm_malloc(2 * n * sizeof *before);
    if (!before) return dgm_no_memory(err);
    double *behind = before + n;
    dgm_lattice_forward(l, false, 1.0, before);
    dgm_lattice_backward(l, false, 1.0, behind);
    for (size_t i = 0; i < l->arc_count; i++) {
        const dgm_lattice_arc *a = &l->arcs[i];
        p->through[i] = before[a->from] + (double)a->score + behind[a->to];
    }
    for (size_t i = 0; i < n; i++) p->ending[i] = before[i] + (double)l->ends[i];
    *best = behind[0];
    dgm_free(before);
    return DGM_OK;
}

// The score below which arcs go so that max_arcs are left. Arcs of the best path are as good as it:
// sums along a path differ by rounding, which the caller's slack covers.
static dgm_status threshold(const dgm_lattice *l, const pruning *p, size_t most, double *least,
                            dgm_error *err)
{
    if (most == 0 || l->arc_count <= most) return DGM_OK;
    uint32_t *order = dgm_malloc(l->arc_count * sizeof *order);
    if (!order) return dgm_no_memory(err);
    dgm_sort_indices(order, l->arc_count, by_through, p->through);
    size_t cut = most; // ties with the first arc that is too many go with it
    const double over = p->through[order[most]];
    while (cut > 0 && p->through[order[cut - 1]] <= over) cut--;
    if (cut > 0 && p->through[order[cut - 1]] > *least) *least = p->through[order[cut - 1]];
    if (cut == 0) *least = p->through[order[0]];
    dgm_free(order);
    return DGM_OK;
}

static dgm_status prune(const dgm_lattice *l, const dgm_lattice_pruning *how, pruning *p,
                        dgm_lattice **out, dgm_error *err)
{
    double best = 0, least = -INFINITY;
    DGM_TRY(measure(l, p, &best, err));
    if (how->behind >= 0) least = best - how->behind;
    DGM_TRY(threshold(l, p, how->max_arcs, &least, err));
    const double slack = 1e-9 * (1.0 + fabs(best));
    if (least > best) least = best;
    least -= slack;
    DGM_TRY(begin_copy(l, out, err));
    for (int32_t n = 0; n < l->node_count; n++)
        if (p->ending[n] < least) (*out)->ends[n] = -INFINITY;
    for (size_t i = 0; i < l->arc_count; i++) {
        dgm_lattice_arc a = l->arcs[i];
        if (p->through[i] < least) continue;
        DGM_TRY(carry_word(l, *out, &a, err));
        DGM_TRY(dgm_lattice_add_arc(*out, &a, err));
    }
    return DGM_OK;
}

dgm_status dgm_lattice_prune(const dgm_lattice *l, const dgm_lattice_pruning *how,
                             dgm_lattice **out, dgm_error *err)
{
    *out = NULL;
    pruning p = {.through = dgm_malloc((l->arc_count + 1) * sizeof *p.through),
                 .ending = dgm_malloc((size_t)l->node_count * sizeof *p.ending)};
    dgm_status st = p.through && p.ending ? prune(l, how, &p, out, err) : dgm_no_memory(err);
    dgm_free(p.through);
    dgm_free(p.ending);
    return end_copy(st, out, err);
}

// ---- union -------------------------------------------------------------------------------------

// The nodes of l but its start behind those of out; its start is out's.
static dgm_status join(const dgm_lattice *l, dgm_lattice *out, dgm_error *err)
{
    const int32_t shift = out->node_count - 1;
    for (int32_t i = 1, node; i < l->node_count; i++) {
        DGM_TRY(dgm_lattice_add_node(out, l->lines[i], &node, err));
        out->ends[node] = l->ends[i];
    }
    dgm_lattice_add_end(out, 0, l->ends[0]);
    for (size_t i = 0; i < l->arc_count; i++) {
        dgm_lattice_arc a = l->arcs[i];
        if (a.from > 0) a.from += shift;
        a.to += shift; // never the start: that would be a cycle
        DGM_TRY(carry_word(l, out, &a, err));
        DGM_TRY(dgm_lattice_add_arc(out, &a, err));
    }
    return DGM_OK;
}

dgm_status dgm_lattice_union(const dgm_lattice *const *lattices, size_t count, dgm_lattice **out,
                             dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(count == 0, err, DGM_ERR_ARGUMENT, "a union of no lattices");
    dgm_status st = dgm_lattice_open(out, err);
    int32_t start;
    if (st == DGM_OK) st = dgm_lattice_add_node(*out, lattices[0]->lines[0], &start, err);
    if (st == DGM_OK && lattices[0]->name && !((*out)->name = dgm_strdup(lattices[0]->name)))
        st = dgm_no_memory(err);
    for (size_t i = 0; st == DGM_OK && i < count; i++) st = join(lattices[i], *out, err);
    return end_copy(st, out, err);
}

// ---- empty arcs --------------------------------------------------------------------------------

// Arcs of `at`, reached from `from` through empty arcs of score `sum`, leave `from` directly. Every
// way through empty arcs is a path of its own, so its arcs are copied for each.
static dgm_status reach(const dgm_lattice *l, dgm_lattice *out, int32_t from, int32_t at,
                        double sum, int depth, dgm_error *err)
{
    DGM_FAIL_IF(depth > 1000, err, DGM_ERR_UNSUPPORTED, "a chain of more than 1000 empty arcs");
    dgm_lattice_add_end(out, from, (float)(sum + (double)l->ends[at]));
    for (size_t i = l->first[at]; i < l->first[at + 1]; i++) {
        dgm_lattice_arc a = l->arcs[i];
        if (a.word < 0) {
            DGM_TRY(reach(l, out, from, a.to, sum + (double)a.score, depth + 1, err));
            continue;
        }
        a.from = from;
        a.score = (float)(sum + (double)a.score);
        DGM_TRY(carry_word(l, out, &a, err));
        DGM_TRY(dgm_lattice_add_arc(out, &a, err));
    }
    return DGM_OK;
}

dgm_status dgm_lattice_without_empty(const dgm_lattice *l, dgm_lattice **out, dgm_error *err)
{
    *out = NULL;
    dgm_status st = begin_copy(l, out, err);
    for (int32_t n = 0; st == DGM_OK && n < l->node_count; n++)
        st = reach(l, *out, n, n, 0.0, 0, err);
    return end_copy(st, out, err);
}

// ---- reversal ----------------------------------------------------------------------------------

// Node n becomes n + 1: in front is a start from which empty arcs with their scores lead to all ends.
static dgm_status turn_round(const dgm_lattice *l, dgm_lattice *out, dgm_error *err)
{
    int32_t node;
    DGM_TRY(dgm_lattice_add_node(out, 0, &node, err));
    for (int32_t n = 0; n < l->node_count; n++) DGM_TRY(dgm_lattice_add_node(out, l->lines[n], &node, err));
    dgm_lattice_add_end(out, 1, 0.0f);
    for (int32_t n = 0; n < l->node_count; n++) {
        const dgm_lattice_arc a = {.to = n + 1, .word = DGM_LATTICE_NO_WORD, .score = l->ends[n]};
        if (l->ends[n] > -INFINITY) DGM_TRY(dgm_lattice_add_arc(out, &a, err));
    }
    for (size_t i = 0; i < l->arc_count; i++) {
        dgm_lattice_arc a = l->arcs[i];
        a.from = l->arcs[i].to + 1;
        a.to = l->arcs[i].from + 1;
        DGM_TRY(carry_word(l, out, &a, err));
        DGM_TRY(dgm_lattice_add_arc(out, &a, err));
    }
    return DGM_OK;
}

dgm_status dgm_lattice_reverse(const dgm_lattice *l, dgm_lattice **out, dgm_error *err)
{
    dgm_lattice *turned = NULL;
    *out = NULL;
    dgm_status st = dgm_lattice_open(&turned, err);
    if (st == DGM_OK && l->name && !(turned->name = dgm_strdup(l->name))) st = dgm_no_memory(err);
    if (st == DGM_OK) st = turn_round(l, turned, err);
    if (st == DGM_OK) st = dgm_lattice_seal(turned, true, err);
    if (st == DGM_OK) st = dgm_lattice_without_empty(turned, out, err);
    dgm_lattice_close(&turned);
    return st;
}
