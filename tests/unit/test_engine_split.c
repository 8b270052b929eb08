// SPDX-License-Identifier: MIT
// Lines of several sentences: each is translated by itself, and the results are those of separate
// lines, put together. Everything goes through include/dragoman.
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

#include "dragoman/dragoman.h"
#include "format/gguf.h"
#include "format/modelfile.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"
#define WORDS "tests/data/models/rnn-devlin.gguf"
#define LINE "Good morning.  The house is small!\tGood morning, my house."

static const char *const parts[] = {"Good morning.", "The house is small!", "Good morning, my house."};
static const char *const between[] = {"", "  ", "\t"};

static dgm_settings standard(void)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.beam = 2;
    s.nbest = 2;
    s.max_length = 12;
    s.alignment = DGM_ALIGN_WORDS;
    s.token_scores = 1;
    return s;
}

static dgm_results *translate(const char *model, const dgm_settings *s, const dgm_input *inputs, size_t count)
{
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    dgm_error error;
    if (dgm_open(&t, model, s, &error) != DGM_OK) fail_msg("%s", error.text);
    if (dgm_translate_inputs(t, inputs, count, &r, &error) != DGM_OK) fail_msg("%s", error.text);
    dgm_close(&t);
    return r;
}

static dgm_input input_of(const char *text)
{
    return (dgm_input){.size = sizeof(dgm_input), .text = text, .text_size = strlen(text)};
}

// Parts that a line is translated in.
static unsigned count_parts(const char *model, const dgm_settings *s, dgm_input input)
{
    dgm_results *r = translate(model, s, &input, 1);
    assert_int_equal(r->items[0]->status, DGM_OK);
    const unsigned count = r->items[0]->pieces;
    assert_int_equal((r->items[0]->flags & DGM_LINE_SPLIT) != 0, count > 1);
    dgm_results_free(&r);
    return count;
}

static int words_of(const char *text)
{
    int words = 0;
    for (const char *at = text; *at; at++)
        words += *at > ' ' && (at == text || at[-1] <= ' ');
    return words;
}

static void test_parts_make_the_line(void **state)
{
    (void)state;
    dgm_settings s = standard();
    dgm_input inputs[4] = {input_of(LINE)};
    for (int i = 0; i < 3; i++) inputs[1 + i] = input_of(parts[i]);
    dgm_results *r = translate(MODEL, &s, inputs, 4);
    const dgm_result *line = r->items[0];
    assert_int_equal(line->pieces, 3);
    assert_true(line->flags & DGM_LINE_SPLIT);
    for (size_t k = 0; k < line->count; k++) {
        const dgm_translation *whole = line->translations[k];
        char text[1024] = "";
        size_t tokens = 0, links = 0;
        int source = 0, target = 0;
        float sum = 0;
        for (int i = 0; i < 3; i++) {
            const dgm_translation *part = r->items[1 + i]->translations[k];
            assert_true(part->text_size > 0);
            strcat(strcat(text, between[i]), part->text);
            sum += part->sum;
            for (size_t j = 0; j < part->token_count; j++, tokens++) {
                assert_string_equal(whole->tokens[tokens], part->tokens[j]);
                assert_true(whole->token_scores[tokens] == part->token_scores[j]);
            }
            for (size_t j = 0; j < part->link_count; j++, links++) {
                assert_int_equal(whole->links[links].source, part->links[j].source + source);
                assert_int_equal(whole->links[links].target, part->links[j].target + target);
            }
            source += words_of(parts[i]);
            target += words_of(part->text);
        }
        assert_string_equal(whole->text, text);
        assert_true(whole->sum == sum);
        assert_int_equal(whole->token_count, tokens);
        assert_int_equal(whole->link_count, links);
    }
    dgm_results_free(&r);
}

