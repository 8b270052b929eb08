// SPDX-License-Identifier: MIT
// Programs that were compiled against smaller or larger structs than the library's: what they have
// counts, what they lack keeps its default, what the library does not know must be zero.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dragoman/dragoman.h"
#include "dragoman/tools.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"
enum { POISON = 0xa5 };

// The beginning of dgm_settings, as a program of an older version would know it. What lies behind it
// belongs to somebody else.
typedef struct old_settings {
    size_t size;
    const char *source, *target;
    int32_t direction_later, max_source;
    unsigned char behind[sizeof(dgm_settings)];
} old_settings;

typedef struct new_settings {
    dgm_settings known;
    int32_t more[3];
} new_settings;

typedef struct old_input {
    size_t size;
    const char *text;
    size_t text_size;
} old_input;

typedef struct new_input {
    dgm_input known;
    const void *more;
} new_input;

typedef struct old_counters {
    size_t size;
    uint64_t lines, sentences;
    unsigned char behind[sizeof(dgm_counters)];
} old_counters;

static const char *const texts[] = {"Good morning.", "The house is small."};

static bool poisoned(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != POISON) return false;
    return true;
}

static void expect_same(dgm_results *got, dgm_results *want)
{
    assert_int_equal(got->count, want->count);
    for (size_t i = 0; i < want->count; i++)
        assert_string_equal(dgm_result_text(got->items[i]), dgm_result_text(want->items[i]));
}

static dgm_translator *open_with(const void *settings)
{
    dgm_translator *t = NULL;
    dgm_error error;
    if (dgm_open(&t, MODEL, settings, &error) != DGM_OK) fail_msg("%s", error.text);
    return t;
}

static void refused(const void *settings, const char *words)
{
    dgm_translator *t = NULL;
    dgm_error error;
    assert_int_equal(dgm_open(&t, MODEL, settings, &error), DGM_ERR_ARGUMENT);
    assert_null(t);
    if (!strstr(error.text, words)) fail_msg("'%s' does not say '%s'", error.text, words);
}

static void older_settings(void **state)
{
    (void)state;
    assert_int_equal(offsetof(old_settings, max_source), offsetof(dgm_settings, max_source));
    const size_t size = offsetof(old_settings, behind);
    old_settings s;
    memset(&s, POISON, sizeof s);
    dgm_settings_init((dgm_settings *)(void *)&s, size);
    assert_int_equal(s.size, size);
    assert_null(s.source);
    assert_true(poisoned(s.behind, sizeof s.behind));

    dgm_results *want = NULL, *got = NULL;
    dgm_translator *t = open_with(NULL);
    assert_int_equal(dgm_translate(t, texts, 2, &want, NULL), DGM_OK);
    dgm_close(&t);
    t = open_with(&s); // with the defaults of all that it lacks
    assert_int_equal(dgm_translate(t, texts, 2, &got, NULL), DGM_OK);
    expect_same(got, want);
    dgm_results_free(&got);
    dgm_results_free(&want);
    dgm_close(&t);
    s.max_source = 32; // and with what it has
    t = open_with(&s);
    assert_int_equal(dgm_describe(t)->max_source, 32);
    dgm_close(&t);
}

static void newer_settings(void **state)
{
    (void)state;
    new_settings s;
    memset(&s, POISON, sizeof s);
    dgm_settings_init(&s.known, sizeof s);
    assert_int_equal(s.known.size, sizeof s);
    for (int i = 0; i < 3; i++) assert_int_equal(s.more[i], 0);
    s.known.beam = 3;
    dgm_translator *t = open_with(&s);
    assert_int_equal(dgm_describe(t)->beam, 3);
    dgm_close(&t);
    s.more[2] = 1;
    refused(&s, "dgm_settings has a field set that this version of the library does not know");
}

static void unfilled(void **state)
{
    (void)state;
    dgm_settings s = {.beam = 2};
    refused(&s, "dgm_settings.size is 0: fill the struct with dgm_settings_default");
    s.size = (size_t)-1;
    refused(&s, "dgm_settings_default");
    s.size = 3;
    refused(&s, "dgm_settings_default");

    dgm_translator *t = open_with(NULL);
    dgm_results *r = NULL;
    dgm_error error;
    dgm_input in[2] = {{.text = texts[0], .text_size = strlen(texts[0])}};
    assert_int_equal(dgm_translate_inputs(t, in, 1, &r, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "dgm_input_default"));
    dgm_input_default(&in[0]);
    in[0].text = texts[0];
    assert_int_equal(dgm_translate_inputs(t, in, 2, &r, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "line 2"));
    const dgm_evidence none = {0};
    in[0].evidence = &none;
    assert_int_equal(dgm_translate_inputs(t, in, 1, &r, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "dgm_evidence_default"));
    dgm_close(&t);
}

