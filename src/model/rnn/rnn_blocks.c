// SPDX-License-Identifier: MIT
// Products of the recurrent models, whole or in blocks.
//
// In an unfolded ensemble (rnn_heads.c) a matrix between units of heads is zero outside one block for
// each head. The file holds the blocks; each is a product of its own on the columns of its head, and
// the zeros are neither stored nor multiplied:
//
//     rows and columns divided   NAME.0, NAME.1, ...: one block for each head
//     rows alone (the word)      NAME.0, NAME.1, ...: rows of the heads, below each other one product
//     columns alone, or none     NAME: one product
//
// A matrix between units of heads may be stored as a whole as well, with rows and columns in the order
// gate by gate, direction by direction. It is cut into blocks where only zeros lie between them;
// otherwise it is one product with its rows and columns put into the order of heads.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/rnn/rnn_private.h"
#include "shrink/rnn_net.h"

enum { ALL = -1, MATRICES_MAX = 3, PARTS_MAX = MATRICES_MAX * DGM_RNN_HEADS_MAX };

static void multiply(dgm_exec *e, dgm_mat y, dgm_mat x, const rnn_product *p, dgm_act act,
                     const dgm_mat *residual)
{
    for (int i = 0; i < p->count; i++) {
        const dgm_linear *w = p->block[i].w;
        const int row = p->block[i].row, rows = dgm_linear_rows(w);
        dgm_mat add = {0};
        if (residual) add = dgm_mat_cols(*residual, row, rows);
        dgm_op_linear(e, dgm_mat_cols(y, row, rows),
                      dgm_mat_cols(x, p->block[i].col, dgm_linear_cols(w)), w, act,
                      residual ? &add : NULL);
    }
}

void dgm_rnn_multiply(dgm_exec *e, dgm_mat y, dgm_mat x, const rnn_product *p, dgm_act act,
                      const dgm_mat *residual)
{
    if (p->norms.count == 0) {
        multiply(e, y, x, p, act, residual);
        return;
    }
    multiply(e, y, x, p, DGM_ACT_NONE, NULL);
    dgm_rnn_norms_apply(e, &p->norms, y);
    if (act != DGM_ACT_NONE) dgm_op_act(e, y, y, act);
    if (residual) dgm_op_add(e, y, y, *residual);
}

void dgm_rnn_product_free(dgm_backend *b, rnn_product *p)
{
    dgm_rnn_norms_free(b, &p->norms);
    for (int i = 0; i < p->count; i++) dgm_linear_free(b, &p->block[i].w);
    p->count = 0;
}

static dgm_status add_block(dgm_model *m, rnn_product *p, dgm_linear_part *parts, int count,
                            int row, int col, dgm_error *err)
{
    p->block[p->count].row = row;
    p->block[p->count].col = col;
    return dgm_model_linear(m, parts, count, &p->block[p->count++].w, err);
}

// ---- what is divided into heads ----------------------------------------------------------------

static int units_of(const rnn_units *u, net_dim dim)
{
    switch (dim) {
    case DIM_EMBED:
        return u->embed;
    case DIM_ENCODER:
        return u->encoder;
    case DIM_CONTEXT:
        return u->width;
    case DIM_HIDDEN:
        return u->hidden;
    case DIM_ATTENTION:
        return u->attention;
    case DIM_ROWS:
        return u->readout;
    default:
        return 0;
    }
}

// Rows or columns of a matrix: units of a dimension in parts (gates, directions).
typedef struct side {
    net_dim dim;
    int parts, count; // count: of all units in all parts
    bool divided;
} side;

static side side_of(const rnn *r, net_dim dim, int parts, int count)
{
    const int directions = r->width / r->encoder_hidden;
    return (side){.dim = dim,
                  .parts = parts ? parts : directions,
                  .count = count,
                  .divided = units_of(&r->head[0].units, dim) > 0};
}

