// SPDX-License-Identifier: MIT
// The public API over tiny models: settings, results, lines in odd shapes, jobs, ensembles,
// threads. Everything goes through include/dragoman, as a stranger's program would.
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "dragoman/dragoman.h"
#include "dragoman/tools.h"
#include "engine.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"
#define OTHER "tests/data/models/rnn-bahdanau-pieces.gguf"
#define WORDS "tests/data/models/rnn-devlin.gguf"

// The best translation of one text, copied.
static char *best_of(dgm_translator *t, const char *text)
{
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate(t, &text, 1, &r, NULL), DGM_OK);
    assert_int_equal(r->count, 1);
    assert_int_equal(r->failed, 0);
    char *copy = strdup(dgm_result_text(r->items[0]));
    dgm_results_free(&r);
    assert_null(r);
    return copy;
}

static void test_defaults(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    assert_int_equal(s.threads, 1);
    assert_int_equal(s.batch, 0);
    assert_int_equal(s.nbest, 1);
    assert_int_equal(s.beam, 0);
    dgm_translator *t = open_with(NULL, MODEL);
    const dgm_translator_info *i = dgm_describe(t);
    assert_string_equal(i->architecture, "transformer");
    assert_string_equal(i->source_language, "xx");
    assert_string_equal(i->precision, "i8");
    assert_string_equal(i->finish, "refill");
    assert_int_equal(i->beam, 4);
    assert_int_equal(i->models, 1);
    assert_true(i->parameters > 0 && i->packed_bytes > 0);
    assert_non_null(strstr(i->device, "cpu "));
    dgm_close(&t);
    assert_null(t);
    dgm_close(&t); // NULL is fine
    assert_string_equal(dgm_status_name(DGM_ERR_FORMAT), "invalid file");
    assert_string_equal(dgm_status_name((dgm_status)-99), "unknown status");
    assert_true(strlen(dgm_version()) > 0);
}

static void test_refusals(void **state)
{
    (void)state;
    dgm_translator *t = NULL;
    dgm_settings s;
    dgm_error error;
    assert_int_equal(dgm_open(&t, "missing.gguf", NULL, &error), DGM_ERR_IO);
    assert_null(t);
    assert_non_null(strstr(error.text, "missing.gguf"));
    assert_int_equal(dgm_open(&t, "missing.gguf", NULL, NULL), DGM_ERR_IO); // no message wanted
#define REFUSED(field, value, code)                                                                \
    do {                                                                                           \
        dgm_settings_default(&s);                                                                  \
        s.field = value;                                                                           \
        assert_int_equal(dgm_open(&t, MODEL, &s, &error), code);                                   \
        assert_null(t);                                                                            \
        assert_true(error.text[0] != 0);                                                           \
    } while (0)
    REFUSED(beam, -1, DGM_ERR_ARGUMENT);
    REFUSED(beam, 257, DGM_ERR_ARGUMENT);
    REFUSED(nbest, 0, DGM_ERR_ARGUMENT);
    REFUSED(nbest, 257, DGM_ERR_ARGUMENT);
    REFUSED(batch, -1, DGM_ERR_ARGUMENT);
    REFUSED(batch_tokens, -1, DGM_ERR_ARGUMENT);
    REFUSED(workspace, -1, DGM_ERR_ARGUMENT);
    REFUSED(workspace, 1, DGM_ERR_ARGUMENT);
    REFUSED(workspace, INT64_MAX, DGM_ERR_ARGUMENT);
    REFUSED(threads, -1, DGM_ERR_ARGUMENT);
    REFUSED(max_source, 3, DGM_ERR_ARGUMENT);
    REFUSED(length_penalty, NAN, DGM_ERR_ARGUMENT);
    REFUSED(word_penalty, INFINITY, DGM_ERR_ARGUMENT);
    REFUSED(finish, "later", DGM_ERR_ARGUMENT);
    REFUSED(search, "deep", DGM_ERR_ARGUMENT);
    REFUSED(mix, "cocktail", DGM_ERR_ARGUMENT);
    REFUSED(cpu, "z80", DGM_ERR_ARGUMENT);
    REFUSED(precision, "f64", DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_open_ensemble(&t, NULL, 0, NULL, &error), DGM_ERR_ARGUMENT);
}

