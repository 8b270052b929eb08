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
// numbers, so that hypotheses share their common past and nothing is ever copied. Recurrent
// sub-layers (transformer_recurrent.c) keep a cell instead, kv[layer] [rows, D].
//
// A decoder of pairs (architecture "double") is the same with two vectors and two entries a row:
// both of a pair see each other and every entry of the pairs before, and positions count tokens.
//
// The parts of a layer are in transformer_layer.c.
#include <math.h>
#include <string.h>

#include "model/transformer/transformer_private.h"

// Tokens encoded in one go.
static int encode_capacity(const dgm_model *m, const dgm_limits *l)
{
    return dgm_encode_capacity(l, dgm_backend_properties(m->backend)->encode_tokens, 1); // LENGTH may come first
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

// Width of the encoder's widest buffer: inner layer, logits of lengths.
static int encoder_wide(const transformer *t)
{
    return max_int(dgm_transformer_inner(t, &t->enc), t->lengths);
}

// Keys and values of all decoder layers are wider than anything else: of so many tokens at a time.
static int cross_width(const transformer *t)
{
    return 2 * t->dec.inner * t->dec.layers;
}

static int cross_capacity(const dgm_model *m, const dgm_limits *l)
{
    enum { TOKENS = 1024 };
    const int all = encode_capacity(m, l);
    return all < TOKENS ? all : max_int(TOKENS, l->source + 1);
}

static dgm_bytes encode_scratch(const dgm_model *m, const dgm_limits *l)
{
    const transformer *t = m->weights;
    const size_t tokens = (size_t)encode_capacity(m, l);
    dgm_bytes bytes = {
        .host = 4 * dgm_arena_cost(tokens * sizeof(int32_t)) +
                dgm_arena_cost(tokens * sizeof(dgm_block_span)),
        .device = dgm_transformer_buffers_bytes(m->backend, t, (int)tokens, encoder_wide(t)) +
                  dgm_exec_mat_bytes(m->backend, cross_capacity(m, l), cross_width(t))};
    bytes = dgm_bytes_add(bytes, dgm_paths_bytes(m->backend, (int)tokens, 0));
    if (!t->moe.encoder_every) return bytes;
    return dgm_bytes_add(
        bytes, dgm_experts_bytes(m->backend, (int)tokens, t->d, t->moe.experts));
}

// Entries of all paths of a step at most.
static size_t path_entries(const transformer *t, const dgm_limits *l)
{
    if (t->lengths || t->cell != DECODER_ATTENTION) return 0;
    return (size_t)l->rows * (size_t)t->tokens * (size_t)(l->target + 1);
}

// Of a step, or of a refine call.
static dgm_bytes step_scratch(const dgm_model *m, const dgm_limits *l)
{
    const transformer *t = m->weights;
    const int rows = l->rows * t->tokens;
    const size_t n = (size_t)rows, paths = path_entries(t, l);
    const size_t one_set =
        dgm_transformer_buffers_bytes(m->backend, t, rows, dgm_transformer_wide(t));
    dgm_bytes bytes = {
        .host = 12 * dgm_arena_cost(n * sizeof(int32_t)) + (t->lengths ? 4 : 1) * dgm_arena_cost(n * sizeof(float *)),
        .device = (t->lengths ? 2 : 1) * one_set + dgm_exec_mat_bytes(m->backend, rows, t->d)};
    for (int i = 0; i < 2; i++) // self and cross, of all and of the wanted
        bytes = dgm_bytes_add(
            bytes, dgm_bytes_add(dgm_paths_bytes(m->backend, rows, i ? 0 : paths),
                                 dgm_paths_bytes(m->backend, rows, 0)));
    if (!t->moe.decoder_every) return bytes;
    return dgm_bytes_add(bytes, dgm_experts_bytes(m->backend, rows, t->d, t->moe.experts));
}

// Of the logits of lengths, of all slots at most.
static dgm_bytes lengths_scratch(const dgm_model *m, const dgm_limits *l)
{
    const transformer *t = m->weights;
    const size_t slots = (size_t)l->slots;
    if (!t->lengths) return (dgm_bytes){0};
    return (dgm_bytes){.host = dgm_arena_cost(slots * sizeof(int32_t)) +
                               dgm_arena_cost(slots * (size_t)t->lengths * sizeof(float)),
                       .device = dgm_exec_mat_bytes(m->backend, l->slots, t->lengths)};
}

// One at a time, taken above everything that lives longer.
static dgm_bytes scratch_bytes(const dgm_model *m, const dgm_limits *l)
{
    const transformer *t = m->weights;
    const int keys = max_int(l->source + 1, (l->target + 1) * t->tokens);
    const dgm_bytes calls = dgm_bytes_max(encode_scratch(m, l), step_scratch(m, l));
    return dgm_bytes_add(dgm_bytes_max(calls, lengths_scratch(m, l)),
                         dgm_attend_bytes(m->backend, max_int(t->enc.heads, t->dec.heads), keys));
}

// One layer's memory of the target side: keys and values, or cells (never rounded).
static size_t past_bytes(const dgm_model *m, const dgm_limits *l)
{
    const transformer *t = m->weights;
    int rows = dgm_state_rows(m, l);
    if (t->lengths) return 0;
    return t->cell != DECODER_ATTENTION
               ? dgm_exec_mat_bytes(m->backend, rows, t->d)
               : dgm_exec_cache_bytes(m->backend, rows * t->tokens, 2 * t->dec.inner, m->precision);
}

dgm_bytes dgm_transformer_bytes(const dgm_model *m, const dgm_limits *l)
{
    const transformer *t = m->weights;
    const dgm_backend *b = m->backend;
    const size_t layers = (size_t)t->dec.layers;
    const int heads = t->dec.heads, dk = t->dec.dk;
    const dgm_bytes own = {
        .host = dgm_arena_cost(sizeof(transformer_state)) +
                dgm_arena_cost(layers * sizeof(dgm_mat)) +
                dgm_arena_cost(layers * sizeof(dgm_blocks)) +
                dgm_row_pool_paths_bytes(path_entries(t, l)),
        .device =
            layers * dgm_exec_blocks_bytes(b, source_blocks(l), heads, dk, dk, m->precision) +
            layers * past_bytes(m, l) + dgm_exec_mat_bytes(b, l->rows * t->tokens, t->d) +
            (t->lengths ? dgm_exec_mat_bytes(b, l->slots, t->lengths) : 0)};
    return dgm_bytes_add(own, scratch_bytes(m, l));
}

// Blocks of sources and the past of one layer; false when the arena is full.
static bool open_layer(dgm_state *s, transformer_state *ts, int i)
{
    const transformer *t = s->model->weights;
    const dgm_precision precision = s->model->precision;
    const int heads = t->dec.heads, dk = t->dec.dk;
    ts->cross[i] = dgm_exec_blocks(s->exec, source_blocks(&s->limits), heads, dk, dk, precision);
    if (!ts->cross[i].data) return false;
    if (t->lengths) return true;
    ts->kv[i] = t->cell != DECODER_ATTENTION
                    ? dgm_exec_mat(s->exec, s->step_rows, t->d)
                    : dgm_exec_cache(s->exec, s->step_rows * t->tokens, 2 * t->dec.inner, precision);
    return ts->kv[i].data != NULL;
}

dgm_status dgm_transformer_open(dgm_state *s, dgm_error *err)
{
    const transformer *t = s->model->weights;
    dgm_arena *a = dgm_exec_host(s->exec);
    transformer_state *ts = dgm_arena_alloc(a, sizeof *ts);
    DGM_FAIL_IF(!ts, err, DGM_ERR_MEMORY, "the worker's memory is too small for the model");
    memset(ts, 0, sizeof *ts);
    ts->cross = DGM_ARENA_ARRAY(a, dgm_blocks, (size_t)t->dec.layers);
    ts->kv = DGM_ARENA_ARRAY(a, dgm_mat, (size_t)t->dec.layers);
    bool full = !ts->cross || !ts->kv ||
                !dgm_row_pool_paths_open(&s->rows, a, path_entries(t, &s->limits));
    for (int i = 0; i < t->dec.layers && !full; i++) full = !open_layer(s, ts, i);
    if (!full && t->lengths) {
        ts->lengths = dgm_exec_mat(s->exec, s->limits.slots, t->lengths);
        full = !ts->lengths.data;
    }
    if (!full) ts->hidden = dgm_exec_mat(s->exec, s->limits.rows * t->tokens, t->d);
    DGM_FAIL_IF(full || !ts->hidden.data, err, DGM_ERR_MEMORY,
                "the worker's memory is too small for the model");
    s->storage = ts;
    return DGM_OK;
}

static float embedding_scale(const transformer *t)
{
    return t->scale_embedding ? sqrtf((float)t->d) : 1.0f;
}

// ---- encoder ----------------------------------------------------------------------------------

static void encoder_layers(dgm_exec *e, const transformer *t, const buffers *b,
                           const dgm_paths *paths)
{
    const stack *side = &t->enc;
    const int n = side->inner;
    dgm_mat qkv = dgm_mat_cols(b->qkv, 0, 3 * n), att = dgm_mat_cols(b->att, 0, n);
    for (int i = 0; i < side->layers; i++) {
        const encoder_layer *l = &t->encoder[i];
        dgm_op_linear(e, qkv, dgm_transformer_input(e, t, b, &l->norms), l->qkv, DGM_ACT_NONE, NULL);
        dgm_transformer_attend(e, t, side, att, dgm_mat_cols(qkv, 0, n), qkv, l->bias, paths);
        dgm_transformer_close(e, t, side, b, att, l->o, &l->norms);
        dgm_transformer_feed_forward(e, t, side, b, &l->ffn);
    }
    if (side->final_norm.gamma) dgm_transformer_norm(e, t, b->x, b->x, NULL, &side->final_norm);
}

int dgm_transformer_block(const dgm_state *s, int32_t slot)
{
    return s->slot_first[slot] / DGM_BLOCK_POSITIONS;
}

// How many inputs come before the words of a source: LENGTH, or nothing.
static int ahead(const transformer *t)
{
    return t->lengths ? 1 : 0;
}

// Logits over target lengths, from the outputs of LENGTH: first[i] is the row of sentence i.
static void predict_lengths(dgm_state *s, const buffers *b, int count, const int32_t *first,
                            const int32_t *slots)
{
    const transformer *t = s->model->weights;
    transformer_state *ts = s->storage;
    dgm_mat in = dgm_mat_rows(b->normed, 0, count);
    dgm_mat out = dgm_mat_cols(dgm_mat_rows(b->wide, 0, count), 0, t->lengths);
    dgm_op_gather(s->exec, in, b->x, first);
    dgm_op_linear(s->exec, out, in, t->length, DGM_ACT_NONE, NULL);
    dgm_op_scatter(s->exec, ts->lengths, out, slots);
}

// Rows of x as keys and values of every decoder layer into the blocks of their slots; first[i] is filled in: the row of
// sentence i. As many sentences at a time as there is room for.
static void store_cross(dgm_state *s, int count, const dgm_source *sources, const int32_t *slots, dgm_mat x,
                        int32_t *first)
{
    const transformer *t = s->model->weights;
    transformer_state *ts = s->storage;
    dgm_exec *e = s->exec;
    const int most = cross_capacity(s->model, &s->limits);
    const dgm_mat kv = dgm_exec_mat(e, x.rows < most ? x.rows : most, cross_width(t));
    dgm_block_span *spans = DGM_ARENA_ARRAY(dgm_exec_host(e), dgm_block_span, (size_t)count);
    for (int begin = 0, end, row = 0, rows; begin < count; begin = end, row += rows) {
        rows = 0;
        for (end = begin; end < count; end++) {
            const int inputs = sources[end].count + ahead(t);
            if (end > begin && rows + inputs > most) break;
            spans[end - begin] =
                (dgm_block_span){rows + ahead(t), sources[end].count, dgm_transformer_block(s, slots[end])};
            first[end] = row + rows;
            rows += inputs;
        }
        dgm_op_linear(e, dgm_mat_rows(kv, 0, rows), dgm_mat_rows(x, row, rows), t->cross_kv, DGM_ACT_NONE, NULL);
        dgm_op_blocks_put(e, ts->cross, t->dec.layers, dgm_mat_rows(kv, 0, rows), spans, end - begin);
    }
}

// Encodes sentences whose tokens fit one chunk.
static void encode_chunk(dgm_state *s, int count, const dgm_source *sources, const int32_t *slots,
                         int tokens)
{
    const transformer *t = s->model->weights;
    dgm_exec *e = s->exec;
    dgm_mark mark = dgm_exec_mark(e);
    dgm_arena *a = dgm_exec_host(e);
    buffers b = dgm_transformer_buffers(e, t, tokens, encoder_wide(t));
    int32_t *ids = DGM_ARENA_ARRAY(a, int32_t, (size_t)tokens);   // token of each row
    int32_t *pos = DGM_ARENA_ARRAY(a, int32_t, (size_t)tokens);   // its position
    int32_t *first = DGM_ARENA_ARRAY(a, int32_t, (size_t)tokens); // first row of its sentence
    int32_t *length = DGM_ARENA_ARRAY(a, int32_t, (size_t)tokens);
    for (int i = 0, r = 0; i < count; i++) {
        int start = r, inputs = sources[i].count + ahead(t);
        for (int j = 0; j < inputs; j++, r++) {
            ids[r] = j < ahead(t) ? -1 : sources[i].ids[j - ahead(t)];
            pos[r] = j + t->enc.position_offset;
            first[r] = start;
            length[r] = inputs;
        }
    }
    dgm_op_embed(e, b.x, t->source, ids, embedding_scale(t), t->length_input, t->enc.positions, pos);
    if (t->enc.embed_norm.gamma) dgm_transformer_norm(e, t, b.x, b.x, NULL, &t->enc.embed_norm);
    encoder_layers(e, t, &b, dgm_op_paths(e, tokens, first, length, NULL, 0));
    store_cross(s, count, sources, slots, b.x, pos);
    if (t->lengths) predict_lengths(s, &b, count, pos, slots);
    dgm_exec_reset(e, mark);
}

void dgm_transformer_encode(dgm_state *s, int count, const dgm_source *sources,
                            const int32_t *slots)
{
    const dgm_encode_chunks chunks = {.most = encode_capacity(s->model, &s->limits),
                                      .more = ahead(s->model->weights),
                                      .encode = encode_chunk};
    dgm_encode_in_chunks(s, count, sources, slots, &chunks);
}

// ---- decoder ----------------------------------------------------------------------------------

int dgm_transformer_wide(const transformer *t)
{
    const int ffn = dgm_transformer_inner(t, &t->dec);
    return t->cell == DECODER_AAN ? max_int(max_int(ffn, t->aan_ffn), 2 * t->d) : ffn;
}

static void start(dgm_state *s, int count, const int32_t *slots, const int32_t *rows)
{
    const transformer *t = s->model->weights;
    transformer_state *ts = s->storage;
    (void)slots;
    if (t->cell != DECODER_ATTENTION)
        dgm_op_zero_rows(s->exec, ts->kv, t->dec.layers, rows, count);
}

// What the host gives a step, by vectors; first and length serve one kind of paths after the other.
typedef struct inputs {
    step_call *call;
    const dgm_step_row *steps;
    int count, parts;
    int32_t *first, *length, *ids, *pos;
} inputs;

// Every vector looks into the blocks of its slot.
static void put_inputs(const void *arg, int part)
{
    const inputs *x = arg;
    step_call *c = x->call;
    const dgm_state *s = c->s;
    const int tokens = c->t->tokens, end = dgm_team_cut(x->count, part + 1, x->parts);
    for (int i = dgm_team_cut(x->count, part, x->parts); i < end; i++) {
        const dgm_row_node *parent = &s->rows.nodes[x->steps[i].parent];
        const int32_t block = dgm_transformer_block(s, parent->slot), length = s->slot_length[parent->slot];
        c->parents[i] = x->steps[i].parent;
        for (int k = 0; k < tokens; k++) {
            const int at = i * tokens + k;
            c->owner[at] = i;
            c->entries[at] = c->rows[i] * tokens + k;
            x->first[at] = block;
            x->length[at] = length;
            x->ids[at] = x->steps[i].token[k];
            x->pos[at] = parent->position * tokens + k + c->t->dec.position_offset;
        }
    }
}

// And at the entries of its ancestors, which the vectors of a row share.
static void find_ancestors(const inputs *x)
{
    step_call *c = x->call;
    dgm_state *s = c->s;
    const int tokens = c->t->tokens, count = x->count, vectors = count * tokens;
    int32_t *first = x->first, *length = x->length;
    const int32_t *entries =
        dgm_row_pool_paths(&s->rows, dgm_exec_team(s->exec), count, c->rows, tokens, first, length);
    const int total = first[count - 1] + length[count - 1];
    for (int i = vectors - 1; tokens > 1 && i >= 0; i--) { // from behind: the lists grow in their place
        first[i] = first[i / tokens];
        length[i] = length[i / tokens];
    }
    c->self = dgm_op_paths(s->exec, vectors, first, length, entries, total);
}

static void prepare_step(step_call *c, int count, const dgm_step_row *steps)
{
    enum { ROW_TIME = 12, PARTS = 32 }; // nanoseconds of a row, about
    dgm_exec *e = c->s->exec;
    dgm_arena *a = dgm_exec_host(e);
    const size_t vectors = (size_t)count * (size_t)c->t->tokens;
    inputs x = {.call = c, .steps = steps, .count = count};
    c->parents = DGM_ARENA_ARRAY(a, int32_t, (size_t)count);
    c->owner = DGM_ARENA_ARRAY(a, int32_t, vectors);
    c->entries = DGM_ARENA_ARRAY(a, int32_t, vectors);
    x.first = DGM_ARENA_ARRAY(a, int32_t, vectors);
    x.length = DGM_ARENA_ARRAY(a, int32_t, vectors);
    x.ids = DGM_ARENA_ARRAY(a, int32_t, vectors);
    x.pos = DGM_ARENA_ARRAY(a, int32_t, vectors);
    x.parts = dgm_team_parts(dgm_exec_team(e), (double)count * ROW_TIME, PARTS);
    dgm_team_run(dgm_exec_team(e), put_inputs, &x, x.parts);
    c->cross = dgm_op_paths(e, (int)vectors, x.first, x.length, NULL, 0);
    if (c->t->cell == DECODER_ATTENTION) find_ancestors(&x);
    dgm_transformer_embed(c->s, &c->b, x.ids, x.pos);
}

static void self_attention(const step_call *c, int layer)
{
    const transformer *t = c->t;
    const stack *side = &t->dec;
    const decoder_layer *l = &t->decoder[layer];
    const int n = side->inner;
    dgm_exec *e = c->s->exec;
    dgm_mat kv = c->ts->kv[layer];
    dgm_mat qkv = dgm_mat_cols(c->b.qkv, 0, 3 * n), att = dgm_mat_cols(c->b.att, 0, n);
    dgm_op_linear(e, qkv, dgm_transformer_input(e, t, &c->b, &l->norms), l->qkv, DGM_ACT_NONE, NULL);
    dgm_op_scatter(e, kv, dgm_mat_cols(qkv, n, 2 * n), c->entries);
    dgm_transformer_attend(e, t, side, att, dgm_mat_cols(qkv, 0, n), kv, l->bias, c->self);
    dgm_transformer_close(e, t, side, &c->b, att, l->o, &l->norms);
}

void dgm_transformer_embed(dgm_state *s, const buffers *b, const int32_t *ids, const int32_t *pos)
{
    const transformer *t = s->model->weights;
    dgm_exec *e = s->exec;
    const dgm_vector *positions = t->dec.positions ? t->dec.positions : t->enc.positions;
    dgm_op_embed(e, b->x, t->target, ids, embedding_scale(t), t->start, positions, pos);
    if (t->dec.embed_norm.gamma) dgm_transformer_norm(e, t, b->x, b->x, NULL, &t->dec.embed_norm);
}

static void decoder_layers(const step_call *c)
{
    const transformer *t = c->t;
    for (int i = 0; i < t->dec.layers; i++) {
        if (t->cell == DECODER_SSRU)
            dgm_transformer_ssru(c, i);
        else if (t->cell == DECODER_AAN)
            dgm_transformer_aan(c, i);
        else
            self_attention(c, i);
        dgm_transformer_cross(c->s, &c->b, i, c->cross, c->align);
        dgm_transformer_feed_forward(c->s->exec, t, &t->dec, &c->b, &t->decoder[i].ffn);
    }
}

static void step(dgm_state *s, int count, const dgm_step_row *steps, const int32_t *rows,
                 dgm_mat *hidden, float *const *wanted)
{
    const transformer *t = s->model->weights;
    transformer_state *ts = s->storage;
    dgm_exec *e = s->exec;
    dgm_mark mark = dgm_exec_mark(e);
    const int vectors = count * t->tokens;
    const dgm_align_list align = dgm_model_alignment(s, vectors, wanted);
    step_call c = {.s = s, .t = t, .ts = ts, .rows = rows, .align = wanted ? &align : NULL};
    c.b = dgm_transformer_buffers(e, t, vectors, dgm_transformer_wide(t));
    prepare_step(&c, count, steps);
    decoder_layers(&c);
    *hidden = dgm_mat_rows(ts->hidden, 0, vectors);
    dgm_transformer_final(e, t, *hidden, c.b.x);
    dgm_exec_reset(e, mark);
}

// One token a step and two are the same code; transformer_load.c tells them apart.
const dgm_model_ops dgm_transformer_ops = {
    .unload = dgm_transformer_unload,
    .state_bytes = dgm_transformer_bytes,
    .state_open = dgm_transformer_open,
    .encode = dgm_transformer_encode,
    .start = start,
    .step = step,
    .experts = dgm_transformer_experts,
};
