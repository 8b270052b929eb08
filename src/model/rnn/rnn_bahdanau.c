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
    const rnn_block word[] = {{"gru.x", g, true}, {"readout.x", r->readout_rows, true}};
    const rnn_block old[] = {{"att.query", a, false}, {"gru.h", g, true}};
    const rnn_block value[] = {{"gru.c", g, false}, {"readout.c", r->readout_rows, false}};
    DGM_TRY(dgm_rnn_load_stack(m, word, 2, r->embed, &r->word, err));
    DGM_TRY(dgm_rnn_load_stack(m, old, 2, r->hidden, &r->old, err));
    DGM_TRY(dgm_rnn_load_stack(m, value, 2, r->width, &r->value, err));
    return dgm_rnn_load_additive(m, r, err);
}

static dgm_bytes scratch(const dgm_model *m, int rows)
{
    const rnn *r = m->weights;
    return (dgm_bytes){.host = 2 * dgm_arena_cost(((size_t)rows + 1) * sizeof(int32_t)) +
                               dgm_arena_cost((size_t)rows * sizeof(float *)),
                       .device = dgm_exec_mat_bytes(m->backend, rows, dgm_rnn_memory_width(r)) +
                                 dgm_exec_mat_bytes(m->backend, rows, dgm_rnn_value_width(r)) +
                                 dgm_exec_mat_bytes(m->backend, rows, 3 * r->hidden)};
}

// Rows of one parent share its weights: each is named with its parent's number, in their order.
dgm_align_list dgm_rnn_shared_alignment(const rnn_step *c)
{
    dgm_align_list align = {.head = 0};
    if (!c->align) return align;
    dgm_arena *a = dgm_exec_host(c->s->exec);
    int32_t *row = DGM_ARENA_ARRAY(a, int32_t, (size_t)c->count);
    int32_t *next = DGM_ARENA_ARRAY(a, int32_t, (size_t)c->distinct + 1);
    float **to = DGM_ARENA_ARRAY(a, float *, (size_t)c->count);
    memset(next, 0, ((size_t)c->distinct + 1) * sizeof *next);
    for (int i = 0; i < c->count; i++) next[c->which[i] + 1] += c->align[i] != NULL;
    for (int i = 0; i < c->distinct; i++) next[i + 1] += next[i];
    align.count = next[c->distinct];
    for (int i = 0; i < c->count; i++) {
        if (!c->align[i]) continue;
        const int32_t at = next[c->which[i]]++;
        row[at] = c->which[i];
        to[at] = c->align[i];
    }
    align.row = row;
    align.to = to;
    return align;
}

static void step(rnn_step *c)
{
    const rnn *r = c->r;
    dgm_exec *e = c->s->exec;
    int a = r->attention, g = 3 * r->hidden;
    const dgm_align_list align = dgm_rnn_shared_alignment(c);
    dgm_mat shared = dgm_exec_mat(e, c->distinct, c->summed.cols);
    dgm_op_attend_add(e, shared, dgm_mat_cols(c->old, 0, a), r->v, c->rs->keys, c->rs->values,
                      dgm_rnn_sources(c, c->unique, c->distinct), &align);
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
