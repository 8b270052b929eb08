// SPDX-License-Identifier: MIT
// Given translations scored by models of pairs: the same numbers as the search that made them, in all
// orders of writing; and re-ranking by such a model.
//
// A given text is folded as in training. The search may also end with (EOD, x), which no training
// sentence has (double_fold.c): from both ends x is then the word in the middle, whose score and the
// end's are other ones; in the other orders x is dropped, and the end's score is another one.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "dragoman/tools.h"
#include "engine.h"
#include "failures.h"

#define FOLDER "tests/data/models/"

enum { TEXTS = 6 };

static const char *const texts[TEXTS] = {"the house is ein haus .", "und", "ein garten", "old",
                                         "das haus und the garten in der stadt .", "a b c d e f"};

static bool near(float a, float b)
{
    return fabsf(a - b) < 1e-4f * (1.0f + fabsf(a));
}

typedef struct tally {
    int equal, odd_end; // all of it; ended by (EOD, x)
} tally;

static void compare(const dgm_translation *x, const dgm_pair_score *p, bool both_ends, tally *n)
{
    assert_int_equal(p->status, DGM_OK);
    assert_int_equal(p->token_count, x->token_count);
    const size_t words = p->token_count - 1;
    const bool may_differ = both_ends == (words % 2 == 1);
    bool same = true;
    for (size_t i = 0; i <= words; i++) {
        assert_string_equal(p->tokens[i], x->tokens[i]);
        const bool free_place = i == words || (both_ends && i == words / 2);
        const bool equal = near(p->token_scores[i], x->token_scores[i]);
        if (!equal && !(may_differ && free_place))
            fail_msg("word %zu of %zu, '%s': %g, the search has %g", i, words, p->tokens[i],
                     (double)p->token_scores[i], (double)x->token_scores[i]);
        same &= equal;
    }
    if (same) {
        assert_true(near(p->sum, x->sum));
        assert_true(near(p->score, x->score));
    }
    n->equal += same;
    n->odd_end += !same;
}

// The scores of all that a translator says of the texts, in one call.
static tally score_all(dgm_translator *t, bool both_ends)
{
    dgm_results *r = NULL;
    dgm_pair_scores *scores = NULL;
    dgm_pair pairs[TEXTS * 4];
    size_t count = 0;
    tally n = {0};
    assert_int_equal(dgm_translate(t, texts, TEXTS, &r, NULL), DGM_OK);
    for (size_t i = 0; i < TEXTS; i++)
        for (size_t k = 0; k < r->items[i]->count; k++)
            pairs[count++] = (dgm_pair){{texts[i], strlen(texts[i])},
                                        {r->items[i]->translations[k]->text,
                                         strlen(r->items[i]->translations[k]->text)}};
    assert_int_equal(dgm_score_pairs(t, pairs, count, &scores, NULL), DGM_OK);
    assert_int_equal(scores->failed, 0);
    count = 0;
    for (size_t i = 0; i < TEXTS; i++)
        for (size_t k = 0; k < r->items[i]->count; k++)
            compare(r->items[i]->translations[k], scores->items[count++], both_ends, &n);
    dgm_pair_scores_free(&scores);
    dgm_results_free(&r);
    return n;
}

static dgm_settings list_settings(const char *precision)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.beam = s.nbest = 4;
    s.precision = precision;
    s.token_scores = 1;
    s.max_length = 12;
    s.shortlist = "all";
    return s;
}

static void test_scores_of_the_search(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool both_ends;
    } models[] = {{FOLDER "double-bidirectional.gguf", true}, {FOLDER "double-l2r.gguf", false},
                  {FOLDER "double-r2l.gguf", false},          {FOLDER "double-ssru.gguf", true},
                  {FOLDER "double-aan.gguf", true},           {FOLDER "double-i8.gguf", true}};
    static const char *const precisions[] = {"f32", "i16", "i8", "bf16"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (int p = 0; p < 4; p++) {
            dgm_settings s = list_settings(precisions[p]);
            s.threads = 1 + p % 2;
            dgm_translator *t = open_with(&s, models[m].path);
            const tally n = score_all(t, models[m].both_ends);
            if (n.equal < TEXTS) fail_msg("%s: %d, %d", models[m].path, n.equal, n.odd_end);
            dgm_close(&t);
        }
}

