// SPDX-License-Identifier: MIT
// The recurrent encoder: many sentences side by side, without padding.
//
// Sentences of one chunk are ordered by length, longest first, so that those longer than t are the
// first live[t] of them. Rows lie time by time:
//
//     time      0           1           2
//     row       0 1 2 3     4 5 6       7 8          offset = {0, 4, 7, 9}
//     sentence  a b c d     a b c       a b          (lengths 3, 3, 2, 1)
//
// A step is then one product over neighbouring rows and reads its state from the rows of the step
// before. The backward direction is the same walk over mirrored sentences: mirror[row of (t, i)] =
// row of (length_i - 1 - t, i). The gates' products with the inputs of all times are one product.
//
// Layers may differ in their directions, and a direction may see both of the layer below, its own or the
// other; with residuals, what it sees is added to its output from some layer on, behind the walk (a
// state is what the cell made, and the transitions behind it). Fully connected layers
// on the source come last. What the decoder needs is made here too, once per sentence: keys, values
// (rnn_private.h) and h_0.
#include "model/rnn/rnn_private.h"

#include "base/sort.h"

// Bookkeeping of one chunk: n rows, sentences numbered by falling length.
typedef struct chunk {
    int count, tokens, longest;
    int32_t *order;  // [count]: index of the i-th longest among the chunk's sources
    int32_t *live;   // [longest]: sentences longer than t
    int32_t *offset; // [longest + 1]: first row of time t
    int32_t *ids;    // [tokens]
    int32_t *mirror; // [tokens]
    int32_t *row;    // [tokens]: row of each token, sentence after sentence in the caller's order
    int32_t *place;  // [tokens]: where that token's keys and values go
    int32_t *first, *length; // [count]: of each source in that order
} chunk;

// Tokens encoded in one go.
static int capacity(const dgm_model *m, const dgm_limits *l)
{
    return dgm_encode_capacity(l, dgm_backend_properties(m->backend)->encode_tokens_recurrent, 0);
}

dgm_bytes dgm_rnn_encode_scratch(const dgm_model *m, const dgm_limits *l)
{
    const rnn *r = m->weights;
    const dgm_backend *b = m->backend;
    int n = capacity(m, l), gates = r->gates * r->encoder_hidden, he = r->encoder_hidden;
    int most = l->slots < n ? l->slots : n; // sentences of a chunk
    size_t list = dgm_arena_cost(((size_t)n + 1) * sizeof(int32_t));
    const dgm_bytes own = {
        .host = 9 * list,
        .device = 2 * dgm_exec_mat_bytes(b, n, 2 * he) + 2 * dgm_exec_mat_bytes(b, n, r->width) +
                  dgm_exec_mat_bytes(b, n, 2 * gates) + dgm_exec_mat_bytes(b, n, gates) +
                  dgm_exec_mat_bytes(b, n, he) + dgm_exec_mat_bytes(b, most, gates) +
                  dgm_exec_mat_bytes(b, most * r->encoder_transitions, gates) +
                  2 * dgm_exec_mat_bytes(b, most, he) + dgm_rnn_fc_scratch(b, &r->source_fc, n, 0) +
                  dgm_exec_mat_bytes(b, most, r->width) + dgm_exec_mat_bytes(b, most, r->hidden) +
                  dgm_rnn_keep_scratch(m, n)};
    return dgm_bytes_add(own, dgm_rnn_words_scratch(b, n, r->embed, 2 * gates));
}

// ---- layout -----------------------------------------------------------------------------------

// Orders the sources by falling length; equal ones keep their order. Chunks are short.
static void sort_by_length(chunk *c, const dgm_source *sources)
{
    for (int i = 0; i < c->count; i++) {
        int at = i;
        DGM_INSERT(c->order, at, i, sources[c->order[at - 1]].count < sources[i].count);
    }
}

static void lay_out(chunk *c, const dgm_state *s, const dgm_source *sources, const int32_t *slots)
{
    sort_by_length(c, sources);
    c->longest = sources[c->order[0]].count;
    int live = c->count, row = 0;
    for (int t = 0; t < c->longest; t++) {
        while (sources[c->order[live - 1]].count <= t) live--;
        c->live[t] = live;
        c->offset[t] = row;
        row += live;
    }
    c->offset[c->longest] = row;
    for (int k = 0, at = 0; k < c->count; k++) {
        c->first[k] = at;
        c->length[k] = sources[k].count;
        at += sources[k].count;
    }
    for (int i = 0; i < c->count; i++) {
        int k = c->order[i], n = sources[k].count;
        for (int t = 0; t < n; t++) {
            int here = c->offset[t] + i, token = c->first[k] + t;
            c->ids[here] = sources[k].ids[t];
            c->mirror[here] = c->offset[n - 1 - t] + i;
            c->row[token] = here;
            c->place[token] = s->slot_first[slots[k]] + t;
        }
    }
}