// Rows or columns of one head, or of all.
static int extent(const rnn *r, const side *s, int head)
{
    if (!s->divided || head == ALL) return s->count;
    return s->parts * units_of(&r->head[head].units, s->dim);
}

static int offset(const rnn *r, const side *s, int head)
{
    return s->divided ? s->parts * units_of(&r->head[head].first, s->dim) : 0;
}

// Where the rows or columns of a head (or of all, head by head) lie in a whole matrix of the file.
static void list_places(const rnn *r, const side *s, int head, int32_t *out)
{
    if (!s->divided) {
        for (int i = 0; i < s->count; i++) *out++ = i;
        return;
    }
    const int from = head == ALL ? 0 : head, to = head == ALL ? r->heads : head + 1;
    for (int h = from; h < to; h++)
        for (int p = 0; p < s->parts; p++)
            for (int u = 0; u < units_of(&r->head[h].units, s->dim); u++)
                *out++ = p * (s->count / s->parts) + units_of(&r->head[h].first, s->dim) + u;
}

// ---- cutting -----------------------------------------------------------------------------------

struct rnn_cut {
    rnn_cut *next;
    dgm_tensor tensor;
    float *data;
};

void dgm_rnn_cuts_free(rnn *r)
{
    while (r->cuts) {
        rnn_cut *c = r->cuts;
        r->cuts = c->next;
        dgm_free(c->data);
        dgm_free(c);
    }
}

// A matrix of a file with heads, as it is stored or cut.
typedef struct stored {
    side row, col;
    const dgm_tensor *whole; // NULL: stored as `head`
    const dgm_tensor
        *head[DGM_RNN_HEADS_MAX]; // rows of each head; its columns if those are divided
    bool blocks;                  // nothing but zeros outside one block for each head
    float *bias;                  // [row.count] head by head; NULL: none
} stored;

typedef struct places {
    int32_t *rows, *cols;
    float *line; // [columns of the whole]
    int row_count, col_count;
} places;

static void places_free(places *p)
{
    dgm_free(p->rows);
    dgm_free(p->cols);
    dgm_free(p->line);
}

static dgm_status places_make(const rnn *r, const stored *s, int row_head, int col_head, places *p,
                              dgm_error *err)
{
    *p = (places){.row_count = extent(r, &s->row, row_head),
                  .col_count = extent(r, &s->col, col_head)};
    p->rows = dgm_malloc((size_t)p->row_count * sizeof *p->rows);
    p->cols = dgm_malloc((size_t)p->col_count * sizeof *p->cols);
    p->line = dgm_malloc((size_t)s->col.count * sizeof *p->line);
    if (!p->rows || !p->cols || !p->line) return dgm_no_memory(err);
    list_places(r, &s->row, row_head, p->rows);
    list_places(r, &s->col, col_head, p->cols);
    return DGM_OK;
}

// The copy has the name of the whole: so its input scale, if there is one, is found.
static dgm_status copy_places(rnn *r, const dgm_tensor *whole, const places *p,
                              const dgm_tensor **out, dgm_error *err)
{
    const size_t count = (size_t)p->row_count * (size_t)p->col_count;
    rnn_cut *c = dgm_calloc(1, sizeof *c);
    if (!c) return dgm_no_memory(err);
    c->next = r->cuts;
    r->cuts = c;
    c->data = dgm_malloc(count * sizeof *c->data);
    if (!c->data) return dgm_no_memory(err);
    for (int i = 0; i < p->row_count; i++) {
        float *to = c->data + (size_t)i * (size_t)p->col_count;
        dgm_tensor_row_f32(whole, p->rows[i], p->line);
        for (int k = 0; k < p->col_count; k++) to[k] = p->line[p->cols[k]];
    }
    c->tensor = (dgm_tensor){.name = whole->name,
                             .type = DGM_TYPE_F32,
                             .n_dims = 2,
                             .shape = {p->row_count, p->col_count},
                             .rows = p->row_count,
                             .cols = p->col_count,
                             .data = c->data,
                             .bytes = count * sizeof *c->data};
    *out = &c->tensor;
    return DGM_OK;
}