static void test_settings(void **state)
{
    (void)state;
    static const struct {
        const char *split;
        int raw;
        unsigned parts;
    } ways[] = {{NULL, 0, 3}, {"auto", 0, 3}, {"sentences", 0, 3}, {"long", 0, 1}, {"none", 0, 1}, {"sentences", 1, 1}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        dgm_settings s = standard();
        s.split = ways[i].split;
        s.raw = ways[i].raw;
        assert_int_equal(count_parts(MODEL, &s, input_of(LINE)), ways[i].parts);
        assert_int_equal(count_parts(MODEL, &s, input_of(parts[0])), 1);
    }
    dgm_settings s = standard();
    dgm_translator *t = NULL;
    dgm_error error;
    s.split = "words";
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_ARGUMENT);
}

// What says how the whole translation must look leaves the line whole.
static void test_whole_lines(void **state)
{
    (void)state;
    dgm_settings s = standard();
    dgm_input input = input_of(LINE);
    input.prefix = "ein";
    input.prefix_size = 3;
    assert_int_equal(count_parts(MODEL, &s, input), 1);
    input.prefix_size = 0;
    assert_int_equal(count_parts(MODEL, &s, input), 3);
    input.constraints = "haus";
    input.constraints_size = 4;
    assert_int_equal(count_parts(MODEL, &s, input), 1);
}

// A sentence that is still too long: cut, cropped, or the line's failure.
static void test_long_sentences(void **state)
{
    (void)state;
    static const char text[] = "Good morning. The house is small and the house is small and the house is small. Good.";
    dgm_settings s = standard();
    dgm_input input = input_of(text);
    s.max_source = 16;
    assert_true(count_parts(MODEL, &s, input) > 3);
    s.long_lines = DGM_LONG_CROP;
    dgm_results *r = translate(MODEL, &s, &input, 1);
    assert_int_equal(r->items[0]->pieces, 3);
    assert_true(r->items[0]->flags & DGM_LINE_CROPPED);
    dgm_results_free(&r);
    s.long_lines = DGM_LONG_ERROR;
    r = translate(MODEL, &s, &input, 1);
    assert_int_equal(r->items[0]->status, DGM_ERR_TEXT);
    dgm_results_free(&r);
    s.long_lines = DGM_LONG_SPLIT;
    s.split = "none";
    r = translate(MODEL, &s, &input, 1);
    assert_int_equal(r->items[0]->status, DGM_ERR_TEXT);
    assert_non_null(strstr(r->items[0]->message, "the limit is"));
    dgm_results_free(&r);
}

static void test_models(void **state)
{
    (void)state;
    dgm_settings s = standard();
    s.alignment = DGM_ALIGN_NONE;
    assert_int_equal(count_parts(WORDS, &s, input_of("a . B c . D")), 1); // text that is tokenised already
    s.split = "sentences";
    assert_int_equal(count_parts(WORDS, &s, input_of("a . B c . D")), 3);
    char path[] = "/tmp/dgm-split-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    dgm_gguf *g = NULL;
    dgm_gguf_writer *w = NULL;
    dgm_error error;
    assert_int_equal(dgm_modelfile_open(&g, MODEL, &error), DGM_OK);
    assert_int_equal(dgm_gguf_writer_open(&w, &error), DGM_OK);
    dgm_gguf_set_copies(w, g);
    dgm_gguf_set_bool(w, "dragoman.decode.paragraphs", true);
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        dgm_gguf_add_tensor(w, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape, t->data);
    }
    assert_int_equal(dgm_gguf_write(w, path, &error), DGM_OK);
    dgm_gguf_writer_close(&w);
    dgm_gguf_close(&g);
    s.split = NULL;
    assert_int_equal(count_parts(path, &s, input_of(LINE)), 1);
    s.split = "sentences";
    assert_int_equal(count_parts(path, &s, input_of(LINE)), 3);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_make_the_line), cmocka_unit_test(test_settings),
        cmocka_unit_test(test_whole_lines),         cmocka_unit_test(test_long_sentences),
        cmocka_unit_test(test_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
