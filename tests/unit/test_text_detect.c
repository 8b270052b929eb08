// SPDX-License-Identifier: MIT
// Which language a text is in: samples of five languages, others that CLD2 knows, short strings, lists to choose from.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "dragoman/tools.h"
#include "text/cld2_shim.h"

static const char *language_of(const char *text, const char *among, float *confidence)
{
    static dgm_detected found[4];
    dgm_error error;
    size_t count = 0;
    if (dgm_detect(text, strlen(text), among, found, 4, &count, &error) != DGM_OK) fail_msg("%s", error.text);
    for (size_t i = 0; i < count; i++) {
        assert_true(found[i].confidence >= 0 && found[i].confidence <= 1);
        if (i) assert_true(found[i].confidence <= found[i - 1].confidence);
    }
    if (confidence) *confidence = count ? found[0].confidence : 0;
    return count ? found[0].language : "";
}

// Leaves numbers that are languages and percents where the next call has its variables.
static void dirty_stack(void)
{
    volatile int32_t numbers[2048];
    for (int i = 0; i < 2048; i++) numbers[i] = 1;
    (void)numbers[7];
}

// CLD2 does not look at text with control characters: nothing comes out, whatever lay in memory.
static void control_characters_say_nothing(void **state)
{
    (void)state;
    dgm_cld2_candidate candidates[DGM_CLD2_MOST];
    bool reliable = true;
    static const char text[] = "\x05 is a control character";
    dirty_stack();
    assert_int_equal(dgm_cld2(text, strlen(text), true, candidates, &reliable), 0);
    assert_false(reliable);
}

// tests/data/text/languages.tsv: of each language 8 lines of flores-dev, then the first three words of 40 of Tatoeba
// (Italian: of flores-dev).
static void samples_are_recognised(void **state)
{
    (void)state;
    FILE *f = fopen("tests/data/text/languages.tsv", "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0;
    int lines[2] = {0}, right[2] = {0};
    for (int i = 0; getline(&line, &cap, f) > 0; i++) {
        char *text = strchr(line, '\t');
        *text++ = 0;
        const int is_short = i % 48 >= 8;
        lines[is_short]++;
        right[is_short] += strcmp(language_of(text, "en,de,fr,es,it", NULL), line) == 0;
        if (!is_short) assert_string_equal(language_of(text, NULL, NULL), line);
    }
    free(line);
    fclose(f);
    assert_int_equal(lines[0], 40);
    assert_int_equal(right[0], 40);
    assert_int_equal(lines[1], 200);
    assert_in_range(right[1], 190, 200);
}

// What people type first.
static void greetings_are_recognised(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"en", "Hello"}, {"en", "Hi!"},      {"en", "Hello world"}, {"en", "yes"},
        {"de", "Hallo"}, {"de", "Ja, klar"}, {"fr", "Oui"},         {"es", "S\xc3\xad"},
        {"it", "Ciao"},  {"fi", "Hei maailma"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(language_of(rows[i][1], NULL, NULL), rows[i][0]);
        if (i + 1 < sizeof rows / sizeof *rows)
            assert_string_equal(language_of(rows[i][1], "en,de,fr,es,it", NULL), rows[i][0]);
    }
}

static void other_languages_stay(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"nl", "Het regent al de hele dag en ik heb mijn paraplu thuis laten liggen."},
        {"pt", "Não sei se amanhã vou conseguir chegar a tempo à reunião com os professores."},
        {"gl", "Onte fomos á praia coa miña irmá e non había ninguén porque chovía moito."},
        {"pl", "Wczoraj wieczorem poszliśmy do kina, ale film nie był zbyt ciekawy."},
        {"tr", "Yarın sabah erken kalkıp annemle birlikte pazara gideceğiz."},
        {"fi", "Eilen illalla satoi niin paljon lunta, että bussit eivät kulkeneet."},
        {"ru", "Вчера вечером мы ходили в театр и очень хорошо провели время."},
        {"el", "Χθες το βράδυ πήγαμε στο θέατρο και περάσαμε πολύ καλά."},
        {"ja", "昨日の夜は友達と一緒に映画を見に行きました。"},
        {"he", "אתמול בערב הלכנו לתיאטרון ונהנינו מאוד מההצגה."},
        {"ar", "ذهبنا مساء أمس إلى المسرح واستمتعنا كثيرا بالعرض."}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(language_of(rows[i][1], NULL, NULL), rows[i][0]);
}

static void lists_and_short_strings(void **state)
{
    (void)state;
    float sure, unsure;
    assert_string_equal(language_of("Guten Morgen", "de,en", &sure), "de");
    assert_true(sure > 0.9f);
    assert_string_equal(language_of("good morning", "de,en-GB", NULL), "en-GB"); // as the list has it
    assert_string_equal(language_of("Das ist ein Haus.", "en, fr", &unsure), "en"); // none fits
    assert_true(unsure < 0.2f);
    assert_string_equal(language_of("De kat zit op de mat in de keuken", "en,de,nl", NULL), "nl");
    assert_string_equal(language_of("12:30, 4711 $", NULL, NULL), "");
    assert_string_equal(language_of("", "en", NULL), "");
    assert_string_equal(language_of("Это дом.", "en,de", NULL), "");
    char text[20000];
    for (size_t i = 0; i < sizeof text - 1; i++) text[i] = "une maison très belle "[i % 23];
    text[sizeof text - 1] = 0;
    assert_string_equal(language_of(text, NULL, NULL), "fr");
    memset(text, 'x', sizeof text - 1); // one word
    language_of(text, NULL, NULL);
    assert_string_equal(language_of("Ich wei\xdf nicht, was das \xff soll.", NULL, NULL), "de"); // not UTF-8
}

static void wrong_calls_and_failures(void **state)
{
    (void)state;
    dgm_detected found[1];
    dgm_error error;
    size_t count = 9;
    assert_int_equal(dgm_detect(NULL, 3, NULL, found, 1, &count, &error), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_detect("a", 1, " , ", found, 1, &count, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "is no list of language codes"));
    assert_int_equal(dgm_detect("Guten Tag", 9, NULL, found, 0, &count, &error), DGM_OK);
    assert_int_equal(count, 0);
    const uint64_t live = dgm_mem_live();
    bool fine = false;
    for (uint64_t n = 1; !fine; n++) {
        dgm_mem_inject(n, 1);
        const dgm_status st = dgm_detect("Guten Tag", 9, "de,en", found, 1, &count, &error);
        dgm_mem_inject(0, 0);
        fine = st == DGM_OK;
        if (!fine) assert_int_equal(st, DGM_ERR_MEMORY);
        assert_true(n < 20);
    }
    assert_int_equal(dgm_mem_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_recognised),
        cmocka_unit_test(greetings_are_recognised), cmocka_unit_test(other_languages_stay),
        cmocka_unit_test(lists_and_short_strings),
        cmocka_unit_test(control_characters_say_nothing),
        cmocka_unit_test(wrong_calls_and_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
