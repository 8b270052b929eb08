// SPDX-License-Identifier: MIT
// Dragoman tools: words, and which word stands for which. Conventions as in tools.h.
#ifndef DRAGOMAN_ALIGN_H
#define DRAGOMAN_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- words ------------------------------------------------------------------------------------

// A line as words between single spaces by the conventions of Moses, or with undo the words as text
// again. language: "en", "de", "fr", "es", "it"; others get generic rules. *text: dgm_string_free.
// Invalid UTF-8 is DGM_ERR_TEXT.
DGM_API dgm_status dgm_tokenize(const char *language, int undo, dgm_line line, char **text,
                                dgm_error *error);

// The same with the tokens that sacremoses writes, the Python port of Moses' scripts: what models of
// other systems were trained on. language: en, de, fr, es, it, nl, pt, pl, cs, ru have abbreviations of
// their own, others those of English. options: any of these, combined; with undo none of them matters.
enum {
    DGM_MOSES_TOKENS_AGGRESSIVE = 1,  // hyphens between letters or digits become "@-@"
    DGM_MOSES_TOKENS_ESCAPE = 2,      // & | < > ' " [ ] as entities
    DGM_MOSES_TOKENS_PUNCTUATION = 4, // quotes, dashes and spaces in few forms first
    DGM_MOSES_TOKENS_UNICODE = 8      // with it, full-width punctuation and control characters too
};
DGM_API dgm_status dgm_tokenize_moses(const char *language, unsigned options, int undo, dgm_line line,
                                      char **text, dgm_error *error);

// ---- word alignment ---------------------------------------------------------------------------

enum { DGM_ALIGN_ITERATIONS_MAX = 100 };

typedef struct dgm_align_options {
    size_t size;
    int model;      // 1: IBM model 1; 2: with positions near the diagonal. Default 2
    int iterations; // rounds of training per direction, 1 to 100. Default 5
    int threads;    // 0: one per core. Default 0. The result does not depend on it
    int max_length; // pairs with more tokens on a side are left out, 1 to 1000. Default 200
    // "forward" (each target word has one source word), "backward", "intersect", "union",
    // "grow-diag", "grow-diag-final", "grow-diag-final-and". Default the last.
    const char *symmetrize;
    double p0;            // probability of no source word, model 2. Default 0.08
    double alpha;         // prior of variational Bayes; 0: maximum likelihood. Default 0.01
    double tension;       // towards the diagonal, model 2, 0.1 to 30: where it starts. Default 4
    int keep_tension;     // do not optimise it. Default 0
    const char *subwords; // align the tokens of this model file. NULL: words between spaces
    // Tables p(target | source) and p(source | target) from the links, as lines of
    // TARGET SOURCE PROBABILITY and SOURCE TARGET PROBABILITY; .gz is compressed. NULL: none.
    const char *lex_s2t, *lex_t2s;
    // Links made by hand for the last lines of the text, sure "i-j" and possible "i?j".
    const char *gold;
    dgm_progress progress;
    // Takes the output where no file is named; other than 0 stops the work.
    int (*write)(void *cookie, const char *text, size_t size);
    void *write_cookie;
} dgm_align_options;

DGM_API void dgm_align_init(dgm_align_options *options, size_t size);
static inline void dgm_align_default(dgm_align_options *options)
{
    dgm_align_init(options, sizeof *options);
}

// Index 0: the target explained by the source; 1: the other way.
typedef struct dgm_align_report {
    size_t size;
    uint64_t lines, pairs, empty, too_long; // lines = pairs + empty + too_long
    uint64_t source_tokens, target_tokens, source_types, target_types;
    uint64_t entries; // word pairs in a translation table
    int iterations;
    // Before each round: the log-likelihood, or its lower bound in variational Bayes (comparable
    // from the second round on). Never falls.
    double objective[2][DGM_ALIGN_ITERATIONS_MAX];
    double tension[2];
    uint64_t links;
    int has_gold;
    double error_rate, precision, recall; // against `gold`, 0 to 1
} dgm_align_report;

// Aligns two files line by line (plain or gzip) and writes Pharaoh text, "0-0 1-2", source first,
// one line for every line; it is empty for pairs that are left out. output NULL: options->write.
// options NULL: defaults, report NULL: not wanted.
DGM_API dgm_status dgm_align(const char *source, const char *target, const char *output,
                             const dgm_align_options *options, dgm_align_report *report,
                             dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
