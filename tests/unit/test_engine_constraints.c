// SPDX-License-Identifier: MIT
// Constraints through the public functions: demands of lines, glossaries, kept text, notices of what
// could not be met, lines cut into pieces, allocation failures. The model is tiny and random: what
// it says means nothing, but it must say what it is told to.
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

#include "base/mem.h"
#include "dragoman/dragoman.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"

static dgm_translator *open_with(const char *terms, const char *keep, int max_source)
{
    dgm_translator *t = NULL;
    dgm_settings s;
    dgm_error error;
    dgm_settings_default(&s);
    s.terms[0] = terms;
    s.keep = keep;
    s.max_source = max_source;
    s.threads = 2;
    if (dgm_open(&t, MODEL, &s, &error) != DGM_OK) fail_msg("%s", error.text);
    return t;
}

static dgm_input input(const char *text, const char *constraints)
{
    return (dgm_input){.size = sizeof(dgm_input),
                       .text = text,
                       .text_size = strlen(text),
                       .constraints = constraints,
                       .constraints_size = constraints ? strlen(constraints) : 0};
}

static dgm_results *translate(dgm_translator *t, const dgm_input *inputs, size_t count)
{
    dgm_results *r = NULL;
    dgm_error error;
    if (dgm_translate_inputs(t, inputs, count, &r, &error) != DGM_OK) fail_msg("%s", error.text);
    for (size_t i = 0; i < count; i++)
        if (r->items[i]->status != DGM_OK) fail_msg("%zu: %s", i, r->items[i]->message);
    return r;
}

static void holds(const dgm_result *r, const char *words)
{
    if (!strstr(dgm_result_text(r), words))
        fail_msg("'%s' is not in '%s'", words, dgm_result_text(r));
}

static void lines_have_demands(void **state)
{
    (void)state;
    dgm_translator *t = open_with(NULL, NULL, 0);
    const dgm_input in[] = {input("Good morning.", "haus"),
                            input("Good morning.", "morning => haus sun | musik\t! ist"),
                            input("Good morning.", NULL),
                            input("Good morning.", "^ haus\t$ sun."),
                            input("Good morning.", "evening => haus"),
                            input("Good morning.", "haus\tmorning =>"),
                            input("", "haus"),
                            input("Good morning.", "haus\thaus"),
                            input("Good morning.", "good\nevening => haus")};
    enum { COUNT = sizeof in / sizeof *in };
    dgm_results *r = translate(t, in, COUNT);
    const char *plain = dgm_result_text(r->items[2]);
    holds(r->items[0], "haus");
    assert_null(r->items[0]->notice);
    const char *second = dgm_result_text(r->items[1]);
    assert_true(strstr(second, "haus sun") || strstr(second, "musik"));
    assert_null(strstr(second, " ist "));
    const char *framed = dgm_result_text(r->items[3]);
    assert_int_equal(strncmp(framed, "haus", 4), 0);
    assert_string_equal(framed + strlen(framed) - 4, "sun.");
    assert_string_equal(r->items[4]->notice, "'evening' is not in the line");
    assert_true(r->items[4]->flags & DGM_LINE_UNMET && !(r->items[4]->flags & DGM_LINE_MALFORMED));
    assert_string_equal(dgm_result_text(r->items[4]), plain);
    assert_string_equal(r->items[5]->notice, "constraint 2: no target after '=>'");
    assert_true(r->items[5]->flags & DGM_LINE_MALFORMED);
    assert_string_equal(dgm_result_text(r->items[5]), plain);
    assert_string_equal(dgm_result_text(r->items[6]), "");
    const char *twice = strstr(dgm_result_text(r->items[7]), "haus");
    assert_true(twice && strstr(twice + 4, "haus"));
    assert_string_equal(r->items[8]->notice, "'good evening' is not in the line"); // in one line
    dgm_results_free(&r);
    dgm_close(&t);
}

