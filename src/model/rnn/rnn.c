// SPDX-License-Identifier: MIT
// The attentional recurrent models: a worker's storage, and the part of a step that all three
// decoders share. docs/internals/FORMAT.md, 2.5, has the formulas.
//
// A row of the pool owns the states of all recurrent layers, side by side. A step
//   1. finds the distinct parents of its rows and multiplies each parent's state once,
//   2. multiplies the embeddings of the new words once for attention, gates and read-out, or finds
//      the products in a table (rnn_precompute.c),
//   3. lets the decoder attend and make the new states (rnn_devlin.c and its neighbours),
//   4. runs the layers above (rnn_stack.c),
//   5. applies the read-out, t = act(Rx x + Rh h' + Rc c + b).
// Rows never meet in arithmetic, so a sentence's numbers do not depend on its neighbours.
#include <string.h>

#include "model/rnn/rnn_private.h"

// ---- memory -----------------------------------------------------------------------------------

int dgm_rnn_value_width(const rnn *r)
{
    return r->cell_gates * r->hidden + r->readout_rows;
}

static dgm_bytes step_scratch(const dgm_model *m, const dgm_limits *l)
{
    const rnn *r = m->weights;
    const dgm_backend *b = m->backend;
    const size_t rows = (size_t)l->rows;
    const dgm_bytes own = {
        .host = 9 * dgm_arena_cost(rows * sizeof(int32_t)) + dgm_arena_cost(rows * sizeof(float *)),
        .device = dgm_exec_mat_bytes(b, l->rows, r->word.rows) +
                  dgm_exec_mat_bytes(b, l->rows, r->old.rows) +
                  dgm_exec_mat_bytes(b, l->rows, r->bottom_width) +
                  2 * dgm_exec_mat_bytes(b, l->rows, r->state_width) +
                  dgm_exec_mat_bytes(b, l->rows, dgm_rnn_value_width(r)) +
                  dgm_exec_mat_bytes(b, l->rows, dgm_rnn_memory_width(r, 0)) +
                  dgm_exec_mat_bytes(b, l->rows, r->readout_rows) +
                  dgm_rnn_stack_scratch(m, l->rows)};
    const dgm_bytes paths = dgm_paths_bytes(b, l->rows, 0);
    const dgm_bytes words = dgm_rnn_words_scratch(b, l->rows, r->embed, r->word.rows);
    return dgm_bytes_add(dgm_bytes_add(own, paths),
                         dgm_bytes_add(words, r->decoder->scratch(m, l->rows)));
}

static dgm_bytes state_bytes(const dgm_model *m, const dgm_limits *l)
{
    const rnn *r = m->weights;
    const dgm_backend *b = m->backend;
    const int rows = dgm_state_rows(m, l);
    const dgm_bytes own = {
        .host = dgm_arena_cost(sizeof(rnn_state)) + dgm_arena_cost((size_t)rows * sizeof(int32_t)),
        .device = dgm_rnn_memory_bytes(m, dgm_state_sources(l)) +
                  dgm_exec_mat_bytes(b, l->slots, r->hidden) +
                  dgm_exec_mat_bytes(b, rows, r->state_width) +
                  dgm_exec_mat_bytes(b, l->rows, m->info.hidden)};
    return dgm_bytes_add(own, dgm_bytes_max(dgm_rnn_encode_scratch(m, l), step_scratch(m, l)));
}

static dgm_status state_open(dgm_state *s, dgm_error *err)
{
    const rnn *r = s->model->weights;
    dgm_arena *a = dgm_exec_host(s->exec);
    rnn_state *rs = dgm_arena_alloc(a, sizeof *rs);
    DGM_FAIL_IF(!rs, err, DGM_ERR_MEMORY, "the worker's memory is too small for the model");
    memset(rs, 0, sizeof *rs);
    const bool fits = dgm_rnn_memory_take(s, rs);
    rs->initial = dgm_exec_mat(s->exec, s->limits.slots, r->hidden);
    rs->states = dgm_exec_mat(s->exec, s->step_rows, r->state_width);
    rs->hidden = dgm_exec_mat(s->exec, s->limits.rows, s->model->info.hidden);
    rs->mark = DGM_ARENA_ARRAY(a, int32_t, (size_t)s->step_rows);
    DGM_FAIL_IF(!fits || !rs->initial.data || !rs->states.data || !rs->hidden.data || !rs->mark, err,
                 DGM_ERR_MEMORY, "the worker's memory is too small for the model");
    for (int i = 0; i < s->step_rows; i++) rs->mark[i] = -1;
    s->storage = rs;
    return DGM_OK;
}

