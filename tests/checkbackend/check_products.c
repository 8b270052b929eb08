// SPDX-License-Identifier: MIT
// checkbackend: weights and products in every precision that both devices have.
#include <string.h>

#include "checkbackend/checkbackend.h"

enum { ROUNDS = 10 };

static const dgm_tensor_type stored[] = {DGM_TYPE_F32, DGM_TYPE_I8};

#define EACH_PRECISION(c, p)                                                                       \
    for (int p = 0; p < DGM_PRECISION_COUNT; p++)                                                  \
        if ((c)->precisions & 1u << p)

static bool all_precisions_are_refused(cb *c, cb_side *s, const dgm_linear_part *part)
{
    const unsigned has = dgm_backend_properties(s->backend)->precisions;
    bool refused = true;
    for (int p = 0; p < DGM_PRECISION_COUNT; p++) {
        dgm_linear *l = NULL;
        dgm_error err = {{0}};
        if (has & 1u << p) continue;
        const dgm_status st = dgm_linear_load(s->backend, part, 1, (dgm_precision)p, &l, &err);
        refused &= st == DGM_ERR_UNSUPPORTED && !l && strstr(err.text, dgm_precision_names[p]);
    }
    (void)c;
    return refused;
}

void check_weights(cb *c)
{
    cb_begin(c, "two parts");
    cb_tensor a, b;
    cb_matrix(c, &a, DGM_TYPE_F32, 33, 21);
    cb_matrix(c, &b, DGM_TYPE_I8, 5, 21);
    const dgm_linear_part parts[] = {{.weight = &a.t}, {.weight = &b.t}};
    CB_BOTH(c, s)
    {
        EACH_PRECISION(c, p)
        {
            dgm_linear *l = NULL;
            cb_load(c, s, parts, 2, (dgm_precision)p, &l);
            if (dgm_linear_rows(l) != 38 || dgm_linear_cols(l) != 21) cb_fail(c, "a bad shape");
            if (dgm_linear_bytes(l) < 38 * 21) cb_fail(c, "%zu bytes", dgm_linear_bytes(l));
            if (dgm_linear_tensor(l, 0) != &a.t || dgm_linear_tensor(l, 1) != &b.t ||
                dgm_linear_tensor(l, 2))
                cb_fail(c, "other tensors than it was made of");
            dgm_linear_free(s->backend, &l);
            if (l) cb_fail(c, "a layer that was freed is still there");
        }
        if (!all_precisions_are_refused(c, s, parts)) cb_fail(c, "a precision that it does not have");
    }
}

static void run_linear(cb *c, dgm_precision p, int round)
{
    const int rows = round == 0 ? 1 : round == 1 ? 300 : cb_between(c, 1, 40);
    const int n = cb_between(c, 1, 200), k = round == 2 ? 1030 : cb_between(c, 1, 200);
    const bool bias = round % 2, residual = round % 3 == 0, fixed = round % 5 == 4;
    const dgm_act act = (dgm_act)cb_below(c, DGM_ACT_COUNT);
    cb_begin(c, "%s, %d x %d -> %d, bias %d, residual %d, static %d, function %d",
             dgm_precision_names[p], rows, k, n, bias, residual, fixed, (int)act);
    cb_tensor w, v;
    cb_matrix(c, &w, stored[round % 2], n, k);
    cb_matrix(c, &v, stored[cb_below(c, 2)], 7, k);
    const float *b = cb_floats(c, (size_t)n, 1), *x = cb_floats(c, (size_t)rows * (size_t)k, 1);
    const float *r = cb_floats(c, (size_t)rows * (size_t)(n + 7), 1);
    const dgm_linear_part parts[] = {{.weight = &w.t, .bias = bias ? b : NULL, .input_scale = 0.011f},
                                     {.weight = &v.t, .input_scale = 0.009f}};
    CB_BOTH(c, s)
    {
        dgm_linear *l = NULL;
        dgm_backend_static(s->backend, fixed);
        cb_load(c, s, parts, 2, p, &l);
        dgm_backend_static(s->backend, false);
        dgm_mat in = cb_put(s, x, rows, k), y = cb_room(s, rows, n + 7);
        dgm_mat add = cb_put(s, r, rows, n + 7);
        dgm_op_linear(s->x, y, in, l, act, residual ? &add : NULL);
        cb_keep(c, s, y);
        dgm_mat last = dgm_mat_rows(add, rows - 1, 1), alone = cb_room(s, 1, n + 7);
        dgm_op_linear(s->x, alone, dgm_mat_rows(in, rows - 1, 1), l, act, residual ? &last : NULL);
        cb_same_row(c, s, dgm_mat_rows(y, rows - 1, 1), alone);
        dgm_op_linear(s->x, add, in, l, DGM_ACT_NONE, &add); // onto the residual itself
        cb_keep(c, s, add);
        dgm_linear_free(s->backend, &l);
    }
    cb_compare(c, cb_product_class(p), cb_product_bound(p, k));
}

