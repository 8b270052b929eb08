// SPDX-License-Identifier: MIT
// The nearest of many centroids, for many rows at once.
#ifndef DGM_TOOLS_NEAREST_H
#define DGM_TOOLS_NEAREST_H

#include "model/model.h"

typedef struct dgm_nearest dgm_nearest;

// centroids [count, width] are copied. Immutable, shared by all threads.
dgm_status dgm_nearest_open(dgm_nearest **n, dgm_backend *b, const float *centroids, int count,
                            int width, dgm_error *err);
void dgm_nearest_close(dgm_nearest **n); // sets NULL; accepts NULL inside
size_t dgm_nearest_bytes(const dgm_nearest *n);
int dgm_nearest_count(const dgm_nearest *n);

// A row's neighbours, the nearest first: score = 2 h.C - |C|^2, so that the distance is
// |h|^2 - score.
typedef struct dgm_nearest_work {
    dgm_terms *terms;   // [rows]
    float *score;       // [rows, near]
    int32_t *centroid;  // [rows, near]: the lowest of equals first; -1 where there are fewer, but the first
                        // is 0 for a row that is no number
} dgm_nearest_work;

// x has dgm_rank_bytes for these rows and `count` outputs left.
void dgm_nearest_find(const dgm_nearest *n, dgm_exec *x, dgm_mat hidden, int near,
                      dgm_nearest_work *w);

#endif
