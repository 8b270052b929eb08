// SPDX-License-Identifier: MIT
// Jobs from outside: arguments that are not there, waiting for a while, giving up, and eight threads
// that do all of it at once, with deadlines.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dragoman/dragoman.h"
#include "dragoman/settings.h"
#include "jobs.h"

// ---- what is not there ---------------------------------------------------------------------------

#define NO(call)                                                                                   \
    do {                                                                                           \
        error.text[0] = 0;                                                                         \
        assert_int_equal((call), DGM_ERR_ARGUMENT);                                                \
        assert_non_null(strstr(error.text, "NULL"));                                               \
    } while (0)

static void nothing_there(void **state)
{
    (void)state;
    dgm_translator *t = open_with(NULL, MODEL), *none = NULL;
    dgm_results *r = NULL;
    dgm_job *job = NULL;
    dgm_error error;
    dgm_input in = input_of("a");
    const char *text = "a";
    NO(dgm_open(NULL, MODEL, NULL, &error));
    NO(dgm_open_ensemble(&none, NULL, 1, NULL, &error));
    NO(dgm_translate(NULL, &text, 1, &r, &error));
    NO(dgm_translate(t, NULL, 1, &r, &error));
    NO(dgm_translate(t, &text, 1, NULL, &error));
    NO(dgm_translate_inputs(NULL, &in, 1, &r, &error));
    NO(dgm_translate_inputs(t, NULL, 1, &r, &error));
    NO(dgm_translate_inputs(t, &in, 1, NULL, &error));
    NO(dgm_submit(NULL, &in, 1, &job, &error));
    NO(dgm_submit(t, NULL, 1, &job, &error));
    NO(dgm_submit(t, &in, 1, NULL, &error));
    in.text = NULL;
    NO(dgm_submit(t, &in, 1, &job, &error));
    assert_null(job);
    NO(dgm_settings_set(NULL, "beam", "4", &error));
    assert_int_equal(dgm_wait(NULL, &r, &error), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_wait(&job, &r, NULL), DGM_ERR_ARGUMENT);
    in = input_of("a");
    assert_int_equal(dgm_submit(t, &in, 1, &job, &error), DGM_OK);
    NO(dgm_wait(&job, NULL, &error));
    assert_int_equal(dgm_wait(&job, &r, &error), DGM_OK);
    assert_ptr_equal(dgm_results_item(r, 0), r->items[0]);
    assert_null(dgm_results_item(r, 1));
    assert_null(dgm_results_item(NULL, 0));
    dgm_results_free(&r);
    dgm_results_free(NULL);
    dgm_close(NULL);
    dgm_cancel(NULL);
    dgm_input_init(NULL, sizeof in);
    dgm_settings_init(NULL, sizeof(dgm_settings));
    assert_int_equal(dgm_wait_for(NULL, 0), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_job_done(NULL), 0);
    assert_string_equal(dgm_result_text(NULL), "");
    assert_null(dgm_describe(NULL));
    dgm_direction d = {"x", "y"};
    assert_int_equal(dgm_directions(NULL, 0, &d), 0);
    assert_null(d.source);
    dgm_counters c = {.lines = 7};
    dgm_count(NULL, &c);
    assert_int_equal(c.lines, 0);
    dgm_close(&t);
}

// ---- waiting and giving up -----------------------------------------------------------------------

static void waiting_for(void **state)
{
    (void)state;
    dgm_translator *t = open_with(NULL, MODEL);
    dgm_input *in = make_inputs(400);
    dgm_job *job = NULL;
    dgm_results *r = NULL;
    assert_int_equal(dgm_submit(t, in, 400, &job, NULL), DGM_OK);
    int done = dgm_wait_for(job, 0);
    assert_in_range(done, 0, 1);
    while (!(done = dgm_wait_for(job, 1))) assert_true(dgm_job_done(job) <= 400);
    assert_int_equal(done, 1);
    assert_int_equal(dgm_job_done(job), 400);
    assert_int_equal(dgm_wait_for(job, 0), 1);
    assert_int_equal(dgm_wait_for(job, -1), 1);
    assert_int_equal(dgm_wait_for(job, INT64_MAX), 1);
    assert_int_equal(dgm_wait(&job, &r, NULL), DGM_OK); // the job was still there
    assert_int_equal(r->failed, 0);
    dgm_results_free(&r);
    free(in);
    dgm_close(&t);
}

// Every line is right or cancelled; how many are cancelled.
static size_t check_lines(const dgm_results *r, char *const *wanted)
{
    size_t cancelled = 0;
    for (size_t i = 0; i < r->count; i++) {
        const dgm_result *line = dgm_results_item(r, i);
        if (line->status == DGM_OK) {
            assert_string_equal(dgm_result_text(line), wanted[i % TEXTS]);
            continue;
        }
        assert_int_equal(line->status, DGM_ERR_CANCELLED);
        assert_string_equal(line->message, "cancelled");
        assert_int_equal(line->count, 0);
        cancelled++;
    }
    assert_int_equal(cancelled, r->failed);
    return cancelled;
}

