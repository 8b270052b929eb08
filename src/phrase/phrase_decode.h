// SPDX-License-Identifier: MIT
// The phrase-based decoder: beam search over stacks of hypotheses that cover equally many source
// words, filled by cube pruning (Huang and Chiang 2007), with estimated future costs, a limit on
// jumps, recombination, and lists of the best translations.
//
// dgm_pb_model is what threads share; a dgm_pb_decoder is one thread's scratch memory.
#ifndef DGM_PHRASE_PHRASE_DECODE_H
#define DGM_PHRASE_PHRASE_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "lm/lm.h"
#include "phrase/phrase_table.h"
#include "phrase/phrase_weights.h"

enum { DGM_PB_JUMP_MAX = 56 }; // what is covered behind the first gap is a mask of 64 bits

typedef struct dgm_pb_params {
    int pops;        // hypotheses taken from the cubes of a stack, 1 or more
    int stack;       // of them kept, 1 or more
    int jump;        // longest jump (distortion limit), 0 to DGM_PB_JUMP_MAX
    int table_limit; // best options per source phrase, 1 or more
    int nbest;       // translations wanted, 1 or more
    bool distinct;   // no two of them with the same words
    dgm_pb_weights weights;
} dgm_pb_params;

void dgm_pb_params_default(dgm_pb_params *p);
dgm_status dgm_pb_params_check(const dgm_pb_params *p, dgm_error *err);

typedef struct dgm_pb_model dgm_pb_model;

// Table and language model are borrowed and must outlive the model.
dgm_status dgm_pb_model_open(dgm_pb_model **m, const dgm_phrase_table *table, const dgm_lm *lm,
                             const dgm_pb_params *params, dgm_error *err);
void dgm_pb_model_close(dgm_pb_model **m); // sets *m to NULL; accepts NULL inside
// Other parameters from now on; no decoder may be at work.
dgm_status dgm_pb_model_set(dgm_pb_model *m, const dgm_pb_params *params, dgm_error *err);

// A phrase of a translation: target words from .. from + count stand for source words begin .. end.
typedef struct dgm_pb_segment {
    int begin, end, from, count;
    uint64_t links; // as in extract.h
} dgm_pb_segment;

typedef struct dgm_pb_translation {
    const dgm_text *words;
    int count;
    const dgm_pb_segment *segments;
    int segment_count;
    double score;
    double features[DGM_PB_FEATURES];
} dgm_pb_translation;

// A node of the search graph, for whoever wants more than a list. Arcs lead to earlier nodes only.
typedef struct dgm_pb_arc {
    int from, to;          // nodes; 0 is the start, the last one the end
    const dgm_text *words; // empty into the end
    int count;
    double score;                 // what the arc adds
    const struct dgm_pb_hyp *way; // for dgm_pb_arc_features
} dgm_pb_arc;

typedef struct dgm_pb_stats {
    uint64_t hypotheses, evaluated, recombined, edges, unknown;
} dgm_pb_stats;

typedef struct dgm_pb_decoder dgm_pb_decoder;

dgm_status dgm_pb_decoder_open(dgm_pb_decoder **d, const dgm_pb_model *m, dgm_error *err);
void dgm_pb_decoder_close(dgm_pb_decoder **d); // sets *d to NULL; accepts NULL inside
// Translates a sentence. Results are borrowed until the next call: best first, at least one.
// Words must stay where they are until then, too: unknown ones are copied.
dgm_status dgm_pb_decode(dgm_pb_decoder *d, const dgm_text *words, int count,
                         const dgm_pb_translation **list, int *list_count, dgm_error *err);
// The whole graph of the last sentence, arcs ordered by `to`; borrowed until the next call.
dgm_status dgm_pb_graph(dgm_pb_decoder *d, const dgm_pb_arc **arcs, size_t *arc_count, int *nodes,
                        dgm_error *err);
// What an arc of that graph adds to every feature; those of a path add up to its translation's.
void dgm_pb_arc_features(dgm_pb_decoder *d, const dgm_pb_arc *arc, double *features);
const dgm_pb_stats *dgm_pb_decoder_stats(const dgm_pb_decoder *d); // since it was opened

#endif