static chunk take_chunk(dgm_arena *a, int count, int tokens)
{
    size_t n = (size_t)tokens + 1; // count and longest are at most tokens
    chunk c = {
        .count = count,
        .tokens = tokens,
        .order = DGM_ARENA_ARRAY(a, int32_t, n),
        .live = DGM_ARENA_ARRAY(a, int32_t, n),
        .offset = DGM_ARENA_ARRAY(a, int32_t, n),
        .ids = DGM_ARENA_ARRAY(a, int32_t, n),
        .mirror = DGM_ARENA_ARRAY(a, int32_t, n),
        .row = DGM_ARENA_ARRAY(a, int32_t, n),
        .place = DGM_ARENA_ARRAY(a, int32_t, n),
        .first = DGM_ARENA_ARRAY(a, int32_t, n),
        .length = DGM_ARENA_ARRAY(a, int32_t, n),
    };
    return c;
}

// ---- arithmetic -------------------------------------------------------------------------------

// What one direction of one layer works in.
typedef struct walk {
    dgm_mat gates;      // [count, gates * He]: products with the state
    dgm_mat zero, cell; // [count, He]: first state; LSTM's cells
    dgm_mat steady;     // [transitions * count, gates * He]: what they have in place of inputs
    dgm_mat mirrored;   // [tokens, gates * He]: gates of the inputs, backwards
    dgm_mat back;       // [tokens, He]: output of the backward direction, in its own order
} walk;

// Heads from .. to - 1, the products of their states and what is behind their cells.
typedef struct lane {
    const rnn_product *h;
    const rnn_transitions *next;
    int from, to;
} lane;

static void run_grus(dgm_exec *e, const rnn *r, const lane *l, dgm_mat next, dgm_mat state,
                     dgm_mat gx, dgm_mat gh)
{
    for (int m = l->from; m < l->to; m++) {
        const int first = r->head[m].first.encoder, n = r->head[m].units.encoder;
        dgm_op_gru(e, dgm_mat_cols(next, first, n), dgm_mat_cols(state, first, n),
                   dgm_mat_cols(gx, 3 * first, 3 * n), dgm_mat_cols(gh, 3 * first, 3 * n));
    }
}

static void run_lane(dgm_exec *e, const rnn *r, const chunk *c, const walk *w, const lane *l,
                     dgm_mat gx, dgm_mat out)
{
    if (r->lstm) dgm_op_zero(e, w->cell);
    if (l->next->count) dgm_rnn_transitions_inputs(e, l->next, w->steady);
    for (int t = 0; t < c->longest; t++) {
        int n = c->live[t];
        dgm_mat state = dgm_mat_rows(w->zero, 0, n), next = dgm_mat_rows(out, c->offset[t], n);
        if (t > 0) state = dgm_mat_rows(out, c->offset[t - 1], n);
        dgm_mat x = dgm_mat_rows(gx, c->offset[t], n), gh = dgm_mat_rows(w->gates, 0, n);
        dgm_mat cell = dgm_mat_rows(w->cell, 0, n);
        dgm_rnn_multiply(e, gh, state, l->h, DGM_ACT_NONE, NULL);
        if (r->lstm)
            dgm_op_lstm(e, next, cell, cell, x, gh);
        else
            run_grus(e, r, l, next, state, x, gh);
        dgm_rnn_transitions_run(e, l->next, next, cell, w->steady, gh);
    }
}

// out [tokens, He] from the inputs' gates gx [tokens, gates * He], both in the order of the walk. Heads
// that do not see each other are walked one after the other: a head's weights stay in the cache.
static void run_direction(dgm_exec *e, const rnn *r, const chunk *c, const walk *w,
                          const rnn_layer *l, int direction, dgm_mat gx, dgm_mat out)
{
    const rnn_product *h = &l->h[direction];
    const rnn_transitions *next = &l->next[direction];
    if (r->heads == 1 || h->count < r->heads) {
        const lane all = {h, next, 0, r->heads};
        run_lane(e, r, c, w, &all, gx, out);
        return;
    }
    for (int m = 0; m < r->heads; m++) {
        const rnn_product own = {
            .rows = h->rows, .cols = h->cols, .count = 1, .block = {h->block[m]}};
        const lane one = {&own, next, m, m + 1};
        run_lane(e, r, c, w, &one, gx, out);
    }
}

// One layer: its gates of the inputs are in gx, its output goes to out [tokens, directions * He].
static void run_layer(dgm_exec *e, const rnn *r, const chunk *c, const walk *w, const rnn_layer *l,
                      dgm_mat gx, dgm_mat out)
{
    int he = r->encoder_hidden, gates = r->gates * he;
    run_direction(e, r, c, w, l, 0, dgm_mat_cols(gx, 0, gates), dgm_mat_cols(out, 0, he));
    if (l->directions < 2) return;
    dgm_op_gather(e, w->mirrored, dgm_mat_cols(gx, gates, gates), c->mirror);
    run_direction(e, r, c, w, l, 1, w->mirrored, w->back);
    dgm_op_scatter(e, dgm_mat_cols(out, he, he), w->back, c->mirror);
}

