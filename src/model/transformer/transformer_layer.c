// SPDX-License-Identifier: MIT
// The parts of a Transformer layer: norms, residual sums, attention, feed-forward networks.
//
// A sub-layer reads x, or a norm of it, and makes u; the layer goes on with
//
//   post-norm  norm(x + u)     pre-norm  x + u     and, as files say, x + norm(u), norm(u) or u, or sums with gates
//
// Which norms there are is seen at their tensors: one that is not there has no gamma.
#include "model/transformer/transformer_private.h"

size_t dgm_transformer_buffers_bytes(const dgm_backend *b, const transformer *t, int rows, int wide)
{
    return 2 * dgm_exec_mat_bytes(b, rows, t->d) + dgm_exec_mat_bytes(b, rows, t->widest) +
           dgm_exec_mat_bytes(b, rows, 3 * t->widest) + dgm_exec_mat_bytes(b, rows, wide);
}

buffers dgm_transformer_buffers(dgm_exec *e, const transformer *t, int rows, int wide)
{
    buffers b = {
        .x = dgm_exec_mat(e, rows, t->d),
        .normed = dgm_exec_mat(e, rows, t->d),
        .att = dgm_exec_mat(e, rows, t->widest),
        .qkv = dgm_exec_mat(e, rows, 3 * t->widest),
        .wide = dgm_exec_mat(e, rows, wide),
    };
    return b;
}

void dgm_transformer_norm(dgm_exec *e, const transformer *t, dgm_mat y, dgm_mat x, const dgm_mat *add,
                          const norm *n)
{
    const dgm_norm how = {n->gamma, n->beta, t->eps, t->rms};
    dgm_op_norm_for(e, y, x, add, &how, n->reader);
}

dgm_mat dgm_transformer_input(dgm_exec *e, const transformer *t, const buffers *b, const norms *n)
{
    if (!n->before.gamma) return b->x;
    dgm_transformer_norm(e, t, b->normed, b->x, NULL, &n->before);
    return b->normed;
}

// In place, where there is one.
static void norm_behind(dgm_exec *e, const transformer *t, dgm_mat x, const norms *n)
{
    if (n->behind.gamma) dgm_transformer_norm(e, t, x, x, NULL, &n->behind);
}

bool dgm_transformer_is_gated(const stack *side)
{
    return side->residual == RESIDUAL_GATED || side->residual == RESIDUAL_GATED_APART;
}

// x = a * u + b * x, [a; b] = sigmoid(gates x).
static void gate(dgm_exec *e, const transformer *t, const buffers *b, dgm_mat u, const dgm_linear *gates)
{
    const dgm_mat both = dgm_mat_cols(b->wide, 0, 2 * t->d);
    dgm_op_linear(e, both, b->x, gates, DGM_ACT_NONE, NULL);
    dgm_op_gated_sum(e, b->x, u, b->x, both);
}

void dgm_transformer_settle(dgm_exec *e, const transformer *t, const stack *side, const buffers *b,
                            dgm_mat u, const norms *n)
{
    const bool apart = side->residual == RESIDUAL_APART || side->residual == RESIDUAL_GATED_APART;
    if (side->residual == RESIDUAL_SUM && n->behind.gamma) { // the sum is the norm's own
        dgm_transformer_norm(e, t, b->x, b->x, &u, &n->behind);
        return;
    }
    if (apart) norm_behind(e, t, u, n);
    if (dgm_transformer_is_gated(side))
        gate(e, t, b, u, n->gates);
    else if (side->residual == RESIDUAL_NONE)
        dgm_op_gather(e, b->x, u, NULL);
    else
        dgm_op_add(e, b->x, b->x, u);
    if (!apart) norm_behind(e, t, b->x, n);
}

void dgm_transformer_close(dgm_exec *e, const transformer *t, const stack *side, const buffers *b,
                           dgm_mat in, const dgm_linear *w, const norms *n)
{
    if (w && side->residual == RESIDUAL_SUM) { // the sum is the product's own
        dgm_op_linear(e, b->x, in, w, DGM_ACT_NONE, &b->x);
        norm_behind(e, t, b->x, n);
        return;
    }
    if (w) dgm_op_linear(e, b->normed, in, w, DGM_ACT_NONE, NULL);
    dgm_transformer_settle(e, t, side, b, w ? b->normed : in, n);
}