static void glossaries_and_kept_text(void **state)
{
    (void)state;
    char path[] = "/tmp/dragoman-terms-XXXXXX.tsv";
    const int fd = mkstemps(path, 4);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "morning\tmusik\n", 14), 14);
    close(fd);
    dgm_translator *t = open_with(path, "[0-9]+", 0);
    const dgm_input in[] = {input("Good Morning.", NULL), input("Good morning at 42.", NULL),
                            input("Good evening.", NULL), input("Good morning.", "morning => sun")};
    dgm_results *r = translate(t, in, 4);
    assert_null(strstr(dgm_result_text(r->items[2]), "musik"));
    holds(r->items[1], "musik");
    if (!r->items[1]->notice) holds(r->items[1], "42");
    holds(r->items[3], "sun"); // the line's own demand goes first
    dgm_results_free(&r);
    dgm_close(&t);
    unlink(path);
    dgm_settings s;
    dgm_error error;
    dgm_settings_default(&s);
    s.terms[0] = path;
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_IO);
    s.terms[0] = NULL;
    s.keep = "[";
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_ARGUMENT);
}

// The model reads a term in place of its source words; links name the words that stand in the line.
static void terms_replace_their_source(void **state)
{
    (void)state;
    char path[] = "/tmp/dragoman-terms-XXXXXX.tsv";
    const int fd = mkstemps(path, 4);
    assert_true(fd >= 0);
    static const char rows[] = "morning\thaus sun|sun\nGood\tmusik\n";
    assert_int_equal(write(fd, rows, sizeof rows - 1), sizeof rows - 1);
    close(fd);
    dgm_settings s;
    dgm_error error;
    dgm_translator *t = NULL, *plain = open_with(NULL, NULL, 0);
    dgm_settings_default(&s);
    s.terms[0] = path;
    s.alignment = DGM_ALIGN_WORDS;
    if (dgm_open(&t, MODEL, &s, &error) != DGM_OK) fail_msg("%s", error.text);
    const dgm_input lines[] = {input("Good morning is good.", NULL), input("A good morning, morning.", NULL),
                               input("I see it.", NULL), input("Good sun.", "Good => haus")};
    const dgm_input switched[] = {input("musik haus sun is good.", "haus sun | sun\tmusik"),
                                  input("A good haus sun, haus sun.", "haus sun | sun"), input("I see it.", NULL),
                                  input("haus sun.", "haus")};
    dgm_results *a = translate(t, lines, 4), *b = translate(plain, switched, 4);
    for (int i = 0; i < 4; i++) assert_string_equal(dgm_result_text(a->items[i]), dgm_result_text(b->items[i]));
    const dgm_translation *first = a->items[0]->translations[0];
    assert_true(first->link_count > 0);
    for (size_t i = 0; i < first->link_count; i++) assert_in_range(first->links[i].source, 0, 3);
    dgm_results_free(&a);
    dgm_results_free(&b);
    dgm_close(&t);
    dgm_close(&plain);
    unlink(path);
}

// A line whose translation has the term anyway is what it is without: where half of the beam finds the term, too.
static void terms_that_are_there_anyway(void **state)
{
    (void)state;
    static const char *const texts[] = {"Good morning.", "morning", "The morning is here.", "I see the morning."};
    dgm_settings s;
    dgm_error error;
    dgm_translator *t = open_with(NULL, NULL, 0), *half = NULL;
    int tried = 0;
    dgm_settings_default(&s);
    s.beam = 2;
    if (dgm_open(&half, MODEL, &s, &error) != DGM_OK) fail_msg("%s", error.text);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const dgm_input plain = input(texts[i], NULL);
        dgm_results *a = translate(t, &plain, 1), *glance = translate(half, &plain, 1);
        const char *said = dgm_result_text(a->items[0]);
        const size_t word = strcspn(said, " .,!?");
        if (word > 0 && strcspn(dgm_result_text(glance->items[0]), " .,!?") == word &&
            strncmp(said, dgm_result_text(glance->items[0]), word) == 0) {
            char demands[256];
            snprintf(demands, sizeof demands, "morning => %.*s | sun", (int)word, said);
            const dgm_input in = input(texts[i], demands);
            dgm_results *b = translate(t, &in, 1);
            assert_string_equal(dgm_result_text(b->items[0]), said);
            assert_true(b->items[0]->translations[0]->sum == a->items[0]->translations[0]->sum);
            dgm_results_free(&b);
            tried++;
        }
        dgm_results_free(&a);
        dgm_results_free(&glance);
    }
    assert_true(tried > 0);
    dgm_close(&t);
    dgm_close(&half);
}

