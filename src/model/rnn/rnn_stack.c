// SPDX-License-Identifier: MIT
// Layers above the attentional cell, fully connected layers on the source (docs/internals/FORMAT.md, 2.5).
//
//   upper   x_l = cell_l([x_{l-1}; c], state_l), transitions behind it; residual: + x_{l-1} from some
//           layer on
//   fc      h1 = relu(W1 x); h2 = relu(W2 h1); h3 = relu(W3 h2 + h1); h4 = relu(W4 h3); ...
//   top     tanh(WT h_n), or GRU(its state, h_n)
//
// A relu is clipped to [0, 10]; the skip of an odd layer is added before it. Siblings share their
// parent's state in every recurrent layer, not only in the first: the products with it are made for
// the distinct parents of a step and handed out to their rows.
#include <stdio.h>

#include "base/mem.h"
#include "model/rnn/rnn_private.h"

// ---- loading ----------------------------------------------------------------------------------

// A matrix without a bias.
static dgm_status load_linear(dgm_model *m, const char *name, int rows, int cols, dgm_linear **out,
                              dgm_error *err)
{
    dgm_linear_part part = {0};
    char full[96];
    snprintf(full, sizeof full, "%s.weight", name);
    DGM_TRY(dgm_gguf_matrix(m->file, full, rows, cols, DGM_REQUIRED, &part.weight, err));
    return dgm_model_linear(m, &part, 1, out, err);
}

static dgm_status load_cell(dgm_model *m, const char *name, int input, const rnn_chain *how,
                            rnn_cell *c, dgm_error *err)
{
    char full[64];
    snprintf(full, sizeof full, "%s.x", name);
    const rnn_matrix x = {full, how->gates, true, how->norm};
    DGM_TRY(dgm_rnn_load_product(m, &x, 1, input, &c->x, err));
    snprintf(full, sizeof full, "%s.h", name);
    const rnn_matrix h = {full, how->gates, true, how->norm};
    return dgm_rnn_load_product(m, &h, 1, how->hidden, &c->h, err);
}

static dgm_status load_upper(dgm_model *m, rnn *r, dgm_error *err)
{
    if (r->upper_layers == 0) return DGM_OK;
    r->upper = dgm_calloc((size_t)r->upper_layers, sizeof *r->upper);
    if (!r->upper) return dgm_no_memory(err);
    const int input = r->hidden + (r->upper_context ? r->width : 0);
    const rnn_chain how = {r->cell_gates * r->hidden, r->hidden, r->cell_norm, r->cell_lstm};
    for (int i = 0; i < r->upper_layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "dec.upper.%d", i);
        DGM_TRY(load_cell(m, name, input, &how, &r->upper[i], err));
        DGM_TRY(
            dgm_rnn_transitions_load(m, name, &how, r->upper_transitions, &r->upper[i].next, err));
    }
    return DGM_OK;
}

static dgm_status load_fc(dgm_model *m, const char *side, int input, rnn_fc *fc, dgm_error *err)
{
    if (fc->count == 0) return DGM_OK;
    fc->layers = dgm_calloc((size_t)fc->count, sizeof(dgm_linear *));
    if (!fc->layers) return dgm_no_memory(err);
    for (int i = 0; i < fc->count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.fc.%d", side, i);
        DGM_TRY(load_linear(m, name, fc->width, i == 0 ? input : fc->width, &fc->layers[i], err));
    }
    return DGM_OK;
}

dgm_status dgm_rnn_source_load(dgm_model *m, rnn *r, dgm_error *err)
{
    if (r->source_fc.count == 0) return DGM_OK;
    DGM_TRY(load_fc(m, "enc", r->width, &r->source_fc, err));
    return load_linear(m, "enc.fc.top", r->width, r->source_fc.width, &r->source_fc.top, err);
}

