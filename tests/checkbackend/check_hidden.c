// SPDX-License-Identifier: MIT
// checkbackend: questions about hidden vectors.
#include "base/bytes.h"
#include "checkbackend/checkbackend.h"

enum { ROUNDS = 8, MOST = 40 };

// What a centroid is chosen by: h.C - |C|^2 / 2. Devices may differ between equally good ones.
static float score_of(const uint16_t *centroid, const float *h, int width)
{
    double sum = 0;
    for (int i = 0; i < width; i++) {
        const double x = (double)dgm_half_to_float(centroid[i]);
        sum += x * (double)h[i] - x * x / 2;
    }
    return (float)sum;
}

void check_closest(cb *c)
{
    for (int round = 0; round < ROUNDS; round++) {
        const int count = round == 0 ? 1 : cb_between(c, 2, 400), width = cb_between(c, 1, 200);
        const int rows = round == 1 ? 1 : cb_between(c, 2, MOST);
        cb_begin(c, "%d rows of %d, %d centroids", rows, width, count);
        const size_t n = (size_t)count * (size_t)width;
        const float *real = cb_floats(c, n, 1), *h = cb_floats(c, (size_t)(rows * width), 1);
        uint16_t *half = (uint16_t *)cb_ints(c, n, 1);
        for (size_t i = 0; i < n; i++) half[i] = dgm_float_to_half(real[i]);
        const dgm_tensor t = {.name = "centroids", .type = DGM_TYPE_F16, .n_dims = 2,
                              .shape = {count, width}, .rows = count, .cols = width, .data = half,
                              .bytes = n * sizeof *half};
        CB_BOTH(c, s)
        {
            dgm_centroids *centroids = NULL;
            dgm_error err;
            int32_t found[MOST];
            if (dgm_centroids_load(s->backend, &t, &centroids, &err) != DGM_OK) {
                cb_fail(c, "%s", err.text);
                return;
            }
            if (dgm_centroids_bytes(centroids) < n ||
                dgm_closest_bytes(s->backend, rows, count).device == 0)
                cb_fail(c, "no memory");
            dgm_op_closest(s->x, centroids, cb_put(s, h, rows, width), found);
            for (int i = 0; i < rows; i++) {
                if (found[i] < 0 || found[i] >= count) cb_fail(c, "centroid %d", (int)found[i]);
                const float score = score_of(half + (size_t)found[i] * (size_t)width,
                                             h + (size_t)i * (size_t)width, width);
                cb_keep_floats(c, s, &score, 1);
            }
            dgm_centroids_free(s->backend, &centroids);
        }
        cb_compare(c, CB_ROUNDED, 1e-5);
    }
}

void check_distances(cb *c)
{
    for (int round = 0; round < ROUNDS; round++) {
        const int rows = cb_between(c, 1, MOST), width = cb_between(c, 1, 600);
        const int count = cb_between(c, 1, MOST);
        cb_begin(c, "%d pairs of %d rows of %d", count, rows, width);
        const float *x = cb_floats(c, (size_t)(rows * width), 2);
        const int32_t *one = cb_ints(c, (size_t)count, rows), *two = cb_ints(c, (size_t)count, rows);
        CB_BOTH(c, s)
        {
            dgm_distance out[MOST];
            dgm_mat kept = cb_room(s, rows + 3, width);
            dgm_op_keep(s->x, kept, 3, cb_put(s, x, rows, width));
            dgm_op_distances(s->x, dgm_mat_rows(kept, 3, rows), one, two, count, out);
            for (int i = 0; i < count; i++) {
                const float both[] = {(float)out[i].apart, (float)out[i].length};
                cb_keep_floats(c, s, both, 2);
            }
        }
        cb_compare(c, CB_ROUNDED, 1e-5);
    }
}
