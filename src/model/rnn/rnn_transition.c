// SPDX-License-Identifier: MIT
// Deep transitions: cells without an input, one behind the other, which turn a state over again.
//
//   h_1 = cell(x, h_0);  h_2 = cell_1(h_1);  h_3 = cell_2(h_2) ...
//
// The gates of an input are constant there: a bias that a GRU does not want multiplied by its reset gate,
// or zeros.
#include <stdio.h>

#include "base/mem.h"
#include "model/rnn/rnn_private.h"

dgm_status dgm_rnn_transitions_load(dgm_model *m, const char *name, const rnn_chain *how, int count,
                                    rnn_transitions *out, dgm_error *err)
{
    if (count == 0) return DGM_OK;
    out->cell = dgm_calloc((size_t)count, sizeof *out->cell);
    if (!out->cell) return dgm_no_memory(err);
    out->count = count;
    out->lstm = how->lstm;
    for (int i = 0; i < count; i++) {
        char full[64];
        const float *x = NULL;
        snprintf(full, sizeof full, "%.40s.t%d.h", name, i);
        const rnn_matrix h = {full, how->gates, true, how->norm};
        DGM_TRY(dgm_rnn_load_product(m, &h, 1, how->hidden, &out->cell[i].h, err));
        snprintf(full, sizeof full, "%.40s.t%d.x", name, i);
        DGM_TRY(dgm_gguf_vector(m->file, full, how->gates, DGM_OPTIONAL, &x, err));
        if (x) DGM_TRY(dgm_vector_from(m->backend, x, 1, how->gates, &out->cell[i].x, err));
    }
    return DGM_OK;
}

void dgm_rnn_transitions_free(dgm_backend *b, rnn_transitions *t)
{
    for (int i = 0; i < t->count; i++) {
        dgm_rnn_product_free(b, &t->cell[i].h);
        dgm_vector_free(b, &t->cell[i].x);
    }
    dgm_free(t->cell);
    *t = (rnn_transitions){0};
}

void dgm_rnn_transitions_inputs(dgm_exec *e, const rnn_transitions *t, dgm_mat gx)
{
    const int rows = gx.rows / t->count;
    dgm_op_zero(e, gx);
    for (int i = 0; i < t->count; i++) {
        const dgm_mat own = dgm_mat_rows(gx, i * rows, rows);
        if (t->cell[i].x) dgm_op_add_vector(e, own, own, t->cell[i].x);
    }
}

void dgm_rnn_transitions_run(dgm_exec *e, const rnn_transitions *t, dgm_mat h, dgm_mat cell,
                             dgm_mat gx, dgm_mat gh)
{
    for (int i = 0; i < t->count; i++) {
        const dgm_mat x = dgm_mat_rows(gx, i * (gx.rows / t->count), h.rows);
        dgm_rnn_multiply(e, gh, h, &t->cell[i].h, DGM_ACT_NONE, NULL);
        if (t->lstm)
            dgm_op_lstm(e, h, cell, cell, x, gh);
        else
            dgm_op_gru(e, h, h, x, gh);
    }
}

void dgm_rnn_turn_over(const rnn_step *c, const rnn_transitions *t, dgm_mat next, dgm_mat room,
                       dgm_mat gh)
{
    const int n = room.cols / (t->lstm ? 4 : 3);
    const dgm_mat h = dgm_mat_cols(next, 0, n);
    const dgm_mat cell = t->lstm ? dgm_mat_cols(next, n, n) : h;
    for (int i = 0; i < t->count; i++) {
        const rnn_transitions one = {.count = 1, .lstm = t->lstm, .cell = &t->cell[i]};
        dgm_rnn_transitions_inputs(c->s->exec, &one, room);
        dgm_rnn_transitions_run(c->s->exec, &one, h, cell, room, gh);
        c->rs->counts.activations += (uint64_t)next.rows * (uint64_t)n * (t->lstm ? 5 : 3);
    }
}