dgm_status dgm_rnn_stack_load(dgm_model *m, rnn *r, dgm_error *err)
{
    DGM_TRY(load_upper(m, r, err));
    DGM_TRY(load_fc(m, "dec", r->hidden, &r->fc, err));
    int below = r->fc.count ? r->fc.width : r->hidden;
    if (r->top == TOP_TANH)
        DGM_TRY(load_linear(m, "dec.top", r->top_size, below, &r->top_tanh, err));
    const rnn_chain top = {3 * r->top_size, r->top_size, NORM_NONE, false};
    if (r->top == TOP_GRU) DGM_TRY(load_cell(m, "dec.top", below, &top, &r->top_cell, err));
    return DGM_OK;
}

static void free_cell(dgm_backend *b, rnn_cell *c)
{
    dgm_rnn_product_free(b, &c->x);
    dgm_rnn_product_free(b, &c->h);
    dgm_rnn_transitions_free(b, &c->next);
}

static void free_fc(dgm_backend *b, rnn_fc *fc)
{
    for (int i = 0; fc->layers && i < fc->count; i++) dgm_linear_free(b, &fc->layers[i]);
    dgm_linear_free(b, &fc->top);
    dgm_free(fc->layers);
    fc->layers = NULL;
}

void dgm_rnn_stack_unload(dgm_model *m, rnn *r)
{
    dgm_backend *b = m->backend;
    for (int i = 0; r->upper && i < r->upper_layers; i++) free_cell(b, &r->upper[i]);
    dgm_free(r->upper);
    r->upper = NULL;
    free_cell(b, &r->top_cell);
    dgm_linear_free(b, &r->top_tanh);
    free_fc(b, &r->fc);
    free_fc(b, &r->source_fc);
}

// ---- fully connected layers -------------------------------------------------------------------

enum { TURNS = 3 }; // the input, the skip and the output of a layer

size_t dgm_rnn_fc_scratch(const dgm_backend *b, const rnn_fc *fc, int rows, int output)
{
    return TURNS * dgm_exec_mat_bytes(b, rows, fc->width) + dgm_exec_mat_bytes(b, rows, output);
}

dgm_mat dgm_rnn_fc(dgm_exec *e, const rnn_fc *fc, dgm_mat x, dgm_mat out)
{
    dgm_mat turns[TURNS], skip = x;
    for (int i = 0; i < TURNS; i++) turns[i] = dgm_exec_mat(e, x.rows, fc->width);
    // odd layers (i even) take turns 0 and 2, which hold the skips; even layers have turn 1
    for (int i = 0; i < fc->count; i++) {
        dgm_mat y = i % 2 ? turns[1] : turns[i % 4];
        bool skips = i % 2 == 0 && i > 0;
        dgm_op_linear(e, y, x, fc->layers[i], skips ? DGM_ACT_NONE : DGM_ACT_RELU10,
                      skips ? &skip : NULL);
        if (skips) dgm_op_act(e, y, y, DGM_ACT_RELU10);
        if (i % 2 == 0) skip = y;
        x = y;
    }
    if (!fc->top) return x;
    dgm_op_linear(e, out, x, fc->top, DGM_ACT_NONE, NULL);
    dgm_op_act(e, out, out, DGM_ACT_TANH);
    return out;
}

// ---- above the decoder's cell -----------------------------------------------------------------

size_t dgm_rnn_stack_scratch(const dgm_model *m, int rows)
{
    const rnn *r = m->weights;
    const dgm_backend *b = m->backend;
    int gates = r->cell_gates * r->hidden;
    size_t upper = 3 * dgm_exec_mat_bytes(b, rows, gates) +
                   dgm_exec_mat_bytes(b, rows, r->hidden + r->width) +
                   2 * dgm_exec_mat_bytes(b, rows, r->hidden);
    return (r->upper_layers ? upper : 0) + dgm_rnn_fc_scratch(b, &r->fc, rows, 0) +
           3 * dgm_exec_mat_bytes(b, rows, 3 * r->top_size) +
           dgm_exec_mat_bytes(b, rows, r->top_size);
}

