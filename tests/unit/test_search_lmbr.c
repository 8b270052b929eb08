// SPDX-License-Identifier: MIT
// LMBR in the searches, on toy models: what a hypothesis scores is the formula, applied to its
// words and to the model's own scores of them; rows of zeros change nothing, not one bit; cube
// pruning whose hypotheses are never alike is beam search; sentences with and without evidence
// share a batch.
#define _GNU_SOURCE
#include "unit/search_toy.h"

enum { VOCAB = 9, SENTENCES = 6, NBEST = 6 };

static const int32_t candidates[][6] = {
    {2, 3, 4, 5, TOY_EOS}, {2, 3, 5, 5, TOY_EOS}, {4, 2, 3, 4, 6, TOY_EOS}, {7, 2, TOY_EOS}};
static const int lengths[] = {5, 5, 6, 3};
static const double weights[] = {0.4, 0.3, 0.2, 0.1};

static const int32_t sources[SENTENCES][5] = {{2, 3, 2, TOY_EOS}, {4, TOY_EOS}, {5, 6, TOY_EOS},
                                              {2, 2, 2, 2, TOY_EOS}, {7, TOY_EOS}, {3, 6, TOY_EOS}};
static const int source_counts[SENTENCES] = {4, 2, 3, 5, 2, 3};

static void evidence(dgm_posteriors *p)
{
    dgm_error err;
    *p = (dgm_posteriors){0};
    for (int i = 0; i < 4; i++)
        assert_int_equal(dgm_posteriors_add(p, candidates[i], (size_t)lengths[i], weights[i], &err),
                         DGM_OK);
}

static dgm_lmbr_rows *rows_of(const dgm_lmbr_weights *w)
{
    dgm_posteriors p;
    dgm_lmbr_rows *r = NULL;
    dgm_error err;
    evidence(&p);
    assert_int_equal(dgm_lmbr_compile(&r, &p, w, &err), DGM_OK);
    dgm_posteriors_free(&p);
    return r;
}

static const dgm_lmbr_weights usual = {.theta = {-0.2f, 0.3f, 0.5f, 0.8f, 1.2f}, .lambda = 0.6f};

// Opens the search with the scorer, translates all sentences; every other one has no evidence if
// `some`.
static void run(const dgm_search_config *c, const toy *const *models, int parts,
                const dgm_lmbr_rows *rows, bool some, toy_answer *a)
{
    toy_search t = {.parts = parts};
    dgm_error err = {{0}};
    dgm_scorer scorer;
    dgm_search_part members[DGM_PARTS_MAX];
    dgm_bytes bytes = toy_bytes(c, models, parts);
    bytes = dgm_bytes_add(bytes, dgm_score_lmbr_bytes(models[0]->backend, c->sentences, VOCAB));
    assert_int_equal(dgm_exec_open(models[0]->backend, bytes, &t.exec, &err), DGM_OK);
    for (int i = 0; i < parts; i++) {
        const dgm_limits l = dgm_search_limits(c, dgm_model_describe(models[i]->model));
        assert_int_equal(dgm_state_open(models[i]->model, t.exec, &l, &t.states[i], &err), DGM_OK);
        members[i] = (dgm_search_part){t.states[i], 1.0f / (float)parts};
    }
    assert_int_equal(dgm_score_lmbr(&scorer, t.exec, c->sentences, VOCAB, &err), DGM_OK);
    if (dgm_search_open(&t.search, t.exec, c, members, parts, NULL, &scorer, 1, &err) != DGM_OK)
        fail_msg("%s", err.text);
    dgm_search_request requests[SENTENCES];
    for (int i = 0; i < SENTENCES; i++)
        requests[i] = (dgm_search_request){.source = {sources[i], source_counts[i]},
                                           .lmbr = some && i % 2 ? NULL : rows};
    toy_run(&t, requests, SENTENCES, a);
    toy_search_close(&t);
}

static void open_model(toy *m, uint64_t seed)
{
    const toy_spec spec = {
        .vocab = VOCAB, .positions = 12, .width = 16, .heads = 2, .seed = seed, .gain = 0.9f};
    toy_open(m, &spec);
}

static dgm_search_config config_of(const char *search, int beam)
{
    dgm_search_config c = toy_config(beam, DGM_FINISH_REFILL);
    c.search = search;
    c.nbest = beam < NBEST ? beam : NBEST;
    c.word_scores = true;
    c.max_source = 8;
    return c;
}

