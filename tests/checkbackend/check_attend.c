// SPDX-License-Identifier: MIT
// checkbackend: attention, over rows, over paths of rows and over blocks of a source.
#include <math.h>

#include "checkbackend/checkbackend.h"

enum { ROUNDS = 8, MOST = 32 };

#define EACH_PRECISION(c, p)                                                                       \
    for (int p = 0; p < DGM_PRECISION_COUNT; p++)                                                  \
        if ((c)->precisions & 1u << p)

// Half-precision caches round numbers near 1 by 2^-11; weights are of sums of dk such products.
static double attend_bound(dgm_precision p)
{
    return p == DGM_PRECISION_F32 ? 1e-5 : 1e-2;
}

// What the host wants of some rows' weights, one of them twice.
typedef struct wanted {
    int32_t row[2 * MOST];
    float *to[2 * MOST];
    dgm_align_list list;
} wanted;

static void want(cb *c, wanted *w, const int32_t *n, int rows, int head)
{
    int count = 0;
    for (int i = 0; i < rows; i++)
        for (int times = i % 3 == 1 ? 0 : 1 + (i % 4 == 2); times > 0; times--) {
            w->row[count] = i;
            w->to[count++] = cb_floats(c, (size_t)n[i], 0);
        }
    w->list = (dgm_align_list){w->row, w->to, count, head};
}

static void keep_wanted(cb *c, cb_side *s, const wanted *w, const int32_t *n)
{
    dgm_exec_sync(s->x);
    for (int i = 0; i < w->list.count; i++)
        cb_keep_floats(c, s, w->to[i], (size_t)n[w->row[i]]);
}

static void run_attend(cb *c, dgm_precision p, int round)
{
    const int rows = round == 0 ? 1 : cb_between(c, 2, MOST), heads = cb_between(c, 1, 8);
    const bool broad = round >= 6; // heads as wide as a small model
    const int dk = cb_between(c, 1, 40) + 150 * broad, dv = cb_between(c, 1, 40) + 150 * broad;
    const int keys = cb_between(c, 1, 90);
    const bool path = round % 2;
    cb_begin(c, "%s, %d rows, %d heads of %d and %d, %d keys, path %d", dgm_precision_names[p], rows,
             heads, dk, dv, keys, path);
    const int width = heads * (dk > dv ? dk : dv);
    const float *k = cb_floats(c, (size_t)keys * (size_t)width, 1);
    const float *v = cb_floats(c, (size_t)keys * (size_t)width, 1);
    const float *q = cb_floats(c, (size_t)rows * (size_t)(heads * dk), 1);
    int32_t *entries = cb_ints(c, (size_t)(rows * keys), keys), *all = cb_ints(c, (size_t)keys, 1);
    int32_t *first = cb_ints(c, (size_t)rows, keys), *n = cb_ints(c, (size_t)rows, keys);
    for (int i = 0; i < keys; i++) all[i] = i;
    for (int i = 0; i < rows; i++) { // neighbours share a past, as siblings of a beam do
        n[i] = path ? n[i] + 1 : cb_between(c, 1, keys - first[i]);
        if (!path) continue;
        first[i] = i * keys;
        for (int j = 0; i > 0 && j < n[i] / 2; j++) entries[first[i] + j] = entries[first[i - 1] + j];
        if (i % 5 == 4) first[i] = first[i - 1], n[i] = n[i - 1];
    }
    const dgm_heads how = {.count = heads, .dk = dk, .dv = dv, .scale = 1 / sqrtf((float)dk)};
    const int reach = 2 * keys + MOST, distances = 2 * reach - 1;
    const float *bias = cb_floats(c, (size_t)heads * (size_t)distances, 2);
    CB_BOTH(c, s)
    {
        wanted w;
        want(c, &w, n, rows, round % 3 == 0 ? -1 : heads - 1);
        const dgm_precision own = cb_side_precision(s, p);
        dgm_mat kc = dgm_exec_cache(s->x, keys, width, own), vc = dgm_exec_cache(s->x, keys, width, own);
        dgm_op_scatter(s->x, kc, cb_put(s, k, keys, width), all);
        dgm_op_scatter(s->x, vc, cb_put(s, v, keys, width), all);
        dgm_mat out = cb_room(s, rows, heads * dv), queries = cb_put(s, q, rows, heads * dk);
        if (dgm_attend_bytes(s->backend, heads, keys).device > 1 << 24 || // there may be none
            dgm_paths_bytes(s->backend, rows, (size_t)(rows * keys)).device == 0)
            cb_fail(c, "a strange amount of scratch");
        const dgm_paths *paths =
            dgm_op_paths(s->x, rows, first, n, path ? entries : NULL, path ? rows * keys : 0);
        dgm_op_attend(s->x, out, queries, kc, vc, &how, paths, &w.list);
        cb_keep(c, s, out);
        keep_wanted(c, s, &w, n);
        dgm_op_attend(s->x, out, queries, kc, vc, &how, paths, NULL); // they last
        cb_keep(c, s, out);
        const int last = rows - 1;
        dgm_mat alone = cb_room(s, 1, heads * dv);
        const dgm_paths *one = dgm_op_paths(s->x, 1, first + last, n + last, path ? entries : NULL,
                                            path ? rows * keys : 0);
        dgm_op_attend(s->x, alone, dgm_mat_rows(queries, last, 1), kc, vc, &how, one, NULL);
        cb_same_row(c, s, dgm_mat_rows(out, last, 1), alone);
        dgm_vector *table = cb_vector(c, s, bias, heads, distances);
        const dgm_heads biased = {heads, dk, dv, 1, table, reach};
        dgm_op_attend(s->x, out, queries, kc, vc, &biased, paths, NULL);
        cb_keep(c, s, out);
        dgm_vector_free(s->backend, &table);
    }
    cb_compare(c, CB_ROUNDED, attend_bound(p));
}

