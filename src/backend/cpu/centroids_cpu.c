// SPDX-License-Identifier: MIT
// CPU backend: the nearest centroid of a few rows, by a look at all in i8 and a second one at few.
//
// Wanted is the least |C|^2 - 2 h.C, that is the largest s(j) = h.C_j - |C_j|^2 / 2, in f32. All
// centroids in f32 are 2 MiB at 1,000 x 512: as much as an eighth of an i8 output layer of 32,000
// tokens, for a search that is to save most of it. So:
//
//     look    s in i8, all centroids: rank's product and its PICKED best            [1 byte each]
//     bound   with h' and C' what i8 makes of h and C,
//                 |h.C - h'.C'| = |(h - h').C + h'.(C - C')| <= |h - h'| |C| + |h'| |C - C'|
//             and an element is off by at most half a step, so that with m the largest |element|
//                 |h - h'| <= sqrt(width) m(h) / 254,   |C - C'| <= sqrt(width) m(C) / 254
//     choose  of those whose s + bound is not below the best s - bound: the largest s, summed in
//             f32 from the half-precision rows of the file. Two of 1,000 on average.
//
// The answer is the one that f32 alone would give, whatever i8 did: no centroid outside the bound
// can win (SLACK covers f32's own rounding). Where even the last one picked is within the bound,
// all centroids are compared. Sums run in 16 lanes and without fused products, in the same order
// for every row, batch and CPU.
#include <float.h>
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu_private.h"
#include "base/mem.h"

enum { PICKED = 32, LANES = 16 };

static const float SLACK = 1e-4f; // of |h| |C| + |C|^2 / 2

struct dgm_centroids {
    const dgm_backend_ops *ops;
    const uint16_t *rows; // [count, width], halves in the file
    int count, width;
    dgm_linear *coarse; // C in i8, the biases -|C|^2 / 2
    float *half;        // [count]: |C|^2 / 2
    float *length;      // [count]: |C|
    float *error;       // [count]: bound of |C - C'|
    float most_half, most_length, most_error;
};

void cpu_centroids_free(dgm_backend *b, dgm_centroids **centroids)
{
    dgm_centroids *c = *centroids;
    if (!c) return;
    if (c->coarse) cpu_linear_free(b, &c->coarse);
    dgm_free(c->half);
    dgm_free(c->length);
    dgm_free(c->error);
    dgm_free(c);
    *centroids = NULL;
}

static float step_error(const dgm_centroids *c, float largest)
{
    return sqrtf((float)c->width) * largest / 253.9f; // 254, and the scale's own rounding
}

static dgm_status prepare(dgm_backend *b, dgm_centroids *c, const dgm_tensor *centroids,
                          dgm_error *err)
{
    const size_t count = (size_t)c->count;
    c->half = dgm_malloc(count * sizeof *c->half);
    c->length = dgm_malloc(count * sizeof *c->length);
    c->error = dgm_malloc(count * sizeof *c->error);
    float *row = dgm_malloc((size_t)c->width * sizeof *row);
    float *bias = dgm_malloc(count * sizeof *bias);
    dgm_status st =
        c->half && c->length && c->error && row && bias ? DGM_OK : dgm_no_memory(err);
    for (int i = 0; st == DGM_OK && i < c->count; i++) {
        double sum = 0;
        float largest = 0;
        dgm_tensor_row_f32(centroids, i, row);
        for (int j = 0; j < c->width; j++) {
            sum += (double)row[j] * (double)row[j];
            largest = fmaxf(largest, fabsf(row[j]));
        }
        c->half[i] = (float)(sum / 2);
        c->length[i] = (float)sqrt(sum) * (1 + SLACK);
        c->error[i] = step_error(c, largest);
        bias[i] = -c->half[i];
        c->most_half = fmaxf(c->most_half, c->half[i]);
        c->most_length = fmaxf(c->most_length, c->length[i]);
        c->most_error = fmaxf(c->most_error, c->error[i]);
    }
    const dgm_linear_part part = {.weight = centroids, .bias = bias};
    if (st == DGM_OK)
        st = cpu_linear_load(b, &part, 1, DGM_PRECISION_I8, &c->coarse, err);
    dgm_free(row);
    dgm_free(bias);
    return st;
}

dgm_status cpu_centroids_load(dgm_backend *b, const dgm_tensor *centroids, dgm_centroids **out,
                              dgm_error *err)
{
    dgm_centroids *c = *out = dgm_calloc(1, sizeof *c);
    if (!c) return dgm_no_memory(err);
    c->ops = &cpu_ops;
    c->rows = centroids->data;
    c->count = centroids->rows;
    c->width = centroids->cols;
    const dgm_status st = prepare(b, c, centroids, err);
    if (st != DGM_OK) cpu_centroids_free(b, out);
    return st;
}

// A step's lists are made of ids beside the rest of a step's work (vocabsel/cluster.c): nothing is kept.
dgm_status cpu_centroids_lists(dgm_backend *b, dgm_centroids *c, const uint64_t *bits, int vocabulary, dgm_error *err)
{
    (void)c, (void)bits, (void)vocabulary;
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "device %s keeps no lists of tokens", b->props.name);
}

size_t cpu_centroids_bytes(const dgm_centroids *c)
{
    return cpu_linear_bytes(c->coarse) + 3 * (size_t)c->count * sizeof(float);
}

