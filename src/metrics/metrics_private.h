// SPDX-License-Identifier: MIT
// Private to the metrics: what bleu_tokenize.c, metrics.c and bootstrap.c share.
#ifndef DGM_METRICS_METRICS_PRIVATE_H
#define DGM_METRICS_METRICS_PRIVATE_H

#include "metrics/metrics.h"

// Tokenises valid UTF-8. Replaces the content of a with the result, tokens separated by white space
// of any kind and amount; b is scratch.
dgm_status dgm_bleu_tokenize_raw(dgm_bleu_tokenizer t, dgm_text line, dgm_writer *a, dgm_writer *b,
                                 dgm_error *err);

const dgm_metric_options *dgm_metric_get_options(const dgm_metric *m);

// Takes the next run without white space (Python's str.split) off the front of *rest.
bool dgm_next_word(dgm_text *rest, dgm_text *word);

#endif
