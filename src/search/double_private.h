// SPDX-License-Identifier: MIT
// Private to the search of pairs: candidates of a sentence's step and where they come from.
//
// double.c says what rows may say, how they may end, and reports; double_topk.c chooses pairs from
// the ranked lists, double_choose.c where words depend on each other (double_rules.c, in lattices with double_walk.c);
// double_fold.c (fold.h) turns pairs into words.
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
    // double_rules.c
    int most;              // pairs of a row that are kept
    int32_t *said;         // [2, max_length + 4] of the hypothesis at hand
    int32_t *whole;        // [2 * max_length + 8] all of a sentence that closes
    void *table;           // of the row at hand: its words and what the rules say of them
    dgm_candidate *kept;   // [most] of the row at hand
    int *kept_count;       // [DGM_PAIR_SHELVES]
    dgm_candidate *ruled;  // [width * most] of the sentence at hand
    int ruled_count;
    bool roomy; // the beam has a place for each pair of the sentence at hand
    // double_walk.c, of rows that follow a lattice
    int32_t *ways; // [capacity, DGM_PAIR_WAYS] right words that may come
    int32_t *sure; // [capacity, 2] a pair that leads on, whatever the model thinks of it; -1: none
};

enum {
    DGM_PAIR_SHELVES = 2 * DGM_CONSTRAINT_BITS + 4,
    DGM_PAIR_WAYS = 512,
    DGM_PAIR_JOINED = 64 // right words of a row that are looked at in a lattice: bits of a mark
};

// double.c: what searches of pairs share.
void dgm_pair_begin(dgm_search *s); // before a generation
void dgm_pair_terms(dgm_search *s, int row);
void dgm_pair_trace(dgm_search *s, const dgm_active *p, const dgm_ended *e, int index);
int dgm_pair_nodes(const dgm_search_config *c);
void dgm_pair_lay_out(dgm_carve *c, dgm_search *s);
// The best way for a row's hypothesis to end here, whatever the lists hold; without rules.
dgm_candidate dgm_pair_best_end(const dgm_search *s, const dgm_active *p, int row);
// May a hypothesis end with this pair here, by its length? May a vector say a token?
bool dgm_pair_may_end(const dgm_search *s, const dgm_active *p, const dgm_candidate *c);
bool dgm_pair_may_say(const dgm_terms *t, int32_t token);
// Do words of a sentence's pairs depend on each other? Then its candidates, best first, and its ends in p->hand->ends.
bool dgm_pair_ruled(const dgm_search *s, const dgm_active *p);
dgm_merge dgm_pair_rules(dgm_search *s, const dgm_active *p);
size_t dgm_pair_table_bytes(void);
// Gives all pairs that the rules let a row say, of its first `lefts` and `rights` words and those that are watched.
typedef void (*dgm_pair_taker)(void *cookie, const dgm_candidate *c);
void dgm_pair_each(dgm_search *s, const dgm_active *p, int row, int lefts, int rights, dgm_pair_taker take,
                   void *cookie);
int dgm_pair_missing(const dgm_search *s, const dgm_active *p, int hypo); // subwords that its constraints lack
// Before rank: what a row of a sentence with a lattice may say.
void dgm_pair_follow_lattice(dgm_search *s, const dgm_active *p, int row);

// ---- double_walk.c ------------------------------------------------------------------------------

// Words of a hypothesis as they were written; in one direction all are left ones.
typedef struct dgm_pair_said {
    const int32_t *left;
    int lefts;
    const int32_t *right;
    int rights;
    bool both;
} dgm_pair_said;

// Where they stand in the lattice.
typedef struct dgm_pair_place {
    const dgm_walk *w;
    int32_t node;      // behind the left words
    int set, members;  // both ends: w->set[set] of so many nodes from which the right words lead to an end
    float left, right; // what the lattice adds for either half; of the right one the best
} dgm_pair_place;

// Right words of a row from both ends: their numbers are bits of the nodes' marks.
typedef struct dgm_pair_rights {
    int32_t tokens[DGM_PAIR_JOINED];
    float best[DGM_PAIR_JOINED]; // what the lattice adds for the right half with each, at best
    int count;
    int32_t last; // the last node that is marked
} dgm_pair_rights;

dgm_pair_place dgm_pair_stand(const dgm_walk *w, const dgm_pair_said *x); // overwrites the room of w
// A word, or the end, behind a node; what it adds is added. false: there is none.
bool dgm_pair_follow(const dgm_walk *w, int32_t *node, int32_t token, float *add);
bool dgm_pair_leave(const dgm_walk *w, int32_t node, int32_t eos, float *add);
void dgm_pair_ways(dgm_search *s, const dgm_pair_place *p, int row); // terms, and a sure pair
// Both ends: marks nodes with the right words that can be said where they are reached. May a pair be said whose left
// word leads to `node`, with the right word of this number?
void dgm_pair_join(const dgm_pair_place *p, dgm_pair_rights *r);
bool dgm_pair_joins(const dgm_pair_place *p, const dgm_pair_rights *r, int32_t node, int which);

// The paper's DoubleTopK: of the best 2W (row, left word), with their row's right words, the best
// 3W pairs. Equal scores: lower row, then the better left word, then the better right one. Returns
// their number; lefts has room for 2W, found for 3W, at for 2W numbers.
int dgm_double_topk(const dgm_pair_lists *l, int width, dgm_pair *lefts, dgm_pair *found, int *at);
// The best 3W of all pairs, in the same order. heap has room for rows + 3W.
int dgm_double_exact(const dgm_pair_lists *l, int width, dgm_pair *heap, dgm_pair *found);

#endif
