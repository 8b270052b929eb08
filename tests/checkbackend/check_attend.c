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

static void keep_alignments(cb *c, cb_side *s, float *const *align, const int *n, int rows)
{
    for (int i = 0; i < rows; i++)
        if (align[i]) cb_keep_floats(c, s, align[i], (size_t)n[i]);
}

static void run_attend(cb *c, dgm_precision p, int round)
{
    const int rows = round == 0 ? 1 : cb_between(c, 2, MOST), heads = cb_between(c, 1, 8);
    const int dk = cb_between(c, 1, 40), dv = cb_between(c, 1, 40), keys = cb_between(c, 1, 90);
    const bool path = round % 2;
    cb_begin(c, "%s, %d rows, %d heads of %d and %d, %d keys, path %d", dgm_precision_names[p], rows,
             heads, dk, dv, keys, path);
    const int width = heads * (dk > dv ? dk : dv);
    const float *k = cb_floats(c, (size_t)keys * (size_t)width, 1);
    const float *v = cb_floats(c, (size_t)keys * (size_t)width, 1);
    const float *q = cb_floats(c, (size_t)rows * (size_t)(heads * dk), 1);
    int32_t *index[MOST], *all = cb_ints(c, (size_t)keys, 1);
    int n[MOST];
    for (int i = 0; i < keys; i++) all[i] = i;
    for (int i = 0; i < rows; i++) { // neighbours share a past, as siblings of a beam do
        n[i] = cb_between(c, 1, keys);
        index[i] = cb_ints(c, (size_t)keys, keys);
        for (int j = 0; i > 0 && j < n[i] / 2; j++) index[i][j] = index[i - 1][j];
    }
    CB_BOTH(c, s)
    {
        dgm_mat kc = dgm_exec_cache(s->x, keys, width, p), vc = dgm_exec_cache(s->x, keys, width, p);
        dgm_op_scatter(s->x, kc, cb_put(s, k, keys, width), all);
        dgm_op_scatter(s->x, vc, cb_put(s, v, keys, width), all);
        dgm_attend_row at[MOST];
        float *align[MOST];
        for (int i = 0; i < rows; i++) {
            at[i] = (dgm_attend_row){kc.data, vc.data, path ? index[i] : NULL, n[i]};
            align[i] = i % 3 == 1 ? NULL : cb_floats(c, (size_t)n[i], 0);
        }
        const dgm_attend a = {.heads = heads, .dk = dk, .dv = dv, .stride = kc.stride,
                              .elem = kc.elem, .scale = 1 / sqrtf((float)dk), .rows = at,
                              .align = align, .align_head = round % 3 == 0 ? -1 : heads - 1};
        dgm_mat out = cb_room(s, rows, heads * dv);
        if (dgm_attend_bytes(s->backend, heads, keys).device == 0) cb_fail(c, "no scratch");
        dgm_op_attend(s->x, out, cb_put(s, q, rows, heads * dk), &a);
        cb_keep(c, s, out);
        keep_alignments(c, s, align, n, rows);
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
        int n[MOST];
        for (int i = 0; i < rows; i++) n[i] = cb_between(c, 1, keys);
        CB_BOTH(c, s)
        {
            // Rows of keys and values without gaps, as the operation wants them.
            dgm_mat km = dgm_exec_mat(s->x, keys, da), vm = dgm_exec_mat(s->x, keys, dv);
            km.stride = da;
            vm.stride = dv;
            dgm_op_write(s->x, km, k);
            dgm_op_write(s->x, vm, v);
            dgm_vector *weight = cb_vector(c, s, w, 1, da);
            dgm_attend_row at[MOST];
            float *align[MOST];
            for (int i = 0; i < rows; i++) {
                at[i] = (dgm_attend_row){km.data, vm.data, NULL, n[i]};
                align[i] = i % 2 ? NULL : cb_floats(c, (size_t)n[i], 0);
            }
            const dgm_attend a = {.rows = at, .align = align};
            dgm_mat out = cb_room(s, rows, dv);
            dgm_op_attend_add(s->x, out, cb_put(s, q, rows, da), weight, &a);
            cb_keep(c, s, out);
            keep_alignments(c, s, align, n, rows);
            dgm_vector_free(s->backend, &weight);
        }
        cb_compare(c, CB_ROUNDED, 1e-4);
    }
}

static void run_blocks(cb *c, dgm_precision p, int round)
{
    enum { SOURCES = 3, PER_SOURCE = 4, BLOCKS = SOURCES * PER_SOURCE };
    const int rows = round == 0 ? 1 : cb_between(c, 2, MOST), heads = cb_between(c, 1, 8);
    const int dk = cb_between(c, 1, 40), dv = cb_between(c, 1, 40);
    const int width = heads * (dk + dv);
    cb_begin(c, "%s, %d rows, %d heads of %d and %d", dgm_precision_names[p], rows, heads, dk, dv);
    int length[SOURCES], n[MOST];
    const float *kv[SOURCES], *q = cb_floats(c, (size_t)rows * (size_t)(heads * dk), 1);
    for (int i = 0; i < SOURCES; i++) {
        length[i] = cb_between(c, 1, PER_SOURCE * DGM_BLOCK_POSITIONS);
        kv[i] = cb_floats(c, (size_t)length[i] * (size_t)width, 1);
    }
    dgm_source_row at[MOST];
    for (int i = 0; i < rows; i++) { // neighbours often have one source
        const int source = i > 0 && cb_below(c, 3) ? at[i - 1].first / PER_SOURCE
                                                   : cb_below(c, SOURCES);
        at[i] = (dgm_source_row){PER_SOURCE * source, length[source]};
        n[i] = length[source];
    }
    CB_BOTH(c, s)
    {
        dgm_blocks b = dgm_exec_blocks(s->x, BLOCKS, heads, dk, dv, p);
        float *align[MOST];
        for (int i = 0; i < SOURCES; i++)
            dgm_op_blocks_put(s->x, &b, PER_SOURCE * i, cb_put(s, kv[i], length[i], width));
        for (int i = 0; i < rows; i++) align[i] = i % 3 ? cb_floats(c, (size_t)n[i], 0) : NULL;
        dgm_mat out = cb_room(s, rows, heads * dv), queries = cb_put(s, q, rows, heads * dk);
        const float scale = 1 / sqrtf((float)dk);
        dgm_op_attend_blocks(s->x, out, queries, &b, at, scale, align, round % 2 ? -1 : 0);
        cb_keep(c, s, out);
        keep_alignments(c, s, align, n, rows);
        dgm_op_attend_blocks(s->x, out, queries, &b, at, scale, NULL, 0);
        cb_keep(c, s, out);
    }
    cb_compare(c, CB_ROUNDED, attend_bound(p));
}

void check_attend_blocks(cb *c)
{
    EACH_PRECISION(c, p)
    for (int round = 0; round < ROUNDS; round++) run_blocks(c, (dgm_precision)p, round);
}
