// SPDX-License-Identifier: MIT
// checkbackend: attention, over rows, over paths of rows and over blocks of a source.
#include <math.h>

#include "checkbackend/checkbackend.h"

enum { ROUNDS = 14, WHOLE = 8, MOST = 32 }; // from round WHOLE on heads have widths that devices like

static int whole_width(int round)
{
    return 32 << round % 3;
}

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
    const bool broad = round == 6 || round == 7, whole = round >= WHOLE; // broad: heads as wide as a small model
    const int dk = whole ? whole_width(round) : cb_between(c, 1, 40) + 150 * broad;
    const int dv = whole ? dk : cb_between(c, 1, 40) + 150 * broad;
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
        if (!path && i > 0 && i % 9 > 2) first[i] = first[i - 1], n[i] = n[i - 1];
        if (!path) continue;
        first[i] = i * keys;
        for (int j = 0; i > 0 && j < n[i] / 2; j++) entries[first[i] + j] = entries[first[i - 1] + j];
        if (i % 5 == 4) first[i] = first[i - 1], n[i] = n[i - 1];
    }
    const dgm_heads how = {.count = heads, .dk = dk, .dv = dv, .scale = 1 / sqrtf((float)dk), .precision = p};
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
        for (int i = whole ? 0 : rows - 1; i < rows; i++) {
            const dgm_mark mark = dgm_exec_mark(s->x);
            dgm_mat alone = cb_room(s, 1, heads * dv);
            const dgm_paths *one =
                dgm_op_paths(s->x, 1, first + i, n + i, path ? entries : NULL, path ? rows * keys : 0);
            dgm_op_attend(s->x, alone, dgm_mat_rows(queries, i, 1), kc, vc, &how, one, NULL);
            cb_same_row(c, s, dgm_mat_rows(out, i, 1), alone);
            dgm_exec_reset(s->x, mark);
        }
        dgm_vector *table = cb_vector(c, s, bias, heads, distances);
        const dgm_heads biased = {heads, dk, dv, 1, table, reach, p};
        dgm_op_attend(s->x, out, queries, kc, vc, &biased, paths, NULL);
        cb_keep(c, s, out);
        dgm_vector_free(s->backend, &table);
    }
    cb_compare(c, CB_ROUNDED, attend_bound(p));
}

// Sentences of an encoder, as a product leaves their queries, keys and values beside each other.
typedef struct sentences {
    int count, rows, heads, dk, reach;
    int first[MOST], length[MOST]; // by sentence
    const dgm_linear *qkv, *o;
    const dgm_vector *bias;
    dgm_precision precision;
} sentences;

// Rows of `in` are those from row `begin` on.
static dgm_mat encode(cb_side *s, const sentences *t, dgm_mat in, int begin, dgm_mat out)
{
    int32_t first[MOST * MOST], length[MOST * MOST];
    const int n = t->heads * t->dk, rows = in.rows;
    for (int j = 0; j < t->count; j++)
        for (int i = t->first[j] - begin; i < t->first[j] - begin + t->length[j]; i++) {
            if (i < 0 || i >= rows) continue;
            first[i] = t->first[j] - begin;
            length[i] = t->length[j];
        }
    const dgm_heads how = {t->heads, t->dk, t->dk, 1 / sqrtf((float)t->dk), t->bias, t->reach, t->precision};
    const dgm_paths *paths = dgm_op_paths(s->x, rows, first, length, NULL, 0);
    dgm_mat qkv = dgm_exec_mat(s->x, rows, 3 * n), att = cb_room(s, rows, n);
    dgm_op_linear(s->x, qkv, in, t->qkv, DGM_ACT_NONE, NULL);
    dgm_op_attend(s->x, att, dgm_mat_cols(qkv, 0, n), dgm_mat_cols(qkv, n, n), dgm_mat_cols(qkv, 2 * n, n), &how,
                  paths, NULL);
    dgm_op_linear(s->x, out, att, t->o, DGM_ACT_NONE, NULL);
    return att;
}

// What a product reads of the result is the result, and a sentence by itself has the bits that it has among others.
static void run_sentences(cb *c, dgm_precision p, int round)
{
    enum { COLS = 64, WIDTH = 40 };
    sentences t = {.count = round == 0 ? 1 : cb_between(c, 2, 7), .heads = cb_between(c, 1, 4), .precision = p};
    t.dk = round % 4 == 3 ? 20 : whole_width(round);
    t.reach = 80;
    for (int j = 0; j < t.count; j++) {
        t.first[j] = t.rows;
        t.rows += t.length[j] = cb_between(c, 1, j % 3 ? 20 : 70);
    }
    const int n = t.heads * t.dk;
    cb_begin(c, "%s, %d sentences, %d heads of %d", dgm_precision_names[p], t.count, t.heads, t.dk);
    cb_tensor weights, more;
    cb_matrix(c, &weights, DGM_TYPE_F32, 3 * n, COLS);
    cb_matrix(c, &more, DGM_TYPE_F32, WIDTH, n);
    const dgm_linear_part parts[] = {{.weight = &weights.t}, {.weight = &more.t}};
    const float *in = cb_floats(c, (size_t)(t.rows * COLS), 0.3f);
    const float *distances = cb_floats(c, (size_t)(t.heads * (2 * t.reach - 1)), 1);
    CB_BOTH(c, s)
    {
        const dgm_precision own = cb_side_precision(s, p);
        dgm_linear *qkv = NULL, *o = NULL;
        cb_load(c, s, &parts[0], 1, own, &qkv);
        cb_load(c, s, &parts[1], 1, own, &o);
        dgm_vector *bias = round % 2 ? cb_vector(c, s, distances, t.heads, 2 * t.reach - 1) : NULL;
        t.qkv = qkv, t.o = o, t.bias = bias;
        dgm_mat x = cb_put(s, in, t.rows, COLS), all = cb_room(s, t.rows, WIDTH);
        const dgm_mat att = encode(s, &t, x, 0, all);
        cb_keep(c, s, att);
        dgm_mat again = cb_room(s, t.rows, WIDTH);
        dgm_op_linear(s->x, again, att, o, DGM_ACT_NONE, NULL);
        for (int i = 0; i < t.rows; i += 5) cb_same_row(c, s, dgm_mat_rows(all, i, 1), dgm_mat_rows(again, i, 1));
        for (int j = 0; j < t.count; j++) {
            const dgm_mark mark = dgm_exec_mark(s->x);
            dgm_mat alone = cb_room(s, t.length[j], WIDTH);
            encode(s, &t, dgm_mat_rows(x, t.first[j], t.length[j]), t.first[j], alone);
            for (int i = 0; i < t.length[j]; i += 3)
                cb_same_row(c, s, dgm_mat_rows(all, t.first[j] + i, 1), dgm_mat_rows(alone, i, 1));
            dgm_exec_reset(s->x, mark);
        }
        dgm_linear_free(s->backend, &qkv);
        dgm_linear_free(s->backend, &o);
        if (bias) dgm_vector_free(s->backend, &bias);
    }
    // Numbers of the product that are wrong by its bound change weights by as much, and values.
    cb_compare(c, CB_PRODUCT, attend_bound(p) + 4 * cb_product_bound(p, COLS));
}