// Rows and columns of a head, or of all (head by head), of a matrix that is stored as a whole.
static dgm_status cut(rnn *r, const stored *s, int row_head, int col_head, const dgm_tensor **out,
                      dgm_error *err)
{
    places p;
    dgm_status st = places_make(r, s, row_head, col_head, &p, err);
    if (st == DGM_OK) st = copy_places(r, s->whole, &p, out, err);
    places_free(&p);
    return st;
}

static int count_nonzero(const float *line, const int32_t *at, int count)
{
    int n = 0;
    for (int k = 0; k < count; k++) n += line[at ? at[k] : k] != 0.0f;
    return n;
}

// Does a whole matrix have nothing but zeros outside the heads' blocks?
static dgm_status look_for_blocks(const rnn *r, stored *s, dgm_error *err)
{
    s->blocks = s->row.divided && s->col.divided;
    for (int h = 0; s->blocks && h < r->heads; h++) {
        places p;
        const dgm_status st = places_make(r, s, h, h, &p, err);
        for (int i = 0; st == DGM_OK && s->blocks && i < p.row_count; i++) {
            dgm_tensor_row_f32(s->whole, p.rows[i], p.line);
            s->blocks = count_nonzero(p.line, NULL, s->col.count) ==
                        count_nonzero(p.line, p.cols, p.col_count);
        }
        places_free(&p);
        DGM_TRY(st);
    }
    return DGM_OK;
}

// ---- reading -----------------------------------------------------------------------------------

static const net_shape *shape_of(const char *name)
{
    for (int i = 0; i < NET_COUNT; i++)
        if (strcmp(dgm_net_shapes[i].weight, name) == 0) return &dgm_net_shapes[i];
    return NULL;
}

static dgm_status find_heads(dgm_model *m, const char *name, stored *s, dgm_error *err)
{
    const rnn *r = m->weights;
    for (int h = 0; h < r->heads; h++) {
        char block[96];
        snprintf(block, sizeof block, "%.80s.%d", name, h);
        DGM_FAIL_IF(!s->row.divided, err, DGM_ERR_FORMAT,
                    "tensor '%s' is a block of a matrix that is not divided into heads", block);
        DGM_TRY(dgm_gguf_matrix(m->file, block, extent(r, &s->row, h), extent(r, &s->col, h),
                                DGM_REQUIRED, &s->head[h], err));
    }
    s->blocks = s->col.divided;
    return DGM_OK;
}

static dgm_status read_bias(dgm_model *m, const rnn_matrix *matrix, stored *s, dgm_error *err)
{
    const rnn *r = m->weights;
    const float *bias = NULL;
    char name[96];
    snprintf(name, sizeof name, "%.80s.bias", matrix->name);
    if (matrix->bias)
        DGM_TRY(dgm_gguf_vector(m->file, name, matrix->rows, DGM_OPTIONAL, &bias, err));
    if (!bias) return DGM_OK;
    int32_t *at = dgm_malloc((size_t)matrix->rows * sizeof *at);
    s->bias = dgm_malloc((size_t)matrix->rows * sizeof *s->bias);
    if (at && s->bias) {
        list_places(r, &s->row, ALL, at);
        for (int i = 0; i < matrix->rows; i++) s->bias[i] = bias[at[i]];
    }
    const bool fine = at && s->bias;
    dgm_free(at);
    return fine ? DGM_OK : dgm_no_memory(err);
}

