// SPDX-License-Identifier: MIT
// Switches of recurrent models through the public API: exact ones leave whole n-best lists as they
// are, scores included; look-up tables nearly. And unknown words, replaced by the source's or the
// dictionary's.
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

#include "dragoman/dragoman.h"
#include "dragoman/tools.h"
#include "format/gguf.h"

#define FOLDER "tests/data/models/"

enum { LINES = 12, NBEST = 3 };

static const char *const models[] = {"rnn-devlin-s2",         "rnn-devlin-s3",
                                     "rnn-devlin-s5",         "rnn-devlin-s7",
                                     "rnn-conditional-upper", "rnn-bahdanau-upper"};

// Lines of words that the model knows, of different lengths.
static void make_lines(const char *path, char text[LINES][256])
{
    dgm_gguf *g = NULL;
    dgm_gguf_strings words;
    const char *list[64];
    size_t sizes[64], n = 0;
    assert_int_equal(dgm_gguf_open(&g, path, NULL), DGM_OK);
    assert_int_equal(
        dgm_gguf_get_strings(g, "dragoman.source.vocab.words", DGM_REQUIRED, &words, NULL), DGM_OK);
    for (dgm_gguf_text w; n < 64 && dgm_gguf_strings_next(&words, &w); n++) {
        list[n] = w.data;
        sizes[n] = w.size;
    }
    uint32_t seed = 7;
    for (int i = 0; i < LINES; i++) {
        size_t used = 0;
        for (int k = 0; k < 1 + i; k++) {
            seed = seed * 1664525u + 1013904223u;
            size_t w = 2 + (seed >> 16) % (n - 2);
            used += (size_t)snprintf(text[i] + used, 256 - used, "%s%.*s", k ? " " : "",
                                     (int)sizes[w], list[w]);
        }
    }
    dgm_gguf_close(&g);
}

typedef struct outcome {
    char *text;
    dgm_optimisations counts;
} outcome;

// N-best lists with exact scores, and the counts behind them.
static outcome decode(const char *path, const dgm_settings *s, char lines[LINES][256])
{
    dgm_translator *t = NULL;
    dgm_error error = {{0}};
    dgm_results *r = NULL;
    outcome out = {0};
    size_t size = 0;
    const char *texts[LINES];
    if (dgm_open(&t, path, s, &error) != DGM_OK) fail_msg("%s: %s", path, error.text);
    for (int i = 0; i < LINES; i++) texts[i] = lines[i];
    assert_int_equal(dgm_translate(t, texts, LINES, &r, &error), DGM_OK);
    FILE *f = open_memstream(&out.text, &size);
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->items[i]->count; k++)
            fprintf(f, "%zu %s %a\n", i, r->items[i]->translations[k]->text,
                    (double)r->items[i]->translations[k]->sum);
    fclose(f);
    dgm_optimisations_count(t, &out.counts);
    dgm_results_free(&r);
    dgm_close(&t);
    return out;
}

static dgm_settings settings(const char *precision)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.precision = precision;
    s.beam = 6;
    s.nbest = NBEST;
    s.finish = "margin";
    s.max_length = 20;
    return s;
}

static void check_model(const char *name, const char *precision)
{
    char path[128], lines[LINES][256];
    snprintf(path, sizeof path, FOLDER "%s.gguf", name);
    make_lines(path, lines);
    dgm_settings s = settings(precision);
    s.separate_states = 1;
    s.batch = 1;
    outcome plain = decode(path, &s, lines);
    assert_int_equal(plain.counts.merging, 0);
    assert_int_equal(plain.counts.state_rows, plain.counts.state_products);
    assert_int_equal(plain.counts.source_found + plain.counts.target_found, 0);
    assert_true(plain.counts.early_stops <= LINES && plain.counts.activation_values > 0);
    for (int k = 0; k < 3; k++) {
        s = settings(precision);
        s.precompute = k == 0 ? 0 : k == 1 ? 11 : 100000;
        s.batch = k == 0 ? 1 : 5;
        outcome fast = decode(path, &s, lines);
        if (strcmp(plain.text, fast.text) != 0)
            fail_msg("%s, %s, %d words: outputs differ", name, precision, (int)s.precompute);
        assert_true(fast.counts.distinct < fast.counts.rows);
        if (k == 0) assert_int_equal(plain.counts.distinct, fast.counts.distinct);
        assert_true(fast.counts.state_products < fast.counts.state_rows);
        assert_true((fast.counts.table_bytes > 0) == (k > 0));
        assert_true(k == 0 || fast.counts.source_found > 0);
        free(fast.text);
    }
    free(plain.text);
}