// Members' distributions are mixed as in the search; other batches give the same bits.
static void test_ensembles(void **state)
{
    (void)state;
    const dgm_member members[] = {{.path = FOLDER "double-l2r.gguf", .weight = 0.7f},
                                  {.path = FOLDER "double-l2r.gguf", .weight = 0.3f}};
    dgm_settings s = list_settings("f32");
    dgm_translator *t = NULL;
    assert_int_equal(dgm_open_ensemble(&t, members, 2, &s, NULL), DGM_OK);
    assert_true(score_all(t, false).equal >= TEXTS);
    const dgm_pair pairs[] = {{{texts[0], 5}, {"a", 1}}, {{texts[1], 3}, {"", 0}}, {{"x", 1}, {"b b b b", 7}}};
    dgm_pair_scores *all = NULL, *one = NULL;
    assert_int_equal(dgm_score_pairs(t, pairs, 3, &all, NULL), DGM_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dgm_score_pairs(t, pairs + i, 1, &one, NULL), DGM_OK);
        assert_true(one->items[0]->sum == all->items[i]->sum);
        assert_true(isfinite(one->items[0]->log_z[one->items[0]->token_count - 1]));
        dgm_pair_scores_free(&one);
    }
    assert_int_equal(all->items[1]->token_count, 1); // nothing but the end, a pair of EODs
    assert_string_equal(all->items[1]->tokens[0], "</s>");
    dgm_pair_scores_free(&all);
    dgm_close(&t);
}

// A trained model of pairs ranks what a model of one word a step found.
static void test_rerank(void **state)
{
    (void)state;
    const char *const sources[] = {"Good morning.", "The house is old."};
    const dgm_line lines[] = {{sources[0], strlen(sources[0])}, {sources[1], strlen(sources[1])}};
    dgm_settings s = list_settings("f32");
    dgm_translator *search = open_with(&s, FOLDER "transformer-pieces.gguf");
    dgm_translator *t = open_with(&s, FOLDER "double-pieces.gguf");
    dgm_results *before = NULL, *after = NULL;
    assert_int_equal(dgm_translate(search, sources, 2, &before, NULL), DGM_OK);
    assert_int_equal(dgm_translate(search, sources, 2, &after, NULL), DGM_OK);
    assert_int_equal(dgm_rerank(t, 0.5f, lines, after, NULL), DGM_OK);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < after->items[i]->count; k++) {
            const dgm_translation *x = after->items[i]->translations[k], *y = NULL;
            for (size_t j = 0; j < before->items[i]->count; j++)
                if (before->items[i]->translations[j]->sum == x->sum) y = before->items[i]->translations[j];
            assert_non_null(y);
            const dgm_pair pair = {lines[i], {x->text, strlen(x->text)}};
            dgm_pair_scores *own = NULL;
            assert_int_equal(dgm_score_pairs(t, &pair, 1, &own, NULL), DGM_OK);
            assert_true(near(x->score, y->score + 0.5f * own->items[0]->score));
            if (k) assert_true(x->score <= after->items[i]->translations[k - 1]->score);
            dgm_pair_scores_free(&own);
        }
    dgm_results_free(&before);
    dgm_results_free(&after);
    dgm_close(&search);
    dgm_close(&t);
}

static dgm_status score_once(dgm_translator *t)
{
    const dgm_pair pairs[] = {{{"ein garten", 10}, {"a b c", 5}}, {{"und", 3}, {"a b", 3}}};
    dgm_pair_scores *scores = NULL;
    const dgm_status st = dgm_score_pairs(t, pairs, 2, &scores, NULL);
    dgm_pair_scores_free(&scores);
    return st;
}

static void test_failures(void **state)
{
    (void)state;
    dgm_settings s = list_settings("f32");
    dgm_translator *t = open_with(&s, FOLDER "double-pieces.gguf");
    ALLOCATIONS_FAIL(score_once(t));
    dgm_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores_of_the_search),
        cmocka_unit_test(test_ensembles),
        cmocka_unit_test(test_rerank),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