static uint64_t rows_of(const char *text, const char *demands, const char *expected)
{
    dgm_translator *t = open_with(NULL, NULL, 0);
    const dgm_input in = input(text, demands);
    dgm_results *r = translate(t, &in, 1);
    dgm_counters counters;
    dgm_count(t, &counters);
    holds(r->items[0], expected);
    dgm_results_free(&r);
    dgm_close(&t);
    return counters.rows;
}

// A model without a shortlist shows with half of its beam whether it says a term by itself: that takes less than a
// whole translation of the line as it is written.
static void terms_are_found_out_at_a_glance(void **state)
{
    (void)state;
    const uint64_t plain = rows_of("Good morning is good.", NULL, "");
    const uint64_t once = rows_of("Good sun is good.", "sun", "sun");
    const uint64_t both = rows_of("Good morning is good.", "morning => sun", "sun");
    assert_true(both > once);
    assert_true(both < once + plain);
}

// A variant that the vocabulary cannot spell (a ligature) does not hide that a model with a shortlist says the other
// one by itself: the line is read as it is written, and has that score.
static void variants_that_cannot_be_spelled_hide_none(void **state)
{
    (void)state;
    dgm_translator *t = NULL;
    dgm_error error;
    if (dgm_open(&t, "models/en-de.gguf", NULL, &error) != DGM_OK) fail_msg("%s", error.text);
    const char *text = "The committee will meet again next week.";
    const dgm_input in[] = {input(text, NULL), input(text, "committee => \xef\xac\x81 | Ausschuss")};
    dgm_results *r = translate(t, in, 2);
    holds(r->items[0], "Ausschuss");
    assert_string_equal(dgm_result_text(r->items[1]), dgm_result_text(r->items[0]));
    assert_true(r->items[1]->translations[0]->score == r->items[0]->translations[0]->score);
    dgm_results_free(&r);
    dgm_close(&t);
}

static int occurrences(const char *text, const char *word)
{
    int count = 0;
    const size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += n) {
        const bool begins = at == text || !strchr("abcdefghijklmnopqrstuvwxyz", at[-1]);
        count += begins && (!at[n] || !strchr("abcdefghijklmnopqrstuvwxyz", at[n]));
    }
    return count;
}

