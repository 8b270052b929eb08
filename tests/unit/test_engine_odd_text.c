// SPDX-License-Identifier: MIT
// Lines that look as usual and are written in other bytes give the translation of usual ones, with the same links;
// what passes through keeps its bytes. With the shipped model.
#include "unit/text_data.h"

#include <stdlib.h>

#include "dragoman/dragoman.h"
#include "engine.h"

#define MODEL "models/en-de.gguf"

static void expect_same(dgm_translator *t, const char *odd, const char *usual)
{
    dgm_results *a = translate_one(t, odd), *b = translate_one(t, usual);
    const dgm_translation *x = a->items[0]->translations[0], *y = b->items[0]->translations[0];
    assert_string_equal(x->text, y->text);
    assert_true(x->sum == y->sum);
    assert_int_equal(x->link_count, y->link_count);
    for (size_t i = 0; i < x->link_count; i++) {
        assert_int_equal(x->links[i].source, y->links[i].source);
        assert_int_equal(x->links[i].target, y->links[i].target);
    }
    dgm_results_free(&a);
    dgm_results_free(&b);
}

static void test_same(void **state)
{
    (void)state;
    dgm_translator *t = open_usual(MODEL, 1, 0, true);
    expect_same(t, "The cafe\u0301 of Mr. Mu\u0308ller is closed.", "The caf\u00e9 of Mr. M\u00fcller is closed.");
    expect_same(t, "The in\u00adter\u00adna\u00adtional agree\u00adment is good.",
                "The international agreement is good.");
    expect_same(t, "\ufeffGood\u200b morn\u200ding, my\u2060 friends. Thank\u200b you\u00ad very much.",
                "Good morning, my friends. Thank you very much.");
    expect_same(t, "\uff28\uff4f\uff57 are \uff59\uff4f\uff55\uff1f", "How are you?");
    expect_same(t, "The o\ufb03ce is \ufb01ne.", "The office is fine.");
    expect_same(t, "I LIKE CAFE\u0301S", "I LIKE CAF\u00c9S");
    dgm_close(&t);
}

static void test_copies(void **state)
{
    (void)state;
    static const char *const lines[] = {"u\u0308ber@ko\u0308ln.de", "https://example.org/\u200bpath/\u00adto",
                                        "\uff11\uff12\uff13", "\U0001f468\u200d\U0001f469", "\u200d\u200d",
                                        "\x1b[31m 12:30 \x1b[0m", "--\x01--"};
    dgm_translator *t = open_usual(MODEL, 1, 0, true);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        dgm_results *r = translate_one(t, lines[i]);
        assert_string_equal(dgm_result_text(r->items[0]), lines[i]);
        assert_int_equal(r->items[0]->flags, DGM_LINE_COPIED);
        dgm_results_free(&r);
    }
    // One of several sentences.
    dgm_results *r = translate_one(t, "Good mor\u00adning! %\u00ads? Thank you!");
    assert_non_null(strstr(dgm_result_text(r->items[0]), " %\u00ads? "));
    assert_int_equal(r->items[0]->flags, DGM_LINE_COPIED | DGM_LINE_SPLIT);
    dgm_results_free(&r);
    // Nothing but such sentences: no tokens that a score could be normalised by.
    r = translate_one(t, "%\u00ads? --! 12:30.");
    assert_int_equal(r->items[0]->flags, DGM_LINE_COPIED | DGM_LINE_SPLIT);
    assert_true(r->items[0]->translations[0]->score == 0.0f);
    dgm_results_free(&r);
    dgm_close(&t);
}

// As much work as without them: thousands of byte tokens would take half a minute.
static void test_floods(void **state)
{
    (void)state;
    static const char *const marks[] = {"\u200d", "\u0301", "\u064b"};
    dgm_translator *t = open_usual(MODEL, 1, 0, true), *raw = open_usual(MODEL, 1, 1, true);
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
        for (int several = 0; several < 2; several++) {
            dgm_writer w = {0};
            dgm_write_text(&w, several ? "Good morning. How are you" : "How are you");
            for (int i = 0; i < 5000; i++) dgm_write_text(&w, marks[k]);
            dgm_write_text(&w, " today?");
            char *flood = dgm_writer_take(&w, NULL);
            expect_same(t, flood, several ? "Good morning. How are you today?" : "How are you today?");
            dgm_results *r = translate_one(t, flood);
            assert_true(r->items[0]->source_tokens < 20);
            dgm_results_free(&r);
            dgm_free(flood);
        }
    dgm_results *r = translate_one(raw, "Hello\u200d\u200d\u200d\u200d\u200d\u200d\u200d\u200d");
    assert_true(r->items[0]->source_tokens > 8); // as it is
    dgm_results_free(&r);
    dgm_close(&t);
    dgm_close(&raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_floods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
