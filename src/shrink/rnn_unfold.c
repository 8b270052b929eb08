// SPDX-License-Identifier: MIT
// Recurrent models as plain matrices: read from files, stacked into one network, written again.
//
// Unfolding puts the members' matrices on a diagonal: units of all members side by side, each
// connected to its own member's alone. The word is everybody's input (embeddings side by side), and
// so is the output: its matrices side by side times the members' weights, so that logits are the
// weighted mean of the members' logits, which is their log-linear mixture. Every member keeps its
// own attention, as a head (rnn_heads.c).
//
//     member's index i of a dimension in P parts:   part p = i / n_m, unit u = i % n_m
//     in the whole network:                         p * n + offset_m + u
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "shrink/rnn_net.h"

const net_shape dgm_net_shapes[NET_COUNT] = {
    [NET_SOURCE] = {"src.embed", NULL, DIM_SOURCE, DIM_EMBED, 1, 1},
    [NET_TARGET] = {"tgt.embed", NULL, DIM_TARGET, DIM_EMBED, 1, 1},
    [NET_OUT] = {"out.weight", "out.bias", DIM_TARGET, DIM_READOUT, 1, 1},
    [NET_FWD_W] = {"enc.0.fwd.w.weight", "enc.0.fwd.w.bias", DIM_ENCODER, DIM_EMBED, 3, 1},
    [NET_FWD_H] = {"enc.0.fwd.h.weight", "enc.0.fwd.h.bias", DIM_ENCODER, DIM_ENCODER, 3, 1},
    [NET_BWD_W] = {"enc.0.bwd.w.weight", "enc.0.bwd.w.bias", DIM_ENCODER, DIM_EMBED, 3, 1},
    [NET_BWD_H] = {"enc.0.bwd.h.weight", "enc.0.bwd.h.bias", DIM_ENCODER, DIM_ENCODER, 3, 1},
    [NET_INIT] = {"dec.init.weight", "dec.init.bias", DIM_HIDDEN, DIM_ENCODER, 1, 0},
    [NET_QUERY] = {"dec.att.query.weight", NULL, DIM_ATTENTION, DIM_HIDDEN, 1, 1},
    [NET_KEY] = {"dec.att.key.weight", "dec.att.key.bias", DIM_ATTENTION, DIM_ENCODER, 1, 0},
    [NET_V] = {"dec.att.v", NULL, DIM_ONE, DIM_ATTENTION, 1, 1},
    [NET_X] = {"dec.gru.x.weight", "dec.gru.x.bias", DIM_HIDDEN, DIM_EMBED, 3, 1},
    [NET_C] = {"dec.gru.c.weight", NULL, DIM_HIDDEN, DIM_CONTEXT, 3, 1},
    [NET_H] = {"dec.gru.h.weight", "dec.gru.h.bias", DIM_HIDDEN, DIM_HIDDEN, 3, 1},
    [NET_READ_X] = {"dec.readout.x.weight", "dec.readout.x.bias", DIM_ROWS, DIM_EMBED, 1, 1},
    [NET_READ_H] = {"dec.readout.h.weight", NULL, DIM_ROWS, DIM_HIDDEN, 1, 1},
    [NET_READ_C] = {"dec.readout.c.weight", NULL, DIM_ROWS, DIM_CONTEXT, 1, 1},
};

void dgm_net_free(rnn_net *n)
{
    for (int i = 0; i < NET_COUNT; i++) {
        dgm_free(n->m[i].w);
        dgm_free(n->m[i].bias);
    }
    *n = (rnn_net){0};
}

int dgm_net_extent(const rnn_net *n, net_dim dim, int parts)
{
    return n->size[dim] * (parts ? parts : n->directions);
}

// Is this matrix part of such a network at all?
static bool present(const rnn_net *n, int id)
{
    if ((id == NET_BWD_W || id == NET_BWD_H) && n->directions < 2) return false;
    return n->readout != NET_READ_NONE || id < NET_READ_X;
}

static dgm_status allocate(rnn_net *n, int id, bool bias, dgm_error *err)
{
    const net_shape *s = &dgm_net_shapes[id];
    net_matrix *m = &n->m[id];
    m->rows = dgm_net_extent(n, s->row, s->row_parts);
    m->cols = dgm_net_extent(n, s->col, s->col_parts);
    m->w = dgm_calloc((size_t)m->rows * (size_t)m->cols, sizeof *m->w);
    if (bias) m->bias = dgm_calloc((size_t)m->rows, sizeof *m->bias);
    return m->w && (m->bias || !bias) ? DGM_OK : dgm_no_memory(err);
}

