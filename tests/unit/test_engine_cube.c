// SPDX-License-Identifier: MIT
// Cube pruning and self-normalised models through the public API: settings that fit and that do
// not, scores of the results, counters, log Z.
#define _GNU_SOURCE
#include <math.h>
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

#define NORMALISED "tests/data/models/self-normalised.gguf"
#define OTHER "tests/data/models/transformer-pieces.gguf"

static const char *const texts[] = {"the old man sees the small child today .",
                                    "the quiet teacher paints the red bridge .",
                                    "the new horse often loves the beautiful town ."};
static const char *const wanted[] = {"der alte mann sieht heute das kleine kind .",
                                     "der stille lehrer malt die rote brücke .", NULL};
enum { TEXTS = 3 };

static dgm_settings cube_settings(const char *cube, const char *key, const char *softmax)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.search = "cube";
    s.finish = "shrink";
    s.beam = 6;
    s.cube = cube;
    s.cube_key = key;
    s.softmax = softmax;
    return s;
}

static dgm_results *translate(const char *path, const dgm_settings *s, dgm_counters *c)
{
    dgm_translator *t = NULL;
    dgm_error error = {{0}};
    dgm_results *r = NULL;
    if (dgm_open(&t, path, s, &error) != DGM_OK) fail_msg("%s", error.text);
    assert_int_equal(dgm_translate(t, texts, TEXTS, &r, &error), DGM_OK);
    assert_int_equal(r->failed, 0);
    if (c) dgm_count(t, c);
    dgm_close(&t);
    return r;
}

static void test_translations(void **state)
{
    (void)state;
    static const char *const kinds[] = {"naive", "accelerated", NULL};
    static const char *const softmax[] = {"on", "off", "force-off", NULL};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++) {
            const dgm_settings s = cube_settings(kinds[i], NULL, softmax[k]);
            dgm_results *r = translate(NORMALISED, &s, NULL);
            for (int n = 0; n < TEXTS; n++) {
                if (wanted[n]) assert_string_equal(dgm_result_text(r->items[n]), wanted[n]);
                assert_int_equal(r->items[n]->translations[0]->approximate, i > 0);
            }
            dgm_results_free(&r);
        }
    }
}

// Exact scores are those of dgm_score_pairs, with the softmax and without.
static void test_exact_scores(void **state)
{
    (void)state;
    for (int off = 0; off < 2; off++) {
        dgm_settings s = cube_settings("accelerated", "token", off ? "off" : "on");
        s.exact_scores = 1;
        s.nbest = 3;
        s.token_scores = 1;
        dgm_results *r = translate(NORMALISED, &s, NULL);
        dgm_translator *t = NULL;
        assert_int_equal(dgm_open(&t, NORMALISED, &s, NULL), DGM_OK);
        for (int n = 0; n < TEXTS; n++) {
            for (size_t k = 0; k < r->items[n]->count; k++) {
                const dgm_translation *x = r->items[n]->translations[k];
                const dgm_pair pair = {{texts[n], strlen(texts[n])}, {x->text, x->text_size}};
                dgm_pair_scores *scores = NULL;
                assert_int_equal(x->approximate, 0);
                assert_int_equal(dgm_score_pairs(t, &pair, 1, &scores, NULL), DGM_OK);
                assert_int_equal(scores->items[0]->token_count, x->token_count);
                assert_true(fabsf(scores->items[0]->sum - x->sum) < 1e-4f);
                for (size_t i = 0; i < x->token_count; i++)
                    assert_true(fabsf(scores->items[0]->token_scores[i] - x->token_scores[i]) <
                                1e-4f);
                assert_true((scores->items[0]->log_z == NULL) == (off == 1));
                dgm_pair_scores_free(&scores);
            }
        }
        dgm_close(&t);
        dgm_results_free(&r);
    }
}

