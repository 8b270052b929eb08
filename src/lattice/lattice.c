// SPDX-License-Identifier: MIT
// Building and sealing lattices; see lattice.h.
//
// Sealing is Kahn's algorithm with a heap of ready nodes by their old numbers, so that a lattice
// that is in topological order already keeps its numbers. What never becomes ready lies on or
// behind a cycle; an arc of one is found by walking backwards among those nodes until one repeats.
#include "lattice/lattice.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "base/mem.h"

// ---- building ----------------------------------------------------------------------------------

dgm_status dgm_lattice_open(dgm_lattice **out, dgm_error *err)
{
    *out = dgm_calloc(1, sizeof **out);
    return *out ? DGM_OK : dgm_no_memory(err);
}

void dgm_lattice_close(dgm_lattice **out)
{
    dgm_lattice *l = *out;
    if (!l) return;
    dgm_free(l->ends);
    dgm_free(l->lines);
    dgm_free(l->arcs);
    dgm_free(l->first);
    dgm_free(l->name);
    dgm_words_free(&l->words);
    dgm_free(l);
    *out = NULL;
}

dgm_status dgm_lattice_add_node(dgm_lattice *l, uint32_t line, int32_t *node, dgm_error *err)
{
    const size_t n = (size_t)l->node_count;
    DGM_FAIL_IF(n >= DGM_LATTICE_MAX, err, DGM_ERR_UNSUPPORTED,
                "the lattice has more than %zu nodes", DGM_LATTICE_MAX);
    DGM_TRY(dgm_grow(&l->ends, &l->end_cap, n + 1, sizeof *l->ends, err));
    DGM_TRY(dgm_grow(&l->lines, &l->line_cap, n + 1, sizeof *l->lines, err));
    l->ends[n] = -INFINITY;
    l->lines[n] = line;
    *node = l->node_count++;
    return DGM_OK;
}

dgm_status dgm_lattice_add_arc(dgm_lattice *l, const dgm_lattice_arc *arc, dgm_error *err)
{
    DGM_FAIL_IF(arc->from < 0 || arc->from >= l->node_count || arc->to < 0 ||
                    arc->to >= l->node_count || !isfinite(arc->score),
                err, DGM_ERR_ARGUMENT, "the lattice has an invalid arc from %d to %d, score %g",
                (int)arc->from, (int)arc->to, (double)arc->score);
    DGM_FAIL_IF(l->arc_count >= DGM_LATTICE_MAX, err, DGM_ERR_UNSUPPORTED,
                "the lattice has more than %zu arcs", DGM_LATTICE_MAX);
    DGM_TRY(dgm_grow(&l->arcs, &l->arc_cap, l->arc_count + 1, sizeof *l->arcs, err));
    l->arcs[l->arc_count++] = *arc;
    return DGM_OK;
}

dgm_status dgm_lattice_add_text(dgm_lattice *l, int32_t from, int32_t to, dgm_text text,
                                uint32_t glue, float score, dgm_error *err)
{
    uint32_t word = 0;
    if (text.size) DGM_TRY(dgm_words_add(&l->words, text, &word, err));
    const dgm_lattice_arc arc = {.from = from,
                                 .to = to,
                                 .word = text.size ? (int32_t)word : DGM_LATTICE_NO_WORD,
                                 .glue = text.size ? glue : 0,
                                 .score = score};
    return dgm_lattice_add_arc(l, &arc, err);
}

void dgm_lattice_add_end(dgm_lattice *l, int32_t node, float score)
{
    if (node < 0 || node >= l->node_count || !isfinite(score)) return;
    if (score > l->ends[node]) l->ends[node] = score;
}

// ---- sealing -----------------------------------------------------------------------------------

typedef struct sealing {
    dgm_lattice *l;
    int32_t *number;   // [nodes] new number; -1: not ready yet
    uint32_t *pending; // [nodes] arcs that lead to it from nodes without a number
    int32_t *heap;     // [nodes] ready nodes, the smallest first
    int32_t heap_count;
    bool *ahead, *behind; // [nodes] can it be reached from the start; can it reach an end?
    size_t *first;        // [nodes + 1]
    uint32_t *order;      // [arcs] by the node they leave, then as they were added
} sealing;

#define SMALLER(x, y) ((x) < (y))

static void heap_push(sealing *s, int32_t node)
{
    DGM_HEAP_UP(s->heap, s->heap_count, node, SMALLER);
    s->heap_count++;
}

static int32_t heap_pop(sealing *s)
{
    const int32_t top = s->heap[0], last = s->heap[--s->heap_count];
    DGM_HEAP_DOWN(s->heap, s->heap_count, 0, last, SMALLER);
    return top;
}

