// SPDX-License-Identifier: MIT
// Who watches a job: every line as soon as it is ready, the progress, and how translations begin while
// they are searched for. What was said stays: every beginning is one of the next and of the translation.
// And deadlines, which a watcher in the middle of a search can wait for.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dragoman/dragoman.h"
#include "dragoman/settings.h"
#include "engine/engine_private.h"
#include "jobs.h"

#define FOLDER "tests/data/models/"
#define OTHER FOLDER "rnn-bahdanau-pieces.gguf"
#define WORDS FOLDER "rnn-devlin.gguf"
#define PAIRS FOLDER "double-pieces.gguf"
#define BACKWARDS FOLDER "transformer-r2l.gguf"
#define WHOLE FOLDER "cmlm-pieces.gguf"

// ---- lines and progress --------------------------------------------------------------------------

static void watching(void **state)
{
    (void)state;
    char *wanted[TEXTS];
    dgm_settings s;
    dgm_settings_default(&s);
    s.threads = 5; // two text threads
    s.batch = 2;
    dgm_translator *t = open_with(&s, MODEL);
    make_wanted(t, wanted);
    for (size_t cancel_at = 0; cancel_at < 20; cancel_at += 9) {
        watcher w = {.wanted = wanted, .lines = 40, .cancel_at = cancel_at};
        const dgm_watch watch = watch_of(&w);
        dgm_input *in = make_inputs(40);
        dgm_results *r = NULL;
        assert_int_equal(dgm_submit_watched(t, in, 40, &watch, &w.job, NULL), DGM_OK);
        dgm_job *job = w.job;
        assert_int_equal(dgm_wait(&job, &r, NULL), DGM_OK);
        check_watcher(&w, r);
        free_said(&w);
        dgm_results_free(&r);
        free(in);
    }
    const dgm_watch unfilled = {.line = hear_line};
    dgm_error error;
    dgm_job *job = NULL;
    dgm_input in = input_of("a");
    assert_int_equal(dgm_submit_watched(t, &in, 1, &unfilled, &job, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "dgm_watch"));
    free_wanted(wanted);
    dgm_close(&t);
}

// A line is heard of while the job goes on: the job cannot end before the function returns.
static void waiting_for_a_watcher(void **state)
{
    (void)state;
    char *wanted[TEXTS];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    dgm_translator *t = open_with(NULL, MODEL);
    make_wanted(t, wanted);
    watcher w = {.wanted = wanted, .lines = 8, .gate = &gate};
    const dgm_watch watch = watch_of(&w);
    dgm_input *in = make_inputs(8);
    dgm_results *r = NULL;
    pthread_mutex_lock(&gate);
    assert_int_equal(dgm_submit_watched(t, in, 8, &watch, &w.job, NULL), DGM_OK);
    assert_int_equal(dgm_wait_for(w.job, 0), 0);
    assert_int_equal(dgm_wait_for(w.job, 20), 0);
    assert_int_equal(dgm_job_done(w.job), 0);
    pthread_mutex_unlock(&gate);
    assert_int_equal(dgm_wait_for(w.job, -1), 1);
    assert_int_equal(dgm_wait(&w.job, &r, NULL), DGM_OK);
    check_watcher(&w, r);
    free_said(&w);
    dgm_results_free(&r);
    free(in);
    free_wanted(wanted);
    dgm_close(&t);
}

// ---- how translations begin ----------------------------------------------------------------------

static int repeated; // lines that were cut where they began to repeat themselves

// Translates all lines and checks what is said of them; how often something was said before the end.
static int say_all(const char *model, const char *search, int beam, const char *finish, bool raw)
{
    char *wanted[TEXTS];
    dgm_settings s;
    dgm_settings_default(&s);
    s.search = search;
    s.beam = beam;
    s.finish = finish;
    s.raw = raw;
    if (raw) s.long_lines = DGM_LONG_CROP; // one part each
    s.max_length = 24;
    s.threads = 2;
    s.batch = 3;
    dgm_translator *t = open_with(&s, model);
    make_wanted(t, wanted);
    watcher w = {.wanted = wanted, .lines = 2 * TEXTS};
    const dgm_watch watch = watch_of(&w);
    dgm_input *in = make_inputs(w.lines);
    dgm_results *r = NULL;
    assert_int_equal(dgm_submit_watched(t, in, w.lines, &watch, &w.job, NULL), DGM_OK);
    assert_int_equal(dgm_wait(&w.job, &r, NULL), DGM_OK);
    check_watcher(&w, r);
    for (size_t i = 0; i < r->count; i++)
        repeated += (dgm_results_item(r, i)->flags & DGM_LINE_REPEATED) != 0;
    free_said(&w);
    dgm_results_free(&r);
    free(in);
    free_wanted(wanted);
    dgm_close(&t);
    return w.partials - (int)w.lines;
}

