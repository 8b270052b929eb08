// SPDX-License-Identifier: MIT
// The sentence splitter against tests/data/sentences: boundaries that people set, in five languages,
// and what two other splitters make of the same text.
#include "unit/text_data.h"

#include <stdlib.h>

#include "dragoman/tools.h"

typedef struct score {
    size_t gold, found, right;
} score;

static double f1(score s)
{
    return 200.0 * (double)s.right / (double)(s.gold + s.found);
}

// A paragraph: its sentences joined by spaces, and where they end.
typedef struct paragraph {
    char text[8192];
    char ends[8192];
    size_t size;
} paragraph;

static void judge(const paragraph *p, const char *language, score *s)
{
    dgm_sentence *found = NULL;
    size_t count = 0;
    dgm_error error;
    char got[sizeof p->ends] = {0};
    if (dgm_sentences(p->text, p->size, language, &found, &count, &error) != DGM_OK)
        fail_msg("%s", error.text);
    for (size_t i = 0; i + 1 < count; i++) got[found[i].end] = 1;
    for (size_t i = 0; i < p->size; i++) {
        s->gold += p->ends[i] != 0;
        s->found += got[i] != 0;
        s->right += p->ends[i] && got[i];
    }
    dgm_sentences_free(&found);
    assert_null(found);
}

static void judge_file(const char *language, const char *kind, score *s)
{
    char name[64];
    snprintf(name, sizeof name, "../sentences/%s.%s", language, kind);
    text_lines file = text_lines_open(name);
    paragraph p = {0};
    for (size_t i = 0; i <= file.count; i++) {
        if (i == file.count || file.lines[i].size == 0) {
            if (p.size) judge(&p, language, s);
            memset(&p, 0, sizeof p);
            continue;
        }
        dgm_text line = file.lines[i];
        assert_true(p.size + line.size + 2 < sizeof p.text);
        if (p.size) p.text[p.size++] = ' ';
        memcpy(p.text + p.size, line.data, line.size);
        p.size += line.size;
        p.ends[p.size] = 1; // at the end of the paragraph it is behind what is counted
    }
    text_lines_close(&file);
}

static double best_rival(const char *language)
{
    text_lines file = text_lines_open("../sentences/rivals.tsv");
    double best = 0;
    for (size_t i = 1; i < file.count; i++) {
        char line[256];
        snprintf(line, sizeof line, "%.*s", (int)file.lines[i].size, file.lines[i].data);
        if (strncmp(line, language, 2) != 0) continue;
        const double here = strtod(strrchr(line, '\t'), NULL);
        if (here > best) best = here;
    }
    text_lines_close(&file);
    assert_true(best > 50);
    return best;
}

static void test_gold(void **state)
{
    (void)state;
    static const char *const languages[] = {"en", "de", "fr", "es", "it"};
    for (size_t i = 0; i < 5; i++) {
        score real = {0}, hard = {0};
        judge_file(languages[i], "real", &real);
        judge_file(languages[i], "hard", &hard);
        assert_true(real.gold >= 250 && hard.gold >= 250);
        score both = {real.gold + hard.gold, real.found + hard.found, real.right + hard.right};
        print_message("%s: F1 %.2f, real text %.2f, hard cases %.2f\n", languages[i], f1(both),
                      f1(real), f1(hard));
        assert_true(f1(both) >= 99);
        assert_true(f1(both) >= best_rival(languages[i]));
    }
}

static void check(const char *language, const char *text, size_t want)
{
    dgm_sentence *found = NULL;
    size_t count = 0;
    assert_int_equal(dgm_sentences(text, strlen(text), language, &found, &count, NULL), DGM_OK);
    if (count != want) fail_msg("'%s' has %zu sentences, %zu were found", text, want, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(found[i].begin < found[i].end && found[i].end <= strlen(text));
        assert_true(i == 0 || found[i - 1].end <= found[i].begin);
    }
    dgm_sentences_free(&found);
}

static void test_scripts(void **state)
{
    (void)state;
    check("ja", "今日は晴れです。明日は雨でしょう。「本当？」と彼は聞いた。", 4);
    check("zh", "你好！今天天气很好。我们走吧？", 3);
    check("hi", "यह एक वाक्य है। यह दूसरा वाक्य है।", 2);
    check("ar", "كيف حالك؟ أنا بخير.", 2);
    check(NULL, "Jedna věta. Druhá věta.", 2);
    check("xx-YY", "Ena. Dva.", 2);
    check("de-AT", "Am 3. Oktober war Dr. Huber da. Er blieb.", 2);
}

// Headlines without a final mark, in front of a sentence and in paragraphs; what looks like one and is none.
static void test_headlines(void **state)
{
    (void)state;
    check("en", "Refugees arrive in Weimar The first of them reached the town on Tuesday. They were tired.", 3);
    check("en", "Pit bull dies of snake bites A man in Florida says his dog died. He is sad.", 3);
    check("en", "He came late. Council rejects new bridge The council has rejected plans for a bridge.", 3);
    check("de", "Betrunkener Autofahrer verletzt Ein Autofahrer ist am Dienstag verletzt worden. Er lebt.", 3);
    check("de", "Er kam. Bananen müssen lang sein Der Apparat entscheidet oft unter Druck.", 3);
    check("fr", "Le maire quitte la mairie Le conseil a annoncé son départ hier soir. Il part.", 3);
    check("es", "El alcalde deja la ciudad El consejo ha anunciado su salida hoy. Se va.", 3);
    check("it", "Il sindaco lascia il municipio Il consiglio ha annunciato la sua partenza ieri. Parte.", 3);
    // One sentence by its marks stays one, whatever it looks like.
    check("en", "Refugees arrive in Weimar The first of them reached the town on Tuesday.", 1);
    check("en", "He moved to The Hague in May. She writes for The Guardian every week.", 2);
    check("en", "Peek told The Times on Wednesday that he was ill. He stayed at home.", 2);
    check("en", "Choose (File > Save As) in the menu. People infected with hepatitis A are treated.", 2);
    check("de", "Wählen Sie im Feld Von Datum einen Tag aus der Liste. Dann speichern Sie.", 2);
    check("de", "Das deutsche Magazin hat Die Zeit zitiert. Danach fragen Sie Ihre Bank nach Ihren Karten.", 2);
    check("pl", "Burmistrz odchodzi Rada miasta ogłosiła wczoraj jego odejście. Odchodzi.", 2);
}

static void test_misuse(void **state)
{
    (void)state;
    dgm_sentence *found = NULL;
    size_t count = 0;
    dgm_error error;
    check("en", "", 0);
    check("en", " \t ", 0);
    assert_int_equal(dgm_sentences(NULL, 0, NULL, &found, &count, NULL), DGM_OK);
    dgm_sentences_free(&found);
    assert_int_equal(dgm_sentences(NULL, 1, NULL, &found, &count, &error), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_sentences("a", 1, NULL, NULL, &count, &error), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_sentences("a \xFF", 3, NULL, &found, &count, &error), DGM_ERR_TEXT);
    assert_string_equal(error.text, "invalid UTF-8 at byte 3");
    dgm_sentences_free(NULL);
    for (uint64_t fail = 1; fail < 4; fail++) {
        dgm_mem_inject(fail, 1);
        dgm_status st = dgm_sentences("One. Two.", 9, "en", &found, &count, &error);
        dgm_mem_inject(0, 0);
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        dgm_sentences_free(&found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gold),
        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_headlines),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
