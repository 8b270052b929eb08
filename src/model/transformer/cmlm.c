// SPDX-License-Identifier: MIT
// The conditional masked language model: a Transformer that sees a whole target, some of its words
// masked, and says what stands there. search/mask_predict.c asks it again and again.
//
// Encoder as in transformer.c, with the input LENGTH in front, whose output becomes logits over
// target lengths (class i: length i + 1) and no part of the memory. Decoder: the targets of a call
// lie end to end, x [tokens, D]; every position sees all positions of its own target, so nothing of
// the target side can be kept between calls, only the sources' keys and values. Behind the last
// self-attention a position is on its own: from there on only the wanted ones are computed.
#include "model/transformer/transformer_private.h"

#include "base/sort.h"

typedef struct refine_call {
    dgm_state *s;
    const transformer *t;
    int tokens, wanted;
    int32_t *ids, *pos;           // [tokens]
    int32_t *pick;                // [wanted] rows
    int32_t *first, *length;      // [tokens] of their target: first row and rows
    int32_t *block, *source;      // [tokens] of their source: first block and positions
    const dgm_paths *self, *cross;               // of all rows
    const dgm_paths *self_wanted, *cross_wanted; // of the picked ones
    float **to, **to_wanted;                     // attention weights of all rows and of the picked ones; NULL: none
    dgm_align_list align, align_wanted;
} refine_call;

static void lay_out(refine_call *c, int count, const dgm_refine_target *targets)
{
    for (int i = 0; i < count; i++) {
        c->tokens += targets[i].count;
        c->wanted += targets[i].wanted_count;
    }
    dgm_arena *a = dgm_exec_host(c->s->exec);
    const size_t n = (size_t)c->tokens, w = (size_t)c->wanted;
    c->ids = DGM_ARENA_ARRAY(a, int32_t, n);
    c->pos = DGM_ARENA_ARRAY(a, int32_t, n);
    c->first = DGM_ARENA_ARRAY(a, int32_t, n);
    c->length = DGM_ARENA_ARRAY(a, int32_t, n);
    c->block = DGM_ARENA_ARRAY(a, int32_t, n);
    c->source = DGM_ARENA_ARRAY(a, int32_t, n);
    c->pick = DGM_ARENA_ARRAY(a, int32_t, w);
    c->to = DGM_ARENA_ARRAY(a, float *, n);
    c->to_wanted = DGM_ARENA_ARRAY(a, float *, w);
    for (int i = 0; i < c->tokens; i++) c->to[i] = NULL;
    int row = 0, at = 0;
    for (int i = 0; i < count; i++) {
        const dgm_refine_target *target = &targets[i];
        for (int j = 0; j < target->wanted_count; j++) {
            float *to = target->align ? target->align[j] : NULL;
            c->to[row + target->wanted[j]] = c->to_wanted[at] = to;
            c->pick[at++] = row + target->wanted[j];
        }
        for (int j = 0, first = row; j < target->count; j++, row++) {
            c->ids[row] = target->ids[j];
            c->pos[row] = j + c->t->dec.position_offset;
            c->first[row] = first;
            c->length[row] = target->count;
            c->block[row] = dgm_transformer_block(c->s, target->slot);
            c->source[row] = c->s->slot_length[target->slot];
        }
    }
}

// Paths of all rows, then of the wanted ones, whose numbers are moved to the front of the lists.
static void find_paths(refine_call *c)
{
    dgm_exec *e = c->s->exec;
    c->self = dgm_op_paths(e, c->tokens, c->first, c->length, NULL, 0);
    c->cross = dgm_op_paths(e, c->tokens, c->block, c->source, NULL, 0);
    for (int i = 0; i < c->wanted; i++) { // ascending: a row is read before it is written over
        const int32_t row = c->pick[i];
        c->first[i] = c->first[row];
        c->length[i] = c->length[row];
        c->block[i] = c->block[row];
        c->source[i] = c->source[row];
    }
    c->self_wanted = dgm_op_paths(e, c->wanted, c->first, c->length, NULL, 0);
    c->cross_wanted = dgm_op_paths(e, c->wanted, c->block, c->source, NULL, 0);
}

// Queries, keys and values of all rows.
static dgm_mat project(refine_call *c, const buffers *b, int layer)
{
    const decoder_layer *l = &c->t->decoder[layer];
    dgm_exec *e = c->s->exec;
    dgm_mat qkv = dgm_mat_cols(b->qkv, 0, 3 * c->t->dec.inner);
    dgm_op_linear(e, qkv, dgm_transformer_input(e, c->t, b, &l->norms), l->qkv, DGM_ACT_NONE, NULL);
    return qkv;
}

