// SPDX-License-Identifier: MIT
// k-means; see kmeans.h.
//
// Start: k-means++, on a subsample of START points per centroid (the sample itself where it is
// smaller): each further centroid is a point drawn with a probability proportional to its squared
// distance to those there are. The subsample is packed as the weights of layers; one product with
// the new centroid gives all its distances.
//
// Iteration: the nearest centroid of every point (nearest.h, ROWS at a time, whichever thread is
// free), then every centroid becomes the mean of its points. Threads share out the centroids, and
// each adds up its points in the order of their numbers, in double precision: the result depends on
// the seed alone. A centroid that nobody is near to moves to the point that is farthest from its
// own; the next one to the next such point.
//
// BLAS would multiply as fast, but chooses its order of summation by the number of rows; ours is
// the same for every row.
#include "tools/kmeans.h"

#include <math.h>
#include <string.h>

#include "backend/ops.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"

enum { ROWS = 256, START = 32, LAYER = 4096 };

static dgm_tensor table_of(const uint16_t *vectors, size_t count, int width)
{
    return (dgm_tensor){.name = "vectors",
                        .type = DGM_TYPE_F16,
                        .n_dims = 2,
                        .shape = {(int)count, width},
                        .rows = (int)count,
                        .cols = width,
                        .data = vectors,
                        .bytes = count * (size_t)width * sizeof *vectors};
}

static double length_of(const uint16_t *v, int width)
{
    double sum = 0;
    for (int j = 0; j < width; j++) {
        const double x = (double)dgm_half_to_float(v[j]);
        sum += x * x;
    }
    return sum;
}

// ---- nearest centroids -------------------------------------------------------------------------

typedef struct lane {
    dgm_exec *exec;
    dgm_mat rows; // [ROWS, width]
    dgm_nearest_work work;
    float *real; // [ROWS, width]: vectors on their way to rows
} lane;

struct dgm_kmeans_lanes {
    const dgm_kmeans *k;
    int count, near;
    lane *items;
    // of one call
    const dgm_nearest *nearest;
    const uint16_t *vectors;
    size_t size;
    int32_t *found;
    float *distance;
};

void dgm_kmeans_lanes_close(dgm_kmeans_lanes **lanes)
{
    dgm_kmeans_lanes *l = *lanes;
    if (!l) return;
    for (int i = 0; l->items && i < l->count; i++) {
        dgm_exec_close(&l->items[i].exec);
        dgm_free(l->items[i].work.terms);
        dgm_free(l->items[i].work.score);
        dgm_free(l->items[i].work.centroid);
        dgm_free(l->items[i].real);
    }
    dgm_free(l->items);
    dgm_free(l);
    *lanes = NULL;
}

static dgm_status open_lane(lane *x, const dgm_kmeans *k, int most, int near, dgm_error *err)
{
    const dgm_bytes own = {.host = 1 << 16,
                           .device = (1 << 20) + dgm_exec_mat_bytes(k->backend, ROWS, k->width) +
                                     dgm_exec_mat_bytes(k->backend, 2, k->width) +
                                     dgm_exec_mat_bytes(k->backend, 1, LAYER)};
    const dgm_bytes bytes = dgm_bytes_add(own, dgm_rank_bytes(k->backend, ROWS, 1, most));
    DGM_TRY(dgm_exec_open(k->backend, bytes, &x->exec, err));
    dgm_exec_large(x->exec);
    x->rows = dgm_exec_mat(x->exec, ROWS, k->width);
    x->work.terms = dgm_calloc(ROWS, sizeof *x->work.terms);
    x->work.score = dgm_calloc(ROWS * (size_t)near, sizeof *x->work.score);
    x->work.centroid = dgm_calloc(ROWS * (size_t)near, sizeof *x->work.centroid);
    x->real = dgm_malloc(ROWS * (size_t)k->width * sizeof *x->real);
    const bool all = x->rows.data && x->work.terms && x->work.score && x->work.centroid && x->real;
    return all ? DGM_OK : dgm_no_memory(err);
}

dgm_status dgm_kmeans_lanes_open(dgm_kmeans_lanes **lanes, const dgm_kmeans *k, int most,
                                 int near, dgm_error *err)
{
    dgm_kmeans_lanes *l = *lanes = dgm_calloc(1, sizeof *l);
    if (!l) return dgm_no_memory(err);
    l->k = k;
    l->near = near;
    l->count = dgm_pool_threads(k->pool);
    l->items = dgm_calloc((size_t)l->count, sizeof *l->items);
    dgm_status st = l->items ? DGM_OK : dgm_no_memory(err);
    for (int i = 0; st == DGM_OK && i < l->count; i++)
        st = open_lane(&l->items[i], k, most, near, err);
    if (st != DGM_OK) dgm_kmeans_lanes_close(lanes);
    return st;
}

