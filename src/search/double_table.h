// SPDX-License-Identifier: MIT
// Private to pairs with rules: the words of a row and what the rules say of them (double_rules.c), for who chooses
// among their pairs (double_choose.c).
#ifndef DGM_SEARCH_DOUBLE_TABLE_H
#define DGM_SEARCH_DOUBLE_TABLE_H

#include "search/double_private.h"

// Words that were said so far, and where the rules stand behind them.
typedef struct dgm_pair_ground {
    const dgm_search *s;
    const dgm_active *p;
    int row, hypo;
    bool both;
    int32_t *left, *right; // as they were written; in one direction all are in left
    int lefts, rights;
    int32_t state, state_right; // of constraints
    int32_t lmbr;               // of evidence, behind the left words
    dgm_pair_place place;       // in a lattice
    float base, lambda;
    float earned; // both ends: of evidence, so far
} dgm_pair_ground;

enum {
    DGM_PAIR_GRID = 32,                               // words of one side's list
    DGM_PAIR_WORDS = DGM_PAIR_GRID + DGM_OFFERS + 1, // of one side at most
    DGM_PAIR_UNKNOWN = -1,                            // in place of states
    DGM_PAIR_BROKEN = -2
};

// A word of one side, and what the rules say of it before they know the one beside it.
typedef struct dgm_pair_word {
    int32_t token;
    float value; // log-probability
    bool forced; // it may repeat itself
    bool may, said;
    float add;
    int32_t state, lmbr, node; // behind it; of a right word `state` is that of its own automaton
    int32_t met; // of a right word from both ends: terms that the right half has, as bits of the left one's state
    int alike;   // one direction: the first left word that leaves the same state of constraints
    int rank;    // both ends: better words that bring a pair to the same bank, at least so many
} dgm_pair_word;

typedef struct dgm_pair_table {
    dgm_pair_ground ground, *g; // g: the former
    dgm_pair_word left[DGM_PAIR_WORDS], right[DGM_PAIR_WORDS];
    int lefts, rights;
    int left_best, right_best;    // of these the first, which the model likes best, in falling order
    dgm_pair_rights joins;        // both ends, in a lattice
    int32_t behind[DGM_PAIR_WORDS][DGM_PAIR_WORDS]; // state behind (left, right) of one direction
    int32_t closed[2 * DGM_PAIR_WORDS];    // states from which it is known whether the rest meets everything
    bool closes[2 * DGM_PAIR_WORDS];
    int closed_count;
    bool chatter; // pairs that go on say more than the model would
} dgm_pair_table;

void dgm_pair_lay_table(dgm_pair_table *t, const dgm_search *s, const dgm_active *p, int row);
// A pair of the table with its score; false: it is not to be had.
bool dgm_pair_make(dgm_pair_table *t, int left, int right, dgm_candidate *c);
// Both ends: do the right words behind a state of the left automaton make a sentence that meets everything?
bool dgm_pair_closes_from(dgm_pair_table *t, int32_t state);

#endif
