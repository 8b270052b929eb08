// SPDX-License-Identifier: MIT
// The Moses tokeniser and detokeniser: rules by language, escaping, spans, and round trips over
// real lines.
#include "unit/text_data.h"

#include "text/tokenize.h"

static dgm_language lang_of(const char *code)
{
    return dgm_language_of(dgm_text_of(code));
}

static void check(const char *lang, const char *text, const char *tokens)
{
    dgm_writer out = {0}, back = {0};
    dgm_error err;
    assert_int_equal(dgm_moses_tokenize_line(dgm_text_of(text), lang_of(lang), false, &out, &err),
                     DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of(tokens));
    assert_int_equal(
        dgm_moses_detokenize_line(text_of_writer(&out), lang_of(lang), false, &back, &err), DGM_OK);
    assert_text_equal(text_of_writer(&back), dgm_text_of(text));
    dgm_writer_free(&out);
    dgm_writer_free(&back);
}

static void test_english(void **state)
{
    (void)state;
    check("en", "Hello, world!", "Hello , world !");
    check("en", "It cost $5.50 (about 1,000 yen).", "It cost $ 5.50 ( about 1,000 yen ) .");
    check("en", "John's dogs don't bite.", "John 's dogs don 't bite .");
    check("en", "the Jones' house", "the Jones ' house");
    check("en", "in the '90s", "in the ' 90s");
    check("en", "Mr. Smith met Dr. No. They left.", "Mr. Smith met Dr. No . They left .");
    check("en", "See No. 5 and p. 12.", "See No. 5 and p. 12 .");
    check("en", "the U.S. Army, e.g. in D.C.", "the U.S. Army , e.g. in D.C.");
    check("en", "Wait... what?!", "Wait ... what ? !");
    check("en", "He said \"yes\" and \"no\".", "He said \" yes \" and \" no \" .");
    check("en", "well-known 3-year-old", "well-known 3-year-old");
    check("en", "It is 5:30, the score 3:0, on 1/2/2013.",
          "It is 5 : 30 , the score 3 : 0 , on 1 / 2 / 2013 .");
    check("en", "and/or 50% of #1", "and / or 50 % of # 1");
    check("en", "\xE2\x80\x9Cquoted\xE2\x80\x9D John\xE2\x80\x99s",
          "\xE2\x80\x9C quoted \xE2\x80\x9D John \xE2\x80\x99s");
    check("en", "http://example.com/a", "http : / / example.com / a");
    check("en", "", "");
}

static void test_german(void **state)
{
    (void)state;
    check("de", "Am 3. Oktober kostet es 5,50 \xE2\x82\xAC mehr.",
          "Am 3. Oktober kostet es 5,50 \xE2\x82\xAC mehr .");
    check("de", "Er ist 35.", "Er ist 35 .");
    check("de", "Ludwig XIV. von Frankreich", "Ludwig XIV. von Frankreich");
    check("de", "z.B. bzw. usw. danach", "z.B. bzw. usw. danach");
    check("de", "\xE2\x80\x9EGut\xE2\x80\x9C, sagte er.",
          "\xE2\x80\x9E Gut \xE2\x80\x9C , sagte er .");
    check("de", "Wie geht's O'Neill?", "Wie geht ' s O ' Neill ?");
    check("de", "das \"Cosmic Vision\"-Programm", "das \" Cosmic Vision \" -Programm");
    check("de", "\xC2\xBBGut\xC2\xAB", "\xC2\xBB Gut \xC2\xAB");
}

