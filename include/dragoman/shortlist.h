// SPDX-License-Identifier: MIT
// Dragoman tools: shortlists of models. Conventions as in tools.h.
#ifndef DRAGOMAN_SHORTLIST_H
#define DRAGOMAN_SHORTLIST_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/align.h"
#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where a shortlist comes from: exactly one of (source and target), lexicon, binary; or none of them to
// work on the one that the model has.
typedef struct dgm_shortlist_options {
    size_t size;
    const char *source, *target; // parallel text, aligned with the model's tokens
    const char *lexicon;         // text table with lines of TARGET SOURCE PROBABILITY, in tokens
    const char *binary;          // Marian's binary shortlist
    int best;                    // translations kept per source token, 1 to 1000. Default 20
    double threshold;            // those with a smaller probability are left out. Default 0.001
    // Not 0: the threshold is set so that a line of `tune`, a source text, has this many candidates
    // on average. A token's list is then long where it has many translations and short where it has
    // few. Default 0
    int candidates;
    const char *tune;
    int frequent; // target tokens that are always allowed: the most frequent ones of the text,
                  // or with `lexicon` those of `frequent_text`, NULL: the first ones of the
                  // vocabulary. Default 100
    const char *frequent_text; // target text
    // Not 0: a token is also allowed behind a target token that it follows with at least this
    // probability in the target text (`target`, or `frequent_text`): endings of words, mostly.
    // Default 0
    double next;
    int remove;   // write the model without a shortlist
    const char *write_lexicon, *write_binary; // also write it as text, for Marian
    const dgm_align_options *align; // NULL: defaults. Its files and `subwords` are not used
    dgm_progress progress;
} dgm_shortlist_options;

DGM_API void dgm_shortlist_init(dgm_shortlist_options *options, size_t size);
static inline void dgm_shortlist_default(dgm_shortlist_options *options)
{
    dgm_shortlist_init(options, sizeof *options);
}

typedef struct dgm_shortlist_report {
    size_t size;
    uint64_t sources; // tokens with a list
    uint64_t entries, frequent, next; // translations, always allowed tokens, continuations
    uint64_t unknown; // lines of the text table with a token that the model does not have
    uint64_t bytes;   // in the model file
    double threshold; // that was used
} dgm_shortlist_report;

// Makes a shortlist for a model and writes the model with it. output NULL: only the other files.
// options NULL is an error; report NULL: not wanted.
DGM_API dgm_status dgm_shortlist_make(const char *model, const char *output,
                                      const dgm_shortlist_options *options,
                                      dgm_shortlist_report *report, dgm_error *error);

typedef struct dgm_shortlist_measure {
    size_t size;
    uint64_t lines, source_tokens, target_tokens;
    double mean;    // candidates per sentence
    uint64_t most;  // of one sentence
    double more;    // continuations per target token, besides
    double recall;  // share of the target's tokens that are candidates of their sentence
    uint64_t whole; // lines whose target tokens all are
} dgm_shortlist_measure;

// What the model's shortlist gives for the lines of a text; target NULL: no recall.
DGM_API dgm_status dgm_shortlist_test(const char *model, const char *source, const char *target,
                                      dgm_shortlist_measure *measure, dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