// ---- reading -----------------------------------------------------------------------------------

static dgm_status get(const dgm_gguf *g, const char *name, int *out, dgm_error *err)
{
    char key[64];
    uint32_t v = 0;
    snprintf(key, sizeof key, "dragoman.rnn.%s", name);
    DGM_TRY(dgm_gguf_get_u32(g, key, DGM_REQUIRED, 1, 1 << 16, &v, err));
    *out = (int)v;
    return DGM_OK;
}

// Keys of parts that an unfolded network cannot have, with the value that means they are not there.
static dgm_status refuse_others(const dgm_gguf *g, dgm_error *err)
{
    static const char *const numbers[] = {"upper_layers", "fc_layers", "encoder_fc_layers",
                                          "encoder_transitions"};
    const char *cell = "gru", *decoder = "", *top = "none", *upper = "gru", *norm = "none";
    DGM_TRY(dgm_gguf_get_string(g, "dragoman.rnn.encoder_cell", DGM_OPTIONAL, &cell, err));
    DGM_TRY(dgm_gguf_get_string(g, "dragoman.rnn.decoder_cell", DGM_OPTIONAL, &upper, err));
    DGM_TRY(dgm_gguf_get_string(g, "dragoman.rnn.decoder", DGM_OPTIONAL, &decoder, err));
    DGM_TRY(dgm_gguf_get_string(g, "dragoman.rnn.top", DGM_OPTIONAL, &top, err));
    DGM_TRY(dgm_gguf_get_string(g, "dragoman.rnn.encoder_norm", DGM_OPTIONAL, &norm, err));
    DGM_FAIL_IF(strcmp(decoder, "bahdanau") != 0, err, DGM_ERR_UNSUPPORTED,
                "only models with the decoder 'bahdanau' can be unfolded, not '%.40s'",
                decoder[0] ? decoder : "another architecture");
    DGM_FAIL_IF(strcmp(cell, "gru") != 0 || strcmp(upper, "gru") != 0, err, DGM_ERR_UNSUPPORTED,
                "only models of GRUs can be unfolded, not of LSTMs");
    uint32_t layers = 1;
    DGM_TRY(
        dgm_gguf_get_u32(g, "dragoman.rnn.encoder_layers", DGM_OPTIONAL, 1, 1 << 16, &layers, err));
    bool more = layers != 1 || strcmp(top, "none") != 0 || strcmp(norm, "none") != 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char key[64];
        uint32_t v = 0;
        snprintf(key, sizeof key, "dragoman.rnn.%s", numbers[i]);
        DGM_TRY(dgm_gguf_get_u32(g, key, DGM_OPTIONAL, 0, 1 << 16, &v, err));
        more |= v != 0;
    }
    DGM_FAIL_IF(more, err, DGM_ERR_UNSUPPORTED,
                "only models with one encoder layer and nothing above the decoder's cell can be "
                "unfolded");
    DGM_FAIL_IF(dgm_gguf_find(g, "dragoman.rnn.head_attention"), err, DGM_ERR_UNSUPPORTED,
                "the model is an unfolded ensemble already");
    return DGM_OK;
}

static dgm_status read_sizes(rnn_net *n, const dgm_gguf *g, dgm_error *err)
{
    static const char *const readouts[] = {"none", "linear", "tanh", "maxout", NULL};
    bool both = true;
    int readout = NET_READ_NONE;
    const dgm_tensor *source = NULL;
    DGM_TRY(refuse_others(g, err));
    DGM_TRY(get(g, "embed", &n->size[DIM_EMBED], err));
    DGM_TRY(get(g, "encoder_hidden", &n->size[DIM_ENCODER], err));
    DGM_TRY(get(g, "decoder_hidden", &n->size[DIM_HIDDEN], err));
    DGM_TRY(get(g, "attention", &n->size[DIM_ATTENTION], err));
    DGM_TRY(dgm_gguf_get_bool(g, "dragoman.rnn.encoder_bidirectional", DGM_OPTIONAL, &both, err));
    DGM_TRY(dgm_gguf_get_enum(g, "dragoman.rnn.readout", DGM_OPTIONAL, readouts, &readout, err));
    n->readout = (net_readout)readout;
    n->size[DIM_READOUT] = n->size[DIM_HIDDEN];
    if (n->readout != NET_READ_NONE) DGM_TRY(get(g, "readout_size", &n->size[DIM_READOUT], err));
    n->size[DIM_ROWS] = n->size[DIM_READOUT] * (n->readout == NET_READ_MAXOUT ? 2 : 1);
    n->size[DIM_ONE] = 1;
    n->directions = both ? 2 : 1;
    n->size[DIM_CONTEXT] = n->directions * n->size[DIM_ENCODER];
    n->heads = 1;
    for (int d = 0; d < DIM_COUNT; d++) n->part[d][0] = n->size[d];
    DGM_TRY(dgm_gguf_matrix(g, "src.embed", -1, n->size[DIM_EMBED], DGM_REQUIRED, &source, err));
    n->size[DIM_SOURCE] = n->size[DIM_TARGET] = source->rows;
    const dgm_tensor *target = dgm_gguf_find_tensor(g, "tgt.embed");
    if (target) n->size[DIM_TARGET] = target->rows;
    return DGM_OK;
}