// Adds what each direction of a layer saw to what it made of it.
static void add_residual(dgm_exec *e, const rnn *r, dgm_mat out, dgm_mat in)
{
    const int he = r->encoder_hidden;
    if (r->stacks != STACKS_CROSSED || out.cols == he) {
        dgm_op_add(e, out, out, in);
        return;
    }
    for (int d = 0; d < 2; d++) {
        const dgm_mat own = dgm_mat_cols(out, d * he, he);
        dgm_op_add(e, own, own, dgm_mat_cols(in, (1 - d) * he, he));
    }
}

// All layers; returns the output [tokens, W] in the order of rows.
static dgm_mat run_layers(dgm_exec *e, const rnn *r, const chunk *c, dgm_model_counts *counts)
{
    int he = r->encoder_hidden, gates = r->gates * he, n = c->tokens;
    dgm_mat turns[2] = {dgm_exec_mat(e, n, 2 * he), dgm_exec_mat(e, n, 2 * he)}, in = {0};
    dgm_mat both = dgm_exec_mat(e, n, 2 * gates);
    walk w = {
        .gates = dgm_exec_mat(e, c->count, gates),
        .zero = dgm_exec_mat(e, c->count, he),
        .cell = dgm_exec_mat(e, c->count, he),
        .steady = dgm_exec_mat(e, c->count * r->encoder_transitions, gates),
        .mirrored = dgm_exec_mat(e, n, gates),
        .back = dgm_exec_mat(e, n, he),
    };
    dgm_op_zero(e, w.zero);
    for (int i = 0; i < r->encoder_layers; i++) {
        const rnn_layer *l = &r->layers[i];
        dgm_mat out = dgm_mat_cols(turns[i % 2], 0, l->directions * he);
        dgm_mat gx = dgm_mat_cols(both, 0, l->directions * gates);
        if (i == 0) {
            rnn_words words = {r->source, &l->x, &r->source_table};
            counts->source_words += (uint64_t)n;
            counts->source_found += (uint64_t)dgm_rnn_word_products(e, &words, gx, c->ids);
        } else {
            dgm_rnn_multiply(e, gx, in, &l->x, DGM_ACT_NONE, NULL);
        }
        run_layer(e, r, c, &w, l, gx, out);
        if (r->encoder_residual && i >= r->encoder_residual_from) add_residual(e, r, out, in);
        counts->activations += (uint64_t)n * (uint64_t)(l->directions * he) * (r->lstm ? 5 : 3) *
                               (uint64_t)(1 + r->encoder_transitions);
        in = out;
    }
    return in;
}

// Fully connected layers on every token's vector; in place.
static void run_source_fc(dgm_exec *e, const rnn *r, dgm_mat memory)
{
    if (r->source_fc.count == 0) return;
    dgm_mark mark = dgm_exec_mark(e);
    dgm_rnn_fc(e, &r->source_fc, memory, memory);
    dgm_exec_reset(e, mark);
}

static void encode_chunk(dgm_state *s, int count, const dgm_source *sources, const int32_t *slots,
                         int tokens)
{
    const rnn *r = s->model->weights;
    rnn_state *rs = s->storage;
    dgm_exec *e = s->exec;
    dgm_mark mark = dgm_exec_mark(e);
    chunk c = take_chunk(dgm_exec_host(e), count, tokens);
    lay_out(&c, s, sources, slots);
    dgm_mat by_time = run_layers(e, r, &c, &rs->counts);
    dgm_mat memory = dgm_exec_mat(e, tokens, r->width); // sentence after sentence
    dgm_rnn_heads_order(e, r, memory, by_time, c.row);
    run_source_fc(e, r, memory);
    dgm_rnn_heads_keep(s, memory, c.place);

    dgm_mat mean = dgm_exec_mat(e, count, r->width), h0 = dgm_exec_mat(e, count, r->hidden);
    dgm_op_mean(e, mean, memory, c.first, c.length);
    dgm_rnn_multiply(e, h0, mean, &r->init, DGM_ACT_TANH, NULL);
    dgm_op_scatter(e, rs->initial, h0, slots);
    dgm_exec_reset(e, mark);
}

void dgm_rnn_encode(dgm_state *s, int count, const dgm_source *sources, const int32_t *slots)
{
    const dgm_encode_chunks chunks = {.most = capacity(s->model, &s->limits),
                                      .encode = encode_chunk};
    dgm_encode_in_chunks(s, count, sources, slots, &chunks);
}