// The elements of an array lie as far apart as the program that made it says.
static void other_inputs(void **state)
{
    (void)state;
    dgm_translator *t = open_with(NULL);
    dgm_results *want = NULL, *got = NULL;
    dgm_error error;
    assert_int_equal(dgm_translate(t, texts, 2, &want, NULL), DGM_OK);

    old_input small[2];
    new_input large[2];
    for (int i = 0; i < 2; i++) {
        small[i] = (old_input){sizeof small[i], texts[i], strlen(texts[i])};
        dgm_input_init(&large[i].known, sizeof large[i]);
        large[i].known.text = texts[i];
        large[i].known.text_size = strlen(texts[i]);
    }
    const dgm_input *first = (const dgm_input *)(const void *)small;
    assert_int_equal(dgm_translate_inputs(t, first, 2, &got, NULL), DGM_OK);
    expect_same(got, want);
    dgm_results_free(&got);
    assert_int_equal(dgm_translate_inputs(t, &large[0].known, 2, &got, NULL), DGM_OK);
    expect_same(got, want);
    dgm_results_free(&got);
    large[1].more = texts;
    assert_int_equal(dgm_translate_inputs(t, &large[0].known, 2, &got, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "dgm_input"));
    dgm_results_free(&want);
    dgm_close(&t);
}

static void what_is_filled(void **state)
{
    (void)state;
    dgm_translator *t = open_with(NULL);
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate(t, texts, 2, &r, NULL), DGM_OK);
    assert_int_equal(r->size, sizeof *r);
    assert_int_equal(r->items[0]->size, sizeof *r->items[0]);
    assert_int_equal(r->items[1]->translations[0]->size, sizeof(dgm_translation));
    assert_int_equal(r->items[1]->translations[0]->text_size,
                     strlen(r->items[1]->translations[0]->text));
    assert_int_equal(dgm_describe(t)->size, sizeof(dgm_translator_info));
    dgm_results_free(&r);

    old_counters small;
    memset(&small, POISON, sizeof small);
    dgm_count_sized(t, (dgm_counters *)(void *)&small, offsetof(old_counters, behind));
    assert_int_equal(small.lines, 2);
    assert_int_equal(small.sentences, 2);
    assert_true(poisoned(small.behind, sizeof small.behind));
    struct {
        dgm_counters known;
        uint64_t more;
    } large;
    memset(&large, POISON, sizeof large);
    dgm_count_sized(t, &large.known, sizeof large);
    assert_int_equal(large.known.lines, 2);
    assert_int_equal(large.more, 0);
    dgm_close(&t);
}

// Options of the tools that were never filled are refused before anything is done.
#define UNFILLED(type, call)                                                                       \
    do {                                                                                           \
        const type o = {0};                                                                        \
        dgm_error error = {{0}};                                                                   \
        assert_int_equal(call, DGM_ERR_ARGUMENT);                                                  \
        if (!strstr(error.text, #type ".size is 0")) fail_msg("'%s'", error.text);                 \
    } while (0)

static void options_of_tools(void **state)
{
    (void)state;
    static const char *const one[] = {MODEL};
    const dgm_line line = {"a", 1}, *lines = &line;
    char *text = NULL, name[64];
    dgm_mbr *mbr = NULL;
    dgm_evidence_file *file = NULL;
    dgm_phrasal *phrasal = NULL;
    dgm_eval_score score = {.size = sizeof score};
    UNFILLED(dgm_align_options, dgm_align("a", "b", NULL, &o, NULL, &error));
    UNFILLED(dgm_average_options, dgm_average(one, 1, "x", &o, NULL, &error));
    UNFILLED(dgm_cluster_options, dgm_cluster_make(MODEL, "x", &o, NULL, &error));
    UNFILLED(dgm_eval_options, dgm_evaluate(&o, &lines, 1, &lines, 1, 1, &score, NULL, &error));
    UNFILLED(dgm_eval_options, dgm_eval_describe(&o, 1, name, sizeof name, NULL, 0, &error));
    UNFILLED(dgm_mbr_options, dgm_mbr_open(&mbr, &o, &error));
    UNFILLED(dgm_evidence_options, dgm_evidence_open(&file, "x", &o, &error));
    UNFILLED(dgm_lattice_options, dgm_lattice_run(one, 1, "x", &o, NULL, &error));
    UNFILLED(dgm_ngram_options, dgm_ngram_train(one, 1, "x", &o, NULL, &error));
    UNFILLED(dgm_inspect_options, dgm_inspect(MODEL, &o, &text, &error));
    UNFILLED(dgm_import_options, dgm_import("huggingface", "x", "y", &o, &error));
    UNFILLED(dgm_phrase_options, dgm_phrase_extract("a", "b", "c", "d", &o, NULL, &error));
    UNFILLED(dgm_phrasal_options, dgm_phrasal_open(&phrasal, &o, &error));
    UNFILLED(dgm_mert_options, dgm_mert("a", one, 1, "x", &o, &error));
    UNFILLED(dgm_quantize_options, dgm_quantize(MODEL, NULL, &o, NULL, &error));
    UNFILLED(dgm_shortlist_options, dgm_shortlist_make(MODEL, "x", &o, NULL, &error));
    UNFILLED(dgm_shrink_options, dgm_shrink_ensemble(one, 1, "x", &o, NULL, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_settings), cmocka_unit_test(newer_settings),
        cmocka_unit_test(unfilled),       cmocka_unit_test(other_inputs),
        cmocka_unit_test(what_is_filled), cmocka_unit_test(options_of_tools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
