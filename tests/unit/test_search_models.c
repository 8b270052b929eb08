// SPDX-License-Identifier: MIT
// Searches over every architecture: the tiny models of tests/data/models.
//
// Greedy search gives PyTorch's arg-max outputs; beam search is the same to the bit in batches of
// one and of many under every policy; ensembles of different architectures mix as they say.
#define _GNU_SOURCE
#include "unit/search_toy.h"

#include "fixture.h"

enum { NAMES = 128, LONGEST = 20 };

static toy as_toy(const fixture *f)
{
    return (toy){.backend = f->backend, .model = f->model, .vocab = f->vocabulary};
}

static int requests_of(const fixture *f, dgm_search_request *r)
{
    for (int k = 0; k < f->count; k++)
        r[k] = (dgm_search_request){.source = {f->sentence[k].source, f->sentence[k].source_count}};
    return f->count;
}

static dgm_search_config config_of(int beam, dgm_finish finish, int sentences)
{
    dgm_search_config c = toy_config(beam, finish);
    c.search = "auto";
    c.nbest = beam;
    c.max_length = LONGEST;
    c.max_source = TOY_SOURCE;
    c.sentences = sentences;
    c.word_scores = c.alignment = true;
    return c;
}

static toy_answer first[FIXTURE_SENTENCES], second[FIXTURE_SENTENCES], third[FIXTURE_SENTENCES];

static void run(const toy *const *models, int parts, const dgm_search_config *c,
                const dgm_search_request *r, int count, toy_answer *a)
{
    toy_search t;
    dgm_search_config config = *c;
    if (dgm_model_describe(models[0]->model)->tokens_per_step == 2) config.search = "double";
    toy_search_open(&t, &config, models, parts, NULL);
    toy_run(&t, r, count, a);
    toy_search_close(&t);
}

static void check_greedy(const fixture *f, const toy *m)
{
    dgm_search_request r[FIXTURE_SENTENCES];
    const int count = requests_of(f, r);
    const dgm_search_config c = config_of(1, DGM_FINISH_REFILL, 3);
    run(&m, 1, &c, r, count, first);
    for (int k = 0; k < count; k++) {
        const fixture_sentence *s = &f->sentence[k];
        if (!s->text) continue; // a bare end symbol
        if (first[k].h[0].count != s->greedy_count ||
            memcmp(first[k].h[0].tokens, s->greedy, (size_t)s->greedy_count * sizeof *s->greedy) !=
                0)
            fail_msg("%s: greedy output of sentence %d differs", f->name, k);
        assert_true(first[k].h[0].finished);
    }
}

static void check_batches(const toy *const *models, int parts, const dgm_search_request *r,
                          int count, dgm_finish finish, dgm_mix mix, const char *name)
{
    dgm_search_config c = config_of(4, finish, 1);
    c.mix = mix;
    run(models, parts, &c, r, count, first);
    c.sentences = 3;
    run(models, parts, &c, r, count, second);
    for (int k = 0; k < count; k++)
        if (first[k].count != second[k].count ||
            memcmp(first[k].h, second[k].h, (size_t)first[k].count * sizeof *first[k].h) != 0)
            fail_msg("%s: sentence %d depends on its batch", name, k);
}

static void test_every_model(void **state)
{
    (void)state;
    static char names[NAMES][64];
    const int count = fixture_list("", names, NAMES, 20);
    for (int i = 0; i < count; i++) {
        fixture f;
        dgm_search_request r[FIXTURE_SENTENCES];
        fixture_open(&f, names[i], NULL);
        const toy m = as_toy(&f), *models[] = {&m};
        const int sentences = requests_of(&f, r);
        check_greedy(&f, &m);
        check_batches(models, 1, r, sentences, (dgm_finish)(i % DGM_FINISH_COUNT),
                      DGM_MIX_LOG_LINEAR, names[i]);
        fixture_close(&f);
    }
}

// The hypothesis once more, forced upon one model alone: its own word scores.
static void force(const toy *m, const dgm_search_request *request, const toy_hypothesis *h,
                  toy_answer *a)
{
    dgm_search_config c = config_of(1, DGM_FINISH_REFILL, 1);
    c.max_length = h->count > 0 ? h->count : 1;
    dgm_search_request r = *request;
    r.prefix = h->tokens;
    r.prefix_count = h->count;
    run(&m, 1, &c, &r, 1, a);
}

// Log-linear: words score the mean of the members' log-probabilities; arithmetic: the log of the
// mean probability.
static void check_mix(const toy *const *models, const dgm_search_request *r, int count, dgm_mix mix)
{
    dgm_search_config c = config_of(3, DGM_FINISH_REFILL, 2);
    c.mix = mix;
    run(models, 2, &c, r, count, third);
    for (int k = 0; k < count; k++) {
        const toy_hypothesis *h = &third[k].h[0];
        if (h->count == 0) continue;
        force(models[0], &r[k], h, &first[0]);
        force(models[1], &r[k], h, &second[0]);
        for (int t = 0; t <= h->count; t++) {
            const float a = first[0].h[0].words[t], b = second[0].h[0].words[t];
            const float want =
                mix == DGM_MIX_LOG_LINEAR ? (a + b) / 2 : logf((expf(a) + expf(b)) / 2);
            assert_true(fabsf(h->words[t] - want) < 1e-4f);
        }
    }
}

// Two families, one vocabulary.
static void test_mixed_ensembles(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"transformer-pieces", "rnn-bahdanau-pieces"},
        {"rnn-conditional-maxout-tied", "transformer-pre-learned"}};
    for (int i = 0; i < 2; i++) {
        fixture f[2];
        dgm_search_request r[FIXTURE_SENTENCES];
        fixture_open(&f[0], pairs[i][0], NULL);
        fixture_open(&f[1], pairs[i][1], NULL);
        const toy m[] = {as_toy(&f[0]), as_toy(&f[1])};
        const toy *models[] = {&m[0], &m[1]};
        const int count = requests_of(&f[0], r);
        for (int mix = 0; mix < DGM_MIX_COUNT; mix++) {
            check_mix(models, r, count, (dgm_mix)mix);
            for (int finish = 0; finish < DGM_FINISH_COUNT; finish++)
                check_batches(models, 2, r, count, (dgm_finish)finish, (dgm_mix)mix, pairs[i][0]);
        }
        fixture_close(&f[0]);
        fixture_close(&f[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_model),
        cmocka_unit_test(test_mixed_ensembles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