// Scores as the search has them: its own order, nothing is scored again, and exact scores are only
// exact where states were the hypothesis' own.
static void test_approximate_scores(void **state)
{
    (void)state;
    dgm_settings s = cube_settings(NULL, NULL, NULL);
    dgm_counters plain = {.size = sizeof plain}, rescored = {.size = sizeof rescored},
                 kept = {.size = sizeof kept};
    s.nbest = 4;
    dgm_results *as_searched = translate(NORMALISED, &s, &plain);
    s.exact_scores = 1;
    dgm_results *exact = translate(NORMALISED, &s, &rescored);
    s.approximate_scores = 1;
    dgm_results *approximate = translate(NORMALISED, &s, &kept);
    int differ = 0;
    for (int n = 0; n < TEXTS; n++) {
        assert_int_equal(approximate->items[n]->count, as_searched->items[n]->count);
        for (size_t k = 0; k < approximate->items[n]->count; k++) {
            const dgm_translation *a = approximate->items[n]->translations[k];
            const dgm_translation *b = as_searched->items[n]->translations[k];
            assert_true(a->approximate == 1 && b->approximate == 1);
            assert_string_equal(a->text, b->text);
            assert_true(a->sum == b->sum && a->score == b->score);
            const dgm_translation *x = exact->items[n]->translations[k];
            assert_int_equal(x->approximate, 0);
            differ += x->sum != a->sum;
        }
    }
    assert_true(differ > 0);
    assert_true(kept.rows == plain.rows && kept.rows < rescored.rows);
    dgm_results_free(&as_searched);
    dgm_results_free(&exact);
    dgm_results_free(&approximate);
    // Naive cube pruning has the model's own, and says so where others are asked for (test_refusals).
    s.cube = "naive";
    s.approximate_scores = 0;
    dgm_results *naive = translate(NORMALISED, &s, NULL);
    assert_int_equal(naive->items[0]->translations[0]->approximate, 0);
    dgm_results_free(&naive);
}

static void test_counters(void **state)
{
    (void)state;
    dgm_counters beam = {0}, none = {0}, naive = {0}, fast = {0};
    dgm_settings s = cube_settings(NULL, NULL, "off");
    dgm_results *r = translate(NORMALISED, &s, &fast);
    dgm_results_free(&r);
    s.cube = "naive";
    r = translate(NORMALISED, &s, &naive);
    dgm_results_free(&r);
    s.cube_key = "none";
    r = translate(NORMALISED, &s, &none);
    dgm_results_free(&r);
    s.search = "beam";
    s.cube = s.cube_key = NULL;
    r = translate(NORMALISED, &s, &beam);
    dgm_results_free(&r);
    assert_true(beam.leads == beam.live && beam.pops == 0 && beam.exact == 0);
    assert_true(none.leads == beam.leads && none.live == beam.live && none.rows == beam.rows);
    assert_true(none.dots == beam.dots && none.pops > 0 && none.heap_peak <= 6);
    assert_true(fast.leads < fast.live && fast.exact == 0 && fast.rows < beam.rows);
    assert_true(naive.exact > 0 && naive.rows == naive.leads + naive.exact);
    assert_true(naive.rank_rows == naive.leads); // a product per popped cell is no projection
    assert_true(fast.heaps >= fast.heap_peak && fast.heap_peak > 0);
}

static void refuse(const char *path, const dgm_settings *s, dgm_status status, const char *why)
{
    dgm_translator *t = NULL;
    dgm_error error = {{0}};
    assert_int_equal(dgm_open(&t, path, s, &error), status);
    if (!strstr(error.text, why)) fail_msg("'%s' does not say '%s'", error.text, why);
    assert_null(t);
}