// A large layer of i8, which a device may multiply as f16: then rows are not rounded to 8 bits.
static void run_large_i8(cb *c, dgm_tensor_type type)
{
    enum { LARGE_ROWS = 20, N = 260, K = 300 };
    cb_begin(c, "i8, %d x %d -> %d", LARGE_ROWS, K, N);
    cb_tensor w;
    cb_matrix(c, &w, type, N, K);
    const float *x = cb_floats(c, LARGE_ROWS * K, 1);
    const dgm_linear_part part = {.weight = &w.t};
    CB_BOTH(c, s)
    {
        dgm_linear *l = NULL;
        cb_load(c, s, &part, 1, DGM_PRECISION_I8, &l);
        dgm_mat in = cb_put(s, x, LARGE_ROWS, K), y = cb_room(s, LARGE_ROWS, N), alone = cb_room(s, 1, N);
        dgm_op_linear(s->x, y, in, l, DGM_ACT_NONE, NULL);
        cb_keep(c, s, y);
        dgm_op_linear(s->x, alone, dgm_mat_rows(in, 3, 1), l, DGM_ACT_NONE, NULL);
        cb_same_row(c, s, dgm_mat_rows(y, 3, 1), alone);
        dgm_linear_free(s->backend, &l);
    }
    bool as_f16 = false;
    CB_BOTH(c, s) as_f16 |= dgm_backend_properties(s->backend)->i8_as_f16;
    const dgm_precision p = DGM_PRECISION_I8;
    cb_compare(c, as_f16 ? CB_PRODUCT : cb_product_class(p), as_f16 ? 1.0 / 127 : cb_product_bound(p, K));
}

// Rows that were made just before, as a model has them, so many and of such widths that every way to multiply is
// taken; one of them alone has the same bits.
static void run_made_rows(cb *c, dgm_precision p, int round)
{
    static const int shapes[][3] = {{300, 64, 200}, {200, 96, 136}, {131, 544, 130}, {65, 32, 700}, {270, 160, 64}};
    const int rows = shapes[round][0], k = shapes[round][1], n = shapes[round][2];
    cb_begin(c, "%s, %d x %d -> %d, rows made before", dgm_precision_names[p], rows, k, n);
    cb_tensor w;
    cb_matrix(c, &w, DGM_TYPE_F32, n, k);
    const float *b = cb_floats(c, (size_t)n, 1), *x = cb_floats(c, (size_t)rows * (size_t)k, 1);
    const float *g = cb_floats(c, (size_t)k, 1), *r = cb_floats(c, (size_t)rows * (size_t)n, 1);
    const dgm_linear_part part = {.weight = &w.t, .bias = round % 2 ? b : NULL, .input_scale = 0.011f};
    CB_BOTH(c, s)
    {
        dgm_linear *l = NULL;
        cb_load(c, s, &part, 1, p, &l);
        dgm_vector *gamma = cb_vector(c, s, g, 1, k);
        dgm_mat in = cb_put(s, x, rows, k), made = cb_room(s, rows, k), y = cb_room(s, rows, n);
        dgm_mat add = cb_put(s, r, rows, n), alone = cb_room(s, 1, n), last = dgm_mat_rows(add, rows - 1, 1);
        dgm_op_norm(s->x, made, in, gamma, NULL, 1e-5f);
        dgm_op_linear(s->x, y, made, l, DGM_ACT_RELU, round % 3 ? &add : NULL);
        cb_keep(c, s, y);
        dgm_op_norm(s->x, made, in, gamma, NULL, 1e-5f);
        dgm_op_linear(s->x, alone, dgm_mat_rows(made, rows - 1, 1), l, DGM_ACT_RELU, round % 3 ? &last : NULL);
        cb_same_row(c, s, dgm_mat_rows(y, rows - 1, 1), alone);
        dgm_vector_free(s->backend, &gamma);
        dgm_linear_free(s->backend, &l);
    }
    cb_compare(c, cb_product_class(p), 6 * cb_product_bound(p, k)); // norms have numbers beyond 1
}

