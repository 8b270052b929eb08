// SPDX-License-Identifier: MIT
// Threads that only help workers: translations, scores and statistics are those of one thread, with many sentences
// inside and with several workers; how many there are; and nothing is left behind where they cannot be started.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants the four above.
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/team.h"
#include "base/threads.h"
#include "dragoman/dragoman.h"
#include "engine/worker_private.h"

#define SMALL "tests/data/models/transformer-pieces.gguf"

enum { LINES = 48 };

static char lines[LINES][200];
static const char *texts[LINES];

static int make_lines(void **state)
{
    static const char *const words[] = {"house", "garden", "the", "a", "small", "old", "good", "morning", "is", "not"};
    dgm_rng rng = {5};
    (void)state;
    for (int i = 0; i < LINES; i++) {
        for (int n = 1 + (int)dgm_rng_below(&rng, 12), at = 0; n > 0; n--)
            at += snprintf(lines[i] + at, sizeof lines[i] - (size_t)at, "%s%s", at ? " " : "",
                           words[dgm_rng_below(&rng, 10)]);
        texts[i] = lines[i];
    }
    dgm_team_least(0);
    return 0;
}

static int as_usual(void **state)
{
    (void)state;
    unsetenv("DRAGOMAN_HELPERS");
    dgm_team_least(-1);
    return 0;
}

static dgm_settings settings_of(int beam, int threads)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.threads = threads;
    s.beam = beam;
    s.nbest = beam > 2 ? 2 : 1;
    s.batch = 32;
    return s;
}

static dgm_translator *open_model(const char *model, const dgm_settings *s, const char *helpers)
{
    dgm_translator *t = NULL;
    dgm_error error;
    if (helpers)
        setenv("DRAGOMAN_HELPERS", helpers, 1);
    else
        unsetenv("DRAGOMAN_HELPERS");
    if (dgm_open(&t, model, s, &error) != DGM_OK) fail_msg("%s", error.text);
    return t;
}

static dgm_results *translate(dgm_translator *t)
{
    dgm_results *r = NULL;
    dgm_error error;
    if (dgm_translate(t, texts, LINES, &r, &error) != DGM_OK) fail_msg("%s", error.text);
    return r;
}

static void expect_same(const dgm_results *a, const dgm_results *b)
{
    for (size_t i = 0; i < LINES; i++) {
        const dgm_result *x = dgm_results_item(a, i), *y = dgm_results_item(b, i);
        assert_int_equal(x->status, y->status);
        assert_int_equal(x->count, y->count);
        for (size_t k = 0; k < x->count; k++) {
            assert_string_equal(x->translations[k]->text, y->translations[k]->text);
            assert_memory_equal(&x->translations[k]->score, &y->translations[k]->score, sizeof(float));
        }
    }
}

// What does not depend on which sentences entered together.
static void expect_same_counts(const dgm_translator *a, const dgm_translator *b)
{
    const dgm_search_stats *x = &a->workers[0].stats, *y = &b->workers[0].stats;
    assert_int_equal(x->sentences, y->sentences);
    assert_int_equal(x->tokens, y->tokens);
    assert_int_equal(x->rows, y->rows);
    assert_int_equal(x->live, y->live);
    assert_int_equal(x->leads, y->leads);
    assert_int_equal(x->early, y->early);
    assert_int_equal(x->candidates, y->candidates);
    assert_int_equal(x->dots, y->dots);
}

static uint64_t compare(const char *model, int beam, int threads, const char *helpers)
{
    const dgm_settings s = settings_of(beam, 1), shared = settings_of(beam, threads);
    dgm_translator *alone = open_model(model, &s, "0"), *helped = open_model(model, &shared, helpers);
    dgm_results *a = translate(alone), *b = translate(helped);
    expect_same(a, b);
    if (threads == 1) expect_same_counts(alone, helped);
    const uint64_t taken = dgm_workers_shared(helped);
    assert_int_equal(dgm_workers_shared(alone), 0);
    dgm_results_free(&a);
    dgm_results_free(&b);
    dgm_close(&alone);
    dgm_close(&helped);
    return taken;
}

static void test_same_bits(void **state)
{
    (void)state;
    uint64_t taken = 0;
    for (int beam = 1; beam <= 4; beam += 3) {
        taken += compare(SMALL, beam, 1, "1");
        taken += compare(SMALL, beam, 1, "4");
        taken += compare(SMALL, beam, 2, "3"); // several workers share the helpers
        taken += compare("models/en-de.gguf", beam, 1, "2"); // over a shortlist
    }
    // On a machine with other work threads seldom run at the same time: until they did.
    const double begin = dgm_now();
    while (taken == 0 && dgm_cpu_count() > 1 && dgm_now() - begin < 300) taken += compare(SMALL, 4, 1, "2");
    assert_true(taken > 0 || dgm_cpu_count() == 1);
}

static void test_numbers(void **state)
{
    (void)state;
    assert_int_equal(dgm_helpers_suit(2, 16, false), 0); // of the CPU every core has a worker
    assert_int_equal(dgm_helpers_suit(2, 16, true), 6);  // text threads take seven
    assert_int_equal(dgm_helpers_suit(1, 16, true), 3);
    assert_int_equal(dgm_helpers_suit(1, 64, true), 3);
    assert_int_equal(dgm_helpers_suit(1, 4, true), 2);
    assert_int_equal(dgm_helpers_suit(2, 4, true), 1);
    assert_int_equal(dgm_helpers_suit(1, 2, true), 0);
    assert_int_equal(dgm_helpers_suit(8, 4, true), 0);
    const dgm_settings s = settings_of(1, 1);
    dgm_translator *t = open_model(SMALL, &s, NULL);
    assert_int_equal(t->helper_count, 0);
    dgm_close(&t);
    t = open_model(SMALL, &s, "3");
    assert_int_equal(t->helper_count, 3);
    dgm_close(&t);
    static const char *const bad[] = {"x", "-1", "257", "1 ", "1.5"};
    for (int i = 0; i < 5; i++) {
        dgm_error error;
        setenv("DRAGOMAN_HELPERS", bad[i], 1);
        assert_int_equal(dgm_open(&t, SMALL, &s, &error), DGM_ERR_ARGUMENT);
        assert_non_null(strstr(error.text, "DRAGOMAN_HELPERS must be 0 to 256, not '"));
        assert_null(t);
    }
}

// Whatever allocation of opening fails, what was begun is taken back; helpers are among the last.
static void test_memory(void **state)
{
    (void)state;
    const dgm_settings s = settings_of(1, 1);
    dgm_translator *t = open_model(SMALL, &s, "2");
    dgm_close(&t);
    const uint64_t blocks = dgm_mem_live(), before = dgm_mem_allocations();
    t = open_model(SMALL, &s, "2");
    const uint64_t most = dgm_mem_allocations() - before;
    dgm_close(&t);
    assert_int_equal(dgm_mem_live(), blocks);
    int refused = 0;
    for (uint64_t n = most > 40 ? most - 40 : 1; n <= most; n++) {
        dgm_error error;
        dgm_mem_inject(n, 1);
        const dgm_status st = dgm_open(&t, SMALL, &s, &error);
        dgm_mem_inject(0, 0);
        refused += st == DGM_ERR_MEMORY;
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        dgm_close(&t);
        assert_int_equal(dgm_mem_live(), blocks);
    }
    assert_true(refused > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, make_lines, as_usual);
}
