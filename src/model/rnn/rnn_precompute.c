// SPDX-License-Identifier: MIT
// Products with word embeddings, made once for the most frequent words (Devlin 2017, section 4.2).
//
// The first layer on either side multiplies an embedding, and embeddings never change: the product
// of the k most frequent words is a row of a table instead of work. Source: gates of both
// directions of the first encoder layer; target: [attention | gates | read-out] (rnn_private.h, word).
// Table rows are made by the same kernel that multiplies a word which is not in the table, row by
// row with the bias in it, and are kept in f32: a translation is the same in every bit.
//
// Which words are frequent: dragoman.SIDE.vocab.frequent of the model file, or, without it, the
// lowest ids (word vocabularies and SentencePiece models are ordered so).
#include "base/mem.h"
#include "model/rnn/rnn_private.h"

enum { CHUNK = 256 };

void dgm_rnn_table_free(rnn_table *t)
{
    dgm_free(t->slot);
    dgm_exec_close(&t->memory);
    *t = (rnn_table){0};
}

// Multiplies the words of `ids` into rows 0 .. count - 1 of the table.
static void fill_table(rnn_table *t, const rnn_words *w, const int32_t *ids, int count)
{
    dgm_exec *e = t->memory;
    for (int first = 0; first < count; first += CHUNK) {
        int n = count - first < CHUNK ? count - first : CHUNK;
        dgm_mark mark = dgm_exec_mark(e);
        dgm_mat x = dgm_exec_mat(e, n, w->layer->cols);
        dgm_op_embed(e, x, w->table, ids + first, 1.0f, NULL, NULL, NULL);
        dgm_rnn_multiply(e, dgm_mat_rows(t->products, first, n), x, w->layer, DGM_ACT_NONE, NULL);
        dgm_exec_reset(e, mark);
    }
}

// The k most frequent ids and, last, the start's; *count of them.
static dgm_status choose_words(const dgm_vocab_spec *v, int k, int32_t **out, int *count,
                               dgm_error *err)
{
    int listed = v->frequent ? (int)v->frequent_count : v->size;
    *count = k < listed ? k : listed;
    int32_t *ids = dgm_malloc(((size_t)*count + 1) * sizeof *ids);
    if (!ids) return dgm_no_memory(err);
    for (int i = 0; i < *count; i++) ids[i] = v->frequent ? v->frequent[i] : i;
    ids[*count] = DGM_NO_TOKEN;
    *out = ids;
    return DGM_OK;
}

static dgm_status make_table(dgm_model *m, rnn_table *t, const rnn_words *w, dgm_side side, int k,
                             dgm_error *err)
{
    dgm_vocab_spec v;
    int32_t *ids = NULL;
    int count = 0, outputs = w->layer->rows;
    DGM_TRY(dgm_modelfile_vocab(m->file, side, &v, err));
    t->slot = dgm_malloc((size_t)v.size * sizeof *t->slot);
    if (!t->slot) return dgm_no_memory(err);
    for (int i = 0; i < v.size; i++) t->slot[i] = -1;
    DGM_TRY(choose_words(&v, k, &ids, &count, err));
    size_t bytes = dgm_exec_mat_bytes(m->backend, count + 1, outputs);
    size_t scratch = dgm_exec_mat_bytes(m->backend, CHUNK, w->layer->cols);
    dgm_status st = dgm_exec_open(m->backend, (dgm_bytes){.device = bytes + scratch}, &t->memory, err);
    if (st == DGM_OK) dgm_exec_large(t->memory);
    if (st == DGM_OK) {
        t->products = dgm_exec_mat(t->memory, count + 1, outputs);
        for (int i = 0; i < count; i++) t->slot[ids[i]] = i;
        t->start = count;
        fill_table(t, w, ids, count + 1);
        dgm_exec_sync(t->memory); // other workers read it from now on
        m->info.table_bytes += bytes;
        m->info.table_words[side] = count;
    }
    dgm_free(ids);
    return st;
}

dgm_status dgm_rnn_tune(dgm_model *m, const dgm_tuning *t, dgm_error *err)
{
    rnn *r = m->weights;
    m->info.plain_attention = r->plain = t->plain_attention || r->value_norms.count > 0;
    r->separate = t->separate_rows;
    dgm_rnn_table_free(&r->source_table);
    dgm_rnn_table_free(&r->target_table);
    m->info.table_bytes = 0;
    m->info.table_words[DGM_SOURCE] = m->info.table_words[DGM_TARGET] = 0;
    if (t->precompute == 0) return DGM_OK;
    rnn_words source = {r->source, &r->layers[0].x, NULL}, target = {r->target, &r->word, NULL};
    dgm_status st = make_table(m, &r->source_table, &source, DGM_SOURCE, t->precompute, err);
    if (st == DGM_OK) st = make_table(m, &r->target_table, &target, DGM_TARGET, t->precompute, err);
    dgm_gguf_forget(m->file);
    if (st == DGM_OK) return DGM_OK;
    dgm_rnn_table_free(&r->source_table);
    dgm_rnn_table_free(&r->target_table);
    return st;
}

// ---- use --------------------------------------------------------------------------------------

dgm_bytes dgm_rnn_words_scratch(const dgm_backend *b, int rows, int embed, int outputs)
{
    return (dgm_bytes){
        .host = 2 * dgm_arena_cost((size_t)rows * sizeof(int32_t)),
        .device = dgm_exec_mat_bytes(b, rows, embed) + dgm_exec_mat_bytes(b, rows, outputs)};
}

int dgm_rnn_word_products(dgm_exec *e, const rnn_words *w, dgm_mat y, const int32_t *ids)
{
    dgm_mark mark = dgm_exec_mark(e);
    const rnn_table *t = w->made;
    int n = y.rows, missing = 0;
    // Those to be made from the front of the lists, those of the table from behind.
    int32_t *rows = DGM_ARENA_ARRAY(dgm_exec_host(e), int32_t, (size_t)n);
    int32_t *list = DGM_ARENA_ARRAY(dgm_exec_host(e), int32_t, (size_t)n);
    for (int i = 0, last = n; i < n; i++) {
        const int32_t slot = !t->slot ? -1 : ids[i] < 0 ? t->start : t->slot[ids[i]];
        const int at = slot >= 0 ? --last : missing++;
        rows[at] = i;
        list[at] = slot >= 0 ? slot : ids[i];
    }
    if (missing < n)
        dgm_op_copy(e, y, rows + missing, t->products, list + missing, n - missing);
    if (missing) {
        dgm_mat x = dgm_exec_mat(e, missing, w->layer->cols);
        dgm_op_embed(e, x, w->table, list, 1.0f, NULL, NULL, NULL);
        if (missing == n) {
            dgm_rnn_multiply(e, y, x, w->layer, DGM_ACT_NONE, NULL);
        } else {
            dgm_mat made = dgm_exec_mat(e, missing, y.cols);
            dgm_rnn_multiply(e, made, x, w->layer, DGM_ACT_NONE, NULL);
            dgm_op_scatter(e, y, made, rows);
        }
    }
    dgm_exec_reset(e, mark);
    return n - missing;
}
