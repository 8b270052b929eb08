// SPDX-License-Identifier: MIT
// Unfolding and shrinking: the unfolded network's distribution is the log-linear mixture of the
// members' at every step, for every read-out, weights and members of different width, with contexts
// multiplied once per source position or at every step; a file with whole matrices says the same as
// one with blocks; neurons and ranks that repeat others are taken out without a trace; shrunk files
// have the size and the widths asked for, load and translate; what cannot be unfolded is refused.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "backend/ops.h"
#include "base/clock.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "dragoman/tools.h"
#include "model/model.h"
#include "shrink/rnn_net.h"
#include "failures.h"
#include "scratch.h"

#define MODELS "tests/data/models/"
enum { STEPS = 7, SENTENCES = 2, ROWS = 2 * SENTENCES, VOCABULARY = 512 };

// A copy of a model with noise on every weight.
static const char *noisy(const char *model, const char *name, uint64_t seed, float scale)
{
    const char *path = in_folder(name);
    dgm_mapfile f;
    dgm_gguf *g = NULL;
    dgm_rng rng = {seed};
    assert_int_equal(dgm_mapfile_open(&f, model, NULL), DGM_OK);
    uint8_t *copy = dgm_malloc(f.size);
    memcpy(copy, f.data, f.size);
    assert_int_equal(dgm_gguf_open_memory(&g, copy, f.size, NULL), DGM_OK);
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        float *v = (float *)(uintptr_t)t->data;
        for (size_t k = 0; t->type == DGM_TYPE_F32 && k < t->bytes / 4; k++)
            v[k] += scale * (float)(2 * dgm_rng_unit(&rng) - 1);
    }
    dgm_gguf_close(&g);
    assert_int_equal(dgm_file_write(path, copy, f.size, NULL), DGM_OK);
    dgm_free(copy);
    dgm_mapfile_close(&f);
    return path;
}

// The fixture with a tanh above its read-out as a model with a linear one.
static const char *linear(void)
{
    const char *path = in_folder("linear.gguf");
    dgm_gguf *g = NULL;
    dgm_gguf_writer *w = NULL;
    assert_int_equal(dgm_gguf_open(&g, MODELS "rnn-bahdanau-pieces.gguf", NULL), DGM_OK);
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    for (int i = 0; i < dgm_gguf_meta_count(g); i++) {
        const dgm_meta *meta = dgm_gguf_meta(g, i);
        if (strcmp(meta->key, "dragoman.rnn.readout") != 0) dgm_gguf_set_copy(w, meta);
    }
    dgm_gguf_set_string(w, "dragoman.rnn.readout", "linear");
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        dgm_gguf_add_tensor(w, t->name, t->type, t->n_dims, t->shape, t->data);
    }
    assert_int_equal(dgm_gguf_write(w, path, NULL), DGM_OK);
    dgm_gguf_writer_close(&w);
    dgm_gguf_close(&g);
    return path;
}

enum { KINDS = 4 };

// A model of every kind of read-out: none, tanh, maxout, linear.
static const char *kind(int i)
{
    static const char *const names[] = {MODELS "rnn-bahdanau.gguf",
                                        MODELS "rnn-bahdanau-pieces.gguf",
                                        MODELS "rnn-bahdanau-maxout.gguf"};
    return i < 3 ? names[i] : linear();
}

// ---- distributions -----------------------------------------------------------------------------

typedef struct walk {
    double logp[STEPS][ROWS][VOCABULARY];
    int vocabulary;
} walk;

static int32_t token_at(int step, int row, int vocabulary)
{
    return (int32_t)((2 + 7 * step + 13 * row + step * row) % vocabulary);
}