static void test_refusals(void **state)
{
    (void)state;
    dgm_settings s = cube_settings("naive", NULL, "off");
    refuse(OTHER, &s, DGM_ERR_UNSUPPORTED, "not trained to be self-normalised");
    s.softmax = "of";
    refuse(NORMALISED, &s, DGM_ERR_ARGUMENT, "softmax must be one of on, off, force-off, not 'of'");
    s = cube_settings("native", NULL, NULL);
    refuse(NORMALISED, &s, DGM_ERR_ARGUMENT, "cube pruning must be one of accelerated, naive, not 'native'");
    s = cube_settings(NULL, "state:1e99", NULL);
    refuse(NORMALISED, &s, DGM_ERR_ARGUMENT, "cube key must be");
    s = cube_settings("naive", NULL, NULL);
    s.search = "beam";
    refuse(NORMALISED, &s, DGM_ERR_ARGUMENT, "cube cannot be combined with search beam: ");
    s = cube_settings(NULL, "token", NULL);
    s.search = NULL;
    refuse(NORMALISED, &s, DGM_ERR_ARGUMENT, "cube-key cannot be combined with search beam: ");
    s = cube_settings(NULL, NULL, NULL);
    s.exact_scores = 2;
    refuse(NORMALISED, &s, DGM_ERR_ARGUMENT, "exact scores");
    s.exact_scores = 0;
    s.approximate_scores = 1;
    s.search = "beam";
    refuse(NORMALISED, &s, DGM_ERR_ARGUMENT, "approximate-scores cannot be combined with search beam: ");
    s = cube_settings("naive", NULL, NULL);
    s.approximate_scores = 1;
    refuse(NORMALISED, &s, DGM_ERR_ARGUMENT, "approximate-scores cannot be combined with cube-naive: ");
}

static void lines_of(const char *const *from, dgm_line *to)
{
    for (int i = 0; i < 2; i++) to[i] = (dgm_line){from[i], strlen(from[i])};
}

static void test_log_z(void **state)
{
    (void)state;
    dgm_line sources[2], targets[2];
    dgm_log_z own = {.size = sizeof own}, forced = {.size = sizeof forced};
    dgm_translator *t = NULL;
    dgm_error error;
    lines_of(texts, sources);
    lines_of(wanted, targets);
    assert_int_equal(dgm_open(&t, NORMALISED, NULL, NULL), DGM_OK);
    assert_int_equal(dgm_log_z_measure(t, sources, targets, 2, &forced, NULL), DGM_OK);
    assert_int_equal(dgm_log_z_measure(t, sources, NULL, 2, &own, NULL), DGM_OK);
    assert_memory_equal(&own, &forced, sizeof own); // it translates them so
    assert_int_equal(forced.lines, 2);
    assert_int_equal(forced.tokens, 19);
    assert_true(fabs(forced.mean) < 0.2 && forced.mean_absolute < 0.2 && forced.deviation < 0.3);
    for (int i = 1; i < 9; i++) assert_true(forced.quantiles[i] >= forced.quantiles[i - 1]);
    assert_int_equal(dgm_log_z_measure(t, sources, targets, 0, &own, &error), DGM_ERR_TEXT);
    dgm_close(&t);
    dgm_settings s = cube_settings(NULL, NULL, "off");
    assert_int_equal(dgm_open(&t, NORMALISED, &s, NULL), DGM_OK);
    assert_int_equal(dgm_log_z_measure(t, sources, NULL, 2, &own, &error), DGM_ERR_ARGUMENT);
    dgm_close(&t);
}

// Every allocation of opening, translating and measuring may fail; nothing is lost.
static void test_no_memory(void **state)
{
    (void)state;
    dgm_settings s = cube_settings(NULL, "state:0.5", NULL);
    s.exact_scores = 1;
    dgm_line sources[2];
    lines_of(texts, sources);
    for (uint64_t n = 1;; n++) {
        const uint64_t live = dgm_mem_live(), before = dgm_mem_allocations();
        dgm_translator *t = NULL;
        dgm_log_z z = {.size = sizeof z};
        dgm_mem_inject(n, 1);
        dgm_status st = dgm_open(&t, NORMALISED, &s, NULL);
        if (st == DGM_OK) st = dgm_log_z_measure(t, sources, NULL, 2, &z, NULL);
        dgm_mem_inject(0, 0);
        const bool all = dgm_mem_allocations() - before < n;
        dgm_close(&t);
        assert_int_equal(dgm_mem_live(), live);
        if (all) {
            assert_int_equal(st, DGM_OK);
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_translations), cmocka_unit_test(test_exact_scores),
        cmocka_unit_test(test_approximate_scores),
        cmocka_unit_test(test_counters),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_log_z),        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
