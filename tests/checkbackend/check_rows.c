// SPDX-License-Identifier: MIT
// checkbackend: operations that work row by row, and the memory they work in.
#include <math.h>
#include <string.h>

#include "checkbackend/checkbackend.h"

enum { ROUNDS = 12 };

// One row, many rows, odd widths.
static int some_rows(cb *c, int round)
{
    return round == 0 ? 1 : round == 1 ? 300 : cb_between(c, 1, 40);
}

static int some_cols(cb *c, int round)
{
    return round == 0 ? 1 : round == 2 ? 1024 : cb_between(c, 2, 300);
}

void check_device(cb *c)
{
    char text[512];
    CB_BOTH(c, s)
    {
        const dgm_backend_props *p = dgm_backend_properties(s->backend);
        if (!p->name[0] || !p->title[0] || !p->memory || !p->precisions) cb_fail(c, "no properties");
        if (p->encode_tokens < 1 || p->encode_tokens_recurrent < 1 || p->gather_max < 1)
            cb_fail(c, "%s: sizes below 1", p->name);
        if (!dgm_backend_describe(s->backend, text, sizeof text)[0]) cb_fail(c, "no description");
        // Nothing is written behind the end of a buffer that is too small for what the layers are multiplied by.
        memset(text, 'x', sizeof text);
        if (dgm_backend_variants(s->backend, text, 8) != text || !memchr(text, 0, 8) || text[8] != 'x')
            cb_fail(c, "%s: variants of products do not end", p->name);
        dgm_backend *again = NULL;
        dgm_error err;
        if (dgm_backend_open(&again, p->name, NULL, &err) != DGM_OK) cb_fail(c, "%s", err.text);
        dgm_backend_close(&again);
        if (again) cb_fail(c, "%s: not closed", p->name);
    }
}

// Blocks lie apart from each other, sizes are as they were said, and a full arena says so.
void check_memory(cb *c)
{
    CB_BOTH(c, s)
    {
        enum { ROWS = 5, COLS = 37, COUNT = 3, HEADS = 2, DK = 6, DV = 5 };
        dgm_exec *x = NULL;
        dgm_error err;
        size_t need = dgm_exec_mat_bytes(s->backend, ROWS, COLS);
        for (int p = 0; p < DGM_PRECISION_COUNT; p++) {
            if (!(c->precisions & 1u << p)) continue;
            need += dgm_exec_cache_bytes(s->backend, ROWS, COLS, (dgm_precision)p) +
                    dgm_exec_blocks_bytes(s->backend, COUNT, HEADS, DK, DV, (dgm_precision)p);
        }
        if (dgm_exec_open(s->backend, (dgm_bytes){.device = need}, &x, &err) != DGM_OK) {
            cb_fail(c, "%s", err.text);
            return;
        }
        const dgm_mark mark = dgm_exec_mark(x);
        dgm_mat m = dgm_exec_mat(x, ROWS, COLS);
        if (!m.data || m.rows != ROWS || m.cols != COLS || m.stride < COLS) cb_fail(c, "a bad view");
        for (int p = 0; p < DGM_PRECISION_COUNT; p++) {
            if (!(c->precisions & 1u << p)) continue;
            dgm_mat cache = dgm_exec_cache(x, ROWS, COLS, (dgm_precision)p);
            dgm_blocks b = dgm_exec_blocks(x, COUNT, HEADS, DK, DV, (dgm_precision)p);
            if (!cache.data || cache.elem < 1 || !b.data || b.heads != HEADS)
                cb_fail(c, "no room in what was said to be enough");
        }
        dgm_exec_reset(x, mark);
        if (dgm_exec_mat(x, ROWS, COLS).data != m.data) cb_fail(c, "a reset arena begins elsewhere");
        if (dgm_exec_mat(x, 1 << 24, 1 << 10).data) cb_fail(c, "more memory than there is");
        if (dgm_exec_peak(x).device == 0) cb_fail(c, "nothing was used");
        dgm_exec_close(&x);
    }
}

