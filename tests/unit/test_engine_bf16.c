// SPDX-License-Identifier: MIT
// Products in bf16 on the CPU: every kind of model translates the same with scores in any batch, on any number of
// threads; levels that widen agree bit by bit; a file of type bf16 gives what its numbers give; a profile
// counts its bytes.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dragoman/tools.h"

#define FOLDER "tests/data/models/"
enum { TEXTS = 96, WORDS = 7, SIZE = 1 << 16 };

static char texts[TEXTS][160];
static const char *lines[TEXTS];

static void make_texts(void)
{
    static const char *const words[] = {"the", "house", "is", "old", "a", "small", "Hello", "b", "c", "morning"};
    unsigned seed = 7;
    for (int i = 0; i < TEXTS; i++) {
        lines[i] = texts[i];
        for (unsigned n = 1 + (seed = seed * 1664525u + 1013904223u) / 65536 % WORDS; n > 0; n--) {
            seed = seed * 1664525u + 1013904223u;
            strcat(strcat(texts[i], words[seed / 65536 % 10]), n > 1 ? " " : "");
        }
    }
}

// Translations and their scores, in hexadecimal: nothing is rounded.
static char *translate(const char *model, const char *precision, const char *device, int batch, int threads)
{
    dgm_settings s;
    dgm_error err = {{0}};
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    char *out = calloc(1, SIZE);
    size_t used = 0;
    dgm_settings_default(&s);
    s.precision = precision;
    s.device = device;
    s.batch = batch;
    s.threads = threads;
    s.max_length = 12;
    if (dgm_open(&t, model, &s, &err) != DGM_OK) fail_msg("%s: %s", model, err.text);
    assert_string_equal(dgm_describe(t)->precision, precision);
    if (dgm_translate(t, lines, TEXTS, &r, &err) != DGM_OK) fail_msg("%s: %s", model, err.text);
    for (size_t i = 0; i < r->count; i++) {
        const dgm_translation *best = r->items[i]->translations[0];
        used += (size_t)snprintf(out + used, SIZE - used, "%s %a\n", best->text, (double)best->score);
        assert_true(used < SIZE);
    }
    dgm_results_free(&r);
    dgm_close(&t);
    return out;
}

static const char *const models[] = {
    FOLDER "transformer-pieces.gguf",           FOLDER "transformer-i8.gguf",      FOLDER "transformer-f16.gguf",
    FOLDER "transformer-post-marian-ssru.gguf", FOLDER "transformer-moe-ssru.gguf", FOLDER "transformer-aan.gguf",
    FOLDER "rnn-bahdanau-pieces.gguf",          FOLDER "rnn-conditional-lstm.gguf", FOLDER "rnn-devlin-s5.gguf",
    FOLDER "double-pieces.gguf",                FOLDER "cmlm-pieces.gguf",          FOLDER "transformer-t5.gguf"};
enum { MODELS = sizeof models / sizeof models[0] };

static void test_batches(void **state)
{
    (void)state;
    static const int batches[] = {1, 7, 64};
    for (int m = 0; m < MODELS; m++) {
        char *first = NULL;
        for (int b = 0; b < 3; b++)
            for (int threads = 1; threads <= 2; threads++) {
                char *said = translate(models[m], "bf16", "cpu", batches[b], threads);
                if (first && strcmp(first, said) != 0)
                    fail_msg("%s: batch %d, %d threads", models[m], batches[b], threads);
                if (first)
                    free(said);
                else
                    first = said;
            }
        free(first);
    }
}

static void test_levels(void **state)
{
    (void)state;
    static const char *const levels[] = {"cpu:avx2", "cpu:avx512", "cpu:neon"};
    for (int m = 0; m < MODELS; m++) {
        char *first = translate(models[m], "bf16", "cpu:c", 7, 1);
        for (int l = 0; l < 3; l++) {
            dgm_settings s;
            dgm_translator *t = NULL;
            dgm_settings_default(&s);
            s.device = levels[l];
            if (dgm_open(&t, models[m], &s, NULL) != DGM_OK) continue; // not of this CPU
            dgm_close(&t);
            char *said = translate(models[m], "bf16", levels[l], 7, 1);
            if (strcmp(first, said) != 0) fail_msg("%s on %s", models[m], levels[l]);
            free(said);
        }
        free(first);
    }
}

// Rounded when it is written or when it is loaded: the same numbers. Embeddings are rounded in the file alone, so a
// model is converted first and compared with itself, back in f32.
static void test_files(void **state)
{
    (void)state;
    char half[] = "/tmp/dgm-bf16-XXXXXX", whole[] = "/tmp/dgm-f32-XXXXXX";
    close(mkstemp(half));
    close(mkstemp(whole));
    for (int m = 0; m < MODELS; m++) {
        dgm_error err = {{0}};
        dgm_quantize_options o;
        dgm_quantize_default(&o);
        o.type = "bf16";
        if (dgm_quantize(models[m], half, &o, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
        o.type = "f32";
        if (dgm_quantize(half, whole, &o, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
        char *a = translate(half, "bf16", "cpu", 7, 1), *b = translate(whole, "bf16", "cpu", 7, 1);
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    unlink(half);
    unlink(whole);
}

// A product reads rows of two bytes an input, and reads and writes columns of four.
static void test_profile(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_error err = {{0}};
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    dgm_profile *p = NULL;
    int products = 0;
    dgm_settings_default(&s);
    s.precision = "bf16";
    s.max_length = 12;
    if (dgm_open(&t, models[0], &s, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_profile_start(t, &err), DGM_OK);
    if (dgm_translate(t, lines, TEXTS, &r, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_profile_read(t, &p, &err), DGM_OK);
    for (size_t i = 0; i < p->count; i++) {
        const dgm_profile_row *row = p->rows[i];
        if (strcmp(row->operation, "linear") != 0 || strcmp(row->precision, "bf16") != 0) continue;
        const uint64_t inputs = (uint64_t)row->inputs;
        assert_int_equal(row->other_bytes, 2 * row->rows * inputs + 8 * row->multiply_adds / inputs);
        products++;
    }
    assert_true(products > 3);
    dgm_profile_free(&p);
    dgm_results_free(&r);
    dgm_close(&t);
}

int main(void)
{
    make_texts();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
