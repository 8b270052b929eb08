// SPDX-License-Identifier: MIT
// The Transformer: encoder over whole sentences, decoder one position of many rows at a time.
//
// Encoder. Sentences are laid end to end without padding, x [tokens, D], up to a chunk of tokens at
// a time; attention looks only at the rows of its own sentence. The keys and values of every
// decoder layer are computed once and kept in blocks of 16 positions, cross[layer]: those of a slot
// lie one behind the other from position slot_first[slot] on.
//
// Decoder. Every row of the pool owns one key/value entry per layer, kv[layer] [rows, 2D]: that of
// the token which led to it. A row attends to the entries of its ancestors through a list of row
// numbers, so that hypotheses share their common past and nothing is ever copied. An SSRU decoder
// keeps its cell instead, kv[layer] [rows, D].
//
//   post-norm  x = norm(x + sublayer(x))        pre-norm  x = x + sublayer(norm(x)), final norm
#include <math.h>
#include <string.h>

#include "model/transformer_int.h"

enum { ENCODE_TOKENS = 512 }; // tokens encoded in one go; activations then stay in the cache

typedef struct transformer_state {
    dgm_blocks *cross; // [layers]
    dgm_mat *kv;    // [layers] of [pool rows, 2D], or [pool rows, D] with SSRU
    dgm_mat hidden; // [rows, D]
} transformer_state;

static int encode_capacity(const dgm_limits *l)
{
    return l->source > ENCODE_TOKENS ? l->source : ENCODE_TOKENS;
}

