// SPDX-License-Identifier: MIT
// See fixture.h. Walks go through the public seam of model/ only: encode, start, step, retain,
// release; logits are the output layer applied to `hidden`.
#define _DEFAULT_SOURCE
#include "fixture.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "kernel/cpu.h"

#define FOLDER "tests/data/models"
#define SUFFIX ".fixture.gguf"

enum { MOST_SIBLINGS = 2, NAMES = 128 };

#define CHECK(f, expr)                                                                             \
    do {                                                                                           \
        dgm_error err_ = {{0}};                                                                    \
        dgm_error *err = &err_;                                                                    \
        if ((expr) != DGM_OK) fail_msg("%s: %s", (f)->name, err_.text);                            \
    } while (0)

// ---- opening ----------------------------------------------------------------------------------

static const float *matrix(const fixture *f, int k, const char *what, int rows, int cols)
{
    char name[64];
    const dgm_tensor *t = NULL;
    snprintf(name, sizeof name, "%d.%s", k, what);
    CHECK(f, dgm_gguf_matrix(f->dump, name, rows, cols, DGM_REQUIRED, &t, err));
    if (t->type != DGM_TYPE_F32) fail_msg("%s: %s is not f32", f->name, name);
    return t->data;
}

static const int32_t *table(const fixture *f, int k, const char *what, dgm_need need, int *count)
{
    char name[64];
    const int32_t *values = NULL;
    snprintf(name, sizeof name, "%d.%s", k, what);
    *count = 0;
    CHECK(f, dgm_gguf_table(f->dump, name, -1, -1, INT32_MAX, need, &values, count, err));
    return values;
}

static const char *text(const fixture *f, int k, const char *what)
{
    char key[64];
    const char *value = NULL;
    snprintf(key, sizeof key, "fixture.%d.%s", k, what);
    CHECK(f, dgm_gguf_get_string(f->dump, key, DGM_OPTIONAL, &value, err));
    return value;
}

static void load_sentence(fixture *f, int k)
{
    fixture_sentence *s = &f->sentence[k];
    s->source = table(f, k, "source", DGM_REQUIRED, &s->source_count);
    s->target = table(f, k, "target", DGM_REQUIRED, &s->steps);
    assert_int_equal(s->steps % f->tokens, 0);
    s->steps /= f->tokens;
    s->greedy = table(f, k, "greedy", DGM_OPTIONAL, &s->greedy_count);
    s->logits = matrix(f, k, "logits", s->steps * f->tokens, f->vocabulary);
    s->attention = matrix(f, k, "attention", s->steps * f->tokens, s->source_count);
    s->text = text(f, k, "text");
    s->output = text(f, k, "output");
}

static void open_state(fixture *f)
{
    dgm_limits limits = {.slots = f->count, .rows = f->count * (1 + MOST_SIBLINGS)};
    for (int k = 0; k < f->count; k++) {
        const fixture_sentence *s = &f->sentence[k];
        if (s->source_count > limits.source) limits.source = s->source_count;
        if (s->steps > limits.target) limits.target = s->steps;
    }
    dgm_bytes bytes = dgm_state_bytes(f->model, &limits);
    bytes.device += dgm_exec_mat_bytes(f->backend, limits.rows * f->tokens, f->vocabulary);
    CHECK(f, dgm_exec_open(f->backend, bytes, &f->exec, err));
    CHECK(f, dgm_state_open(f->model, f->exec, &limits, &f->state, err));
}

void fixture_open(fixture *f, const char *name, const char *level)
{
    fixture_open_tuned(f, name, level, DGM_PRECISION_F32, NULL);
}

void fixture_open_tuned(fixture *f, const char *name, const char *level, dgm_precision precision,
                        const dgm_tuning *tuning)
{
    char path[160];
    uint32_t count = 0;
    memset(f, 0, sizeof *f);
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(path, sizeof path, FOLDER "/%s.gguf", name);
    CHECK(f, dgm_gguf_open(&f->file, path, err));
    snprintf(path, sizeof path, FOLDER "/%s" SUFFIX, name);
    CHECK(f, dgm_gguf_open(&f->dump, path, err));
    CHECK(f, dgm_backend_open(&f->backend, "cpu", level, err));
    CHECK(f, dgm_model_load(&f->model, f->backend, f->file, precision, err));
    if (tuning) CHECK(f, dgm_model_tune(f->model, tuning, err));
    CHECK(f, dgm_gguf_get_u32(f->dump, "fixture.sentences", DGM_REQUIRED, 1, FIXTURE_SENTENCES,
                              &count, err));
    f->vocabulary = dgm_model_describe(f->model)->target_vocab;
    f->tokens = dgm_model_describe(f->model)->tokens_per_step;
    f->count = (int)count;
    for (int k = 0; k < f->count; k++) load_sentence(f, k);
    open_state(f);
}