static void saying(void **state)
{
    (void)state;
    static const char *const finishes[] = {"margin", "shrink", "mask", "refill", "huggingface", "first"};
    int early = 0;
    repeated = 0;
    for (int i = 0; i < 6; i++) early += say_all(MODEL, "beam", 4, finishes[i], false);
    assert_true(early > 0);
    assert_true(repeated > 0); // which must not be said and taken back
    assert_true(say_all(MODEL, "greedy", 1, NULL, false) > 0);
    assert_true(say_all(MODEL, "greedy", 1, NULL, true) > 0);
    assert_true(say_all(MODEL, "cube", 4, NULL, false) > 0);
    assert_true(say_all(WORDS, "beam", 3, NULL, false) > 0);
    assert_true(say_all(OTHER, "beam", 3, NULL, false) > 0);
}

// Searches that do not go on from where they were: a sentence when it is finished.
static void saying_whole_sentences(void **state)
{
    (void)state;
    static const struct {
        const char *model, *search;
        int beam;
    } ways[] = {{MODEL, "sample", 0}, {PAIRS, "double", 3}, {BACKWARDS, "beam", 3}, {WHOLE, "mask-predict", 0}};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(say_all(ways[i].model, ways[i].search, ways[i].beam, NULL, true), 0);
        const int early = say_all(ways[i].model, ways[i].search, ways[i].beam, NULL, false);
        // Text of this model is tokenised already, and not cut into sentences.
        assert_true(strcmp(ways[i].model, BACKWARDS) == 0 || early > 0);
    }
}

typedef struct heard {
    int count;
    char *text[2];
} heard;

static void count_partials(void *user, size_t index, const char *text, size_t size)
{
    heard *h = user;
    (void)size;
    h->count++;
    free(h->text[index]);
    h->text[index] = strdup(text);
}

static void hear_prefix(void *user, size_t index, const char *text, size_t size)
{
    heard *h = user;
    if (h->text[0]) assert_true(strncmp(text, h->text[0], strlen(h->text[0])) == 0);
    count_partials(h, index, text, size);
}

// Words come earlier where hypotheses that differ far back are given up, and are still never taken back.
static void settling(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "It is no surprise that the idea appeals to people who live in cities, as the taxes could be used to change "
        "how they drive and where they go.",
        "They estimate the additional costs that they will have as a result of the new law, which they will be able "
        "to pass on to the people who buy from them.",
        "Under the new rules, houses can be sold to everybody who lives there, and others wait for up to one year."};
    int told[3] = {0};
    for (int i = 0; i < 3; i++) {
        dgm_settings s;
        dgm_settings_default(&s);
        s.search = i == 2 ? "cube" : "beam";
        s.beam = 6;
        assert_int_equal(dgm_settings_set(&s, "no-protect", "1", NULL), DGM_OK);
        dgm_translator *t = open_with(&s, "models/en-de.gguf");
        heard h = {0};
        dgm_watch watch = {.size = sizeof watch, .user = &h, .partial = hear_prefix, .settle = i ? 3 : 0};
        for (int line = 0; line < 3; line++) {
            dgm_input in = input_of(lines[line]);
            dgm_job *job = NULL;
            dgm_results *r = NULL;
            assert_int_equal(dgm_submit_watched(t, &in, 1, &watch, &job, NULL), DGM_OK);
            assert_int_equal(dgm_wait(&job, &r, NULL), DGM_OK);
            const dgm_result *result = dgm_results_item(r, 0);
            assert_int_equal(result->status, DGM_OK);
            assert_string_equal(h.text[0], dgm_result_text(result));
            free(h.text[0]);
            h.text[0] = NULL;
            dgm_results_free(&r);
        }
        told[i] = h.count;
        dgm_error error;
        dgm_job *job = NULL;
        dgm_input in = input_of("a");
        watch.settle = -1;
        assert_int_equal(dgm_submit_watched(t, &in, 1, &watch, &job, &error), DGM_ERR_ARGUMENT);
        assert_non_null(strstr(error.text, "settle"));
        dgm_close(&t);
    }
    assert_true(told[1] > told[0]);
    assert_true(told[2] > told[0]);
}