// The tensor of a matrix; the output may be an embedding.
static dgm_status find_weight(const rnn_net *n, const dgm_gguf *g, int id, const dgm_tensor **out,
                              dgm_error *err)
{
    const net_shape *s = &dgm_net_shapes[id];
    const int rows = dgm_net_extent(n, s->row, s->row_parts),
              cols = dgm_net_extent(n, s->col, s->col_parts);
    const char *name = s->weight;
    if (id == NET_OUT && !dgm_gguf_find_tensor(g, name))
        name = dgm_gguf_find_tensor(g, "tgt.embed") ? "tgt.embed" : "src.embed";
    return dgm_gguf_matrix(g, name, rows, cols, id == NET_TARGET ? DGM_OPTIONAL : DGM_REQUIRED, out,
                           err);
}

static dgm_status read_matrix(rnn_net *n, const dgm_gguf *g, int id, dgm_error *err)
{
    const net_shape *s = &dgm_net_shapes[id];
    const dgm_tensor *t = NULL;
    const float *bias = NULL, *v = NULL;
    if (id == NET_V) {
        DGM_TRY(dgm_gguf_vector(g, s->weight, n->size[DIM_ATTENTION], DGM_REQUIRED, &v, err));
        DGM_TRY(allocate(n, id, false, err));
        memcpy(n->m[id].w, v, (size_t)n->m[id].cols * sizeof *v);
        return DGM_OK;
    }
    DGM_TRY(find_weight(n, g, id, &t, err));
    if (!t) return DGM_OK;
    if (s->bias) DGM_TRY(dgm_gguf_vector(g, s->bias, t->rows, DGM_OPTIONAL, &bias, err));
    DGM_TRY(allocate(n, id, s->bias != NULL, err)); // a missing bias is one of zeros
    dgm_tensor_to_f32(t, n->m[id].w);
    if (bias) memcpy(n->m[id].bias, bias, (size_t)t->rows * sizeof *bias);
    return DGM_OK;
}

dgm_status dgm_net_read(rnn_net *n, const dgm_gguf *g, dgm_error *err)
{
    *n = (rnn_net){0};
    DGM_TRY(read_sizes(n, g, err));
    for (int i = 0; i < NET_COUNT; i++)
        if (present(n, i)) DGM_TRY(read_matrix(n, g, i, err));
    return DGM_OK;
}

// ---- unfolding ---------------------------------------------------------------------------------

// Place of a member's index in the whole; n_m units of `all`, from `offset` on.
static int place(int index, int mine, int all, int offset)
{
    return index / mine * all + offset + index % mine;
}

static bool is_vocabulary(net_dim d)
{
    return d == DIM_SOURCE || d == DIM_TARGET || d == DIM_ONE;
}

static void put_member(rnn_net *out, const rnn_net *m, int id, const int *offset, double weight)
{
    const net_shape *s = &dgm_net_shapes[id];
    const net_matrix *from = &m->m[id];
    net_matrix *to = &out->m[id];
    const float factor = id == NET_OUT ? (float)weight : 1.0f;
    for (int r = 0; r < from->rows; r++) {
        const int row = is_vocabulary(s->row)
                            ? r
                            : place(r, m->size[s->row], out->size[s->row], offset[s->row]);
        for (int c = 0; c < from->cols; c++) {
            const int col = place(c, m->size[s->col], out->size[s->col], offset[s->col]);
            to->w[(size_t)row * (size_t)to->cols + (size_t)col] =
                factor * from->w[(size_t)r * (size_t)from->cols + (size_t)c];
        }
        if (from->bias) to->bias[row] += factor * from->bias[r];
    }
}