// y = out(act(in x) * (factor x)) + residual.
static void gated(dgm_exec *e, const transformer *t, const buffers *b, const feed_forward *f,
                  dgm_mat y, dgm_mat in, const dgm_mat *residual)
{
    const int n = dgm_linear_cols(f->out);
    dgm_mat both = dgm_mat_cols(b->wide, 0, 2 * n), inner = dgm_mat_cols(both, 0, n);
    dgm_op_linear(e, both, in, f->in, DGM_ACT_NONE, NULL);
    dgm_op_gated(e, inner, inner, dgm_mat_cols(both, n, n), t->act);
    dgm_op_linear(e, y, inner, f->out, DGM_ACT_NONE, residual);
}

// The same of a network of other than two layers, each but the last with the activation; in is not y.
static void deep(dgm_exec *e, const transformer *t, const stack *side, const buffers *b,
                 const feed_forward *f, dgm_mat y, dgm_mat in)
{
    for (int i = 0; i < side->depth - 1; i++) {
        const dgm_mat inner = dgm_mat_cols(b->wide, i % 2 * side->ffn, side->ffn);
        dgm_op_linear(e, inner, in, i ? f->more[i - 1] : f->in, t->act, NULL);
        in = inner;
    }
    dgm_op_linear(e, y, in, f->out, DGM_ACT_NONE, NULL);
}

int dgm_transformer_inner(const transformer *t, const stack *side)
{
    const int parts = t->gated || side->depth > 2 ? 2 : 1, inner = parts * side->ffn;
    return dgm_transformer_is_gated(side) && inner < 2 * t->d ? 2 * t->d : inner;
}

void dgm_transformer_feed_forward(dgm_exec *e, const transformer *t, const stack *side,
                                  const buffers *b, const feed_forward *f)
{
    const dgm_mat in = dgm_transformer_input(e, t, b, &f->norms), u = dgm_mat_cols(b->att, 0, t->d);
    const bool sum = side->residual == RESIDUAL_SUM && !f->experts && side->depth == 2;
    const dgm_mat y = sum ? b->x : u, *residual = sum ? &b->x : NULL;
    if (f->experts)
        dgm_transformer_moe_run(e, t, f, u, in, b->wide);
    else if (side->depth != 2)
        deep(e, t, side, b, f, u, in);
    else if (t->gated)
        gated(e, t, b, f, y, in, residual);
    else
        dgm_op_feed_forward(e, y, in, f->in, t->act, dgm_mat_cols(b->wide, 0, dgm_linear_rows(f->in)),
                            f->out, residual);
    if (sum)
        norm_behind(e, t, b->x, &f->norms);
    else
        dgm_transformer_settle(e, t, side, b, u, &f->norms);
}

void dgm_transformer_attend(dgm_exec *e, const transformer *t, const stack *side, dgm_mat att,
                            dgm_mat q, dgm_mat kv, const dgm_vector *bias, const dgm_paths *paths)
{
    const int n = side->inner;
    const dgm_heads heads = {side->heads, side->dk, side->dk, side->query_scale, bias, t->reach, t->precision};
    dgm_op_attend(e, att, q, dgm_mat_cols(kv, kv.cols - 2 * n, n), dgm_mat_cols(kv, kv.cols - n, n),
                  &heads, paths, NULL);
}

void dgm_transformer_cross(dgm_state *s, const buffers *b, int layer, const dgm_paths *paths,
                           const dgm_align_list *align)
{
    const transformer *t = s->model->weights;
    const transformer_state *ts = s->storage;
    const decoder_layer *l = &t->decoder[layer];
    const stack *side = &t->dec;
    dgm_exec *e = s->exec;
    dgm_mat q = dgm_mat_cols(b->qkv, 0, side->inner), att = dgm_mat_cols(b->att, 0, side->inner);
    dgm_op_linear(e, q, dgm_transformer_input(e, t, b, &l->cross_norms), l->cross_q, DGM_ACT_NONE,
                  NULL);
    dgm_op_attend_blocks(e, att, q, &ts->cross[layer], side->query_scale, paths,
                         layer == s->model->info.align_layer ? align : NULL);
    dgm_transformer_close(e, t, side, b, att, l->cross_o, &l->cross_norms);
}

void dgm_transformer_final(dgm_exec *e, const transformer *t, dgm_mat y, dgm_mat x)
{
    if (t->dec.final_norm.gamma)
        dgm_transformer_norm(e, t, y, x, NULL, &t->dec.final_norm);
    else
        dgm_op_gather(e, y, x, NULL);
}