// Arcs by the node they leave: a counting sort.
static void sort_arcs(sealing *s)
{
    const dgm_lattice *l = s->l;
    memset(s->first, 0, ((size_t)l->node_count + 1) * sizeof *s->first);
    for (size_t i = 0; i < l->arc_count; i++) s->first[l->arcs[i].from + 1]++;
    for (int32_t n = 0; n < l->node_count; n++) s->first[n + 1] += s->first[n];
    for (size_t i = 0; i < l->arc_count; i++) s->order[s->first[l->arcs[i].from]++] = (uint32_t)i;
    for (int32_t n = l->node_count; n > 0; n--) s->first[n] = s->first[n - 1];
    s->first[0] = 0;
}

// Numbers the nodes; returns how many got one. The start comes first whatever leads nowhere to it.
static int32_t number_nodes(sealing *s)
{
    const dgm_lattice *l = s->l;
    int32_t done = 0;
    for (int32_t n = 0; n < l->node_count; n++) s->number[n] = -1, s->pending[n] = 0;
    for (size_t i = 0; i < l->arc_count; i++) s->pending[l->arcs[i].to]++;
    for (int32_t n = 0; n < l->node_count; n++)
        if (s->pending[n] == 0) heap_push(s, n);
    while (s->heap_count > 0) {
        const int32_t n = heap_pop(s);
        s->number[n] = done++;
        for (size_t i = s->first[n]; i < s->first[n + 1]; i++) {
            const int32_t to = l->arcs[s->order[i]].to;
            if (--s->pending[to] == 0) heap_push(s, to);
        }
    }
    return done;
}

// An arc that lies on a cycle. Every node without a number has one before it without, so walking
// backwards comes to a node for the second time.
static const dgm_lattice_arc *arc_of_cycle(sealing *s)
{
    const dgm_lattice *l = s->l;
    int32_t *before = s->heap; // an arc that leads to the node, or -1; the heap is empty
    for (int32_t n = 0; n < l->node_count; n++) before[n] = -1;
    for (size_t i = 0; i < l->arc_count; i++)
        if (s->number[l->arcs[i].from] < 0 && s->number[l->arcs[i].to] < 0 &&
            before[l->arcs[i].to] < 0)
            before[l->arcs[i].to] = (int32_t)i;
    int32_t node = 0;
    while (s->number[node] >= 0 || before[node] < 0) node++;
    for (int32_t step = 0; step < l->node_count; step++) node = l->arcs[before[node]].from;
    return &l->arcs[before[node]];
}

static dgm_status say_line(dgm_error *err, uint32_t line, dgm_status code)
{
    if (line) dgm_error_prefix(err, "line %u", (unsigned)line);
    return code;
}

// Which nodes lie on a path; numbers are topological, `at` is the node of each number.
static void mark_paths(sealing *s, const int32_t *at)
{
    const dgm_lattice *l = s->l;
    for (int32_t n = 0; n < l->node_count; n++) {
        s->ahead[n] = n == 0;
        s->behind[n] = l->ends[n] > -INFINITY;
    }
    for (int32_t k = 0; k < l->node_count; k++)
        for (size_t i = s->first[at[k]]; s->ahead[at[k]] && i < s->first[at[k] + 1]; i++)
            s->ahead[l->arcs[s->order[i]].to] = true;
    for (int32_t k = l->node_count - 1; k >= 0; k--)
        for (size_t i = s->first[at[k]]; i < s->first[at[k] + 1]; i++)
            s->behind[at[k]] |= s->behind[l->arcs[s->order[i]].to];
}

static dgm_status check_paths(const sealing *s, bool trim, dgm_error *err)
{
    const dgm_lattice *l = s->l;
    DGM_FAIL_IF(!s->behind[0], err, DGM_ERR_FORMAT, "no path leads from the start to an end");
    for (int32_t n = 0; !trim && n < l->node_count; n++) {
        if (s->ahead[n] && s->behind[n]) continue;
        dgm_fail(err, DGM_ERR_FORMAT,
                 s->ahead[n] ? "a dead end: no path leads from this node to an end"
                             : "no path leads from the start to this node");
        return say_line(err, l->lines[n], DGM_ERR_FORMAT);
    }
    return DGM_OK;
}