// s->bias is to be freed, also after an error.
static dgm_status read_stored(dgm_model *m, const rnn_matrix *matrix, int cols, stored *s,
                              dgm_error *err)
{
    const rnn *r = m->weights;
    char name[96], first[96];
    *s = (stored){.whole = NULL};
    snprintf(name, sizeof name, "%.80s.weight", matrix->name);
    snprintf(first, sizeof first, "%.80s.weight.0", matrix->name);
    const net_shape *shape = shape_of(name);
    DGM_FAIL_IF(!shape, err, DGM_ERR_FORMAT, "tensor '%s' cannot be divided into heads", name);
    s->row = side_of(r, shape->row, shape->row_parts, matrix->rows);
    s->col = side_of(r, shape->col, shape->col_parts, cols);
    if (dgm_gguf_find_tensor(m->file, first)) {
        DGM_TRY(find_heads(m, name, s, err));
    } else {
        DGM_TRY(dgm_gguf_matrix(m->file, name, matrix->rows, cols, DGM_REQUIRED, &s->whole, err));
        DGM_TRY(look_for_blocks(r, s, err));
    }
    return read_bias(m, matrix, s, err);
}

// ---- products ----------------------------------------------------------------------------------

// One product of a model without heads.
static dgm_status load_plain(dgm_model *m, const rnn_matrix *matrices, int count, int cols,
                             dgm_linear **out, dgm_error *err)
{
    dgm_linear_part parts[PARTS_MAX] = {{0}};
    int used = 0;
    for (int i = 0; i < count; i++) {
        char name[96];
        if (matrices[i].rows == 0) continue;
        dgm_linear_part *part = &parts[used++];
        snprintf(name, sizeof name, "%.80s.weight", matrices[i].name);
        DGM_TRY(dgm_gguf_matrix(m->file, name, matrices[i].rows, cols, DGM_REQUIRED, &part->weight,
                                err));
        if (!matrices[i].bias) continue;
        snprintf(name, sizeof name, "%.80s.bias", matrices[i].name);
        DGM_TRY(dgm_gguf_vector(m->file, name, matrices[i].rows, DGM_OPTIONAL, &part->bias, err));
    }
    return dgm_model_linear(m, parts, used, out, err);
}

// The block of a head, from the file or cut.
static dgm_status head_part(rnn *r, const stored *s, int head, dgm_linear_part *part,
                            dgm_error *err)
{
    *part = (dgm_linear_part){.weight = s->head[head]};
    if (s->bias) part->bias = s->bias + offset(r, &s->row, head);
    return s->whole ? cut(r, s, head, head, &part->weight, err) : DGM_OK;
}

// All rows of a matrix that is no blocks, head by head, as parts of one product.
static dgm_status whole_parts(rnn *r, const stored *s, dgm_linear_part *parts, int *count,
                              dgm_error *err)
{
    if (!s->whole) {
        for (int h = 0; h < r->heads; h++) DGM_TRY(head_part(r, s, h, &parts[(*count)++], err));
        return DGM_OK;
    }
    dgm_linear_part *part = &parts[(*count)++];
    *part = (dgm_linear_part){.weight = s->whole, .bias = s->bias};
    const bool in_order = !s->row.divided && (!s->col.divided || s->col.parts == 1);
    return in_order ? DGM_OK : cut(r, s, ALL, ALL, &part->weight, err);
}

// Matrices that are blocks give one product for each head, and all others together one if there are
// no blocks beside them.
static dgm_status join(dgm_model *m, const stored *all, int count, rnn_product *out, dgm_error *err)
{
    rnn *r = m->weights;
    dgm_linear_part parts[PARTS_MAX] = {{0}};
    int used = 0, row = 0;
    bool whole = true;
    for (int i = 0; i < count; i++) whole &= !all[i].blocks;
    for (int i = 0; i < count; row += all[i++].row.count) {
        for (int h = 0; all[i].blocks && h < r->heads; h++) {
            DGM_TRY(head_part(r, &all[i], h, parts, err));
            DGM_TRY(add_block(m, out, parts, 1, row + offset(r, &all[i].row, h),
                              offset(r, &all[i].col, h), err));
        }
        if (all[i].blocks) continue;
        DGM_TRY(whole_parts(r, &all[i], parts, &used, err));
        if (whole) continue;
        DGM_TRY(add_block(m, out, parts, used, row, 0, err));
        used = 0;
    }
    return whole ? add_block(m, out, parts, used, 0, 0, err) : DGM_OK;
}

