// SPDX-License-Identifier: MIT
// Batching by token budget: whatever the budget, the number of sentences at once, the workspace and the
// threads, results are the same to the bit, and memory stays within what was promised. The models
// are random and seldom end a sentence, so that small budgets make workers run out of room for the
// past and begin sentences again.
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

#include "dragoman/dragoman.h"

#define FOLDER "tests/data/models/"
enum { LINES = 60 };

static char texts[LINES][200];

static int make_texts(void **state)
{
    static const char *const words[] = {"the", "house", "is", "small", "and", "good", "morning"};
    (void)state;
    unsigned seed = 7;
    for (int i = 0; i < LINES; i++) {
        int count = i % 9 == 0 ? 20 : 1 + i % 5; // many short ones, some long ones
        texts[i][0] = 0;
        for (int k = 0; k < count; k++) {
            seed = seed * 1103515245u + 12345u;
            strcat(strcat(texts[i], k ? " " : ""), words[(seed >> 16) % 7]);
        }
    }
    return 0;
}

typedef struct run {
    char *text[LINES];
    float score[LINES];
    dgm_counters counters;
    int batch;
} run;

static run translate(const char *model, const dgm_settings *s)
{
    run out = {0};
    dgm_translator *t = NULL;
    dgm_error error;
    dgm_results *r = NULL;
    const char *lines[LINES];
    for (int i = 0; i < LINES; i++) lines[i] = texts[i];
    if (dgm_open(&t, model, s, &error) != DGM_OK) fail_msg("%s", error.text);
    out.batch = dgm_describe(t)->batch;
    if (dgm_translate(t, lines, LINES, &r, &error) != DGM_OK) fail_msg("%s", error.text);
    for (int i = 0; i < LINES; i++) {
        assert_int_equal(r->items[i]->status, DGM_OK);
        out.text[i] = strdup(dgm_result_text(r->items[i]));
        out.score[i] = r->items[i]->translations[0]->score;
    }
    dgm_count(t, &out.counters);
    dgm_results_free(&r);
    dgm_close(&t);
    return out;
}

static void forget(run *r)
{
    for (int i = 0; i < LINES; i++) free(r->text[i]);
}

static void same(const run *a, const run *b)
{
    for (int i = 0; i < LINES; i++) {
        assert_string_equal(a->text[i], b->text[i]);
        assert_true(a->score[i] == b->score[i]);
    }
}

static dgm_settings settings_of(int beam)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.beam = beam;
    s.max_length = 40;
    s.max_length_factor = 0;
    return s;
}

static void test_budgets(void **state)
{
    (void)state;
    static const char *const models[] = {FOLDER "transformer-pieces.gguf",
                                         FOLDER "rnn-bahdanau-pieces.gguf",
                                         FOLDER "transformer-t5-relu-pieces.gguf"};
    static const int budgets[] = {1, 30, 100, 1000, 100000};
    uint64_t restarts = 0;
    for (int m = 0; m < 3; m++)
        for (int beam = 1; beam <= 4; beam += 3) {
            dgm_settings s = settings_of(beam);
            s.batch = 1;
            run want = translate(models[m], &s);
            assert_int_equal(want.batch, 1);
            for (int i = 0; i < 5; i++)
                for (int threads = 1; threads <= 2; threads++) {
                    s = settings_of(beam);
                    s.batch_tokens = budgets[i];
                    s.threads = threads;
                    s.batch = i == 3 ? 6 : 0;
                    run got = translate(models[m], &s);
                    same(&want, &got);
                    if (i == 3) assert_true(got.batch <= 6);
                    if (i == 4 && m == 0) assert_true(got.batch > 6);
                    restarts += got.counters.restarts;
                    forget(&got);
                }
            forget(&want);
        }
    assert_true(restarts > 0);
}

// The smallest workspace that is not refused works, and so does everything above it.
static void test_workspace(void **state)
{
    (void)state;
    const char *model = FOLDER "transformer-pieces.gguf";
    dgm_settings s = settings_of(4);
    run want = translate(model, &s);
    int64_t low = 1, high = 1 << 30; // low is refused, high is not
    while (high - low > 1 << 10) {
        dgm_translator *t = NULL;
        dgm_error error;
        s.workspace = (low + high) / 2;
        if (dgm_open(&t, model, &s, &error) == DGM_OK) {
            high = s.workspace;
        } else {
            assert_non_null(strstr(error.text, "workspace"));
            low = s.workspace;
        }
        dgm_close(&t);
    }
    int64_t sizes[] = {high, high + high / 4, 2 * high, 8 * high};
    for (int i = 0; i < 4; i++)
        for (int threads = 1; threads <= 2; threads++) {
            s.workspace = sizes[i] * threads;
            s.threads = threads;
            run got = translate(model, &s);
            same(&want, &got);
            assert_true(got.counters.arena_bytes <= (uint64_t)s.workspace);
            assert_true(got.counters.arena_peak <= got.counters.arena_bytes);
            forget(&got);
        }
    forget(&want);
}

// More than the machine has is refused while opening.
static void test_too_much(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    dgm_translator *t = NULL;
    dgm_error error;
    s.threads = 1024;
    s.beam = 256;
    s.batch_tokens = 1 << 24;
    assert_int_equal(dgm_open(&t, FOLDER "rnn-bahdanau-pieces.gguf", &s, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "memory"));
    assert_null(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_too_much),
    };
    return cmocka_run_group_tests(tests, make_texts, NULL);
}
