// SPDX-License-Identifier: MIT
// k-means over half-precision vectors: k-means++ start, Lloyd iterations, many threads, one result
// whatever their number.
#ifndef DGM_TOOLS_KMEANS_H
#define DGM_TOOLS_KMEANS_H

#include "model/model.h"
#include "base/threads.h"
#include "tools/nearest.h"

typedef struct dgm_kmeans {
    dgm_backend *backend;
    dgm_pool *pool;
    const uint16_t *vectors; // f16 [count, width], finite
    size_t count;            // at least `centroids`
    int width, centroids, iterations;
    uint64_t seed;
    // Other than 0 stops: DGM_ERR_CANCELLED. NULL: nobody asks.
    int (*tick)(void *cookie, double share);
    void *cookie;
} dgm_kmeans;

// out [centroids, width]. loss [iterations + 1] or NULL: mean squared distance to the nearest
// centroid before each iteration and at the end; repeats the last one where nothing moved any more.
dgm_status dgm_kmeans_run(const dgm_kmeans *k, float *out, double *loss, dgm_error *err);

// Workers' memory for finding the nearest centroids of many vectors, so that a long file can be
// walked block by block. `most` centroids at most, `near` of them found; k is borrowed.
typedef struct dgm_kmeans_lanes dgm_kmeans_lanes;

dgm_status dgm_kmeans_lanes_open(dgm_kmeans_lanes **l, const dgm_kmeans *k, int most,
                                 int near, dgm_error *err);
void dgm_kmeans_lanes_close(dgm_kmeans_lanes **l); // sets NULL; accepts NULL inside
// found [count, near], the nearest first, -1 where there are fewer; distance [count] to the nearest,
// squared, or NULL. vectors: f16 [count, width].
void dgm_kmeans_find(dgm_kmeans_lanes *l, const dgm_nearest *nearest, const uint16_t *vectors,
                     size_t count, int32_t *found, float *distance);

#endif
