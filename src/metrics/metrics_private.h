// SPDX-License-Identifier: MIT
// Private to the metrics: the scratch memory of one, its n-grams (grams.c), and what bleu.c, chrf.c,
// bleu_tokenize.c and bootstrap.c offer each other.
#ifndef DGM_METRICS_METRICS_PRIVATE_H
#define DGM_METRICS_METRICS_PRIVATE_H

#include "metrics/metrics.h"

typedef struct dgm_units { // word numbers or code points of a text
    uint32_t *items;
    size_t count, cap;
} dgm_units;

struct dgm_metric {
    dgm_metric_options o;
    int width;
    struct dgm_gram *grams;
    size_t gram_cap; // power of two
    struct dgm_word_slot *words;
    size_t word_cap; // power of two
    uint32_t generation, stamp, next_unit;
    dgm_units hyp, ref;
    dgm_writer clean, lower, a, b; // text of the line at hand, step by step
    dgm_writer hyp_text;           // words of the hypothesis stay here while refs are read
};

// ---- grams.c -----------------------------------------------------------------------------------

// Forgets all words and n-grams at once: a new segment begins.
void dgm_grams_clear(dgm_metric *m);
// Puts the n-grams of the hypothesis (m->hyp) into the empty table.
dgm_status dgm_grams_add(dgm_metric *m, int order, dgm_error *err);
// Counts matches of the reference at hand (m->ref): matches[n] [order]. clip_best counts only what
// no earlier reference matched already (BLEU: the largest count over references).
void dgm_grams_match(dgm_metric *m, int order, bool clip_best, int64_t *matches);

static inline int64_t dgm_gram_count(size_t units_count, int n)
{
    return units_count >= (size_t)n ? (int64_t)(units_count - (size_t)n + 1) : 0;
}

dgm_text dgm_metric_view(const dgm_writer *w);
// Valid UTF-8, lower-cased if asked for; borrowed until the next call.
dgm_status dgm_metric_clean(dgm_metric *m, dgm_text line, dgm_text *out, dgm_error *err);
dgm_status dgm_units_push(dgm_units *u, uint32_t unit, dgm_error *err);
// Cuts a word into one or two parts.
typedef int (*dgm_word_split)(dgm_text word, dgm_text parts[2]);
// Words of `text` as units; split NULL: whole words. is_hyp: new words get numbers, and the text must
// outlive the segment.
dgm_status dgm_units_words(dgm_metric *m, dgm_text text, bool is_hyp, dgm_word_split split,
                           dgm_units *u, dgm_error *err);

// ---- bleu.c, chrf.c ----------------------------------------------------------------------------

dgm_status dgm_bleu_check(const dgm_metric_options *o, dgm_error *err);
int dgm_bleu_width(const dgm_metric_options *o);
dgm_status dgm_bleu_row(dgm_metric *m, dgm_text hyp, const dgm_text *refs, size_t ref_count,
                        int64_t *row, dgm_error *err);
void dgm_bleu_score(const dgm_metric_options *o, const int64_t *sum, dgm_metric_score *out);
dgm_status dgm_chrf_check(const dgm_metric_options *o, dgm_error *err);
int dgm_chrf_width(const dgm_metric_options *o);
dgm_status dgm_chrf_row(dgm_metric *m, dgm_text hyp, const dgm_text *refs, size_t ref_count,
                        int64_t *row, dgm_error *err);
double dgm_chrf_score(const dgm_metric_options *o, const int64_t *row);

// ---- bleu_tokenize.c ---------------------------------------------------------------------------

// Tokenises valid UTF-8. Replaces the content of a with the result, tokens separated by white space
// of any kind and amount; b is scratch.
dgm_status dgm_bleu_tokenize_raw(dgm_bleu_tokenizer t, dgm_text line, dgm_writer *a, dgm_writer *b,
                                 dgm_error *err);

const dgm_metric_options *dgm_metric_get_options(const dgm_metric *m);

// Takes the next run without white space (Python's str.split) off the front of *rest.
bool dgm_next_word(dgm_text *rest, dgm_text *word);

#endif