void check_attend(cb *c)
{
    EACH_PRECISION(c, p)
    for (int round = 0; round < ROUNDS; round++) run_attend(c, (dgm_precision)p, round);
}

void check_attend_add(cb *c)
{
    for (int round = 0; round < ROUNDS; round++) {
        const int rows = round == 0 ? 1 : cb_between(c, 2, MOST), keys = cb_between(c, 1, 60);
        const int da = cb_between(c, 1, 150), dv = cb_between(c, 1, 150);
        cb_begin(c, "%d rows, %d keys, %d and %d", rows, keys, da, dv);
        const float *k = cb_floats(c, (size_t)keys * (size_t)da, 2);
        const float *v = cb_floats(c, (size_t)keys * (size_t)dv, 1);
        const float *q = cb_floats(c, (size_t)rows * (size_t)da, 2);
        const float *w = cb_floats(c, (size_t)da, 1);
        int32_t *first = cb_ints(c, (size_t)rows, keys), *n = cb_ints(c, (size_t)rows, 1);
        for (int i = 0; i < rows; i++) n[i] = cb_between(c, 1, keys - first[i]);
        CB_BOTH(c, s)
        {
            // Rows of keys and values without gaps, as the operation wants them.
            dgm_mat km = dgm_exec_mat(s->x, keys, da), vm = dgm_exec_mat(s->x, keys, dv);
            km.stride = da;
            vm.stride = dv;
            dgm_op_write(s->x, km, k);
            dgm_op_write(s->x, vm, v);
            dgm_vector *weight = cb_vector(c, s, w, 1, da);
            wanted list;
            want(c, &list, n, rows, 0);
            dgm_mat out = cb_room(s, rows, dv);
            dgm_op_attend_add(s->x, out, cb_put(s, q, rows, da), weight, km, vm,
                              dgm_op_paths(s->x, rows, first, n, NULL, 0), &list.list);
            cb_keep(c, s, out);
            keep_wanted(c, s, &list, n);
            dgm_vector_free(s->backend, &weight);
        }
        cb_compare(c, CB_ROUNDED, 1e-4);
    }
}

static void run_blocks(cb *c, dgm_precision p, int round)
{
    enum { SOURCES = 3, PER_SOURCE = 4, BLOCKS = SOURCES * PER_SOURCE, LAYERS = 2 };
    const int rows = round == 0 ? 1 : cb_between(c, 2, MOST), heads = cb_between(c, 1, 8);
    const int dk = cb_between(c, 1, 40), dv = cb_between(c, 1, 40), width = heads * (dk + dv);
    cb_begin(c, "%s, %d rows, %d heads of %d and %d", dgm_precision_names[p], rows, heads, dk, dv);
    dgm_block_span spans[SOURCES];
    int total = 2; // rows of nobody come first
    for (int i = 0; i < SOURCES; i++) {
        spans[i] = (dgm_block_span){total, cb_between(c, 1, PER_SOURCE * DGM_BLOCK_POSITIONS),
                                    PER_SOURCE * (SOURCES - 1 - i)};
        total += spans[i].rows;
    }
    const float *kv = cb_floats(c, (size_t)total * (size_t)width * LAYERS, 1);
    const float *q = cb_floats(c, (size_t)rows * (size_t)(heads * dk), 1);
    int32_t *first = cb_ints(c, (size_t)rows, 1), *n = cb_ints(c, (size_t)rows, 1);
    for (int i = 0, source = 0; i < rows; i++) { // neighbours often have one source
        if (i == 0 || cb_below(c, 3) == 0) source = cb_below(c, SOURCES);
        first[i] = spans[source].first;
        n[i] = spans[source].rows;
    }
    CB_BOTH(c, s)
    {
        dgm_blocks b[LAYERS];
        for (int l = 0; l < LAYERS; l++)
            b[l] = dgm_exec_blocks(s->x, BLOCKS, heads, dk, dv, cb_side_precision(s, p));
        dgm_op_blocks_put(s->x, b, LAYERS, cb_put(s, kv, total, width * LAYERS), spans, SOURCES);
        dgm_mat out = cb_room(s, rows, heads * dv), queries = cb_put(s, q, rows, heads * dk);
        const dgm_paths *paths = dgm_op_paths(s->x, rows, first, n, NULL, 0);
        const float scale = 1 / sqrtf((float)dk);
        wanted w;
        want(c, &w, n, rows, round % 2 ? -1 : 0);
        dgm_op_attend_blocks(s->x, out, queries, &b[0], scale, paths, &w.list);
        cb_keep(c, s, out);
        keep_wanted(c, s, &w, n);
        dgm_op_attend_blocks(s->x, out, queries, &b[1], scale, paths, NULL);
        cb_keep(c, s, out);
    }
    cb_compare(c, CB_ROUNDED, attend_bound(p));
}

void check_attend_blocks(cb *c)
{
    EACH_PRECISION(c, p)
    for (int round = 0; round < ROUNDS; round++) run_blocks(c, (dgm_precision)p, round);
}
