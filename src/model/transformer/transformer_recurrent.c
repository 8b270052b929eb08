// SPDX-License-Identifier: MIT
// Decoder sub-layers that carry one vector a row from step to step in place of keys and values of
// the whole past; called by transformer.c for every layer of a step.
//
//   SSRU   x = W in, f = sigmoid(Wf in + bf), c' = f * c + (1 - f) * x, out = relu(c'), or O relu(c')
//   AAN    s' = s + in, m = s' / steps, y = V act(U m), [i; f] = sigmoid(G [in; y]),
//          out = i * in + f * y, or y without a gate               (average attention; the norm before it, if
//          there is one, is of in, or of m)
//
// The unit of recurrence is the step. In a decoder of pairs both tokens make their own c' from the
// cell of the pair before, the pair's cell is the mean of the two, and both put out relu of it; s
// adds up the means of the pairs' inputs. Thus both of a pair see each other, as in attention, and
// a row still has one cell.
//
//   vectors  | row 0: left, right | row 1: left, right | ...        cells  | row 0 | row 1 | ...
#include "model/transformer/transformer_private.h"

// Cells of the n rows' parents, into the last third of qkv's first n rows.
static dgm_mat old_cells(const step_call *c, int layer, int n)
{
    const int d = c->t->d;
    dgm_mat cell = dgm_mat_rows(dgm_mat_cols(c->b.qkv, 2 * d, d), 0, n);
    dgm_op_gather(c->s->exec, cell, c->ts->kv[layer], c->parents);
    return cell;
}

static int rows_of(const step_call *c)
{
    return c->b.x.rows / c->t->tokens;
}

// y[i] = mean of the vectors of row i.
static void mean_of_tokens(const step_call *c, dgm_mat y, dgm_mat in)
{
    const int n = y.rows, tokens = c->t->tokens;
    dgm_exec *e = c->s->exec;
    if (tokens == 1) {
        dgm_op_gather(e, y, in, NULL);
        return;
    }
    dgm_mark mark = dgm_exec_mark(e);
    int32_t *first = DGM_ARENA_ARRAY(dgm_exec_host(e), int32_t, (size_t)n);
    int32_t *count = DGM_ARENA_ARRAY(dgm_exec_host(e), int32_t, (size_t)n);
    for (int i = 0; i < n; i++) {
        first[i] = i * tokens;
        count[i] = tokens;
    }
    dgm_op_mean(e, y, in, first, count);
    dgm_exec_reset(e, mark);
}

static void close(const step_call *c, dgm_mat out, int layer)
{
    const decoder_layer *l = &c->t->decoder[layer];
    dgm_transformer_close(c->s->exec, c->t, &c->t->dec, &c->b, out, l->o, &l->norms);
}

// What the sub-layer puts out goes here.
static dgm_mat result(const step_call *c)
{
    return dgm_mat_cols(c->b.att, 0, c->t->d);
}

static void ssru_pairs(const step_call *c, int layer, dgm_mat in, dgm_mat forget)
{
    const int n = rows_of(c), d = c->t->d;
    dgm_exec *e = c->s->exec;
    dgm_mat cells = dgm_mat_cols(c->b.qkv, 2 * d, d); // [n * tokens, D]
    dgm_mark mark = dgm_exec_mark(e);
    int32_t *parents = DGM_ARENA_ARRAY(dgm_exec_host(e), int32_t, (size_t)c->b.x.rows);
    for (int i = 0; i < c->b.x.rows; i++) parents[i] = c->parents[c->owner[i]];
    dgm_op_gather(e, cells, c->ts->kv[layer], parents);
    dgm_exec_reset(e, mark);
    dgm_op_ssru(e, result(c), cells, cells, in, forget);
    dgm_mat cell = dgm_mat_rows(result(c), 0, n), out = dgm_mat_rows(c->b.normed, 0, n);
    mean_of_tokens(c, cell, cells);
    dgm_op_scatter(e, c->ts->kv[layer], cell, c->rows);
    dgm_op_act(e, out, cell, DGM_ACT_RELU);
    dgm_op_gather(e, cells, out, c->owner);
    close(c, cells, layer);
}

void dgm_transformer_ssru(const step_call *c, int layer)
{
    const transformer *t = c->t;
    const decoder_layer *l = &t->decoder[layer];
    dgm_exec *e = c->s->exec;
    dgm_mat two = dgm_mat_cols(c->b.qkv, 0, 2 * t->d);
    dgm_op_linear(e, two, dgm_transformer_input(e, t, &c->b, &l->norms), l->qkv, DGM_ACT_NONE, NULL);
    dgm_mat in = dgm_mat_cols(two, 0, t->d), forget = dgm_mat_cols(two, t->d, t->d);
    if (t->tokens > 1) {
        ssru_pairs(c, layer, in, forget);
        return;
    }
    dgm_mat cell = old_cells(c, layer, rows_of(c));
    dgm_op_ssru(e, result(c), cell, cell, in, forget);
    dgm_op_scatter(e, c->ts->kv[layer], cell, c->rows);
    close(c, result(c), layer);
}

// 1 / steps so far, of every row.
static float *shares(const step_call *c, int n)
{
    float *part = DGM_ARENA_ARRAY(dgm_exec_host(c->s->exec), float, (size_t)n);
    for (int i = 0; i < n; i++) part[i] = 1.0f / (float)c->s->rows.nodes[c->rows[i]].position;
    return part;
}

void dgm_transformer_aan(const step_call *c, int layer)
{
    const transformer *t = c->t;
    const decoder_layer *l = &t->decoder[layer];
    const int n = rows_of(c), d = t->d;
    dgm_exec *e = c->s->exec;
    dgm_mat own = dgm_mat_cols(c->b.qkv, 0, d), y = dgm_mat_cols(c->b.qkv, d, d);
    dgm_mat step = dgm_mat_rows(result(c), 0, n);
    const bool later = t->aan_norm_average && l->norms.before.gamma;
    dgm_op_gather(e, own, later ? c->b.x : dgm_transformer_input(e, t, &c->b, &l->norms), NULL);
    mean_of_tokens(c, step, own);
    dgm_mat sum = old_cells(c, layer, n);
    dgm_op_add(e, sum, sum, step);
    dgm_op_scatter(e, c->ts->kv[layer], sum, c->rows);
    dgm_mark mark = dgm_exec_mark(e);
    dgm_op_scale(e, step, sum, shares(c, n));
    dgm_exec_reset(e, mark);
    dgm_op_gather(e, c->b.normed, step, c->owner);
    if (later) dgm_transformer_norm(e, t, c->b.normed, c->b.normed, NULL, &l->norms.before);
    dgm_mat inner = dgm_mat_cols(c->b.wide, 0, t->aan_ffn);
    dgm_op_feed_forward(e, y, c->b.normed, l->aan_in, t->aan_act, inner, l->aan_out, NULL);
    if (!l->gate) {
        close(c, y, layer);
        return;
    }
    dgm_mat gates = dgm_mat_cols(c->b.wide, 0, 2 * d);
    dgm_op_linear(e, gates, dgm_mat_cols(c->b.qkv, 0, 2 * d), l->gate, DGM_ACT_NONE, NULL);
    dgm_op_gated_sum(e, result(c), own, y, gates);
    close(c, result(c), layer);
}
