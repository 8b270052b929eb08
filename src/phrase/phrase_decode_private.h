// SPDX-License-Identifier: MIT
// Private to the phrase-based decoder: phrase_options.c (translations of spans, future costs),
// phrase_search.c (stacks and cubes), phrase_nbest.c (lists and graphs), phrase_decode.c.
//
// Everything of a sentence lies in the decoder's arena, which is emptied before the next one.
#ifndef DGM_PHRASE_PHRASE_DECODE_PRIVATE_H
#define DGM_PHRASE_PHRASE_DECODE_PRIVATE_H

#include "base/arena.h"
#include "phrase/phrase_decode.h"

#define DGM_PB_NEVER (-1e30)

struct dgm_pb_model {
    const dgm_phrase_table *table;
    const dgm_lm *lm;
    dgm_pb_params p;
    uint32_t *lm_word; // [target words of the table]
    bool oriented;     // orientations have weights and the table has them
};

// A translation of a span.
typedef struct dgm_pb_option {
    const dgm_text *words;    // [count]
    const uint32_t *lm_words; // [count]
    int begin, end, count;
    uint64_t links;
    double score;    // weighted features that do not depend on the context
    double estimate; // score and an estimate of the language model
    double table[DGM_PHRASE_SCORES];
    double turn[DGM_PHRASE_ORIENTATIONS]; // log probabilities
    double next[3];                       // of them, those towards the next phrase, weighted
    bool unknown;
} dgm_pb_option;

typedef struct dgm_pb_span {
    dgm_pb_option *options; // best estimate first
    int count;
} dgm_pb_span;

// The source words that are covered: all before `gap`, and gap + i where bit i of `mask` is set.
typedef struct dgm_pb_cover {
    int gap;
    uint64_t mask;
} dgm_pb_cover;

typedef struct dgm_pb_hyp {
    struct dgm_pb_hyp *parent, *chain; // chain: of the hash table
    struct dgm_pb_hyp *lost;           // hypotheses that recombined with this one, a list
    const dgm_pb_option *option;       // NULL: the start, or the end
    dgm_pb_cover cover;
    int begin, end; // of the last phrase
    int node;       // number in the graph
    dgm_lm_state lm;
    double score, total; // total: with future costs
} dgm_pb_hyp;

// Hypotheses of equal cover and last phrase, times the options of a span.
typedef struct dgm_pb_edge {
    dgm_pb_hyp **hyps; // best first
    int hyp_count;
    const dgm_pb_span *span;
    dgm_pb_cover cover; // behind it
    int turn;           // orientation of the jump, -1: the first phrase has no previous one
    double constant;    // weighted distortion and future cost
} dgm_pb_edge;

typedef struct dgm_pb_item {
    const dgm_pb_edge *edge;
    int row, column;
    dgm_pb_hyp *made; // NULL: its score is an estimate
    double total;
    uint64_t serial; // ties: first come, first served
} dgm_pb_item;

typedef struct dgm_pb_stack {
    dgm_pb_edge *edges;
    size_t edge_count, edge_cap;
    dgm_pb_hyp **hyps;
    int count;
} dgm_pb_stack;

typedef struct dgm_pb_cached { // of the language model
    uint64_t key;
    double log;
    dgm_lm_state next;
} dgm_pb_cached;

struct dgm_pb_decoder {
    const dgm_pb_model *m;
    dgm_arena arena;
    const dgm_text *source;
    int n;
    dgm_pb_span *spans; // [n][max_length]
    int longest;        // max_length: of a span
    double *future;     // [n + 1][width + 1]: of words i .. i + k
    double *tail;       // [n + 1]: of words i .. n
    int width;
    dgm_pb_stack *stacks; // [stack_cap], of them n + 1 in use
    size_t stack_cap;
    dgm_pb_item *heap;
    size_t heap_count, heap_cap;
    uint64_t serial;
    dgm_pb_hyp **table; // hash table of the stack being filled
    size_t table_size;
    dgm_pb_hyp *end; // all complete hypotheses, recombined
    dgm_pb_cached *cache;
    dgm_pb_stats stats;
};

// Natural log probability of a word behind a state; from the cache if possible.
double dgm_pb_lm_step(dgm_pb_decoder *d, const dgm_lm_state *state, uint32_t word,
                      dgm_lm_state *next);
double dgm_pb_log(double probability);  // not below DGM_PB_LOG_FLOOR
dgm_status dgm_pb_full(dgm_error *err); // the arena has no room

// phrase_options.c: fills spans, future and tail.
dgm_status dgm_pb_collect(dgm_pb_decoder *d, dgm_error *err);
// phrase_search.c: fills the stacks and `end`.
dgm_status dgm_pb_search(dgm_pb_decoder *d, dgm_error *err);
// The orientation of a phrase that follows one: 0, 1, 2.
int dgm_pb_turn(int previous_begin, int previous_end, int begin, int end);
int dgm_pb_jump(int previous_end, int begin); // words jumped over
// phrase_nbest.c
dgm_status dgm_pb_list(dgm_pb_decoder *d, dgm_pb_translation **list, int *count, dgm_error *err);

#endif
