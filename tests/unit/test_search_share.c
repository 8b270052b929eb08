// SPDX-License-Identifier: MIT
// A search whose host work is shared: hypotheses, scores, alignments and statistics are those of one thread, to the
// bit, for every search, policy and mix of sentences; and nothing is allocated on the way.
#define _GNU_SOURCE
#include "unit/toy_text.h"

#include <pthread.h>
#include <time.h>

#include "base/team.h"
#include "constraint/constraint.h"
#include "toy_words.h"

enum { VOCAB = TOY_TEXT_VOCAB, SENTENCES = TOY_TEXT_MOST, MOST = 4 };

// ---- threads that help ----------------------------------------------------------------------------

typedef struct crowd {
    dgm_team *team;
    pthread_t threads[MOST];
    int count;
    atomic_uint alarm;
    atomic_int here;
} crowd;

static void *help(void *arg)
{
    crowd *c = arg;
    atomic_fetch_add(&c->here, 1);
    while (atomic_load(&c->alarm) == 0) dgm_team_help(c->team, &c->alarm, 0, dgm_team_patience);
    return NULL;
}

static void gather(crowd *c, dgm_exec *x, int count)
{
    *c = (crowd){.team = dgm_exec_team(x), .count = count};
    assert_non_null(c->team);
    for (int i = 0; i < count; i++) assert_int_equal(pthread_create(&c->threads[i], NULL, help, c), 0);
    while (atomic_load(&c->here) < count) nanosleep(&(struct timespec){0, 100000}, NULL);
}

static void dismiss(crowd *c)
{
    atomic_store(&c->alarm, 1);
    for (int i = 0; i < c->count; i++) pthread_join(c->threads[i], NULL);
}

// Every part is worth it, and nobody is ever late.
static int share_all(void **state)
{
    (void)state;
    dgm_team_least(0);
    return toy_words_open(VOCAB);
}

static int share_as_usual(void **state)
{
    (void)state;
    dgm_team_least(-1);
    return toy_words_close(state);
}

// ---- sentences ------------------------------------------------------------------------------------

// Some have a prefix, some are narrower than the others, some settle.
static void make_text(toy_text *t, uint64_t seed)
{
    toy_text_make(t, SENTENCES, seed);
    for (int i = 0; i < SENTENCES; i++) {
        t->requests[i].width = i % 7 == 3 ? 2 : 0;
        t->requests[i].settle = i % 11 == 4 ? 3 : 0;
    }
}

static void open_models(toy m[2], int prefix)
{
    for (int i = 0; i < 2; i++) {
        const toy_spec spec = {.vocab = VOCAB,
                               .positions = 26,
                               .width = 32,
                               .heads = 4,
                               .seed = 1 + (uint64_t)i,
                               .gain = 0.6f,
                               .prefix = {4, 5},
                               .prefix_count = prefix};
        toy_open(&m[i], &spec);
    }
}

static dgm_search_config shared_config(const char *search, int beam, dgm_finish finish, int sentences)
{
    dgm_search_config c = toy_text_config(beam, finish, sentences);
    c.search = search;
    return c;
}

// ---- comparing ------------------------------------------------------------------------------------

typedef struct outcome {
    toy_answer answers[SENTENCES];
    dgm_search_stats stats;
} outcome;

static outcome one, many;
static uint64_t taken; // parts that helpers took

static void run(const toy *const *models, int parts, const dgm_search_config *c, const dgm_search_request *requests,
                int helpers, outcome *out)
{
    toy_search t;
    crowd helping;
    toy_search_open(&t, c, models, parts, NULL);
    gather(&helping, t.exec, helpers);
    const uint64_t before = dgm_mem_allocations();
    toy_run(&t, requests, SENTENCES, out->answers);
    assert_int_equal(dgm_mem_allocations(), before);
    out->stats = *dgm_search_counts(t.search);
    dismiss(&helping);
    taken += dgm_team_taken(dgm_exec_team(t.exec));
    toy_search_close(&t);
}

static void expect_same(const char *what, int helpers)
{
    assert_memory_equal(&one.stats, &many.stats, sizeof one.stats);
    for (int i = 0; i < SENTENCES; i++) {
        const toy_answer *a = &one.answers[i], *b = &many.answers[i];
        if (a->count != b->count || a->steps != b->steps ||
            memcmp(a->h, b->h, (size_t)a->count * sizeof *a->h) != 0)
            fail_msg("%s with %d helpers: sentence %d", what, helpers, i);
    }
}

static void compare(const toy *const *models, int parts, const dgm_search_config *c, const dgm_search_request *requests)
{
    static const int helpers[] = {1, 2, MOST};
    run(models, parts, c, requests, 0, &one);
    for (int i = 0; i < 3; i++) {
        run(models, parts, c, requests, helpers[i], &many);
        expect_same(c->search, helpers[i]);
    }
}

static void test_policies(void **state)
{
    (void)state;
    static toy_text t;
    toy m[2];
    open_models(m, 0);
    const toy *models[] = {&m[0], &m[1]};
    make_text(&t, 77);
    taken = 0;
    for (int finish = 0; finish < DGM_FINISH_COUNT; finish++) {
        for (int beam = 1; beam <= 5; beam += 2) {
            // Few places: sentences come and leave all the time.
            const dgm_search_config c = shared_config("auto", beam, (dgm_finish)finish, finish % 2 ? 17 : SENTENCES);
            compare(models, 1 + (finish + beam / 2) % 2, &c, t.requests);
        }
    }
    // On a machine with other work threads seldom run at the same time: until they did.
    const dgm_search_config c = shared_config("beam", 4, DGM_FINISH_REFILL, SENTENCES);
    const double begin = dgm_now();
    while (taken == 0 && dgm_now() - begin < 300) compare(models, 1, &c, t.requests);
    assert_true(taken > 0);
    for (int i = 0; i < 2; i++) toy_close(&m[i]);
}

