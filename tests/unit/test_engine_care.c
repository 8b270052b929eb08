// SPDX-License-Identifier: MIT
// Text that is not ordinary: what is no language passes through, capitals are translated in ordinary case,
// white space around a line stays, a translation that repeats itself is cut. With the shipped model and
// lines of tests/data/everyday, and `raw` beside it.
#define _GNU_SOURCE
#include "unit/text_data.h"

#include <stdlib.h>

#include "dragoman/dragoman.h"
#include "engine.h"
#include "text/capitals.h"
#include "text/language_like.h"

#define MODEL "models/en-de.gguf"
#define RANDOM "tests/data/models/transformer-pieces.gguf"

static void expect(dgm_translator *t, const char *text, const char *want, uint32_t flags)
{
    dgm_results *r = translate_one(t, text);
    assert_string_equal(dgm_result_text(r->items[0]), want);
    assert_int_equal(r->items[0]->flags, flags);
    dgm_results_free(&r);
}

static void test_language_like(void **state)
{
    (void)state;
    static const char *const files[] = {"../everyday/copied.txt", "../everyday/language.txt",
                                        "news.en", "news.de"};
    for (int f = 0; f < 4; f++) {
        text_lines lines = text_lines_open(files[f]);
        assert_true(lines.count >= 30);
        for (size_t i = 0; i < lines.count; i++)
            if (dgm_is_language(lines.lines[i]) != (f > 0))
                fail_msg("%s: '%.*s'", files[f], (int)lines.lines[i].size, lines.lines[i].data);
        text_lines_close(&lines);
    }
    assert_false(dgm_is_language(dgm_text_of("")));
    assert_false(dgm_is_language(dgm_text_of(" \t")));
}

static void test_copied(void **state)
{
    (void)state;
    dgm_translator *t = open_usual(MODEL, 2, 0, true);
    text_lines lines = text_lines_open("../everyday/copied.txt");
    for (size_t i = 0; i < lines.count; i++) {
        char *text = strndup(lines.lines[i].data, lines.lines[i].size);
        dgm_results *r = translate_one(t, text);
        const dgm_result *line = r->items[0];
        assert_string_equal(dgm_result_text(line), text);
        assert_true(line->flags & DGM_LINE_COPIED);
        assert_int_equal(line->translations[0]->token_count, 0);
        assert_int_equal(line->translations[0]->link_count, 0);
        assert_true(line->translations[0]->finished);
        dgm_results_free(&r);
        free(text);
    }
    dgm_counters c;
    dgm_count(t, &c);
    assert_int_equal(c.copied, lines.count);
    text_lines_close(&lines);
    // A part of a line, between others.
    dgm_results *whole = translate_one(t, "Good morning! %s? Thank you!"),
                *first = translate_one(t, "Good morning!"), *last = translate_one(t, "Thank you!");
    char want[256];
    snprintf(want, sizeof want, "%s %%s? %s", dgm_result_text(first->items[0]),
             dgm_result_text(last->items[0]));
    assert_string_equal(dgm_result_text(whole->items[0]), want);
    assert_int_equal(whole->items[0]->translations[0]->token_count,
                     first->items[0]->translations[0]->token_count +
                         last->items[0]->translations[0]->token_count);
    dgm_results_free(&whole);
    dgm_results_free(&first);
    dgm_results_free(&last);
    dgm_close(&t);
}

static void test_capitals(void **state)
{
    (void)state;
    dgm_translator *t = open_usual(MODEL, 2, 0, true), *raw = open_usual(MODEL, 2, 1, true);
    expect(t, "I LIKE APPLES", "ICH MAG ÄPFEL", 0);
    expect(t, "GOOD MORNING", "GUTEN MORGEN", 0);
    expect(t, "USA", "USA", 0);
    dgm_results *a = translate_one(t, "I like apples"), *b = translate_one(t, "I LIKE APPLES"),
                *c = translate_one(raw, "I LIKE APPLES");
    assert_string_not_equal(dgm_result_text(b->items[0]), dgm_result_text(c->items[0]));
    assert_true(a->items[0]->translations[0]->sum == b->items[0]->translations[0]->sum);
    assert_int_equal(a->items[0]->translations[0]->link_count,
                     b->items[0]->translations[0]->link_count);
    dgm_results_free(&a);
    dgm_results_free(&b);
    dgm_results_free(&c);
    dgm_close(&t);
    dgm_close(&raw);
    char sharp[] = "Straße, ŉ, Ä, é, ﬁ";
    dgm_capitals_raise(sharp, sizeof sharp - 1);
    assert_string_equal(sharp, "STRASSE, ŉ, Ä, É, ﬁ"); // as long as before
}

static void test_white_space(void **state)
{
    (void)state;
    dgm_translator *t = open_usual(MODEL, 2, 0, true), *raw = open_usual(MODEL, 2, 1, true);
    expect(t, "  Good morning.\t", "  Guten Morgen!\t", 0);
    expect(t, "\t%s ", "\t%s ", DGM_LINE_COPIED);
    expect(t, "   ", "", 0);
    expect(raw, "  Good morning.\t", "Guten Morgen!", 0);
    dgm_close(&t);
    dgm_close(&raw);
}

// A model of random numbers repeats itself.
static void test_repetition(void **state)
{
    (void)state;
    static const char text[] = "Good morning";
    dgm_translator *t = open_usual(RANDOM, 2, 0, true), *raw = open_usual(RANDOM, 2, 1, true);
    int cut = 0;
    text_lines lines = text_lines_open("news.en");
    for (size_t i = 0; i < 40; i++) {
        char *line =
            strndup(lines.lines[i].data, lines.lines[i].size < 60 ? lines.lines[i].size : 60);
        dgm_results *a = translate_one(t, line), *b = translate_one(raw, line);
        const dgm_translation *x = a->items[0]->translations[0], *y = b->items[0]->translations[0];
        if (a->items[0]->flags & DGM_LINE_REPEATED) {
            cut++;
            assert_true(x->token_count < y->token_count);
            assert_string_equal(x->tokens[x->token_count - 1], y->tokens[y->token_count - 1]);
            for (size_t k = 0; k + 1 < x->token_count; k++)
                assert_string_equal(x->tokens[k], y->tokens[k]);
        } else if (a->items[0]->pieces == 1) {
            assert_int_equal(x->token_count, y->token_count);
        }
        dgm_results_free(&a);
        dgm_results_free(&b);
        free(line);
    }
    assert_true(cut > 0);
    text_lines_close(&lines);
    dgm_results *r = translate_one(raw, text);
    assert_false(r->items[0]->flags & DGM_LINE_REPEATED);
    dgm_results_free(&r);
    dgm_close(&t);
    dgm_close(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_language_like), cmocka_unit_test(test_copied),
        cmocka_unit_test(test_capitals),      cmocka_unit_test(test_white_space),
        cmocka_unit_test(test_repetition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
