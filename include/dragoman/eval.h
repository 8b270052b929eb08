// SPDX-License-Identifier: MIT
// Dragoman tools: quality of translations (BLEU, chrF) and choosing by it (minimum Bayes risk).
// Conventions as in tools.h.
#ifndef DRAGOMAN_EVAL_H
#define DRAGOMAN_EVAL_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"
#include "dragoman/evidence.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- evaluation -------------------------------------------------------------------------------

typedef struct dgm_eval_options {
    size_t size;
    const char *metric;   // "bleu", "chrf" or "chrf++"; default "bleu"
    const char *tokenize; // "13a", "intl", "char", "zh", "none"; NULL: "13a"
    const char *smooth;   // "exp", "floor", "add-k", "none"; NULL: "exp"
    double smooth_value;  // < 0: the usual one; default -1
    int lowercase;
    int max_order;              // of BLEU, default 4
    int char_order, word_order; // of chrF, default 6 and 0 (chrf++: 2)
    double beta;                // of chrF, default 2
    int samples;                // bootstrap samples, 0 (default): none
    uint64_t seed;              // default 12345
} dgm_eval_options;

DGM_API void dgm_eval_init(dgm_eval_options *options, size_t size);
static inline void dgm_eval_default(dgm_eval_options *options)
{
    dgm_eval_init(options, sizeof *options);
}

typedef struct dgm_eval_score {
    size_t size;
    double score;                   // 0 to 100
    double mean, half;              // with samples: 95 % interval, mean +- half
    double p, wins;                 // against the first system: p-value, share of samples won
    double brevity;                 // BLEU
    double precisions[8];           // BLEU, percent
    int64_t hyp_length, ref_length; // BLEU
    // With samples: the score less that of the first system, and its 95 % interval.
    double difference, difference_low, difference_high;
} dgm_eval_score;

// Scores every system against the references, all of `lines` lines: systems[s][i], refs[r][i].
// scores [system_count], each with its size. sentences: NULL, or [system_count * lines] for the score of each line.
DGM_API dgm_status dgm_evaluate(const dgm_eval_options *options, const dgm_line *const *systems,
                                size_t system_count, const dgm_line *const *refs, size_t ref_count,
                                size_t lines, dgm_eval_score *scores, double *sentences,
                                dgm_error *error);
// "BLEU" and "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:..."; each buffer may be NULL.
DGM_API dgm_status dgm_eval_describe(const dgm_eval_options *options, size_t ref_count, char *name,
                                     size_t name_size, char *signature, size_t signature_size,
                                     dgm_error *error);

// ---- minimum Bayes risk -----------------------------------------------------------------------

typedef struct dgm_mbr_options {
    size_t size;
    const char *utility;  // "bleu" or "chrf", of sentences. Default "bleu"
    const char *tokenize; // of BLEU: "13a", "intl", "char", "zh", "none". NULL: "13a"
    double scale;         // of the scores before they become probabilities. Default 1
} dgm_mbr_options;

DGM_API void dgm_mbr_init(dgm_mbr_options *options, size_t size);
static inline void dgm_mbr_default(dgm_mbr_options *options)
{
    dgm_mbr_init(options, sizeof *options);
}

typedef struct dgm_mbr dgm_mbr; // of one thread
DGM_API dgm_status dgm_mbr_open(dgm_mbr **mbr, const dgm_mbr_options *options, dgm_error *error);
// The translation of an n-best list whose expected score against the whole list is highest, the
// first of equal ones. gains (NULL: not wanted) [count]: these scores; borrowed until the next call.
DGM_API dgm_status dgm_mbr_choose(dgm_mbr *mbr, const dgm_evidence *list, size_t *best,
                                  const double **gains, dgm_error *error);
DGM_API void dgm_mbr_close(dgm_mbr **mbr);

#ifdef __cplusplus
}
#endif
#endif
