// SPDX-License-Identifier: MIT
// `dragoman quantize` and profiles through the public header: every type to every other, error
// bounds, what is copied, calibration, refusals, failed allocations.
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
#include "base/mem.h"
#include "dragoman/tools.h"
#include "format/convert.h"
#include "format/gguf.h"
#include "model/model.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"
#define RNN "tests/data/models/rnn-bahdanau-pieces.gguf"

static const char *const types[] = {"f32", "f16", "bf16", "i16", "i8"};
enum { TYPES = 5 };

static char folder[] = "/tmp/dragoman-quantize-XXXXXX";

static char *path_of(const char *name)
{
    static char paths[4][256];
    static int next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}

static dgm_quantize_report *quantize(const char *from, const char *to, const char *type)
{
    dgm_quantize_options o;
    dgm_quantize_report *r = NULL;
    dgm_error error = {{0}};
    dgm_quantize_default(&o);
    o.type = type;
    dgm_status st = dgm_quantize(from, to, &o, &r, &error);
    if (st != DGM_OK) print_error("%s\n", error.text);
    assert_int_equal(st, DGM_OK);
    assert_non_null(r);
    return r;
}

static dgm_gguf *open_file(const char *path)
{
    dgm_gguf *g = NULL;
    dgm_error error = {{0}};
    dgm_status st = dgm_gguf_open(&g, path, &error);
    if (st != DGM_OK) print_error("%s\n", error.text);
    assert_int_equal(st, DGM_OK);
    return g;
}

static float *values_of(const dgm_tensor *t)
{
    float *v = malloc((size_t)t->rows * (size_t)t->cols * sizeof *v);
    assert_non_null(v);
    dgm_tensor_to_f32(t, v);
    return v;
}

// ---- errors -------------------------------------------------------------------------------------

// Largest error that one value of a tensor of this type may have.
static double bound(const dgm_tensor *t, int row, double value)
{
    const float *scale = t->scale ? t->scale->data : NULL;
    switch (t->type) {
    case DGM_TYPE_I8:
        return 0.5001 * (double)scale[row];
    case DGM_TYPE_I16:
        return 0.5001 * (double)scale[0];
    case DGM_TYPE_F16:
        return fabs(value) / 2048 + 3e-8;
    case DGM_TYPE_BF16:
        return fabs(value) / 256;
    default:
        return 0;
    }
}

static void check_errors(const dgm_gguf *from, const dgm_gguf *to, const dgm_quantize_report *r)
{
    for (size_t i = 0; i < r->tensor_count; i++) {
        const dgm_quantize_tensor *d = r->tensors[i];
        const dgm_tensor *a = dgm_gguf_find_tensor(from, d->name);
        const dgm_tensor *b = dgm_gguf_find_tensor(to, d->name);
        assert_non_null(a);
        assert_non_null(b);
        assert_string_equal(dgm_tensor_type_name(b->type), d->to);
        float *x = values_of(a), *y = values_of(b);
        double worst = 0, largest = 0;
        for (int row = 0; row < a->rows; row++)
            for (int c = 0; c < a->cols; c++) {
                size_t at = (size_t)row * (size_t)a->cols + (size_t)c;
                double error = fabs((double)x[at] - (double)y[at]);
                assert_true(error <= bound(b, row, (double)x[at]));
                worst = fmax(worst, error);
                largest = fmax(largest, fabs((double)x[at]));
            }
        assert_true(d->max_error == worst && d->largest == largest);
        assert_int_equal(d->saturated, 0);
        assert_true(d->relative_error < 0.02);
        free(x);
        free(y);
    }
}

// Everything that is no matrix and no scale of one is there, bit by bit.
static void check_copies(const dgm_gguf *from, const dgm_gguf *to)
{
    for (int i = 0; i < dgm_gguf_tensor_count(from); i++) {
        const dgm_tensor *a = dgm_gguf_tensor(from, i);
        if (a->n_dims != 1 || strstr(a->name, ".scale")) continue;
        const dgm_tensor *b = dgm_gguf_find_tensor(to, a->name);
        assert_non_null(b);
        assert_int_equal(b->type, a->type);
        assert_int_equal(b->bytes, a->bytes);
        assert_memory_equal(b->data, a->data, a->bytes);
    }
    for (int i = 0; i < dgm_gguf_meta_count(from); i++) {
        const dgm_meta *a = dgm_gguf_meta(from, i);
        if (strcmp(a->key, "dragoman.producer") == 0 || strcmp(a->key, "general.alignment") == 0 ||
            strcmp(a->key, "dragoman.decode.precision") == 0)
            continue;
        const dgm_meta *b = dgm_gguf_find(to, a->key);
        assert_non_null(b);
        assert_int_equal(b->type, a->type);
        assert_int_equal(b->raw_size, a->raw_size);
        if (a->raw_size) assert_memory_equal(b->raw, a->raw, a->raw_size);
    }
}