void fixture_close(fixture *f)
{
    dgm_state_close(&f->state);
    dgm_exec_close(&f->exec);
    dgm_model_free(&f->model);
    dgm_backend_close(&f->backend);
    dgm_gguf_close(&f->dump);
    dgm_gguf_close(&f->file);
}

// ---- walking ----------------------------------------------------------------------------------

typedef struct walker {
    fixture *f;
    const fixture_walk *walk;
    fixture_result *out;
    int32_t slot[FIXTURE_SENTENCES], row[FIXTURE_SENTENCES]; // row -1: not started, or done
    int done[FIXTURE_SENTENCES];                             // steps made
    float *logits;                                           // [rows, vocabulary]
} walker;

static const fixture_sentence *sentence_of(const walker *w, int i)
{
    return &w->f->sentence[w->walk->list[i]];
}

// Sentences whose turn it is are encoded together and started.
static void enter(walker *w, int now)
{
    dgm_source sources[FIXTURE_SENTENCES];
    int32_t slots[FIXTURE_SENTENCES], rows[FIXTURE_SENTENCES];
    int who[FIXTURE_SENTENCES], n = 0;
    for (int i = 0; i < w->walk->count; i++) {
        if ((w->walk->delay ? w->walk->delay[i] : 0) != now) continue;
        sources[n] = (dgm_source){sentence_of(w, i)->source, sentence_of(w, i)->source_count};
        who[n++] = i;
    }
    if (n == 0) return;
    CHECK(w->f, dgm_encode(w->f->state, n, sources, slots, err));
    CHECK(w->f, dgm_start(w->f->state, n, slots, rows, err));
    for (int i = 0; i < n; i++) {
        w->slot[who[i]] = slots[i];
        w->row[who[i]] = rows[i];
        assert_int_equal(dgm_slot_length(w->f->state, slots[i]), sources[i].count);
        assert_int_equal(dgm_row_slot(w->f->state, rows[i]), slots[i]);
    }
}

static void keep_results(walker *w, int i, int at, int32_t row)
{
    const fixture_sentence *s = sentence_of(w, i);
    size_t width = (size_t)w->f->vocabulary * (size_t)w->f->tokens;
    memcpy(w->out->logits[i] + (size_t)w->done[i] * width, w->logits + (size_t)at * width,
           width * sizeof(float));
    w->row[i] = row;
    if (++w->done[i] < s->steps) return;
    w->row[i] = -1;
    dgm_release(w->f->state, 1, &w->slot[i]);
}

// One step of everybody inside; false when nobody is.
static bool advance(walker *w)
{
    fixture *f = w->f;
    enum { MOST = FIXTURE_SENTENCES * (1 + MOST_SIBLINGS) };
    dgm_step_row steps[MOST];
    int32_t rows[MOST], kept[FIXTURE_SENTENCES];
    float *align[MOST * DGM_STEP_TOKENS];
    int at[FIXTURE_SENTENCES], n = 0, live = 0;
    for (int i = 0; i < w->walk->count; i++) {
        if (w->row[i] < 0) continue;
        const fixture_sentence *s = sentence_of(w, i);
        const int32_t *own_tokens = s->target + w->done[i] * f->tokens;
        // siblings go before and behind, so that the row itself is not always its parent's first
        for (int j = 0; j <= w->walk->siblings; j++) {
            bool own = j == (w->done[i] % (w->walk->siblings + 1));
            if (own) at[i] = n;
            steps[n] = (dgm_step_row){w->row[i], {DGM_NO_TOKEN, DGM_NO_TOKEN}};
            for (int k = 0; k < f->tokens; k++) {
                int32_t other = (own_tokens[k] + 7 * (j + 1) + k) % f->vocabulary;
                int vector = w->done[i] * f->tokens + k;
                steps[n].token[k] = own ? own_tokens[k] : other;
                align[n * f->tokens + k] =
                    own ? w->out->attention[i] + (size_t)vector * (size_t)s->source_count : NULL;
            }
            n++;
        }
    }
    if (n == 0) return false;
    dgm_step_result result = {.rows = rows, .align = align};
    CHECK(f, dgm_step(f->state, n, steps, &result, err));
    dgm_mark mark = dgm_exec_mark(f->exec);
    dgm_mat y = dgm_exec_mat(f->exec, n * f->tokens, f->vocabulary);
    dgm_op_linear(f->exec, y, result.hidden, dgm_model_output(f->model), DGM_ACT_NONE, NULL);
    dgm_op_read(f->exec, w->logits, y);
    dgm_exec_reset(f->exec, mark);
    for (int i = 0; i < w->walk->count; i++) {
        if (w->row[i] < 0) continue;
        keep_results(w, i, at[i], rows[at[i]]);
        if (w->row[i] >= 0) kept[live++] = w->row[i];
    }
    dgm_retain(f->state, live, kept);
    return true;
}

