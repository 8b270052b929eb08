// SPDX-License-Identifier: MIT
// Many sentences at once: a sentence's result is the same to the bit whoever shares its steps; the
// loop allocates nothing; errors leave the search usable; senseless settings are refused.
#define _GNU_SOURCE
#include "unit/toy_text.h"

enum { VOCAB = TOY_TEXT_VOCAB, SENTENCES = 24 };

static void open_random(toy *m, uint64_t seed)
{
    const toy_spec spec = {
        .vocab = VOCAB, .positions = 24, .width = 32, .heads = 4, .seed = seed, .gain = 0.6f};
    toy_open(m, &spec);
}

static void run(const toy *const *models, int parts, const dgm_search_config *c,
                const dgm_search_request *requests, toy_answer *a)
{
    toy_search t;
    toy_search_open(&t, c, models, parts, NULL);
    toy_run(&t, requests, SENTENCES, a);
    assert_int_equal(dgm_search_counts(t.search)->sentences, SENTENCES);
    toy_search_close(&t);
}

static toy_answer alone[SENTENCES], together[SENTENCES];

static void expect_same(const toy_answer *a, const toy_answer *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->steps, b->steps);
    assert_memory_equal(a->h, b->h, (size_t)a->count * sizeof *a->h); // every bit
}

static void test_invariance(void **state)
{
    (void)state;
    toy m[2];
    open_random(&m[0], 1);
    open_random(&m[1], 2);
    const toy *models[] = {&m[0], &m[1]};
    static toy_text t;
    toy_text_make(&t, SENTENCES, 77);
    for (int finish = 0; finish < DGM_FINISH_COUNT; finish++) {
        for (int beam = 1; beam <= 5; beam += 2) {
            const int parts = 1 + (finish + beam / 2) % 2;
            dgm_search_config c = toy_text_config(beam, (dgm_finish)finish, 1);
            run(models, parts, &c, t.requests, alone);
            static const int sentences[] = {2, 7, SENTENCES};
            for (int i = 0; i < 3; i++) {
                c.sentences = sentences[i];
                run(models, parts, &c, t.requests, together);
                for (int j = 0; j < SENTENCES; j++) expect_same(&alone[j], &together[j]);
            }
            dgm_search_request reversed[SENTENCES];
            for (int j = 0; j < SENTENCES; j++) reversed[j] = t.requests[SENTENCES - 1 - j];
            c.sentences = 5;
            run(models, parts, &c, reversed, together);
            for (int j = 0; j < SENTENCES; j++)
                expect_same(&alone[j], &together[SENTENCES - 1 - j]);
        }
    }
    toy_close(&m[0]);
    toy_close(&m[1]);
}

static void test_greedy_is_beam_1(void **state)
{
    (void)state;
    toy m;
    open_random(&m, 3);
    const toy *models[] = {&m};
    static toy_text t;
    toy_text_make(&t, SENTENCES, 77);
    static const dgm_finish same[] = {DGM_FINISH_SHRINK, DGM_FINISH_REFILL, DGM_FINISH_FIRST};
    for (int i = 0; i < 3; i++) {
        dgm_search_config c = toy_text_config(1, same[i], 4);
        c.search = "beam";
        run(models, 1, &c, t.requests, alone);
        c.search = i == 0 ? "greedy" : "auto";
        run(models, 1, &c, t.requests, together);
        for (int j = 0; j < SENTENCES; j++) expect_same(&alone[j], &together[j]);
    }
    toy_close(&m);
}

enum { NARROW = 2, BEAM = 5 };

static toy_answer narrow[SENTENCES];

// Every sentence in a search of NARROW (narrow) and of BEAM (alone), and mixed in one of BEAM, where every second one
// asks for NARROW and all for a glance or not (together).
static void run_widths(const toy *const *models, const toy_text *t, dgm_finish finish, bool glance)
{
    const dgm_search_config small = toy_text_config(NARROW, finish, 6);
    const dgm_search_config large = toy_text_config(BEAM, finish, 6);
    run(models, 1, &small, t->requests, narrow);
    run(models, 1, &large, t->requests, alone);
    dgm_search_request mixed[SENTENCES];
    for (int j = 0; j < SENTENCES; j++) {
        mixed[j] = t->requests[j];
        mixed[j].width = j % 2 ? NARROW : 0;
        mixed[j].glance = glance;
    }
    run(models, 1, &large, mixed, together);
}