// As often as its source words stand in the line, whatever the order of writing and the beam; and more often only where
// nothing else is asked for. The models are random and like to repeat themselves.
static void terms_are_said_no_more_often_than_their_source(void **state)
{
    (void)state;
    static const struct {
        const char *file, *words[3];
    } models[] = {{MODEL, {"sun", "haus", "und"}},
                  {"tests/data/models/double-pieces.gguf", {"sun", "haus", "und"}},
                  {"tests/data/models/cmlm-pieces.gguf", {"sun", "haus", "und"}},
                  {"tests/data/models/transformer-r2l.gguf", {"pemé", "sutzepä", "tenbösbas"}}};
    static const char *const texts[] = {"I see the morning.", "The morning is here.", "morning",
                                        "Good morning is good."};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (int beam = 1; beam <= 5; beam += 2) {
            dgm_settings s;
            dgm_error error;
            dgm_translator *t = NULL;
            dgm_settings_default(&s);
            s.beam = strstr(models[m].file, "cmlm") ? s.beam : beam;
            if (dgm_open(&t, models[m].file, &s, &error) != DGM_OK) fail_msg("%s", error.text);
            for (size_t i = 0; i < 4; i++)
                for (size_t k = 0; k < 3; k++) {
                    const char *word = models[m].words[k];
                    char demands[64];
                    snprintf(demands, sizeof demands, "morning => %s", word);
                    const dgm_input in[] = {input(texts[i], demands), input(texts[i], NULL)};
                    dgm_results *r = translate(t, in, 2);
                    const char *said = dgm_result_text(r->items[0]);
                    const int count = occurrences(said, word);
                    const int usual = occurrences(dgm_result_text(r->items[1]), word);
                    if (count == 0 || count > (usual > 1 ? usual : 1))
                        fail_msg("%s, beam %d: '%s' has '%s' %d times", models[m].file, beam, said, word, count);
                    dgm_results_free(&r);
                }
            dgm_close(&t);
        }
}

// Pairs from both ends, of a random model that hardly ever begins a word: where a sentence has room for a term, with a
// word behind it, it is said, however narrow the beam and however little room there is.
static void pairs_leave_room_for_terms(void **state)
{
    (void)state;
    static const char *const words[] = {"sun", "haus", "und"}, *const texts[] = {"I see the morning.", "morning", "a"};
    for (int length = 8; length <= 28; length += 4)
        for (int beam = 1; beam <= 8; beam *= 2) {
            dgm_settings s;
            dgm_error error;
            dgm_translator *t = NULL;
            dgm_settings_default(&s);
            s.beam = beam;
            s.max_length = length;
            if (dgm_open(&t, "tests/data/models/double-pieces.gguf", &s, &error) != DGM_OK) fail_msg("%s", error.text);
            for (int i = 0; i < 9; i++) {
                const dgm_input in = input(texts[i / 3], words[i % 3]);
                dgm_results *r = translate(t, &in, 1);
                if (r->items[0]->flags & DGM_LINE_UNMET || !occurrences(dgm_result_text(r->items[0]), words[i % 3]))
                    fail_msg("'%s' at beam %d in %d tokens: '%s'", words[i % 3], beam, length,
                             dgm_result_text(r->items[0]));
                dgm_results_free(&r);
            }
            dgm_close(&t);
        }
}

// A model that does not want to end where it has said what comes last ends there all the same when there is no room to
// say it once more.
static void an_end_is_the_last_chance(void **state)
{
    (void)state;
    static const char *const ends[] = {"$ Euro.", "$ Euros", "$ ein haus", "sun\t$ haus."};
    static const char prefix[] = "tftzutqch";
    for (int beam = 1; beam <= 4; beam++)
        for (int cube = 0; cube <= (beam > 1); cube++) {
            dgm_settings s;
            dgm_error error;
            dgm_translator *t = NULL;
            dgm_settings_default(&s);
            s.beam = beam;
            if (cube) s.search = "cube";
            if (dgm_open(&t, MODEL, &s, &error) != DGM_OK) fail_msg("%s", error.text);
            for (int i = 0; i < 4; i++) {
                dgm_input in = input("He bought 3 apples for 12 euros.", ends[i]);
                in.prefix = prefix;
                in.prefix_size = strlen(prefix);
                dgm_results *r = translate(t, &in, 1);
                const char *said = dgm_result_text(r->items[0]), *end = strchr(ends[i], '$') + 2;
                const size_t size = strlen(said), own = strlen(end);
                if (r->items[0]->flags & DGM_LINE_UNMET || size < own || strcmp(said + size - own, end) != 0)
                    fail_msg("beam %d: '%s' does not end with '%s'", beam, said, end);
                dgm_results_free(&r);
            }
            dgm_close(&t);
        }
}