// Blocks of the memory of sources.
static int source_blocks(const dgm_limits *l)
{
    return dgm_state_sources(l) / DGM_BLOCK_POSITIONS;
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

// ---- memory -----------------------------------------------------------------------------------

// Scratch of one encode or step call; both are taken above everything that lives longer.
static size_t scratch_bytes(const dgm_model *m, const dgm_limits *l)
{
    const transformer *t = m->weights;
    const dgm_backend *b = m->backend;
    int tokens = encode_capacity(l);
    size_t encode = 3 * dgm_exec_mat_bytes(b, tokens, t->d) +
                    dgm_exec_mat_bytes(b, tokens, 3 * t->d) +
                    dgm_exec_mat_bytes(b, tokens, max_int(t->ffn, 2 * t->d * t->decoder_layers)) +
                    dgm_arena_cost((size_t)tokens * sizeof(dgm_attend_row)) +
                    4 * dgm_arena_cost((size_t)tokens * sizeof(int32_t));
    size_t paths = (size_t)l->rows * (size_t)(l->target + 1) * sizeof(int32_t);
    size_t step = 4 * dgm_exec_mat_bytes(b, l->rows, t->d) +
                  dgm_exec_mat_bytes(b, l->rows, 3 * t->d) +
                  dgm_exec_mat_bytes(b, l->rows, t->decoder_ffn) + dgm_arena_cost(paths) +
                  dgm_arena_cost((size_t)l->rows * sizeof(dgm_attend_row)) +
                  dgm_arena_cost((size_t)l->rows * sizeof(dgm_source_row)) +
                  4 * dgm_arena_cost((size_t)l->rows * sizeof(int32_t));
    int keys = max_int(l->source, l->target + 1);
    return (encode > step ? encode : step) + dgm_attend_bytes(b, t->heads, keys);
}

// One layer's memory of the target side: keys and values, or the SSRU's cells (never rounded).
static size_t past_bytes(const dgm_model *m, const dgm_limits *l)
{
    const transformer *t = m->weights;
    int rows = dgm_state_rows(m, l);
    return t->ssru ? dgm_exec_mat_bytes(m->backend, rows, t->d)
                   : dgm_exec_cache_bytes(m->backend, rows, 2 * t->d, m->precision);
}

static size_t state_bytes(const dgm_model *m, const dgm_limits *l)
{
    const transformer *t = m->weights;
    const dgm_backend *b = m->backend;
    size_t layers = (size_t)t->decoder_layers;
    int dk = t->d / t->heads;
    return dgm_arena_cost(sizeof(transformer_state)) + dgm_arena_cost(layers * sizeof(dgm_mat)) +
           dgm_arena_cost(layers * sizeof(dgm_blocks)) +
           layers * dgm_exec_blocks_bytes(b, source_blocks(l), t->heads, dk, dk, m->precision) +
           layers * past_bytes(m, l) +
           dgm_exec_mat_bytes(b, l->rows, t->d) + scratch_bytes(m, l);
}

static dgm_status state_open(dgm_state *s, dgm_error *err)
{
    const transformer *t = s->model->weights;
    dgm_arena *a = dgm_exec_host(s->exec);
    transformer_state *ts = dgm_arena_alloc(a, sizeof *ts);
    DGM_FAIL_IF(!ts, err, DGM_ERR_MEMORY, "the worker's memory is too small for the model");
    int blocks = source_blocks(&s->limits), dk = t->d / t->heads;
    ts->cross = DGM_ARENA_ARRAY(a, dgm_blocks, (size_t)t->decoder_layers);
    ts->kv = DGM_ARENA_ARRAY(a, dgm_mat, (size_t)t->decoder_layers);
    bool full = !ts->cross || !ts->kv;
    for (int i = 0; i < t->decoder_layers && !full; i++) {
        dgm_precision precision = s->model->precision;
        ts->cross[i] = dgm_exec_blocks(s->exec, blocks, t->heads, dk, dk, precision);
        ts->kv[i] = t->ssru ? dgm_exec_mat(s->exec, s->step_rows, t->d)
                            : dgm_exec_cache(s->exec, s->step_rows, 2 * t->d, precision);
        full = !ts->cross[i].data || !ts->kv[i].data;
    }
    if (!full) ts->hidden = dgm_exec_mat(s->exec, s->limits.rows, t->d);
    DGM_FAIL_IF(full || !ts->hidden.data, err, DGM_ERR_MEMORY,
                "the worker's memory is too small for the model");
    s->storage = ts;
    return DGM_OK;
}

// ---- shared by encoder and decoder --------------------------------------------------------------

// Buffers of one call, all with the call's number of rows.
typedef struct buffers {
    dgm_mat x, normed, att; // [rows, D]
    dgm_mat qkv;            // [rows, 3D]
    dgm_mat wide;           // [rows, F], or all layers' keys and values
} buffers;

static buffers take_buffers(dgm_exec *e, int rows, int d, int wide)
{
    buffers b = {
        .x = dgm_exec_mat(e, rows, d),
        .normed = dgm_exec_mat(e, rows, d),
        .att = dgm_exec_mat(e, rows, d),
        .qkv = dgm_exec_mat(e, rows, 3 * d),
        .wide = dgm_exec_mat(e, rows, wide),
    };
    return b;
}

static void apply_norm(dgm_exec *e, const transformer *t, dgm_mat y, dgm_mat x, const norm *n)
{
    dgm_op_norm(e, y, x, n->gamma, n->beta, t->eps);
}

// What a sub-layer reads: x itself, or its norm.
static dgm_mat sublayer_input(dgm_exec *e, const transformer *t, const buffers *b, const norm *n)
{
    if (!t->pre_norm) return b->x;
    apply_norm(e, t, b->normed, b->x, n);
    return b->normed;
}

// x = x + W in, and the norm behind it (post-norm).
static void close_sublayer(dgm_exec *e, const transformer *t, const buffers *b, dgm_mat in,
                           const dgm_linear *w, const norm *n)
{
    dgm_op_linear(e, b->x, in, w, DGM_ACT_NONE, &b->x);
    if (!t->pre_norm) apply_norm(e, t, b->x, b->x, n);
}

static void feed_forward_layer(dgm_exec *e, const transformer *t, const buffers *b,
                               const feed_forward *f)
{
    dgm_mat in = sublayer_input(e, t, b, &f->norm);
    dgm_mat inner = dgm_mat_cols(b->wide, 0, dgm_linear_rows(f->in));
    dgm_op_feed_forward(e, b->x, in, f->in, t->act, inner, f->out, &b->x);
    if (!t->pre_norm) apply_norm(e, t, b->x, b->x, &f->norm);
}

static float head_scale(const transformer *t)
{
    return 1.0f / sqrtf((float)(t->d / t->heads));
}

// Heads over keys and values that lie in kv.
static dgm_attend heads_of(const transformer *t, const dgm_attend_row *rows, dgm_mat kv)
{
    int dk = t->d / t->heads;
    dgm_attend a = {
        .heads = t->heads,
        .dk = dk,
        .dv = dk,
        .stride = kv.stride,
        .elem = kv.elem,
        .scale = head_scale(t),
        .rows = rows,
    };
    return a;
}

static float embedding_scale(const transformer *t)
{
    return t->scale_embedding ? sqrtf((float)t->d) : 1.0f;
}

// ---- encoder ----------------------------------------------------------------------------------

static void encoder_layers(dgm_exec *e, const transformer *t, const buffers *b,
                           const int32_t *first, const int32_t *length, dgm_attend_row *rows)
{
    for (int i = 0; i < t->encoder_layers; i++) {
        const encoder_layer *l = &t->encoder[i];
        dgm_op_linear(e, b->qkv, sublayer_input(e, t, b, &l->norm), l->qkv, DGM_ACT_NONE, NULL);
        for (int r = 0; r < b->x.rows; r++) {
            dgm_mat own = dgm_mat_rows(b->qkv, first[r], length[r]);
            rows[r].k = dgm_mat_cols(own, t->d, t->d).data;
            rows[r].v = dgm_mat_cols(own, 2 * t->d, t->d).data;
            rows[r].index = NULL;
            rows[r].n = length[r];
        }
        dgm_attend a = heads_of(t, rows, b->qkv);
        dgm_op_attend(e, b->att, dgm_mat_cols(b->qkv, 0, t->d), &a);
        close_sublayer(e, t, b, b->att, l->o, &l->norm);
        feed_forward_layer(e, t, b, &l->ffn);
    }
    if (t->pre_norm) apply_norm(e, t, b->x, b->x, &t->encoder_norm);
}

static int first_block(const dgm_state *s, int32_t slot)
{
    return s->slot_first[slot] / DGM_BLOCK_POSITIONS;
}

// Encodes sentences whose tokens fit one chunk.
static void encode_chunk(dgm_state *s, int count, const dgm_source *sources, const int32_t *slots,
                         int tokens)
{
    const transformer *t = s->model->weights;
    transformer_state *ts = s->storage;
    dgm_exec *e = s->exec;
    size_t mark = dgm_exec_mark(e);
    dgm_arena *a = dgm_exec_host(e);
    buffers b = take_buffers(e, tokens, t->d, max_int(t->ffn, 2 * t->d * t->decoder_layers));
    dgm_attend_row *rows = DGM_ARENA_ARRAY(a, dgm_attend_row, (size_t)tokens);
    int32_t *ids = DGM_ARENA_ARRAY(a, int32_t, (size_t)tokens);   // token of each row
    int32_t *pos = DGM_ARENA_ARRAY(a, int32_t, (size_t)tokens);   // its position
    int32_t *first = DGM_ARENA_ARRAY(a, int32_t, (size_t)tokens); // first row of its sentence
    int32_t *length = DGM_ARENA_ARRAY(a, int32_t, (size_t)tokens);
    for (int i = 0, r = 0; i < count; i++) {
        int start = r;
        for (int j = 0; j < sources[i].count; j++, r++) {
            ids[r] = sources[i].ids[j];
            pos[r] = j + t->position_offset;
            first[r] = start;
            length[r] = sources[i].count;
        }
    }
    dgm_op_embed(e, b.x, t->source, ids, embedding_scale(t), NULL, t->encoder_positions, pos);
    if (t->encoder_embed_norm.gamma) apply_norm(e, t, b.x, b.x, &t->encoder_embed_norm);
    encoder_layers(e, t, &b, first, length, rows);

    dgm_mat kv = dgm_mat_cols(b.wide, 0, 2 * t->d * t->decoder_layers);
    dgm_op_linear(e, kv, b.x, t->cross_kv, DGM_ACT_NONE, NULL);
    for (int i = 0, r = 0; i < count; r += sources[i++].count) {
        dgm_mat own = dgm_mat_rows(kv, r, sources[i].count);
        for (int l = 0; l < t->decoder_layers; l++)
            dgm_op_blocks_put(e, &ts->cross[l], first_block(s, slots[i]),
                              dgm_mat_cols(own, 2 * t->d * l, 2 * t->d));
    }
    dgm_exec_reset(e, mark);
}

static void encode(dgm_state *s, int count, const dgm_source *sources, const int32_t *slots)
{
    int capacity = encode_capacity(&s->limits);
    for (int begin = 0, end; begin < count; begin = end) {
        int tokens = sources[begin].count;
        for (end = begin + 1; end < count && tokens + sources[end].count <= capacity; end++)
            tokens += sources[end].count;
        encode_chunk(s, end - begin, sources + begin, slots + begin, tokens);
    }
}

// ---- decoder ----------------------------------------------------------------------------------

static void start(dgm_state *s, int count, const int32_t *slots, const int32_t *rows)
{
    const transformer *t = s->model->weights;
    transformer_state *ts = s->storage;
    (void)slots;
    for (int l = 0; t->ssru && l < t->decoder_layers; l++)
        for (int i = 0; i < count; i++) dgm_op_zero(s->exec, dgm_mat_rows(ts->kv[l], rows[i], 1));
}

// Everything one step call looks up once and every layer uses.
typedef struct step_call {
    dgm_state *s;
    const transformer *t;
    transformer_state *ts;
    buffers b;
    const int32_t *rows;   // the new rows
    int32_t *parents;      // of the new rows
    dgm_attend_row *self;  // paths of ancestors
    dgm_source_row *cross; // blocks of the slots
    float *const *align;
} step_call;

static void prepare_attention(step_call *c, int count)
{
    dgm_state *s = c->s;
    dgm_arena *a = dgm_exec_host(s->exec);
    c->self = DGM_ARENA_ARRAY(a, dgm_attend_row, (size_t)count);
    c->cross = DGM_ARENA_ARRAY(a, dgm_source_row, (size_t)count);
    size_t total = 0;
    for (int i = 0; i < count; i++) total += (size_t)s->rows.nodes[c->rows[i]].position;
    int32_t *path = c->t->ssru ? NULL : DGM_ARENA_ARRAY(a, int32_t, total);
    for (int i = 0; i < count; i++) {
        const dgm_row_node *node = &s->rows.nodes[c->rows[i]];
        c->cross[i] = (dgm_source_row){first_block(s, node->slot), s->slot_length[node->slot]};
        c->self[i] = (dgm_attend_row){.index = path, .n = node->position};
        if (!path) continue;
        dgm_row_pool_path(&s->rows, c->rows[i], path);
        path += node->position;
    }
}

static void self_attention(const step_call *c, int layer)
{
    const transformer *t = c->t;
    const decoder_layer *l = &t->decoder[layer];
    dgm_exec *e = c->s->exec;
    dgm_mat kv = c->ts->kv[layer];
    dgm_op_linear(e, c->b.qkv, sublayer_input(e, t, &c->b, &l->norm), l->qkv, DGM_ACT_NONE, NULL);
    dgm_op_scatter(e, kv, dgm_mat_cols(c->b.qkv, t->d, 2 * t->d), c->rows);
    for (int i = 0; i < c->b.x.rows; i++) {
        c->self[i].k = kv.data;
        c->self[i].v = dgm_mat_cols(kv, t->d, t->d).data;
    }
    dgm_attend a = heads_of(t, c->self, kv);
    dgm_op_attend(e, c->b.att, dgm_mat_cols(c->b.qkv, 0, t->d), &a);
    close_sublayer(e, t, &c->b, c->b.att, l->o, &l->norm);
}

static void ssru(const step_call *c, int layer)
{
    const transformer *t = c->t;
    const decoder_layer *l = &t->decoder[layer];
    dgm_exec *e = c->s->exec;
    dgm_mat cells = c->ts->kv[layer], two = dgm_mat_cols(c->b.qkv, 0, 2 * t->d);
    dgm_mat cell = dgm_mat_cols(c->b.qkv, 2 * t->d, t->d);
    dgm_op_linear(e, two, sublayer_input(e, t, &c->b, &l->norm), l->qkv, DGM_ACT_NONE, NULL);
    dgm_op_gather(e, cell, cells, c->parents);
    dgm_op_ssru(e, c->b.att, cell, cell, dgm_mat_cols(two, 0, t->d), dgm_mat_cols(two, t->d, t->d));
    dgm_op_scatter(e, cells, cell, c->rows);
    dgm_op_add(e, c->b.x, c->b.x, c->b.att);
    if (!t->pre_norm) apply_norm(e, t, c->b.x, c->b.x, &l->norm);
}

static void cross_attention(const step_call *c, int layer)
{
    const transformer *t = c->t;
    const decoder_layer *l = &t->decoder[layer];
    dgm_exec *e = c->s->exec;
    dgm_mat q = dgm_mat_cols(c->b.qkv, 0, t->d);
    dgm_op_linear(e, q, sublayer_input(e, t, &c->b, &l->cross_norm), l->cross_q, DGM_ACT_NONE,
                  NULL);
    const dgm_model_info *info = &c->s->model->info;
    float *const *align = layer == info->align_layer ? c->align : NULL;
    dgm_op_attend_blocks(e, c->b.att, q, &c->ts->cross[layer], c->cross, head_scale(t), align,
                         info->align_head);
    close_sublayer(e, t, &c->b, c->b.att, l->cross_o, &l->cross_norm);
}

static void embed_tokens(const step_call *c, int count, const dgm_step_row *steps)
{
    const transformer *t = c->t;
    dgm_exec *e = c->s->exec;
    dgm_arena *a = dgm_exec_host(e);
    int32_t *ids = DGM_ARENA_ARRAY(a, int32_t, (size_t)count);
    int32_t *pos = DGM_ARENA_ARRAY(a, int32_t, (size_t)count);
    for (int i = 0; i < count; i++) {
        ids[i] = steps[i].token[0];
        pos[i] = c->s->rows.nodes[steps[i].parent].position + t->position_offset;
        c->parents[i] = steps[i].parent;
    }
    const dgm_vector *positions =
        t->decoder_positions ? t->decoder_positions : t->encoder_positions;
    dgm_op_embed(e, c->b.x, t->target, ids, embedding_scale(t), t->start, positions, pos);
    if (t->decoder_embed_norm.gamma) apply_norm(e, t, c->b.x, c->b.x, &t->decoder_embed_norm);
}

static void step(dgm_state *s, int count, const dgm_step_row *steps, const int32_t *rows,
                 dgm_mat *hidden, float *const *align)
{
    const transformer *t = s->model->weights;
    transformer_state *ts = s->storage;
    dgm_exec *e = s->exec;
    size_t mark = dgm_exec_mark(e);
    step_call c = {.s = s, .t = t, .ts = ts, .rows = rows, .align = align};
    c.b = take_buffers(e, count, t->d, t->decoder_ffn);
    c.parents = DGM_ARENA_ARRAY(dgm_exec_host(e), int32_t, (size_t)count);
    prepare_attention(&c, count);
    embed_tokens(&c, count, steps);
    for (int i = 0; i < t->decoder_layers; i++) {
        if (t->ssru)
            ssru(&c, i);
        else
            self_attention(&c, i);
        cross_attention(&c, i);
        feed_forward_layer(e, t, &c.b, &t->decoder[i].ffn);
    }
    *hidden = dgm_mat_rows(ts->hidden, 0, count);
    if (t->pre_norm)
        apply_norm(e, t, *hidden, c.b.x, &t->decoder_norm);
    else
        dgm_op_gather(e, *hidden, c.b.x, NULL);
    dgm_exec_reset(e, mark);
}

const dgm_model_ops dgm_transformer_ops = {
    .name = "transformer",
    .load = dgm_transformer_load,
    .unload = dgm_transformer_unload,
    .state_bytes = state_bytes,
    .state_open = state_open,
    .encode = encode,
    .start = start,
    .step = step,
};
