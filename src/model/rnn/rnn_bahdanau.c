// SPDX-License-Identifier: MIT
// Decoder `bahdanau`: additive attention with the old state, then one GRU over word and context.
//
//   e_j = v . tanh(Wq h + Uk s_j + b);  c = sum softmax(e)_j s_j;  h' = GRU([x; c], h)
//
// word = [x gates | read-out], old = [Wq h | h gates], key_j = Uk s_j + b,
// value_j = [c gates of s_j | read-out]. Attention does not see the new word: it is done once per
// distinct parent, and siblings share the result. With several heads (rnn_heads.c) each attends, and
// has its units of the GRU, by itself.
#include <string.h>

#include "base/arena.h"
#include "model/rnn/rnn_private.h"

static dgm_status load(dgm_model *m, rnn *r, dgm_error *err)
{
    int a = r->attention, g = 3 * r->hidden;
    const rnn_matrix word[] = {{"dec.gru.x", g, true, NORM_NONE},
                               {"dec.readout.x", r->readout_rows, true, NORM_NONE}};
    const rnn_matrix old[] = {{"dec.att.query", a, false, NORM_NONE},
                              {"dec.gru.h", g, true, NORM_NONE}};
    const rnn_matrix gates = {"dec.gru.c", g, false, NORM_NONE};
    const rnn_matrix readout = {"dec.readout.c", r->readout_rows, false, NORM_NONE};
    DGM_TRY(dgm_rnn_load_product(m, word, 2, r->embed, &r->word, err));
    DGM_TRY(dgm_rnn_load_product(m, old, 2, r->hidden, &r->old, err));
    DGM_TRY(dgm_rnn_load_values(m, &gates, &readout, err));
    return dgm_rnn_load_additive(m, r, err);
}

static dgm_bytes scratch(const dgm_model *m, int rows)
{
    const rnn *r = m->weights;
    dgm_bytes bytes = {.host = 2 * dgm_arena_cost(((size_t)rows + 1) * sizeof(int32_t)) +
                               dgm_arena_cost((size_t)rows * sizeof(float *)),
                       .device = dgm_exec_mat_bytes(m->backend, rows, 3 * r->hidden)};
    for (int h = 0; h < r->heads; h++)
        bytes.device += dgm_exec_mat_bytes(m->backend, rows, dgm_rnn_memory_width(r, h)) +
                        dgm_exec_mat_bytes(m->backend, rows, dgm_rnn_value_rows(&r->head[h]));
    return bytes;
}

// Rows of one parent share its weights: each is named with its parent's number, in their order.
static dgm_align_list shared_alignment(const rnn_step *c)
{
    dgm_align_list align = {.head = 0};
    if (!c->align) return align;
    dgm_arena *a = dgm_exec_host(c->s->exec);
    int32_t *row = DGM_ARENA_ARRAY(a, int32_t, (size_t)c->count);
    int32_t *next = DGM_ARENA_ARRAY(a, int32_t, (size_t)c->distinct + 1);
    float **to = DGM_ARENA_ARRAY(a, float *, (size_t)c->count);
    memset(next, 0, ((size_t)c->distinct + 1) * sizeof *next);
    for (int i = 0; i < c->count; i++) next[c->which[i] + 1] += c->align[i] != NULL;
    for (int i = 0; i < c->distinct; i++) next[i + 1] += next[i];
    align.count = next[c->distinct];
    for (int i = 0; i < c->count; i++) {
        if (!c->align[i]) continue;
        const int32_t at = next[c->which[i]]++;
        row[at] = c->which[i];
        to[at] = c->align[i];
    }
    align.row = row;
    align.to = to;
    return align;
}