// ---- decoder ----------------------------------------------------------------------------------

static void start(dgm_state *s, int count, const int32_t *slots, const int32_t *rows)
{
    const rnn *r = s->model->weights;
    rnn_state *rs = s->storage;
    const dgm_mat h = dgm_mat_cols(rs->states, 0, r->hidden);
    dgm_op_copy(s->exec, h, rows, rs->initial, slots, count);
    int begun = r->hidden;
    for (const int all = r->bottom_width * (1 + r->upper_layers); r->start_all && begun < all;
         begun += r->hidden)
        dgm_op_copy(s->exec, dgm_mat_cols(rs->states, begun, r->hidden), rows, rs->initial, slots,
                    count);
    const dgm_mat rest = dgm_mat_cols(rs->states, begun, r->state_width - begun);
    if (rest.cols) dgm_op_zero_rows(s->exec, &rest, 1, rows, count); // every other state
}

// Rows with one parent share everything that depends on its state alone. Parents are told apart by
// their row number, never by their values.
static void find_distinct(rnn_step *c, const dgm_step_row *steps)
{
    int32_t *mark = c->rs->mark;
    uint64_t different = 0;
    c->distinct = 0;
    for (int i = 0; i < c->count; i++) {
        int32_t parent = steps[i].parent;
        different += mark[parent] < 0;
        if (mark[parent] < 0 || c->r->separate) {
            mark[parent] = c->distinct;
            c->unique[c->distinct++] = parent;
        }
        c->parents[i] = parent;
        c->which[i] = mark[parent];
    }
    for (int i = 0; i < c->distinct; i++) mark[c->unique[i]] = -1;
    dgm_model_counts *n = &c->rs->counts;
    n->rows += (uint64_t)c->count;
    n->distinct += different;
    n->state_rows += (uint64_t)c->count;
    n->state_products += (uint64_t)c->distinct;
}

const dgm_paths *dgm_rnn_sources(rnn_step *c, const int32_t *rows, int n)
{
    const dgm_state *s = c->s;
    for (int i = 0; i < n; i++) {
        const int slot = s->rows.nodes[rows[i]].slot;
        c->first[i] = s->slot_first[slot];
        c->length[i] = s->slot_length[slot];
    }
    return dgm_op_paths(s->exec, n, c->first, c->length, NULL, 0);
}

void dgm_rnn_context(const rnn_step *c, const rnn_head *h, dgm_mat products, dgm_mat summed)
{
    const rnn *r = c->r;
    if (!r->plain) return;
    const int width = h->units.width;
    dgm_mat source = dgm_mat_cols(summed, summed.cols - width, width);
    dgm_op_linear(c->s->exec, products, source, h->value, DGM_ACT_NONE, NULL);
    dgm_rnn_norms_apply(c->s->exec, &r->value_norms, products);
    if (h == r->head) c->rs->counts.context_products += (uint64_t)products.rows;
}

void dgm_rnn_cell(const rnn_step *c, bool lstm, dgm_mat next, dgm_mat state, dgm_mat gx, dgm_mat gh)
{
    dgm_exec *e = c->s->exec;
    int h = gx.cols / (lstm ? 4 : 3);
    dgm_mat out = dgm_mat_cols(next, 0, h);
    if (lstm)
        dgm_op_lstm(e, out, dgm_mat_cols(next, h, h), dgm_mat_cols(state, h, h), gx, gh);
    else
        dgm_op_gru(e, out, dgm_mat_cols(state, 0, h), gx, gh);
    c->rs->counts.activations += (uint64_t)next.rows * (uint64_t)h * (lstm ? 5 : 3);
}

// Rooms for attention's sum and for the products with the context: one unless the path is plain or
// several heads put their products together.
static void take_context(rnn_step *c)
{
    const rnn *r = c->r;
    if (r->heads == 1) c->summed = dgm_exec_mat(c->s->exec, c->count, dgm_rnn_memory_width(r, 0));
    if (r->plain || r->heads > 1)
        c->context = dgm_exec_mat(c->s->exec, c->count, dgm_rnn_value_width(r));
    else
        c->context = dgm_mat_cols(c->summed, 0, dgm_rnn_value_width(r));
}