static void whole_layer(refine_call *c, const buffers *b, int layer)
{
    const stack *side = &c->t->dec;
    const decoder_layer *l = &c->t->decoder[layer];
    dgm_exec *e = c->s->exec;
    const int n = side->inner;
    dgm_mat qkv = project(c, b, layer), att = dgm_mat_cols(b->att, 0, n);
    dgm_transformer_attend(e, c->t, side, att, dgm_mat_cols(qkv, 0, n), qkv, NULL, c->self);
    dgm_transformer_close(e, c->t, side, b, att, l->o, &l->norms);
    dgm_transformer_cross(c->s, b, layer, c->cross, c->align.count ? &c->align : NULL);
    dgm_transformer_feed_forward(e, c->t, side, b, &l->ffn);
}

// The last layer, for the wanted rows: b has all rows, w becomes theirs.
static void last_layer(refine_call *c, const buffers *b, const buffers *w, int layer)
{
    const stack *side = &c->t->dec;
    const decoder_layer *l = &c->t->decoder[layer];
    dgm_exec *e = c->s->exec;
    const int n = side->inner;
    dgm_mat qkv = project(c, b, layer);
    dgm_op_gather(e, w->x, b->x, c->pick);
    dgm_mat q = dgm_mat_cols(w->qkv, 0, n), att = dgm_mat_cols(w->att, 0, n);
    dgm_op_gather(e, q, dgm_mat_cols(qkv, 0, n), c->pick);
    dgm_transformer_attend(e, c->t, side, att, q, qkv, NULL, c->self_wanted);
    dgm_transformer_close(e, c->t, side, w, att, l->o, &l->norms);
    dgm_transformer_cross(c->s, w, layer, c->cross_wanted, c->align.count ? &c->align_wanted : NULL);
    dgm_transformer_feed_forward(e, c->t, side, w, &l->ffn);
}

static void refine(dgm_state *s, int count, const dgm_refine_target *targets, dgm_mat *hidden)
{
    const transformer *t = s->model->weights;
    transformer_state *ts = s->storage;
    dgm_exec *e = s->exec;
    dgm_mark mark = dgm_exec_mark(e);
    refine_call c = {.s = s, .t = t};
    lay_out(&c, count, targets);
    *hidden = dgm_mat_rows(ts->hidden, 0, c.wanted);
    if (c.wanted > 0) {
        c.align = dgm_model_alignment(s, c.tokens, c.to);
        c.align_wanted = dgm_model_alignment(s, c.wanted, c.to_wanted);
        find_paths(&c);
        buffers b = dgm_transformer_buffers(e, t, c.tokens, dgm_transformer_wide(t));
        buffers w = dgm_transformer_buffers(e, t, c.wanted, dgm_transformer_wide(t));
        dgm_transformer_embed(s, &b, c.ids, c.pos);
        for (int i = 0; i + 1 < t->dec.layers; i++) whole_layer(&c, &b, i);
        last_layer(&c, &b, &w, t->dec.layers - 1);
        dgm_transformer_final(e, t, *hidden, w.x);
    }
    dgm_exec_reset(e, mark);
}

static void best_lengths(dgm_length_query *q, const float *logit, int classes, int most)
{
    if (q->longest < classes) classes = q->longest;
    for (int i = q->shortest > 1 ? q->shortest - 1 : 0; i < classes; i++) { // insertion: few are asked for
        if (q->only && !(q->only[(i + 1) / 64] >> ((i + 1) % 64) & 1)) continue;
        if (q->found == most && !(logit[i] > logit[q->lengths[most - 1] - 1])) continue;
        int at = q->found < most ? q->found++ : most - 1;
        DGM_INSERT(q->lengths, at, i + 1, logit[i] > logit[q->lengths[at - 1] - 1]);
    }
}

// The logits of all queries come from the device together.
static void lengths(dgm_state *s, int count, dgm_length_query *queries, int most)
{
    const transformer *t = s->model->weights;
    const transformer_state *ts = s->storage;
    const size_t n = (size_t)count, classes = (size_t)t->lengths;
    dgm_exec *e = s->exec;
    dgm_mark mark = dgm_exec_mark(e);
    int32_t *slots = DGM_ARENA_ARRAY(dgm_exec_host(e), int32_t, n);
    float *logits = DGM_ARENA_ARRAY(dgm_exec_host(e), float, n * classes);
    dgm_mat rows = dgm_exec_mat(e, count, t->lengths);
    for (size_t i = 0; i < n; i++) slots[i] = queries[i].slot;
    dgm_op_gather(e, rows, ts->lengths, slots);
    dgm_op_read(e, logits, rows);
    for (size_t i = 0; i < n; i++)
        best_lengths(&queries[i], logits + i * classes, t->lengths, most);
    dgm_exec_reset(e, mark);
}

const dgm_model_ops dgm_cmlm_ops = {
    .unload = dgm_transformer_unload,
    .state_bytes = dgm_transformer_bytes,
    .state_open = dgm_transformer_open,
    .encode = dgm_transformer_encode,
    .lengths = lengths,
    .refine = refine,
};
