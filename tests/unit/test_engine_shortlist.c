// SPDX-License-Identifier: MIT
// Translating over a shortlist, through the public API: the default and the refusals, one
// translation however it is batched, at every precision and search; prefixes, n-best lists,
// alignments and ensembles; nothing allocated per step; every allocation failing.
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
#include "dragoman/tools.h"
#include "engine.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"
#define OTHER "tests/data/models/rnn-bahdanau-pieces.gguf"

static char folder[] = "/tmp/dgm-shortlist-XXXXXX";
static char listed[64], table[64], corpus[64];

static const char *const texts[] = {"The house is small.",
                                    "Good morning.",
                                    "The small house is good, the morning is small.",
                                    "house",
                                    "Is the house good? Good morning, small house.",
                                    "small small small",
                                    "the"};
enum { TEXTS = sizeof texts / sizeof *texts };

// A list for MODEL: pieces of a few letters may become a few others.
static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(listed, sizeof listed, "%s/listed.gguf", folder);
    snprintf(table, sizeof table, "%s/lex", folder);
    if (!put_letters(table)) return -1;
    snprintf(corpus, sizeof corpus, "%s/text", folder);
    FILE *f = fopen(corpus, "w");
    if (!f) return -1;
    for (int i = 0; i < 40; i++)
        fprintf(f, "the house is small and good morning %c%c\n", 'a' + i % 26, 'z' - i % 20);
    fclose(f);
    dgm_shortlist_options o;
    dgm_shortlist_default(&o);
    o.lexicon = table;
    o.frequent = 12;
    o.frequent_text = corpus;
    o.next = 0.01;
    dgm_error error;
    if (dgm_shortlist_make(MODEL, listed, &o, NULL, &error) == DGM_OK) return 0;
    print_error("%s\n", error.text);
    return -1;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(listed);
    unlink(table);
    unlink(corpus);
    return rmdir(folder);
}

// All translations of all lines with their scores, in one string.
static char *translate_all(dgm_translator *t)
{
    return translate_texts(t, texts, TEXTS, true);
}

static double candidates(const dgm_translator *t)
{
    dgm_counters c;
    dgm_count(t, &c);
    return (double)c.candidates / (double)c.sentences;
}

static void test_choice(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    dgm_translator *t = open_with(&s, listed);
    assert_string_equal(dgm_describe(t)->shortlist, "lexical");
    free(translate_all(t));
    assert_true(candidates(t) > 12 && candidates(t) < 60);
    dgm_counters c;
    dgm_count(t, &c);
    assert_true(c.more > 0 && c.more < 20 * c.rank_rows);
    dgm_close(&t);
    s.shortlist = "all";
    t = open_with(&s, listed);
    assert_string_equal(dgm_describe(t)->shortlist, "all");
    char *whole = translate_all(t);
    assert_true(candidates(t) == 305);
    dgm_close(&t);
    t = open_with(NULL, MODEL);
    assert_string_equal(dgm_describe(t)->shortlist, "all");
    char *plain = translate_all(t);
    assert_string_equal(whole, plain);
    free(whole);
    free(plain);
    dgm_close(&t);
    dgm_error error;
    s.shortlist = "lexical";
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "dragoman shortlist"));
    s.shortlist = "laundry";
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_ARGUMENT);
    assert_null(t);
}

static void test_batches(void **state)
{
    (void)state;
    static const char *const precisions[] = {"f32", "i16", "i8", "bf16"};
    for (int p = 0; p < 4; p++)
        for (int beam = 1; beam <= 4; beam += 3) {
            char *first = NULL;
            for (int batch = 1; batch <= 7; batch += 3)
                for (int threads = 1; threads <= 2; threads++) {
                    dgm_settings s;
                    dgm_settings_default(&s);
                    s.precision = precisions[p];
                    s.beam = s.nbest = beam;
                    s.batch = batch;
                    s.threads = threads;
                    s.max_length = 12;
                    dgm_translator *t = open_with(&s, listed);
                    char *all = translate_all(t);
                    if (first)
                        assert_string_equal(first, all);
                    else
                        first = strdup(all);
                    free(all);
                    dgm_close(&t);
                }
            free(first);
        }
}

