// SPDX-License-Identifier: MIT
// The text stage: jobs of many lines are encoded in parts by several threads, lines are assembled
// by others than those that decode. Nothing of that may show: not in results or their order, not in
// what is said about bad lines, not when memory runs out.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants the four above.
#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dragoman/dragoman.h"
#include "engine/engine_private.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"
enum { LINES = 500 };

static char texts[LINES][400];
static char prefix[2000]; // longer than any translation may be
static dgm_input inputs[LINES];

static int make_inputs(void **state)
{
    static const char *const words[] = {"the", "house", "is", "small", "and", "good", "morning"};
    (void)state;
    unsigned seed = 11;
    for (int i = 0; i < 400; i++) strcat(prefix, "the ");
    for (int i = 0; i < LINES; i++) {
        const int count = i % 29 == 3 ? 60 : i % 13 == 5 ? 0 : 1 + i % 6; // too long, empty
        for (int k = 0; k < count; k++) {
            seed = seed * 1103515245u + 12345u;
            strcat(strcat(texts[i], k ? " " : ""), words[(seed >> 16) % 7]);
        }
        if (i % 31 == 7) strcat(texts[i], "\xff\xc3"); // not UTF-8
        inputs[i] = (dgm_input){
            .size = sizeof(dgm_input), .text = texts[i], .text_size = strlen(texts[i])};
        if (i % 37 == 9) {
            inputs[i].prefix = prefix;
            inputs[i].prefix_size = strlen(prefix);
        }
    }
    return 0;
}

static dgm_translator *open_model(int threads, int long_lines)
{
    dgm_settings s;
    dgm_error error;
    dgm_translator *t = NULL;
    dgm_settings_default(&s);
    s.beam = 2;
    s.nbest = 2;
    s.threads = threads;
    s.max_length = 8;
    s.max_source = 20;
    s.alignment = DGM_ALIGN_WORDS;
    s.token_scores = 1;
    s.long_lines = long_lines;
    if (dgm_open(&t, MODEL, &s, &error) != DGM_OK) fail_msg("%s", error.text);
    return t;
}

static void same_translation(const dgm_translation *a, const dgm_translation *b)
{
    assert_string_equal(a->text, b->text);
    assert_true(a->score == b->score && a->sum == b->sum);
    assert_int_equal(a->token_count, b->token_count);
    for (size_t i = 0; i < a->token_count; i++) {
        assert_string_equal(a->tokens[i], b->tokens[i]);
        assert_true(a->token_scores[i] == b->token_scores[i]);
    }
    assert_int_equal(a->link_count, b->link_count);
    for (size_t i = 0; i < a->link_count; i++) {
        assert_int_equal(a->links[i].source, b->links[i].source);
        assert_int_equal(a->links[i].target, b->links[i].target);
    }
}

static void same_result(const dgm_result *a, const dgm_result *b)
{
    assert_int_equal(a->status, b->status);
    assert_string_equal(a->message, b->message);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->pieces, b->pieces);
    assert_int_equal(a->source_tokens, b->source_tokens);
    assert_int_equal(a->count, b->count);
    for (size_t k = 0; k < a->count; k++)
        same_translation(a->translations[k], b->translations[k]);
}

// Every line in a call of its own, which is never cut into parts.
static void alone(dgm_translator *t, dgm_results *want[LINES])
{
    dgm_error error;
    for (int i = 0; i < LINES; i++)
        assert_int_equal(dgm_translate_inputs(t, &inputs[i], 1, &want[i], &error), DGM_OK);
}

static void forget(dgm_results *want[LINES])
{
    for (int i = 0; i < LINES; i++) dgm_results_free(&want[i]);
}

static void test_text_threads(void **state)
{
    (void)state;
    static const int rows[][4] = {// workers, cores, text threads beside cores that decode, beside a device
                                  {1, 1, 1, 1},  {1, 2, 1, 1}, {5, 2, 2, 2}, {1, 6, 1, 2},
                                  {1, 16, 1, 7}, {2, 64, 1, 8}, {64, 64, 16, 16}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(dgm_text_suits(rows[i][0], rows[i][1], false), rows[i][2]);
        assert_int_equal(dgm_text_suits(rows[i][0], rows[i][1], true), rows[i][3]);
    }
}

