// SPDX-License-Identifier: MIT
// BLEU and chrF as sacreBLEU computes them, and paired bootstrap resampling.
//
// A metric turns a segment (hypothesis and references) into a row of `width` counts; counts of
// many segments are added up and make one score. Keeping the rows makes resampling cheap: a
// bootstrap sample is a sum of rows.
//
//   BLEU  row: hyp length, closest ref length, matches[order], totals[order]    (order 4: 10)
//   chrF  row: {hyp, ref, match} for each character and then word order         (chrF2: 18)
//
// A dgm_metric owns scratch memory: one per thread.
#ifndef DGM_METRICS_METRICS_H
#define DGM_METRICS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "text/unicode.h"

typedef enum dgm_metric_kind {
    DGM_METRIC_BLEU = 1,
    DGM_METRIC_CHRF = 2,
} dgm_metric_kind;

typedef enum dgm_bleu_tokenizer {
    DGM_BLEU_13A = 0,
    DGM_BLEU_INTL,
    DGM_BLEU_CHAR,
    DGM_BLEU_ZH,
    DGM_BLEU_NONE,
} dgm_bleu_tokenizer;

typedef enum dgm_bleu_smooth {
    DGM_SMOOTH_EXP = 0,
    DGM_SMOOTH_FLOOR,
    DGM_SMOOTH_ADD_K,
    DGM_SMOOTH_NONE,
} dgm_bleu_smooth;

#define DGM_BLEU_ORDER_MAX 8
#define DGM_CHRF_CHAR_ORDER_MAX 12
#define DGM_CHRF_WORD_ORDER_MAX 4
#define DGM_METRIC_WIDTH_MAX 48

typedef struct dgm_metric_options {
    dgm_metric_kind kind;
    bool lowercase; // default false
    // BLEU
    dgm_bleu_tokenizer tokenizer; // default 13a
    dgm_bleu_smooth smooth;       // default exp
    double smooth_value;          // < 0 (default): 0.1 for floor, 1 for add-k
    bool effective_order;         // default false; for sentence scores
    int max_order;                // default 4
    // chrF
    int char_order;  // default 6
    int word_order;  // default 0; 2 is chrF++
    double beta;     // default 2
    bool whitespace; // default false: characters without white space
} dgm_metric_options;

void dgm_metric_options_default(dgm_metric_options *o, dgm_metric_kind kind);
// "13a", "intl", "char", "zh", "none"; false when unknown. And back.
bool dgm_bleu_tokenizer_of(const char *name, dgm_bleu_tokenizer *out);
const char *dgm_bleu_tokenizer_name(dgm_bleu_tokenizer t);
bool dgm_bleu_smooth_of(const char *name, dgm_bleu_smooth *out); // "exp", "floor", "add-k", "none"
const char *dgm_bleu_smooth_name(dgm_bleu_smooth s);

typedef struct dgm_metric dgm_metric;

dgm_status dgm_metric_open(dgm_metric **m, const dgm_metric_options *o, dgm_error *err);
void dgm_metric_close(dgm_metric **m); // sets *m to NULL; accepts NULL inside
int dgm_metric_width(const dgm_metric *m);

// Row of one segment: row [width]. A reference whose data is NULL does not exist; at least one
// must. Invalid UTF-8 counts as U+FFFD.
dgm_status dgm_metric_segment(dgm_metric *m, dgm_text hyp, const dgm_text *refs, size_t ref_count,
                              int64_t *row, dgm_error *err);
// Rows of a corpus: refs [ref_count][count] (refs[r] is the r-th reference file), rows
// [count][width].
dgm_status dgm_metric_corpus(dgm_metric *m, const dgm_text *hyps, size_t count,
                             const dgm_text *const *refs, size_t ref_count, int64_t *rows,
                             dgm_error *err);
void dgm_metric_sum(const dgm_metric *m, const int64_t *rows, size_t count, int64_t *sum);

typedef struct dgm_metric_score {
    double score;                          // 0 to 100
    double brevity;                        // BLEU: brevity penalty
    double precisions[DGM_BLEU_ORDER_MAX]; // BLEU: percent
    int64_t hyp_length, ref_length;        // BLEU
} dgm_metric_score;

// Score of one row or of a sum of rows.
void dgm_metric_score_of(const dgm_metric *m, const int64_t *sum, dgm_metric_score *out);

// sacreBLEU's signature without its version: "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp".
// ref_count 0 writes nrefs:var. And the name: "BLEU", "chrF2", "chrF2++".
void dgm_metric_signature(const dgm_metric *m, size_t ref_count, char *out, size_t size);
void dgm_metric_name(const dgm_metric *m, char *out, size_t size);

// Appends the line as BLEU's tokeniser sees it (lower-casing not applied), one space between
// tokens.
dgm_status dgm_bleu_tokenize(dgm_bleu_tokenizer t, dgm_text line, dgm_writer *out, dgm_error *err);

// ---- paired bootstrap ----------------------------------------------------------------------
typedef struct dgm_bootstrap {
    double score, base_score; // of the whole corpus
    double mean, half;        // 95 % interval of the system: mean +- half
    double base_mean, base_half;
    double p;    // of the observed |difference| under "no difference"
    double wins; // share of samples in which the system beats the baseline
} dgm_bootstrap;

// Samples segments with replacement `samples` times (at least 1; 1,000 is usual), the same segments
// for both systems. base NULL: the interval of the system alone. Deterministic in seed.
dgm_status dgm_metric_bootstrap(const dgm_metric *m, const int64_t *rows, const int64_t *base,
                                size_t count, int samples, uint64_t seed, dgm_bootstrap *out,
                                dgm_error *err);

// How much lower than the baseline's a score is, by the same samples.
typedef struct dgm_metric_loss {
    double loss;      // base - score, of the whole corpus
    double low, high; // 95 % interval
    double within;    // share of samples in which it is at most `budget`
} dgm_metric_loss;

dgm_status dgm_metric_compare(const dgm_metric *m, const int64_t *rows, const int64_t *base, size_t count, int samples,
                              uint64_t seed, double budget, dgm_metric_loss *out, dgm_error *err);

#endif