// What is changed when it is whole is not told before: capitals, constraints.
static void saying_nothing_early(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    s.search = "greedy";
    s.max_length = 30;
    dgm_translator *t = open_with(&s, MODEL);
    heard h = {0};
    const dgm_watch watch = {.size = sizeof watch, .user = &h, .partial = count_partials};
    dgm_input in[2] = {input_of("MY HOUSE IS YOUR HOUSE, HE SAID."), input_of("My house is your house.")};
    in[1].constraints = "! zzzz";
    in[1].constraints_size = strlen(in[1].constraints);
    dgm_job *job = NULL;
    dgm_results *r = NULL;
    assert_int_equal(dgm_submit_watched(t, in, 2, &watch, &job, NULL), DGM_OK);
    assert_int_equal(dgm_wait(&job, &r, NULL), DGM_OK);
    assert_int_equal(r->failed, 0);
    assert_int_equal(h.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(h.text[i], dgm_result_text(dgm_results_item(r, i)));
        free(h.text[i]);
    }
    dgm_results_free(&r);
    dgm_close(&t);
}

// However a hypothesis goes on, what is settled of it is not cut away.
static void settled(void **state)
{
    (void)state;
    enum { LONGEST_TRIED = 40 };
    dgm_rng rng = {11};
    int cuts = 0;
    for (int round = 0; round < 20000; round++) {
        int32_t tokens[LONGEST_TRIED], source[1] = {9};
        const int count = 1 + (int)dgm_rng_below(&rng, LONGEST_TRIED);
        const int period = 1 + (int)dgm_rng_below(&rng, 9), from = (int)dgm_rng_below(&rng, 12);
        for (int i = 0; i < count; i++) {
            tokens[i] = (int32_t)dgm_rng_below(&rng, 3);
            const bool copies = i >= from + period && (i < count - 3 || dgm_rng_below(&rng, 2));
            if (copies && dgm_rng_below(&rng, 50)) tokens[i] = tokens[i - period];
        }
        dgm_job job = {.encoded.tokens = source};
        dgm_line_state line = {.job = &job};
        dgm_raw hyp = {.tokens = tokens, .count = count};
        dgm_piece_state piece = {.line = &line, .text_count = 1, .hyps = &hyp, .hyp_count = 1};
        dgm_piece_cut(&piece);
        cuts += piece.repeated;
        for (int n = 1; n <= count; n++) assert_true(dgm_runaway_settled(tokens, n) <= hyp.count);
    }
    assert_true(cuts > 1000);
    const int32_t plain[] = {1, 2, 3, 4, 5};
    assert_int_equal(dgm_runaway_settled(plain, 5), 5);
}

// ---- deadlines -----------------------------------------------------------------------------------

// A function that is called in the middle of a search holds the search up, so that what happens there
// happens before the next word.
typedef struct holder {
    dgm_job *job;
    bool cancels;
    double until; // which it waits for, once
    char *first;  // what was said then
} holder;

static void hold(void *user, size_t index, const char *text, size_t size)
{
    holder *h = user;
    (void)size;
    if (h->first || index > 0) return;
    h->first = strdup(text);
    if (h->cancels) dgm_cancel(h->job);
    while (dgm_now() < h->until) usleep(1000);
}

enum { HELD = 3 };

// The second line has no deadline, the third waits behind the first and has its deadline.
static dgm_results *translate_held(dgm_translator *t, holder *h, const char *text, int64_t deadline_ms)
{
    const dgm_watch watch = {.size = sizeof watch, .user = h, .partial = hold};
    dgm_results *r = NULL;
    dgm_input in[HELD] = {input_of(text), input_of("w"), input_of("My house")};
    in[0].deadline_ms = in[2].deadline_ms = deadline_ms;
    h->until = h->cancels ? 0 : dgm_now() + 1e-3 * (double)deadline_ms + 0.01;
    assert_int_equal(dgm_submit_watched(t, in, HELD, &watch, &h->job, NULL), DGM_OK);
    assert_int_equal(dgm_wait(&h->job, &r, NULL), DGM_OK);
    return r;
}

// The same with a deadline that is not over before the search has said anything.
static dgm_results *translate_late(dgm_translator *t, holder *h, const char *text)
{
    for (int64_t ms = 100;; ms *= 4) {
        *h = (holder){0};
        dgm_results *r = translate_held(t, h, text, ms);
        const dgm_result *line = dgm_results_item(r, 0);
        if (h->first && line->status == DGM_OK && (line->flags & DGM_LINE_DEADLINE)) return r;
        assert_true(ms < 100000);
        dgm_results_free(&r);
        free(h->first);
    }
}