static void test_lines(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    s.long_lines = DGM_LONG_ERROR;
    s.max_source = 16;
    dgm_translator *t = open_with(&s, MODEL);
    const char *texts[] = {
        "Good morning.", "",   "   ",          "Good morning, good morning, good morning.",
        "bad \xff byte", NULL, "Good morning."};
    dgm_results *r = NULL;
    dgm_error error;
    assert_int_equal(dgm_translate(t, texts, 7, &r, &error), DGM_OK);
    assert_int_equal(r->count, 7);
    assert_int_equal(r->failed, 1);
    assert_true(r->items[0]->translations[0]->text_size > 0);
    assert_int_equal(r->items[1]->count, 1);
    assert_string_equal(dgm_result_text(r->items[1]), "");
    assert_string_equal(dgm_result_text(r->items[2]), "");
    assert_int_equal(r->items[3]->status, DGM_ERR_TEXT);
    assert_int_equal(r->items[3]->count, 0);
    assert_true(r->items[3]->message[0] != 0);
    assert_string_equal(dgm_result_text(r->items[3]), "");
    assert_true(r->items[4]->flags & DGM_LINE_REPAIRED);
    assert_string_equal(dgm_result_text(r->items[5]), "");
    assert_string_equal(dgm_result_text(r->items[6]), dgm_result_text(r->items[0]));
    assert_true(r->source_tokens > 0 && r->target_tokens > 0);
    dgm_results_free(&r);
    assert_int_equal(dgm_translate(t, NULL, 0, &r, &error), DGM_OK); // nothing to do
    assert_int_equal(r->count, 0);
    dgm_results_free(&r);
    dgm_counters c;
    dgm_count(t, &c);
    assert_int_equal(c.lines, 7);
    assert_int_equal(c.sentences, 3);
    assert_true(c.steps > 0 && c.rows >= c.steps);
    dgm_close(&t);
}

static void test_splitting(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    s.max_source = 24;
    s.max_length = 8;
    s.alignment = DGM_ALIGN_WORDS;
    s.token_scores = 1;
    dgm_translator *t = open_with(&s, MODEL);
    const char *text = "Good morning. The house is small. Good morning, my house.";
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate(t, &text, 1, &r, NULL), DGM_OK);
    const dgm_result *line = r->items[0];
    assert_int_equal(line->status, DGM_OK);
    assert_true(line->pieces >= 3);
    assert_true(line->flags & DGM_LINE_SPLIT);
    const dgm_translation *x = line->translations[0];
    assert_int_equal(strlen(x->text), x->text_size);
    assert_null(strchr(x->text, '\n'));
    int words = 0, inside = 0;
    for (const char *p = x->text; *p; p++) {
        words += *p != ' ' && !inside;
        inside = *p != ' ';
    }
    for (size_t i = 0; i < x->link_count; i++) {
        assert_in_range(x->links[i].source, 0, 9); // ten words
        assert_true(x->links[i].target >= 0 && x->links[i].target < words);
        if (i) assert_true(x->links[i].target >= x->links[i - 1].target);
    }
    double sum = 0;
    for (size_t i = 0; i < x->token_count; i++) sum += (double)x->token_scores[i];
    assert_true(fabs(sum - (double)x->sum) < 1e-3);
    assert_true(fabs((double)x->score - sum / (double)x->token_count) < 1e-4); // penalty 1
    dgm_results_free(&r);
    dgm_close(&t);
}

static void test_crop(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    s.max_source = 16;
    s.long_lines = DGM_LONG_CROP;
    s.split = "none";
    dgm_translator *t = open_with(&s, MODEL);
    const char *text = "Good morning. The house is small. Good morning, my house.";
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate(t, &text, 1, &r, NULL), DGM_OK);
    assert_true(r->items[0]->flags & DGM_LINE_CROPPED);
    assert_int_equal(r->items[0]->pieces, 1);
    assert_int_equal(r->items[0]->source_tokens, 16);
    dgm_results_free(&r);
    dgm_close(&t);
}

static void test_nbest_and_prefix(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    s.beam = 4;
    s.nbest = 3;
    dgm_translator *t = open_with(&s, MODEL);
    dgm_input input = {.size = sizeof(dgm_input),
                       .text = "Good morning.\nsecond line ignored",
                       .text_size = 13,
                       .prefix = "haus",
                       .prefix_size = 4};
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate_inputs(t, &input, 1, &r, NULL), DGM_OK);
    const dgm_result *line = r->items[0];
    assert_int_equal(line->count, 3);
    for (size_t k = 0; k < line->count; k++) {
        assert_memory_equal(line->translations[k]->text, "haus", 4);
        if (k) assert_true(line->translations[k]->score <= line->translations[k - 1]->score);
    }
    dgm_results_free(&r);
    char *long_prefix = calloc(1, 40000);
    memset(long_prefix, 'x', 39999);
    input.prefix = long_prefix;
    input.prefix_size = 39999;
    assert_int_equal(dgm_translate_inputs(t, &input, 1, &r, NULL), DGM_OK);
    assert_int_equal(r->items[0]->status, DGM_ERR_TEXT);
    free(long_prefix);
    dgm_results_free(&r);
    dgm_close(&t);
}

