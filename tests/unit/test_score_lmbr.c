// SPDX-License-Identifier: MIT
// N-gram posteriors against counting by hand, the rows of LMBR against the formula itself, on
// random evidence; thetas; every allocation failing.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "score/lmbr.h"

enum { LISTS = 40, LONGEST = 14, GUESSES = 30 };

typedef struct list {
    int32_t tokens[GUESSES][LONGEST + 1];
    int length[GUESSES];
    double weight[GUESSES];
    int count, vocabulary;
} list;

// Few words make many repeated n-grams, many words make wide families.
static void random_list(list *l, dgm_rng *rng)
{
    l->vocabulary = 2 + (int)dgm_rng_below(rng, 3) * 40;
    l->count = 1 + (int)dgm_rng_below(rng, GUESSES);
    for (int i = 0; i < l->count; i++) {
        l->length[i] = (int)dgm_rng_below(rng, LONGEST);
        for (int k = 0; k < l->length[i]; k++)
            l->tokens[i][k] = 1 + (int32_t)dgm_rng_below(rng, (uint64_t)l->vocabulary);
        l->tokens[i][l->length[i]++] = 0; // the end symbol
        l->weight[i] = -10 * dgm_rng_unit(rng);
    }
    dgm_evidence_weights(l->weight, (size_t)l->count, 0.7);
}

static bool contains(const list *l, int guess, const int32_t *ngram, int n)
{
    for (int i = 0; i + n <= l->length[guess]; i++)
        if (memcmp(l->tokens[guess] + i, ngram, (size_t)n * sizeof *ngram) == 0) return true;
    return false;
}

static double count_by_hand(const list *l, const int32_t *ngram, int n)
{
    double p = 0;
    for (int i = 0; i < l->count; i++)
        if (contains(l, i, ngram, n)) p += l->weight[i];
    return p;
}

static void fill(dgm_posteriors *p, const list *l)
{
    dgm_error err;
    for (int i = 0; i < l->count; i++)
        assert_int_equal(dgm_posteriors_add(p, l->tokens[i], (size_t)l->length[i], l->weight[i],
                                            &err),
                         DGM_OK);
}

static void test_weights(void **state)
{
    (void)state;
    double w[] = {-1, -2, -1000}, flat[] = {3, -5};
    dgm_evidence_weights(w, 3, 2);
    const double z = 1 + exp(-2);
    assert_true(fabs(w[0] - 1 / z) < 1e-15 && fabs(w[1] - exp(-2) / z) < 1e-15 && w[2] == 0);
    dgm_evidence_weights(flat, 2, 0);
    assert_true(flat[0] == 0.5 && flat[1] == 0.5);
    float theta[5];
    dgm_lmbr_thetas(0.8, 0.5, 2, theta);
    const float want[] = {-0.5f, 0.15625f, 0.3125f, 0.625f, 1.25f};
    for (int n = 0; n < 5; n++) assert_true(fabsf(theta[n] - want[n]) < 1e-6f);
}

static void test_posteriors(void **state)
{
    (void)state;
    dgm_rng rng = {7};
    dgm_posteriors p = {0};
    list l;
    for (int round = 0; round < LISTS; round++) {
        random_list(&l, &rng);
        dgm_posteriors_clear(&p);
        fill(&p, &l);
        size_t seen = 0;
        for (int i = 0; i < l.count; i++) // every n-gram there is
            for (int k = 0; k < l.length[i]; k++)
                for (int n = 1; n <= DGM_LMBR_ORDER && k + n <= l.length[i]; n++) {
                    const int32_t *u = l.tokens[i] + k;
                    assert_true(fabs(dgm_posteriors_get(&p, u, n) - count_by_hand(&l, u, n)) <
                                1e-12);
                    bool first = true;
                    for (int j = 0; j < i && first; j++) first = !contains(&l, j, u, n);
                    for (int j = 0; j < k && first; j++)
                        first = j + n > l.length[i] ||
                                memcmp(l.tokens[i] + j, u, (size_t)n * sizeof *u) != 0;
                    seen += first;
                }
        assert_int_equal(p.count, seen + 1); // and no other
        const int32_t none[] = {1, 0, 1, 1};
        assert_true(dgm_posteriors_get(&p, none, 2) == count_by_hand(&l, none, 2));
    }
    dgm_posteriors_free(&p);
}

// What the formula gives word `at` of a hypothesis.
static double by_formula(const list *l, const float *theta, const int32_t *tokens, int at)
{
    double sum = 0;
    for (int n = 1; n <= DGM_LMBR_ORDER && n <= at + 1; n++)
        sum += (double)theta[n] * count_by_hand(l, tokens + at + 1 - n, n);
    return sum;
}