// A sentence that is narrower than its search is what it is in a narrower one, and leaves others alone.
static void test_narrow_sentences(void **state)
{
    (void)state;
    toy m;
    open_random(&m, 6);
    const toy *models[] = {&m};
    static toy_text t;
    toy_text_make(&t, SENTENCES, 77);
    for (int finish = 0; finish < DGM_FINISH_COUNT; finish++) {
        run_widths(models, &t, (dgm_finish)finish, false);
        for (int j = 0; j < SENTENCES; j++) {
            if (j % 2 && together[j].count > narrow[j].count) together[j].count = narrow[j].count; // spared ones
            expect_same(j % 2 ? &narrow[j] : &alone[j], &together[j]);
        }
    }
    toy_close(&m);
}

// A glance has the best translation of a narrower search, after no more steps, and leaves others alone; of a sentence
// that is as wide as the search it says nothing.
static void test_glances(void **state)
{
    (void)state;
    toy m;
    open_random(&m, 6);
    const toy *models[] = {&m};
    static toy_text t;
    toy_text_make(&t, SENTENCES, 77);
    run_widths(models, &t, DGM_FINISH_REFILL, true);
    int spared = 0;
    for (int j = 0; j < SENTENCES; j++) {
        if (j % 2 == 0) {
            expect_same(&alone[j], &together[j]);
            continue;
        }
        assert_true(together[j].count >= 1 && together[j].steps <= narrow[j].steps);
        assert_memory_equal(&together[j].h[0], &narrow[j].h[0], sizeof narrow[j].h[0]);
        spared += narrow[j].steps - together[j].steps;
    }
    assert_true(spared > 0);
    toy_close(&m);
}

// Sums of word scores are sums; attention weights of a word sum to 1.
static void test_details(void **state)
{
    (void)state;
    toy m;
    open_random(&m, 4);
    const toy *models[] = {&m};
    static toy_text t;
    toy_text_make(&t, SENTENCES, 77);
    const dgm_search_config c = toy_text_config(3, DGM_FINISH_REFILL, 6);
    run(models, 1, &c, t.requests, alone);
    for (int i = 0; i < SENTENCES; i++) {
        const int source = t.requests[i].source.count;
        for (int j = 0; j < alone[i].count; j++) {
            const toy_hypothesis *h = &alone[i].h[j];
            float sum = 0;
            for (int k = 0; k <= h->count; k++) sum += h->words[k];
            assert_true(fabsf(sum - h->sum) < 1e-4f);
            for (int k = 0; k < h->count; k++) {
                float weight = 0;
                for (int l = 0; l < source; l++) weight += h->align[k * source + l];
                assert_true(fabsf(weight - 1) < 1e-5f);
            }
            assert_true(h->count <= (int)(1.5f * (float)source) + 10);
            for (int k = 0; k < t.requests[i].prefix_count; k++)
                assert_int_equal(h->tokens[k], t.requests[i].prefix[k]);
        }
    }
    toy_close(&m);
}

static void test_no_allocation(void **state)
{
    (void)state;
    toy m;
    open_random(&m, 5);
    const toy *models[] = {&m};
    static toy_text t;
    toy_text_make(&t, SENTENCES, 77);
    for (int beam = 1; beam <= 4; beam += 3) {
        const dgm_search_config c = toy_text_config(beam, DGM_FINISH_REFILL, 5);
        toy_search s;
        toy_search_open(&s, &c, models, 1, NULL);
        const uint64_t before = dgm_mem_allocations();
        const size_t peak = dgm_arena_mark(dgm_exec_host(s.exec));
        toy_run(&s, t.requests, SENTENCES, alone);
        assert_int_equal(dgm_mem_allocations(), before);
        assert_int_equal(dgm_arena_mark(dgm_exec_host(s.exec)), peak);
        toy_search_close(&s);
    }
    toy_close(&m);
}