static void test_romance(void **state)
{
    (void)state;
    check("fr", "L'eau de l'\xC3\xA9t\xC3\xA9, qu'il dit.",
          "L' eau de l' \xC3\xA9t\xC3\xA9 , qu' il dit .");
    check("fr", "Quoi ? \xC2\xAB Non \xC2\xBB : fin !", "Quoi ? \xC2\xAB Non \xC2\xBB : fin !");
    check("fr", "M. Dupont et Mme. Durand", "M. Dupont et Mme. Durand");
    check("fr", "d'1 euro", "d ' 1 euro");
    check("it", "L'acqua dell'isola, \xC3\xA8 cos\xC3\xAC.",
          "L' acqua dell' isola , \xC3\xA8 cos\xC3\xAC .");
    check("it", "Il Sig. Rossi, a pag. 5.", "Il Sig. Rossi , a pag. 5 .");
    check("es", "\xC2\xBFQu\xC3\xA9? \xC2\xA1No! El Sr. L\xC3\xB3pez.",
          "\xC2\xBF Qu\xC3\xA9 ? \xC2\xA1 No ! El Sr. L\xC3\xB3pez .");
    check("es", "\xC2\xABhola\xC2\xBB", "\xC2\xAB hola \xC2\xBB");
}

static void test_other(void **state)
{
    (void)state;
    check("xx", "a, b; c", "a , b ; c");
    check("zh", "\xE6\xBC\xA2\xE5\xAD\x97\xE3\x80\x82\xE5\xBE\x8C",
          "\xE6\xBC\xA2\xE5\xAD\x97 \xE3\x80\x82 \xE5\xBE\x8C");
    assert_int_equal(lang_of("de-AT"), DGM_LANG_DE);
    assert_int_equal(lang_of("ENG"), DGM_LANG_EN);
    assert_int_equal(lang_of("it_IT"), DGM_LANG_IT);
    assert_int_equal(lang_of("english"), DGM_LANG_OTHER);
    assert_int_equal(lang_of(""), DGM_LANG_OTHER);
    assert_int_equal(dgm_abbreviation(DGM_LANG_EN, dgm_text_of("Gen")), 1);
    assert_int_equal(dgm_abbreviation(DGM_LANG_EN, dgm_text_of("No")), 2);
    assert_int_equal(dgm_abbreviation(DGM_LANG_DE, dgm_text_of("Haus")), 0);
    assert_int_equal(dgm_abbreviation(DGM_LANG_OTHER, dgm_text_of("X")), 1);
    assert_int_equal(dgm_abbreviation((dgm_language)77, dgm_text_of("bzw")), 0);
}

static void test_escape(void **state)
{
    (void)state;
    dgm_text line = dgm_text_of("a & b | <c> 'd' \"e\" [f]");
    dgm_writer out = {0}, back = {0};
    assert_int_equal(dgm_moses_tokenize_line(line, DGM_LANG_EN, true, &out, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&out),
                      dgm_text_of("a &amp; b &#124; &lt; c &gt; &apos; d &apos; &quot; e &quot; "
                                  "&#91; f &#93;"));
    assert_int_equal(
        dgm_moses_detokenize_line(text_of_writer(&out), DGM_LANG_EN, true, &back, NULL), DGM_OK);
    assert_text_equal(text_of_writer(&back), dgm_text_of("a & b | < c > 'd' \"e\" [f]"));
    dgm_writer_free(&out);
    dgm_writer_free(&back);
}

static void test_spans(void **state)
{
    (void)state;
    dgm_text tokens[4] = {dgm_text_of("("), dgm_text_of("a"), dgm_text_of(")"), dgm_text_of("b")};
    dgm_range spans[4];
    dgm_writer out = {0};
    dgm_write_text(&out, "..");
    assert_int_equal(dgm_moses_detokenize(tokens, 4, DGM_LANG_EN, false, &out, spans, NULL),
                     DGM_OK);
    assert_text_equal(text_of_writer(&out), dgm_text_of("..(a) b"));
    const dgm_range want[4] = {{0, 1}, {1, 2}, {2, 3}, {4, 5}};
    assert_memory_equal(spans, want, sizeof want);
    dgm_writer_free(&out);
    // Control characters and every kind of white space separate.
    dgm_ranges r = {0};
    assert_int_equal(dgm_moses_tokenize((dgm_text){"a\x01 b\xC2\xA0"
                                                   "c\xFF",
                                                   8},
                                        DGM_LANG_EN, &r, NULL),
                     DGM_OK);
    assert_int_equal(r.count, 4);
    assert_true(r.items[1].begin == 3 && r.items[2].begin == 6 && r.items[3].end == 8);
    dgm_ranges_free(&r);
    dgm_ranges_free(NULL);
}

