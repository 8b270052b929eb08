// SPDX-License-Identifier: MIT
// Private to the cube search: sub-cubes, the walk over cells, exact scores.
//
// A sentence's live hypotheses that look alike form a sub-cube. Its best one leads; only the leader
// is fed and ranked. Cell (r, c) of a sub-cube is hypothesis r followed by the leader's c-th best
// word; its approximate score is the leader's plus what r is behind the leader:
//
//                     c = 0   1     2  ...       words in the leader's order
//     leader      r0   s00   s01   s02         sRC = s0C + behind[R], falls to the right and down
//     next best   r1   s10   s11   s12
//     ...
//
//   cube_group.c   which hypotheses are alike
//   cube_walk.c    cells in falling order, from a heap
//   cube_exact.c   naive cube pruning: the popped cells' own states and scores
//   cube.c         the search
#ifndef DGM_SEARCH_CUBE_PRIVATE_H
#define DGM_SEARCH_CUBE_PRIVATE_H

#include "search/search_private.h"

// ---- cube_walk.c -------------------------------------------------------------------------------

typedef struct dgm_cube_cell {
    float score;
    int32_t hypo, column;
    float key; // by which cells compete: the score, less what diversity takes off
} dgm_cube_cell;

// The cells of one sentence. Hypotheses 0 .. count - 1 are in beam order.
typedef struct dgm_cube_walk {
    int count, k;
    const float *scores;  // [rows, k] leaders' continuations, best first, their own sums inside
    const int32_t *line;  // [count] row of `scores` that belongs to the hypothesis' leader
    const int32_t *below; // [count] next best of its sub-cube; -1: it is the last
    const bool *leads;    // [count]
    const float *behind;  // [count] own sum - leader's sum
    float diversity;      // a hypothesis' i-th word competes as if it were i times this worse
    int32_t *pushed;      // [count] how many columns of its row were pushed so far
    dgm_cube_cell *heap;  // [DGM_CUBE_HEAP(count, pops)]
    int size, peak;
} dgm_cube_walk;

// A sub-cube pushes its corner, a pop pushes two neighbours at most.
#define DGM_CUBE_HEAP(hypotheses, pops) ((hypotheses) + 2 * (pops))

void dgm_cube_walk_start(dgm_cube_walk *w);                    // pushes the corners
bool dgm_cube_walk_pop(dgm_cube_walk *w, dgm_cube_cell *cell); // false: no cell is left

// ---- all sentences of a generation -------------------------------------------------------------

struct dgm_cubes {
    int pops;        // of one sentence at most
    int32_t *line;   // [sentences, width] generation row of the leader
    int32_t *leader; // [sentences, width] hypothesis that leads
    int32_t *below;  // [sentences, width]
    bool *leads;     // [sentences, width]
    float *behind;   // [sentences, width]
    int32_t *exact;  // [sentences, width] generation row of its own; -1: it was not computed
    int32_t *pushed; // [width]
    dgm_cube_cell *heap;
    dgm_candidate *popped; // [sentences, pops]
    int *popped_count;     // [sentences]
    // naive cube pruning
    int watched;           // words watched per row
    int32_t *filled;       // [capacity] words of each row
    int32_t *watch;        // [capacity, watched], watched <= k
    float *watch_score;    // [capacity, watched]
    int32_t *ids;          // [capacity, watched] the same, ascending
    dgm_candidates *lists; // [capacity]
    float *best;           // [capacity]
    int32_t *best_token;   // [capacity]
    // key `state`: pairs of the last generation's rows whose distance decides, in the order in which
    // grouping asks for them; s->hidden has their vectors, the parts side by side.
    int32_t *one, *two; // [capacity * (width - 1) / 2]
    dgm_distance *distance;
    int pairs, asked;
};

// ---- cube_group.c ------------------------------------------------------------------------------

// Before any of a step's sentences is grouped: with key `state`, forgets the pairs of the last step;
// adds those of a sentence; measures all of them at once.
void dgm_cube_forget(dgm_search *s);
void dgm_cube_ask(dgm_search *s, int active);
void dgm_cube_measure(dgm_search *s);

// Sorts the live hypotheses of a sentence into sub-cubes; fills leader, leads, below, behind.
// Returns how many there are. `apart`: everyone is its own.
int dgm_cube_group(dgm_search *s, int active, bool apart);

// ---- cube_exact.c ------------------------------------------------------------------------------

// Steps the hypotheses of all popped cells that do not lead, in one batch, and gives these cells
// their own rows and scores.
dgm_status dgm_cube_exact(dgm_search *s, dgm_error *err);

#endif
