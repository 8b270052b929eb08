// SPDX-License-Identifier: MIT
// A sentence's lattice as a search follows it: per node the tokens that may come next.
//
//     node n:  ids   [first[n] .. first[n + 1])   ascending; the end symbol where a path may end
//              next  the node behind each token; -1 behind the end symbol
//              adds  weight * score of the arc, or NULL: the lattice only says what is allowed
//
// Made once when a line is submitted, from a lattice with one arc per token and node
// (lattice/lattice.h), and shared by whoever decodes the line.
#ifndef DGM_SCORE_WALK_H
#define DGM_SCORE_WALK_H

#include <stdint.h>

#include "base/status.h"
#include "lattice/lattice.h"

typedef struct dgm_walk {
    int32_t node_count;
    int32_t *first; // [node_count + 1]
    int32_t *ids, *next;
    float *adds;
    int32_t *tokens; // [token_count] all of them, ascending, without the end symbol
    int token_count;
    int longest; // tokens of the longest path
} dgm_walk;

// l: sealed, of tokens, at most one arc per token leaves a node. weight 0: no adds.
dgm_status dgm_walk_make(dgm_walk **w, const dgm_lattice *l, int32_t eos, float weight,
                         dgm_error *err);
void dgm_walk_free(dgm_walk **w); // sets NULL; accepts NULL inside

// Index of the token among the node's; -1: it is not one of them.
int32_t dgm_walk_find(const dgm_walk *w, int32_t node, int32_t token);

#endif
