// SPDX-License-Identifier: MIT
// Private to MERT: mert_set.c (what the sentences offer), mert_graph.c
// (graphs along a line), mert.c (lines and the search).
//
// A sentence has a list of hypotheses or a graph. Graphs of several rounds lie in one: they share
// the start, node 0, and have an end each. Arcs are sorted by the node they lead to, which is
// behind the one they come from.
#ifndef DGM_PHRASE_MERT_PRIVATE_H
#define DGM_PHRASE_MERT_PRIVATE_H

#include <pthread.h>

#include "base/words.h"
#include "phrase/mert.h"

#define DGM_MERT_REACH 20.0 // steps are never longer; weights add up to about 1

typedef struct dgm_mert_edge {
    int32_t from, to;
    uint32_t word, count; // words of it: word[word] ..
} dgm_mert_edge;

typedef struct dgm_mert_offer {
    float *feature; // of hypotheses, [count][features], or arcs, [edge_count][features]
    int32_t *row;   // [count][width] of hypotheses, or of texts that were asked for
    size_t count, feature_cap, row_cap;
    uint32_t *slot; // [slots] 0 = free, else hypothesis + 1
    size_t slots;
    dgm_mert_edge *edge; // a graph
    uint32_t *word;      // numbers in `words`
    int32_t *end;        // [end_count] nodes
    uint64_t *seen;      // [end_count] what identifies each of the graphs
    int32_t nodes;
    size_t edge_count, edge_cap, word_count, word_cap, end_count, end_cap, seen_cap;
    dgm_words words; // spellings
    dgm_words texts; // sequences of words that have a row
} dgm_mert_offer;

struct dgm_mert_set {
    dgm_mert_offer *offers; // [sentences]
    size_t sentences;
    int features, width;
    const dgm_metric *metric;
    dgm_mert_rate rate; // texts of paths get their counts here, under the lock
    void *cookie;
    pthread_mutex_t lock; // of rows and texts of all graphs
};

// A path of a graph, as the line it makes over a line of weights.
typedef struct dgm_mert_ray {
    double slope, value, from; // best between `from` and where the next one begins
    uint32_t edge, back;       // the last arc, and the ray in front of it
} dgm_mert_ray;

typedef struct dgm_mert_crossing {
    double at;
    uint32_t sentence, before, after; // rows of the scratch memory
} dgm_mert_crossing;

typedef struct dgm_mert_scratch {
    double low, high; // steps that are looked at
    double *value; // of all hypotheses and arcs under the weights, sentence by sentence
    double *slope; // of one sentence's, along the direction
    dgm_mert_crossing *crossings;
    int32_t *rows; // [row_count][width]
    size_t value_cap, slope_cap, crossing_cap, rows_cap, count, row_count;
    dgm_mert_ray *rays, *merged[2]; // of all nodes; of one
    size_t *first;                  // [nodes + 1] rays of a node
    size_t ray_cap, merged_cap[2], first_cap, word_cap;
    uint32_t *words; // of a path
} dgm_mert_scratch;

static inline double dgm_mert_dot(const float *f, const double *w, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++) sum += (double)f[k] * w[k];
    return sum;
}

// mert_set.c: the counts of the words of a path, in row [width]; any thread.
dgm_status dgm_mert_row_of(const dgm_mert_set *s, size_t sentence, const uint32_t *words,
                           size_t count, int32_t *row, dgm_error *err);

// mert_graph.c: the upper envelope of all paths along the direction, value [edge_count] of the
// arcs being set; calls segment for every path on it, from the left, with where it begins to be the
// best and its counts.
typedef dgm_status (*dgm_mert_segment)(void *cookie, double from, const int32_t *row,
                                     dgm_error *err);
dgm_status dgm_mert_envelope(const dgm_mert_set *s, size_t sentence, const double *value,
                             const double *direction, int axis, dgm_mert_scratch *x,
                             dgm_mert_segment segment, void *cookie, dgm_error *err);
// The counts of the best path under weights (ties: the arcs added first).
dgm_status dgm_mert_best_path(const dgm_mert_set *s, size_t sentence, const double *weights,
                              int32_t *row, dgm_error *err);

#endif
