// SPDX-License-Identifier: MIT
// Heads of attention: their sizes, their keys and values.
//
// An ensemble of models with the decoder `bahdanau` that was unfolded into one network (`dragoman
// shrink`) has one head for each member. Every head has its own units of attention, its own
// distribution over the source and its own part of the encoder's states:
//
//   e_mj = v_m . tanh(Wq_m h + Uk_m s_j + b_m);  c_m = sum_j softmax(e_m)_j [f_mj ; b_mj]
//   h' = GRU([x; c_1; c_2; ...], h)
//
// where f_m and b_m are the units of head m of the two directions. All other models have one head,
// which is the whole network.
//
//   keys   head m: [places, A_m]      values  head m: [places, products with [f_mj ; b_mj]]
//
// Products with c_m are made once per source position, as in every model (rnn_private.h): gates of
// head m's units, which are the only ones that see c_m, and the read-out's. A read-out that is not
// divided among the heads sees all contexts, so every head has values for all of its rows, which are
// added up.
#include "base/arena.h"
#include "model/rnn/rnn_private.h"

// ---- settings ----------------------------------------------------------------------------------

// Units of each head of one dimension; NULL: it is not divided.
static dgm_status get_sizes(const dgm_gguf *g, const char *key, int sum, const uint32_t **out,
                            size_t *count, dgm_error *err)
{
    uint64_t all = 0;
    DGM_TRY(dgm_gguf_get_u32s(g, key, DGM_OPTIONAL, 1, (uint32_t)sum, out, count, err));
    for (size_t i = 0; *out && i < *count; i++) all += (*out)[i];
    DGM_FAIL_IF(*out && all != (uint64_t)sum, err, DGM_ERR_FORMAT,
                "key '%s': the heads have %llu units together, not %d", key,
                (unsigned long long)all, sum);
    return DGM_OK;
}

// The one head of a model that has no others.
static void whole_network(rnn *r)
{
    r->heads = 1;
    r->head[0].units = (rnn_units){.attention = r->attention,
                                   .encoder = r->encoder_hidden,
                                   .width = r->width,
                                   .hidden = r->hidden,
                                   .readout = r->readout_rows};
}

// Each head begins where the one before it ends.
static void place_heads(rnn *r)
{
    for (int m = 1; m < r->heads; m++) {
        const rnn_units *u = &r->head[m - 1].units, *f = &r->head[m - 1].first;
        r->head[m].first = (rnn_units){.embed = f->embed + u->embed,
                                       .attention = f->attention + u->attention,
                                       .encoder = f->encoder + u->encoder,
                                       .width = f->width + u->width,
                                       .hidden = f->hidden + u->hidden,
                                       .readout = f->readout + u->readout};
    }
}

static dgm_status check_network(const rnn *r, dgm_error *err)
{
    const bool more = r->upper_layers || r->fc.count || r->source_fc.count || r->top != TOP_NONE ||
                      r->encoder_norm != NORM_NONE || r->encoder_transitions;
    DGM_FAIL_IF(r->decoder != &dgm_rnn_bahdanau || r->encoder_layers != 1 || r->lstm || more, err,
                DGM_ERR_UNSUPPORTED,
                "only the decoder 'bahdanau' may have several heads of attention, with one encoder "
                "layer of GRUs and nothing above its cell");
    return DGM_OK;
}

dgm_status dgm_rnn_heads_settings(const dgm_gguf *g, rnn *r, dgm_error *err)
{
    const uint32_t *attention = NULL, *encoder = NULL, *hidden = NULL, *readout = NULL,
                   *embed = NULL;
    size_t a = 0, e = 0, h = 0, o = 0, x = 0;
    DGM_TRY(get_sizes(g, "dragoman.rnn.head_attention", r->attention, &attention, &a, err));
    DGM_TRY(get_sizes(g, "dragoman.rnn.head_encoder", r->encoder_hidden, &encoder, &e, err));
    DGM_TRY(get_sizes(g, "dragoman.rnn.head_hidden", r->hidden, &hidden, &h, err));
    DGM_TRY(get_sizes(g, "dragoman.rnn.head_embed", r->embed, &embed, &x, err));
    if (r->readout_size)
        DGM_TRY(get_sizes(g, "dragoman.rnn.head_readout", r->readout_size, &readout, &o, err));
    DGM_FAIL_IF(a != e || a != h || (o && o != a) || (x && x != a) || a > DGM_RNN_HEADS_MAX, err,
                DGM_ERR_FORMAT,
                "attention of %zu heads, over the encoder's units of %zu and the decoder's of %zu; "
                "at most %d",
                a, e, h, DGM_RNN_HEADS_MAX);
    whole_network(r);
    if (a == 0) return DGM_OK;
    DGM_TRY(check_network(r, err));
    const int directions = r->width / r->encoder_hidden;
    r->heads = (int)a;
    r->divided = true;
    for (int m = 0; m < r->heads; m++)
        r->head[m].units = (rnn_units){
            .embed = embed ? (int)embed[m] : 0,
            .attention = (int)attention[m],
            .encoder = (int)encoder[m],
            .width = directions * (int)encoder[m],
            .hidden = (int)hidden[m],
            .readout = readout ? (int)readout[m] * (r->readout_rows / r->readout_size) : 0,
        };
    place_heads(r);
    return DGM_OK;
}