// Every token of every translation is a candidate: the frequent ones, copies, and the table's.
static void test_tokens(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    s.nbest = 4;
    s.token_scores = 1;
    s.alignment = DGM_ALIGN_TOKENS;
    s.max_length = 12;
    dgm_translator *t = open_with(&s, listed);
    const dgm_input inputs[] = {{.size = sizeof(dgm_input), .text = "xyx", .text_size = 3},
                                {.size = sizeof(dgm_input),
                                 .text = "xyx",
                                 .text_size = 3,
                                 .prefix = "haus",
                                 .prefix_size = 4}};
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate_inputs(t, inputs, 2, &r, NULL), DGM_OK);
    assert_int_equal(r->failed, 0);
    for (size_t k = 0; k < r->items[0]->count; k++) {
        const dgm_translation *x = r->items[0]->translations[k];
        assert_true(x->link_count > 0 || x->token_count == 1);
        assert_null(strstr(x->text, "haus"));
        for (size_t i = 0; i < x->token_count; i++) assert_true(x->token_scores[i] <= 0);
    }
    assert_memory_equal(dgm_result_text(r->items[1]), "haus", 4); // not a candidate of x and y
    dgm_results_free(&r);
    dgm_close(&t);
}

static void test_ensemble(void **state)
{
    (void)state;
    static const char *const mixes[] = {"log-linear", "arithmetic"};
    for (int m = 0; m < 2; m++) {
        char *first = NULL;
        for (int batch = 1; batch <= 5; batch += 4) {
            const dgm_member members[] = {{OTHER, 1}, {listed, 2}};
            dgm_settings s;
            dgm_settings_default(&s);
            s.mix = mixes[m];
            s.batch = batch;
            s.max_length = 12;
            dgm_translator *t = NULL;
            assert_int_equal(dgm_open_ensemble(&t, members, 2, &s, NULL), DGM_OK);
            assert_string_equal(dgm_describe(t)->shortlist, "lexical");
            char *all = translate_all(t);
            assert_true(candidates(t) < 60);
            if (first) assert_string_equal(first, all);
            free(first);
            first = all;
            dgm_close(&t);
        }
        free(first);
    }
}

// A call that makes many more steps allocates as often as a short one.
static void test_allocations(void **state)
{
    (void)state;
    uint64_t counts[2], steps[2];
    for (int i = 0; i < 2; i++) {
        dgm_settings s;
        dgm_settings_default(&s);
        s.max_length = i ? 30 : 2;
        s.finish = "huggingface";
        s.length_penalty = 3;
        dgm_translator *t = open_with(&s, listed);
        dgm_counters before, after;
        for (int round = 0; round < 2; round++) { // the first one grows the scratch buffers
            dgm_results *r = NULL;
            dgm_count(t, &before);
            uint64_t start = dgm_mem_allocations();
            assert_int_equal(dgm_translate(t, texts, 1, &r, NULL), DGM_OK);
            counts[i] = dgm_mem_allocations() - start;
            dgm_count(t, &after);
            dgm_results_free(&r);
        }
        steps[i] = after.steps - before.steps;
        dgm_close(&t);
    }
    assert_true(steps[1] > 5 * steps[0]);
    assert_int_equal(counts[0], counts[1]);
}

static void test_failures(void **state)
{
    (void)state;
    uint64_t live = dgm_mem_live();
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        dgm_settings s;
        dgm_settings_default(&s);
        s.batch = 2;
        s.max_length = 6;
        dgm_translator *t = NULL;
        dgm_results *r = NULL;
        uint64_t before = dgm_mem_allocations();
        dgm_mem_inject(n, 1);
        dgm_status st = dgm_open(&t, listed, &s, NULL);
        if (st == DGM_OK) st = dgm_translate(t, texts, TEXTS, &r, NULL);
        dgm_results_free(&r);
        dgm_close(&t);
        dgm_mem_inject(0, 0);
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        assert_int_equal(dgm_mem_live(), live);
        failures += st != DGM_OK;
        if (dgm_mem_allocations() - before < n) break;
    }
    assert_true(failures > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),      cmocka_unit_test(test_batches),
        cmocka_unit_test(test_tokens),      cmocka_unit_test(test_ensemble),
        cmocka_unit_test(test_allocations), cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