static rnn_step begin_step(dgm_state *s, int count, const dgm_step_row *steps, const int32_t *rows,
                           float *const *align)
{
    const rnn *r = s->model->weights;
    rnn_state *rs = s->storage;
    dgm_exec *e = s->exec;
    dgm_arena *a = dgm_exec_host(e);
    rnn_step c = {.s = s, .r = r, .rs = rs, .count = count, .rows = rows, .align = align};
    c.parents = DGM_ARENA_ARRAY(a, int32_t, (size_t)count);
    c.unique = DGM_ARENA_ARRAY(a, int32_t, (size_t)count);
    c.which = DGM_ARENA_ARRAY(a, int32_t, (size_t)count);
    c.first = DGM_ARENA_ARRAY(a, int32_t, (size_t)count);
    c.length = DGM_ARENA_ARRAY(a, int32_t, (size_t)count);
    int32_t *ids = DGM_ARENA_ARRAY(a, int32_t, (size_t)count);
    find_distinct(&c, steps);
    for (int i = 0; i < count; i++) ids[i] = steps[i].token[0];

    rnn_words words = {r->target, &r->word, &r->target_table};
    c.word = dgm_exec_mat(e, count, r->word.rows);
    rs->counts.target_words += (uint64_t)count;
    rs->counts.target_found += (uint64_t)dgm_rnn_word_products(e, &words, c.word, ids);

    c.parent = dgm_exec_mat(e, c.distinct, r->state_width);
    c.old = dgm_exec_mat(e, c.distinct, r->old.rows);
    dgm_op_gather(e, c.parent, rs->states, c.unique);
    dgm_rnn_multiply(e, c.old, dgm_mat_cols(c.parent, 0, r->hidden), &r->old, DGM_ACT_NONE, NULL);

    c.state = dgm_exec_mat(e, count, r->bottom_width);
    c.next = dgm_exec_mat(e, count, r->state_width);
    take_context(&c);
    dgm_op_gather(e, c.state, dgm_mat_cols(c.parent, 0, r->bottom_width), c.which);
    return c;
}

// hidden = act(Rx x + Rh h' + Rc c + b), or h' itself.
static void read_out(const rnn_step *c, dgm_mat hidden, dgm_mat h)
{
    const rnn *r = c->r;
    dgm_exec *e = c->s->exec;
    if (r->readout == READOUT_NONE) {
        dgm_op_gather(e, hidden, h, NULL);
        return;
    }
    dgm_exec_phase(e, DGM_PHASE_READOUT);
    int n = r->readout_rows;
    dgm_mat word = dgm_mat_cols(c->word, c->word.cols - n, n);
    dgm_mat context = dgm_mat_cols(c->context, r->cell_gates * r->hidden, n);
    dgm_mat sum = r->readout == READOUT_MAXOUT ? dgm_exec_mat(e, c->count, n) : hidden;
    dgm_rnn_multiply(e, sum, h, &r->readout_h, DGM_ACT_NONE, &word);
    dgm_op_add(e, sum, sum, context);
    if (r->readout == READOUT_TANH) {
        dgm_op_act(e, hidden, hidden, DGM_ACT_TANH);
        c->rs->counts.activations += (uint64_t)c->count * (uint64_t)n;
    }
    if (r->readout == READOUT_MAXOUT) dgm_op_maxout(e, hidden, sum);
}

static void step(dgm_state *s, int count, const dgm_step_row *steps, const int32_t *rows,
                 dgm_mat *hidden, float *const *align)
{
    const rnn *r = s->model->weights;
    rnn_state *rs = s->storage;
    dgm_mark mark = dgm_exec_mark(s->exec);
    rnn_step c = begin_step(s, count, steps, rows, align);
    r->decoder->step(&c);
    dgm_mat h = dgm_rnn_stack(&c);
    dgm_op_scatter(s->exec, rs->states, c.next, rows);
    *hidden = dgm_mat_rows(rs->hidden, 0, count);
    read_out(&c, *hidden, h);
    dgm_exec_reset(s->exec, mark);
}

static void counts(const dgm_state *s, dgm_model_counts *out)
{
    *out = ((const rnn_state *)s->storage)->counts;
}

const dgm_model_ops dgm_rnn_ops = {
    .unload = dgm_rnn_unload,
    .tune = dgm_rnn_tune,
    .state_bytes = state_bytes,
    .state_open = state_open,
    .encode = dgm_rnn_encode,
    .start = start,
    .step = step,
    .counts = counts,
};