dgm_status dgm_rnn_load_product(dgm_model *m, const rnn_matrix *matrices, int count, int cols,
                                rnn_product *out, dgm_error *err)
{
    const rnn *r = m->weights;
    stored all[MATRICES_MAX];
    int used = 0;
    *out = (rnn_product){.cols = cols};
    for (int i = 0; i < count; i++) out->rows += matrices[i].rows;
    if (!r->divided) {
        out->count = 1;
        DGM_TRY(load_plain(m, matrices, count, cols, &out->block[0].w, err));
        return dgm_rnn_norms_load(m, matrices, count, &out->norms, err);
    }
    dgm_status st = DGM_OK;
    for (int i = 0; st == DGM_OK && i < count; i++)
        if (matrices[i].rows) st = read_stored(m, &matrices[i], cols, &all[used++], err);
    if (st == DGM_OK) st = join(m, all, used, out, err);
    for (int i = 0; i < used; i++) dgm_free(all[i].bias);
    return st;
}

dgm_status dgm_rnn_load_pair(dgm_model *m, const rnn_matrix matrices[2], int cols, bool crossed,
                             rnn_product *out, dgm_error *err)
{
    *out = (rnn_product){.rows = matrices[0].rows + matrices[1].rows, .cols = 2 * cols, .count = 2};
    for (int i = 0; i < 2; i++) {
        out->block[i].row = i * matrices[0].rows;
        out->block[i].col = (i == 1) != crossed ? cols : 0;
        DGM_TRY(load_plain(m, &matrices[i], 1, cols, &out->block[i].w, err));
    }
    return dgm_rnn_norms_load(m, matrices, 2, &out->norms, err);
}

// ---- values ------------------------------------------------------------------------------------

// What head `head` makes of its context: its own rows, or rows of all heads, to be added up.
static dgm_status value_part(dgm_model *m, const rnn_matrix *matrix, int head,
                             dgm_linear_part *part, dgm_error *err)
{
    rnn *r = m->weights;
    stored s;
    dgm_status st = read_stored(m, matrix, r->width, &s, err);
    if (st == DGM_OK) {
        if (s.blocks)
            st = head_part(r, &s, head, part, err);
        else
            st = cut(r, &s, ALL, head, &part->weight, err);
    }
    dgm_free(s.bias);
    return st;
}

static dgm_status load_head_values(dgm_model *m, const rnn_matrix *gates, const rnn_matrix *readout,
                                   int head, dgm_error *err)
{
    rnn *r = m->weights;
    rnn_head *h = &r->head[head];
    dgm_linear_part parts[2] = {{0}};
    DGM_TRY(value_part(m, gates, head, &parts[0], err));
    h->value_gates = parts[0].weight->rows;
    if (readout->rows) {
        DGM_TRY(value_part(m, readout, head, &parts[1], err));
        h->value_readout = parts[1].weight->rows;
    }
    return dgm_model_linear(m, parts, readout->rows ? 2 : 1, &h->value, err);
}

dgm_status dgm_rnn_load_values(dgm_model *m, const rnn_matrix *gates, const rnn_matrix *readout,
                               dgm_error *err)
{
    rnn *r = m->weights;
    if (!r->divided) {
        const rnn_matrix both[2] = {*gates, *readout};
        r->head[0].value_gates = gates->rows;
        r->head[0].value_readout = readout->rows;
        DGM_TRY(load_plain(m, both, 2, r->width, &r->head[0].value, err));
        return dgm_rnn_norms_load(m, both, 2, &r->value_norms, err);
    }
    for (int h = 0; h < r->heads; h++) DGM_TRY(load_head_values(m, gates, readout, h, err));
    return DGM_OK;
}