void fixture_run(fixture *f, const fixture_walk *walk, fixture_result *out)
{
    walker w = {.f = f, .walk = walk, .out = out};
    int last = 0;
    memset(out, 0, sizeof *out);
    w.logits = calloc((size_t)(f->count * (1 + MOST_SIBLINGS) * f->tokens) * (size_t)f->vocabulary,
                      sizeof(float));
    assert_non_null(w.logits);
    for (int i = 0; i < walk->count; i++) {
        const fixture_sentence *s = sentence_of(&w, i);
        w.row[i] = -1;
        const size_t vectors = (size_t)(s->steps * f->tokens);
        out->logits[i] = calloc(vectors * (size_t)f->vocabulary, sizeof(float));
        out->attention[i] = calloc(vectors * (size_t)s->source_count, sizeof(float));
        assert_true(out->logits[i] && out->attention[i]);
        if (walk->delay && walk->delay[i] > last) last = walk->delay[i];
    }
    bool busy = true;
    for (int now = 0; busy || now <= last; now++) {
        enter(&w, now);
        busy = advance(&w);
    }
    free(w.logits);
}

void fixture_result_free(fixture_result *r)
{
    for (int i = 0; i < FIXTURE_SENTENCES; i++) {
        free(r->logits[i]);
        free(r->attention[i]);
    }
    memset(r, 0, sizeof *r);
}

// ---- comparing --------------------------------------------------------------------------------

double fixture_difference(const float *got, const float *expected, int steps, int width)
{
    double worst = 0;
    for (int t = 0; t < steps; t++) {
        double peak = 0, off = 0;
        for (int j = 0; j < width; j++) {
            size_t i = (size_t)t * (size_t)width + (size_t)j;
            double d = fabs((double)got[i] - (double)expected[i]);
            if (!(d <= off)) off = isnan(d) ? INFINITY : d;
            if (fabs((double)expected[i]) > peak) peak = fabs((double)expected[i]);
        }
        if (off / peak > worst) worst = off / peak;
    }
    return worst;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

int fixture_list(const char *prefix, char names[][64], int most, int at_least)
{
    DIR *folder = opendir(FOLDER);
    if (!folder) fail_msg("cannot open %s: run the tests from the root of the repository", FOLDER);
    int n = 0;
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        size_t size = strlen(e->d_name), tail = strlen(SUFFIX);
        if (size <= tail || strcmp(e->d_name + size - tail, SUFFIX) != 0) continue;
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0) continue;
        assert_true(n < most && size - tail < 64);
        memcpy(names[n], e->d_name, size - tail);
        names[n++][size - tail] = 0;
    }
    closedir(folder);
    qsort(names, (size_t)n, sizeof names[0], compare_names);
    if (n < at_least) fail_msg("%d fixtures %s* in %s, expected %d", n, prefix, FOLDER, at_least);
    return n;
}

static void check_values(const fixture *f, const fixture_walk *walk, const fixture_result *r,
                         const char *level)
{
    for (int i = 0; i < walk->count; i++) {
        const fixture_sentence *s = &f->sentence[walk->list[i]];
        const int vectors = s->steps * f->tokens;
        double logits = fixture_difference(r->logits[i], s->logits, vectors, f->vocabulary);
        double weights =
            fixture_difference(r->attention[i], s->attention, vectors, s->source_count);
        if (!(logits <= 1e-4) || !(weights <= 1e-4))
            fail_msg("%s, sentence %d, kernels %s: logits differ by %.2e, attention by %.2e",
                     f->name, walk->list[i], level ? level : "best", logits, weights);
    }
}

static void check_equal(const fixture *f, const fixture_walk *walk, const fixture_result *many,
                        int i, const fixture_result *one)
{
    const fixture_sentence *s = &f->sentence[walk->list[i]];
    const size_t vectors = (size_t)(s->steps * f->tokens);
    size_t logits = vectors * (size_t)f->vocabulary * sizeof(float);
    size_t weights = vectors * (size_t)s->source_count * sizeof(float);
    if (memcmp(many->logits[i], one->logits[0], logits) != 0 ||
        memcmp(many->attention[i], one->attention[0], weights) != 0)
        fail_msg("%s, sentence %d: results depend on the neighbours", f->name, walk->list[i]);
}

