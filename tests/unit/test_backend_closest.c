// SPDX-License-Identifier: MIT
// The nearest centroid of a few rows against a plain search in f32 in the documented order of sums:
// equal for random centroids, for such that i8 cannot tell apart, for equal ones, for rows of zeros,
// of huge numbers and of none, at every width and level of the CPU, for one row or many.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/ops.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"

enum { ROWS = 9, LANES = 16 };

static float plain_score(const uint16_t *c, const float *h, int width)
{
    float lanes[LANES] = {0};
    double square = 0;
    for (int i = 0; i < width; i++) {
        const float x = dgm_half_to_float(c[i]);
        lanes[i % LANES] += h[i] * x;
        square += (double)x * (double)x;
    }
    for (int n = LANES / 2; n; n /= 2)
        for (int j = 0; j < n; j++) lanes[j] += lanes[j + n];
    return lanes[0] - (float)(square / 2);
}

static int plain(const uint16_t *c, int count, const float *h, int width)
{
    int best = 0;
    float most = -INFINITY;
    for (int i = 0; i < count; i++) {
        const float s = plain_score(c + (size_t)i * (size_t)width, h, width);
        if (s > most) {
            most = s;
            best = i;
        }
    }
    return best;
}

// spread: how far centroids are from each other; 0: all equal.
static void fill(uint16_t *c, int count, int width, float spread, dgm_rng *rng)
{
    for (int j = 0; j < width; j++) {
        const float middle = (float)(4 * dgm_rng_unit(rng) - 2);
        for (int i = 0; i < count; i++)
            c[i * width + j] =
                dgm_float_to_half(middle + spread * (float)(2 * dgm_rng_unit(rng) - 1));
    }
}

static void fill_rows(float *h, const uint16_t *c, int count, int width, float spread, dgm_rng *rng)
{
    for (int r = 0; r < ROWS; r++) {
        const size_t near = (size_t)dgm_rng_below(rng, (uint64_t)count) * (size_t)width;
        for (int j = 0; j < width; j++) {
            float *x = &h[r * width + j];
            *x = dgm_half_to_float(c[near + (size_t)j]) +
                 spread * (float)(2 * dgm_rng_unit(rng) - 1);
            if (r == 6) *x = 0;
            if (r == 7) *x *= 1e30f;
        }
    }
    h[8 * width] = NAN;
}

static void compare(const char *level, int count, int width, float spread, uint64_t seed)
{
    dgm_rng rng = {seed};
    dgm_error err;
    dgm_backend *b = NULL;
    dgm_exec *x = NULL;
    dgm_centroids *c = NULL;
    uint16_t *centroids = dgm_malloc((size_t)count * (size_t)width * sizeof *centroids);
    fill(centroids, count, width, spread, &rng);
    const dgm_tensor t = {.name = "centroids", .type = DGM_TYPE_F16, .n_dims = 2,
                          .shape = {count, width}, .rows = count, .cols = width,
                          .data = centroids,
                          .bytes = (size_t)count * (size_t)width * sizeof *centroids};
    if (dgm_backend_open(&b, "cpu", level, &err) != DGM_OK) {
        dgm_free(centroids); // a CPU without it
        return;
    }
    if (dgm_centroids_load(b, &t, &c, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_true(dgm_centroids_bytes(c) >= (size_t)count * (size_t)width);
    dgm_bytes room = dgm_bytes_add(dgm_bytes_both(1 << 20), dgm_closest_bytes(b, ROWS, count));
    room.device += dgm_exec_mat_bytes(b, ROWS, width);
    assert_int_equal(dgm_exec_open(b, room, &x, &err), DGM_OK);
    dgm_mat hidden = dgm_exec_mat(x, ROWS, width);
    float *rows = dgm_malloc(ROWS * (size_t)width * sizeof *rows);
    fill_rows(rows, centroids, count, width, 1.5f * spread, &rng);
    dgm_op_write(x, hidden, rows);
    int32_t together[ROWS], alone;
    dgm_op_closest(x, c, hidden, together);
    for (int r = 0; r < ROWS; r++) {
        const float *h = rows + (size_t)r * (size_t)width;
        const int wanted = r == 8 ? 0 : plain(centroids, count, h, width);
        if (together[r] != wanted)
            fail_msg("%s: %d x %d, spread %g, row %d: %d, not %d", level, count, width,
                     (double)spread, r, (int)together[r], wanted);
        dgm_op_closest(x, c, dgm_mat_rows(hidden, r, 1), &alone);
        assert_int_equal(alone, wanted);
    }
    dgm_centroids_free(b, &c);
    dgm_exec_close(&x);
    dgm_backend_close(&b);
    dgm_free(rows);
    dgm_free(centroids);
}

static void test_plain_search(void **state)
{
    (void)state;
    static const int counts[] = {1, 5, 31, 32, 33, 300}, widths[] = {1, 7, 16, 40, 256};
    static const float spreads[] = {1, 0.01f, 0.001f, 0};
    static const char *const levels[] = {"c", "avx2", "vnni"};
    for (int l = 0; l < 3; l++)
        for (int c = 0; c < 6; c++)
            for (int w = 0; w < 5; w++)
                for (int s = 0; s < 4; s++)
                    compare(levels[l], counts[c], widths[w], spreads[s], (uint64_t)(c * 31 + w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain_search)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