static void equal_answers(const toy_answer *a, const toy_answer *b)
{
    for (int i = 0; i < SENTENCES; i++) {
        assert_int_equal(a[i].count, b[i].count);
        assert_memory_equal(a[i].h, b[i].h, (size_t)a[i].count * sizeof a[i].h[0]);
    }
}

// ---- tests ------------------------------------------------------------------------------------

// Sum over n of theta[n] P, and theta[0].
static double gain(const dgm_posteriors *p, const dgm_lmbr_weights *w, const int32_t *y, int at)
{
    double sum = (double)w->theta[0];
    for (int n = 1; n <= DGM_LMBR_ORDER && n <= at + 1; n++)
        sum += (double)w->theta[n] * dgm_posteriors_get(p, y + at + 1 - n, n);
    return sum;
}

// The model's own score of a hypothesis' words: forced, without evidence.
static void forced(const toy *const *models, int parts, int sentence, const toy_hypothesis *h,
                   float *scores)
{
    dgm_search_config c = config_of("beam", 1);
    toy_search t;
    toy_answer a;
    c.allow_unk = true;
    c.max_length = h->count > 0 ? h->count : 1;
    toy_search_open(&t, &c, models, parts, NULL);
    const dgm_search_request r = {.source = {sources[sentence], source_counts[sentence]},
                                  .prefix = h->tokens,
                                  .prefix_count = h->count};
    toy_run(&t, &r, 1, &a);
    memcpy(scores, a.h[0].words, sizeof(float) * (size_t)(h->count + 1));
    toy_search_close(&t);
}

static void test_formula(void **state)
{
    (void)state;
    static const char *const searches[] = {"greedy", "beam", "cube", "cube"};
    static toy_answer a[SENTENCES];
    toy m[2];
    dgm_posteriors p;
    evidence(&p);
    dgm_lmbr_rows *rows = rows_of(&usual);
    for (int i = 0; i < 2; i++) open_model(&m[i], 3 + (uint64_t)i);
    const toy *models[] = {&m[0], &m[1]};
    for (int k = 0; k < 8; k++) {
        const int parts = 1 + k / 4;
        dgm_search_config c = config_of(searches[k % 4], k % 4 ? 5 : 1);
        c.cube_exact = k % 4 == 2;
        c.rescore = k % 4 == 3;
        run(&c, models, parts, rows, true, a);
        for (int i = 0; i < SENTENCES; i++)
            for (int n = 0; n < a[i].count; n++) {
                const toy_hypothesis *h = &a[i].h[n];
                int32_t y[TOY_TOKENS + 1];
                float own[TOY_TOKENS + 1];
                memcpy(y, h->tokens, sizeof h->tokens);
                y[h->count] = TOY_EOS;
                forced(models, parts, i, h, own);
                // The end of a hypothesis that was cut off is forced, too: it has its score.
                for (int t = 0; t < h->count + (h->count < c.max_length); t++) {
                    const double want = i % 2 ? (double)own[t]
                                              : (double)(usual.lambda * own[t]) +
                                                    gain(&p, &usual, y, t);
                    assert_true(fabs((double)h->words[t] - want) < 1e-4);
                }
            }
    }
    for (int i = 0; i < 2; i++) toy_close(&m[i]);
    dgm_lmbr_free(&rows);
    dgm_posteriors_free(&p);
}

static void test_zero(void **state)
{
    (void)state;
    static toy_answer a[SENTENCES], b[SENTENCES];
    const dgm_lmbr_weights nothing = {.lambda = 1};
    dgm_lmbr_rows *rows = rows_of(&nothing);
    for (uint64_t seed = 1; seed < 5; seed++) {
        toy m;
        open_model(&m, seed);
        const toy *models[] = {&m};
        for (int finish = 0; finish < DGM_FINISH_COUNT; finish++)
            for (int k = 0; k < 3; k++) {
                dgm_search_config c = config_of(k ? "cube" : "beam", 4);
                c.finish = (dgm_finish)finish;
                c.cube_exact = k == 1;
                run(&c, models, 1, NULL, false, a);
                run(&c, models, 1, rows, false, b);
                equal_answers(a, b);
            }
        toy_close(&m);
    }
    dgm_lmbr_free(&rows);
}