static void norm_alone(cb_side *s, dgm_mat rows, const dgm_norm *how)
{
    if (how->rms)
        dgm_op_rms_norm(s->x, rows, rows, how->gamma, how->eps);
    else
        dgm_op_norm(s->x, rows, rows, how->gamma, how->beta, how->eps);
}

// A norm whose rows a layer reads next, as one layer and as the first of two: the same bits as one operation after the
// other. Rows are normalised in place, sums too, and more of them than a device may have room for.
static void run_norm_for(cb *c, dgm_precision p, int round)
{
    static const int shapes[][2] = {{1, 64}, {7, 96}, {270, 160}, {37, 544}, {4100, 300}};
    const int rows = shapes[round][0], k = shapes[round][1], n = 80, many = rows * k;
    cb_begin(c, "%s, norm of %d x %d for a layer", dgm_precision_names[p], rows, k);
    cb_tensor v, w;
    cb_matrix(c, &v, DGM_TYPE_F32, n, k);
    cb_matrix(c, &w, DGM_TYPE_F32, k, n);
    const float *x = cb_floats(c, (size_t)many, 1), *a = cb_floats(c, (size_t)many, 1);
    const float *g = cb_floats(c, (size_t)k, 1), *b = cb_floats(c, (size_t)k, 1);
    const dgm_linear_part first = {.weight = &v.t, .input_scale = round % 2 ? 0.011f : 0};
    const dgm_linear_part second = {.weight = &w.t};
    CB_BOTH(c, s)
    {
        dgm_linear *l = NULL, *m = NULL;
        cb_load(c, s, &first, 1, p, &l);
        cb_load(c, s, &second, 1, p, &m);
        dgm_vector *gamma = cb_vector(c, s, g, 1, k), *beta = cb_vector(c, s, b, 1, k);
        const dgm_norm how = {gamma, round % 3 ? beta : NULL, 1e-5f, round % 3 == 1};
        dgm_mat one = cb_put(s, x, rows, k), two = cb_put(s, x, rows, k), add = cb_put(s, a, rows, k);
        dgm_mat y = cb_room(s, rows, n), z = cb_room(s, rows, n), inner = cb_room(s, rows, n);
        dgm_op_norm_for(s->x, one, one, round % 2 ? &add : NULL, &how, l);
        dgm_op_linear(s->x, y, one, l, DGM_ACT_RELU, NULL);
        if (round % 2) dgm_op_add(s->x, two, two, add);
        norm_alone(s, two, &how);
        dgm_op_linear(s->x, z, two, l, DGM_ACT_RELU, NULL);
        for (int i = 0; i < rows; i += rows / 3 + 1) {
            cb_same_row(c, s, dgm_mat_rows(one, i, 1), dgm_mat_rows(two, i, 1));
            cb_same_row(c, s, dgm_mat_rows(y, i, 1), dgm_mat_rows(z, i, 1));
        }
        cb_keep(c, s, y);
        dgm_mat made = cb_room(s, rows, k), plain = cb_room(s, rows, k);
        dgm_op_norm_for(s->x, one, one, NULL, &how, l);
        dgm_op_feed_forward(s->x, made, one, l, DGM_ACT_RELU, inner, m, &one);
        norm_alone(s, two, &how);
        dgm_op_feed_forward(s->x, plain, two, l, DGM_ACT_RELU, inner, m, &two);
        for (int i = 0; i < rows; i += rows / 3 + 1)
            cb_same_row(c, s, dgm_mat_rows(made, i, 1), dgm_mat_rows(plain, i, 1));
        dgm_op_add(s->x, one, one, add); // what was made of the rows is of no use for others
        dgm_op_linear(s->x, y, one, l, DGM_ACT_NONE, NULL);
        dgm_op_gather(s->x, two, one, NULL);
        dgm_op_linear(s->x, z, two, l, DGM_ACT_NONE, NULL);
        cb_same_row(c, s, dgm_mat_rows(y, rows - 1, 1), dgm_mat_rows(z, rows - 1, 1));
        dgm_vector_free(s->backend, &gamma);
        dgm_vector_free(s->backend, &beta);
        dgm_linear_free(s->backend, &l);
        dgm_linear_free(s->backend, &m);
    }
    cb_compare(c, cb_product_class(p), 60 * cb_product_bound(p, k)); // norms have numbers beyond 1
}