static void check_precision(const dgm_gguf *g, const char *expected)
{
    const char *precision = NULL;
    dgm_error error;
    assert_int_equal(
        dgm_gguf_get_string(g, "dragoman.decode.precision", DGM_OPTIONAL, &precision, &error),
        DGM_OK);
    if (expected)
        assert_string_equal(precision, expected);
    else
        assert_null(precision);
}

static bool integer(const char *type)
{
    return type[0] == 'i';
}

static void test_every_type(void **state)
{
    (void)state;
    for (int a = 0; a < TYPES; a++) {
        char first[16];
        snprintf(first, sizeof first, "%s.gguf", types[a]);
        dgm_quantize_report *r = quantize(MODEL, path_of(first), types[a]);
        dgm_gguf *from = open_file(MODEL), *middle = open_file(path_of(first));
        check_errors(from, middle, r);
        check_copies(from, middle);
        check_precision(middle, integer(types[a]) ? types[a] : "f32");
        dgm_quantize_report_free(&r);
        assert_null(r);
        for (int b = 0; b < TYPES; b++) {
            r = quantize(path_of(first), path_of("second.gguf"), types[b]);
            dgm_gguf *to = open_file(path_of("second.gguf"));
            check_errors(middle, to, r);
            check_copies(middle, to);
            bool twice = a != b && integer(types[a]) && integer(types[b]);
            assert_int_equal(r->through_f32, twice ? r->tensor_count : 0);
            assert_int_equal(a == b ? r->kept : r->converted, r->tensor_count);
            if (a == b) assert_true(r->bytes_after == r->bytes_before && r->relative_error == 0);
            dgm_gguf_close(&to);
            dgm_quantize_report_free(&r);
        }
        dgm_gguf_close(&from);
        dgm_gguf_close(&middle);
    }
}

// f32 holds every other type exactly: there and back again is the same file.
static void test_round_trip(void **state)
{
    (void)state;
    for (int a = 0; a < TYPES; a++) {
        dgm_quantize_report *r = quantize(RNN, path_of("once.gguf"), types[a]);
        dgm_quantize_report_free(&r);
        r = quantize(path_of("once.gguf"), path_of("wide.gguf"), "f32");
        assert_true(r->relative_error == 0);
        dgm_quantize_report_free(&r);
        r = quantize(path_of("wide.gguf"), path_of("twice.gguf"), types[a]);
        if (types[a][0] != 'i' || strcmp(types[a], "i16") == 0) assert_true(r->relative_error == 0);
        dgm_quantize_report_free(&r);
        dgm_gguf *once = open_file(path_of("once.gguf")), *twice = open_file(path_of("twice.gguf"));
        for (int i = 0; i < dgm_gguf_tensor_count(once); i++) {
            const dgm_tensor *x = dgm_gguf_tensor(once, i);
            const dgm_tensor *y = dgm_gguf_find_tensor(twice, x->name);
            assert_non_null(y);
            assert_int_equal(x->bytes, y->bytes);
            if (x->type == DGM_TYPE_I8 || strstr(x->name, ".scale")) continue; // scale / 127 * 127
            assert_memory_equal(x->data, y->data, x->bytes);
        }
        dgm_gguf_close(&once);
        dgm_gguf_close(&twice);
    }
}

// ---- options ------------------------------------------------------------------------------------

