// SPDX-License-Identifier: MIT
// Searches over the model seam: many sentences at once, each entering and leaving when it likes.
//
// One dgm_search per worker. dgm_search_admit gives it sentences while it has room;
// dgm_search_advance makes one step for all of them (rows of all sentences in one product) and
// reports those that finished. Nothing is allocated after dgm_search_open.
//
//     while (work left || dgm_search_active(s)) {
//         while (work left && dgm_search_free(s)) dgm_search_admit(s, ...);
//         dgm_search_advance(s, on_result, cookie, err);
//     }
//
// A search is one file and one row in search_table.c.
#ifndef DGM_SEARCH_SEARCH_H
#define DGM_SEARCH_SEARCH_H

#include "model/model.h"
#include "constraint/constraint.h"
#include "score/score.h"
#include "vocabsel/vocabsel.h"

typedef struct dgm_search dgm_search;

// Finishing policies, PAPER_NOTES-style; names in dgm_finish_names.
typedef enum dgm_finish {
    DGM_FINISH_MARGIN = 0, // finished leave; stop when best finished - best live >= margin
    DGM_FINISH_SHRINK,     // the beam shrinks for good by every finished hypothesis
    DGM_FINISH_MASK,       // a finished one takes a place in its step, then the beam refills
    DGM_FINISH_REFILL,     // only among the best W; live beam refilled; stop at W finished
    DGM_FINISH_HUGGINGFACE,
    DGM_FINISH_FIRST, // as refill, but stop at `first` finished
    // HUGGINGFACE is a search with early_stopping=false and a forced end at the maximum length. CUT: none is
    // forced. EARLY: early_stopping=true. NEVER: early_stopping="never".
    DGM_FINISH_HUGGINGFACE_CUT,
    DGM_FINISH_HUGGINGFACE_EARLY,
    DGM_FINISH_HUGGINGFACE_EARLY_CUT,
    DGM_FINISH_HUGGINGFACE_NEVER,
    DGM_FINISH_HUGGINGFACE_NEVER_CUT,
    DGM_FINISH_MARIAN, // as shrink, but what is too long is cut off without an end
    DGM_FINISH_CTRANSLATE2, // as refill, but the same, and no translation is empty
    DGM_FINISH_COUNT
} dgm_finish;

enum { DGM_PARTS_MAX = 8, DGM_BEAM_MAX = 256, DGM_SAMPLE_MOST = 1024 };

// Which hypotheses cube pruning takes to be alike.
typedef enum dgm_cube_key {
    DGM_CUBE_TOKEN = 0, // the same last word
    DGM_CUBE_NONE,      // none: every hypothesis is computed, as in beam search
    DGM_CUBE_STATE      // the same last word and hidden vectors closer than cube_distance
} dgm_cube_key;

// How the length of a translation counts, of one sentence.
typedef struct dgm_length_rule {
    float length_penalty, word_penalty, max_length_factor; // as in dgm_search_config
} dgm_length_rule;