// Share of real lines that come back unchanged. Spaces of other kinds and before commas cannot.
static void check_round_trip(const char *name, const char *lang, size_t at_most)
{
    text_lines lines = text_lines_open(name);
    size_t differ = 0;
    for (size_t i = 0; i < lines.count; i++) {
        dgm_writer clean = {0}, tokens = {0}, back = {0};
        dgm_text line = lines.lines[i];
        for (size_t k = 0; k < line.size; k++) { // no-break spaces
            if (line.size - k > 1 && memcmp(line.data + k, "\xC2\xA0", 2) == 0) {
                dgm_write_u8(&clean, ' ');
                k++;
            } else {
                dgm_write_u8(&clean, (uint8_t)line.data[k]);
            }
        }
        for (int escape = 0; escape < 2; escape++) {
            tokens.size = back.size = 0;
            assert_int_equal(dgm_moses_tokenize_line(text_of_writer(&clean), lang_of(lang), escape,
                                                     &tokens, NULL),
                             DGM_OK);
            assert_int_equal(dgm_moses_detokenize_line(text_of_writer(&tokens), lang_of(lang),
                                                       escape, &back, NULL),
                             DGM_OK);
            if (escape) differ += !dgm_text_equal(text_of_writer(&back), text_of_writer(&clean));
        }
        // Tokenising again what was detokenised gives the same tokens (nothing was lost).
        dgm_writer again = {0};
        assert_int_equal(
            dgm_moses_tokenize_line(text_of_writer(&back), lang_of(lang), true, &again, NULL),
            DGM_OK);
        if (dgm_text_equal(text_of_writer(&back), text_of_writer(&clean)))
            assert_text_equal(text_of_writer(&again), text_of_writer(&tokens));
        dgm_writer_free(&again);
        dgm_writer_free(&clean);
        dgm_writer_free(&tokens);
        dgm_writer_free(&back);
    }
    if (differ > at_most) fail_msg("%s: %zu of %zu lines differ", name, differ, lines.count);
    text_lines_close(&lines);
}

static void test_round_trips(void **state)
{
    (void)state;
    check_round_trip("news.en", "en", 3);
    check_round_trip("news.de", "de", 3);
    check_round_trip("flores.fr", "fr", 6);
    check_round_trip("flores.es", "es", 3);
    check_round_trip("flores.it", "it", 3);
    check_round_trip("flores.ja", "ja", 1);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    uint64_t live = dgm_mem_live();
    dgm_text line = dgm_text_of("(a) b's c. d & e, f g h i j k l m n o p q r s t u v w x y z");
    for (uint64_t n = 1;; n++) {
        dgm_writer out = {0}, back = {0};
        dgm_mem_inject(n, 1);
        dgm_status st = dgm_moses_tokenize_line(line, DGM_LANG_EN, true, &out, NULL);
        if (st == DGM_OK)
            st = dgm_moses_detokenize_line(text_of_writer(&out), DGM_LANG_EN, true, &back, NULL);
        dgm_mem_inject(0, 0);
        dgm_writer_free(&out);
        dgm_writer_free(&back);
        assert_int_equal(dgm_mem_live(), live);
        if (st == DGM_OK) {
            assert_true(n > 5);
            break;
        }
        assert_int_equal(st, DGM_ERR_MEMORY);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_english),     cmocka_unit_test(test_german),
        cmocka_unit_test(test_romance),     cmocka_unit_test(test_other),
        cmocka_unit_test(test_escape),      cmocka_unit_test(test_spans),
        cmocka_unit_test(test_round_trips), cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