static dgm_status check_members(const rnn_net *members, int count, dgm_error *err)
{
    for (int i = 1; i < count; i++) {
        const rnn_net *a = &members[0], *b = &members[i];
        DGM_FAIL_IF(a->readout != b->readout || a->directions != b->directions, err,
                    DGM_ERR_UNSUPPORTED,
                    "models %d and 1 have different read-outs or encoders: they do not unfold into "
                    "one network",
                    i + 1);
        DGM_FAIL_IF(a->size[DIM_SOURCE] != b->size[DIM_SOURCE] ||
                        a->size[DIM_TARGET] != b->size[DIM_TARGET],
                    err, DGM_ERR_ARGUMENT, "models %d and 1 have vocabularies of different size",
                    i + 1);
    }
    return DGM_OK;
}

dgm_status dgm_net_unfold(rnn_net *out, const rnn_net *members, const double *weights, int count,
                          dgm_error *err)
{
    *out = (rnn_net){0};
    DGM_TRY(check_members(members, count, err));
    bool tied = true;
    out->readout = members[0].readout;
    out->directions = members[0].directions;
    out->heads = count;
    for (int i = 0; i < count; i++) {
        for (int d = 0; d < DIM_COUNT; d++) {
            const int mine = members[i].size[d];
            out->size[d] = is_vocabulary((net_dim)d) ? mine : out->size[d] + mine;
            out->part[d][i] = mine;
        }
        tied &= members[i].m[NET_TARGET].w == NULL;
    }
    for (int id = 0; id < NET_COUNT; id++)
        if (present(out, id) && !(id == NET_TARGET && tied))
            DGM_TRY(allocate(out, id, dgm_net_shapes[id].bias != NULL, err));
    int offset[DIM_COUNT] = {0};
    for (int i = 0; i < count; i++) {
        rnn_net view = members[i];
        if (!tied && !view.m[NET_TARGET].w) view.m[NET_TARGET] = view.m[NET_SOURCE];
        for (int id = 0; id < NET_COUNT; id++)
            if (out->m[id].w) put_member(out, &view, id, offset, weights[i]);
        for (int d = 0; d < DIM_COUNT; d++) offset[d] += members[i].size[d];
    }
    return DGM_OK;
}

// ---- writing -----------------------------------------------------------------------------------

// Are the units of a dimension divided among heads?
static bool is_headed(const rnn_net *n, net_dim d)
{
    if (n->heads < 2) return false;
    return d == DIM_ENCODER || d == DIM_CONTEXT || d == DIM_HIDDEN || d == DIM_ATTENTION ||
           (d == DIM_EMBED && !n->joint_embed) || (d == DIM_ROWS && !n->joint_readout);
}

uint64_t dgm_net_weights(const rnn_net *n, int id)
{
    const net_shape *s = &dgm_net_shapes[id];
    const uint64_t rows = (uint64_t)dgm_net_extent(n, s->row, s->row_parts);
    const uint64_t cols = (uint64_t)dgm_net_extent(n, s->col, s->col_parts);
    if (!is_headed(n, s->row) || !is_headed(n, s->col)) return rows * cols; // else one block a head
    const int parts = (s->row_parts ? s->row_parts : n->directions) *
                      (s->col_parts ? s->col_parts : n->directions);
    uint64_t sum = 0;
    for (int h = 0; h < n->heads; h++)
        sum += (uint64_t)parts * (uint64_t)n->part[s->row][h] * (uint64_t)n->part[s->col][h];
    return sum;
}

uint64_t dgm_net_parameters(const rnn_net *n)
{
    uint64_t sum = 0;
    for (int i = 0; i < NET_COUNT; i++)
        if (n->m[i].w) sum += dgm_net_weights(n, i) + (n->m[i].bias ? (uint64_t)n->m[i].rows : 0);
    return sum;
}

static void set(dgm_gguf_writer *out, const char *name, int v)
{
    char key[64];
    snprintf(key, sizeof key, "dragoman.rnn.%s", name);
    dgm_gguf_set_u32(out, key, (uint32_t)v);
}

static void set_heads(const rnn_net *n, net_dim dim, const char *key, int rows,
                      dgm_gguf_writer *out)
{
    uint32_t units[DGM_SHRINK_MEMBERS];
    for (int h = 0; h < n->heads; h++) units[h] = (uint32_t)(n->part[dim][h] / rows);
    dgm_gguf_set_array(out, key, DGM_META_U32, units, (size_t)n->heads);
}