// A device that measures counts nothing before there is work and more with every piece of it, once for all workers.
static void check_clock_of(cb *c, cb_side *s, const float *numbers, int rows, int cols)
{
    dgm_exec *x[2] = {NULL, NULL};
    dgm_error err;
    const dgm_bytes bytes = {1 << 16, 2 * dgm_exec_mat_bytes(s->backend, rows, cols)};
    double before = dgm_backend_busy(s->backend);
    for (int round = 0; round < 4; round++) {
        const int i = round % 2;
        if (!x[i] && (dgm_exec_open(s->backend, bytes, &x[i], &err) != DGM_OK ||
                      dgm_exec_clock(x[i], &err) != DGM_OK)) {
            cb_fail(c, "%s", err.text);
            break;
        }
        const dgm_mat m = dgm_exec_mat(x[i], rows, cols);
        dgm_op_write(x[i], m, numbers);
        dgm_exec_sync(x[i]);
        const double now = dgm_backend_busy(s->backend);
        if ((before < 0) != (now < 0) || (now >= 0 && !(now > before && now < 600)))
            cb_fail(c, "busy for %g s, then for %g", before, now);
        before = now;
    }
    for (int i = 0; i < 2; i++) dgm_exec_close(&x[i]);
}

void check_clock(cb *c)
{
    enum { MANY = 64, COLS = 96 };
    cb_begin(c, "%d x %d", MANY, COLS);
    const float *numbers = cb_floats(c, (size_t)MANY * COLS, 1);
    CB_BOTH(c, s) check_clock_of(c, s, numbers, MANY, COLS);
}

void check_copies(cb *c)
{
    for (int round = 0; round < ROUNDS; round++) {
        const int rows = some_rows(c, round), cols = some_cols(c, round), more = rows + 7;
        cb_begin(c, "%d x %d", rows, cols);
        float *x = cb_floats(c, (size_t)more * (size_t)cols, 3);
        int32_t *from = cb_ints(c, (size_t)rows, more), *to = cb_ints(c, (size_t)rows, 1);
        int32_t *order = cb_ints(c, (size_t)rows, 1);
        for (int i = 0; i < rows; i++) {
            to[i] = more - 1 - i; // rows of a scatter differ
            order[i] = rows - 1 - i;
        }
        CB_BOTH(c, s)
        {
            dgm_mat in = cb_put(s, x, more, cols), y = cb_room(s, rows, cols);
            dgm_mat wide = cb_room(s, more, cols + 3), part = dgm_mat_cols(wide, 2, cols);
            dgm_op_gather(s->x, y, in, from);
            cb_keep(c, s, y);
            dgm_op_gather(s->x, dgm_mat_rows(part, 1, rows), in, NULL);
            cb_keep(c, s, wide);
            dgm_op_scatter(s->x, part, y, to);
            cb_keep(c, s, wide);
            dgm_op_copy(s->x, y, order, in, from, rows);
            cb_keep(c, s, y);
            dgm_op_zero(s->x, dgm_mat_rows(part, 1, rows));
            cb_keep(c, s, wide);
            const dgm_mat both[] = {part, dgm_mat_cols(in, 0, (cols + 1) / 2)};
            dgm_op_zero_rows(s->x, both, 2, to, rows / 2);
            cb_keep(c, s, wide);
            cb_keep(c, s, in);
            in = cb_put(s, x, more, cols);
            float *back = cb_floats(c, (size_t)more * (size_t)cols, 0);
            dgm_op_read(s->x, back, in);
            if (memcmp(back, x, (size_t)more * (size_t)cols * sizeof *x) != 0)
                cb_fail(c, "what was written is not what is read");
        }
        cb_compare(c, CB_EXACT, 0);
    }
}