// Log-probabilities of two sentences with two different continuations each, step by step.
static walk *run_as(const char *path, dgm_precision precision, bool plain)
{
    walk *w = calloc(1, sizeof *w);
    dgm_backend *b = NULL;
    dgm_gguf *g = NULL;
    dgm_model *m = NULL;
    dgm_exec *x = NULL;
    dgm_state *s = NULL;
    dgm_error err;
    if (dgm_gguf_open(&g, path, &err) != DGM_OK ||
        dgm_backend_open(&b, "cpu", NULL, &err) != DGM_OK ||
        dgm_model_load(&m, b, g, precision, &err) != DGM_OK)
        fail_msg("%s", err.text);
    const dgm_model_info *info = dgm_model_describe(m);
    const dgm_tuning tuning = {.plain_attention = plain};
    assert_int_equal(dgm_model_tune(m, &tuning, &err), DGM_OK);
    assert_true(info->plain_attention == plain);
    const dgm_limits limits = {.slots = SENTENCES, .rows = ROWS, .source = 9, .target = STEPS + 1};
    assert_true(info->target_vocab <= VOCABULARY);
    w->vocabulary = info->target_vocab;
    assert_int_equal(
        dgm_exec_open(b, dgm_bytes_add(dgm_state_bytes(m, &limits), dgm_bytes_both(8u << 20)), &x,
                      &err),
        DGM_OK);
    assert_int_equal(dgm_state_open(m, x, &limits, &s, &err), DGM_OK);
    static const int32_t ids[9] = {5, 9, 2, 17, 30, 4, 8, 3, 0};
    const dgm_source sources[SENTENCES] = {{ids, 9}, {ids + 4, 5}};
    int32_t slots[SENTENCES], start[SENTENCES], rows[ROWS], next[ROWS];
    assert_int_equal(dgm_encode(s, SENTENCES, sources, slots, &err), DGM_OK);
    assert_int_equal(dgm_start(s, SENTENCES, slots, start, &err), DGM_OK);
    for (int r = 0; r < ROWS; r++) rows[r] = start[r / 2];
    float *logits = malloc((size_t)ROWS * (size_t)w->vocabulary * sizeof *logits);
    for (int t = 0; t < STEPS; t++) {
        dgm_step_row steps[ROWS];
        for (int r = 0; r < ROWS; r++)
            steps[r] = (dgm_step_row){
                rows[r], {t == 0 ? info->start : token_at(t, r, w->vocabulary), DGM_NO_TOKEN}};
        dgm_step_result out = {.rows = next};
        assert_int_equal(dgm_step(s, ROWS, steps, &out, &err), DGM_OK);
        memcpy(rows, next, sizeof rows);
        dgm_retain(s, ROWS, rows);
        const dgm_mark mark = dgm_exec_mark(x);
        dgm_mat y = dgm_exec_mat(x, ROWS, w->vocabulary);
        dgm_op_linear(x, y, out.hidden, dgm_model_output(m), DGM_ACT_NONE, NULL);
        dgm_op_read(x, logits, y);
        dgm_exec_reset(x, mark);
        for (int r = 0; r < ROWS; r++) {
            const float *l = logits + (size_t)r * (size_t)w->vocabulary;
            double z = 0;
            for (int v = 0; v < w->vocabulary; v++) z += exp((double)l[v]);
            for (int v = 0; v < w->vocabulary; v++) w->logp[t][r][v] = (double)l[v] - log(z);
        }
    }
    free(logits);
    dgm_state_close(&s);
    dgm_exec_close(&x);
    dgm_model_free(&m);
    dgm_gguf_close(&g);
    dgm_backend_close(&b);
    return w;
}

static walk *run(const char *path)
{
    return run_as(path, DGM_PRECISION_F32, false);
}

// The log-linear mixture, normalised, in place of the first walk.
static void mix(walk *const *w, const double *weights, int count)
{
    for (int t = 0; t < STEPS; t++)
        for (int r = 0; r < ROWS; r++) {
            double z = 0, *to = w[0]->logp[t][r];
            for (int v = 0; v < w[0]->vocabulary; v++) {
                double sum = 0;
                for (int i = 0; i < count; i++) sum += weights[i] * w[i]->logp[t][r][v];
                to[v] = sum;
                z += exp(sum);
            }
            for (int v = 0; v < w[0]->vocabulary; v++) to[v] -= log(z);
        }
}

static double distance(const walk *a, const walk *b)
{
    double most = 0;
    assert_int_equal(a->vocabulary, b->vocabulary);
    for (int t = 0; t < STEPS; t++)
        for (int r = 0; r < ROWS; r++)
            for (int v = 0; v < a->vocabulary; v++)
                most = fmax(most, fabs(a->logp[t][r][v] - b->logp[t][r][v]));
    return most;
}

// ---- unfolding ---------------------------------------------------------------------------------

