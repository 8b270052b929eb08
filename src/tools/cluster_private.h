// SPDX-License-Identifier: MIT
// Private to tools/: what learning clusters (cluster.c), their lists (cluster_lists.c) and measuring
// (cluster_measure.c) share.
#ifndef DGM_TOOLS_CLUSTER_PRIVATE_H
#define DGM_TOOLS_CLUSTER_PRIVATE_H

#include "dragoman/tools.h"
#include "format/clusters.h"
#include "tools/kmeans.h"
#include "tools/record.h"

enum { DGM_CLUSTER_BLOCK = 8192, DGM_CLUSTER_NEAR_MAX = 8 };

// One block of clusters, learnt or measured.
typedef struct dgm_cluster_work {
    const dgm_cluster_options *o;
    const dgm_gguf *file; // the model, borrowed
    dgm_record record;
    dgm_backend *backend;
    dgm_pool *pool;
    dgm_kmeans k;
    uint16_t *sample; // [k.count, width]
    float *centroids; // [centroids, width], as stored
    uint16_t *halves; // the same
    uint64_t *bits;   // [centroids, words]
    size_t words;
    uint64_t *hits; // [centroids]
    float *weights; // [centroids, window]: of the tokens from `first` on
    int first, window;
    // a block of the file of vectors
    uint16_t *vectors;
    int32_t *predictions, *found;
    dgm_clusters out;
    char source[64], target[64]; // its languages, unless the options say others
    dgm_cluster_report report;
} dgm_cluster_work;

dgm_status dgm_cluster_check(const dgm_cluster_options *o, dgm_error *err);
// Device, threads and buffers for walking over the vectors.
dgm_status dgm_cluster_work_open(dgm_cluster_work *w, dgm_error *err);
void dgm_cluster_work_settle(dgm_cluster_work *w); // frees all but what is stored: `out`, `report`
void dgm_cluster_work_close(dgm_cluster_work *w);
// The block of a file for the languages that were translated, or that the options say; -1: none.
int dgm_cluster_find(const dgm_cluster_work *w, const dgm_gguf *g);

// What becomes of a block of vectors whose nearest centroids are in w->found.
typedef void (*dgm_cluster_taker)(dgm_cluster_work *w, size_t count, void *cookie);
// Every recorded vector, at w->centroids; `near` of them are found.
dgm_status dgm_cluster_walk(dgm_cluster_work *w, int centroids, int near, dgm_cluster_taker take,
                            void *cookie, dgm_error *err);

// The block of the vectors in w->record, into w->out and w->report.
dgm_status dgm_cluster_learn(dgm_cluster_work *w, dgm_error *err);
// Writes the model with the blocks of `count` works, and fills in what they take.
dgm_status dgm_cluster_store(dgm_cluster_work *works, int count, const dgm_gguf *file,
                             const char *output, dgm_error *err);
dgm_status dgm_cluster_output(const char *output, dgm_error *err); // can it be written?
// Translates a text and records its vectors.
dgm_status dgm_cluster_record(dgm_cluster_work *w, const char *model, const char *text,
                              dgm_error *err);

// cluster_lists.c: w->out from all vectors at w->centroids, and what the report says of it.
dgm_status dgm_cluster_lists(dgm_cluster_work *w, dgm_error *err);

#endif
