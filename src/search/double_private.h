// SPDX-License-Identifier: MIT
// Private to the search of pairs: candidates of a sentence's step and where they come from.
//
// double.c says what rows may say, how they may end, and reports; double_topk.c chooses pairs from
// the ranked lists; double_fold.c (fold.h) turns pairs into words.
#ifndef DGM_SEARCH_DOUBLE_PRIVATE_H
#define DGM_SEARCH_DOUBLE_PRIVATE_H

#include "search/fold.h"
#include "search/search_private.h"

// A pair that may follow a live hypothesis.
typedef struct dgm_pair {
    int row;                 // of this generation
    int left, right;         // places in the row's lists
    float left_score, score; // with the left word; with both
} dgm_pair;

// What the pairs of one sentence are chosen from: rows first .. first + rows - 1 of a generation,
// the two lists of row r at 2 r and 2 r + 1, k long, best first, ended by -inf. Left lists have the
// hypothesis' sum in them, right lists are log-probabilities alone.
typedef struct dgm_pair_lists {
    const float *score; // [2 rows, k]
    int k, first, rows;
} dgm_pair_lists;

static inline float dgm_pair_at(const dgm_pair_lists *l, int row, int side, int i)
{
    return l->score[(size_t)(2 * row + side) * (size_t)l->k + (size_t)i];
}

struct dgm_pairs {
    dgm_pair *lefts; // [2 width]
    dgm_pair *found; // [3 width] of the sentence at hand
    int found_count;
    dgm_pair *heap; // [width + 3 width]
    int *at;        // [2 width]
    int32_t *words; // [3, max_length + 2] a result's tokens, nodes, and order of reading
};

// The paper's DoubleTopK: of the best 2W (row, left word), with their row's right words, the best
// 3W pairs. Equal scores: lower row, then the better left word, then the better right one. Returns
// their number; lefts has room for 2W, found for 3W, at for 2W numbers.
int dgm_double_topk(const dgm_pair_lists *l, int width, dgm_pair *lefts, dgm_pair *found, int *at);
// The best 3W of all pairs, in the same order. heap has room for rows + 3W.
int dgm_double_exact(const dgm_pair_lists *l, int width, dgm_pair *heap, dgm_pair *found);

#endif