// Stored vectors as rows of y.
static void write_vectors(lane *x, dgm_mat y, const uint16_t *vectors)
{
    const size_t n = (size_t)y.rows * (size_t)y.cols;
    for (size_t i = 0; i < n; i++) x->real[i] = dgm_half_to_float(vectors[i]);
    dgm_op_write(x->exec, y, x->real);
}

static void find_block(void *arg, int worker, int item)
{
    dgm_kmeans_lanes *l = arg;
    lane *x = &l->items[worker];
    const size_t first = (size_t)item * ROWS, width = (size_t)l->k->width, near = (size_t)l->near;
    const int n = l->size - first < ROWS ? (int)(l->size - first) : ROWS;
    const dgm_mat rows = dgm_mat_rows(x->rows, 0, n);
    write_vectors(x, rows, l->vectors + first * width);
    dgm_nearest_find(l->nearest, x->exec, rows, l->near, &x->work);
    memcpy(l->found + first * near, x->work.centroid, (size_t)n * near * sizeof *l->found);
    for (int i = 0; l->distance && i < n; i++) {
        const double d = length_of(l->vectors + (first + (size_t)i) * width, l->k->width) -
                         (double)x->work.score[(size_t)i * near];
        l->distance[first + (size_t)i] = d > 0 ? (float)d : 0; // rounding may take it below
    }
}

void dgm_kmeans_find(dgm_kmeans_lanes *l, const dgm_nearest *nearest, const uint16_t *vectors,
                     size_t count, int32_t *found, float *distance)
{
    l->nearest = nearest;
    l->vectors = vectors;
    l->size = count;
    l->found = found;
    l->distance = distance;
    dgm_pool_run(l->k->pool, find_block, l, (int)((count + ROWS - 1) / ROWS));
}

// ---- start -------------------------------------------------------------------------------------

typedef struct start {
    const dgm_kmeans *k;
    dgm_kmeans_lanes *lanes;
    uint16_t *points; // [count, width]
    size_t count;
    double *length, *distance; // [count]: squared; to the nearest centroid so far
    dgm_tensor *tensors;       // [layers]
    dgm_linear **layers;       // [layers] of LAYER points
    int layer_count;
    int32_t chosen;
} start;

static void start_close(start *s)
{
    for (int i = 0; s->layers && i < s->layer_count; i++)
        if (s->layers[i]) dgm_linear_free(s->k->backend, &s->layers[i]);
    dgm_free(s->points);
    dgm_free(s->length);
    dgm_free(s->distance);
    dgm_free(s->tensors);
    dgm_free(s->layers);
}

static dgm_status start_open(start *s, dgm_error *err)
{
    const dgm_kmeans *k = s->k;
    const size_t width = (size_t)k->width, most = (size_t)k->centroids * START;
    s->count = k->count < most ? k->count : most;
    s->layer_count = (int)((s->count + LAYER - 1) / LAYER);
    s->points = dgm_malloc(s->count * width * sizeof *s->points);
    s->length = dgm_malloc(s->count * sizeof *s->length);
    s->distance = dgm_malloc(s->count * sizeof *s->distance);
    s->tensors = dgm_calloc((size_t)s->layer_count, sizeof *s->tensors);
    s->layers = dgm_calloc((size_t)s->layer_count, sizeof(dgm_linear *));
    if (!s->points || !s->length || !s->distance || !s->tensors || !s->layers)
        return dgm_no_memory(err);
    for (size_t i = 0; i < s->count; i++) {
        const size_t from = (size_t)((double)i * (double)k->count / (double)s->count);
        memcpy(s->points + i * width, k->vectors + from * width, width * sizeof *s->points);
        s->length[i] = length_of(s->points + i * width, k->width);
        s->distance[i] = INFINITY;
    }
    for (int i = 0; i < s->layer_count; i++) {
        const size_t first = (size_t)i * LAYER;
        const size_t n = s->count - first < LAYER ? s->count - first : LAYER;
        s->tensors[i] = table_of(s->points + first * width, n, k->width);
        const dgm_linear_part part = {.weight = &s->tensors[i]};
        DGM_TRY(dgm_linear_load(k->backend, &part, 1, DGM_PRECISION_F32, &s->layers[i], err));
    }
    return DGM_OK;
}