// As many hypotheses as results are wanted, unless a beam was asked for.
static void test_nbest_widens_the_beam(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_error error;
    dgm_settings_default(&s);
    s.nbest = 9;
    dgm_translator *t = open_with(&s, MODEL);
    assert_int_equal(dgm_describe(t)->beam, 9);
    dgm_close(&t);
    s.nbest = 2;
    t = open_with(&s, MODEL);
    assert_int_equal(dgm_describe(t)->beam, 4); // the model's
    dgm_close(&t);
    s.nbest = 9;
    s.beam = 4;
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_ARGUMENT);
    s.beam = 0;
    s.search = "greedy";
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_ARGUMENT);
}

static void test_jobs(void **state)
{
    (void)state;
    dgm_translator *t = open_with(NULL, MODEL);
    char *want = best_of(t, "The house is small.");
    dgm_job *jobs[3] = {0};
    dgm_error error;
    for (int i = 0; i < 3; i++) {
        char text[] = "The house is small."; // freed before the job is done
        dgm_input inputs[5] = {{0}};
        for (int k = 0; k < 5; k++)
            inputs[k] =
                (dgm_input){.size = sizeof(dgm_input), .text = text, .text_size = strlen(text)};
        assert_int_equal(dgm_submit(t, inputs, 5, &jobs[i], &error), DGM_OK);
        memset(text, 0, sizeof text);
    }
    for (int i = 2; i >= 0; i--) { // in any order
        dgm_results *r = NULL;
        double share = 0; // grows to 1, and is 1 with the last line
        while (dgm_job_done(jobs[i]) < 5) {
            const double now = dgm_job_share(jobs[i]);
            assert_true(now >= share && now <= 1);
            share = now;
        }
        assert_true(dgm_job_share(jobs[i]) >= 1);
        assert_int_equal(dgm_wait(&jobs[i], &r, &error), DGM_OK);
        assert_null(jobs[i]);
        for (size_t k = 0; k < r->count; k++)
            assert_string_equal(dgm_result_text(r->items[k]), want);
        dgm_results_free(&r);
    }
    dgm_results *none = NULL;
    assert_int_equal(dgm_wait(&jobs[0], &none, &error), DGM_ERR_ARGUMENT);
    free(want);
    dgm_close(&t);
}

static void test_ensembles(void **state)
{
    (void)state;
    dgm_translator *one = open_with(NULL, MODEL), *t = NULL;
    dgm_error error;
    char *want = best_of(one, "Good morning.");
    const dgm_member same[] = {{MODEL, 0}, {MODEL, 0}};
    assert_int_equal(dgm_open_ensemble(&t, same, 2, NULL, &error), DGM_OK);
    char *got = best_of(t, "Good morning.");
    assert_string_equal(got, want);
    dgm_close(&t);
    const dgm_member mixed[] = {{MODEL, 2}, {OTHER, 1}};
    assert_int_equal(dgm_open_ensemble(&t, mixed, 2, NULL, &error), DGM_OK);
    assert_int_equal(dgm_describe(t)->models, 2);
    dgm_close(&t);
    const dgm_member strangers[] = {{MODEL, 0}, {WORDS, 0}};
    assert_int_equal(dgm_open_ensemble(&t, strangers, 2, NULL, &error), DGM_ERR_UNSUPPORTED);
    const dgm_member half[] = {{MODEL, 1}, {MODEL, 0}};
    assert_int_equal(dgm_open_ensemble(&t, half, 2, NULL, &error), DGM_ERR_ARGUMENT);
    free(want);
    free(got);
    dgm_close(&one);
}

