// SPDX-License-Identifier: MIT
// Features of the phrase-based decoder and their weights, in the names and signs of Moses:
//
//     LexicalReordering0   6: log probability of the orientation towards the previous phrase
//                          (monotone, swapped, discontinuous), then towards the next one
//     Distortion0          minus the words jumped over between phrases
//     LM0                  log probability of the language model, </s> included
//     WordPenalty0         minus the target words
//     PhrasePenalty0       the phrases used
//     TranslationModel0    4: log p(s|t), lex(s|t), p(t|s), lex(t|s)
//     UnknownWordPenalty0  minus 100 for every source word copied without a translation
//
// All logarithms are natural, those of probabilities not below -100. A hypothesis' score is the
// sum of features times weights. A weights file has a line "NAME= W W ..." for every group, as the
// [weight] part of Moses' configuration; lines that begin with # and empty ones are skipped.
#ifndef DGM_PHRASE_PHRASE_WEIGHTS_H
#define DGM_PHRASE_PHRASE_WEIGHTS_H

#include "base/bytes.h"
#include "base/status.h"
#include "text/unicode.h"

enum {
    DGM_PB_REORDERING = 0,
    DGM_PB_DISTORTION = 6,
    DGM_PB_LM = 7,
    DGM_PB_WORDS = 8,
    DGM_PB_PHRASES = 9,
    DGM_PB_TABLE = 10,
    DGM_PB_UNKNOWN = 14,
    DGM_PB_FEATURES = 15,
};

#define DGM_PB_LOG_FLOOR (-100.0)

typedef struct dgm_pb_weights {
    double w[DGM_PB_FEATURES];
} dgm_pb_weights;

typedef struct dgm_pb_group {
    const char *name;
    int first, count;
} dgm_pb_group;

extern const dgm_pb_group dgm_pb_groups[]; // in the order of the features; name NULL at the end

void dgm_pb_weights_default(dgm_pb_weights *w); // Moses' usual first values
void dgm_pb_weights_uniform(dgm_pb_weights *w); // 1 for all
double dgm_pb_dot(const dgm_pb_weights *w, const double *features);

// Groups that are not there keep what *w has. Messages name file and line.
dgm_status dgm_pb_weights_read(dgm_pb_weights *w, const char *path, dgm_error *err);
dgm_status dgm_pb_weights_parse(dgm_pb_weights *w, dgm_text line, dgm_error *err); // one line
void dgm_pb_weights_write(const dgm_pb_weights *w, dgm_writer *out);
// "LexicalReordering0= -1 0 0 ... UnknownWordPenalty0= 0": a list's column.
void dgm_pb_features_write(const double *features, dgm_writer *out);
dgm_status dgm_pb_features_parse(dgm_text column, double *features, dgm_error *err);

#endif