static void test_exact_steps(void **state)
{
    (void)state;
    const char *const precisions[] = {"f32", "i16", "i8", "bf16"};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        for (size_t p = 0; p < 4; p++) check_model(models[i], precisions[p]);
}

// Tables and the C library change values a little: greedy outputs of lively models stay the same.
static void test_activations(void **state)
{
    (void)state;
    const char *const ways[] = {"table", "libm"};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char path[128], lines[LINES][256];
        snprintf(path, sizeof path, FOLDER "%s.gguf", models[i]);
        make_lines(path, lines);
        dgm_settings s = settings("f32");
        s.beam = s.nbest = 1;
        outcome plain = decode(path, &s, lines);
        assert_string_equal(plain.counts.activations, "polynomial");
        for (int k = 0; k < 2; k++) {
            s.activations = ways[k];
            outcome other = decode(path, &s, lines);
            assert_string_equal(other.counts.activations, ways[k]);
            assert_string_not_equal(plain.text, other.text); // scores differ in their last bits
            float a = 0, b = 0;
            char word[2][300];
            assert_int_equal(sscanf(plain.text, "%*d %299[^\n]", word[0]), 1);
            assert_int_equal(sscanf(other.text, "%*d %299[^\n]", word[1]), 1);
            a = strtof(strrchr(word[0], ' '), NULL);
            b = strtof(strrchr(word[1], ' '), NULL);
            assert_true(fabsf(a - b) < 1e-2f);
            free(other.text);
        }
        free(plain.text);
    }
}

// An ensemble of a model with itself says what the model says; its counts are those of both.
static void test_ensemble(void **state)
{
    (void)state;
    char lines[LINES][256];
    const char *path = FOLDER "rnn-devlin-s3.gguf", *texts[LINES];
    make_lines(path, lines);
    for (int i = 0; i < LINES; i++) texts[i] = lines[i];
    dgm_settings s = settings("f32");
    s.precompute = 20;
    dgm_member twice[2] = {{path, 0}, {path, 0}};
    dgm_results *a = NULL, *b = NULL;
    dgm_optimisations n[2];
    for (int k = 0; k < 2; k++) {
        dgm_translator *t = NULL;
        assert_int_equal(dgm_open_ensemble(&t, twice, (size_t)k + 1, &s, NULL), DGM_OK);
        assert_int_equal(dgm_translate(t, texts, LINES, k ? &b : &a, NULL), DGM_OK);
        dgm_optimisations_count(t, &n[k]);
        dgm_close(&t);
    }
    for (size_t i = 0; i < LINES; i++) {
        assert_string_equal(dgm_result_text(a->items[i]), dgm_result_text(b->items[i]));
        float x = a->items[i]->translations[0]->sum, y = b->items[i]->translations[0]->sum;
        assert_true(fabsf(x - y) < 1e-4f * fabsf(x));
    }
    assert_int_equal(n[1].table_bytes, 2 * n[0].table_bytes);
    assert_int_equal(n[1].rows, 2 * n[0].rows);
    assert_int_equal(n[1].target_found, 2 * n[0].target_found);
    dgm_results_free(&a);
    dgm_results_free(&b);
}

