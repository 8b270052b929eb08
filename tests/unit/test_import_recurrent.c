// SPDX-License-Identifier: MIT
// Models of Nematus and dl4mt against what Nematus' formulas translate with them: tests/data/nematus
// (tests/oracle/make_nematus.py). Damaged and odd files end in a sentence.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dragoman/tools.h"
#include "engine.h"
#include "failures.h"
#include "scratch.h"

#define NEMATUS "tests/data/nematus/"

enum { LINES = 200 };

// ---- translations to compare with ---------------------------------------------------------------

static char **read_lines(const char *path, int *count)
{
    char *text = get(path), **lines = calloc(LINES, sizeof *lines);
    assert_non_null(lines);
    *count = 0;
    for (char *at = strtok(text, "\n"); at && *count < LINES; at = strtok(NULL, "\n"))
        lines[(*count)++] = at;
    return lines;
}

static void free_lines(char **lines)
{
    free(lines[0]);
    free(lines);
}

static const char *import_as(const char *format, const char *path, const char *vocabs)
{
    dgm_import_options o;
    dgm_error err;
    dgm_import_default(&o);
    o.vocabs = vocabs;
    const char *out = in_folder("model.gguf");
    if (dgm_import(format, path, out, &o, &err) != DGM_OK) fail_msg("%s: %s", path, err.text);
    return out;
}

static dgm_translator *open_model(const char *path, int beam, float length, float word)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.raw = 1;
    s.precision = "f32";
    s.beam = beam;
    s.nbest = beam;
    s.finish = "shrink";
    s.length_penalty = length;
    s.word_penalty = word;
    return open_with(&s, path);
}

// ---- Nematus ------------------------------------------------------------------------------------

// Rows of source, score, output.
static void compare_nematus(const char *name, const char *model)
{
    char path[96];
    int count;
    snprintf(path, sizeof path, NEMATUS "%s.tsv", name);
    char **rows = read_lines(path, &count);
    dgm_translator *t = open_model(model, 1, 0.0f, 0.0f);
    assert_true(count >= 12);
    for (int i = 0; i < count; i++) {
        const char *source = strtok(rows[i], "\t"), *score = strtok(NULL, "\t");
        const char *text = strtok(NULL, "\t");
        dgm_results *r = translate_one(t, source);
        assert_string_equal(dgm_result_text(r->items[0]), text);
        assert_true(fabs((double)r->items[0]->translations[0]->score - atof(score)) < 1e-3);
        dgm_results_free(&r);
    }
    dgm_close(&t);
    free_lines(rows);
}

static void test_nematus(void **state)
{
    (void)state;
    compare_nematus("theano", import_as("nematus", NEMATUS "theano.npz", NULL));
    compare_nematus("tf", import_as("nematus", NEMATUS "tf.npz", NULL));
    compare_nematus("dl4mt", import_as("nematus", NEMATUS "dl4mt.npz", NULL));
}

static const char *copy_file(const char *from, const char *to)
{
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, from, NULL), DGM_OK);
    const char *path = put(to, f.data, f.size);
    dgm_mapfile_close(&f);
    return path;
}

// A file of dl4mt alone, and one dictionary for both sides.
static void test_without_settings(void **state)
{
    (void)state;
    const char *alone = copy_file(NEMATUS "dl4mt.npz", "alone.npz");
    compare_nematus("dl4mt", import_as("nematus", alone, NEMATUS "dl4mt.vocab.json"));
    compare_nematus("dl4mt", import_as("nematus", alone,
                                       NEMATUS "dl4mt.vocab.json," NEMATUS "dl4mt.vocab.json"));
}

// The model under its usual name in a folder.
static void test_folder(void **state)
{
    (void)state;
    copy_file(NEMATUS "tf.npz", "model.npz");
    copy_file(NEMATUS "tf.npz.json", "model.npz.json");
    copy_file(NEMATUS "tf.vocab.json", "tf.vocab.json");
    compare_nematus("tf", import_as("nematus", folder, NULL));
}

// ---- what is refused ----------------------------------------------------------------------------

static void refused(const char *path, const char *vocabs, const char *text)
{
    dgm_import_options o;
    dgm_error err = {""};
    dgm_import_default(&o);
    o.vocabs = vocabs;
    assert_int_not_equal(dgm_import("nematus", path, in_folder("no.gguf"), &o, &err), DGM_OK);
    if (!strstr(err.text, text)) fail_msg("'%s' does not say '%s'", err.text, text);
    if (!strstr(err.text, folder)) fail_msg("'%s' does not name its file", err.text);
}