// Distances of one layer's points to the new centroid.
static void measure_layer(void *arg, int worker, int item)
{
    start *s = arg;
    lane *own = &s->lanes->items[worker];
    dgm_exec *x = own->exec;
    const size_t first = (size_t)item * LAYER;
    const dgm_mark mark = dgm_exec_mark(x);
    const int n = s->count - first < LAYER ? (int)(s->count - first) : LAYER;
    const dgm_mat in = dgm_exec_mat(x, 1, s->k->width), out = dgm_exec_mat(x, 1, n);
    write_vectors(own, in, s->points + (size_t)s->chosen * (size_t)s->k->width);
    dgm_op_linear(x, out, in, s->layers[item], DGM_ACT_NONE, NULL);
    float dots[LAYER];
    dgm_op_read(x, dots, out);
    for (int i = 0; i < n; i++) {
        const size_t at = first + (size_t)i;
        const double d = s->length[at] + s->length[s->chosen] - 2 * (double)dots[i];
        if (d < s->distance[at]) s->distance[at] = d > 0 ? d : 0;
    }
    if ((size_t)s->chosen >= first && (size_t)s->chosen < first + (size_t)n)
        s->distance[s->chosen] = 0; // exactly, so that it is not drawn again
    dgm_exec_reset(x, mark);
}

// A point drawn by its squared distance; any point where all distances are 0.
static int32_t draw(const start *s, dgm_rng *rng)
{
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) sum += s->distance[i];
    if (!(sum > 0)) return (int32_t)dgm_rng_below(rng, s->count);
    double left = dgm_rng_unit(rng) * sum;
    size_t last = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (!(s->distance[i] > 0)) continue;
        last = i;
        left -= s->distance[i];
        if (left < 0) break;
    }
    return (int32_t)last;
}

static void take_point(const start *s, float *centroid)
{
    const size_t width = (size_t)s->k->width;
    const uint16_t *v = s->points + (size_t)s->chosen * width;
    for (size_t j = 0; j < width; j++) centroid[j] = dgm_half_to_float(v[j]);
}

static dgm_status tick(const dgm_kmeans *k, double share, dgm_error *err)
{
    DGM_FAIL_IF(k->tick && k->tick(k->cookie, share), err, DGM_ERR_CANCELLED, "cancelled");
    return DGM_OK;
}

static dgm_status plus_plus(const dgm_kmeans *k, dgm_kmeans_lanes *lanes, float *out,
                            dgm_error *err)
{
    start s = {.k = k, .lanes = lanes};
    dgm_rng rng = {k->seed};
    dgm_status st = start_open(&s, err);
    if (st == DGM_OK) s.chosen = (int32_t)dgm_rng_below(&rng, s.count);
    for (int i = 0; st == DGM_OK && i < k->centroids; i++) {
        take_point(&s, out + (size_t)i * (size_t)k->width);
        if (i + 1 == k->centroids) break;
        dgm_pool_run(k->pool, measure_layer, &s, s.layer_count);
        s.chosen = draw(&s, &rng);
        if (i % 64 == 63) st = tick(k, 0.1 * (i + 1) / k->centroids, err);
    }
    start_close(&s);
    return st;
}

// ---- iterations --------------------------------------------------------------------------------

typedef struct lloyd {
    const dgm_kmeans *k;
    float *centroids;
    int32_t *found, *before; // [count]
    float *distance;         // [count]
    size_t *first;           // [centroids + 1] in members
    size_t *members;         // [count]: points by centroid, in order
} lloyd;

static void sort_members(lloyd *l)
{
    const dgm_kmeans *k = l->k;
    memset(l->first, 0, ((size_t)k->centroids + 2) * sizeof *l->first);
    for (size_t i = 0; i < k->count; i++) l->first[l->found[i] + 2]++;
    for (int c = 1; c <= k->centroids; c++) l->first[c + 1] += l->first[c];
    for (size_t i = 0; i < k->count; i++) l->members[l->first[l->found[i] + 1]++] = i;
}

