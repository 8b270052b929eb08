// SPDX-License-Identifier: MIT
// Decoder `bahdanau` with several heads of additive attention: what an ensemble of such models
// becomes when it is unfolded into one network (`dragoman shrink`). Every head has its own units of
// attention, its own distribution over the source and its own part of the encoder's states:
//
//   e_mj = v_m . tanh(Wq_m h + Uk_m s_j + b_m);  c_m = sum_j softmax(e_m)_j [f_mj ; b_mj]
//   h' = GRU([x; c_1; c_2; ...], h)
//
// where f_m and b_m are the units of head m of the two directions. Products with c are made for
// every distinct parent (dgm_tuning's plain attention): products made once per source position
// would be as many as there are heads.
//
//   keys   head m: [places, A_m]      values  head m: [places, directions * He_m]
//
// Alignments are those of the first head. Matrices between units of heads may be stored as one
// block for each head, without the zeros between them; they are put together when a model is loaded.
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "model/rnn/rnn_private.h"
#include "shrink/rnn_net.h"

// ---- settings ----------------------------------------------------------------------------------

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

dgm_status dgm_rnn_heads_settings(const dgm_gguf *g, rnn *r, dgm_error *err)
{
    const uint32_t *attention = NULL, *encoder = NULL, *hidden = NULL, *readout = NULL;
    size_t a = 0, e = 0, h = 0, o = 0;
    DGM_TRY(get_sizes(g, "dragoman.rnn.head_attention", r->attention, &attention, &a, err));
    DGM_TRY(get_sizes(g, "dragoman.rnn.head_encoder", r->encoder_hidden, &encoder, &e, err));
    DGM_TRY(get_sizes(g, "dragoman.rnn.head_hidden", r->hidden, &hidden, &h, err));
    if (r->readout_size)
        DGM_TRY(get_sizes(g, "dragoman.rnn.head_readout", r->readout_size, &readout, &o, err));
    DGM_FAIL_IF(a != e || a != h || (o && o != a) || a > DGM_RNN_HEADS_MAX, err, DGM_ERR_FORMAT,
                "attention of %zu heads, over the encoder's units of %zu and the decoder's of %zu; "
                "at most %d",
                a, e, h, DGM_RNN_HEADS_MAX);
    if (a == 0) return DGM_OK;
    DGM_FAIL_IF(r->decoder != &dgm_rnn_bahdanau || r->upper_context, err, DGM_ERR_UNSUPPORTED,
                "only the decoder 'bahdanau' may have several heads of attention, and no upper "
                "layer that sees the context");
    const int directions = r->width / r->encoder_hidden;
    r->heads = (int)a;
    for (int m = 0; m < r->heads; m++)
        r->head[m] = (rnn_head){
            .attention = (int)attention[m],
            .encoder = (int)encoder[m],
            .width = directions * (int)encoder[m],
            .hidden = (int)hidden[m],
            .readout = readout ? (int)readout[m] * (r->readout_rows / r->readout_size) : 0,
        };
    r->decoder = &dgm_rnn_heads;
    r->plain = true;
    return DGM_OK;
}

// ---- matrices in blocks ------------------------------------------------------------------------

struct rnn_joined {
    rnn_joined *next;
    dgm_tensor tensor;
    float *data;
};

void dgm_rnn_heads_unload(dgm_model *m, rnn *r)
{
    for (int i = 0; i < r->heads; i++) dgm_vector_free(m->backend, &r->head[i].v);
    while (r->joined) {
        rnn_joined *j = r->joined;
        r->joined = j->next;
        dgm_free(j->data);
        dgm_free(j);
    }
}

static int head_units(const rnn *r, net_dim dim, int head)
{
    const rnn_head *h = &r->head[head];
    switch (dim) {
    case DIM_ENCODER:
        return h->encoder;
    case DIM_CONTEXT:
        return h->width;
    case DIM_HIDDEN:
        return h->hidden;
    case DIM_ATTENTION:
        return h->attention;
    case DIM_ROWS:
        return h->readout;
    default:
        return 0;
    }
}

