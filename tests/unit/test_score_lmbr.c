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

enum { LISTS = 40, LONGEST = 14, CANDIDATES = 30 };

typedef struct list {
    int32_t tokens[CANDIDATES][LONGEST + 1];
    int length[CANDIDATES];
    double weight[CANDIDATES];
    int count, vocabulary;
} list;

// Few words make many repeated n-grams, many words make wide families.
static void random_list(list *l, dgm_rng *rng)
{
    l->vocabulary = 2 + (int)dgm_rng_below(rng, 3) * 40;
    l->count = 1 + (int)dgm_rng_below(rng, CANDIDATES);
    for (int i = 0; i < l->count; i++) {
        l->length[i] = (int)dgm_rng_below(rng, LONGEST);
        for (int k = 0; k < l->length[i]; k++)
            l->tokens[i][k] = 1 + (int32_t)dgm_rng_below(rng, (uint64_t)l->vocabulary);
        l->tokens[i][l->length[i]++] = 0; // the end symbol
        l->weight[i] = -10 * dgm_rng_unit(rng);
    }
    dgm_evidence_weights(l->weight, (size_t)l->count, 0.7);
}

static bool contains(const list *l, int candidate, const int32_t *ngram, int n)
{
    for (int i = 0; i + n <= l->length[candidate]; i++)
        if (memcmp(l->tokens[candidate] + i, ngram, (size_t)n * sizeof *ngram) == 0) return true;
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
    dgm_lmbr_thetas(0.8, 0.5, 2, 4, theta);
    const float want[] = {-0.5f, 0.15625f, 0.3125f, 0.625f, 1.25f};
    for (int n = 0; n < 5; n++) assert_true(fabsf(theta[n] - want[n]) < 1e-6f);
    dgm_lmbr_thetas(0.8, 0.5, 2, 2, theta); // shared by two lengths instead of four
    const float two[] = {-0.5f, 0.3125f, 0.625f, 0, 0};
    for (int n = 0; n < 5; n++) assert_true(fabsf(theta[n] - two[n]) < 1e-6f);
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
            // Parts of candidates, with strangers between them.
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

// ---- lattices ----------------------------------------------------------------------------------

enum { PATHS_MAX = 20000, PATH_LONGEST = 10 };

typedef struct paths {
    int32_t tokens[PATHS_MAX][PATH_LONGEST + 1];
    int length[PATHS_MAX];
    double weight[PATHS_MAX];
    int count;
} paths;

static void enumerate(const dgm_lattice *l, int32_t node, double score, int32_t *tokens, int length,
                      paths *out)
{
    if (l->ends[node] > -INFINITY) {
        assert_true(out->count < PATHS_MAX);
        memcpy(out->tokens[out->count], tokens, (size_t)length * sizeof *tokens);
        out->tokens[out->count][length] = 0;
        out->length[out->count] = length + 1;
        out->weight[out->count++] = score + (double)l->ends[node];
    }
    for (size_t i = l->first[node]; i < l->first[node + 1]; i++) {
        const dgm_lattice_arc *a = &l->arcs[i];
        if (a->word >= 0) tokens[length] = a->word;
        enumerate(l, a->to, score + (double)a->score, tokens, length + (a->word >= 0), out);
    }
}

// Nodes in a row, arcs that skip some, some without a word; few words, so that they come again.
static dgm_lattice *random_lattice(dgm_rng *rng)
{
    dgm_lattice *l = NULL;
    dgm_error err;
    const int nodes = 2 + (int)dgm_rng_below(rng, PATH_LONGEST - 2);
    const uint64_t words = 1 + dgm_rng_below(rng, 4);
    int32_t number;
    assert_int_equal(dgm_lattice_open(&l, &err), DGM_OK);
    for (int i = 0; i < nodes; i++)
        assert_int_equal(dgm_lattice_add_node(l, 0, &number, &err), DGM_OK);
    for (int32_t from = 0; from + 1 < nodes; from++)
        for (uint64_t n = 1 + dgm_rng_below(rng, 3); n > 0; n--) {
            const int32_t most = nodes - 1 - from;
            const int32_t far = n == 1 ? 1 : 1 + (int32_t)dgm_rng_below(rng, (uint64_t)most);
            const dgm_lattice_arc arc = {
                .from = from,
                .to = from + far,
                .word = dgm_rng_below(rng, 6) == 0 ? DGM_LATTICE_NO_WORD
                                                   : 1 + (int32_t)dgm_rng_below(rng, words),
                .score = (float)(-4 * dgm_rng_unit(rng))};
            assert_int_equal(dgm_lattice_add_arc(l, &arc, &err), DGM_OK);
        }
    dgm_lattice_add_end(l, nodes - 1, -0.25f);
    dgm_lattice_add_end(l, (int32_t)dgm_rng_below(rng, (uint64_t)nodes), -1.0f);
    if (dgm_lattice_seal(l, true, &err) != DGM_OK) fail_msg("%s", err.text);
    return l;
}

static void test_lattices(void **state)
{
    (void)state;
    static paths all;
    dgm_rng rng = {5};
    dgm_error err;
    dgm_posteriors p = {0}, listed = {0};
    bool twice = false;
    for (int round = 0; round < 400; round++) {
        dgm_lattice *l = random_lattice(&rng);
        const double scale = (double)(round % 4) * 0.6;
        int32_t tokens[PATH_LONGEST + 1];
        all.count = 0;
        enumerate(l, 0, 0, tokens, 0, &all);
        dgm_evidence_weights(all.weight, (size_t)all.count, scale);
        dgm_posteriors_clear(&p);
        dgm_posteriors_clear(&listed);
        p.order = listed.order = round / 4 % 5; // 0: the usual one
        if (dgm_posteriors_lattice(&p, l, scale, 0, DGM_POSITIONS_MAX, &err) != DGM_OK) fail_msg("%s", err.text);
        for (int i = 0; i < all.count; i++)
            assert_int_equal(dgm_posteriors_add(&listed, all.tokens[i], (size_t)all.length[i],
                                                all.weight[i], &err),
                             DGM_OK);
        assert_int_equal(p.count, listed.count); // the same n-grams
        for (int i = 0; i < all.count; i++)
            for (int k = 0; k < all.length[i]; k++)
                for (int n = 1; n <= DGM_LMBR_ORDER && k + n <= all.length[i]; n++) {
                    const int32_t *u = all.tokens[i] + k;
                    const double a = dgm_posteriors_get(&p, u, n);
                    assert_true(n <= dgm_posteriors_order(&p) ? a > 0 : a == 0);
                    assert_true(fabs(a - dgm_posteriors_get(&listed, u, n)) < 1e-9);
                    twice |= n == 2 && k >= 2 && memcmp(u, u - 2, 2 * sizeof *u) == 0;
                }
        dgm_lattice_close(&l);
    }
    assert_true(twice);
    dgm_posteriors_free(&p);
    dgm_posteriors_free(&listed);
}

static void test_lattice_out_of_memory(void **state)
{
    (void)state;
    dgm_rng rng = {6};
    dgm_error err;
    dgm_lattice *l = random_lattice(&rng);
    dgm_status st = DGM_ERR_MEMORY;
    for (uint64_t n = 1; st != DGM_OK; n++) {
        const uint64_t before = dgm_mem_live();
        dgm_posteriors p = {0};
        dgm_mem_inject(n, 1);
        st = dgm_posteriors_lattice(&p, l, 1, 0, DGM_POSITIONS_MAX, &err);
        dgm_mem_inject(0, 0);
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        dgm_posteriors_free(&p);
        assert_int_equal(dgm_mem_live(), before);
    }
    dgm_lattice_close(&l);
}

// Every n-gram once, with its posterior and what the formula gives it; in order.
static void test_entries(void **state)
{
    (void)state;
    dgm_rng rng = {9};
    dgm_error err;
    dgm_posteriors p = {0};
    list l;
    const dgm_lmbr_weights w = {.theta = {-1, 0.5f, 1, 2, 3}, .lambda = 1};
    for (int round = 0; round < 50; round++) {
        dgm_lmbr_rows *r = NULL;
        dgm_lmbr_entry *e = NULL;
        size_t count = 0;
        random_list(&l, &rng);
        dgm_posteriors_clear(&p);
        fill(&p, &l);
        assert_int_equal(dgm_lmbr_compile(&r, &p, &w, &err), DGM_OK);
        assert_int_equal(dgm_lmbr_entries(&p, r, &e, &count, &err), DGM_OK);
        assert_int_equal(count, p.count - 1);
        for (size_t i = 0; i < count; i++) {
            assert_true(e[i].p == dgm_posteriors_get(&p, e[i].tokens, e[i].length));
            assert_true(fabs((double)e[i].gain -
                             by_formula(&l, w.theta, e[i].tokens, e[i].length - 1)) < 1e-5);
            if (i == 0) continue;
            assert_true(e[i - 1].length <= e[i].length);
            if (e[i - 1].length < e[i].length) continue;
            assert_true(e[i - 1].p >= e[i].p);
            assert_memory_not_equal(e[i - 1].tokens, e[i].tokens, sizeof e[i].tokens);
        }
        dgm_free(e);
        dgm_lmbr_free(&r);
    }
    dgm_posteriors_free(&p);
}

static void test_nothing(void **state)
{
    (void)state;
    dgm_posteriors p = {0};
    dgm_lmbr_rows *r = NULL;
    dgm_lmbr_entry *e = NULL;
    size_t count = 1;
    dgm_error err;
    dgm_lmbr_weights w = {.theta = {-1}, .lambda = 1};
    assert_int_equal(dgm_lmbr_compile(&r, &p, &w, &err), DGM_OK); // no evidence at all
    assert_int_equal(dgm_lmbr_entries(&p, r, &e, &count, &err), DGM_OK);
    assert_int_equal(count, 0);
    dgm_free(e);
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
    uint32_t node = 0;
    assert_int_equal(dgm_posteriors_node(&p, one, 0, &node, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_posteriors_node(&p, one, 1, &node, &err), DGM_OK);
    assert_int_equal(node, 1);
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
        const bool compiled = st == DGM_OK;
        dgm_lmbr_entry *e = NULL;
        size_t count = 0;
        if (compiled) st = dgm_lmbr_entries(&p, r, &e, &count, &err);
        dgm_mem_inject(0, 0);
        done = st == DGM_OK;
        if (!done) {
            assert_int_equal(st, DGM_ERR_MEMORY);
            assert_int_equal(r != NULL, compiled);
            assert_null(e);
        }
        dgm_free(e);
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
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_lattices),
        cmocka_unit_test(test_lattice_out_of_memory), cmocka_unit_test(test_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