// The decode loop allocates nothing: calls that make ten times as many steps, and wider beams,
// allocate as often as short ones.
static void test_decode_loop_allocates_nothing(void **state)
{
    (void)state;
    uint64_t counts[4];
    const int lengths[4] = {2, 30, 30, 30}, beams[4] = {2, 2, 8, 2};
    uint64_t steps[4];
    for (int i = 0; i < 4; i++) {
        dgm_settings s;
        dgm_settings_default(&s);
        s.max_length = lengths[i];
        s.beam = beams[i];
        s.finish = "huggingface";
        s.length_penalty = 3; // long outputs
        dgm_translator *t = open_with(&s, MODEL);
        char *first = best_of(t, "The house is small."); // scratch buffers grow once
        dgm_counters before, after;
        dgm_count(t, &before);
        uint64_t start = dgm_mem_allocations();
        char *again = best_of(t, "The house is small.");
        counts[i] = dgm_mem_allocations() - start;
        dgm_count(t, &after);
        steps[i] = after.steps - before.steps;
        assert_string_equal(first, again);
        free(first);
        free(again);
        dgm_close(&t);
    }
    assert_true(steps[1] > 5 * steps[0]);
    assert_int_equal(counts[0], counts[1]);
    assert_int_equal(counts[1], counts[2]);
    assert_int_equal(counts[1], counts[3]);
}

// ---- threads ----------------------------------------------------------------------------------

typedef struct client {
    pthread_t thread;
    dgm_translator *t;
    const char *const *texts;
    char *const *want;
    int offset, wrong;
} client;

enum { TEXTS = 8, CLIENTS = 4, ROUNDS = 6 };

static void *client_main(void *arg)
{
    client *c = arg;
    for (int round = 0; round < ROUNDS; round++) {
        const char *texts[TEXTS];
        for (int i = 0; i < TEXTS; i++) texts[i] = c->texts[(i + c->offset + round) % TEXTS];
        dgm_results *r = NULL;
        if (dgm_translate(c->t, texts, TEXTS, &r, NULL) != DGM_OK) {
            c->wrong++;
            continue;
        }
        for (int i = 0; i < TEXTS; i++)
            c->wrong +=
                strcmp(dgm_result_text(r->items[i]), c->want[(i + c->offset + round) % TEXTS]) != 0;
        dgm_results_free(&r);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    static const char *const texts[TEXTS] = {"Good morning.",
                                             "The house is small.",
                                             "a",
                                             "",
                                             "My house is your house, he said.",
                                             "one two three four five six seven",
                                             "Good. Morning. House.",
                                             "w"};
    char *want[TEXTS];
    dgm_translator *t = open_with(NULL, MODEL);
    for (int i = 0; i < TEXTS; i++) want[i] = best_of(t, texts[i]);
    dgm_close(&t);
    for (int workers = 1; workers <= 3; workers++) {
        dgm_settings s;
        dgm_settings_default(&s);
        s.threads = workers;
        s.batch = 5;
        t = open_with(&s, MODEL);
        client clients[CLIENTS] = {{0}};
        for (int i = 0; i < CLIENTS; i++) {
            clients[i] = (client){.t = t, .texts = texts, .want = want, .offset = i};
            assert_int_equal(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
        }
        for (int i = 0; i < CLIENTS; i++) {
            pthread_join(clients[i].thread, NULL);
            assert_int_equal(clients[i].wrong, 0);
        }
        dgm_counters c;
        dgm_count(t, &c);
        assert_int_equal(c.lines, CLIENTS * ROUNDS * TEXTS);
        dgm_close(&t);
    }
    for (int i = 0; i < TEXTS; i++) free(want[i]);
}

static void test_pairs(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    s.threads = 2;
    s.batch = 3;
    dgm_translator *t = open_with(&s, MODEL);
    dgm_pair pairs[10];
    for (int i = 0; i < 10; i++)
        pairs[i] = (dgm_pair){{"Good morning.", 13}, {"the house and", (size_t)(i % 5 * 3)}};
    dgm_pair_scores *scores = NULL;
    dgm_error error;
    assert_int_equal(dgm_score_pairs(t, pairs, 10, &scores, &error), DGM_OK);
    assert_int_equal(scores->count, 10);
    for (int i = 0; i < 10; i++) {
        const dgm_pair_score *p = scores->items[i];
        double sum = 0;
        assert_int_equal(p->status, DGM_OK);
        for (size_t k = 0; k < p->token_count; k++) sum += (double)p->token_scores[k];
        assert_true(fabs(sum - (double)p->sum) < 1e-3);
        assert_true(p->sum == scores->items[i % 5]->sum); // neighbours do not matter
        assert_string_equal(p->tokens[p->token_count - 1], "</s>");
    }
    dgm_pair_scores_free(&scores);
    assert_null(scores);
    dgm_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_splitting),
        cmocka_unit_test(test_crop),
        cmocka_unit_test(test_nbest_and_prefix),
        cmocka_unit_test(test_nbest_widens_the_beam),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_ensembles),
        cmocka_unit_test(test_decode_loop_allocates_nothing),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