// Attention of one head over the distinct parents' states; what it makes of its contexts.
static dgm_mat attend(rnn_step *c, int head, const dgm_paths *sources, const dgm_align_list *align)
{
    const rnn *r = c->r;
    const rnn_head *h = &r->head[head];
    dgm_exec *e = c->s->exec;
    dgm_mat sum = dgm_exec_mat(e, c->distinct, dgm_rnn_memory_width(r, head));
    dgm_mat query = dgm_mat_cols(c->old, h->first.attention, h->units.attention);
    dgm_op_attend_add(e, sum, query, h->v, c->rs->keys[head], c->rs->values[head], sources, align);
    if (r->upper_context) // those layers read c itself
        dgm_op_gather(e, dgm_mat_cols(c->summed, sum.cols - r->width, r->width),
                      dgm_mat_cols(sum, sum.cols - r->width, r->width), c->which);
    if (!r->plain) return dgm_mat_cols(sum, 0, dgm_rnn_value_rows(h));
    dgm_mat products = dgm_exec_mat(e, c->distinct, dgm_rnn_value_rows(h));
    dgm_rnn_context(c, h, products, sum);
    return products;
}

// A part of the heads' products, from column `from` of each on, to columns of the context: beside each
// other, or added up where all heads have the same columns.
typedef struct part {
    int from[DGM_RNN_HEADS_MAX], to[DGM_RNN_HEADS_MAX], cols[DGM_RNN_HEADS_MAX];
    bool sum;
} part;

static void hand_out(rnn_step *c, const dgm_mat *products, const part *p)
{
    dgm_exec *e = c->s->exec;
    const int heads = c->r->heads;
    dgm_mat first = dgm_mat_cols(products[0], p->from[0], p->cols[0]);
    for (int m = 1; p->sum && m < heads; m++)
        dgm_op_add(e, first, first, dgm_mat_cols(products[m], p->from[m], p->cols[m]));
    for (int m = 0; m < (p->sum ? 1 : heads); m++)
        dgm_op_gather(e, dgm_mat_cols(c->context, p->to[m], p->cols[m]),
                      dgm_mat_cols(products[m], p->from[m], p->cols[m]), c->which);
}

// The products of all heads with their contexts, row by row: [gates | read-out].
static void put_together(rnn_step *c, const dgm_mat *products)
{
    const rnn *r = c->r;
    const int g = 3 * r->hidden;
    part gates = {.sum = r->head[0].value_gates == g},
         readout = {.sum = r->head[0].value_readout == r->readout_rows};
    if (r->heads == 1) { // gates and read-out lie beside each other there, too
        dgm_op_gather(c->s->exec, c->context, products[0], c->which);
        return;
    }
    for (int m = 0; m < r->heads; m++) {
        const rnn_head *h = &r->head[m];
        gates.to[m] = gates.sum ? 0 : 3 * h->first.hidden;
        gates.cols[m] = readout.from[m] = h->value_gates;
        readout.to[m] = g + (readout.sum ? 0 : h->first.readout);
        readout.cols[m] = h->value_readout;
    }
    hand_out(c, products, &gates);
    if (r->readout_rows) hand_out(c, products, &readout);
}

static void step(rnn_step *c)
{
    const rnn *r = c->r;
    dgm_exec *e = c->s->exec;
    const int g = 3 * r->hidden;
    const dgm_align_list align = shared_alignment(c);
    const dgm_paths *sources = dgm_rnn_sources(c, c->unique, c->distinct);
    dgm_mat products[DGM_RNN_HEADS_MAX];
    for (int m = 0; m < r->heads; m++) products[m] = attend(c, m, sources, m ? NULL : &align);
    put_together(c, products);

    dgm_mat gx = dgm_mat_cols(c->word, 0, g), gh = dgm_exec_mat(e, c->count, g);
    dgm_op_add(e, gx, gx, dgm_mat_cols(c->context, 0, g));
    dgm_op_gather(e, gh, dgm_mat_cols(c->old, r->attention, g), c->which);
    for (int m = 0; m < r->heads; m++) {
        const int first = r->head[m].first.hidden, n = r->head[m].units.hidden;
        dgm_rnn_cell(c, false, dgm_mat_cols(c->next, first, n), dgm_mat_cols(c->state, first, n),
                     dgm_mat_cols(gx, 3 * first, 3 * n), dgm_mat_cols(gh, 3 * first, 3 * n));
    }
}

const rnn_decoder dgm_rnn_bahdanau = {
    .product = false,
    .key_act = DGM_ACT_NONE,
    .load = load,
    .scratch = scratch,
    .step = step,
};