// Gates of the parents' states in columns first .. of a row's state, row by row.
static void parent_gates(rnn_step *c, const rnn_product *w, int first, dgm_mat made, dgm_mat out)
{
    dgm_exec *e = c->s->exec;
    dgm_mat states = dgm_mat_cols(c->parent, first, w->cols);
    dgm_rnn_multiply(e, made, states, w, DGM_ACT_NONE, NULL);
    dgm_op_gather(e, out, made, c->which);
    c->rs->counts.state_rows += (uint64_t)c->count;
    c->rs->counts.state_products += (uint64_t)c->distinct;
}

// The parents' states in columns first .. first + cols, row by row, into the same columns of next:
// a cell may then overwrite its own state.
static dgm_mat own_state(rnn_step *c, int first, int cols)
{
    dgm_mat next = dgm_mat_cols(c->next, first, cols);
    dgm_op_gather(c->s->exec, next, dgm_mat_cols(c->parent, first, cols), c->which);
    return next;
}

static dgm_mat run_upper(rnn_step *c, dgm_mat below)
{
    const rnn *r = c->r;
    dgm_exec *e = c->s->exec;
    int h = r->hidden, gates = r->cell_gates * h, width = r->width;
    dgm_mat gx = dgm_exec_mat(e, c->count, gates), gh = dgm_exec_mat(e, c->count, gates);
    dgm_mat made = dgm_exec_mat(e, c->distinct, gates);
    dgm_mat joined = dgm_exec_mat(e, c->count, h + width);
    dgm_mat turns[2] = {dgm_exec_mat(e, c->count, h), dgm_exec_mat(e, c->count, h)};
    dgm_mat source = dgm_mat_cols(c->summed, c->summed.cols - width, width);
    if (r->upper_context) dgm_op_gather(e, dgm_mat_cols(joined, h, width), source, NULL);
    for (int i = 0; i < r->upper_layers; i++) {
        int first = (i + 1) * r->bottom_width;
        dgm_mat in = below, next = own_state(c, first, r->bottom_width);
        if (r->upper_context) {
            dgm_op_gather(e, dgm_mat_cols(joined, 0, h), below, NULL);
            in = joined;
        }
        dgm_rnn_multiply(e, gx, in, &r->upper[i].x, DGM_ACT_NONE, NULL);
        parent_gates(c, &r->upper[i].h, first, made, gh);
        dgm_rnn_cell(c, r->cell_lstm, next, next, gx, gh);
        dgm_rnn_turn_over(c, &r->upper[i].next, next, gx, gh);
        dgm_mat out = dgm_mat_cols(next, 0, h);
        if (r->upper_residual && i >= r->upper_residual_from) {
            dgm_op_add(e, turns[i % 2], out, below);
            out = turns[i % 2];
        }
        below = out;
    }
    return below;
}

static dgm_mat run_top(rnn_step *c, dgm_mat below)
{
    const rnn *r = c->r;
    dgm_exec *e = c->s->exec;
    int t = r->top_size, first = r->state_width - t;
    if (r->top == TOP_TANH) {
        dgm_mat out = dgm_exec_mat(e, c->count, t);
        dgm_op_linear(e, out, below, r->top_tanh, DGM_ACT_NONE, NULL);
        dgm_op_act(e, out, out, DGM_ACT_TANH);
        c->rs->counts.activations += (uint64_t)c->count * (uint64_t)t;
        return out;
    }
    dgm_mat gx = dgm_exec_mat(e, c->count, 3 * t), gh = dgm_exec_mat(e, c->count, 3 * t);
    dgm_mat made = dgm_exec_mat(e, c->distinct, 3 * t), next = own_state(c, first, t);
    dgm_rnn_multiply(e, gx, below, &r->top_cell.x, DGM_ACT_NONE, NULL);
    parent_gates(c, &r->top_cell.h, first, made, gh);
    dgm_rnn_cell(c, false, next, next, gx, gh);
    return next;
}

dgm_mat dgm_rnn_stack(rnn_step *c)
{
    const rnn *r = c->r;
    dgm_mat h = dgm_mat_cols(c->next, 0, r->hidden);
    if (r->upper_layers) h = run_upper(c, h);
    if (r->fc.count) h = dgm_rnn_fc(c->s->exec, &r->fc, h, h);
    if (r->top != TOP_NONE) h = run_top(c, h);
    return h;
}
