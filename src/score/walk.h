// SPDX-License-Identifier: MIT
// A sentence's lattice as a search follows it: per node the tokens that may come next.
//
//     node n:  ids   [first[n] .. first[n + 1])   ascending; the end symbol where a path may end
//              next  the node behind each token; -1 behind the end symbol
//              adds  weight * score of the arc, or NULL: the lattice only says what is allowed
//
// Made once when a line is submitted, from a lattice with one arc per token and node
// (lattice/lattice.h). Two ways of writing want to know more of it: who writes from both ends the arcs that lead to a
// node, who fills in whole sentences how long the paths from a node are.
#ifndef DGM_SCORE_WALK_H
#define DGM_SCORE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "constraint/constraint.h"
#include "lattice/lattice.h"

typedef struct dgm_walk {
    int32_t node_count;
    int32_t *first; // [node_count + 1]
    int32_t *ids, *next;
    float *adds;
    int32_t *tokens; // [token_count] all of them, ascending, without the end symbol
    int token_count;
    int longest; // tokens of the longest path
    // dgm_walk_look_back; NULL: not asked for
    int32_t *back_first; // [node_count + 1]
    int32_t *back;       // numbers of the tokens (in ids) that lead to node n: [back_first[n] .. back_first[n + 1])
    int32_t *from;       // [tokens of ids] the node that each leaves
    int32_t *ends;       // [end_count] numbers of the end symbols in ids
    int end_count;
    // Room of the search that the line is in, one at a time: a set of nodes with sums and the one before it, and
    // a mark for each node.
    int32_t *set[2];   // [node_count]
    float *sum[2];     // [node_count]
    uint64_t *mark;    // [node_count]
    // dgm_walk_measure; NULL: not asked for
    uint64_t *lengths; // [node_count, length_words] bit n: a path of n tokens leads from the node to an end,
    uint64_t *depths;  // the same: from the start to the node
    int length_words;
} dgm_walk;

// l: sealed, of tokens, at most one arc per token leaves a node. weight 0: no adds.
dgm_status dgm_walk_make(dgm_walk **w, const dgm_lattice *l, int32_t eos, float weight,
                         dgm_error *err);
void dgm_walk_free(dgm_walk **w); // sets NULL; accepts NULL inside

// walk_ways.c: fill in what is NULL above. On failure the walk is what it was, or can only be freed.
dgm_status dgm_walk_look_back(dgm_walk *w, dgm_error *err);
dgm_status dgm_walk_measure(dgm_walk *w, dgm_error *err);
// Does a path of exactly `count` tokens lead from the node to an end? Wants dgm_walk_measure.
bool dgm_walk_ends_in(const dgm_walk *w, int32_t node, int count);
bool dgm_walk_comes_in(const dgm_walk *w, int32_t node, int count); // the same, from the start to the node
// What the lattice adds for a whole sentence, its end included; -inf: it is no path. adds NULL, or [count + 1]: of each
// token and of the end.
float dgm_walk_sentence(const dgm_walk *w, const int32_t *tokens, int count, int32_t eos, float *adds);

// walk_limit.c: of a sealed lattice of tokens the paths that begin with the prefix and meet the constraints (read from
// the left; NULL: none), one arc per token where l has that. *out NULL: there is none. DGM_ERR_UNSUPPORTED: it would
// have more than most_nodes.
dgm_status dgm_walk_limit(const dgm_lattice *l, const dgm_constraint *c, const int32_t *prefix, int prefix_count,
                          size_t most_nodes, dgm_lattice **out, dgm_error *err);

static inline float dgm_walk_add(const dgm_walk *w, int32_t at)
{
    return w->adds ? w->adds[at] : 0.0f;
}

// Index of the token among the node's; -1: it is not one of them.
int32_t dgm_walk_find(const dgm_walk *w, int32_t node, int32_t token);

#endif
