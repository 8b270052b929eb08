// SPDX-License-Identifier: MIT
// The nearest centroid of a step's rows while translating. Learning, which has thousands of rows,
// uses nearest.h.
#ifndef DGM_VOCABSEL_CLOSEST_H
#define DGM_VOCABSEL_CLOSEST_H

#include "model/model.h"

typedef struct dgm_closest dgm_closest;

// centroids: f16 [count, width], finite; borrowed, a few rows of them are read at every step.
// Immutable, shared by all threads.
dgm_status dgm_closest_open(dgm_closest **c, dgm_backend *b, const dgm_tensor *centroids,
                            dgm_error *err);
void dgm_closest_close(dgm_closest **c); // sets NULL; accepts NULL inside
size_t dgm_closest_bytes(const dgm_closest *c);

// A worker's memory, for up to `rows` rows.
typedef struct dgm_closest_work {
    dgm_terms *terms;  // [rows]
    float *rows;       // [rows, width]
    float *score;      // [rows, DGM_CLOSEST_PICKED]
    int32_t *picked;   // [rows, DGM_CLOSEST_PICKED]
    int32_t *centroid; // [rows]: the answer. The lowest of equals; 0 for a row that is no number
} dgm_closest_work;

enum { DGM_CLOSEST_PICKED = 32 };

bool dgm_closest_work_open(dgm_closest_work *w, const dgm_closest *c, int rows); // false: no memory
void dgm_closest_work_close(dgm_closest_work *w); // accepts all zero and half-built

// x has dgm_rank_bytes for these rows and the centroids left.
void dgm_closest_find(const dgm_closest *c, dgm_exec *x, dgm_mat hidden, dgm_closest_work *w);

#endif