// Settings that the weights contradict, and what this program has not.
static void test_settings(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"\"enc_depth\": 2", "rnn_enc_depth is 2, but the weights are those of 3"},
        {"\"dec_base_recurrence_transition_depth\": 2", "base_transition_depth is 2"},
        {"\"layer_normalisation\": false", "rnn_layer_normalisation is false"},
        {"\"dec_deep_context\": true", "rnn_dec_deep_context is true"},
        {"\"dim\": 512", "states of 512"},
        {"\"factors\": 2", "models with factors cannot be imported"},
        {"\"model_type\": \"transformer\"", "model_type is 'transformer'"},
        {"\"lexical_model\": true", "a lexical model"},
        {"\"softmax_mixture_size\": 3", "softmax_mixture_size is 3"},
        {"\"output_hidden_activation\": \"prelu\"", "'prelu'; tanh and linear"},
        {"\"layer_normalisation_type\": \"rmsnorm\"", "'rmsnorm'; only layernorm"},
        {"\"dim_word\": \"seven\"", "dim_word"},
    };
    char model[128]; // in_folder forgets
    snprintf(model, sizeof model, "%s", copy_file(NEMATUS "theano.npz", "odd.npz"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "{%s}", cases[i][0]);
        put_text("odd.npz.json", text);
        refused(model, NEMATUS "theano.vocab.json", cases[i][1]);
    }
    put_text("odd.npz.json", "{\"dictionaries\": [\"one.json\"]}");
    refused(model, NULL, "dictionaries must be a list of two files");
    put_text("odd.npz.json", "{\"dictionaries\": [\"/a/none.json\", \"/a/none.json\"]}");
    refused(model, NULL, "dictionary '/a/none.json' is not there");
    put_text("odd.npz.json", "[1]");
    refused(model, NULL, "has no settings");
    put_text("odd.npz.json", "{");
    refused(model, NULL, "odd.npz.json");
    refused(copy_file(NEMATUS "theano.npz", "bare.npz"), NULL, "has no settings beside it");
}

static void test_dictionaries(void **state)
{
    (void)state;
    const char *model = copy_file(NEMATUS "theano.npz", "words.npz");
    refused(model, put_text("v.json", "{\"a\": 3, \"b\": 3}"), "words 'a' and 'b' have one number");
    refused(model, put_text("v.json", "{\"a\": \"3\"}"), "word 'a' has no number");
    refused(model, put_text("v.json", "[]"), "not a list of words");
}

// ---- damage -------------------------------------------------------------------------------------

// Bytes changed or cut off: an error that names the file, or, where nobody can tell, a model.
static void test_damage(void **state)
{
    (void)state;
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, NEMATUS "dl4mt.npz", NULL), DGM_OK);
    uint8_t *bytes = malloc(f.size);
    uint32_t random = 7;
    int failed = 0;
    dgm_import_options o;
    dgm_import_default(&o);
    o.vocabs = NEMATUS "dl4mt.vocab.json";
    for (int i = 0; i < 200; i++) {
        dgm_error err = {""};
        size_t size = f.size;
        memcpy(bytes, f.data, f.size);
        for (int k = 0; k < 1 + i % 4; k++) {
            random = random * 1664525u + 1013904223u;
            bytes[random % f.size] ^= (uint8_t)(1u << (random >> 28 & 7));
        }
        if (i % 5 == 0) size = random % f.size;
        const char *path = put("damaged.npz", bytes, size);
        if (dgm_import("nematus", path, in_folder("damaged.gguf"), &o, &err) == DGM_OK) continue;
        if (!strstr(err.text, "damaged.npz")) fail_msg("'%s' does not name its file", err.text);
        failed++;
    }
    assert_in_range(failed, 150, 200);
    free(bytes);
    dgm_mapfile_close(&f);
}

static void test_memory(void **state)
{
    (void)state;
    dgm_import_options o;
    dgm_error err;
    dgm_import_default(&o);
    ALLOCATIONS_FAIL(
        dgm_import("nematus", NEMATUS "dl4mt.npz", in_folder("memory.gguf"), &o, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nematus),      cmocka_unit_test(test_without_settings),
        cmocka_unit_test(test_folder),       cmocka_unit_test(test_settings),
        cmocka_unit_test(test_dictionaries), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_memory),
    };
    if (!scratch_open()) return 1;
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
