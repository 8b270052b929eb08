// SPDX-License-Identifier: MIT
// Minimum error rate training (Och 2003): weights under which the best hypotheses of n-best lists
// have the highest score as a whole.
//
// Along a line w + gamma d every hypothesis' score is a straight line in gamma, so which one is
// the best of its list changes only where lines of the upper envelope cross. All lists' crossings,
// sorted, cut the line into intervals on which nothing changes; the metric is computed once for
// each, from sums of counts that only change by two hypotheses at a crossing. The exact optimum of
// the line is the middle of the best interval.
//
// A search goes over lines in turn (axes and random directions) until none of them gains, from
// several starting points. It is deterministic in its seed, whatever the number of threads.
#ifndef DGM_PHRASE_MERT_H
#define DGM_PHRASE_MERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/threads.h"
#include "text/metrics.h"

enum { DGM_MERT_FEATURES_MAX = 32 };

typedef struct dgm_mert_set dgm_mert_set; // the lists

// metric: gives rows their score; borrowed, must outlive the set.
dgm_status dgm_mert_set_open(dgm_mert_set **s, size_t sentences, int features,
                             const dgm_metric *metric, dgm_error *err);
void dgm_mert_set_close(dgm_mert_set **s); // sets *s to NULL; accepts NULL inside
// A hypothesis of a sentence; row [width of the metric] are its counts. One with the same features
// and counts is not added again. Different sentences may be added to by different threads.
dgm_status dgm_mert_set_add(dgm_mert_set *s, size_t sentence, const double *features,
                            const int64_t *row, dgm_error *err);
uint64_t dgm_mert_set_count(const dgm_mert_set *s); // hypotheses
// The metric's score of the best hypotheses under weights (ties: the one added first).
double dgm_mert_set_score(const dgm_mert_set *s, const double *weights);

typedef struct dgm_mert_params {
    const bool *fixed;    // [features] weights that stay, or NULL
    const bool *negative; // [features] starting points may be negative, or NULL: all
    int restarts;         // random starting points beside the given weights
    int directions;       // random directions beside the axes
    uint64_t seed;
    dgm_pool *pool; // NULL: one thread
} dgm_mert_params;

// Improves weights [features]; *score is what they reach on the lists.
dgm_status dgm_mert_search(const dgm_mert_set *s, const dgm_mert_params *p, double *weights,
                           double *score, dgm_error *err);

// One line alone: the best step, at most 20 either way, from weights along a direction, and its
// score.
dgm_status dgm_mert_line(const dgm_mert_set *s, const double *weights, const double *direction,
                         double *step, double *score, dgm_error *err);

#endif
