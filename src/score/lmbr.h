// SPDX-License-Identifier: MIT
// LMBR in the beam (Iglesias et al., 2018): n-gram posteriors of some evidence as rows that rank
// adds to the model's scores.
//
// A hypothesis y gets, word by word,
//
//     theta[0] + sum over n = 1..4 of theta[n] P(y[t-n+1] .. y[t]) + lambda log P_model(y[t])
//
// What the sum over n may be depends on the last three words only. So a sentence's evidence becomes
// an automaton: a state is a history of 0 to 3 words with which some n-gram of the evidence begins;
// a hypothesis is in the state of the longest suffix that is one.
//
//     row of a state    what each next word earns, all suffixes of the history together
//                       = dense row of unigrams (state 0) + sparse additions
//     next              state and word -> state; else the same from the next shorter suffix
//                       (Aho-Corasick: goto and fail)
//
// N-grams longer than the last with a theta other than 0 are as if they had not been seen: where
// none earns anything, there is one state and nothing in its row.
// Words outside the evidence earn theta[0] alone. Made once per sentence by dgm_lmbr_compile (in
// the thread that submits it) and only read by the search.
#ifndef DGM_SCORE_LMBR_H
#define DGM_SCORE_LMBR_H

#include "score/posterior.h"

typedef struct dgm_lmbr_weights {
    float theta[1 + DGM_LMBR_ORDER];
    float lambda; // of the model
} dgm_lmbr_weights;

// theta[0] = -1 / t, theta[n] = 1 / (order t p r^(n-1)) up to n = order, 0 beyond: p the precision of
// unigrams, r the ratio from one length to the next, t only weighs them against lambda.
void dgm_lmbr_thetas(double p, double r, double t, int order, float theta[1 + DGM_LMBR_ORDER]);

typedef struct dgm_lmbr_rows {
    dgm_lmbr_weights weights;
    int32_t states; // at least 1: the empty history
    // State s: additions to the dense row are entries at[s] .. at[s + 1) of ids (ascending) and
    // values. State 0's are the non-zero part of the dense row itself.
    int32_t *at; // [states + 1]
    int32_t *ids;
    float *values;
    // And its successors are entries next_at[s] .. next_at[s + 1) of next_ids (ascending), next.
    int32_t *next_at, *next_ids, *next;
    int32_t *fail; // [states]
} dgm_lmbr_rows;

// NULL inside *rows on failure.
dgm_status dgm_lmbr_compile(dgm_lmbr_rows **rows, const dgm_posteriors *p,
                            const dgm_lmbr_weights *weights, dgm_error *err);
void dgm_lmbr_free(dgm_lmbr_rows **rows); // sets NULL; accepts NULL inside

int32_t dgm_lmbr_next(const dgm_lmbr_rows *r, int32_t state, int32_t token);
// What the sum over n is for a word behind a state: theta[0] and the model's score not included.
float dgm_lmbr_gain(const dgm_lmbr_rows *r, int32_t state, int32_t token);

// lmbr_entries.c: an n-gram of the evidence, and the gain of its last token behind the others.
typedef struct dgm_lmbr_entry {
    int32_t tokens[DGM_LMBR_ORDER];
    int length;
    double p;
    float gain;
} dgm_lmbr_entry;

// Every n-gram of p, of which r was made: short ones first, then by falling p, then by their tokens.
// *entries is the caller's to free; NULL on failure.
dgm_status dgm_lmbr_entries(const dgm_posteriors *p, const dgm_lmbr_rows *r,
                            dgm_lmbr_entry **entries, size_t *count, dgm_error *err);

#endif