static void test_settings(void **state)
{
    (void)state;
    static toy_text t;
    toy m[2];
    open_models(m, 2); // they begin with tokens of their own, so that some rows are not ranked
    const toy *models[] = {&m[0], &m[1]};
    make_text(&t, 78);
    dgm_search_config c = shared_config("beam", 4, DGM_FINISH_MARGIN, 23);
    compare(models, 2, &c, t.requests);
    c.beam_width = 0.1f;
    c.diversity = 0.5f;
    c.coverage = 0.3f;
    c.min_length = 3;
    compare(models, 1, &c, t.requests);
    c = shared_config("beam", 3, DGM_FINISH_REFILL, 23);
    c.no_repeat = 2;
    c.repetition = 1.2f;
    compare(models, 1, &c, t.requests);
    c = shared_config("beam", 3, DGM_FINISH_CTRANSLATE2, 23);
    c.max_rows = 7;
    compare(models, 2, &c, t.requests);
    for (int i = 0; i < 2; i++) toy_close(&m[i]);
}

static void test_searches(void **state)
{
    (void)state;
    static toy_text t;
    toy m[2];
    open_models(m, 0);
    const toy *models[] = {&m[0]};
    make_text(&t, 79);
    dgm_search_config c = shared_config("sample", 4, DGM_FINISH_REFILL, 19);
    c.nbest = 4;
    c.temperature = 1.0f;
    c.seed = 5;
    compare(models, 1, &c, t.requests);
    for (int i = 0; i < SENTENCES; i++) t.requests[i].settle = 0;
    c = shared_config("cube", 4, DGM_FINISH_REFILL, 19); // nobody helps with it
    compare(models, 1, &c, t.requests);
    for (int i = 0; i < 2; i++) toy_close(&m[i]);
}

// Where sentences with constraints are inside, one thread does it all; before and afterwards others help.
static void test_constraints(void **state)
{
    (void)state;
    static toy_text t;
    toy m[2];
    open_models(m, 0);
    const toy *models[] = {&m[0]};
    make_text(&t, 80);
    dgm_constraint *constraints[SENTENCES] = {NULL};
    for (int i = 10; i < SENTENCES; i += 9) {
        const int32_t words[] = {6 + i % 5, 7};
        const dgm_pattern p = {.term = 0, .tokens = words, .count = 1 + i % 2};
        dgm_error err;
        if (dgm_constraint_compile(&constraints[i], surfaces, &p, 1, 1, &err) != DGM_OK) fail_msg("%s", err.text);
        t.requests[i].constraint = constraints[i];
        t.requests[i].prefix_count = t.requests[i].settle = 0;
    }
    for (int beam = 1; beam <= 4; beam += 3) {
        const dgm_search_config c = shared_config("auto", beam, DGM_FINISH_REFILL, 6);
        compare(models, 1, &c, t.requests);
    }
    for (int i = 0; i < SENTENCES; i++) dgm_constraint_free(&constraints[i]);
    for (int i = 0; i < 2; i++) toy_close(&m[i]);
}

// Sentences that are thrown out in the middle leave a hole among the others.
static void run_with_holes(const toy *m, int helpers, outcome *out)
{
    static toy_text t;
    toy_search s;
    crowd helping;
    dgm_error err = {{0}};
    make_text(&t, 81);
    const dgm_search_config c = shared_config("beam", 4, DGM_FINISH_REFILL, SENTENCES);
    toy_search_open(&s, &c, &m, 1, NULL);
    gather(&helping, s.exec, helpers);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < SENTENCES; i++) t.requests[i].id = (uint64_t)i;
    assert_int_equal(dgm_search_admit(s.search, t.requests, SENTENCES, &err), DGM_OK);
    for (int step = 0; dgm_search_active(s.search) > 0; step++) {
        if (step < 6) dgm_search_evict(s.search, (uint64_t)(5 * step + 1));
        if (step == 4) dgm_search_stop(s.search, 20, toy_sink, out->answers);
        assert_true(dgm_search_step_fits(s.search));
        assert_int_equal(dgm_search_advance(s.search, toy_sink, out->answers, &err), DGM_OK);
    }
    out->stats = *dgm_search_counts(s.search);
    dismiss(&helping);
    toy_search_close(&s);
}

static void test_holes(void **state)
{
    (void)state;
    toy m[2];
    open_models(m, 0);
    run_with_holes(&m[0], 0, &one);
    for (int helpers = 1; helpers <= MOST; helpers++) {
        run_with_holes(&m[0], helpers, &many);
        expect_same("holes", helpers);
    }
    for (int i = 0; i < 2; i++) toy_close(&m[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies),    cmocka_unit_test(test_settings), cmocka_unit_test(test_searches),
        cmocka_unit_test(test_constraints), cmocka_unit_test(test_holes),
    };
    return cmocka_run_group_tests(tests, share_all, share_as_usual);
}
