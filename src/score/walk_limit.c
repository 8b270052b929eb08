// SPDX-License-Identifier: MIT
// A lattice's paths that meet what a line demands, as a lattice again: the product of the lattice with the automaton
// of the constraints (constraint.h), from which nodes that lead to no end are dropped.
//
//     place   (node of the lattice, state of the automaton, forced first tokens passed)
//
// So constraints inside a lattice cost nothing while decoding: every path that is left meets them, whatever the search,
// and however narrow its beam.
#include <math.h>

#include "base/mem.h"
#include "score/walk.h"

typedef struct place {
    int32_t node, state;
    int passed;
} place;

typedef struct product {
    const dgm_lattice *l;
    const dgm_constraint *c; // NULL: none
    const int32_t *prefix;
    int prefix_count;
    size_t most;
    dgm_lattice *out;
    place *places; // [out->node_count]
    size_t place_cap;
    uint32_t *table; // open addressing: number of a place + 1, 0: free
    size_t table_size;
} product;

static size_t slot_of(const product *x, const place *p)
{
    uint64_t h = ((uint64_t)(uint32_t)p->node << 32 | (uint32_t)p->state) * 0x9E3779B97F4A7C15u;
    h = (h ^ (uint64_t)p->passed) * 0xBF58476D1CE4E5B9u;
    for (size_t at = (size_t)(h >> 29) & (x->table_size - 1);; at = (at + 1) & (x->table_size - 1)) {
        if (x->table[at] == 0) return at;
        const place *other = &x->places[x->table[at] - 1];
        if (other->node == p->node && other->state == p->state && other->passed == p->passed) return at;
    }
}

static dgm_status grow_table(product *x, dgm_error *err)
{
    const size_t count = (size_t)x->out->node_count;
    if (x->table_size > 2 * count) return DGM_OK;
    dgm_free(x->table);
    x->table_size = x->table_size ? 2 * x->table_size : 1024;
    x->table = dgm_calloc(x->table_size, sizeof *x->table);
    if (!x->table) return dgm_no_memory(err);
    for (size_t i = 0; i < count; i++) x->table[slot_of(x, &x->places[i])] = (uint32_t)i + 1;
    return DGM_OK;
}

// The node of a place, made if it is new.
static dgm_status node_of(product *x, const place *p, int32_t *node, dgm_error *err)
{
    DGM_TRY(grow_table(x, err));
    const size_t at = slot_of(x, p);
    if (x->table[at]) {
        *node = (int32_t)x->table[at] - 1;
        return DGM_OK;
    }
    DGM_FAIL_IF((size_t)x->out->node_count >= x->most, err, DGM_ERR_UNSUPPORTED,
                "lattice and constraints together have more than %zu nodes", x->most);
    DGM_TRY(dgm_lattice_add_node(x->out, x->l->lines[p->node], node, err));
    DGM_TRY(dgm_grow(&x->places, &x->place_cap, (size_t)*node + 1, sizeof *x->places, err));
    x->places[*node] = *p;
    x->table[at] = (uint32_t)*node + 1;
    return DGM_OK;
}

static dgm_status follow(product *x, int32_t from, const dgm_lattice_arc *a, dgm_error *err)
{
    const place here = x->places[from];
    place next = {.node = a->to, .state = here.state, .passed = here.passed};
    bool broken = false;
    if (here.passed < x->prefix_count && a->word != x->prefix[next.passed++]) return DGM_OK;
    if (x->c) next.state = dgm_constraint_advance(x->c, here.state, a->word, &broken);
    if (broken) return DGM_OK;
    dgm_lattice_arc arc = {.from = from, .word = a->word, .score = a->score, .line = a->line};
    DGM_TRY(node_of(x, &next, &arc.to, err));
    return dgm_lattice_add_arc(x->out, &arc, err);
}

static dgm_status multiply(product *x, bool *any, dgm_error *err)
{
    const dgm_lattice *l = x->l;
    const place start = {.state = x->c ? dgm_constraint_start(x->c) : 0};
    int32_t first;
    DGM_TRY(node_of(x, &start, &first, err));
    for (int32_t n = 0; n < x->out->node_count; n++) {
        const place p = x->places[n];
        const bool may_end = p.passed == x->prefix_count && (!x->c || dgm_constraint_may_end(x->c, p.state));
        if (may_end && l->ends[p.node] > -INFINITY) {
            dgm_lattice_add_end(x->out, n, l->ends[p.node]);
            *any = true;
        }
        for (size_t i = l->first[p.node]; i < l->first[p.node + 1]; i++) DGM_TRY(follow(x, n, &l->arcs[i], err));
    }
    return DGM_OK;
}

dgm_status dgm_walk_limit(const dgm_lattice *l, const dgm_constraint *c, const int32_t *prefix, int prefix_count,
                          size_t most_nodes, dgm_lattice **out, dgm_error *err)
{
    product x = {.l = l, .c = c, .prefix = prefix, .prefix_count = prefix_count, .most = most_nodes};
    bool any = false;
    *out = NULL;
    dgm_status st = dgm_lattice_open(&x.out, err);
    if (st == DGM_OK) st = multiply(&x, &any, err);
    if (st == DGM_OK && any) st = dgm_lattice_seal(x.out, true, err);
    if (st == DGM_OK && any) {
        *out = x.out;
        x.out = NULL;
    }
    dgm_lattice_close(&x.out);
    dgm_free(x.places);
    dgm_free(x.table);
    return st;
}
