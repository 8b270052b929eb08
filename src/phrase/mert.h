// SPDX-License-Identifier: MIT
// Minimum error rate training (Och 2003): weights under which the best hypotheses of n-best lists,
// or the best paths of graphs (Macherey et al. 2008), have the highest score as a whole.
//
// Along a line w + gamma d every hypothesis' score is a straight line in gamma, so which one is
// the best of its list changes only where lines of the upper envelope cross. All lists' crossings,
// sorted, cut the line into intervals on which nothing changes; the metric is computed once for
// each, from sums of counts that only change by two hypotheses at a crossing. The exact optimum of
// the line is the middle of the best interval. In a graph the envelope is that of all its paths,
// found node by node (mert_graph.c).
//
// A search goes over lines in turn (axes and random directions) until none of them gains, from
// several starting points. What it finds is exact for the hypotheses that are there; far from the
// weights they were decoded with, others would win, so a search can be held near these.
// It is deterministic in its seed, whatever the number of threads.
#ifndef DGM_PHRASE_MERT_H
#define DGM_PHRASE_MERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/threads.h"
#include "metrics/metrics.h"

enum { DGM_MERT_FEATURES_MAX = 32 };

typedef struct dgm_mert_set dgm_mert_set; // the lists, or graphs

// metric: gives rows their score; borrowed, must outlive the set.
dgm_status dgm_mert_set_open(dgm_mert_set **s, size_t sentences, int features,
                             const dgm_metric *metric, dgm_error *err);
void dgm_mert_set_close(dgm_mert_set **s); // sets *s to NULL; accepts NULL inside
// A hypothesis of a sentence; row [width of the metric] are its counts. One with the same features
// and counts is not added again. Different sentences may be added to by different threads.
dgm_status dgm_mert_set_add(dgm_mert_set *s, size_t sentence, const double *features,
                            const int64_t *row, dgm_error *err);

typedef struct dgm_mert_arc {
    int from, to;
    const dgm_text *words; // [count]
    int count;
    const double *features; // [features] what the arc adds
} dgm_mert_arc;

// Counts of a text, words [count], of a sentence: row [width of the metric]. Never called by two
// threads at once.
typedef dgm_status (*dgm_mert_rate)(void *cookie, size_t sentence, const dgm_text *words, int count,
                                    int64_t *row, dgm_error *err);
// Before the first graph.
void dgm_mert_set_rate(dgm_mert_set *s, dgm_mert_rate rate, void *cookie);
// A graph instead of a list, its paths from node 0 to the last one being hypotheses; arcs lead to
// higher nodes and are sorted by them. Several graphs of a sentence add up; one that is there
// already is not added again. A set that ran out of memory can only be closed. Different sentences
// may be added to by different threads.
dgm_status dgm_mert_set_add_graph(dgm_mert_set *s, size_t sentence, const dgm_mert_arc *arcs,
                                  size_t count, int nodes, dgm_error *err);

uint64_t dgm_mert_set_count(const dgm_mert_set *s); // hypotheses, and arcs of graphs
// The metric's score of the best hypotheses under weights (ties: the one added first).
dgm_status dgm_mert_set_score(const dgm_mert_set *s, const double *weights, double *score,
                              dgm_error *err);

typedef struct dgm_mert_params {
    const bool *fixed;    // [features] weights that stay, or NULL
    const bool *negative; // [features] starting points may be negative, or NULL: all
    // Weights may move this far from the given ones: the sum of differences of what is tuned, its
    // absolute values adding up to 1. Starting points are drawn there. 0: anywhere
    double radius;
    int restarts;         // random starting points beside the given weights
    int directions;       // random directions beside the axes
    uint64_t seed;
    dgm_pool *pool; // NULL: one thread
} dgm_mert_params;

// Improves weights [features]; *score is what they reach on the lists or graphs.
dgm_status dgm_mert_search(const dgm_mert_set *s, const dgm_mert_params *p, double *weights,
                           double *score, dgm_error *err);

// One line alone: the best step, at most 20 either way, from weights along a direction, and its
// score.
dgm_status dgm_mert_line(const dgm_mert_set *s, const double *weights, const double *direction,
                         double *step, double *score, dgm_error *err);

#endif