static dgm_translator *open_held(const char *search, bool raw)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.search = search;
    s.beam = strcmp(search, "greedy") == 0 ? 1 : 3;
    s.batch = 1; // the longest sentence first
    s.min_length = s.max_length = 40;
    s.token_scores = 1;
    s.alignment = DGM_ALIGN_WORDS;
    s.raw = raw;
    return open_with(&s, MODEL);
}

static void check_missed(const dgm_result *line)
{
    assert_int_equal(line->status, DGM_ERR_CANCELLED);
    assert_int_equal(line->flags, DGM_LINE_DEADLINE);
    assert_non_null(strstr(line->message, "deadline"));
    assert_int_equal(line->count, 0);
}

static void stopping_a_search(void **state)
{
    (void)state;
    static const char *const searches[] = {"greedy", "beam", "cube"};
    static const char *const held = "My house is your house, he said";
    for (int i = 0; i < 3; i++) {
        dgm_translator *t = open_held(searches[i], true);
        const char *texts[] = {held, "w"};
        dgm_results *whole = NULL;
        holder h;
        assert_int_equal(dgm_translate(t, texts, 2, &whole, NULL), DGM_OK);
        dgm_results *r = translate_late(t, &h, held);
        const dgm_result *line = dgm_results_item(r, 0), *other = dgm_results_item(r, 1);
        assert_int_equal(line->status, DGM_OK);
        assert_int_equal(line->flags, DGM_LINE_DEADLINE);
        assert_int_equal(line->translations[0]->finished, 0);
        const char *text = dgm_result_text(line);
        assert_memory_equal(text, h.first, strlen(h.first));
        assert_true(strlen(text) < strlen(dgm_result_text(dgm_results_item(whole, 0))));
        assert_true(line->translations[0]->token_count < 41);
        assert_int_equal(other->flags, dgm_results_item(whole, 1)->flags);
        assert_string_equal(dgm_result_text(other), dgm_result_text(dgm_results_item(whole, 1)));
        check_missed(dgm_results_item(r, 2));
        dgm_results_free(&r);
        dgm_results_free(&whole);
        free(h.first);
        dgm_close(&t);
    }
}

// Of a line in parts: what its first sentence has become, nothing of the second, what passes through.
static void stopping_a_split_line(void **state)
{
    (void)state;
    dgm_translator *t = open_held("greedy", false);
    holder h;
    dgm_results *r = translate_late(t, &h, "My house is your house, he said. Good morning. 12:30");
    const dgm_result *line = dgm_results_item(r, 0);
    assert_int_equal(line->status, DGM_OK);
    assert_int_equal(line->pieces, 3);
    const uint32_t flags = DGM_LINE_DEADLINE | DGM_LINE_SPLIT | DGM_LINE_COPIED;
    assert_int_equal(line->flags & ~(uint32_t)DGM_LINE_REPEATED, flags);
    assert_int_equal(line->translations[0]->finished, 0); // the second sentence is missing
    const char *text = dgm_result_text(line);
    assert_memory_equal(text, h.first, strlen(h.first));
    assert_string_equal(text + strlen(text) - 6, " 12:30");
    dgm_results_free(&r);
    free(h.first);
    dgm_close(&t);
}

static void cancelling_a_search(void **state)
{
    (void)state;
    dgm_translator *t = open_held("beam", true);
    for (int64_t deadline = 0; deadline < 2; deadline++) { // also of lines that have one
        holder h = {.cancels = true};
        dgm_results *r = translate_held(t, &h, "My house is your house, he said", deadline * 100000);
        assert_non_null(h.first);
        assert_int_equal(r->failed, HELD); // the one inside, those in the queue
        for (size_t i = 0; i < HELD; i++) {
            assert_int_equal(dgm_results_item(r, i)->status, DGM_ERR_CANCELLED);
            assert_string_equal(dgm_results_item(r, i)->message, "cancelled");
        }
        dgm_results_free(&r);
        free(h.first);
    }
    dgm_close(&t);
}

