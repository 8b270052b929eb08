// SPDX-License-Identifier: MIT
// dgm_average: means of f32 and of integer weights, weighted or not; everything else is the first
// model's; models that are not checkpoints of one are refused; allocation failures.
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

#include "base/mapfile.h"
#include "base/mem.h"
#include "dragoman/tools.h"
#include "format/gguf.h"
#include "failures.h"
#include "scratch.h"

#define MODELS "tests/data/models/"
#define MODEL MODELS "rnn-bahdanau-pieces.gguf"
#define INTEGERS MODELS "rnn-conditional-i8.gguf"

// A copy of a model with `add` added to every f32 weight, and one of its names changed.
static const char *changed(const char *model, const char *name, float add, const char *from,
                           const char *to)
{
    const char *path = in_folder(name);
    dgm_mapfile f;
    dgm_gguf *g = NULL;
    assert_int_equal(dgm_mapfile_open(&f, model, NULL), DGM_OK);
    uint8_t *copy = dgm_malloc(f.size);
    memcpy(copy, f.data, f.size);
    assert_int_equal(dgm_gguf_open_memory(&g, copy, f.size, NULL), DGM_OK);
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        float *v = (float *)(uintptr_t)t->data;
        for (size_t k = 0; t->type == DGM_TYPE_F32 && k < t->bytes / 4; k++) v[k] += add;
    }
    dgm_gguf_close(&g);
    if (from) {
        uint8_t *at = memmem(copy, f.size, from, strlen(from));
        assert_non_null(at);
        memcpy(at, to, strlen(to));
    }
    assert_int_equal(dgm_file_write(path, copy, f.size, NULL), DGM_OK);
    dgm_free(copy);
    dgm_mapfile_close(&f);
    return path;
}

// Every real tensor of `model` is that of `first` plus `add`.
static void check_shift(const char *model, const char *first, float add, float slack)
{
    dgm_gguf *a = NULL, *b = NULL;
    assert_int_equal(dgm_gguf_open(&a, model, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_open(&b, first, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_tensor_count(a), dgm_gguf_tensor_count(b));
    for (int i = 0; i < dgm_gguf_tensor_count(b); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(b, i);
        const dgm_tensor *u = dgm_gguf_find_tensor(a, t->name);
        assert_non_null(u);
        assert_int_equal(u->type, t->type);
        if (t->type == DGM_TYPE_I32) continue;
        const size_t n = (size_t)t->rows * (size_t)t->cols;
        float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
        dgm_tensor_to_f32(u, x);
        dgm_tensor_to_f32(t, y);
        for (size_t k = 0; k < n; k++)
            assert_float_equal(x[k], y[k] + add, slack * (1 + fabsf(y[k])));
        free(x), free(y);
    }
    for (int i = 0; i < dgm_gguf_meta_count(b); i++) {
        const dgm_meta *m = dgm_gguf_meta(b, i), *n = dgm_gguf_find(a, m->key);
        assert_non_null(n);
        if (strcmp(m->key, "dragoman.producer") == 0) continue;
        assert_int_equal(m->raw_size, n->raw_size);
        assert_memory_equal(m->raw, n->raw, m->raw_size);
    }
    dgm_gguf_close(&a);
    dgm_gguf_close(&b);
}

static void means(void **state)
{
    (void)state;
    const char *out = in_folder("mean.gguf");
    const char *models[3] = {MODEL, changed(MODEL, "b.gguf", 3, NULL, NULL), MODEL};
    const double weights[3] = {1, 2, 1};
    const dgm_average_options o = {.size = sizeof(dgm_average_options), .weights = weights};
    dgm_average_report r = {.size = sizeof r};
    dgm_error err;
    assert_int_equal(dgm_average(models, 3, out, NULL, &r, &err), DGM_OK);
    check_shift(out, MODEL, 1.0f, 1e-6f);
    assert_true(r.tensors > 10 && r.parameters > 1000 && r.dropped_scales == 0);
    assert_int_equal(dgm_average(models, 3, out, &o, &r, &err), DGM_OK);
    check_shift(out, MODEL, 1.5f, 1e-6f);
    models[1] = MODEL;
    assert_int_equal(dgm_average(models, 2, out, NULL, NULL, &err), DGM_OK);
    check_shift(out, MODEL, 0.0f, 0.0f); // to the bit
    dgm_translator *t = NULL;
    if (dgm_open(&t, out, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_close(&t);
}

static void integers(void **state)
{
    (void)state;
    const char *out = in_folder("mean.gguf"), *models[2] = {INTEGERS, INTEGERS};
    dgm_error err;
    assert_int_equal(dgm_average(models, 2, out, NULL, NULL, &err), DGM_OK);
    check_shift(out, INTEGERS, 0.0f, 1e-6f);
    const dgm_average_options o = {.size = sizeof(dgm_average_options), .type = "f32"};
    assert_int_equal(dgm_average(models, 2, out, &o, NULL, &err), DGM_OK);
    dgm_gguf *g = NULL;
    assert_int_equal(dgm_gguf_open(&g, out, NULL), DGM_OK);
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        assert_true(t->type == DGM_TYPE_F32 || t->type == DGM_TYPE_I32);
        assert_null(strstr(t->name, ".scale"));
    }
    dgm_gguf_close(&g);
}

static void refuse(const char *a, const char *b, const char *message)
{
    const char *models[2] = {a, b}, *out = in_folder("none.gguf");
    dgm_error err;
    assert_int_equal(dgm_average(models, 2, out, NULL, NULL, &err), DGM_ERR_ARGUMENT);
    if (!strstr(err.text, message)) fail_msg("%s", err.text);
    assert_int_not_equal(access(out, F_OK), 0);
}

static void refused(void **state)
{
    (void)state;
    refuse(MODEL, MODELS "transformer-pieces.gguf", "they differ in 'dragoman.architecture'");
    refuse(MODELS "rnn-conditional.gguf", MODELS "rnn-bahdanau.gguf", "they differ in '");
    refuse(MODEL, changed(MODEL, "c.gguf", 0, "dec.att.v", "dec.att.x"), "has no weights '");
    refuse(changed(MODEL, "c.gguf", 0, "dec.att.v", "dec.att.x"), MODEL, "has no weights '");
    const char *one = MODEL, *missing[2] = {MODEL, "missing.gguf"};
    dgm_error err;
    const dgm_average_options negative = {.size = sizeof(dgm_average_options),
                                          .weights = (const double[]){1, -1}};
    const dgm_average_options type = {.size = sizeof(dgm_average_options), .type = "i4"};
    assert_int_equal(dgm_average(&one, 1, "x", NULL, NULL, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_average(missing, 2, in_folder("x"), NULL, NULL, &err), DGM_ERR_IO);
    assert_int_equal(dgm_average(missing, 2, in_folder("x"), &negative, NULL, &err),
                     DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_average(missing, 2, in_folder("x"), &type, NULL, &err), DGM_ERR_ARGUMENT);
}

static void memory(void **state)
{
    (void)state;
    const char *models[2] = {MODEL, MODEL}, *out = in_folder("mean.gguf");
    ALLOCATIONS_FAIL(dgm_average(models, 2, out, NULL, NULL, NULL));
}

int main(void)
{
    if (!scratch_open()) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means),
        cmocka_unit_test(integers),
        cmocka_unit_test(refused),
        cmocka_unit_test(memory),
    };
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