static void test_options(void **state)
{
    (void)state;
    const char *keep[] = {"enc.*", "src.emb?d"};
    dgm_quantize_options o;
    dgm_quantize_report *r = NULL;
    dgm_error error = {{0}};
    dgm_quantize_default(&o);
    o.type = "i8";
    o.keep = keep;
    o.keep_count = 2;
    o.precision = "none";
    o.name = "renamed";
    o.card_file = "VERSION";
    assert_int_equal(dgm_quantize(MODEL, path_of("kept.gguf"), &o, &r, &error), DGM_OK);
    dgm_gguf *g = open_file(path_of("kept.gguf"));
    for (size_t i = 0; i < r->tensor_count; i++) {
        const dgm_quantize_tensor *d = r->tensors[i];
        bool expected = strncmp(d->name, "enc.", 4) == 0 || strcmp(d->name, "src.embed") == 0;
        assert_string_equal(d->to, expected ? d->from : "i8");
    }
    assert_true(r->kept > 0 && r->converted > 0 && r->kept + r->converted == r->tensor_count);
    const char *text = NULL;
    assert_int_equal(dgm_gguf_get_string(g, "general.name", DGM_REQUIRED, &text, &error), DGM_OK);
    assert_string_equal(text, "renamed");
    assert_int_equal(dgm_gguf_get_string(g, "dragoman.card", DGM_REQUIRED, &text, &error), DGM_OK);
    check_precision(g, NULL);
    dgm_gguf_close(&g);
    dgm_quantize_report_free(&r);
    // Without an output the same report, and nothing is written.
    o.keep_count = 0;
    assert_int_equal(dgm_quantize(MODEL, NULL, &o, &r, &error), DGM_OK);
    dgm_quantize_report *written = quantize(MODEL, path_of("dry.gguf"), "i8");
    assert_true(r->relative_error == written->relative_error && r->relative_error > 0);
    assert_true(r->bytes_after == written->bytes_after && r->bytes_after < r->bytes_before);
    dgm_quantize_report_free(&written);
    dgm_quantize_report_free(&r);
}

static void refused(dgm_quantize_options *o, const char *model, const char *output, dgm_status code,
                    const char *word)
{
    dgm_quantize_report *r = NULL;
    dgm_error error = {{0}};
    assert_int_equal(dgm_quantize(model, output, o, &r, &error), code);
    assert_null(r);
    assert_non_null(strstr(error.text, word));
    assert_null(strchr(error.text, '\n'));
}

static void test_refusals(void **state)
{
    (void)state;
    const char *nothing[] = {"no.such.*"};
    dgm_quantize_options o;
    dgm_quantize_default(&o);
    refused(&o, MODEL, path_of("x.gguf"), DGM_ERR_ARGUMENT, "type");
    o.type = "i4";
    refused(&o, MODEL, path_of("x.gguf"), DGM_ERR_ARGUMENT, "'i4'");
    o.type = "i8";
    refused(&o, NULL, path_of("x.gguf"), DGM_ERR_ARGUMENT, "model");
    refused(&o, "missing.gguf", path_of("x.gguf"), DGM_ERR_IO, "missing.gguf");
    refused(&o, "VERSION", path_of("x.gguf"), DGM_ERR_FORMAT, "VERSION");
    refused(&o, MODEL, path_of("no/such/folder.gguf"), DGM_ERR_IO, "folder.gguf");
    o.precision = "i4";
    refused(&o, MODEL, path_of("x.gguf"), DGM_ERR_ARGUMENT, "precision");
    o.precision = NULL;
    o.keep = nothing;
    o.keep_count = 1;
    refused(&o, MODEL, path_of("x.gguf"), DGM_ERR_ARGUMENT, "no.such");
    o.keep_count = 0;
    o.card_file = "missing.md";
    refused(&o, MODEL, path_of("x.gguf"), DGM_ERR_IO, "missing.md");
    o.card_file = NULL;
    o.saturate = 1.5;
    refused(&o, MODEL, path_of("x.gguf"), DGM_ERR_ARGUMENT, "saturated");
    o.saturate = 0;
    o.threads = -1;
    refused(&o, MODEL, path_of("x.gguf"), DGM_ERR_ARGUMENT, "threads");
    o.threads = 1;
    o.calibrate = "missing.txt";
    refused(&o, MODEL, path_of("x.gguf"), DGM_ERR_IO, "missing.txt");
    o.calibrate = "/dev/null";
    refused(&o, MODEL, path_of("x.gguf"), DGM_ERR_TEXT, "/dev/null");
    assert_int_not_equal(access(path_of("x.gguf"), F_OK), 0);
    refused(NULL, MODEL, path_of("x.gguf"), DGM_ERR_ARGUMENT, "type");
}