// Whole tables and lists of zeros.
static void test_zero_posteriors(void **state)
{
    (void)state;
    static toy_answer a[SENTENCES], b[SENTENCES];
    const dgm_lmbr_weights w = {.theta = {0, 1, 1, 1, 1}, .lambda = 1};
    dgm_posteriors p;
    dgm_lmbr_rows *rows = NULL;
    dgm_error err;
    toy m[2];
    evidence(&p);
    for (size_t i = 0; i < p.count; i++) p.nodes[i].p = 0;
    assert_int_equal(dgm_lmbr_compile(&rows, &p, &w, &err), DGM_OK);
    assert_true(rows->states > 5);
    for (int i = 0; i < 2; i++) open_model(&m[i], 8 + (uint64_t)i);
    const toy *models[] = {&m[0], &m[1]};
    for (int k = 0; k < 4; k++) {
        dgm_search_config c = config_of("beam", 4);
        c.mix = k & 1 ? DGM_MIX_ARITHMETIC : DGM_MIX_LOG_LINEAR;
        run(&c, models, 1 + k / 2, NULL, false, a);
        run(&c, models, 1 + k / 2, rows, false, b);
        equal_answers(a, b);
    }
    for (int i = 0; i < 2; i++) toy_close(&m[i]);
    dgm_lmbr_free(&rows);
    dgm_posteriors_free(&p);
}

static void test_cube_none_is_beam(void **state)
{
    (void)state;
    static toy_answer a[SENTENCES], b[SENTENCES];
    dgm_lmbr_rows *rows = rows_of(&usual);
    bool differs = false;
    for (uint64_t seed = 1; seed < 6; seed++) {
        toy m;
        open_model(&m, seed);
        const toy *models[] = {&m};
        for (int finish = 0; finish < TOY_FINISH_ALIKE; finish++) {
            dgm_search_config c = config_of("beam", 5);
            c.finish = (dgm_finish)finish;
            run(&c, models, 1, NULL, false, b);
            run(&c, models, 1, rows, false, a);
            differs |= memcmp(a[0].h[0].tokens, b[0].h[0].tokens, sizeof a[0].h[0].tokens) != 0;
            c.search = "cube";
            c.cube_key = DGM_CUBE_NONE;
            for (int exact = 0; exact < 2; exact++) {
                c.cube_exact = exact;
                run(&c, models, 1, rows, false, b);
                equal_answers(a, b);
            }
        }
        toy_close(&m);
    }
    assert_true(differs); // the evidence does something
    dgm_lmbr_free(&rows);
}

// The same answers whoever else is inside, and in any number at once.
static void test_company(void **state)
{
    (void)state;
    static toy_answer a[SENTENCES], b[SENTENCES];
    dgm_lmbr_rows *rows = rows_of(&usual);
    toy m;
    open_model(&m, 9);
    const toy *models[] = {&m};
    for (int k = 0; k < 3; k++) {
        dgm_search_config c = config_of(k ? "cube" : "beam", 4);
        c.cube_exact = k == 1;
        c.sentences = 1;
        run(&c, models, 1, rows, true, a);
        c.sentences = SENTENCES;
        run(&c, models, 1, rows, true, b);
        equal_answers(a, b);
        run(&c, models, 1, rows, false, b); // the others' evidence does not matter
        for (int i = 0; i < SENTENCES; i += 2)
            assert_memory_equal(a[i].h, b[i].h, (size_t)a[i].count * sizeof a[i].h[0]);
    }
    toy_close(&m);
    dgm_lmbr_free(&rows);
}

// With a penalty on repeated words, which needs a sparse list of its own.
static void test_with_repetition(void **state)
{
    (void)state;
    static toy_answer a[SENTENCES], b[SENTENCES];
    const dgm_lmbr_weights nothing = {.lambda = 1};
    dgm_lmbr_rows *rows = rows_of(&nothing), *some = rows_of(&usual);
    toy m;
    open_model(&m, 4);
    const toy *models[] = {&m};
    dgm_search_config c = config_of("beam", 4);
    c.repetition = 3;
    run(&c, models, 1, NULL, false, a);
    run(&c, models, 1, rows, false, b);
    equal_answers(a, b);
    run(&c, models, 1, some, false, b);
    assert_memory_not_equal(a[0].h, b[0].h, sizeof a[0].h[0]);
    toy_close(&m);
    dgm_lmbr_free(&rows);
    dgm_lmbr_free(&some);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula),         cmocka_unit_test(test_zero),
        cmocka_unit_test(test_cube_none_is_beam), cmocka_unit_test(test_company),
        cmocka_unit_test(test_with_repetition), cmocka_unit_test(test_zero_posteriors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
