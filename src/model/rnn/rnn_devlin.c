// SPDX-License-Identifier: MIT
// Decoder `devlin`: attention before the cell, product of two tanh vectors.
//
//   d_j = tanh(Wa h + Va x) . tanh(Ua s_j);  c = sum softmax(d)_j s_j
//   h' = GRU or LSTM: gates of the input Vx x + Uc c + b, gates of the state Wh h (no bias)
//
// word = [Va x | Vx x + b | read-out], old = [Wa h | Wh h], key_j = tanh(Ua s_j),
// value_j = [Uc s_j | read-out]. Siblings differ only in x, so Wa h and Wh h come from c->old.
#include "model/rnn/rnn_private.h"

static dgm_status load(dgm_model *m, rnn *r, dgm_error *err)
{
    int a = r->attention, g = r->cell_gates * r->hidden;
    const rnn_matrix word[] = {{"dec.att.x", a, false, NORM_NONE},
                               {"dec.gru.x", g, true, NORM_NONE},
                               {"dec.readout.x", r->readout_rows, true, NORM_NONE}};
    const rnn_matrix old[] = {{"dec.att.h", a, false, NORM_NONE},
                              {"dec.gru.h", g, false, NORM_NONE}};
    const rnn_matrix key = {"dec.att.key", a, false, NORM_NONE};
    const rnn_matrix gates = {"dec.gru.c", g, false, NORM_NONE};
    const rnn_matrix readout = {"dec.readout.c", r->readout_rows, false, NORM_NONE};
    DGM_TRY(dgm_rnn_load_product(m, word, 3, r->embed, &r->word, err));
    DGM_TRY(dgm_rnn_load_product(m, old, 2, r->hidden, &r->old, err));
    DGM_TRY(dgm_rnn_load_product(m, &key, 1, r->width, &r->key, err));
    return dgm_rnn_load_values(m, &gates, &readout, err);
}

static dgm_bytes scratch(const dgm_model *m, int rows)
{
    const rnn *r = m->weights;
    const int width = r->attention + r->cell_gates * r->hidden;
    return (dgm_bytes){.device = dgm_exec_mat_bytes(m->backend, rows, width)};
}

static void step(rnn_step *c)
{
    const rnn *r = c->r;
    dgm_exec *e = c->s->exec;
    int a = r->attention, g = r->cell_gates * r->hidden;
    dgm_mat own = dgm_exec_mat(e, c->count, a + g); // the parent's products, row by row
    dgm_op_gather(e, own, c->old, c->which);

    dgm_mat query = dgm_mat_cols(own, 0, a);
    dgm_op_add(e, query, query, dgm_mat_cols(c->word, 0, a));
    dgm_op_act(e, query, query, DGM_ACT_TANH);
    const dgm_heads one = {.count = 1, .dk = a, .dv = c->summed.cols, .scale = 1.0f};
    const dgm_align_list align = dgm_model_alignment(c->s, c->count, c->align);
    dgm_op_attend(e, c->summed, query, c->rs->keys[0], c->rs->values[0], &one,
                  dgm_rnn_sources(c, c->rows, c->count), &align);
    dgm_rnn_context(c, r->head, c->context, c->summed);
    c->rs->counts.activations += (uint64_t)c->count * (uint64_t)a;

    dgm_mat gx = dgm_mat_cols(c->word, a, g);
    dgm_op_add(e, gx, gx, dgm_mat_cols(c->context, 0, g));
    dgm_mat next = dgm_mat_cols(c->next, 0, r->bottom_width);
    dgm_rnn_cell(c, r->cell_lstm, next, c->state, gx, dgm_mat_cols(own, a, g));
}

const rnn_decoder dgm_rnn_devlin = {
    .product = true,
    .key_act = DGM_ACT_TANH,
    .load = load,
    .scratch = scratch,
    .step = step,
};