void check_attend(cb *c)
{
    EACH_PRECISION(c, p)
    {
        for (int round = 0; round < ROUNDS; round++) run_attend(c, (dgm_precision)p, round);
        for (int round = 0; round < 8; round++) run_sentences(c, (dgm_precision)p, round);
    }
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
    enum { SOURCES = 3, PER_SOURCE = 4, BLOCKS = SOURCES * PER_SOURCE, LAYERS = 2, COLS = 32 };
    const int rows = round == 0 ? 1 : cb_between(c, 2, MOST), heads = cb_between(c, 1, 8);
    const bool whole = round >= WHOLE;
    const int dk = whole ? whole_width(round) : cb_between(c, 1, 40), dv = whole ? dk : cb_between(c, 1, 40);
    const int width = heads * (dk + dv), others = round == WHOLE ? 40 : 3; // others: how often the source changes
    cb_begin(c, "%s, %d rows, %d heads of %d and %d", dgm_precision_names[p], rows, heads, dk, dv);
    dgm_block_span spans[SOURCES];
    int total = 2; // rows of nobody come first
    for (int i = 0; i < SOURCES; i++) {
        spans[i] = (dgm_block_span){total, cb_between(c, 1, PER_SOURCE * DGM_BLOCK_POSITIONS),
                                    PER_SOURCE * (SOURCES - 1 - i)};
        total += spans[i].rows;
    }
    const bool made = round % 2; // by a product
    const float *kv = cb_floats(c, (size_t)total * (size_t)(made ? COLS : width * LAYERS), made ? 0.3f : 1);
    cb_tensor weights;
    if (made) cb_matrix(c, &weights, DGM_TYPE_F32, width * LAYERS, COLS);
    const dgm_linear_part part = {.weight = &weights.t};
    const float *q = cb_floats(c, (size_t)rows * (size_t)(heads * dk), 1);
    int32_t *first = cb_ints(c, (size_t)rows, 1), *n = cb_ints(c, (size_t)rows, 1);
    for (int i = 0, source = 0; i < rows; i++) { // neighbours often have one source
        if (i == 0 || cb_below(c, others) == 0) source = cb_below(c, SOURCES);
        first[i] = spans[source].first;
        n[i] = spans[source].rows;
    }
    CB_BOTH(c, s)
    {
        dgm_blocks b[LAYERS];
        for (int l = 0; l < LAYERS; l++)
            b[l] = dgm_exec_blocks(s->x, BLOCKS, heads, dk, dv, cb_side_precision(s, p));
        dgm_mat from = cb_put(s, kv, total, made ? COLS : width * LAYERS);
        dgm_linear *layer = NULL;
        if (made) {
            cb_load(c, s, &part, 1, cb_side_precision(s, p), &layer);
            dgm_mat in = from;
            from = dgm_exec_mat(s->x, total, width * LAYERS);
            dgm_op_linear(s->x, from, in, layer, DGM_ACT_NONE, NULL);
        }
        dgm_op_blocks_put(s->x, b, LAYERS, from, spans, SOURCES);
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
        for (int i = 0; i < rows; i++) {
            const dgm_mark mark = dgm_exec_mark(s->x);
            dgm_mat alone = cb_room(s, 1, heads * dv);
            const dgm_paths *one = dgm_op_paths(s->x, 1, first + i, n + i, NULL, 0);
            dgm_op_attend_blocks(s->x, alone, dgm_mat_rows(queries, i, 1), &b[1], scale, one, NULL);
            cb_same_row(c, s, dgm_mat_rows(out, i, 1), alone);
            dgm_exec_reset(s->x, mark);
        }
        if (made) dgm_linear_free(s->backend, &layer);
    }
    cb_compare(c, made ? CB_PRODUCT : CB_ROUNDED, attend_bound(p) + (made ? 4 * cb_product_bound(p, COLS) : 0));
}

void check_attend_blocks(cb *c)
{
    EACH_PRECISION(c, p)
    for (int round = 0; round < ROUNDS; round++) run_blocks(c, (dgm_precision)p, round);
}
