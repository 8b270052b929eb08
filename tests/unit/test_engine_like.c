// SPDX-License-Identifier: MIT
// Translators over the weights of another one, texts in the tokens of a model, and lines that come as tokens.
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
    static const char *const samples[] = {"Hello world.", "", ("Gr\xc3\xbc\xc3\x9f" "e aus K\xc3\xb6ln!")};
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

// ---- lines of tokens -----------------------------------------------------------------------------

enum { MOST = 64 };

// The tokens of a text with the end symbol behind them, in an array of the caller's.
static size_t with_end(const dgm_translator *t, const char *text, dgm_token_list **list, const char **out)
{
    assert_int_equal(dgm_text_tokens(t, 0, text, strlen(text), list, NULL), DGM_OK);
    assert_true((*list)->count + 1 < MOST);
    memcpy(out, (*list)->items, (*list)->count * sizeof *out);
    out[(*list)->count] = "</s>";
    return (*list)->count + 1;
}

// Tokens give what their text gives, and its first tokens as a prefix again; scores of pairs are the same, too.
static void lines_of_tokens(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    s.raw = 1;
    s.token_scores = 1;
    s.alignment = DGM_ALIGN_TOKENS;
    s.precision = "f32";
    s.shortlist = "all";
    dgm_translator *t = open_with(&s, EN_DE);
    const char *text = "The little house is red.", *tokens[MOST];
    dgm_token_list *list = NULL;
    dgm_input in;
    dgm_results *wanted = translate_one(t, text), *got = NULL;
    const dgm_translation *w = wanted->items[0]->translations[0];
    dgm_input_default(&in);
    in.tokens = tokens;
    in.token_count = with_end(t, text, &list, tokens);
    for (size_t prefix = 0; prefix <= 2; prefix += 2) {
        in.prefix_tokens = prefix ? w->tokens : NULL;
        in.prefix_token_count = prefix;
        assert_int_equal(dgm_translate_inputs(t, &in, 1, &got, NULL), DGM_OK);
        assert_int_equal(got->items[0]->status, DGM_OK);
        const dgm_translation *g = got->items[0]->translations[0];
        assert_string_equal(g->text, w->text);
        assert_true(g->sum == w->sum);
        assert_int_equal(g->link_count, w->link_count);
        assert_memory_equal(g->links, w->links, w->link_count * sizeof *w->links);
        dgm_results_free(&got);
    }
    const dgm_token_pair pair = {tokens, w->tokens, in.token_count, w->token_count - 1};
    const dgm_pair same = {{text, strlen(text)}, {w->text, w->text_size}};
    dgm_pair_scores *a = NULL, *b = NULL;
    assert_int_equal(dgm_score_token_pairs(t, &pair, 1, &a, NULL), DGM_OK);
    assert_int_equal(dgm_score_pairs(t, &same, 1, &b, NULL), DGM_OK);
    assert_true(a->items[0]->sum == b->items[0]->sum && a->items[0]->token_count == b->items[0]->token_count);
    dgm_pair_scores_free(&a);
    dgm_pair_scores_free(&b);
    dgm_token_list_free(&list);
    dgm_results_free(&wanted);
    dgm_close(&t);
}

static void odd_lines_of_tokens(void **state)
{
    (void)state;
    dgm_translator *t = open_usual(MODEL, 2, 0, false);
    static const char *const unknown[] = {"no such token", "</s>"}, *const broken[] = {NULL};
    const char *many[2000];
    for (size_t i = 0; i < 2000; i++) many[i] = "a";
    const struct {
        const char *const *tokens;
        size_t count;
        const char *prefix;
        dgm_status status;
    } lines[] = {{unknown, 2, NULL, DGM_OK},           {unknown, 0, NULL, DGM_OK},
                 {broken, 1, NULL, DGM_ERR_ARGUMENT},  {many, 2000, NULL, DGM_ERR_TEXT},
                 {unknown, 2, "a", DGM_ERR_ARGUMENT}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        dgm_input in;
        dgm_results *r = NULL;
        dgm_input_default(&in);
        in.tokens = lines[i].tokens;
        in.token_count = lines[i].count;
        in.prefix = lines[i].prefix;
        in.prefix_size = in.prefix ? 1 : 0;
        assert_int_equal(dgm_translate_inputs(t, &in, 1, &r, NULL), DGM_OK);
        assert_int_equal(r->items[0]->status, lines[i].status);
        dgm_results_free(&r);
    }
    dgm_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_translations), cmocka_unit_test(weights_stay), cmocka_unit_test(refusals),
        cmocka_unit_test(short_of_memory),   cmocka_unit_test(tokens),
        cmocka_unit_test(lines_of_tokens),   cmocka_unit_test(odd_lines_of_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
