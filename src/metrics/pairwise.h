// SPDX-License-Identifier: MIT
// Sentence scores between all pairs of a few texts: what minimum Bayes risk decoding adds up.
//
// A metric's segment is counted from text every time (metrics.h). Here each text is cut into units
// (words as BLEU sees them, or the characters of chrF) and its n-grams are counted once; a pair is
// then a walk along two ascending lists. The rows are those of the metric, and so are the scores.
#ifndef DGM_METRICS_PAIRWISE_H
#define DGM_METRICS_PAIRWISE_H

#include "metrics/metrics.h"

typedef struct dgm_pairwise dgm_pairwise;

// Options as for dgm_metric_open. DGM_ERR_UNSUPPORTED for chrF with words.
dgm_status dgm_pairwise_open(dgm_pairwise **p, const dgm_metric_options *o, dgm_error *err);
void dgm_pairwise_close(dgm_pairwise **p); // sets NULL; accepts NULL inside
void dgm_pairwise_clear(dgm_pairwise *p);  // forgets the texts
// The next text, numbered from 0. Invalid UTF-8 counts as U+FFFD.
dgm_status dgm_pairwise_add(dgm_pairwise *p, dgm_text text, dgm_error *err);
// Scores, 0 to 100, of texts a and b with the other one as the reference.
void dgm_pairwise_score(const dgm_pairwise *p, size_t a, size_t b, double *of_a, double *of_b);

#endif