static void check_shape(const dgm_lmbr_rows *r)
{
    assert_int_equal(r->at[0], 0);
    for (int32_t s = 0; s < r->states; s++) {
        assert_true(r->at[s] <= r->at[s + 1] && r->next_at[s] <= r->next_at[s + 1]);
        assert_true(s == 0 ? r->fail[s] == 0 : r->fail[s] < s);
        for (int32_t i = r->at[s] + 1; i < r->at[s + 1]; i++)
            assert_true(r->ids[i - 1] < r->ids[i]);
        for (int32_t i = r->next_at[s] + 1; i < r->next_at[s + 1]; i++)
            assert_true(r->next_ids[i - 1] < r->next_ids[i]);
    }
}

static void test_rows(void **state)
{
    (void)state;
    dgm_rng rng = {11};
    dgm_posteriors p = {0};
    dgm_error err;
    list l;
    for (int round = 0; round < LISTS; round++) {
        dgm_lmbr_weights w = {.theta = {-0.3f, 0.4f, 0.7f, 1.1f, 1.9f}, .lambda = 0.5f};
        for (int n = 4; n > 4 - round % 4; n--) w.theta[n] = 0;
        random_list(&l, &rng);
        dgm_posteriors_clear(&p);
        fill(&p, &l);
        dgm_lmbr_rows *r = NULL;
        assert_int_equal(dgm_lmbr_compile(&r, &p, &w, &err), DGM_OK);
        check_shape(r);
        for (int walk = 0; walk < 60; walk++) {
            // Parts of guesses, with strangers between them.
            int32_t y[2 * LONGEST];
            int count = 0;
            while (count < 2 * LONGEST - 4) {
                const int g = (int)dgm_rng_below(&rng, (uint64_t)l.count);
                const int from = (int)dgm_rng_below(&rng, (uint64_t)l.length[g]);
                for (int k = from; k < l.length[g] && k < from + 5 && count < 2 * LONGEST - 1; k++)
                    y[count++] = l.tokens[g][k];
                if (dgm_rng_below(&rng, 3) == 0)
                    y[count++] = (int32_t)dgm_rng_below(&rng, (uint64_t)l.vocabulary + 3);
            }
            int32_t s = 0;
            for (int t = 0; t < count; t++) {
                const double want = by_formula(&l, w.theta, y, t);
                assert_true(fabs((double)dgm_lmbr_gain(r, s, y[t]) - want) < 1e-5);
                s = dgm_lmbr_next(r, s, y[t]);
                assert_in_range(s, 0, r->states - 1);
            }
        }
        dgm_lmbr_free(&r);
        assert_null(r);
    }
    dgm_posteriors_free(&p);
}

static void test_nothing(void **state)
{
    (void)state;
    dgm_posteriors p = {0};
    dgm_lmbr_rows *r = NULL;
    dgm_error err;
    dgm_lmbr_weights w = {.theta = {-1}, .lambda = 1};
    assert_int_equal(dgm_lmbr_compile(&r, &p, &w, &err), DGM_OK); // no evidence at all
    assert_int_equal(r->states, 1);
    assert_int_equal(r->at[1], 0);
    assert_true(dgm_lmbr_gain(r, 0, 5) == 0 && dgm_lmbr_next(r, 0, 5) == 0);
    dgm_lmbr_free(&r);
    const int32_t one[] = {3};
    assert_int_equal(dgm_posteriors_add(&p, one, 1, 1, &err), DGM_OK);
    assert_int_equal(dgm_lmbr_compile(&r, &p, &w, &err), DGM_OK);
    assert_int_equal(r->at[1], 0); // its words earn nothing: nobody needs them
    dgm_lmbr_free(&r);
    w.theta[1] = 1;
    assert_int_equal(dgm_lmbr_compile(&r, &p, &w, &err), DGM_OK);
    assert_int_equal(r->at[1], 1);
    dgm_lmbr_free(&r);
    assert_int_equal(dgm_posteriors_set(&p, one, 0, 1, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_posteriors_set(&p, one, 1, 0.25, &err), DGM_OK);
    assert_true(dgm_posteriors_get(&p, one, 1) == 0.25);
    dgm_posteriors_free(&p);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    dgm_rng rng = {3};
    dgm_error err;
    list l;
    random_list(&l, &rng);
    const dgm_lmbr_weights w = {.theta = {-1, 1, 1, 1, 1}, .lambda = 1};
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        const uint64_t before = dgm_mem_live();
        dgm_posteriors p = {0};
        dgm_lmbr_rows *r = NULL;
        dgm_status st = DGM_OK;
        dgm_mem_inject(n, 1);
        for (int i = 0; i < l.count && st == DGM_OK; i++)
            st = dgm_posteriors_add(&p, l.tokens[i], (size_t)l.length[i], l.weight[i], &err);
        if (st == DGM_OK) st = dgm_lmbr_compile(&r, &p, &w, &err);
        dgm_mem_inject(0, 0);
        done = st == DGM_OK;
        if (!done) {
            assert_int_equal(st, DGM_ERR_MEMORY);
            assert_null(r);
        }
        dgm_lmbr_free(&r);
        dgm_posteriors_free(&p);
        assert_int_equal(dgm_mem_live(), before);
        assert_true(n < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights),     cmocka_unit_test(test_posteriors),
        cmocka_unit_test(test_rows),        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
