// SPDX-License-Identifier: MIT
// Decoder `conditional`: a cell over the word, additive attention, a cell over the context.
//
//   h~ = cell1(x, h);  e_j = v . tanh(Wq h~ + Uk s_j + b);  c = sum softmax(e)_j s_j
//   h' = cell2(c, h~)
//
// word = [cell1's x gates | read-out], old = [cell1's h gates], middle = [Wq h~ | cell2's h gates],
// key_j = Uk s_j + b, value_j = [cell2's x gates of s_j | read-out]. The bias of cell2's x gates is
// inside the values: weights sum to one. Attention sees the new word, so siblings do not share it.
// Cells are GRUs or LSTMs; behind cell2 there may be transitions. Every product may be normalised.
#include "model/rnn/rnn_private.h"

static dgm_status load(dgm_model *m, rnn *r, dgm_error *err)
{
    const int a = r->attention, g = r->cell_gates * r->hidden;
    const rnn_norm cell = r->cell_norm, norm = r->norm;
    const rnn_matrix word[] = {{"dec.gru1.x", g, true, cell},
                               {"dec.readout.x", r->readout_rows, true, norm}};
    const rnn_matrix old = {"dec.gru1.h", g, true, cell};
    const rnn_matrix middle[] = {{"dec.att.query", a, false, norm}, {"dec.gru2.h", g, true, cell}};
    const rnn_matrix gates = {"dec.gru2.x", g, true, cell};
    const rnn_matrix readout = {"dec.readout.c", r->readout_rows, norm != NORM_NONE, norm};
    const rnn_chain chain = {g, r->hidden, cell, r->cell_lstm};
    DGM_TRY(dgm_rnn_load_product(m, word, 2, r->embed, &r->word, err));
    DGM_TRY(dgm_rnn_load_product(m, &old, 1, r->hidden, &r->old, err));
    DGM_TRY(dgm_rnn_load_product(m, middle, 2, r->hidden, &r->middle, err));
    DGM_TRY(dgm_rnn_load_values(m, &gates, &readout, err));
    DGM_TRY(dgm_rnn_transitions_load(m, "dec.gru2", &chain, r->cell_transitions, &r->next, err));
    return dgm_rnn_load_additive(m, r, err);
}

static dgm_bytes scratch(const dgm_model *m, int rows)
{
    const rnn *r = m->weights;
    return (dgm_bytes){
        .device = dgm_exec_mat_bytes(m->backend, rows, r->cell_gates * r->hidden) +
                  dgm_exec_mat_bytes(m->backend, rows, r->attention + r->cell_gates * r->hidden)};
}

static void step(rnn_step *c)
{
    const rnn *r = c->r;
    dgm_exec *e = c->s->exec;
    const int a = r->attention, g = r->cell_gates * r->hidden;
    dgm_mat gh = dgm_exec_mat(e, c->count, g), middle = dgm_exec_mat(e, c->count, a + g);
    dgm_op_gather(e, gh, c->old, c->which);
    dgm_rnn_cell(c, r->cell_lstm, c->state, c->state, dgm_mat_cols(c->word, 0, g), gh); // h~

    dgm_rnn_multiply(e, middle, dgm_mat_cols(c->state, 0, r->hidden), &r->middle, DGM_ACT_NONE,
                     NULL);
    const dgm_align_list align = dgm_model_alignment(c->s, c->count, c->align);
    dgm_op_attend_add(e, c->summed, dgm_mat_cols(middle, 0, a), r->head[0].v, c->rs->keys[0],
                      c->rs->values[0], dgm_rnn_sources(c, c->rows, c->count), &align);
    dgm_rnn_context(c, r->head, c->context, c->summed);
    dgm_mat gx = dgm_mat_cols(c->context, 0, g);
    dgm_rnn_cell(c, r->cell_lstm, c->next, c->state, gx, dgm_mat_cols(middle, a, g));
    dgm_rnn_turn_over(c, &r->next, c->next, gh, dgm_mat_cols(middle, a, g));
}

const rnn_decoder dgm_rnn_conditional = {
    .product = false,
    .key_act = DGM_ACT_NONE,
    .load = load,
    .scratch = scratch,
    .step = step,
};
