// SPDX-License-Identifier: MIT
// Headlines in Title Case: what is one, which words keep their capital (tests/data/everyday/titles.tsv), and
// translations with the shipped models.
#include "unit/text_data.h"

#include "dragoman/dragoman.h"
#include "engine.h"
#include "dragoman/text.h"
#include "engine/engine_private.h"
#include "failures.h"
#include "text/titles.h"

static void test_detection(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        dgm_language lang;
        bool title;
    } cases[] = {
        {"Angela Merkel Visits New York", DGM_LANG_EN, true},
        {"The Lord of the Rings", DGM_LANG_EN, true},
        {"4 Killed After Police Fire at Protesters", DGM_LANG_EN, true},
        {"Hello World", DGM_LANG_EN, false},
        {"Angela Merkel visits New York", DGM_LANG_EN, false},
        {"Chris Leslie is MP for Nottingham East", DGM_LANG_EN, false},
        {"THE LORD OF THE RINGS", DGM_LANG_EN, false},
        {"NASA, ESA and USA", DGM_LANG_EN, false},
        {"I am here", DGM_LANG_EN, false},
        {"the Lord of Rings", DGM_LANG_EN, false}, // its first word is small
        {"", DGM_LANG_EN, false},
        {"Die Besten Filme F\u00fcr Kinder", DGM_LANG_DE, true},
        {"Der Herr der Ringe", DGM_LANG_DE, false},
        {"Haus, Garten, Auto", DGM_LANG_DE, false}, // nouns
        {"Merkel: Die Rente Steigt", DGM_LANG_DE, false}, // behind a colon a sentence begins
        {"Les Nouvelles R\u00e8gles De La Maison", DGM_LANG_FR, true},
        {"Las Nuevas Reglas De La Casa", DGM_LANG_ES, true},
        {"Le Nuove Regole Della Casa", DGM_LANG_IT, true},
        {"Angela Merkel Visits New York", DGM_LANG_OTHER, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (dgm_is_title(dgm_text_of(cases[i].text), cases[i].lang) != cases[i].title)
            fail_msg("'%s'", cases[i].text);
}

// Compares word by word: lost[0] counts capitals that should have stayed, [1] those that should not have,
// [2] words that were lowered as they should be.
static void compare_words(dgm_text made, dgm_text want, dgm_text title, int counts[3])
{
    assert_int_equal(made.size, want.size);
    for (size_t i = 0; i < made.size; i++) {
        if (made.data[i] == want.data[i]) counts[2] += made.data[i] != title.data[i];
        else counts[made.data[i] == title.data[i]]++;
    }
}

static void test_names_stay(void **state)
{
    (void)state;
    dgm_translator *t = open_usual("models/en-de.gguf", 1, 0, false);
    text_lines lines = text_lines_open("../everyday/titles.tsv");
    int counts[3] = {0};
    dgm_writer out = {0};
    assert_int_equal(lines.count, 50);
    for (size_t i = 0; i < lines.count; i++) {
        const char *tab = memchr(lines.lines[i].data, '\t', lines.lines[i].size);
        const dgm_text title = {lines.lines[i].data, (size_t)(tab - lines.lines[i].data)};
        const dgm_text want = {tab + 1, lines.lines[i].size - title.size - 1};
        bool lowered;
        out.size = 0;
        assert_int_equal(dgm_titles_lower(t->source, title, DGM_LANG_EN, &out, &lowered, NULL), DGM_OK);
        const int before = counts[0];
        compare_words(lowered ? text_of_writer(&out) : title, want, title, counts);
        if (counts[0] > before) fail_msg("'%.*s'", (int)out.size, (const char *)out.data);
    }
    print_message("%d words lowered, %d left with a capital\n", counts[2], counts[1]);
    assert_true(counts[2] > 150);
    text_lines_close(&lines);
    dgm_writer_free(&out);
    dgm_close(&t);
}

static void test_raise(void **state)
{
    (void)state;
    char text[] = "the new rules of the game: it's \u00e4rger for o'brien";
    dgm_titles_raise(text, strlen(text));
    assert_string_equal(text, "The New Rules of the Game: It's \u00c4rger for O'brien");
}

static char *translate(dgm_translator *t, const char *text)
{
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate(t, &text, 1, &r, NULL), DGM_OK);
    char *copy = dgm_strdup(dgm_result_text(r->items[0]));
    dgm_results_free(&r);
    return copy;
}

static void expect(dgm_translator *t, const char *text, const char *want)
{
    char *got = translate(t, text);
    assert_string_equal(got, want);
    dgm_free(got);
}

static void test_translations(void **state)
{
    (void)state;
    static const char title[] = "Development of Trip Prices Since 1989";
    dgm_translator *t = open_usual("models/en-de.gguf", 1, 0, false),
                   *raw = open_usual("models/en-de.gguf", 1, 1, false),
                   *back = open_usual("models/de-en.gguf", 1, 0, false);
    char *ordinary = translate(t, "Development of Trip prices since 1989"), *as_it_is = translate(raw, title);
    expect(t, title, ordinary);
    assert_string_not_equal(as_it_is, ordinary);
    dgm_free(ordinary);
    dgm_free(as_it_is);
    expect(back, "Die Neuen Regeln F\u00fcr Alle", "The New Rules for All"); // English has headlines in Title Case
    dgm_close(&t);
    dgm_close(&raw);
    dgm_close(&back);
}

static void test_public(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"Angela Merkel Visits New York", "Angela Merkel visits New York"},
                                           {"Will Smith Meets Mr. Black", "Will Smith meets Mr. Black"},
                                           {"Happy New Year!", "Happy New Year!"},
                                           {"I LIKE APPLES", "I like apples"},
                                           {"I like apples.", "I like apples."},
                                           {"", ""}};
    dgm_translator *t = open_usual("models/en-de.gguf", 1, 0, false);
    char *made = NULL;
    size_t size = 0;
    dgm_error e;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(dgm_ordinary_case(t, cases[i][0], strlen(cases[i][0]), &made, &size, &e), DGM_OK);
        assert_string_equal(made, cases[i][1]);
        assert_int_equal(size, strlen(made));
        dgm_string_free(&made);
    }
    assert_int_equal(dgm_ordinary_case(NULL, "a", 1, &made, &size, &e), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_ordinary_case(t, NULL, 1, &made, &size, &e), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_ordinary_case(t, "a", 1, NULL, &size, &e), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_ordinary_case(t, "\xff", 1, &made, &size, &e), DGM_ERR_TEXT);
    dgm_close(&t);
}

static dgm_status lower_once(const dgm_vocab *v)
{
    dgm_writer out = {0};
    bool lowered;
    const dgm_text title = dgm_text_of("Angela Merkel Visits New York");
    dgm_status st = dgm_titles_lower(v, title, DGM_LANG_EN, &out, &lowered, NULL);
    dgm_writer_free(&out);
    return st;
}

static void test_memory(void **state)
{
    (void)state;
    dgm_translator *t = open_usual("models/en-de.gguf", 1, 0, false);
    ALLOCATIONS_FAIL(lower_once(t->source));
    dgm_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_detection),    cmocka_unit_test(test_names_stay), cmocka_unit_test(test_raise),
        cmocka_unit_test(test_translations), cmocka_unit_test(test_public),     cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