// Index i of a head's `mine` units in parts, in a dimension of `all` units.
static size_t place(int i, int mine, int all, int first)
{
    return (size_t)(i / mine * all + first + i % mine);
}

static dgm_status join_blocks(const dgm_model *m, const net_shape *s, const char *name, int rows,
                              int cols, float *to, dgm_error *err)
{
    const rnn *r = m->weights;
    const int directions = r->width / r->encoder_hidden;
    const int row_parts = s->row_parts ? s->row_parts : directions;
    const int col_parts = s->col_parts ? s->col_parts : directions;
    for (int h = 0, row = 0, col = 0; h < r->heads; h++) {
        const int nr = head_units(r, s->row, h), nc = head_units(r, s->col, h);
        const dgm_tensor *t = NULL;
        char block[96];
        snprintf(block, sizeof block, "%.80s.%d", name, h);
        DGM_FAIL_IF(nr == 0 || nc == 0, err, DGM_ERR_FORMAT,
                    "tensor '%s' is a block of a matrix that is not divided into heads", block);
        DGM_TRY(
            dgm_gguf_matrix(m->file, block, row_parts * nr, col_parts * nc, DGM_REQUIRED, &t, err));
        float *line = dgm_malloc((size_t)t->cols * sizeof *line);
        if (!line) return dgm_no_memory(err);
        for (int i = 0; i < t->rows; i++) {
            float *out = to + place(i, nr, rows / row_parts, row) * (size_t)cols;
            dgm_tensor_row_f32(t, i, line);
            for (int k = 0; k < t->cols; k++) out[place(k, nc, cols / col_parts, col)] = line[k];
        }
        dgm_free(line);
        row += nr;
        col += nc;
    }
    return DGM_OK;
}

dgm_status dgm_rnn_matrix(dgm_model *m, const char *name, int rows, int cols,
                          const dgm_tensor **out, dgm_error *err)
{
    rnn *r = m->weights;
    const net_shape *s = NULL;
    for (int i = 0; i < NET_COUNT && !s; i++)
        if (strcmp(dgm_net_shapes[i].weight, name) == 0) s = &dgm_net_shapes[i];
    char block[96];
    snprintf(block, sizeof block, "%.80s.0", name);
    if (r->heads == 0 || !s || !dgm_gguf_find_tensor(m->file, block))
        return dgm_gguf_matrix(m->file, name, rows, cols, DGM_REQUIRED, out, err);
    rnn_joined *j = dgm_calloc(1, sizeof *j);
    if (!j) return dgm_no_memory(err);
    j->next = r->joined;
    r->joined = j;
    j->data = dgm_calloc((size_t)rows * (size_t)cols, sizeof *j->data);
    if (!j->data) return dgm_no_memory(err);
    DGM_TRY(join_blocks(m, s, name, rows, cols, j->data, err));
    j->tensor = (dgm_tensor){.name = s->weight,
                             .type = DGM_TYPE_F32,
                             .n_dims = 2,
                             .shape = {rows, cols},
                             .rows = rows,
                             .cols = cols,
                             .data = j->data,
                             .bytes = (size_t)rows * (size_t)cols * sizeof *j->data};
    *out = &j->tensor;
    return DGM_OK;
}

// ---- memory ------------------------------------------------------------------------------------

size_t dgm_rnn_heads_bytes(const dgm_backend *b, const rnn *r, int places)
{
    size_t bytes = 0;
    for (int m = 0; m < r->heads; m++)
        bytes += dgm_exec_mat_bytes(b, places, r->head[m].attention) +
                 dgm_exec_mat_bytes(b, places, r->head[m].width);
    return bytes;
}