// Pairs that are drawn where words depend on each other: at the maximum length a sentence ends, however unlikely.
static void drawn_pairs_end(void **state)
{
    (void)state;
    static const char *const models[] = {"double-pieces", "double-l2r", "double-r2l", "double-bidirectional"};
    for (int m = 0; m < 4; m++)
        for (int k = 1; k <= 5; k += 2) {
            char path[128];
            dgm_settings s;
            dgm_error error;
            dgm_translator *t = NULL;
            snprintf(path, sizeof path, "tests/data/models/%s.gguf", models[m]);
            dgm_settings_default(&s);
            s.search = "sample";
            s.top_k = k;
            s.repetition_penalty = 1.3f;
            s.max_length = 4;
            if (dgm_open(&t, path, &s, &error) != DGM_OK) fail_msg("%s", error.text);
            const dgm_input in[] = {input("I see the morning.", NULL), input("Yes", NULL),
                                    input("The house is old", NULL)};
            dgm_results *r = translate(t, in, 3);
            for (int i = 0; i < 3; i++)
                if (!(r->items[i]->translations[0]->sum > -1e30f)) fail_msg("%s, top-k %d: nothing", path, k);
            dgm_results_free(&r);
            dgm_close(&t);
        }
}

// Whole sentences at once: what is demanded comes before what repeats itself, as in other searches.
static void demands_come_before_repetition(void **state)
{
    (void)state;
    static const char *const texts[] = {"I see the morning.", "morning", "Good morning is good.", "The house is old."};
    static const char *const words[] = {"sun", "haus haus", "und", "sun und sun", "musik"};
    for (int n = 1; n <= 3; n++) {
        dgm_settings s;
        dgm_error error;
        dgm_translator *t = NULL;
        dgm_settings_default(&s);
        s.no_repeat_ngram = n;
        if (dgm_open(&t, "tests/data/models/cmlm-pieces.gguf", &s, &error) != DGM_OK) fail_msg("%s", error.text);
        for (int i = 0; i < 20; i++) {
            const dgm_input in = input(texts[i / 5], words[i % 5]);
            dgm_results *r = translate(t, &in, 1);
            holds(r->items[0], words[i % 5]);
            dgm_results_free(&r);
        }
        dgm_close(&t);
    }
}

// What is demanded is not cut off where a translation repeats itself before it.
static void runaways_keep_their_terms(void **state)
{
    (void)state;
    static const char *const texts[] = {"The car is red, the house is old.", "The house is old.", "I see the house.",
                                        "house", "The house is in the house.", "Is it a good house?"};
    dgm_settings s;
    dgm_error error;
    dgm_translator *t = NULL;
    char path[] = "/tmp/dragoman-terms-XXXXXX.tsv";
    const int fd = mkstemps(path, 4);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "house\thaus\n", 11), 11);
    close(fd);
    for (int raw = 0; raw < 2; raw++) {
        dgm_settings_default(&s);
        s.terms[0] = path;
        s.repetition_penalty = 1.3f;
        s.max_length = 20;
        s.raw = raw;
        if (dgm_open(&t, "tests/data/models/cmlm-pieces.gguf", &s, &error) != DGM_OK) fail_msg("%s", error.text);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            const dgm_input in = input(texts[i], NULL);
            dgm_results *r = translate(t, &in, 1);
            holds(r->items[0], "haus");
            dgm_results_free(&r);
        }
        dgm_close(&t);
    }
    unlink(path);
}

// Where the longer words would not leave room for the line, the model reads the line as it is.
static void terms_that_do_not_fit_the_line(void **state)
{
    (void)state;
    dgm_translator *t = open_with(NULL, NULL, 16);
    const dgm_input in[] = {input("I I I I I I", "I => haus sun musik haus sun musik"),
                            input("I I I I I I", "haus sun musik haus sun musik")};
    dgm_results *r = translate(t, in, 2);
    assert_string_equal(dgm_result_text(r->items[0]), dgm_result_text(r->items[1]));
    assert_false(r->items[0]->flags & (DGM_LINE_SPLIT | DGM_LINE_CROPPED));
    dgm_results_free(&r);
    dgm_close(&t);
}