// ---- f32 ----------------------------------------------------------------------------------------

// A finite half. Its bits at a float's place are a float 2^112 times too small, so that one product
// sets the exponent right, that of the smallest numbers too.
static inline float real(uint16_t half)
{
    const uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
    float x;
    memcpy(&x, &magnitude, sizeof x);
    return half & 0x8000 ? -(x * 0x1p112f) : x * 0x1p112f;
}

static float exact(const dgm_centroids *c, int centroid, const float *h)
{
    const uint16_t *row = c->rows + (size_t)centroid * (size_t)c->width;
    float lanes[LANES] = {0};
    int i = 0;
    for (; i + LANES <= c->width; i += LANES)
        for (int j = 0; j < LANES; j++) lanes[j] += h[i + j] * real(row[i + j]);
    for (; i < c->width; i++) lanes[i % LANES] += h[i] * real(row[i]);
    for (int n = LANES / 2; n; n /= 2)
        for (int j = 0; j < n; j++) lanes[j] += lanes[j + n];
    return lanes[0] - c->half[centroid];
}

static int32_t best_of_all(const dgm_centroids *c, const float *h)
{
    int32_t best = 0;
    float most = -INFINITY;
    for (int32_t i = 0; i < c->count; i++) {
        const float s = exact(c, i, h);
        if (s > most) {
            most = s;
            best = i;
        }
    }
    return best;
}

// ---- choosing -----------------------------------------------------------------------------------

// What is known of a row.
typedef struct row_size {
    float length, error; // |h|, bound of |h - h'|
} row_size;

static float bound(row_size h, float length, float error, float half)
{
    return h.error * length + (h.length + h.error) * error + SLACK * (h.length * length + half);
}

static float bound_of(const dgm_centroids *c, row_size h, int32_t i)
{
    return bound(h, c->length[i], c->error[i], c->half[i]);
}

// False: the row is no number, or too large for the bounds.
static bool measure(const dgm_centroids *c, const float *h, row_size *out)
{
    float squares[LANES] = {0}, largest[LANES] = {0};
    for (int i = 0; i < c->width; i++) {
        const float x = fabsf(h[i]);
        squares[i % LANES] += x * x;
        largest[i % LANES] = x > largest[i % LANES] ? x : largest[i % LANES];
    }
    float sum = 0, most = 0;
    for (int j = 0; j < LANES; j++) {
        sum += squares[j];
        most = fmaxf(most, largest[j]);
    }
    *out = (row_size){sqrtf(sum) * (1 + SLACK), step_error(c, most)};
    return sum <= FLT_MAX;
}

// score, picked: the best of the look in i8, falling.
static int32_t choose(const dgm_centroids *c, const float *h, const float *score,
                      const int32_t *picked)
{
    row_size size;
    if (!measure(c, h, &size)) return best_of_all(c, h);
    float low = -INFINITY, most = -INFINITY;
    int n = 0;
    for (; n < PICKED && picked[n] >= 0; n++)
        low = fmaxf(low, score[n] - bound_of(c, size, picked[n]));
    if (n < c->count && n &&
        score[n - 1] + bound(size, c->most_length, c->most_error, c->most_half) >= low)
        return best_of_all(c, h);
    int32_t within[PICKED], best = 0;
    int count = 0;
    for (int i = 0; i < n; i++)
        if (score[i] + bound_of(c, size, picked[i]) >= low) within[count++] = picked[i];
    if (count == 1) return within[0];
    for (int i = 0; i < count; i++) {
        const float s = exact(c, within[i], h);
        if (s > most || (s == most && within[i] < best)) {
            most = s;
            best = within[i];
        }
    }
    return best;
}

dgm_bytes cpu_closest_bytes(const dgm_backend *b, int rows, int centroids)
{
    const size_t n = (size_t)rows;
    dgm_bytes bytes = cpu_rank_bytes(b, rows, 1, centroids);
    bytes.device += dgm_arena_cost(n * sizeof(dgm_terms)) +
                    dgm_arena_cost(n * PICKED * sizeof(float)) +
                    dgm_arena_cost(n * PICKED * sizeof(int32_t));
    return bytes;
}

void cpu_closest(dgm_exec *x, const dgm_centroids *c, dgm_mat rows, int32_t *found)
{
    const size_t mark = dgm_arena_mark(&x->device), n = (size_t)rows.rows;
    dgm_terms *terms = DGM_ARENA_ARRAY(&x->device, dgm_terms, n);
    float *score = DGM_ARENA_ARRAY(&x->device, float, n *PICKED);
    int32_t *picked = DGM_ARENA_ARRAY(&x->device, int32_t, n *PICKED);
    const dgm_rank_part part = {.out = c->coarse, .hidden = rows, .weight = 1};
    for (int i = 0; i < rows.rows; i++) terms[i] = (dgm_terms){.lambda = 1};
    const dgm_rank rank = {.parts = &part,
                           .part_count = 1,
                           .rows = rows.rows,
                           .k = PICKED,
                           .terms = terms,
                           .score = score,
                           .token = picked};
    cpu_rank(x, &rank);
    for (int i = 0; i < rows.rows; i++)
        found[i] = choose(c, cpu_row(rows, i), score + i * PICKED, picked + i * PICKED);
    dgm_arena_reset(&x->device, mark);
}