typedef struct dgm_search_config {
    const char *search; // a dgm_search_name, or "auto": greedy at beam 1, else beam
    int beam, nbest;    // nbest <= beam; of mask-predict the beam is the number of lengths
    dgm_finish finish;
    dgm_mix mix;
    bool normalise; // softmax on; off for self-normalised models
    float margin;   // 3.0, for DGM_FINISH_MARGIN
    int first;      // for DGM_FINISH_FIRST: stop at so many, at nbest if that is more; 0: at nbest. For
                    // DGM_FINISH_CTRANSLATE2 likewise; 0: at beam
    float length_penalty, word_penalty;
    // And at most this times the source's tokens + 10 (of DGM_FINISH_MARIAN: not + 10); 0: no such limit.
    float max_length_factor;
    // Tokens without the end symbol. (transformers' max_length counts the start and the end symbol:
    // its 512 is 510 here.)
    int max_length;
    int min_length; // the end symbol is denied before; 0: it may come first
    bool allow_unk;
    // Live hypotheses with less than this share of the best one's probability are dropped after
    // every step (raw sums); 0: none.
    float beam_width;
    int no_repeat;    // n-grams of this length come once in a hypothesis; 0: any number of times
    float repetition; // the probability of a token said before is divided by it; 0 or 1: not
    // Beam search draws a row's i-th best continuation (from 0) as if it were i times this worse;
    // scores stay what they are. 0: by score alone.
    float diversity;
    // Whole hypotheses get this times the logarithm of how well attention covered the source
    // (coverage.c); needs alignment. 0: nothing.
    float coverage;
    // Search "sample": nbest = beam draws. 0: 1, all, the DGM_SAMPLE_MOST best tokens. pairs: of models that write
    // two words a step.
    float temperature, top_p;
    int top_k;
    uint64_t seed;
    bool pairs;
    bool double_exact;           // search "double": the best pairs of all, not the paper's two stages
    int iterations;              // search "mask-predict"
    int refine_tokens; // likewise: tokens that the model takes in one go, as the device likes it
    bool alignment, word_scores; // keep what the results need
    int sentences;               // at once
    int max_rows; // rows in one step of the models at most, for comparisons; 0: all there are
    int max_source;              // longest source that will be admitted
    // Search "cube".
    bool cube_exact; // naive: popped hypotheses get their own states and scores
    dgm_cube_key cube_key;
    float cube_distance; // relative, for DGM_CUBE_STATE
    int hidden;          // DGM_CUBE_STATE: widths of the parts' hidden vectors together
    bool rescore;        // accelerated: results get the model's own scores in the end
    int ranked;          // best tokens of a row that rank finds at least; 0: what the search needs
    bool count_unions;   // of the candidates of all sentences at a step, for statistics
} dgm_search_config;

// One ensemble member.
typedef struct dgm_search_part {
    dgm_state *state;
    float weight;
} dgm_search_part;

typedef struct dgm_search_request {
    dgm_source source;     // borrowed until the sentence is reported
    const int32_t *prefix; // forced first tokens, borrowed likewise
    int prefix_count;
    // In place of the models' target_prefix, as many tokens (another direction of a multilingual
    // model), borrowed likewise; NULL: the models' own.
    const int32_t *lead;
    const dgm_length_rule *lengths; // in place of the config's, read when it enters; NULL: the config's
    int clusters;              // of the vocabulary's sets of them (vocabsel.h)
    const dgm_lmbr_rows *lmbr; // of its evidence, borrowed likewise; NULL: none
    const dgm_walk *walk;      // the lattice that it must follow, borrowed likewise; NULL: none
    // What the translation must and must not hold, read from the side that the model begins with, borrowed likewise;
    // NULL: nothing. Where no hypothesis can meet it, the result is the one of damaged weights.
    const dgm_constraint *constraint;
    // Of pairs from both ends the same, read from the right; `constraint` is then read from the left, without an end.
    const dgm_constraint *constraint_right;
    int width;   // of beam search and of pairs: live hypotheses at most, where that is fewer than the beam; 0: the beam
    bool glance; // with a width: over as soon as no live hypothesis is ahead of its best translation
    // Live hypotheses that differ from the best one more than so many tokens back are dropped, so that what is behind
    // that is certain (dgm_search_shared); beam and cube search without constraints. 0: none is.
    int settle;
    uint64_t id; // the caller's
} dgm_search_request;

// Views into the search's memory, valid during the callback.
typedef struct dgm_hypothesis {
    const int32_t *tokens; // [count], without the end symbol
    int count;
    float score;              // what hypotheses are ranked by (normalised by length)
    float sum;                // log-probability with the end symbol, unnormalised
    const float *word_scores; // [count + 1] with the end symbol's, or NULL
    const float *alignment;   // [count, source length] attention weights, or NULL
    bool finished;            // false: cut off at the maximum length
} dgm_hypothesis;

typedef struct dgm_search_result {
    uint64_t id;
    const dgm_hypothesis *hypotheses; // best first
    // 1 .. nbest. A sentence for which no token ever had a finite score (damaged weights) gets one
    // empty hypothesis with score -inf, finished = false.
    int count;
    int source_count, steps;
} dgm_search_result;

typedef void (*dgm_search_sink)(void *cookie, const dgm_search_result *result);