static void check_fixture(const char *name, const char *level)
{
    fixture f;
    fixture_result many, one;
    const int list[FIXTURE_SENTENCES] = {3, 0, 4, 2, 1}, delay[FIXTURE_SENTENCES] = {1, 0, 4, 2, 0};
    fixture_open(&f, name, level);
    assert_int_equal(f.count, 5);
    for (int pass = 0; pass < 3; pass++) { // together, staggered, staggered with siblings
        fixture_walk walk = {list, pass > 0 ? delay : NULL, f.count, pass == 2 ? 2 : 0};
        fixture_run(&f, &walk, &many);
        check_values(&f, &walk, &many, level);
        for (int i = 0; i < f.count; i++) {
            fixture_walk alone = {&list[i], NULL, 1, 0};
            fixture_run(&f, &alone, &one);
            check_equal(&f, &walk, &many, i, &one);
            fixture_result_free(&one);
        }
        fixture_result_free(&many);
    }
    fixture_close(&f);
}

void fixture_check_family(const char *prefix, int at_least)
{
    char names[NAMES][64];
    int n = fixture_list(prefix, names, NAMES, at_least);
    unsigned flags;
    const bool avx2 = dgm_cpu_limit("avx2", &flags, NULL) == DGM_OK;
    for (int i = 0; i < n; i++) {
        check_fixture(names[i], "c");
        if (avx2) check_fixture(names[i], "avx2");
        check_fixture(names[i], NULL);
    }
}

// ---- memory and damaged files -------------------------------------------------------------------

void fixture_check_memory(const char *name)
{
    fixture f;
    const int list[] = {0, 1, 2};
    fixture_walk walk = {list, NULL, 3, 1};
    fixture_result r;
    fixture_open(&f, name, NULL);
    uint64_t before = dgm_mem_allocations();
    fixture_run(&f, &walk, &r); // its own buffers are the C library's
    assert_int_equal(dgm_mem_allocations(), before);
    fixture_result_free(&r);

    uint64_t live = dgm_mem_live();
    dgm_status st = DGM_ERR_MEMORY;
    for (uint64_t n = 1; st != DGM_OK; n++) {
        dgm_model *m = NULL;
        dgm_error err = {{0}};
        dgm_mem_inject(n, 1);
        st = dgm_model_load(&m, f.backend, f.file, DGM_PRECISION_F32, &err);
        dgm_mem_inject(0, 0);
        if (st != DGM_OK && (st != DGM_ERR_MEMORY || m || !err.text[0]))
            fail_msg("%s: allocation %d failed, status %d: %s", name, (int)n, st, err.text);
        dgm_model_free(&m);
        assert_int_equal(dgm_mem_live(), live);
        assert_true(n < 10000);
    }
    fixture_close(&f);
}

// A copy of the file at path, without one tensor.
static void write_without(const fixture *f, const dgm_tensor *left_out, const char *path)
{
    dgm_gguf_writer *w = NULL;
    CHECK(f, dgm_gguf_writer_open(&w, err));
    dgm_gguf_set_copies(w, f->file);
    for (int i = 0; i < dgm_gguf_tensor_count(f->file); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(f->file, i);
        if (t == left_out || t == left_out->scale) continue;
        dgm_gguf_add_tensor(w, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape, t->data);
    }
    CHECK(f, dgm_gguf_write(w, path, err));
    dgm_gguf_writer_close(&w);
}

void fixture_check_missing(const char *name, int required)
{
    fixture f;
    char path[] = "/tmp/dragoman-test-XXXXXX";
    int fd = mkstemp(path), failed = 0;
    assert_true(fd >= 0);
    close(fd);
    fixture_open(&f, name, NULL);
    for (int i = 0; i < dgm_gguf_tensor_count(f.file); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(f.file, i);
        size_t size = strlen(t->name);
        if (size > 6 && strcmp(t->name + size - 6, ".scale") == 0) continue;
        dgm_gguf *g = NULL;
        dgm_model *m = NULL;
        dgm_error why = {{0}};
        write_without(&f, t, path);
        CHECK(&f, dgm_gguf_open(&g, path, err));
        dgm_status st = dgm_model_load(&m, f.backend, g, DGM_PRECISION_F32, &why);
        failed += st != DGM_OK;
        // a matrix that stands in for the missing one may be named instead: it has a wrong shape
        bool names_it = strstr(why.text, t->name) || strstr(why.text, "embed");
        if (st != DGM_OK && (st != DGM_ERR_FORMAT || m || !names_it))
            fail_msg("%s without %s: status %d: %s", name, t->name, st, why.text);
        dgm_model_free(&m);
        dgm_gguf_close(&g);
    }
    unlink(path);
    if (failed < required)
        fail_msg("%s: %d tensors are required, expected %d", name, failed, required);
    fixture_close(&f);
}
