// SPDX-License-Identifier: MIT
// Fuzz target: calls of the public interface in any order from several threads. The first bytes choose the settings of
// a translator over a tiny model; the rest is a script, each byte an operation of one of three threads: submit (also
// watched), cancel, wait with and without a limit, ask, borrow the weights, translate. Jobs may be cancelled by any
// thread, as their functions do, too. What is translated without a limit of time is what one call alone gives.
// Parsers: src/engine/api.c src/engine/batcher.c
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dragoman/dragoman.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { THREADS = 3, PLACES = 2, TEXTS = 6, OPERATIONS = 48 };

static const char *const texts[TEXTS] = {"a", "ab cd", "", "the cat. a dog!", "\xff\xfe 3 \xe2\x82\xac", "x y z x y z"};

typedef struct script {
    dgm_translator *t;
    const uint8_t *ops;
    size_t count;
    int thread, beam;
    dgm_job *jobs[PLACES];
    uint8_t first[PLACES]; // texts of each job begin with this one
    bool limited[PLACES];  // it may end early
} script;

static char *known[2][TEXTS]; // translations at beams 1 and 2
static script scripts[THREADS];
static pthread_barrier_t begin, end; // of a run of all threads, which stay for the next one

static void require(bool what)
{
    if (!what) abort();
}

static dgm_translator *open_model(const uint8_t *how, const dgm_translator *lender)
{
    dgm_settings s;
    dgm_translator *t = NULL;
    dgm_settings_default(&s);
    s.beam = 1 + (how[0] & 1);
    s.threads = 1 + (how[0] >> 1 & 1);
    s.batch = 1 + (how[0] >> 2 & 3);
    s.max_length = 4;
    s.workspace = 32 << 20;
    s.protect = 0;
    s.search = how[0] & 16 ? "beam" : NULL;
    require((lender ? dgm_open_like(&t, lender, &s, NULL)
                    : dgm_open(&t, "tests/data/models/transformer-pieces.gguf", &s, NULL)) == DGM_OK);
    return t;
}

static void check(const script *s, const dgm_results *r, size_t first, bool limited)
{
    for (size_t i = 0; i < r->count; i++) {
        const dgm_result *x = r->items[i];
        require(x->status == DGM_OK || x->status == DGM_ERR_CANCELLED);
        if (x->status == DGM_OK && !limited)
            require(strcmp(dgm_result_text(x), known[s->beam - 1][(first + i) % TEXTS]) == 0);
    }
}

static void on_line(void *user, size_t index, const dgm_result *result)
{
    (void)index;
    require(result->message != NULL);
    dgm_job **job = user;
    if (*job && result->source_tokens % 3 == 0) dgm_cancel(*job);
}

static void on_partial(void *user, size_t index, const char *text, size_t size)
{
    (void)user;
    (void)index;
    require(strlen(text) == size);
}

static void submit(script *s, int place, uint8_t op)
{
    if (s->jobs[place]) return;
    dgm_input in[4];
    const size_t count = 1 + (op >> 4 & 3);
    s->first[place] = op >> 2 & 3;
    s->limited[place] = op >> 6 == 3;
    for (size_t i = 0; i < count; i++) {
        dgm_input_default(&in[i]);
        in[i].text = texts[(s->first[place] + i) % TEXTS];
        in[i].text_size = strlen(in[i].text);
        in[i].deadline_ms = s->limited[place] ? 1 : 0;
    }
    const dgm_watch w = {.size = sizeof w, .user = &s->jobs[place], .line = op & 64 ? on_line : NULL,
                         .partial = op & 128 ? on_partial : NULL};
    require((op & 192 ? dgm_submit_watched(s->t, in, count, &w, &s->jobs[place], NULL)
                      : dgm_submit(s->t, in, count, &s->jobs[place], NULL)) == DGM_OK);
}

static void finish(script *s, int place)
{
    dgm_results *r = NULL;
    if (!s->jobs[place]) return;
    require(dgm_wait(&s->jobs[place], &r, NULL) == DGM_OK && !s->jobs[place]);
    check(s, r, s->first[place], s->limited[place]);
    dgm_results_free(&r);
}

static void ask(script *s, int place, uint8_t op)
{
    dgm_results *r = NULL;
    dgm_counters c;
    const dgm_job *job = s->jobs[place];
    const double share = job ? dgm_job_share(job) : 0;
    require(share >= 0 && share <= 1 && (!job || dgm_job_done(job) <= 4));
    dgm_count(s->t, &c);
    require(dgm_describe(s->t)->beam == s->beam);
    if (op & 4) {
        require(dgm_translate(s->t, &texts[op >> 4 & 3], 2, &r, NULL) == DGM_OK);
        check(s, r, op >> 4 & 3, false);
        dgm_results_free(&r);
    } else if (op & 8) {
        dgm_translator *other = open_model((const uint8_t[]){(uint8_t)(op >> 4)}, s->t);
        dgm_close(&other);
    }
}

static void run(script *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const uint8_t op = s->ops[i];
        const int place = op >> 1 & 1;
        if ((int)(i % THREADS) != s->thread) continue;
        switch (op & 1 ? 3 : op >> 2 & 3) {
        case 0: dgm_cancel(s->jobs[place]); break; // of this thread's own: another's may be gone
        case 1: finish(s, place); break;
        case 2: (void)dgm_wait_for(s->jobs[place], op >> 4 & 1); break;
        default:
            if (op & 1) submit(s, place, op);
            else ask(s, place, op);
        }
    }
    for (int i = 0; i < PLACES; i++) finish(s, i);
}

static void *run_all(void *arg)
{
    for (;;) {
        pthread_barrier_wait(&begin);
        run(arg);
        pthread_barrier_wait(&end);
    }
    return NULL;
}

static void start_threads(void)
{
    pthread_t thread;
    require(pthread_barrier_init(&begin, NULL, THREADS + 1) == 0 && pthread_barrier_init(&end, NULL, THREADS + 1) == 0);
    for (int i = 0; i < THREADS; i++) {
        require(pthread_create(&thread, NULL, run_all, &scripts[i]) == 0);
        pthread_detach(thread);
    }
}

static void learn(void)
{
    for (int b = 0; b < 2; b++) {
        dgm_results *r = NULL;
        dgm_translator *t = open_model((const uint8_t[]){(uint8_t)b}, NULL);
        require(dgm_translate(t, texts, TEXTS, &r, NULL) == DGM_OK);
        for (int i = 0; i < TEXTS; i++) require((known[b][i] = strdup(dgm_result_text(r->items[i]))) != NULL);
        dgm_results_free(&r);
        dgm_close(&t);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static dgm_translator *lender;
    if (!lender) {
        learn();
        lender = open_model((const uint8_t[]){0}, NULL);
        start_threads();
    }
    if (size < 2) return 0;
    dgm_translator *t = open_model(data, lender);
    for (int i = 0; i < THREADS; i++)
        scripts[i] = (script){.t = t, .ops = data + 1, .count = size - 1 < OPERATIONS ? size - 1 : OPERATIONS,
                              .thread = i, .beam = 1 + (data[0] & 1)};
    pthread_barrier_wait(&begin);
    pthread_barrier_wait(&end);
    dgm_close(&t);
    return 0;
}