static void check_unfolded(const char *const *models, const double *weights, int count)
{
    const char *out = in_folder("unfolded.gguf");
    const dgm_shrink_options o = {.size = sizeof(dgm_shrink_options), .weights = weights};
    dgm_shrink_report report = {.size = sizeof report};
    dgm_error err;
    if (dgm_shrink_ensemble(models, (size_t)count, out, &o, &report, &err) != DGM_OK)
        fail_msg("%s", err.text);
    assert_int_equal(report.unfolded.parameters, report.shrunk.parameters);
    walk *members[3], *unfolded = run(out);
    for (int i = 0; i < count; i++) members[i] = run(models[i]);
    if (count > 1) assert_true(distance(members[0], members[1]) > 0.05); // they do differ
    mix(members, weights, count);
    walk *plain = run_as(out, DGM_PRECISION_F32, true);
    assert_true(distance(members[0], unfolded) < 1e-4);
    assert_true(distance(members[0], plain) < 1e-4);
    for (int i = 0; i < count; i++) free(members[i]);
    free(unfolded), free(plain);
}

static void unfolded(void **state)
{
    (void)state;
    static const double even[3] = {1 / 3.0, 1 / 3.0, 1 / 3.0}, one[1] = {1},
                        uneven[2] = {0.75, 0.25};
    for (int i = 0; i < KINDS; i++) {
        const char *path = kind(i);
        const char *small = in_folder("small.gguf"); // another width
        const dgm_shrink_options o = {.size = sizeof(dgm_shrink_options), .share = 0.6};
        dgm_error err;
        const char *b = noisy(path, "b.gguf", 7, 0.2f), *c = noisy(path, "c.gguf", 8, 0.3f);
        assert_int_equal(dgm_shrink_ensemble(&c, 1, small, &o, NULL, &err), DGM_OK);
        check_unfolded((const char *const[]){path, b, small}, even, 3);
        check_unfolded((const char *const[]){b, c}, uneven, 2);
        check_unfolded((const char *const[]){b}, one, 1);
    }
}

// Writes network n of several heads with whole matrices, as they were once stored: `outside` in place
// of the zeros between heads. The embeddings are not divided among the heads then.
static void write_whole(const rnn_net *n, const dgm_gguf *unfolded, float outside, const char *path)
{
    dgm_gguf_writer *w = NULL;
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    for (int i = 0; i < dgm_gguf_meta_count(unfolded); i++) {
        const dgm_meta *meta = dgm_gguf_meta(unfolded, i);
        if (strcmp(meta->key, "dragoman.rnn.head_embed") != 0) dgm_gguf_set_copy(w, meta);
    }
    for (int i = 0; i < NET_COUNT; i++) {
        const net_matrix *m = &n->m[i];
        const net_shape *s = &dgm_net_shapes[i];
        const int shape[2] = {m->rows, m->cols};
        if (!m->w) continue;
        const bool blocks = s->row != DIM_SOURCE && s->row != DIM_TARGET && i != NET_V;
        for (size_t k = 0; blocks && k < (size_t)m->rows * (size_t)m->cols; k++)
            if (m->w[k] == 0.0f) m->w[k] = outside;
        if (i == NET_V)
            dgm_gguf_add_tensor(w, s->weight, DGM_TYPE_F32, 1, &shape[1], m->w);
        else
            dgm_gguf_add_tensor(w, s->weight, DGM_TYPE_F32, 2, shape, m->w);
        if (m->bias) dgm_gguf_add_tensor(w, s->bias, DGM_TYPE_F32, 1, shape, m->bias);
    }
    assert_int_equal(dgm_gguf_write(w, path, NULL), DGM_OK);
    dgm_gguf_writer_close(&w);
}

// The network that the models unfold into, in memory.
static void unfold(const char *const *models, const double *weights, int count, rnn_net *out)
{
    rnn_net members[3];
    for (int i = 0; i < count; i++) {
        dgm_gguf *g = NULL;
        assert_int_equal(dgm_gguf_open(&g, models[i], NULL), DGM_OK);
        assert_int_equal(dgm_net_read(&members[i], g, NULL), DGM_OK);
        dgm_gguf_close(&g);
    }
    assert_int_equal(dgm_net_unfold(out, members, weights, count, NULL), DGM_OK);
    for (int i = 0; i < count; i++) dgm_net_free(&members[i]);
}

static double mean_distance(const walk *a, const walk *b)
{
    double sum = 0;
    for (int t = 0; t < STEPS; t++)
        for (int r = 0; r < ROWS; r++)
            for (int v = 0; v < a->vocabulary; v++)
                sum += fabs(a->logp[t][r][v] - b->logp[t][r][v]);
    return sum / (STEPS * ROWS * a->vocabulary);
}