// Nodes on a path get the numbers from 0 on in their order; the others and their arcs go.
static dgm_status renumber(sealing *s, const int32_t *at, dgm_error *err)
{
    dgm_lattice *l = s->l;
    int32_t count = 0;
    size_t arcs = 0, kept = 0;
    for (int32_t k = 0; k < l->node_count; k++)
        s->number[at[k]] = s->ahead[at[k]] && s->behind[at[k]] ? count++ : -1;
    for (size_t i = 0; i < l->arc_count; i++)
        arcs += s->number[l->arcs[i].from] >= 0 && s->number[l->arcs[i].to] >= 0;
    dgm_lattice_arc *sorted = dgm_malloc((arcs + 1) * sizeof *sorted);
    float *ends = dgm_malloc((size_t)count * sizeof *ends);
    uint32_t *lines = dgm_malloc((size_t)count * sizeof *lines);
    l->first = dgm_malloc(((size_t)count + 1) * sizeof *l->first);
    if (!sorted || !ends || !lines || !l->first) {
        dgm_free(sorted);
        dgm_free(ends);
        dgm_free(lines);
        return dgm_no_memory(err);
    }
    for (int32_t k = 0, n = 0; k < l->node_count; k++) {
        const int32_t old = at[k];
        if (s->number[old] < 0) continue;
        ends[n] = l->ends[old];
        lines[n] = l->lines[old];
        l->first[n++] = kept;
        for (size_t i = s->first[old]; i < s->first[old + 1]; i++) {
            dgm_lattice_arc a = l->arcs[s->order[i]];
            if (s->number[a.to] < 0) continue;
            a.from = s->number[a.from];
            a.to = s->number[a.to];
            sorted[kept++] = a;
        }
    }
    l->first[count] = kept;
    dgm_free(l->arcs);
    dgm_free(l->ends);
    dgm_free(l->lines);
    l->arcs = sorted, l->arc_cap = arcs + 1, l->arc_count = arcs;
    l->ends = ends, l->end_cap = (size_t)count;
    l->lines = lines, l->line_cap = (size_t)count;
    l->node_count = count;
    return DGM_OK;
}

static dgm_status seal(sealing *s, bool trim, dgm_error *err)
{
    dgm_lattice *l = s->l;
    sort_arcs(s);
    if (number_nodes(s) < l->node_count) {
        const dgm_lattice_arc *a = arc_of_cycle(s);
        dgm_fail(err, DGM_ERR_FORMAT, "this arc lies on a cycle");
        return say_line(err, a->line, DGM_ERR_FORMAT);
    }
    int32_t *at = s->heap; // empty again
    for (int32_t n = 0; n < l->node_count; n++) at[s->number[n]] = n;
    mark_paths(s, at);
    DGM_TRY(check_paths(s, trim, err));
    return renumber(s, at, err);
}

dgm_status dgm_lattice_seal(dgm_lattice *l, bool trim, dgm_error *err)
{
    DGM_FAIL_IF(l->node_count == 0, err, DGM_ERR_FORMAT, "the lattice has no nodes");
    const size_t n = (size_t)l->node_count;
    sealing s = {.l = l};
    s.number = dgm_malloc(n * sizeof *s.number);
    s.pending = dgm_malloc(n * sizeof *s.pending);
    s.heap = dgm_malloc(n * sizeof *s.heap);
    s.ahead = dgm_malloc(n * sizeof *s.ahead);
    s.behind = dgm_malloc(n * sizeof *s.behind);
    s.first = dgm_malloc((n + 1) * sizeof *s.first);
    s.order = dgm_malloc((l->arc_count + 1) * sizeof *s.order);
    dgm_status st = s.number && s.pending && s.heap && s.ahead && s.behind && s.first && s.order
                        ? seal(&s, trim, err)
                        : dgm_no_memory(err);
    dgm_free(s.number);
    dgm_free(s.pending);
    dgm_free(s.heap);
    dgm_free(s.ahead);
    dgm_free(s.behind);
    dgm_free(s.first);
    dgm_free(s.order);
    return st;
}

// ---- reading paths -----------------------------------------------------------------------------

dgm_status dgm_lattice_spell(const dgm_lattice *l, const uint32_t *arcs, size_t count,
                             dgm_writer *out, dgm_error *err)
{
    bool open = false; // does the next word want a space before it?
    for (size_t i = 0; i < count; i++) {
        const dgm_lattice_arc *a = &l->arcs[arcs[i]];
        if (a->word < 0) continue;
        const dgm_text t = dgm_words_spell(&l->words, (uint32_t)a->word);
        if (open && !(a->glue & DGM_GLUE_LEFT)) dgm_write_u8(out, ' ');
        dgm_write_bytes(out, t.data, t.size);
        open = !(a->glue & DGM_GLUE_RIGHT);
    }
    return out->failed ? dgm_no_memory(err) : DGM_OK;
}

size_t dgm_lattice_longest(const dgm_lattice *l)
{
    uint32_t *longest = dgm_calloc((size_t)l->node_count, sizeof *longest);
    if (!longest) return (size_t)l->node_count - 1; // no path is longer
    uint32_t most = 0;
    for (size_t i = 0; i < l->arc_count; i++) { // sorted by the nodes they leave
        const dgm_lattice_arc *a = &l->arcs[i];
        if (longest[a->from] + 1 > longest[a->to]) longest[a->to] = longest[a->from] + 1;
    }
    for (int32_t n = 0; n < l->node_count; n++)
        if (l->ends[n] > -INFINITY && longest[n] > most) most = longest[n];
    dgm_free(longest);
    return most;
}
