// SPDX-License-Identifier: MIT
// Sentences as pairs of words, as models of pairs are trained with them, and back (double_fold.c).
#ifndef DGM_SEARCH_FOLD_H
#define DGM_SEARCH_FOLD_H

#include "model/model.h"

// Which of n words (from 0) stands on a side (0 left, 1 right) of a pair; n: EOD. There are
// n / 2 + 1 pairs.
int dgm_fold_at(dgm_order order, int n, int pair, int side);
// The way back. Words of `pairs` pairs, flat, in the order of reading: their places in the list, and
// their number. EOD ends its side. With both sides at the ends a word beside EOD is in the middle; of
// (EOD, x) in the other orders x is dropped.
int dgm_double_unfold(dgm_order order, const int32_t *tokens, int pairs, int32_t eod, int32_t *places);

#endif