static void test_values(void **state)
{
    (void)state;
    uint16_t half[4];
    float out[4];
    dgm_error error;
    const float large[] = {1, 1e6f, 0, -2}, odd[] = {1, NAN, 0, 0}, tiny[] = {1, 1e-9f, 0, -1e-9f};
    assert_int_equal(dgm_convert("w", large, 2, 2, DGM_TYPE_F16, half, NULL, NULL, &error),
                     DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "'w'"));
    assert_int_equal(dgm_convert("w", large, 2, 2, DGM_TYPE_BF16, half, NULL, NULL, &error),
                     DGM_OK);
    assert_int_equal(dgm_convert("w", odd, 2, 2, DGM_TYPE_F32, out, NULL, NULL, &error),
                     DGM_ERR_FORMAT);
    int8_t q[4];
    float scale[2];
    dgm_convert_error e;
    assert_int_equal(dgm_convert("w", tiny, 2, 2, DGM_TYPE_I8, q, scale, &e, &error), DGM_OK);
    assert_int_equal(e.vanished, 1); // the second row has a scale of its own
    assert_true(e.largest == 1 && e.saturated == 0);
    assert_int_equal(dgm_convert_type("i32"), -1);
}

// ---- calibration --------------------------------------------------------------------------------

static char *write_text(void)
{
    char *path = path_of("text");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 300; i++) fprintf(f, "a line %d of text\n%s", i, i % 50 ? "" : "\n");
    assert_int_equal(fclose(f), 0);
    return path;
}

static void calibrated(const char *model, const char *output, int threads, double saturate,
                       dgm_quantize_report **r)
{
    dgm_quantize_options o;
    dgm_error error = {{0}};
    dgm_quantize_default(&o);
    o.type = "i8";
    o.calibrate = write_text();
    o.threads = threads;
    o.saturate = saturate;
    dgm_status st = dgm_quantize(model, output, &o, r, &error);
    if (st != DGM_OK) print_error("%s\n", error.text);
    assert_int_equal(st, DGM_OK);
}

static void check_inputs(const dgm_gguf *g, const dgm_quantize_report *r, double saturate)
{
    assert_true(r->input_count > 4 && r->lines == 306 && r->target_tokens > 0);
    for (size_t i = 0; i < r->input_count; i++) {
        const dgm_quantize_input *in = r->inputs[i];
        char name[300];
        const float *v = NULL;
        dgm_error error;
        snprintf(name, sizeof name, "%s.input_scale", in->name);
        assert_non_null(dgm_gguf_find_tensor(g, in->name));
        assert_int_equal(dgm_gguf_vector(g, name, 8, DGM_REQUIRED, &v, &error), DGM_OK);
        assert_true(v[0] == (float)in->scale && v[7] == (float)in->max);
        assert_true(in->rows > 0 && in->scale > 0 && in->clipped <= saturate);
        assert_true(in->median <= in->q90 && in->q90 <= in->q99 && in->q99 <= in->q999 &&
                    in->q999 <= in->max);
        assert_true(in->mean <= in->max && in->deviation >= 0);
        if (saturate == 0) assert_true(fabs(in->scale * 127 - in->max) <= 1e-6 * in->max);
    }
}

static void test_calibration(void **state)
{
    (void)state;
    const char *const models[] = {MODEL, RNN};
    for (int m = 0; m < 2; m++) {
        dgm_quantize_report *one = NULL, *two = NULL;
        calibrated(models[m], path_of("one.gguf"), 1, 0.01, &one);
        calibrated(models[m], path_of("two.gguf"), 3, 0.01, &two);
        dgm_gguf *a = open_file(path_of("one.gguf")), *b = open_file(path_of("two.gguf"));
        check_inputs(a, one, 0.01);
        // Neither the threads nor the batches they make show in the result.
        for (size_t i = 0; i < one->input_count; i++) {
            char name[300];
            snprintf(name, sizeof name, "%s.input_scale", one->inputs[i]->name);
            const dgm_tensor *x = dgm_gguf_find_tensor(a, name), *y = dgm_gguf_find_tensor(b, name);
            assert_memory_equal(x->data, y->data, x->bytes);
        }
        dgm_quantize_report_free(&one);
        dgm_quantize_report_free(&two);
        dgm_gguf_close(&b);
        // Scales survive another conversion, and a new calibration replaces them.
        one = quantize(path_of("one.gguf"), path_of("three.gguf"), "f16");
        b = open_file(path_of("three.gguf"));
        check_copies(a, b);
        dgm_gguf_close(&b);
        dgm_quantize_report_free(&one);
        calibrated(path_of("three.gguf"), path_of("four.gguf"), 1, 0, &one);
        b = open_file(path_of("four.gguf"));
        check_inputs(b, one, 0);
        assert_int_equal(dgm_gguf_tensor_count(a), dgm_gguf_tensor_count(b));
        dgm_quantize_report_free(&one);
        dgm_gguf_close(&a);
        dgm_gguf_close(&b);
    }
}