static void test_refused(void **state)
{
    (void)state;
    dgm_translator *t = NULL;
    dgm_error error = {{0}};
    dgm_settings s = settings("i8");
    s.activations = "magic";
    assert_int_equal(dgm_open(&t, FOLDER "rnn-devlin-s2.gguf", &s, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "magic"));
    s = settings("i8");
    s.precompute = -4;
    assert_int_equal(dgm_open(&t, FOLDER "rnn-devlin-s2.gguf", &s, &error), DGM_ERR_ARGUMENT);
    s.precompute = 10;
    assert_int_equal(dgm_open(&t, FOLDER "transformer-oddheads.gguf", &s, &error),
                     DGM_ERR_UNSUPPORTED);
    s = settings("i8");
    s.unknown = DGM_UNKNOWN_REPLACE;
    assert_int_equal(dgm_open(&t, FOLDER "transformer-pieces.gguf", &s, &error),
                     DGM_ERR_UNSUPPORTED);
    s.unknown = 9;
    assert_int_equal(dgm_open(&t, FOLDER "rnn-devlin-s2.gguf", &s, &error), DGM_ERR_ARGUMENT);
    s = settings("i8");
    s.dictionary = "no such file";
    assert_int_equal(dgm_open(&t, FOLDER "rnn-devlin-s2.gguf", &s, &error), DGM_ERR_IO);
    assert_null(t);
}

// ---- unknown words ----------------------------------------------------------------------------