// A refused sentence leaves the others alone; after dgm_search_clear the search is as new.
static void test_recovery(void **state)
{
    (void)state;
    toy m;
    open_random(&m, 6);
    const toy *models[] = {&m};
    static toy_text t;
    toy_text_make(&t, SENTENCES, 77);
    const dgm_search_config c = toy_text_config(4, DGM_FINISH_REFILL, 3);
    run(models, 1, &c, t.requests, alone);
    toy_search s;
    toy_search_open(&s, &c, models, 1, NULL);
    dgm_error err = {{0}};
    static const int32_t outside[] = {2, VOCAB}, long_source[9] = {2, 2, 2, 2, 2, 2, 2, 2, 2};
    static const int32_t end[] = {TOY_EOS}, start[] = {VOCAB - 1}, many[32] = {2};
    static const struct {
        dgm_search_request request;
        const char *message;
    } bad[] = {
        {{.source = {outside, 2}}, "source token 20 is not in the vocabulary of 20"},
        {{.source = {outside, 0}}, "a source of 0 tokens; it must have 1 to 8"},
        {{.source = {long_source, 9}}, "a source of 9 tokens; it must have 1 to 8"},
        {{.source = {long_source, 2}, .prefix = end, .prefix_count = 1},
         "token 0 cannot be part of a forced prefix"},
        {{.source = {long_source, 2}, .prefix = start, .prefix_count = 1},
         "token 19 cannot be part of a forced prefix"},
        {{.source = {long_source, 2}, .prefix = many, .prefix_count = 14},
         "a forced prefix of 14 tokens; the longest translation has 13"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const dgm_search_request both[] = {t.requests[0], bad[i].request};
        assert_int_equal(dgm_search_admit(s.search, both, 2, &err), DGM_ERR_ARGUMENT);
        assert_string_equal(err.text, bad[i].message);
        assert_int_equal(dgm_search_active(s.search), 0);
    }
    assert_int_equal(dgm_search_admit(s.search, t.requests, 4, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "4 sentences, but room for 3");
    assert_int_equal(dgm_search_admit(s.search, t.requests, 3, &err), DGM_OK);
    assert_int_equal(dgm_search_free(s.search), 0);
    assert_int_equal(dgm_search_advance(s.search, toy_sink, together, &err), DGM_OK);
    dgm_search_clear(s.search);
    assert_int_equal(dgm_search_active(s.search), 0);
    toy_run(&s, t.requests, SENTENCES, together);
    for (int j = 0; j < SENTENCES; j++) expect_same(&alone[j], &together[j]);
    assert_int_equal(dgm_search_admit(s.search, t.requests, 2, &err), DGM_OK);
    toy_search_close(&s); // with sentences inside
    toy_close(&m);
}

// A member that has no room makes admission fail after others have encoded: everything is undone.
static void test_failing_member(void **state)
{
    (void)state;
    toy m;
    open_random(&m, 6);
    const toy *models[] = {&m, &m};
    static toy_text t;
    toy_text_make(&t, SENTENCES, 77);
    const dgm_search_config c = toy_text_config(2, DGM_FINISH_REFILL, 3);
    toy_search s;
    toy_search_open(&s, &c, models, 2, NULL);
    dgm_error err = {{0}};
    int32_t slots[2];
    const dgm_source sources[] = {t.requests[0].source, t.requests[1].source};
    assert_int_equal(dgm_encode(s.states[1], 2, sources, slots, &err), DGM_OK); // not the search's
    assert_int_equal(dgm_search_admit(s.search, t.requests, 1, &err), DGM_OK);
    assert_int_equal(dgm_search_admit(s.search, t.requests + 1, 2, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_search_active(s.search), 1);
    dgm_release(s.states[1], 2, slots);
    dgm_search_request last = t.requests[1];
    last.id = 1;
    assert_int_equal(dgm_search_admit(s.search, &last, 1, &err), DGM_OK);
    last = t.requests[2];
    last.id = 2;
    assert_int_equal(dgm_search_admit(s.search, &last, 1, &err), DGM_OK);
    memset(together, 0, sizeof together);
    while (dgm_search_active(s.search))
        assert_int_equal(dgm_search_advance(s.search, toy_sink, together, &err), DGM_OK);
    toy_search_close(&s);
    run(models, 2, &c, t.requests, alone);
    for (int j = 0; j < 3; j++) expect_same(&alone[j], &together[j]);
    toy_close(&m);
}

// A valid configuration with one thing changed.
#define REFUSED(field, value, message)                                                             \
    do {                                                                                           \
        dgm_search_config changed = good;                                                          \
        changed.field = (value);                                                                   \
        expect_refusal(&s, &changed, message);                                                     \
    } while (0)

static void expect_refusal(const toy_search *s, const dgm_search_config *c, const char *message)
{
    dgm_search *other;
    dgm_error err = {{0}};
    const dgm_search_part part = {s->states[0], 1};
    assert_int_equal(dgm_search_open(&other, s->exec, c, &part, 1, NULL, NULL, 0, &err),
                     DGM_ERR_ARGUMENT);
    assert_null(other);
    assert_memory_equal(err.text, message, strlen(message)); // reasons are the table's (features.h)
}

static void test_refusals(void **state)
{
    (void)state;
    toy m;
    open_random(&m, 7);
    const toy *models[] = {&m};
    dgm_search_config good = toy_config(4, DGM_FINISH_REFILL);
    good.sentences = 2;
    toy_search s;
    toy_search_open(&s, &good, models, 1, NULL);
    REFUSED(search, "cobe", "there is no search 'cobe'");
    REFUSED(beam, 0, "beam is 0; it must be 1 to 256");
    REFUSED(beam, 257, "beam is 257; it must be 1 to 256");
    REFUSED(nbest, 0, "nbest is 0; it must be at least 1");
    REFUSED(nbest, 5, "a beam of 4 cannot give the 5 best translations");
    REFUSED(finish, (dgm_finish)99, "there is no finishing policy number 99");
    REFUSED(mix, (dgm_mix)7, "there is no ensemble mix number 7");
    REFUSED(max_length, 0, "maximum length is 0; it must be 1 to 1048576");
    REFUSED(max_length_factor, -1, "maximum length factor is -1; it must be 0 or more");
    REFUSED(length_penalty, NAN, "length penalty must be a finite number");
    REFUSED(word_penalty, INFINITY, "word penalty must be a finite number");
    REFUSED(sentences, 0, "0 sentences at once; it must be 1 to 65536");
    REFUSED(max_source, 0, "longest source is 0 tokens; it must be 1 to 1048576");
    REFUSED(search, "greedy", "beam cannot be combined with search greedy: ");
    REFUSED(sentences, 3,
            "the model's state has room for 2 sentences and 8 rows; the search needs 3 and 12");
    REFUSED(
        max_length, 7,
        "the model's state has room for 8 source and 7 target tokens; the search needs 8 and 8");
    good.finish = DGM_FINISH_MARGIN;
    REFUSED(margin, -2, "margin is -2; it must be 0 or more");
    dgm_search_part parts[DGM_PARTS_MAX + 1];
    for (int i = 0; i <= DGM_PARTS_MAX; i++) parts[i] = (dgm_search_part){s.states[0], 1};
    dgm_search *other;
    dgm_error err = {{0}};
    const dgm_status many =
        dgm_search_open(&other, s.exec, &good, parts, DGM_PARTS_MAX + 1, NULL, NULL, 0, &err);
    assert_int_equal(many, DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "an ensemble of 9 models; it must be 1 to 8");
    parts[1].weight = 0;
    assert_int_equal(dgm_search_open(&other, s.exec, &good, parts, 2, NULL, NULL, 0, &err),
                     DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "weight of ensemble member 2 must be a positive number");
    good.beam = 0;
    assert_int_equal(dgm_search_bytes(NULL, &good, 1, VOCAB).host, 0);
    toy_search_close(&s);
    toy_close(&m);
}

// Members of an ensemble must speak the same vocabulary; an arena that is too small is a clean
// error.
static void test_misfits(void **state)
{
    (void)state;
    toy m[2];
    open_random(&m[0], 8);
    const toy_spec spec = {
        .vocab = VOCAB + 1, .positions = 24, .width = 16, .heads = 2, .seed = 1, .gain = 0.5f};
    toy_open(&m[1], &spec);
    dgm_search_config c = toy_config(4, DGM_FINISH_REFILL);
    c.word_scores = true;
    const toy *models[] = {&m[0], &m[1]};
    dgm_error err = {{0}};
    dgm_exec *x;
    const dgm_bytes room = toy_bytes(&c, models, 2);
    assert_int_equal(dgm_exec_open(m[0].backend, room, &x, &err), DGM_OK);
    dgm_search_part parts[2];
    for (int i = 0; i < 2; i++) {
        const dgm_limits l = dgm_search_limits(&c, dgm_model_describe(m[i].model));
        assert_int_equal(dgm_state_open(m[i].model, x, &l, &parts[i].state, &err), DGM_OK);
        parts[i].weight = 0.5f;
    }
    dgm_search *s;
    assert_int_equal(dgm_search_open(&s, x, &c, parts, 2, NULL, NULL, 0, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "ensemble member 2 has another vocabulary than the first one");
    const dgm_mark mark = dgm_exec_mark(x);
    dgm_arena *arena = dgm_exec_host(x);
    const size_t size = arena->size, need = dgm_search_bytes(m[0].backend, &c, 1, VOCAB).host;
    for (size_t left = 0; left < need / 2; left += 1 + need / 64) {
        arena->size = mark.host + left;
        const dgm_status st = dgm_search_open(&s, x, &c, parts, 1, NULL, NULL, 0, &err);
        arena->size = size;
        assert_int_equal(st, DGM_ERR_MEMORY);
        assert_int_equal(dgm_exec_mark(x).host, mark.host);
        assert_int_equal(dgm_exec_mark(x).device, mark.device);
    }
    arena->size = mark.host + need; // what dgm_search_bytes says is enough
    assert_int_equal(dgm_search_open(&s, x, &c, parts, 1, NULL, NULL, 0, &err), DGM_OK);
    arena->size = size;
    dgm_search_close(&s);
    assert_null(s);
    dgm_search_close(&s);
    dgm_exec_close(&x);
    toy_close(&m[0]);
    toy_close(&m[1]);
}

// Weights that are not numbers: every sentence still gets its answer.
static void test_damaged_weights(void **state)
{
    (void)state;
    float last[8 * 8], time[8 * 8] = {0};
    for (int i = 0; i < 64; i++) last[i] = NAN;
    const toy_spec spec = {.vocab = 8, .positions = 8, .heads = 1, .last = last, .time = time};
    toy m;
    toy_open(&m, &spec);
    for (int finish = 0; finish < DGM_FINISH_COUNT; finish++) {
        for (int beam = 1; beam <= 3; beam += 2) {
            dgm_search_config c = toy_config(beam, (dgm_finish)finish);
            c.search = "auto";
            c.word_scores = c.alignment = true;
            const toy_answer a = toy_translate(&m, &c);
            assert_int_equal(a.count, 1);
            assert_int_equal(a.h[0].count, 0);
            assert_false(a.h[0].finished);
            assert_true(a.h[0].score == -INFINITY);
        }
    }
    toy_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_invariance),      cmocka_unit_test(test_greedy_is_beam_1),
        cmocka_unit_test(test_narrow_sentences), cmocka_unit_test(test_glances),
        cmocka_unit_test(test_details),         cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_recovery),        cmocka_unit_test(test_failing_member),
        cmocka_unit_test(test_refusals),        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_damaged_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
