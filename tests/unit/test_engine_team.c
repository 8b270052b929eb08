// SPDX-License-Identifier: MIT
// One sentence on many cores: workers without a sentence help the others. Translations and scores are those of one
// thread, to the bit, while helpers come, go when sentences arrive, and sleep.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants the four above.
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/team.h"
#include "dragoman/dragoman.h"
#include "engine/engine_private.h"

static const char *const lines[] = {
    "Good morning.",
    "The house that my brother bought last year is small, but it has a large garden.",
    "What do you want?",
    "On Monday the committee decided, after a long discussion, that nothing should be changed.",
    "Thank you very much for your letter of the 3rd of May.",
};
enum { LINES = sizeof lines / sizeof lines[0], CALLERS = 3, CALLS = 6, THREADS = 4 };

typedef struct answer {
    char text[1000];
    float score;
} answer;

static dgm_translator *open_model(const char *model, const char *precision, int beam, int threads)
{
    dgm_translator *t = NULL;
    dgm_settings s;
    dgm_error error;
    dgm_settings_default(&s);
    s.threads = threads;
    s.beam = beam;
    s.precision = precision;
    if (dgm_open(&t, model, &s, &error) != DGM_OK) fail_msg("%s", error.text);
    return t;
}

static bool translate(dgm_translator *t, const char *line, answer *out)
{
    dgm_results *r = NULL;
    if (dgm_translate(t, &line, 1, &r, NULL) != DGM_OK) return false;
    const dgm_result *item = dgm_results_item(r, 0);
    const bool ok = item->status == DGM_OK;
    if (ok) {
        snprintf(out->text, sizeof out->text, "%s", dgm_result_text(item));
        out->score = item->translations[0]->score;
    }
    dgm_results_free(&r);
    return ok;
}

static bool same(const answer *a, const answer *b)
{
    return strcmp(a->text, b->text) == 0 && memcmp(&a->score, &b->score, sizeof a->score) == 0;
}

static void compare(const char *model, const char *precision, int beam)
{
    dgm_translator *alone = open_model(model, precision, beam, 1), *team = open_model(model, precision, beam, THREADS);
    for (int i = 0; i < LINES; i++) {
        answer a, b;
        assert_true(translate(alone, lines[i], &a));
        assert_true(translate(team, lines[i], &b));
        if (!same(&a, &b))
            fail_msg("%s %s beam %d: '%s' %.9g and '%s' %.9g", model, precision, beam, a.text, (double)a.score, b.text,
                     (double)b.score);
    }
    assert_int_equal(dgm_workers_shared(alone), 0);
    dgm_close(&alone);
    dgm_close(&team);
}

static void test_same_bits(void **state)
{
    (void)state;
    dgm_team_least(0);
    compare("models/en-de.gguf", "i8", 1);
    compare("models/en-de.gguf", "i8", 4);
    compare("models/en-de.gguf", "i16", 3);
    compare("models/en-de.gguf", "f32", 2);
    compare("tests/data/models/rnn-bahdanau-pieces.gguf", "i8", 4);
    compare("tests/data/models/transformer-pieces.gguf", "i8", 4);
    dgm_team_least(-1);
}

// Sentences of several callers: workers that help are called away, and come back.
typedef struct caller {
    dgm_translator *t;
    const answer *wanted;
    int number, wrong;
} caller;

static void *call(void *arg)
{
    caller *c = arg;
    for (int i = 0; i < CALLS; i++) {
        const int line = (c->number + i) % LINES;
        answer got;
        c->wrong += !translate(c->t, lines[line], &got) || !same(&got, &c->wanted[line]);
        nanosleep(&(struct timespec){0, 1000000 * (c->number + i % 2)}, NULL);
    }
    return NULL;
}

static void test_callers(void **state)
{
    (void)state;
    answer wanted[LINES];
    caller callers[CALLERS];
    pthread_t threads[CALLERS];
    dgm_team_least(0);
    dgm_translator *t = open_model("models/en-de.gguf", "i8", 2, 1);
    for (int i = 0; i < LINES; i++) assert_true(translate(t, lines[i], &wanted[i]));
    dgm_close(&t);
    t = open_model("models/en-de.gguf", "i8", 2, THREADS);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (caller){t, wanted, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].wrong, 0);
    }
    // On a machine with other work both threads seldom run at the same time: until they do.
    answer got;
    const double begin = dgm_now();
    while (t->cores > 1 && dgm_workers_shared(t) == 0) {
        assert_true(translate(t, lines[1], &got));
        assert_true(dgm_now() - begin < 300);
    }
    dgm_close(&t);
    dgm_team_least(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_callers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
