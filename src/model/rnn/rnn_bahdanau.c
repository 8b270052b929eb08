// SPDX-License-Identifier: MIT
// Decoder `bahdanau`: additive attention with the old state, then one GRU over word and context.
//
//   e_j = v . tanh(Wq h + Uk s_j + b);  c = sum softmax(e)_j s_j;  h' = GRU([x; c], h)
//
// word = [x gates | read-out], old = [Wq h | h gates], key_j = Uk s_j + b,
// value_j = [c gates of s_j | read-out]. Attention does not see the new word: it is done once per
// distinct parent, and siblings share the result.
#include <string.h>

#include "base/arena.h"
#include "model/rnn/rnn_private.h"

static dgm_status load(dgm_model *m, rnn *r, dgm_error *err)
{
    int a = r->attention, g = 3 * r->hidden;
    const rnn_piece word[] = {{"gru.x", g, true}, {"readout.x", r->readout_rows, true}};
    const rnn_piece old[] = {{"att.query", a, false}, {"gru.h", g, true}};
    const rnn_piece value[] = {{"gru.c", g, false}, {"readout.c", r->readout_rows, false}};
    DGM_TRY(dgm_rnn_load_stack(m, word, 2, r->embed, &r->word, err));
    DGM_TRY(dgm_rnn_load_stack(m, old, 2, r->hidden, &r->old, err));
    DGM_TRY(dgm_rnn_load_stack(m, value, 2, r->width, &r->value, err));
    return dgm_rnn_load_additive(m, r, err);
}

static dgm_bytes scratch(const dgm_model *m, int rows)
{
    const rnn *r = m->weights;
    return (dgm_bytes){.host = dgm_arena_cost((size_t)rows * sizeof(float *)),
                       .device = dgm_exec_mat_bytes(m->backend, rows, dgm_rnn_memory_width(r)) +
                                 dgm_exec_mat_bytes(m->backend, rows, dgm_rnn_value_width(r)) +
                                 dgm_exec_mat_bytes(m->backend, rows, 3 * r->hidden)};
}

float **dgm_rnn_shared_alignment(const rnn_step *c)
{
    float **align = DGM_ARENA_ARRAY(dgm_exec_host(c->s->exec), float *, (size_t)c->distinct);
    for (int i = 0; i < c->distinct; i++) align[i] = NULL;
    for (int i = 0; i < c->count; i++)
        if (c->align[i] && !align[c->which[i]]) align[c->which[i]] = c->align[i];
    return align;
}

void dgm_rnn_copy_alignment(const rnn_step *c, float *const *align)
{
    for (int i = 0; i < c->count; i++) {
        const float *from = align[c->which[i]];
        size_t n = (size_t)c->attend[c->which[i]].n;
        if (c->align[i] && c->align[i] != from) memcpy(c->align[i], from, n * sizeof(float));
    }
}

static void step(rnn_step *c)
{
    const rnn *r = c->r;
    dgm_exec *e = c->s->exec;
    int a = r->attention, g = 3 * r->hidden;
    float **align = c->align ? dgm_rnn_shared_alignment(c) : NULL;
    dgm_mat shared = dgm_exec_mat(e, c->distinct, c->summed.cols);
    dgm_rnn_attend_slots(c, c->unique, c->distinct);
    dgm_attend attend = {.rows = c->attend, .align = align};
    dgm_op_attend_add(e, shared, dgm_mat_cols(c->old, 0, a), r->v, &attend);
    if (align) dgm_rnn_copy_alignment(c, align);
    dgm_op_gather(e, c->summed, shared, c->which);
    if (r->plain) {
        dgm_mat products = dgm_exec_mat(e, c->distinct, c->context.cols);
        dgm_rnn_context(c, products, shared);
        dgm_op_gather(e, c->context, products, c->which);
    }

    dgm_mat gx = dgm_mat_cols(c->word, 0, g), gh = dgm_exec_mat(e, c->count, g);
    dgm_op_add(e, gx, gx, dgm_mat_cols(c->context, 0, g));
    dgm_op_gather(e, gh, dgm_mat_cols(c->old, a, g), c->which);
    dgm_rnn_cell(c, false, c->next, c->state, gx, gh);
}

const rnn_decoder dgm_rnn_bahdanau = {
    .product = false,
    .key_act = DGM_ACT_NONE,
    .load = load,
    .scratch = scratch,
    .step = step,
};