static void test_jobs_in_parts(void **state)
{
    (void)state;
    dgm_results *want[LINES], *got = NULL;
    dgm_error error;
    for (int way = DGM_LONG_SPLIT; way <= DGM_LONG_ERROR; way++) {
        dgm_translator *t = open_model(1, way);
        alone(t, want);
        dgm_close(&t);
        for (int threads = 1; threads <= 5; threads += 2) {
            t = open_model(threads, way);
            assert_int_equal(dgm_text_threads(t), threads == 5 ? 2 : 1);
            static const size_t counts[] = {0, 1, 63, 64, 65, 128, LINES};
            for (int c = 0; c < 7; c++) {
                assert_int_equal(dgm_translate_inputs(t, inputs, counts[c], &got, &error), DGM_OK);
                assert_int_equal(got->count, counts[c]);
                size_t failed = 0;
                for (size_t i = 0; i < counts[c]; i++) {
                    same_result(got->items[i], want[i]->items[0]);
                    failed += got->items[i]->status != DGM_OK;
                }
                assert_int_equal(got->failed, failed);
                if (c == 6) assert_true(failed >= LINES / 37);
                dgm_results_free(&got);
            }
            dgm_close(&t);
        }
        forget(want);
    }
}

// ---- many callers ------------------------------------------------------------------------------

typedef struct caller {
    dgm_translator *t;
    dgm_results *const *want;
    size_t first, count;
    int wrong;
} caller;

static bool alike(const dgm_result *a, const dgm_result *b)
{
    return a->status == b->status && strcmp(dgm_result_text(a), dgm_result_text(b)) == 0;
}

// Two jobs in flight at a time, all of them cut into parts.
static void *call(void *arg)
{
    caller *c = arg;
    dgm_error error;
    for (int round = 0; round < 4; round++) {
        dgm_job *jobs[2] = {NULL};
        for (int k = 0; k < 2; k++)
            c->wrong += dgm_submit(c->t, inputs + c->first, c->count, &jobs[k], &error) != DGM_OK;
        for (int k = 0; k < 2 && jobs[k]; k++) {
            dgm_results *r = NULL;
            c->wrong += dgm_wait(&jobs[k], &r, &error) != DGM_OK;
            for (size_t i = 0; r && i < r->count; i++)
                c->wrong += !alike(r->items[i], c->want[c->first + i]->items[0]);
            dgm_results_free(&r);
        }
    }
    return NULL;
}

static void test_many_callers(void **state)
{
    (void)state;
    enum { CALLERS = 4 };
    dgm_results *want[LINES];
    pthread_t threads[CALLERS];
    caller callers[CALLERS];
    dgm_translator *t = open_model(6, DGM_LONG_SPLIT);
    alone(t, want);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (caller){.t = t, .want = want, .first = 90 * (size_t)i, .count = 200};
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].wrong, 0);
    }
    dgm_counters counters;
    dgm_count(t, &counters);
    assert_int_equal(counters.lines, LINES + CALLERS * 4 * 2 * 200);
    dgm_close(&t);
    forget(want);
}

// ---- memory ------------------------------------------------------------------------------------

// Whichever thread it hits, a failing allocation costs the call or a line, and nothing else.
static void test_allocations_fail(void **state)
{
    (void)state;
    enum { COUNT = 140 };
    dgm_error error;
    const uint64_t before = dgm_mem_live();
    dgm_translator *t = open_model(1, DGM_LONG_SPLIT);
    dgm_results *r = NULL;
    const uint64_t start = dgm_mem_allocations();
    assert_int_equal(dgm_translate_inputs(t, inputs, COUNT, &r, &error), DGM_OK);
    const uint64_t all = dgm_mem_allocations() - start;
    dgm_results_free(&r);
    int calls = 0, lines = 0;
    for (uint64_t at = 1; at <= all; at += 1 + at / 40) {
        dgm_mem_inject(at, 1 + at % 3);
        const dgm_status st = dgm_translate_inputs(t, inputs, COUNT, &r, &error);
        dgm_mem_inject(0, 0);
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        calls += st != DGM_OK;
        for (size_t i = 0; r && i < r->count; i++) {
            const bool none = r->items[i]->status == DGM_ERR_MEMORY;
            if (none) assert_string_equal(r->items[i]->message, "out of memory");
            lines += none;
        }
        dgm_results_free(&r);
    }
    assert_true(calls > 10 && lines > 10);
    assert_int_equal(dgm_translate_inputs(t, inputs, COUNT, &r, &error), DGM_OK);
    dgm_results_free(&r);
    dgm_close(&t);
    assert_int_equal(dgm_mem_live(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_in_parts),
        cmocka_unit_test(test_text_threads),
        cmocka_unit_test(test_many_callers),
        cmocka_unit_test(test_allocations_fail),
    };
    return cmocka_run_group_tests(tests, make_inputs, NULL);
}
