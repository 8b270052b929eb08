// SPDX-License-Identifier: MIT
// Cube pruning over every architecture: the tiny models of tests/data/models.
//
// With key none both forms are beam search to the bit; with key token the naive form's scores are
// those of forced decoding, followers share a leader's state or key/value path, and one sentence or
// many at once give the same bits.
#define _GNU_SOURCE
#include "unit/search_toy.h"

#include "fixture.h"

enum { NAMES = 128, LONGEST = 20, BEAM = 5 };

static toy_answer first[FIXTURE_SENTENCES], second[FIXTURE_SENTENCES];

static dgm_search_config config_of(int sentences)
{
    dgm_search_config c = toy_config(BEAM, DGM_FINISH_SHRINK);
    c.nbest = BEAM;
    c.max_length = LONGEST;
    c.max_source = TOY_SOURCE;
    c.sentences = sentences;
    c.word_scores = c.alignment = true;
    return c;
}

static dgm_search_stats run(const toy *const *models, int parts, const dgm_search_config *c,
                            const dgm_search_request *r, int count, toy_answer *a)
{
    toy_search t;
    toy_search_open(&t, c, models, parts, NULL);
    toy_run(&t, r, count, a);
    const dgm_search_stats stats = *dgm_search_counts(t.search);
    toy_search_close(&t);
    return stats;
}

static void same_bits(int count, const char *name, const char *what)
{
    for (int k = 0; k < count; k++)
        if (first[k].count != second[k].count ||
            memcmp(first[k].h, second[k].h, (size_t)first[k].count * sizeof *first[k].h) != 0)
            fail_msg("%s, %s: sentence %d differs", name, what, k);
}

static void check_forced(const toy *m, const dgm_search_config *like, const dgm_search_request *r,
                         int sentence, const char *name)
{
    static toy_answer forced;
    for (int n = 0; n < first[sentence].count; n++) {
        const toy_hypothesis *h = &first[sentence].h[n];
        if (h->count == 0) continue;
        dgm_search_config c = config_of(1);
        c.search = "auto";
        c.beam = c.nbest = 1;
        c.normalise = like->normalise;
        c.max_length = h->count;
        dgm_search_request one = r[sentence];
        one.prefix = h->tokens;
        one.prefix_count = h->count;
        run(&m, 1, &c, &one, 1, &forced);
        if (forced.h[0].sum != h->sum)
            fail_msg("%s: sentence %d, hypothesis %d: %.7f, exact %.7f", name, sentence, n,
                     (double)h->sum, (double)forced.h[0].sum);
        assert_memory_equal(forced.h[0].align, h->align,
                            (size_t)h->count * (size_t)one.source.count * sizeof *h->align);
    }
}

// Returns how many hypotheses were merged: sharp models have beams without equal words.
static uint64_t check_model(const toy *m, const dgm_search_request *r, int count, const char *name)
{
    uint64_t merged = 0;
    for (int kind = 0; kind < 4; kind++) {
        dgm_search_config c = config_of(3);
        c.normalise = kind & 1;
        run(&m, 1, &c, r, count, first);
        c.search = "cube";
        c.cube_exact = kind & 2;
        c.cube_key = DGM_CUBE_NONE;
        run(&m, 1, &c, r, count, second);
        same_bits(count, name, "key none");
        c.cube_key = DGM_CUBE_TOKEN;
        c.sentences = 1;
        const dgm_search_stats stats = run(&m, 1, &c, r, count, first);
        merged += stats.live - stats.leads;
        for (int k = 0; k < count && c.cube_exact; k++) check_forced(m, &c, r, k, name);
        c.sentences = 3;
        run(&m, 1, &c, r, count, second);
        same_bits(count, name, "one or many");
    }
    return merged;
}

static int requests_of(const fixture *f, dgm_search_request *r)
{
    for (int k = 0; k < f->count; k++)
        r[k] = (dgm_search_request){.source = {f->sentence[k].source, f->sentence[k].source_count}};
    return f->count;
}

static toy as_toy(const fixture *f)
{
    return (toy){.backend = f->backend, .model = f->model, .vocab = f->vocabulary};
}

static void test_every_model(void **state)
{
    (void)state;
    static char names[NAMES][64];
    static const char *const families[] = {"rnn-", "transformer-"};
    for (int family = 0; family < 2; family++) {
        const int count = fixture_list(families[family], names, NAMES, 8);
        uint64_t merged = 0;
        for (int i = 0; i < count; i++) {
            fixture f;
            dgm_search_request r[FIXTURE_SENTENCES];
            fixture_open(&f, names[i], NULL);
            const toy m = as_toy(&f);
            // The check forces results upon the model from the left.
            const bool forced = dgm_model_describe(f.model)->order == DGM_ORDER_L2R;
            if (forced) merged += check_model(&m, r, requests_of(&f, r), names[i]);
            fixture_close(&f);
        }
        assert_true(merged > 100);
    }
}

// A recurrent network and a Transformer: one leader serves both.
static void test_mixed_ensemble(void **state)
{
    (void)state;
    fixture f[2];
    dgm_search_request r[FIXTURE_SENTENCES];
    fixture_open(&f[0], "transformer-pieces", NULL);
    fixture_open(&f[1], "rnn-bahdanau-pieces", NULL);
    const toy m[] = {as_toy(&f[0]), as_toy(&f[1])};
    const toy *models[] = {&m[0], &m[1]};
    const int count = requests_of(&f[0], r);
    for (int kind = 0; kind < 8; kind++) {
        dgm_search_config c = config_of(3);
        c.normalise = kind & 1;
        c.mix = kind & 4 ? DGM_MIX_ARITHMETIC : DGM_MIX_LOG_LINEAR;
        run(models, 2, &c, r, count, first);
        c.search = "cube";
        c.cube_exact = kind & 2;
        c.cube_key = DGM_CUBE_NONE;
        run(models, 2, &c, r, count, second);
        same_bits(count, "ensemble", "key none");
        c.cube_key = DGM_CUBE_TOKEN;
        const dgm_search_stats stats = run(models, 2, &c, r, count, first);
        assert_true(stats.leads < stats.live);
        c.sentences = 1;
        run(models, 2, &c, r, count, second);
        same_bits(count, "ensemble", "one or many");
    }
    fixture_close(&f[0]);
    fixture_close(&f[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_model),
        cmocka_unit_test(test_mixed_ensemble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