// A line in pieces: the term belongs to the piece with its source, the end to the last one.
static void pieces_have_their_own(void **state)
{
    (void)state;
    dgm_translator *t = open_with(NULL, NULL, 16);
    const dgm_input in = input(
        "Good morning, good house, good sun. Good music is here. The house is good. I see.",
        "music => musik\t$ haus.");
    dgm_results *r = translate(t, &in, 1);
    assert_true(r->items[0]->flags & DGM_LINE_SPLIT);
    assert_null(r->items[0]->notice);
    holds(r->items[0], "musik");
    const char *text = dgm_result_text(r->items[0]);
    assert_string_equal(text + strlen(text) - 5, "haus.");
    dgm_results_free(&r);
    dgm_close(&t);
}

static void too_much_for_a_line(void **state)
{
    (void)state;
    char demands[4096] = "";
    for (int i = 0; i < 40; i++) sprintf(demands + strlen(demands), "%shaus %d", i ? "\t" : "", i);
    dgm_translator *t = open_with(NULL, NULL, 0);
    const dgm_input in = input("Good morning.", demands);
    dgm_results *r = translate(t, &in, 1);
    assert_true(r->items[0]->flags & DGM_LINE_UNMET);
    assert_non_null(strstr(r->items[0]->notice, "too many constraints in one sentence"));
    assert_true(strlen(dgm_result_text(r->items[0])) > 0);
    dgm_results_free(&r);
    dgm_close(&t);
}

static void allocations_may_fail(void **state)
{
    (void)state;
    dgm_translator *t = NULL;
    dgm_error opening;
    assert_int_equal(dgm_open(&t, MODEL, NULL, &opening), DGM_OK); // one worker keeps its buffers
    const dgm_input in = input("Good morning.", "morning => haus | sun\t! ist\t$ .\tevening => x");
    dgm_results *warm = translate(t, &in, 1); // surfaces are there from now on
    dgm_results_free(&warm);
    const uint64_t live = dgm_mem_live();
    for (uint64_t n = 1;; n++) {
        dgm_job *job = NULL;
        dgm_results *r = NULL;
        dgm_error error;
        dgm_mem_inject(n, 1);
        const dgm_status st = dgm_submit(t, &in, 1, &job, &error);
        dgm_mem_inject(0, 0);
        bool fine = st == DGM_OK;
        if (st == DGM_OK) {
            assert_int_equal(dgm_wait(&job, &r, &error), DGM_OK);
            fine = r->items[0]->status == DGM_OK; // a worker may have met the failure
            dgm_results_free(&r);
        } else {
            assert_int_equal(st, DGM_ERR_MEMORY);
        }
        if (fine && n > 40) break;
    }
    assert_int_equal(dgm_mem_live(), live);
    dgm_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_demands),    cmocka_unit_test(glossaries_and_kept_text),
        cmocka_unit_test(pieces_have_their_own), cmocka_unit_test(too_much_for_a_line),
        cmocka_unit_test(terms_that_are_there_anyway), cmocka_unit_test(terms_are_found_out_at_a_glance),
        cmocka_unit_test(terms_replace_their_source), cmocka_unit_test(terms_that_do_not_fit_the_line),
        cmocka_unit_test(drawn_pairs_end),
        cmocka_unit_test(demands_come_before_repetition), cmocka_unit_test(an_end_is_the_last_chance),
        cmocka_unit_test(runaways_keep_their_terms), cmocka_unit_test(pairs_leave_room_for_terms),
        cmocka_unit_test(allocations_may_fail),  cmocka_unit_test(terms_are_said_no_more_often_than_their_source),
        cmocka_unit_test(variants_that_cannot_be_spelled_hide_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