// A copy of a model whose output is all unknown words, with a tokeniser (NULL: its own).
static void write_unsure(const char *from, const char *to, const char *tokenizer)
{
    dgm_gguf *g = NULL;
    dgm_gguf_writer *w = NULL;
    float *bias = NULL;
    assert_int_equal(dgm_gguf_open(&g, from, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    dgm_gguf_set_copies(w, g);
    if (tokenizer) {
        dgm_gguf_set_string(w, "dragoman.source.vocab.tokenizer", tokenizer);
        dgm_gguf_set_string(w, "dragoman.target.vocab.tokenizer", tokenizer);
    }
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        const void *data = t->data;
        if (strcmp(t->name, "out.bias") == 0) {
            bias = calloc((size_t)t->shape[0], sizeof *bias);
            memcpy(bias, t->data, (size_t)t->shape[0] * sizeof *bias);
            bias[1] += 1000; // <unk>
            data = bias;
        }
        dgm_gguf_add_tensor(w, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape, data);
    }
    assert_non_null(bias);
    assert_int_equal(dgm_gguf_write(w, to, NULL), DGM_OK);
    dgm_gguf_writer_close(&w);
    dgm_gguf_close(&g);
    free(bias);
}

static char *translate(const char *model, const dgm_settings *s, const char *line)
{
    dgm_translator *t = NULL;
    dgm_error error = {{0}};
    dgm_results *r = NULL;
    if (dgm_open(&t, model, s, &error) != DGM_OK) fail_msg("%s", error.text);
    assert_int_equal(dgm_translate(t, &line, 1, &r, &error), DGM_OK);
    char *text = strdup(dgm_result_text(r->items[0]));
    dgm_results_free(&r);
    dgm_close(&t);
    return text;
}

// Every word of the text is one of the list.
static void check_words(const char *text, const char *const *list)
{
    char copy[512], *rest = copy;
    snprintf(copy, sizeof copy, "%s", text);
    int count = 0;
    for (char *word; (word = strsep(&rest, " ")) != NULL; count++) {
        int found = 0;
        for (int i = 0; list[i]; i++) found |= strcmp(list[i], word) == 0;
        if (!found) fail_msg("'%s' in '%s'", word, text);
    }
    assert_true(count > 1);
}

static void test_unknown_words(void **state)
{
    (void)state;
    char model[] = "/tmp/dragoman-unsure-XXXXXX", table[] = "/tmp/dragoman-table-XXXXXX";
    int fd = mkstemp(model);
    assert_true(fd >= 0);
    close(fd);
    fd = mkstemp(table);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    fputs("Birne Pear 0.4\nQuitte Pear 0.3\nNULL Pear 0.5\nfig feige 0.9\nFeige fig 0.8\n", f);
    fclose(f);
    write_unsure(FOLDER "rnn-devlin-s2.gguf", model, NULL);
    const char *line = "Pear FIG plum Pear";

    dgm_settings s = settings("i8");
    s.nbest = 1;
    s.max_length = 5;
    s.allow_unk = 1;
    s.unknown = DGM_UNKNOWN_KEEP;
    char *text = translate(model, &s, line);
    check_words(text, (const char *const[]){"<unk>", NULL});
    free(text);
    s.unknown = DGM_UNKNOWN_MODEL; // words on both sides that may be unknown: replaced
    text = translate(model, &s, line);
    check_words(text, (const char *const[]){"Pear", "FIG", "plum", NULL});
    free(text);
    s.dictionary = table;
    text = translate(model, &s, line);
    check_words(text, (const char *const[]){"Birne", "Feige", "plum", NULL});
    free(text);
    s.unknown = DGM_UNKNOWN_COPY;
    s.alignment = DGM_ALIGN_WORDS; // both at once
    text = translate(model, &s, line);
    check_words(text, (const char *const[]){"Pear", "FIG", "plum", NULL});
    free(text);
    s.allow_unk = 0; // what cannot be produced is not replaced
    text = translate(model, &s, line);
    assert_null(strstr(text, "Pear"));
    free(text);
    remove(model);
    remove(table);
}

// Tokenised input, joined output: what is written is what attention and the dictionary say, without
// the spaces that German does not write.
static void check_joined(dgm_translator *t, const char *line, const char *const *tokens,
                         int *punctuation)
{
    static const char *const table[][2] = {{"Pear", "Birne"}, {"FIG", "Feige"}};
    dgm_results *r = NULL;
    dgm_error error = {{0}};
    char expected[512] = "", text[512] = "";
    assert_int_equal(dgm_translate(t, &line, 1, &r, &error), DGM_OK);
    const dgm_translation *best = r->items[0]->translations[0];
    assert_true(best->link_count > 0);
    for (size_t i = 0; i < best->link_count; i++) {
        const char *word = tokens[best->links[i].source];
        assert_int_equal(best->links[i].target, i);
        *punctuation += strchr(",().", word[0]) != NULL;
        for (int k = 0; k < 2; k++)
            if (strcmp(table[k][0], word) == 0) word = table[k][1];
        strcat(expected, word);
    }
    for (const char *p = best->text; *p; p++)
        if (*p != ' ') strncat(text, p, 1);
    assert_string_equal(text, expected);
    for (const char *const *gap = (const char *const[]){" ,", " .", "( ", " )", NULL}; *gap; gap++)
        if (strstr(best->text, *gap)) fail_msg("'%s'", best->text);
    dgm_results_free(&r);
}

static void test_word_text(void **state)
{
    (void)state;
    static const char *const lines[] = {"Pear, plum (FIG).", "(Pear) FIG, plum.", "plum, FIG (Pear).",
                                        "FIG (plum), Pear."};
    static const char *const tokens[][7] = {{"Pear", ",", "plum", "(", "FIG", ")", "."},
                                            {"(", "Pear", ")", "FIG", ",", "plum", "."},
                                            {"plum", ",", "FIG", "(", "Pear", ")", "."},
                                            {"FIG", "(", "plum", ")", ",", "Pear", "."}};
    char model[] = "/tmp/dragoman-unsure-XXXXXX", table[] = "/tmp/dragoman-table-XXXXXX";
    int fd = mkstemp(model), punctuation = 0;
    assert_true(fd >= 0);
    close(fd);
    fd = mkstemp(table);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    fputs("Birne Pear 0.4\nQuitte Pear 0.3\nFeige fig 0.8\n", f);
    fclose(f);
    write_unsure(FOLDER "rnn-devlin-s3.gguf", model, "moses");
    dgm_settings s = settings("i16");
    s.nbest = 1;
    s.max_length = 6;
    s.allow_unk = 1;
    s.dictionary = table;
    s.alignment = DGM_ALIGN_TOKENS;
    dgm_translator *t = NULL;
    dgm_error error = {{0}};
    if (dgm_open(&t, model, &s, &error) != DGM_OK) fail_msg("%s", error.text);
    for (int i = 0; i < 4; i++) check_joined(t, lines[i], tokens[i], &punctuation);
    dgm_optimisations n;
    dgm_optimisations_count(t, &n);
    assert_true(n.unknown_words >= 8 && n.unknown_translated <= n.unknown_words);
    assert_true(punctuation > 0);
    dgm_close(&t);
    remove(model);
    remove(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_steps),   cmocka_unit_test(test_activations),
        cmocka_unit_test(test_ensemble),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_unknown_words), cmocka_unit_test(test_word_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
