// SPDX-License-Identifier: MIT
// Dragoman tools: what models think of given translations. Conventions as in tools.h.
#ifndef DRAGOMAN_SCORE_H
#define DRAGOMAN_SCORE_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dgm_pair {
    dgm_line source, target;
} dgm_pair;

typedef struct dgm_pair_score {
    size_t size;
    dgm_status status;   // DGM_ERR_TEXT: longer than the model can take, ...
    const char *message; // "" when the status is DGM_OK
    float sum;           // log-probability of the target with its end symbol
    float score;         // normalised by length, as in dgm_translation
    size_t token_count;  // with the end symbol
    const char *const *tokens; // in the order of reading
    const float *token_scores; // where a model of pairs ends with two symbols, the last has both
    // Log of the first model's softmax sum at each token (of two ends the mean); NULL without softmax.
    const float *log_z;
} dgm_pair_score;

typedef struct dgm_pair_scores {
    size_t size;
    const dgm_pair_score *const *items;
    size_t count, failed;
} dgm_pair_scores;

// What the translator's models think of given translations (forced decoding). Long lines are not
// split: they fail. Models of pairs are given them folded as in training.
DGM_API dgm_status dgm_score_pairs(dgm_translator *t, const dgm_pair *pairs, size_t count,
                                   dgm_pair_scores **scores, dgm_error *error);

// The same with a direction for each pair, of a model that has several: as dgm_input.direction.
DGM_API dgm_status dgm_score_directed_pairs(dgm_translator *t, const dgm_pair *pairs, const dgm_direction *directions,
                                            size_t count, dgm_pair_scores **scores, dgm_error *error);

// The same of tokens, as the vocabularies spell them: all that the encoder reads (dgm_input.tokens), and the
// translation without its end symbol. Of a model that wants languages before a translation the first are these, and
// have no score.
typedef struct dgm_token_pair {
    const char *const *source, *const *target;
    size_t source_count, target_count;
} dgm_token_pair;
DGM_API dgm_status dgm_score_token_pairs(dgm_translator *t, const dgm_token_pair *pairs, size_t count,
                                         dgm_pair_scores **scores, dgm_error *error);
DGM_API void dgm_pair_scores_free(dgm_pair_scores **scores);

// Adds `weight` times what t's models think of each translation (dgm_pair_score.score) to its score
// and sorts every line's translations by the sum, best first. sources[i] is the text whose result is
// results->items[i]; of a translation through a third language (route.h) dgm_translation.pivot counts instead: t is a
// model of the last step's direction. t may have other vocabularies and another order of writing than the translator
// that made the results. A line with a translation that t cannot score stays as it is.
DGM_API dgm_status dgm_rerank(dgm_translator *t, float weight, const dgm_line *sources,
                              dgm_results *results, dgm_error *error);
// Several such models at once, for results in one direction or in many: every line is ranked by those that are for its
// own (dgm_result.source_code and target_code, of the last step of a route). A line for which there is none stays as it
// is.
typedef struct dgm_reranker {
    size_t size;
    dgm_translator *translator; // with direction_later where it is asked about several directions
    float weight;
    // NULL: for all lines; "en-de": for those between these languages.
    const char *direction;
    // 1: also for those alone whose direction its model translates, and it scores each in that. 0: it scores all of
    // them in its own.
    int32_t directed;
} dgm_reranker;
DGM_API dgm_status dgm_rerank_by(const dgm_reranker *rerankers, size_t count, const dgm_line *sources,
                                 dgm_results *results, dgm_error *error);
// Keeps the best `most` translations of every line, at least one.
DGM_API void dgm_results_trim(dgm_results *results, size_t most);

// How far a model's output is from being self-normalised: log Z, the log of the softmax sum, over
// all tokens of forced translations. A mean other than 0 acts like a reward or a cost per word
// where the softmax is left out (dgm_settings.softmax).
typedef struct dgm_log_z {
    size_t size;
    size_t lines, failed; // failed: longer than the model can take
    size_t tokens;        // end symbols included
    double mean, deviation, mean_absolute;
    double quantiles[9]; // least, 1, 5, 25, 50, 75, 95, 99 %, most
} dgm_log_z;

// targets NULL: the translator's own translations are forced. The translator's softmax must be on;
// of an ensemble the first model is measured.
DGM_API dgm_status dgm_log_z_measure(dgm_translator *t, const dgm_line *sources,
                                     const dgm_line *targets, size_t count, dgm_log_z *out,
                                     dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