void check_sums(cb *c)
{
    for (int round = 0; round < ROUNDS; round++) {
        const int rows = some_rows(c, round), cols = some_cols(c, round);
        const size_t n = (size_t)rows * (size_t)cols;
        cb_begin(c, "%d x %d", rows, cols);
        const float *a = cb_floats(c, n, 2), *b = cb_floats(c, n, 2), *v = cb_floats(c, n, 1);
        const float *wide = cb_floats(c, 2 * n, 2), *factor = cb_floats(c, (size_t)rows, 2);
        CB_BOTH(c, s)
        {
            dgm_vector *vector = cb_vector(c, s, v, 1, cols);
            dgm_mat x = cb_put(s, a, rows, cols), y = cb_put(s, b, rows, cols);
            dgm_mat z = cb_room(s, rows, cols);
            dgm_op_add(s->x, z, x, y);
            cb_keep(c, s, z);
            dgm_op_add(s->x, y, x, y); // in place
            cb_keep(c, s, y);
            dgm_op_add_vector(s->x, z, x, vector);
            cb_keep(c, s, z);
            dgm_op_maxout(s->x, z, cb_put(s, wide, rows, 2 * cols));
            cb_keep(c, s, z);
            dgm_op_scale(s->x, x, x, factor);
            cb_keep(c, s, x);
            dgm_op_gated(s->x, z, x, y, DGM_ACT_RELU);
            cb_keep(c, s, z);
            dgm_vector_free(s->backend, &vector);
        }
        cb_compare(c, CB_EXACT, 0);
    }
}

void check_mean(cb *c)
{
    for (int round = 0; round < ROUNDS; round++) {
        const int rows = cb_between(c, 1, 20), cols = some_cols(c, round);
        cb_begin(c, "%d x %d", rows, cols);
        const float *x = cb_floats(c, (size_t)rows * 9 * (size_t)cols, 2);
        int32_t *first = cb_ints(c, (size_t)rows, 1), *count = cb_ints(c, (size_t)rows, 10);
        for (int i = 0; i < rows; i++) first[i] = 9 * i; // some have none: zeros
        CB_BOTH(c, s)
        {
            dgm_mat y = cb_room(s, rows, cols);
            dgm_op_mean(s->x, y, cb_put(s, x, 9 * rows, cols), first, count);
            cb_keep(c, s, y);
        }
        cb_compare(c, CB_ROUNDED, 1e-6);
    }
}

void check_norm(cb *c)
{
    for (int round = 0; round < ROUNDS; round++) {
        const int rows = some_rows(c, round), cols = some_cols(c, round);
        cb_begin(c, "%d x %d", rows, cols);
        const float *x = cb_floats(c, (size_t)rows * (size_t)cols, 5);
        const float *g = cb_floats(c, (size_t)cols, 1), *b = cb_floats(c, (size_t)cols, 1);
        CB_BOTH(c, s)
        {
            dgm_vector *gamma = cb_vector(c, s, g, 1, cols), *beta = cb_vector(c, s, b, 1, cols);
            dgm_mat in = cb_put(s, x, rows, cols), y = cb_room(s, rows, cols);
            dgm_op_norm(s->x, y, in, gamma, beta, 1e-5f);
            cb_keep(c, s, y);
            dgm_op_norm(s->x, in, in, gamma, NULL, 1e-6f); // in place, without beta
            cb_keep(c, s, in);
            dgm_op_rms_norm(s->x, y, in, gamma, 1e-6f);
            cb_keep(c, s, y);
            dgm_op_rms_norm(s->x, in, in, gamma, 1e-5f);
            cb_keep(c, s, in);
            dgm_vector_free(s->backend, &gamma);
            dgm_vector_free(s->backend, &beta);
            if (gamma || beta) cb_fail(c, "a vector that was freed is still there");
        }
        cb_compare(c, CB_ROUNDED, 1e-4);
    }
}

void check_act(cb *c)
{
    for (int act = 0; act < DGM_ACT_COUNT; act++)
        for (int round = 0; round < 4; round++) {
            const int rows = some_rows(c, round), cols = some_cols(c, round);
            cb_begin(c, "function %d, %d x %d", act, rows, cols);
            const float *x = cb_floats(c, (size_t)rows * (size_t)cols, 12);
            CB_BOTH(c, s)
            {
                dgm_mat in = cb_put(s, x, rows, cols), y = cb_room(s, rows, cols);
                dgm_op_act(s->x, y, in, (dgm_act)act);
                cb_keep(c, s, y);
            }
            cb_compare(c, CB_ROUNDED, 1e-5);
        }
}

