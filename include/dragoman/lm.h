// SPDX-License-Identifier: MIT
// Dragoman tools: n-gram language models. Conventions as in tools.h.
#ifndef DRAGOMAN_LM_H
#define DRAGOMAN_LM_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DGM_NGRAM_MAX = 5 }; // highest order

typedef struct dgm_ngram_options {
    size_t size;
    int order; // 1 to DGM_NGRAM_MAX. Default 5
    // n-grams of order i + 1 that were seen this often or less are left out. prune[0] is 0 and none
    // is smaller than the one before it. Default 0
    uint64_t prune[DGM_NGRAM_MAX];
    int discount_fallback; // fixed discounts where the text is too small to estimate them. Default 0
    uint64_t memory;       // bytes for sorting; what does not fit goes to disk. Default 1 GiB
    const char *folder;    // for that. NULL: $TMPDIR, else /tmp
    const char *subwords;  // count the target tokens of this model file. NULL: words between blanks
    dgm_progress progress;
    // Takes the ARPA text where no file is named; other than 0 stops the work.
    int (*write)(void *cookie, const char *text, size_t size);
    void *write_cookie;
} dgm_ngram_options;

DGM_API void dgm_ngram_init(dgm_ngram_options *options, size_t size);
static inline void dgm_ngram_default(dgm_ngram_options *options)
{
    dgm_ngram_init(options, sizeof *options);
}

// Index n: of order n.
typedef struct dgm_ngram_report {
    size_t size;
    uint64_t lines, empty, tokens, types; // tokens without ends of lines; types with <unk>, <s>, </s>
    uint64_t seen[DGM_NGRAM_MAX + 1], kept[DGM_NGRAM_MAX + 1];
    double discount[DGM_NGRAM_MAX + 1][4]; // [1], [2], [3]: for counts of 1, 2, 3 and more
    int fell_back[DGM_NGRAM_MAX + 1];      // they are the fixed ones
    uint64_t spilled;                      // bytes that went to disk
} dgm_ngram_report;

// Counts the n-grams of texts (plain or gzip) and writes an interpolated modified Kneser-Ney model
// as ARPA, compressed if the name ends in .gz. output NULL: options->write.
DGM_API dgm_status dgm_ngram_train(const char *const *texts, size_t count, const char *output,
                                   const dgm_ngram_options *options, dgm_ngram_report *report,
                                   dgm_error *error);
// Reads a model (ARPA or compact) and writes it: as ARPA if the name ends in .arpa or .gz, else
// compact, to be mapped. bits 0: numbers as they are; 2 to 16: those of order 2 and above are
// rounded to 2^bits values, from an ARPA file only.
DGM_API dgm_status dgm_ngram_convert(const char *input, const char *output, int bits,
                                     dgm_error *error);

typedef struct dgm_ngram dgm_ngram; // a model that was read; threads may share it

DGM_API dgm_status dgm_ngram_open(dgm_ngram **lm, const char *path, const char *subwords,
                                  dgm_error *error);
DGM_API void dgm_ngram_close(dgm_ngram **lm);
DGM_API int dgm_ngram_order(const dgm_ngram *lm);
// How far the sum of probabilities over all words is from 1, at most, behind `contexts` contexts
// drawn from the model; *mean (may be NULL): on average.
DGM_API double dgm_ngram_check(const dgm_ngram *lm, uint64_t contexts, uint64_t seed, double *mean);

// One word of a line: log10 p, the length of the n-gram it was found in, and whether the model has
// it. The last one of a line is "</s>". Borrowed for the call.
typedef struct dgm_ngram_word {
    size_t size;
    dgm_line word;
    double log10;
    int matched, unknown;
} dgm_ngram_word;

typedef struct dgm_ngram_score {
    size_t size;
    uint64_t lines, empty; // empty ones count for nothing
    uint64_t tokens;       // with ends of lines
    uint64_t unknown;
    double log10, log10_unknown; // sums over all tokens and over unknown ones alone
} dgm_ngram_score;

// Adds a line to the score, which begins as {.size = sizeof score}. each (NULL: not wanted) hears of
// every word; other than 0 stops.
DGM_API dgm_status dgm_ngram_line(const dgm_ngram *lm, dgm_line line, dgm_ngram_score *score,
                                  int (*each)(void *cookie, const dgm_ngram_word *word),
                                  void *cookie, dgm_error *error);
// 10^(-log10 / tokens); with `known` over known words alone. 0 if there are none, or without a size.
DGM_API double dgm_ngram_perplexity(const dgm_ngram_score *score, int known);

#ifdef __cplusplus
}
#endif
#endif