static void cancelling(void **state)
{
    (void)state;
    enum { LINES = 3000 };
    char *wanted[TEXTS];
    dgm_settings s;
    dgm_settings_default(&s);
    s.batch = 4;
    dgm_translator *t = open_with(&s, MODEL);
    make_wanted(t, wanted);
    dgm_input *in = make_inputs(LINES);
    dgm_job *first = NULL, *job = NULL, *last = NULL;
    dgm_results *r = NULL;
    assert_int_equal(dgm_submit(t, in, TEXTS, &first, NULL), DGM_OK);
    assert_int_equal(dgm_submit(t, in, LINES, &job, NULL), DGM_OK);
    assert_int_equal(dgm_submit(t, in, 2 * TEXTS, &last, NULL), DGM_OK);
    while (dgm_job_done(job) <= LINES / TEXTS) dgm_wait_for(job, 1); // more than the empty ones
    dgm_cancel(job);
    dgm_cancel(job); // once is enough
    assert_int_equal(dgm_wait(&job, &r, NULL), DGM_OK);
    const size_t cancelled = check_lines(r, wanted);
    assert_true(cancelled > 0 && cancelled < LINES - LINES / TEXTS);
    dgm_results_free(&r);
    dgm_job **others[] = {&first, &last}; // neighbours do not notice
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dgm_wait(others[i], &r, NULL), DGM_OK);
        assert_int_equal(check_lines(r, wanted), 0);
        dgm_results_free(&r);
    }
    assert_int_equal(dgm_submit(t, in, TEXTS, &job, NULL), DGM_OK);
    assert_int_equal(dgm_wait_for(job, -1), 1);
    dgm_cancel(job); // too late
    assert_int_equal(dgm_wait(&job, &r, NULL), DGM_OK);
    assert_int_equal(check_lines(r, wanted), 0);
    dgm_results_free(&r);
    free_wanted(wanted);
    free(in);
    dgm_close(&t);
}

// ---- all at once ---------------------------------------------------------------------------------

enum { CLIENTS = 8, ROUNDS = 12, MOST = 24 };

typedef struct client {
    pthread_t thread;
    dgm_translator *t;
    char *const *wanted;
    dgm_rng rng;
    int wrong;
} client;

static void one_round(client *c)
{
    dgm_input in[MOST];
    const size_t count = 1 + (size_t)dgm_rng_below(&c->rng, MOST);
    const bool timed = dgm_rng_below(&c->rng, 3) == 0;
    for (size_t i = 0; i < count; i++) {
        in[i] = input_of(sentences[i % TEXTS]);
        if (timed) in[i].deadline_ms = (int64_t)dgm_rng_below(&c->rng, 6);
    }
    dgm_job *job = NULL;
    dgm_results *r = NULL;
    const uint64_t what = dgm_rng_below(&c->rng, 4);
    watcher w = {.wanted = c->wanted, .lines = count, .cancel_at = what > 1 ? MOST + 1 : 0};
    const dgm_watch watch = watch_of(&w);
    const bool watched = dgm_rng_below(&c->rng, 2);
    if (dgm_submit_watched(c->t, in, count, watched ? &watch : NULL, &job, NULL) != DGM_OK) {
        c->wrong++;
        return;
    }
    if (what > 0) dgm_wait_for(job, (int64_t)dgm_rng_below(&c->rng, 4));
    if (what > 1) dgm_cancel(job);
    c->wrong += dgm_wait(&job, &r, NULL) != DGM_OK;
    c->wrong += watched && (w.wrong || w.done != count);
    for (size_t i = 0; watched && i < count; i++) c->wrong += w.calls[i] != 1;
    free_said(&w);
    for (size_t i = 0; i < count; i++) {
        const dgm_result *line = dgm_results_item(r, i);
        const bool late = line->flags & DGM_LINE_DEADLINE;
        c->wrong += late && in[i].deadline_ms == 0;
        if (line->status == DGM_OK)
            c->wrong += !late && strcmp(dgm_result_text(line), c->wanted[i % TEXTS]) != 0;
        else
            c->wrong += line->status != DGM_ERR_CANCELLED || (what < 2 && !late);
    }
    dgm_results_free(&r);
}

static void *client_main(void *arg)
{
    client *c = arg;
    for (int i = 0; i < ROUNDS; i++) one_round(c);
    return NULL;
}

static void many_clients(void **state)
{
    (void)state;
    const uint64_t blocks = dgm_mem_live();
    char *wanted[TEXTS];
    dgm_settings s;
    dgm_settings_default(&s);
    s.threads = 3;
    s.batch = 5;
    dgm_translator *t = open_with(&s, MODEL);
    make_wanted(t, wanted);
    client clients[CLIENTS] = {{0}};
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){.t = t, .wanted = wanted, .rng = {(uint64_t)i}};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_int_equal(clients[i].wrong, 0);
    }
    free_wanted(wanted);
    dgm_close(&t);
    assert_int_equal(dgm_mem_live(), blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_there),
        cmocka_unit_test(waiting_for),
        cmocka_unit_test(cancelling),
        cmocka_unit_test(many_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
