// SPDX-License-Identifier: MIT
// Private to mask-predict: candidates of a sentence, and the memory of a call.
//
// mask_predict.c makes iterations; mask_words.c finds the words of a candidate of which something is demanded.
#ifndef DGM_SEARCH_MASK_PRIVATE_H
#define DGM_SEARCH_MASK_PRIVATE_H

#include "search/search_private.h"

enum {
    DGM_MASK_BEST = 8,    // words of a place that demands may choose from,
    DGM_MASK_MOST = 32,   // in a lattice and with rules against repetition so many,
    DGM_MASK_WATCH = 64,  // beside those that they name
    DGM_MASK_STATES = 64, // of the automaton, that are followed at a place
};

// A candidate.
typedef struct dgm_filled {
    int length;      // words; 0: it died
    int32_t *words;  // [max_length]
    float *values;   // [max_length] log-probability of each when it was predicted
    int32_t *before; // [max_length] the words before this iteration masked some; DGM_NO_TOKEN: it is the first
    bool *fixed;     // [max_length] forced on it: never masked again
    float *align;    // [max_length, max_source] attention when it was predicted, or NULL
} dgm_filled;

// A state of the automaton behind some words, and the best way to it.
typedef struct dgm_mask_state {
    int32_t state, token;
    float sum, value; // of all words; of the last
    int back;         // at the place before
    bool kept;        // on the way of the words before this iteration: they met everything
} dgm_mask_state;

// What the model said of a candidate's wanted places.
typedef struct dgm_mask_call {
    const dgm_refine_target *target;
    int row, k, watched; // first row, and columns of score and watch_score
} dgm_mask_call;

struct dgm_masks {
    dgm_filled *candidates;     // [sentences, width]
    int *count;                 // [sentences]
    int *iteration;             // [sentences]
    int tokens;                 // of one refine call at most
    dgm_refine_target *targets; // [sentences * width]
    dgm_filled **owner;         // [sentences * width] of a target
    int32_t *wanted;            // [tokens]
    dgm_length_query *queries;  // [sentences] of those that are new,
    int32_t *entering;          // [sentences] which they are,
    int32_t *lengths;           // [sentences, width] and their lengths
    int *rank;                  // [max_length] positions by probability
    // of the wanted positions of a call
    dgm_terms *terms;                  // [tokens]
    const dgm_candidates **selections; // [tokens]
    int32_t *sizes;                    // [tokens]: of rank
    float *score;                      // [tokens, k]
    int32_t *token;                    // [tokens, k]
    int32_t *watch;                    // [tokens, DGM_MASK_WATCH]
    float *watch_score;
    float **align; // [tokens], or NULL
    dgm_mask_state *states; // [max_length + 1, DGM_MASK_STATES] of the candidate at hand
    void *choices;          // of the place at hand
    float *adds;            // [max_length + 1] of a lattice, for the result at hand
};

// Is something asked of its words: constraints, a beginning, a lattice, rules against repetition?
bool dgm_mask_demands(const dgm_search *s, const dgm_active *p);
int dgm_mask_best(const dgm_search *s, const dgm_active *p); // words of a place that are ranked then
size_t dgm_mask_choices_bytes(void);
int dgm_mask_shortest(const dgm_search *s, const dgm_active *p);   // translation that can have them
// Before rank: the words that it shall watch at the wanted places of a call's targets; how many for each.
int dgm_mask_watch(dgm_search *s, const int32_t *active, int count);
// After it: the candidate's words. false: none meet what is demanded.
bool dgm_mask_fill(dgm_search *s, const dgm_active *p, dgm_filled *c, const dgm_mask_call *call);

#endif