void check_norm_for(cb *c)
{
    EACH_PRECISION(c, p) for (int round = 0; round < 5; round++) run_norm_for(c, (dgm_precision)p, round);
}

void check_linear(cb *c)
{
    EACH_PRECISION(c, p)
    {
        for (int round = 0; round < ROUNDS; round++) run_linear(c, (dgm_precision)p, round);
        for (int round = 0; round < 5; round++) run_made_rows(c, (dgm_precision)p, round);
    }
    if (c->precisions & 1u << DGM_PRECISION_I8)
        for (int i = 0; i < 2; i++) run_large_i8(c, stored[i]);
}

static void run_feed_forward(cb *c, dgm_precision p, int round)
{
    const int rows = round == 0 ? 1 : round == 1 ? 270 : cb_between(c, 1, 40);
    const int d = cb_between(c, 1, 150), f = cb_between(c, 1, 300);
    const bool fixed = round % 2, residual = round % 3 == 0;
    cb_begin(c, "%s, %d x %d -> %d, residual %d, static %d", dgm_precision_names[p], rows, d, f,
             residual, fixed);
    cb_tensor v, w;
    cb_matrix(c, &v, stored[round % 2], f, d);
    cb_matrix(c, &w, DGM_TYPE_F32, d, f);
    const float *b = cb_floats(c, (size_t)f, 1), *x = cb_floats(c, (size_t)rows * (size_t)d, 1);
    const dgm_linear_part first = {.weight = &v.t, .bias = b, .input_scale = 1.1f};
    const dgm_linear_part second = {.weight = &w.t, .input_scale = 3.0f};
    CB_BOTH(c, s)
    {
        dgm_linear *in = NULL, *out = NULL;
        dgm_backend_static(s->backend, fixed);
        cb_load(c, s, &first, 1, p, &in);
        cb_load(c, s, &second, 1, p, &out);
        dgm_backend_static(s->backend, false);
        dgm_mat rows_in = cb_put(s, x, rows, d), y = cb_room(s, rows, d);
        dgm_op_feed_forward(s->x, y, rows_in, in, DGM_ACT_RELU, cb_room(s, rows, f), out,
                            residual ? &rows_in : NULL);
        cb_keep(c, s, y);
        dgm_mat last = dgm_mat_rows(rows_in, rows - 1, 1), alone = cb_room(s, 1, d);
        dgm_op_feed_forward(s->x, alone, last, in, DGM_ACT_RELU, cb_room(s, 1, f), out,
                            residual ? &last : NULL);
        cb_same_row(c, s, dgm_mat_rows(y, rows - 1, 1), alone);
        dgm_linear_free(s->backend, &in);
        dgm_linear_free(s->backend, &out);
    }
    // The second product multiplies sums of the first, which may be as large as d.
    cb_compare(c, cb_product_class(p), cb_product_bound(p, d) + cb_product_bound(p, f));
}

void check_feed_forward(cb *c)
{
    EACH_PRECISION(c, p)
    for (int round = 0; round < ROUNDS; round++) run_feed_forward(c, (dgm_precision)p, round);
}

// What is begun early gives the same bits: a second product reads what the first one made, or some of its rows. The
// third time a device knows what the second will read.
static void run_start(cb *c, dgm_precision p, int round)
{
    enum { TIMES = 3 };
    const int rows = cb_between(c, 2, 300), d = cb_between(c, 2, 90), f = cb_between(c, 2, 90);
    const int from = round % 2 ? rows / 2 : 0;
    cb_begin(c, "%s, %d x %d -> %d, read from row %d", dgm_precision_names[p], rows, d, f, from);
    cb_tensor v, w;
    cb_matrix(c, &v, DGM_TYPE_F32, f, d);
    cb_matrix(c, &w, DGM_TYPE_F32, d, f);
    const float *x = cb_floats(c, (size_t)rows * (size_t)d, 1);
    const dgm_linear_part first = {.weight = &v.t}, second = {.weight = &w.t};
    CB_BOTH(c, s)
    {
        dgm_linear *in = NULL, *out = NULL;
        cb_load(c, s, &first, 1, p, &in);
        cb_load(c, s, &second, 1, p, &out);
        const dgm_mat rows_in = cb_put(s, x, rows, d), inner = cb_room(s, rows, f);
        const dgm_mat y = cb_room(s, rows - from, d), once = cb_room(s, rows - from, d);
        for (int i = 0; i < TIMES; i++) {
            dgm_op_linear(s->x, inner, rows_in, in, DGM_ACT_NONE, NULL);
            dgm_exec_start(s->x, rows);
            dgm_op_linear(s->x, y, dgm_mat_rows(inner, from, rows - from), out, DGM_ACT_NONE, NULL);
            cb_keep(c, s, y);
        }
        dgm_op_linear(s->x, inner, rows_in, in, DGM_ACT_NONE, NULL);
        dgm_op_linear(s->x, once, dgm_mat_rows(inner, from, rows - from), out, DGM_ACT_NONE, NULL);
        for (int i = 0; i < rows - from; i += 16)
            cb_same_row(c, s, dgm_mat_rows(once, i, 1), dgm_mat_rows(y, i, 1));
        dgm_linear_free(s->backend, &in);
        dgm_linear_free(s->backend, &out);
    }
    cb_compare(c, cb_product_class(p), cb_product_bound(p, d) + cb_product_bound(p, f));
}