// A file with whole matrices: blocks are found in it where there are zeros between them, and numbers
// between them are multiplied where there are such. Blocks in 8 bits are no coarser than the whole.
static void whole_matrices(void **state)
{
    (void)state;
    static const double even[2] = {0.5, 0.5};
    for (int k = 0; k < KINDS; k++) {
        const char *path = kind(k);
        const char *models[2] = {path, noisy(path, "b.gguf", 7, 0.2f)};
        const char *out = in_folder("unfolded.gguf"), *zeros = in_folder("zeros.gguf"),
                   *dense = in_folder("dense.gguf");
        dgm_gguf *g = NULL;
        rnn_net n;
        assert_int_equal(dgm_shrink_ensemble(models, 2, out, NULL, NULL, NULL), DGM_OK);
        unfold(models, even, 2, &n);
        assert_int_equal(dgm_gguf_open(&g, out, NULL), DGM_OK);
        write_whole(&n, g, 0.0f, zeros);
        write_whole(&n, g, 1e-12f, dense);
        dgm_net_free(&n);
        dgm_gguf_close(&g);
        for (int plain = 0; plain < 2; plain++) {
            walk *a = run_as(out, DGM_PRECISION_F32, plain),
                 *b = run_as(zeros, DGM_PRECISION_F32, plain),
                 *c = run_as(dense, DGM_PRECISION_F32, plain);
            assert_true(distance(a, b) == 0);
            assert_true(distance(a, c) < 1e-4);
            walk *d = run_as(out, DGM_PRECISION_I8, plain),
                 *e = run_as(dense, DGM_PRECISION_I8, plain);
            assert_true(mean_distance(a, d) < 1.05 * mean_distance(a, e));
            free(a), free(b), free(c), free(d), free(e);
        }
    }
}

// ---- shrinking ---------------------------------------------------------------------------------

static void copy_row(net_matrix *m, int from, int to)
{
    if (!m->w) return;
    memcpy(m->w + (size_t)to * (size_t)m->cols, m->w + (size_t)from * (size_t)m->cols,
           (size_t)m->cols * sizeof *m->w);
    if (m->bias) m->bias[to] = m->bias[from];
}

static void copy_units(rnn_net *n, const int *ids, int count, int parts, int units, int unit_rows)
{
    for (int i = 0; i < count; i++)
        for (int p = 0; p < parts; p++)
            for (int k = 0; k < unit_rows; k++)
                copy_row(&n->m[ids[i]], p * units + 1 * unit_rows + k,
                         p * units + 3 * unit_rows + k);
}