// Every way of writing can be stopped at any time, and lines without a deadline do not notice.
static void deadlines_everywhere(void **state)
{
    (void)state;
    static const struct {
        const char *model, *search;
    } ways[] = {{MODEL, "beam"},   {MODEL, "sample"}, {MODEL, "cube"},     {OTHER, "beam"},
                {WORDS, "greedy"}, {PAIRS, "double"}, {BACKWARDS, "beam"}, {WHOLE, "mask-predict"}};
    size_t late = 0;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char *wanted[TEXTS];
        dgm_settings s;
        dgm_settings_default(&s);
        s.search = ways[i].search;
        s.max_length = 24;
        s.batch = 4;
        s.exact_scores = 1; // cube pruning: they may be stopped while results are scored again
        dgm_translator *t = open_with(&s, ways[i].model);
        make_wanted(t, wanted);
        const size_t count = 10 * TEXTS;
        dgm_input *in = make_inputs(count);
        for (size_t k = 0; k < count; k++) in[k].deadline_ms = k % 3 ? (int64_t)k / 4 : 0;
        dgm_results *r = NULL;
        assert_int_equal(dgm_translate_inputs(t, in, count, &r, NULL), DGM_OK);
        for (size_t k = 0; k < count; k++) {
            const dgm_result *line = dgm_results_item(r, k);
            late += (line->flags & DGM_LINE_DEADLINE) != 0;
            if (line->flags & DGM_LINE_DEADLINE)
                assert_true(in[k].deadline_ms && (line->status == DGM_OK || line->status == DGM_ERR_CANCELLED));
            else
                assert_string_equal(dgm_result_text(line), wanted[k % TEXTS]);
        }
        dgm_results_free(&r);
        free(in);
        free_wanted(wanted);
        dgm_close(&t);
    }
    print_message("%zu lines were late\n", late);
    dgm_translator *t = open_with(NULL, MODEL);
    dgm_input in[2] = {input_of("a"), input_of("b")};
    in[1].deadline_ms = -1;
    dgm_error error;
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate_inputs(t, in, 2, &r, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "deadline_ms of line 2 is -1"));
    dgm_close(&t);
}

// ---- without memory ------------------------------------------------------------------------------

typedef struct counted {
    int lines, partials;
} counted;

static void count_line(void *user, size_t index, const dgm_result *result)
{
    (void)index;
    (void)result;
    ((counted *)user)->lines++;
}

static void count_partial(void *user, size_t index, const char *text, size_t size)
{
    (void)index;
    ((counted *)user)->partials += text[size] == 0;
}

// A watched job with deadlines that runs out of memory somewhere: lines fail, or are right.
static void short_of_memory(void **state)
{
    (void)state;
    enum { SPLIT = 7 };
    char *wanted[TEXTS];
    dgm_translator *t = open_with(NULL, MODEL);
    make_wanted(t, wanted);
    const uint64_t blocks = dgm_mem_live();
    for (uint64_t n = 1; n < 60; n++) {
        dgm_input in[3] = {input_of(sentences[0]), input_of(sentences[SPLIT]), input_of("")};
        for (int i = 0; i < 3; i++) in[i].deadline_ms = 1 << 24;
        counted lines = {0};
        const dgm_watch watch = {sizeof watch, &lines, count_line, NULL, count_partial, 0};
        dgm_job *job = NULL;
        dgm_results *r = NULL;
        dgm_mem_inject(n, 1);
        const dgm_status st = dgm_submit_watched(t, in, 3, &watch, &job, NULL);
        if (st == DGM_OK) assert_int_equal(dgm_wait(&job, &r, NULL), DGM_OK);
        dgm_mem_inject(0, 0);
        if (st != DGM_OK) {
            assert_int_equal(st, DGM_ERR_MEMORY);
            assert_int_equal(lines.lines, 0);
            continue;
        }
        assert_int_equal(lines.lines, 3);
        for (size_t i = 0; i < 2; i++)
            if (dgm_results_item(r, i)->status == DGM_OK)
                assert_string_equal(dgm_result_text(dgm_results_item(r, i)), wanted[i ? SPLIT : 0]);
            else
                assert_int_equal(dgm_results_item(r, i)->status, DGM_ERR_MEMORY);
        dgm_results_free(&r);
    }
    assert_true(dgm_mem_live() <= blocks + 16); // what text threads keep for the next line
    free_wanted(wanted);
    dgm_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watching),
        cmocka_unit_test(waiting_for_a_watcher),
        cmocka_unit_test(saying),
        cmocka_unit_test(saying_whole_sentences),
        cmocka_unit_test(saying_nothing_early),
        cmocka_unit_test(settled),
        cmocka_unit_test(settling),
        cmocka_unit_test(stopping_a_search),
        cmocka_unit_test(stopping_a_split_line),
        cmocka_unit_test(cancelling_a_search),
        cmocka_unit_test(deadlines_everywhere),
        cmocka_unit_test(short_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
