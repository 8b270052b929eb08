// SPDX-License-Identifier: MIT
// Small lattices of tokens at random, and what their paths score, for the tests of searches.
#ifndef DGM_TESTS_UNIT_LATTICE_TOY_H
#define DGM_TESTS_UNIT_LATTICE_TOY_H

#include "unit/search_toy.h"

#include "lattice/lattice.h"

enum { LATTICE_TOY_NODES = 8, LATTICE_TOY_LONGEST = 8 };

// Arcs of every word to the next node, and of one in `sparse` to each node behind it; ends from node 2 on.
static inline dgm_lattice *lattice_toy(dgm_rng *rng, int nodes, const int32_t *words, int count, int sparse)
{
    dgm_lattice *l = NULL;
    dgm_error err;
    assert_int_equal(dgm_lattice_open(&l, &err), DGM_OK);
    for (int32_t n = 0, node; n < nodes; n++) assert_int_equal(dgm_lattice_add_node(l, 0, &node, &err), DGM_OK);
    for (int32_t from = 0; from < nodes; from++)
        for (int32_t to = from + 1; to < nodes; to++)
            for (int w = 0; w < count; w++) {
                const dgm_lattice_arc a = {
                    .from = from, .to = to, .word = words[w], .score = -(float)dgm_rng_unit(rng)};
                if (to == from + 1 || dgm_rng_next(rng) % (uint64_t)sparse == 0)
                    assert_int_equal(dgm_lattice_add_arc(l, &a, &err), DGM_OK);
            }
    for (int32_t n = 2; n < nodes; n++) dgm_lattice_add_end(l, n, -(float)dgm_rng_unit(rng));
    assert_int_equal(dgm_lattice_seal(l, true, &err), DGM_OK);
    return l;
}

// Best score of a path that says the words; -inf: there is none.
static inline double lattice_toy_score(const dgm_lattice *l, const int32_t *words, int count)
{
    double at[LATTICE_TOY_LONGEST + 1][LATTICE_TOY_NODES], best = -(double)INFINITY;
    assert_true(l->node_count <= LATTICE_TOY_NODES);
    if (count > LATTICE_TOY_LONGEST) return best;
    for (int i = 0; i <= count; i++)
        for (int32_t n = 0; n < l->node_count; n++) at[i][n] = i == 0 && n == 0 ? 0.0 : -(double)INFINITY;
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < l->arc_count; k++) {
            const dgm_lattice_arc *a = &l->arcs[k];
            if (a->word == words[i]) at[i + 1][a->to] = fmax(at[i + 1][a->to], at[i][a->from] + (double)a->score);
        }
    for (int32_t n = 0; n < l->node_count; n++) best = fmax(best, at[count][n] + (double)l->ends[n]);
    return best;
}

#endif