// A layer with a static scale rounds its input by it: loads, and computes what it would by hand.
static void test_static_scale(void **state)
{
    (void)state;
    enum { N = 5, K = 7 };
    float w[N * K], x[K], scale[N], got[N];
    int8_t q[N * K];
    dgm_error error;
    for (int i = 0; i < N * K; i++) w[i] = sinf((float)i);
    for (int i = 0; i < K; i++) x[i] = 3 * cosf((float)i);
    dgm_tensor tensor = {.name = "w",
                         .type = DGM_TYPE_F32,
                         .n_dims = 2,
                         .shape = {N, K},
                         .rows = N,
                         .cols = K,
                         .data = w,
                         .bytes = sizeof w};
    dgm_linear_part part = {.weight = &tensor, .input_scale = 2.0f / 127};
    assert_int_equal(dgm_convert("w", w, N, K, DGM_TYPE_I8, q, scale, NULL, &error), DGM_OK);
    dgm_backend *b = NULL;
    dgm_exec *e = NULL;
    dgm_linear *l = NULL;
    assert_int_equal(dgm_backend_open(&b, "cpu", NULL, &error), DGM_OK);
    dgm_backend_static(b, true);
    assert_int_equal(dgm_linear_load(b, &part, 1, DGM_PRECISION_I8, &l, &error), DGM_OK);
    assert_ptr_equal(dgm_linear_tensor(l, 0), &tensor);
    assert_null(dgm_linear_tensor(l, 1));
    assert_null(dgm_linear_tensor(l, 2));
    assert_int_equal(dgm_exec_open(b, dgm_bytes_both(1 << 20), &e, &error), DGM_OK);
    dgm_mat in = dgm_exec_mat(e, 1, K), out = dgm_exec_mat(e, 1, N);
    dgm_op_write(e, in, x);
    dgm_op_linear(e, out, in, l, DGM_ACT_NONE, NULL);
    dgm_op_read(e, got, out);
    for (int j = 0; j < N; j++) {
        int sum = 0;
        for (int i = 0; i < K; i++) {
            float v = rintf(x[i] * (127.0f / 2.0f));
            v = v > 127 ? 127 : v < -127 ? -127 : v; // two of the inputs saturate
            sum += (int)v * q[j * K + i];
        }
        assert_true(fabsf(got[j] - (float)sum * scale[j] * (2.0f / 127)) < 1e-5f);
    }
    dgm_exec_close(&e);
    dgm_linear_free(b, &l);
    dgm_backend_close(&b);
}

// Loads a copy of the model whose output matrix has the given static scale.
static dgm_status load_with_scale(float scale, dgm_error *error)
{
    const int one = 1;
    dgm_gguf *file = open_file(MODEL);
    dgm_gguf_writer *w = NULL;
    assert_int_equal(dgm_gguf_writer_open(&w, error), DGM_OK);
    dgm_gguf_set_copies(w, file);
    for (int i = 0; i < dgm_gguf_tensor_count(file); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(file, i);
        dgm_gguf_add_tensor(w, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape, t->data);
    }
    dgm_gguf_add_tensor(w, "enc.0.ffn.in.weight.input_scale", DGM_TYPE_F32, 1, &one, &scale);
    assert_int_equal(dgm_gguf_write(w, path_of("scaled.gguf"), error), DGM_OK);
    dgm_gguf_writer_close(&w);
    dgm_gguf_close(&file);
    dgm_backend *b = NULL;
    dgm_model *m = NULL;
    file = open_file(path_of("scaled.gguf"));
    assert_int_equal(dgm_backend_open(&b, "cpu", NULL, error), DGM_OK);
    dgm_backend_static(b, true);
    dgm_status st = dgm_model_load(&m, b, file, DGM_PRECISION_I8, error);
    dgm_model_free(&m);
    dgm_backend_close(&b);
    dgm_gguf_close(&file);
    return st;
}