void check_start(cb *c)
{
    EACH_PRECISION(c, p)
    for (int round = 0; round < ROUNDS; round++) run_start(c, (dgm_precision)p, round);
}

static void run_experts(cb *c, dgm_precision p, int round)
{
    enum { EXPERTS = 6 };
    const int rows = round == 0 ? 1 : round == 1 ? 150 : cb_between(c, 1, 40);
    const int d = cb_between(c, 2, 90), f = cb_between(c, 2, 90), top = 1 + round % 2;
    cb_begin(c, "%s, %d x %d -> %d, top %d", dgm_precision_names[p], rows, d, f, top);
    cb_tensor w[EXPERTS][2];
    dgm_expert_part parts[EXPERTS];
    for (int e = 0; e < EXPERTS; e++) {
        cb_matrix(c, &w[e][0], DGM_TYPE_F32, f, d);
        cb_matrix(c, &w[e][1], DGM_TYPE_F32, d, f);
        parts[e] = (dgm_expert_part){{.weight = &w[e][0].t, .bias = cb_floats(c, (size_t)f, 1)},
                                     {.weight = &w[e][1].t}};
    }
    const float *gate = cb_floats(c, EXPERTS * (size_t)d, 1), *bias = cb_floats(c, EXPERTS, 1);
    const float *x = cb_floats(c, (size_t)rows * (size_t)d, 1);
    CB_BOTH(c, s)
    {
        dgm_experts *e = NULL;
        dgm_error err;
        if (dgm_experts_load(s->backend, NULL, parts, EXPERTS, cb_side_precision(s, p), &e, &err) != DGM_OK) {
            cb_fail(c, "%s", err.text);
            return;
        }
        dgm_mixture how = {.top = top, .normalise = round % 3 == 0, .scale = 0.7f,
                           .act = DGM_ACT_RELU};
        dgm_vector *g = cb_vector(c, s, gate, EXPERTS, d), *gb = cb_vector(c, s, bias, 1, EXPERTS);
        how.gate = g;
        how.gate_bias = round % 2 ? gb : NULL;
        dgm_mat in = cb_put(s, x, rows, d), y = cb_room(s, rows, d);
        if (dgm_experts_bytes(s->backend, rows, d, EXPERTS).device == 0) cb_fail(c, "no scratch");
        dgm_op_experts(s->x, y, in, e, &how, cb_room(s, rows, f));
        cb_keep(c, s, y);
        dgm_mat alone = cb_room(s, 1, d);
        dgm_op_experts(s->x, alone, dgm_mat_rows(in, rows - 1, 1), e, &how, cb_room(s, 1, f));
        cb_same_row(c, s, dgm_mat_rows(y, rows - 1, 1), alone);
        dgm_experts_use use = {0};
        dgm_experts_count(e, &use);
        if (use.experts != EXPERTS || use.packed < 1 || use.packed > EXPERTS || !use.bytes)
            cb_fail(c, "%d of %d experts in use", use.packed, use.experts);
        dgm_experts_free(s->backend, &e);
        dgm_vector_free(s->backend, &g);
        dgm_vector_free(s->backend, &gb);
    }
    cb_compare(c, cb_product_class(p), cb_product_bound(p, d) + cb_product_bound(p, f));
}

void check_experts(cb *c)
{
    EACH_PRECISION(c, p)
    for (int round = 0; round < ROUNDS; round++) run_experts(c, (dgm_precision)p, round);
}
