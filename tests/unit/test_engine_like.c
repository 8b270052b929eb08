// SPDX-License-Identifier: MIT
// Translators over the weights of another one, and texts in the tokens of a model.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dragoman/settings.h"
#include "dragoman/tools.h"
#include "engine.h"
#include "failures.h"

#define FOLDER "tests/data/models/"
#define MODEL FOLDER "transformer-pieces.gguf"
#define RECURRENT FOLDER "rnn-bahdanau-pieces.gguf"
#define EN_DE "models/en-de.gguf"

static const char *const texts[] = {"bade cafe", "a deed of fab", "dead beef"};
enum { TEXTS = sizeof texts / sizeof texts[0] };

static dgm_settings with_beam(int beam, int nbest)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.beam = beam;
    s.nbest = nbest;
    return s;
}

static char *translate_like(const dgm_translator *lender, const dgm_settings *s)
{
    dgm_translator *t = NULL;
    dgm_error error;
    if (dgm_open_like(&t, lender, s, &error) != DGM_OK) fail_msg("%s", error.text);
    char *out = translate_texts(t, texts, TEXTS, true);
    dgm_close(&t);
    return out;
}

// As a translator of its own, whoever is closed first.
static void same_translations(void **state)
{
    (void)state;
    static const char *const models[] = {MODEL, RECURRENT};
    for (size_t m = 0; m < 2; m++)
        for (int beam = 1; beam <= 4; beam += 3) {
            const dgm_settings usual = with_beam(2, 1), s = with_beam(beam, beam);
            dgm_translator *own = open_with(&s, models[m]), *lender = open_with(&usual, models[m]), *like = NULL;
            char *wanted = translate_texts(own, texts, TEXTS, true);
            char *before = translate_texts(lender, texts, TEXTS, true);
            char *got = translate_like(lender, &s);
            char *after = translate_texts(lender, texts, TEXTS, true);
            assert_string_equal(got, wanted);
            assert_string_equal(after, before);
            assert_int_equal(dgm_open_like(&like, lender, &s, NULL), DGM_OK);
            dgm_close(&lender);
            free(got);
            got = translate_like(like, &s); // of one that borrows, too
            assert_string_equal(got, wanted);
            free(got);
            got = translate_texts(like, texts, TEXTS, true);
            assert_string_equal(got, wanted);
            dgm_close(&like);
            dgm_close(&own);
            free(wanted);
            free(before);
            free(after);
            free(got);
        }
}

// What belongs to the loaded model is the lender's.
static void weights_stay(void **state)
{
    (void)state;
    dgm_settings s = with_beam(2, 1);
    s.precision = "f32";
    dgm_translator *lender = open_with(&s, MODEL), *t = NULL;
    s.precision = "i8";
    assert_int_equal(dgm_open_like(&t, lender, &s, NULL), DGM_OK);
    assert_string_equal(dgm_describe(t)->precision, "f32");
    assert_string_equal(dgm_describe(t)->architecture, dgm_describe(lender)->architecture);
    dgm_close(&t);
    dgm_close(&lender);
    assert_true(dgm_setting_find("precision")->flags & DGM_SETTING_WEIGHTS);
    assert_false(dgm_setting_find("beam")->flags & DGM_SETTING_WEIGHTS);
}

static void refusals(void **state)
{
    (void)state;
    dgm_error error;
    dgm_settings s = with_beam(2, 3);
    dgm_translator *lender = open_usual(MODEL, 2, 0, false), *t = lender;
    assert_int_equal(dgm_open_like(&t, NULL, NULL, &error), DGM_ERR_ARGUMENT);
    assert_null(t);
    assert_int_equal(dgm_open_like(NULL, lender, NULL, &error), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_open_like(&t, lender, &s, &error), DGM_ERR_ARGUMENT); // n-best above the beam
    assert_non_null(strstr(error.text, "n-best"));
    s = with_beam(2, 1);
    s.shortlist = "cluster";
    assert_int_equal(dgm_open_like(&t, lender, &s, &error), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "shortlist cluster"));
    char *still = translate_texts(lender, texts, TEXTS, true);
    free(still);
    dgm_close(&lender);
}

static dgm_status open_and_close(const dgm_translator *lender)
{
    dgm_translator *t = NULL;
    const dgm_status st = dgm_open_like(&t, lender, NULL, NULL);
    dgm_close(&t);
    return st;
}

static dgm_status tokens_there_and_back(const dgm_translator *t)
{
    dgm_token_list *list = NULL;
    char *text = NULL;
    dgm_status st = dgm_text_tokens(t, 0, "a deed", 6, &list, NULL);
    if (st == DGM_OK) st = dgm_tokens_text(t, 0, list->items, list->count, &text, NULL);
    dgm_token_list_free(&list);
    dgm_string_free(&text);
    return st;
}

static void short_of_memory(void **state)
{
    (void)state;
    dgm_translator *lender = open_usual(MODEL, 2, 0, false);
    ALLOCATIONS_FAIL(open_and_close(lender));
    ALLOCATIONS_FAIL(tokens_there_and_back(lender));
    dgm_close(&lender);
}

static void tokens(void **state)
{
    (void)state;
    dgm_translator *t = open_usual(EN_DE, 1, 0, false);
    static const char *const samples[] = {"Hello world.", "", "Gr\xc3\xbc\xc3\x9f" "e aus K\xc3\xb6ln!"};
    for (int target = 0; target <= 1; target++)
        for (size_t i = 0; i < 3; i++) {
            dgm_token_list *list = NULL;
            char *text = NULL;
            assert_int_equal(dgm_text_tokens(t, target, samples[i], strlen(samples[i]), &list, NULL), DGM_OK);
            assert_int_equal(list->count > 0, samples[i][0] != 0);
            assert_int_equal(dgm_tokens_text(t, target, list->items, list->count, &text, NULL), DGM_OK);
            assert_string_equal(text, samples[i]);
            dgm_string_free(&text);
            dgm_token_list_free(&list);
        }
    static const char *const odd[] = {"</s>", "no such token"};
    char *text = NULL;
    assert_int_equal(dgm_tokens_text(t, 1, odd, 1, &text, NULL), DGM_OK);
    assert_string_equal(text, "");
    dgm_string_free(&text);
    assert_int_equal(dgm_tokens_text(t, 1, odd, 2, &text, NULL), DGM_OK);
    assert_non_null(strstr(text, "\xe2\x81\x87")); // the unknown word
    dgm_string_free(&text);
    dgm_token_list *list = NULL;
    assert_int_equal(dgm_text_tokens(NULL, 0, "a", 1, &list, NULL), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_text_tokens(t, 0, NULL, 1, &list, NULL), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_tokens_text(t, 0, NULL, 1, &text, NULL), DGM_ERR_ARGUMENT);
    dgm_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_translations), cmocka_unit_test(weights_stay), cmocka_unit_test(refusals),
        cmocka_unit_test(short_of_memory),   cmocka_unit_test(tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