static void move_centroid(void *arg, int worker, int item)
{
    (void)worker;
    lloyd *l = arg;
    enum { PART = 256 };
    const size_t begin = l->first[item], end = l->first[item + 1], width = (size_t)l->k->width;
    if (begin == end) return;
    for (size_t from = 0; from < width; from += PART) {
        const size_t n = width - from < PART ? width - from : PART;
        double sum[PART] = {0};
        for (size_t m = begin; m < end; m++) {
            const uint16_t *v = l->k->vectors + l->members[m] * width + from;
            for (size_t j = 0; j < n; j++) sum[j] += (double)dgm_half_to_float(v[j]);
        }
        float *c = l->centroids + (size_t)item * width + from;
        for (size_t j = 0; j < n; j++) c[j] = (float)(sum[j] / (double)(end - begin));
    }
}

// Centroids without points go to the points that are worst off.
static void fill_empty(lloyd *l)
{
    const dgm_kmeans *k = l->k;
    const size_t width = (size_t)k->width;
    for (int c = 0; c < k->centroids; c++) {
        if (l->first[c + 1] > l->first[c]) continue;
        size_t worst = 0;
        for (size_t i = 1; i < k->count; i++)
            if (l->distance[i] > l->distance[worst]) worst = i;
        l->distance[worst] = 0;
        for (size_t j = 0; j < width; j++)
            l->centroids[(size_t)c * width + j] = dgm_half_to_float(k->vectors[worst * width + j]);
    }
}

static dgm_status assign(lloyd *l, dgm_kmeans_lanes *lanes, double *loss, dgm_error *err)
{
    const dgm_kmeans *k = l->k;
    dgm_nearest *nearest = NULL;
    DGM_TRY(dgm_nearest_open(&nearest, k->backend, l->centroids, k->centroids, k->width, err));
    dgm_kmeans_find(lanes, nearest, k->vectors, k->count, l->found, l->distance);
    dgm_nearest_close(&nearest);
    *loss = 0;
    for (size_t i = 0; i < k->count; i++) *loss += (double)l->distance[i];
    *loss /= (double)k->count;
    return DGM_OK;
}

static dgm_status iterate(lloyd *l, dgm_kmeans_lanes *lanes, double *loss, dgm_error *err)
{
    const dgm_kmeans *k = l->k;
    double now = 0;
    bool moved = true;
    for (int i = 0; i <= k->iterations; i++) {
        if (moved) {
            memcpy(l->before, l->found, k->count * sizeof *l->found);
            DGM_TRY(assign(l, lanes, &now, err));
            moved = i == 0 || memcmp(l->before, l->found, k->count * sizeof *l->found) != 0;
        }
        if (loss) loss[i] = now;
        if (!moved || i == k->iterations) continue;
        sort_members(l);
        dgm_pool_run(k->pool, move_centroid, l, k->centroids);
        fill_empty(l);
        DGM_TRY(tick(k, 0.1 + 0.9 * (i + 1) / k->iterations, err));
    }
    return DGM_OK;
}

dgm_status dgm_kmeans_run(const dgm_kmeans *k, float *out, double *loss, dgm_error *err)
{
    DGM_FAIL_IF(k->centroids < 1 || k->iterations < 0 || k->width < 1, err, DGM_ERR_ARGUMENT,
                "k-means with %d centroids of %d numbers", k->centroids, k->width);
    DGM_FAIL_IF(k->count < (size_t)k->centroids || k->count > INT32_MAX, err, DGM_ERR_ARGUMENT,
                "k-means of %zu vectors cannot have %d centroids", k->count, k->centroids);
    lloyd l = {.k = k, .centroids = out};
    dgm_kmeans_lanes *lanes = NULL;
    l.found = dgm_calloc(k->count, sizeof *l.found);
    l.before = dgm_calloc(k->count, sizeof *l.before);
    l.distance = dgm_calloc(k->count, sizeof *l.distance);
    l.first = dgm_calloc((size_t)k->centroids + 2, sizeof *l.first);
    l.members = dgm_calloc(k->count, sizeof *l.members);
    dgm_status st =
        l.found && l.before && l.distance && l.first && l.members ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) st = dgm_kmeans_lanes_open(&lanes, k, k->centroids, 1, err);
    if (st == DGM_OK) st = plus_plus(k, lanes, out, err);
    if (st == DGM_OK) st = iterate(&l, lanes, loss, err);
    dgm_kmeans_lanes_close(&lanes);
    dgm_free(l.found);
    dgm_free(l.before);
    dgm_free(l.distance);
    dgm_free(l.first);
    dgm_free(l.members);
    return st;
}