// Counts over the life of a search, for --stats.
typedef struct dgm_search_stats {
    uint64_t sentences, steps, rows, rank_rows, tokens; // steps: calls of step; rows: rows in them
    uint64_t dots;       // products of an output word's vector with a row, of each part
    uint64_t live;       // hypotheses that were expanded
    uint64_t leads;      // of these, ranked rows: sub-cubes; all of them in beam search
    uint64_t exact;      // naive cube pruning: rows stepped to score popped cells
    uint64_t pops;       // cells popped from the heaps
    uint64_t heaps;      // sum of the heaps' largest sizes, over sentences and steps
    uint64_t heap_peak;  // the largest of all
    uint64_t rescored;   // rows that only gave results their exact scores
    uint64_t candidates; // tokens that sentences chose from in their first step, summed
    uint64_t more;       // tokens that ranked rows chose from besides, summed
    uint64_t early;      // sentences that the margin ended
    // With config.count_unions: steps with candidates, their union over the sentences, summed;
    // lists of single sentences, their sizes, summed.
    uint64_t unions, union_tokens, selections, selection_tokens;
} dgm_search_stats;

// Names of the searches; NULL behind the last.
const char *dgm_search_name(int index);

// What the state of one part must have room for.
dgm_limits dgm_search_limits(const dgm_search_config *config, const dgm_model_info *info);

// parts: states with at least the limits above; all with the same vocabularies. vocabsel (NULL: the
// whole vocabulary) and scorers stay owned by the caller and outlive the search. Memory comes from
// x's memories, dgm_search_bytes of them, and goes back with them; rank's scratch is apart
// (dgm_rank_bytes for sentences * beam rows).
dgm_status dgm_search_open(dgm_search **s, dgm_exec *x, const dgm_search_config *config,
                           const dgm_search_part *parts, int part_count, dgm_vocabsel *vocabsel,
                           dgm_scorer *scorers, int scorer_count, dgm_error *err);
dgm_bytes dgm_search_bytes(const dgm_backend *b, const dgm_search_config *config, int part_count,
                           int vocabulary); // zeros: dgm_search_open will refuse
void dgm_search_close(dgm_search **s); // forgets its sentences; sets NULL; accepts NULL inside

int dgm_search_free(const dgm_search *s);   // how many more sentences fit
int dgm_search_active(const dgm_search *s); // sentences inside
int dgm_search_step_rows(const dgm_search *s);   // of the last step
// How many of the first requests there is room for now, in sentences and in the models' memory. At
// least one where nothing is inside and the states were opened for the longest sentence.
int dgm_search_fits(dgm_search *s, const dgm_search_request *requests, int count);
// Have the models memory for the next step? If not, dgm_search_evict makes some: always for the
// last sentence that is left.
bool dgm_search_step_fits(dgm_search *s);
// Throws a sentence out, unreported, as if it had never been admitted.
void dgm_search_evict(dgm_search *s, uint64_t id);
// Reports a sentence as it is now: the finished hypotheses that it has, or the live ones, unfinished.
// false: this search has nothing to show before its end, and the sentence stays.
bool dgm_search_stop(dgm_search *s, uint64_t id, dgm_search_sink sink, void *cookie);
// The first tokens of a sentence's best translation, which all hypotheses that can become it share; they
// grow from step to step. 0: none yet, or this search or model does not know before the end. *tokens
// is valid until the next call of the search.
int dgm_search_shared(dgm_search *s, uint64_t id, const int32_t **tokens);
// Do all these hypotheses go on behind the first `count` tokens, which they share, with a token that `fits` likes, or
// end there? false also where one of them has no more tokens yet.
bool dgm_search_goes_on(dgm_search *s, uint64_t id, int count, bool (*fits)(const void *cookie, int32_t token),
                        const void *cookie);
// count <= dgm_search_fits. All are encoded in one batch. On failure none of them is inside.
dgm_status dgm_search_admit(dgm_search *s, const dgm_search_request *requests, int count,
                            dgm_error *err);
// The sink is called for every sentence that ends with this step; it must not call the search.
// After a failure only dgm_search_clear and dgm_search_close make sense.
dgm_status dgm_search_advance(dgm_search *s, dgm_search_sink sink, void *cookie, dgm_error *err);
void dgm_search_clear(dgm_search *s); // forgets all sentences, e.g. after an error
const dgm_search_stats *dgm_search_counts(const dgm_search *s);

#endif