static void write_net(const rnn_net *n, const dgm_gguf *g, const char *path)
{
    dgm_gguf_writer *w = NULL;
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    dgm_gguf_set_copies(w, g);
    float *keep[NET_COUNT] = {NULL};
    assert_int_equal(dgm_net_write(n, w, keep, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_write(w, path, NULL), DGM_OK);
    dgm_gguf_writer_close(&w);
    for (int i = 0; i < NET_COUNT; i++) dgm_free(keep[i]);
}

// Unit 3 of every layer repeats unit 1, and embeddings have one independent column less than they
// could: a network with one unit less everywhere says the same.
static void repeated(void **state)
{
    (void)state;
    static const char *const names[] = {"rnn-bahdanau-pieces", "rnn-bahdanau-maxout"};
    for (int k = 0; k < 2; k++) {
        char path[128];
        snprintf(path, sizeof path, MODELS "%s.gguf", names[k]);
        dgm_gguf *g = NULL;
        rnn_net n;
        dgm_error err;
        assert_int_equal(dgm_gguf_open(&g, path, NULL), DGM_OK);
        if (dgm_net_read(&n, g, &err) != DGM_OK) fail_msg("%s", err.text);
        copy_units(&n, (const int[]){NET_FWD_W, NET_FWD_H}, 2, 3, n.size[DIM_ENCODER], 1);
        copy_units(&n, (const int[]){NET_BWD_W, NET_BWD_H}, 2, 3, n.size[DIM_ENCODER], 1);
        copy_units(&n, (const int[]){NET_QUERY, NET_KEY}, 2, 1, 0, 1);
        copy_units(&n, (const int[]){NET_X, NET_C, NET_H}, 3, 3, n.size[DIM_HIDDEN], 1);
        copy_units(&n, (const int[]){NET_INIT}, 1, 1, 0, 1);
        copy_units(&n, (const int[]){NET_READ_X, NET_READ_H, NET_READ_C}, 3, 1, 0, k ? 2 : 1);
        for (int t = NET_SOURCE; t <= NET_TARGET; t++)
            for (int r = 0; n.m[t].w && r < n.m[t].rows; r++) {
                float *row = n.m[t].w + (size_t)r * (size_t)n.m[t].cols;
                row[2] = row[0] - row[1];
            }
        write_net(&n, g, in_folder("repeated.gguf"));
        rnn_net to = n;
        memset(to.m, 0, sizeof to.m);
        to.size[DIM_ENCODER]--;
        to.size[DIM_CONTEXT] = to.directions * to.size[DIM_ENCODER];
        to.size[DIM_ATTENTION]--;
        to.size[DIM_HIDDEN]--;
        to.size[DIM_READOUT]--;
        to.size[DIM_ROWS] -= k ? 2 : 1;
        to.size[DIM_EMBED]--;
        for (int d = 0; d < DIM_COUNT; d++) to.part[d][0] = to.size[d];
        const dgm_shrink_plan plan = {0};
        if (dgm_net_shrink(&n, &to, &plan, &err) != DGM_OK) fail_msg("%s", err.text);
        write_net(&n, g, in_folder("less.gguf"));
        walk *a = run(in_folder("repeated.gguf")), *b = run(in_folder("less.gguf"));
        assert_true(distance(a, b) < 1e-3);
        free(a), free(b);
        dgm_net_free(&n);
        dgm_gguf_close(&g);
    }
}

static void sizes(void **state)
{
    (void)state;
    const char *model = MODELS "rnn-bahdanau-pieces.gguf", *out = in_folder("shrunk.gguf");
    const char *models[3] = {model, noisy(model, "b.gguf", 1, 0.1f),
                             noisy(model, "c.gguf", 2, 0.1f)};
    static const double shares[] = {1.0, 0.78, 0.5, 0.33};
    for (int i = 0; i < 4; i++) {
        const dgm_shrink_options o = {
            .size = sizeof(dgm_shrink_options), .share = shares[i], .name = "shrunk"};
        dgm_shrink_report r = {.size = sizeof r};
        dgm_error err;
        if (dgm_shrink_ensemble(models, 3, out, &o, &r, &err) != DGM_OK) fail_msg("%s", err.text);
        const double share = (double)r.shrunk.parameters / (double)r.members;
        assert_true(share <= shares[i] && share > shares[i] - 0.08);
        dgm_translator *t = NULL;
        dgm_results *results = NULL;
        const char *texts[] = {"Good morning.", "House house."};
        if (dgm_open(&t, out, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
        assert_int_equal(dgm_translate(t, texts, 2, &results, &err), DGM_OK);
        assert_int_equal(results->failed, 0);
        assert_string_equal(dgm_describe(t)->name, "shrunk");
        dgm_results_free(&results);
        dgm_close(&t);
    }
}

static dgm_shrink_widths widths_of(const char *const *models, size_t count, dgm_shrink_options o)
{
    dgm_shrink_report r = {.size = sizeof r};
    dgm_error err;
    o.size = sizeof o;
    if (dgm_shrink_ensemble(models, count, in_folder("widths.gguf"), &o, &r, &err) != DGM_OK)
        fail_msg("%s", err.text);
    free(run(in_folder("widths.gguf"))); // it loads and runs
    if (o.share > 0) assert_true((double)r.shrunk.parameters <= o.share * (double)r.members);
    return r.shrunk;
}

static void assert_half(int width, int all)
{
    assert_true(abs(2 * width - all) <= 2); // each member's are rounded
}

// What shrinks is chosen: pure removal of neurons, embeddings or the read-out alone, and with a size
// what was left open.
static void chosen(void **state)
{
    (void)state;
    for (int k = 1; k < KINDS; k++) {
        const char *path = kind(k), *models[2] = {path, noisy(path, "b.gguf", 1, 0.1f)};
        const dgm_shrink_widths all = widths_of(models, 2, (dgm_shrink_options){0});
        dgm_shrink_widths w = widths_of(models, 2, (dgm_shrink_options){.units = 0.5});
        assert_half(w.encoder, all.encoder);
        assert_half(w.hidden, all.hidden);
        assert_half(w.attention, all.attention);
        assert_true(w.embed == all.embed && w.readout == all.readout);
        w = widths_of(models, 2, (dgm_shrink_options){.embeddings = 0.5});
        assert_half(w.embed, all.embed);
        assert_true(w.encoder == all.encoder && w.hidden == all.hidden && w.readout == all.readout);
        w = widths_of(models, 2, (dgm_shrink_options){.readout = 0.5});
        assert_half(w.readout, all.readout);
        assert_true(w.embed == all.embed && w.encoder == all.encoder && w.hidden == all.hidden);
        w = widths_of(models, 2,
                      (dgm_shrink_options){.share = 0.95, .embeddings = 1, .readout = 1});
        assert_true(w.embed == all.embed && w.readout == all.readout && w.hidden < all.hidden);
    }
}

// Static scales of a network with blocks, and with a read-out that was cut into heads.
static void calibrated(void **state)
{
    (void)state;
    const char *path = linear(), *models[2] = {path, noisy(path, "b.gguf", 3, 0.1f)};
    const char *out = in_folder("readout.gguf"), *i8 = in_folder("i8.gguf");
    const dgm_shrink_options o = {.size = sizeof o, .readout = 0.5};
    const char *text = in_folder("text");
    dgm_quantize_options q;
    dgm_error err;
    dgm_gguf *g = NULL;
    dgm_quantize_default(&q);
    q.calibrate = text;
    q.type = "i8";
    assert_int_equal(dgm_file_write(text, "Good morning.\n", 14, NULL), DGM_OK);
    assert_int_equal(dgm_shrink_ensemble(models, 2, out, &o, NULL, NULL), DGM_OK);
    if (dgm_quantize(out, i8, &q, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_gguf_open(&g, i8, NULL), DGM_OK);
    assert_non_null(dgm_gguf_find_tensor(g, "dec.gru.h.weight.1.input_scale"));
    assert_non_null(dgm_gguf_find_tensor(g, "dec.readout.c.weight.input_scale"));
    dgm_gguf_close(&g);
    free(run_as(i8, DGM_PRECISION_I8, false)); // it loads and runs
}

// An ensemble by search and its unfolded network choose the same translations.
static void translations(void **state)
{
    (void)state;
    const char *model = MODELS "rnn-bahdanau-pieces.gguf", *out = in_folder("unfolded.gguf");
    const char *models[2] = {model, noisy(model, "b.gguf", 5, 0.2f)};
    const dgm_member members[2] = {{models[0], 0}, {models[1], 0}}, one = {out, 0};
    dgm_settings s;
    dgm_error err;
    dgm_settings_default(&s);
    s.precision = "f32";
    s.shortlist = "all";
    s.alignment = DGM_ALIGN_TOKENS;
    assert_int_equal(dgm_shrink_ensemble(models, 2, out, NULL, NULL, &err), DGM_OK);
    dgm_translator *t[2] = {NULL, NULL};
    dgm_results *r[2] = {NULL, NULL};
    const char *texts[] = {"Good morning.", "House house.", "a b c d e f g"};
    s.beam = 1;
    assert_int_equal(dgm_open_ensemble(&t[0], members, 2, &s, &err), DGM_OK);
    assert_int_equal(dgm_open_ensemble(&t[1], &one, 1, &s, &err), DGM_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(dgm_translate(t[i], texts, 3, &r[i], &err), DGM_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(dgm_result_text(r[0]->items[i]), dgm_result_text(r[1]->items[i]));
        const dgm_translation *a = r[0]->items[i]->translations[0];
        const dgm_translation *b = r[1]->items[i]->translations[0];
        assert_int_equal(a->link_count, b->link_count);
        for (size_t k = 0; k < a->link_count; k++)
            assert_int_equal(a->links[k].source, b->links[k].source);
    }
    for (int i = 0; i < 2; i++) {
        dgm_results_free(&r[i]);
        dgm_close(&t[i]);
    }
}

static void refuse(const char *const *models, size_t count, const dgm_shrink_options *o,
                   const char *message)
{
    const char *out = in_folder("none.gguf");
    dgm_error err;
    assert_int_not_equal(dgm_shrink_ensemble(models, count, out, o, NULL, &err), DGM_OK);
    if (!strstr(err.text, message)) fail_msg("%s", err.text);
    assert_int_not_equal(access(out, F_OK), 0);
}

static void refused(void **state)
{
    (void)state;
    const char *good = MODELS "rnn-bahdanau-pieces.gguf",
               *both[2] = {good, MODELS "rnn-bahdanau.gguf"};
    const char *other = MODELS "rnn-conditional.gguf",
               *lstm = MODELS "rnn-bahdanau-linear-lstm.gguf";
    const char *transformer = MODELS "transformer-pieces.gguf",
               *upper = MODELS "rnn-bahdanau-upper.gguf";
    const char *twice[2] = {good, good}, *again = in_folder("again.gguf");
    const dgm_shrink_options tiny = {.size = sizeof(dgm_shrink_options), .share = 1e-5},
                             weight = {.size = sizeof weight, .weights = (const double[]){1, 0}},
                             many = {.size = sizeof many, .units = 1.5},
                             none = {.size = sizeof none, .embeddings = NAN},
                             below = {.size = sizeof below, .readout = -0.5},
                             fixed = {.size = sizeof fixed,
                                      .share = 0.5,
                                      .units = 1,
                                      .embeddings = 1,
                                      .readout = 1},
                             units = {.size = sizeof units, .share = 0.001, .units = 1};
    refuse(both, 2, NULL, "cannot become one network: they differ in '");
    refuse(&other, 1, NULL,
           "only models with the decoder 'bahdanau' can be unfolded, not 'conditional'");
    refuse(&lstm, 1, NULL, "only models of GRUs can be unfolded, not of LSTMs");
    refuse(&transformer, 1, NULL, "can be unfolded, not 'another architecture'");
    refuse(&upper, 1, NULL, "only models with one encoder layer");
    refuse(twice, 2, &tiny, "no network of this shape has only");
    refuse(twice, 2, &weight, "must be a positive number");
    refuse(twice, 2, &many, "the share of units must be above 0 and at most 1, not 1.5");
    refuse(twice, 2, &none, "the share of the embeddings must be above 0 and at most 1");
    refuse(twice, 2, &below, "the share of the read-out must be above 0 and at most 1, not -0.5");
    refuse(twice, 2, &fixed, "none is left to be chosen for the size 0.5");
    refuse(twice, 2, &units, "no network of this shape has only");
    assert_int_equal(dgm_shrink_ensemble(twice, 2, again, NULL, NULL, NULL), DGM_OK);
    refuse(&again, 1, NULL, "the model is an unfolded ensemble already");
}

static dgm_status load(const char *path)
{
    dgm_backend *b = NULL;
    dgm_gguf *g = NULL;
    dgm_model *m = NULL;
    dgm_status st = dgm_gguf_open(&g, path, NULL);
    if (st == DGM_OK) st = dgm_backend_open(&b, "cpu", NULL, NULL);
    if (st == DGM_OK) st = dgm_model_load(&m, b, g, DGM_PRECISION_F32, NULL);
    dgm_model_free(&m);
    dgm_gguf_close(&g);
    dgm_backend_close(&b);
    return st;
}

static void memory(void **state)
{
    (void)state;
    const char *model = MODELS "rnn-bahdanau-pieces.gguf", *models[2] = {model, model};
    const dgm_shrink_options o = {.size = sizeof(dgm_shrink_options), .share = 0.8};
    const char *out = in_folder("x.gguf");
    ALLOCATIONS_FAIL(dgm_shrink_ensemble(models, 2, out, &o, NULL, NULL));
    static const double even[2] = {0.5, 0.5};
    const char *whole = in_folder("whole.gguf");
    dgm_gguf *g = NULL;
    rnn_net n;
    assert_int_equal(dgm_shrink_ensemble(models, 2, out, NULL, NULL, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_open(&g, out, NULL), DGM_OK);
    unfold(models, even, 2, &n);
    write_whole(&n, g, 0.0f, whole);
    dgm_net_free(&n);
    dgm_gguf_close(&g);
    ALLOCATIONS_FAIL(load(out));
    ALLOCATIONS_FAIL(load(whole));
}

int main(void)
{
    if (!scratch_open()) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unfolded),     cmocka_unit_test(whole_matrices),
        cmocka_unit_test(repeated),     cmocka_unit_test(sizes),
        cmocka_unit_test(chosen),       cmocka_unit_test(calibrated),
        cmocka_unit_test(translations), cmocka_unit_test(refused),
        cmocka_unit_test(memory),
    };
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