// Units of a head, or of all where they are not divided, and the first of them.
static void head_units(const rnn_net *n, net_dim dim, int head, int *units, int *first)
{
    *first = 0;
    *units = n->size[dim];
    if (!is_headed(n, dim)) return;
    *units = n->part[dim][head];
    for (int h = 0; h < head; h++) *first += n->part[dim][h];
}

// Copies block `head` of a matrix: rows and columns of the head, part by part; returns its shape.
static void cut_block(const rnn_net *n, int id, int head, float *to, int *shape)
{
    const net_shape *s = &dgm_net_shapes[id];
    const net_matrix *m = &n->m[id];
    int rows, cols, first_row, first_col;
    head_units(n, s->row, head, &rows, &first_row);
    head_units(n, s->col, head, &cols, &first_col);
    shape[0] = m->rows / n->size[s->row] * rows;
    shape[1] = m->cols / n->size[s->col] * cols;
    for (int r = 0; r < shape[0]; r++) {
        const int row = place(r, rows, n->size[s->row], first_row);
        for (int c = 0; c < shape[1]; c++)
            *to++ = m->w[(size_t)row * (size_t)m->cols +
                         (size_t)place(c, cols, n->size[s->col], first_col)];
    }
}

// NAME.0, NAME.1, ...: rows of the heads. Zeros between heads are not stored. keep[id] owns the copies.
static dgm_status add_blocks(const rnn_net *n, int id, dgm_gguf_writer *out, float **keep,
                             dgm_error *err)
{
    const net_shape *s = &dgm_net_shapes[id];
    float *at = keep[id] = dgm_malloc((size_t)dgm_net_weights(n, id) * sizeof *at);
    if (!at) return dgm_no_memory(err);
    for (int h = 0; h < n->heads; h++) {
        char name[96];
        int shape[2];
        snprintf(name, sizeof name, "%s.%d", s->weight, h);
        cut_block(n, id, h, at, shape);
        dgm_gguf_add_tensor(out, name, DGM_TYPE_F32, 2, shape, at);
        at += (size_t)shape[0] * (size_t)shape[1];
    }
    return DGM_OK;
}

static void write_sizes(const rnn_net *n, dgm_gguf_writer *out)
{
    set(out, "embed", n->size[DIM_EMBED]);
    set(out, "encoder_hidden", n->size[DIM_ENCODER]);
    set(out, "decoder_hidden", n->size[DIM_HIDDEN]);
    set(out, "attention", n->size[DIM_ATTENTION]);
    if (n->readout != NET_READ_NONE) set(out, "readout_size", n->size[DIM_READOUT]);
    if (n->heads < 2) return;
    set_heads(n, DIM_ATTENTION, "dragoman.rnn.head_attention", 1, out);
    set_heads(n, DIM_ENCODER, "dragoman.rnn.head_encoder", 1, out);
    set_heads(n, DIM_HIDDEN, "dragoman.rnn.head_hidden", 1, out);
    if (is_headed(n, DIM_EMBED)) set_heads(n, DIM_EMBED, "dragoman.rnn.head_embed", 1, out);
    const int rows = n->readout == NET_READ_MAXOUT ? 2 : 1;
    if (is_headed(n, DIM_ROWS) && n->readout != NET_READ_NONE)
        set_heads(n, DIM_ROWS, "dragoman.rnn.head_readout", rows, out);
}

dgm_status dgm_net_write(const rnn_net *n, dgm_gguf_writer *out, float **keep, dgm_error *err)
{
    write_sizes(n, out);
    for (int i = 0; i < NET_COUNT; i++) {
        const net_matrix *m = &n->m[i];
        const net_shape *s = &dgm_net_shapes[i];
        if (!m->w) continue;
        const int shape[2] = {m->rows, m->cols};
        if (is_headed(n, s->row))
            DGM_TRY(add_blocks(n, i, out, keep, err));
        else if (i == NET_V)
            dgm_gguf_add_tensor(out, s->weight, DGM_TYPE_F32, 1, &shape[1], m->w);
        else
            dgm_gguf_add_tensor(out, s->weight, DGM_TYPE_F32, 2, shape, m->w);
        if (m->bias) dgm_gguf_add_tensor(out, s->bias, DGM_TYPE_F32, 1, &shape[0], m->bias);
    }
    return DGM_OK;
}