// ---- memory ------------------------------------------------------------------------------------

int dgm_rnn_value_rows(const rnn_head *h)
{
    return h->value_gates + h->value_readout;
}

int dgm_rnn_memory_width(const rnn *r, int head)
{
    const rnn_head *h = &r->head[head];
    const bool itself = r->plain || r->upper_context;
    return (r->plain ? 0 : dgm_rnn_value_rows(h)) + (itself ? h->units.width : 0);
}

size_t dgm_rnn_memory_bytes(const dgm_model *m, int places)
{
    const rnn *r = m->weights;
    size_t bytes = 0;
    for (int h = 0; h < r->heads; h++) {
        const int keys = r->head[h].units.attention, values = dgm_rnn_memory_width(r, h);
        bytes += r->decoder->product ? dgm_exec_mat_bytes(m->backend, places, keys + values)
                                     : dgm_exec_mat_bytes(m->backend, places, keys) +
                                           dgm_exec_mat_bytes(m->backend, places, values);
    }
    return bytes;
}

static dgm_mat take_packed(dgm_exec *x, int places, int cols)
{
    dgm_mat m = dgm_exec_mat(x, places, cols);
    m.stride = m.cols;
    return m;
}

// Product attention strides over keys and values alike, so they lie side by side; additive
// attention reads both without gaps.
bool dgm_rnn_memory_take(dgm_state *s, rnn_state *rs)
{
    const rnn *r = s->model->weights;
    const int places = dgm_state_sources(&s->limits);
    for (int h = 0; h < r->heads; h++) {
        const int keys = r->head[h].units.attention, values = dgm_rnn_memory_width(r, h);
        if (r->decoder->product) {
            const dgm_mat both = dgm_exec_mat(s->exec, places, keys + values);
            if (!both.data) return false;
            rs->keys[h] = dgm_mat_cols(both, 0, keys);
            rs->values[h] = dgm_mat_cols(both, keys, values);
        } else {
            rs->keys[h] = take_packed(s->exec, places, keys);
            rs->values[h] = take_packed(s->exec, places, values);
        }
        if (!rs->keys[h].data || !rs->values[h].data) return false;
    }
    return true;
}

// ---- what the encoder leaves -------------------------------------------------------------------

void dgm_rnn_heads_order(dgm_exec *e, const rnn *r, dgm_mat memory, dgm_mat out,
                         const int32_t *index)
{
    if (r->heads == 1) {
        dgm_op_gather(e, memory, out, index);
        return;
    }
    const int directions = r->width / r->encoder_hidden;
    for (int h = 0; h < r->heads; h++) {
        const rnn_units *u = &r->head[h].units, *first = &r->head[h].first;
        for (int d = 0; d < directions; d++)
            dgm_op_gather(e, dgm_mat_cols(memory, first->width + d * u->encoder, u->encoder),
                          dgm_mat_cols(out, d * r->encoder_hidden + first->encoder, u->encoder),
                          index);
    }
}

// What attention adds up for each position: products with s_j, and s_j itself where it is needed.
static void keep_values(dgm_state *s, int head, dgm_mat memory, const int32_t *place)
{
    const rnn *r = s->model->weights;
    const rnn_head *h = &r->head[head];
    const dgm_mat to = ((rnn_state *)s->storage)->values[head];
    dgm_exec *e = s->exec;
    const int products = r->plain ? 0 : dgm_rnn_value_rows(h);
    const dgm_mat own = dgm_mat_cols(memory, h->first.width, h->units.width);
    if (products) {
        const dgm_mark mark = dgm_exec_mark(e);
        dgm_mat values = dgm_exec_mat(e, memory.rows, products);
        dgm_op_linear(e, values, own, h->value, DGM_ACT_NONE, NULL);
        dgm_op_scatter(e, dgm_mat_cols(to, 0, products), values, place);
        dgm_exec_reset(e, mark);
    }
    if (dgm_rnn_memory_width(r, head) > products)
        dgm_op_scatter(e, dgm_mat_cols(to, products, own.cols), own, place);
}

size_t dgm_rnn_keep_scratch(const dgm_model *m, int rows)
{
    const rnn *r = m->weights;
    size_t most = 0;
    for (int h = 0; h < r->heads; h++) {
        const size_t bytes = dgm_exec_mat_bytes(m->backend, rows, dgm_rnn_value_rows(&r->head[h]));
        if (bytes > most) most = bytes;
    }
    return most + dgm_exec_mat_bytes(m->backend, rows, r->attention);
}

void dgm_rnn_heads_keep(dgm_state *s, dgm_mat memory, const int32_t *place)
{
    const rnn *r = s->model->weights;
    rnn_state *rs = s->storage;
    dgm_mat keys = dgm_exec_mat(s->exec, memory.rows, r->attention);
    dgm_rnn_multiply(s->exec, keys, memory, &r->key, r->decoder->key_act, NULL);
    for (int h = 0; h < r->heads; h++) {
        const dgm_mat own =
            dgm_mat_cols(keys, r->head[h].first.attention, r->head[h].units.attention);
        dgm_op_scatter(s->exec, rs->keys[h], own, place);
        keep_values(s, h, memory, place);
    }
    if (!r->plain) rs->counts.context_products += (uint64_t)memory.rows;
}