void check_embed(cb *c)
{
    static const dgm_tensor_type types[] = {DGM_TYPE_F32, DGM_TYPE_I8};
    for (int round = 0; round < ROUNDS; round++) {
        enum { WORDS = 57, POSITIONS = 20 };
        const int rows = some_rows(c, round), cols = some_cols(c, round);
        cb_begin(c, "%d x %d, type %d", rows, cols, round % 2);
        cb_tensor table;
        cb_matrix(c, &table, types[round % 2], WORDS, cols);
        int32_t *ids = cb_ints(c, (size_t)rows, WORDS + 1), *at = cb_ints(c, (size_t)rows, POSITIONS);
        for (int i = 0; i < rows; i++) ids[i]--; // -1: the start
        const float *first = cb_floats(c, (size_t)cols, 1);
        const float *where = cb_floats(c, (size_t)cols * POSITIONS, 1);
        CB_BOTH(c, s)
        {
            dgm_embedding *e = NULL;
            dgm_error err;
            if (dgm_embedding_load(s->backend, &table.t, &e, &err) != DGM_OK)
                cb_fail(c, "%s", err.text);
            dgm_vector *start = cb_vector(c, s, first, 1, cols);
            dgm_vector *positions = cb_vector(c, s, where, POSITIONS, cols);
            dgm_mat y = cb_room(s, rows, cols);
            dgm_op_embed(s->x, y, e, ids, sqrtf((float)cols), start, positions, at);
            cb_keep(c, s, y);
            dgm_op_embed(s->x, y, e, ids, 1, NULL, NULL, NULL);
            cb_keep(c, s, y);
            dgm_embedding_free(s->backend, &e);
            dgm_vector_free(s->backend, &start);
            dgm_vector_free(s->backend, &positions);
        }
        cb_compare(c, CB_ROUNDED, 1e-6);
    }
}

static void keep_gates(cb *c, cb_side *s, const float *x, int rows, int cols)
{
    dgm_mat state = cb_put(s, x, rows, cols), cell = cb_put(s, x + cols, rows, cols);
    dgm_mat gx = cb_put(s, x, rows, 4 * cols), gh = cb_put(s, x + 3, rows, 4 * cols);
    dgm_mat out = cb_room(s, rows, cols), cell_out = cb_room(s, rows, cols);
    dgm_op_gru(s->x, out, state, dgm_mat_cols(gx, 0, 3 * cols), dgm_mat_cols(gh, 0, 3 * cols));
    cb_keep(c, s, out);
    dgm_op_lstm(s->x, out, cell_out, cell, gx, gh);
    cb_keep(c, s, out);
    cb_keep(c, s, cell_out);
    dgm_op_ssru(s->x, out, cell_out, cell, state, dgm_mat_cols(gx, 0, cols));
    cb_keep(c, s, out);
    cb_keep(c, s, cell_out);
    dgm_op_gated_sum(s->x, out, state, cell, dgm_mat_cols(gx, 0, 2 * cols));
    cb_keep(c, s, out);
    gx = cb_put(s, x, rows, 4 * cols); // the sum has used it up
    dgm_op_gated_sum(s->x, cell, state, cell, dgm_mat_cols(gx, 0, 2 * cols));
    cb_keep(c, s, cell); // in place
    gx = cb_put(s, x, rows, 4 * cols);
    dgm_op_gru(s->x, state, state, dgm_mat_cols(gx, cols, 3 * cols), dgm_mat_cols(gh, 0, 3 * cols));
    cb_keep(c, s, state); // in place
}

void check_gates(cb *c)
{
    for (int how = DGM_ACTIVATIONS_POLYNOMIAL; how <= DGM_ACTIVATIONS_TABLE; how++)
        for (int round = 0; round < ROUNDS; round++) {
            const int rows = some_rows(c, round), cols = some_cols(c, round);
            cb_begin(c, "activations %d, %d x %d", how, rows, cols);
            const float *x = cb_floats(c, (size_t)(rows + 1) * (size_t)cols * 4 + 4, 4);
            CB_BOTH(c, s)
            {
                dgm_backend_activations(s->backend, (dgm_activations)how);
                keep_gates(c, s, x, rows, cols);
            }
            cb_compare(c, CB_ROUNDED, how == DGM_ACTIVATIONS_TABLE ? 1e-3 : 1e-5);
        }
    CB_BOTH(c, s) dgm_backend_activations(s->backend, DGM_ACTIVATIONS_POLYNOMIAL);
}