static dgm_mat take(dgm_exec *x, int places, int cols)
{
    dgm_mat m = dgm_exec_mat(x, places, cols);
    m.stride = m.cols; // additive attention reads without gaps
    return m;
}

void dgm_rnn_heads_memory(dgm_state *s, const rnn *r, rnn_state *rs)
{
    const int places = dgm_state_sources(&s->limits);
    rs->keys.data = rs->values.data = rs; // not used; not NULL: there is memory
    for (int m = 0; m < r->heads; m++) {
        rs->head_keys[m] = take(s->exec, places, r->head[m].attention);
        rs->head_values[m] = take(s->exec, places, r->head[m].width);
        if (!rs->head_keys[m].data || !rs->head_values[m].data) rs->keys.data = NULL;
    }
}

void dgm_rnn_heads_keep(dgm_state *s, dgm_mat keys, dgm_mat memory, const int32_t *place)
{
    const rnn *r = s->model->weights;
    rnn_state *rs = s->storage;
    const int directions = r->width / r->encoder_hidden;
    for (int m = 0, a = 0, e = 0; m < r->heads; m++) {
        const int na = r->head[m].attention, ne = r->head[m].encoder;
        dgm_op_scatter(s->exec, rs->head_keys[m], dgm_mat_cols(keys, a, na), place);
        for (int d = 0; d < directions; d++)
            dgm_op_scatter(s->exec, dgm_mat_cols(rs->head_values[m], d * ne, ne),
                           dgm_mat_cols(memory, d * r->encoder_hidden + e, ne), place);
        a += na;
        e += ne;
    }
}

// ---- decoder -----------------------------------------------------------------------------------

static dgm_status load(dgm_model *m, rnn *r, dgm_error *err)
{
    DGM_TRY(dgm_rnn_bahdanau.load(m, r, err));
    const float *v = NULL;
    DGM_TRY(dgm_gguf_vector(m->file, "dec.att.v", r->attention, DGM_REQUIRED, &v, err));
    for (int i = 0; i < r->heads; v += r->head[i++].attention)
        DGM_TRY(dgm_vector_from(m->backend, v, 1, r->head[i].attention, &r->head[i].v, err));
    return DGM_OK;
}

static dgm_bytes scratch(const dgm_model *m, int rows)
{
    return dgm_rnn_bahdanau.scratch(m, rows);
}

static void step(rnn_step *c)
{
    const rnn *r = c->r;
    dgm_exec *e = c->s->exec;
    const int g = 3 * r->hidden;
    const dgm_align_list align = dgm_rnn_shared_alignment(c);
    const dgm_paths *sources = dgm_rnn_sources(c, c->unique, c->distinct);
    dgm_mat shared = dgm_exec_mat(e, c->distinct, r->width);
    for (int m = 0, a = 0, w = 0; m < r->heads; m++) {
        const rnn_head *h = &r->head[m];
        dgm_op_attend_add(e, dgm_mat_cols(shared, w, h->width),
                          dgm_mat_cols(c->old, a, h->attention), h->v, c->rs->head_keys[m],
                          c->rs->head_values[m], sources, m == 0 ? &align : NULL);
        a += h->attention;
        w += h->width;
    }
    dgm_mat products = dgm_exec_mat(e, c->distinct, c->context.cols);
    dgm_rnn_context(c, products, shared);
    dgm_op_gather(e, c->context, products, c->which);

    dgm_mat gx = dgm_mat_cols(c->word, 0, g), gh = dgm_exec_mat(e, c->count, g);
    dgm_op_add(e, gx, gx, dgm_mat_cols(c->context, 0, g));
    dgm_op_gather(e, gh, dgm_mat_cols(c->old, r->attention, g), c->which);
    dgm_rnn_cell(c, false, c->next, c->state, gx, gh);
}

const rnn_decoder dgm_rnn_heads = {
    .product = false,
    .key_act = DGM_ACT_NONE,
    .load = load,
    .scratch = scratch,
    .step = step,
};
