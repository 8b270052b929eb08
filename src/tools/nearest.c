// SPDX-License-Identifier: MIT
// The nearest of many centroids; see nearest.h.
//
// The nearest centroid of h has the least |C|^2 - 2 h.C, that is the largest 2 h.C - |C|^2: an
// output layer with the rows 2 C and the biases -|C|^2, whose best output rank finds (no softmax,
// k = 1; ties go to the lower number). So the search is one product in f32 with the rows of all
// sentences, and each row's answer depends on that row alone.
#include "tools/nearest.h"

#include "backend/ops.h"
#include "base/mem.h"

struct dgm_nearest {
    dgm_backend *backend;
    dgm_tensor doubled; // the rows 2 C while they are packed
    dgm_linear *layer;  // [count, width]
    int count;
};

void dgm_nearest_close(dgm_nearest **nearest)
{
    dgm_nearest *n = *nearest;
    if (!n) return;
    if (n->layer) dgm_linear_free(n->backend, &n->layer);
    dgm_free(n);
    *nearest = NULL;
}

static dgm_status pack(dgm_nearest *n, const float *centroids, int width, dgm_error *err)
{
    const size_t count = (size_t)n->count, size = (size_t)width;
    float *rows = dgm_malloc(count * size * sizeof *rows), *bias = dgm_malloc(count * sizeof *bias);
    dgm_status st = rows && bias ? DGM_OK : dgm_no_memory(err);
    for (size_t i = 0; st == DGM_OK && i < count; i++) {
        double length = 0;
        for (size_t j = i * size; j < (i + 1) * size; j++) {
            length += (double)centroids[j] * (double)centroids[j];
            rows[j] = 2 * centroids[j];
        }
        bias[i] = (float)-length;
    }
    n->doubled = (dgm_tensor){.name = "centroids",
                              .type = DGM_TYPE_F32,
                              .n_dims = 2,
                              .shape = {n->count, width},
                              .rows = n->count,
                              .cols = width,
                              .data = rows,
                              .bytes = count * size * sizeof *rows};
    const dgm_linear_part part = {.weight = &n->doubled, .bias = bias};
    if (st == DGM_OK)
        st = dgm_linear_load(n->backend, &part, 1, DGM_PRECISION_F32, &n->layer, err);
    n->doubled.data = NULL;
    dgm_free(rows);
    dgm_free(bias);
    return st;
}

dgm_status dgm_nearest_open(dgm_nearest **nearest, dgm_backend *b, const float *centroids,
                            int count, int width, dgm_error *err)
{
    dgm_nearest *n = *nearest = dgm_calloc(1, sizeof *n);
    if (!n) return dgm_no_memory(err);
    n->backend = b;
    n->count = count;
    dgm_status st = pack(n, centroids, width, err);
    if (st != DGM_OK) dgm_nearest_close(nearest);
    return st;
}

size_t dgm_nearest_bytes(const dgm_nearest *n)
{
    return dgm_linear_bytes(n->layer);
}

int dgm_nearest_count(const dgm_nearest *n)
{
    return n->count;
}

void dgm_nearest_find(const dgm_nearest *n, dgm_exec *x, dgm_mat hidden, int near,
                      dgm_nearest_work *w)
{
    const dgm_rank_part part = {.out = n->layer, .hidden = hidden, .weight = 1};
    for (int i = 0; i < hidden.rows; i++) w->terms[i] = (dgm_terms){.lambda = 1};
    const dgm_rank rank = {.parts = &part,
                           .part_count = 1,
                           .rows = hidden.rows,
                           .k = near,
                           .terms = w->terms,
                           .score = w->score,
                           .token = w->centroid};
    dgm_op_rank(x, &rank);
    for (int i = 0; i < hidden.rows; i++)
        if (w->centroid[i * near] < 0) w->centroid[i * near] = 0;
}