static void test_bad_scale(void **state)
{
    (void)state;
    const float bad[] = {0, -1, NAN, INFINITY};
    dgm_error error = {{0}};
    assert_int_equal(load_with_scale(0.02f, &error), DGM_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(load_with_scale(bad[i], &error), DGM_ERR_FORMAT);
        assert_non_null(strstr(error.text, "enc.0.ffn.in.weight.input_scale"));
    }
}

// ---- memory -------------------------------------------------------------------------------------

static void survive(const char *calibrate)
{
    dgm_quantize_options o;
    dgm_quantize_default(&o);
    o.type = "i8";
    o.calibrate = calibrate;
    uint64_t live = dgm_mem_live();
    bool done = false;
    // Every allocation of the plain conversion, a sample of the many of a translation.
    for (uint64_t n = 1; !done; n += calibrate ? 1 + n / 12 : 1) {
        dgm_quantize_report *r = NULL;
        dgm_error error = {{0}};
        uint64_t before = dgm_mem_allocations();
        dgm_mem_inject(n, 1);
        dgm_status st = dgm_quantize(MODEL, path_of("memory.gguf"), &o, &r, &error);
        dgm_mem_inject(0, 0);
        done = dgm_mem_allocations() - before < n; // none failed
        if (done) assert_int_equal(st, DGM_OK);
        assert_true((st == DGM_OK) == (r != NULL));
        if (st != DGM_OK) assert_true(error.text[0] != 0);
        dgm_quantize_report_free(&r);
        assert_int_equal(dgm_mem_live(), live);
    }
}

static void test_memory(void **state)
{
    (void)state;
    survive(NULL);
    char *path = path_of("short");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("one line\n", f);
    fclose(f);
    survive(path);
}

// ---- profile ------------------------------------------------------------------------------------

static void test_profile(void **state)
{
    (void)state;
    const char *texts[] = {"a line of text", "another one", ""};
    dgm_translator *t = NULL;
    dgm_profile *p = NULL;
    dgm_results *r = NULL;
    dgm_error error = {{0}};
    assert_int_equal(dgm_open(&t, MODEL, NULL, &error), DGM_OK);
    assert_int_equal(dgm_profile_read(t, &p, &error), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_profile_start(NULL, &error), DGM_ERR_ARGUMENT);
    for (int round = 0; round < 2; round++) { // starting again starts at zero
        dgm_counters before, after;
        assert_int_equal(dgm_profile_start(t, &error), DGM_OK);
        dgm_count(t, &before);
        assert_int_equal(dgm_translate(t, texts, 3, &r, &error), DGM_OK);
        dgm_count(t, &after);
        dgm_results_free(&r);
        assert_int_equal(dgm_profile_read(t, &p, &error), DGM_OK);
        assert_true(p->count > 5 && p->elapsed > 0 && p->busy > 0 && p->search >= 0 && p->text > 0);
        assert_int_equal(p->steps, after.steps - before.steps);
        double sum = 0;
        uint64_t projected = 0;
        for (size_t i = 0; i < p->count; i++) {
            const dgm_profile_row *row = p->rows[i];
            sum += row->seconds;
            bool linear = strcmp(row->operation, "linear") == 0;
            assert_true(row->calls > 0 && row->rows > 0);
            if (!linear) continue;
            // Rows of the projection are counted once per chunk of columns: products add up.
            if (strcmp(row->phase, "rank") == 0)
                projected += row->multiply_adds / (uint64_t)row->inputs;
            else
                assert_true(row->multiply_adds ==
                            row->rows * (uint64_t)row->inputs * (uint64_t)row->outputs);
        }
        assert_true(sum <= p->busy + 1e-6 && p->busy <= 1.1 * p->elapsed + 1e-3);
        assert_true(projected % (after.rank_rows - before.rank_rows) == 0);
        dgm_profile_free(&p);
        assert_null(p);
    }
    dgm_profile_stop(t);
    assert_int_equal(dgm_profile_read(t, &p, &error), DGM_ERR_ARGUMENT);
    dgm_close(&t);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),   cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_options),      cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_values),       cmocka_unit_test(test_calibration),
        cmocka_unit_test(test_static_scale), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_profile),      cmocka_unit_test(test_bad_scale),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
