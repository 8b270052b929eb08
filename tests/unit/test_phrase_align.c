// SPDX-License-Identifier: MIT
// The word aligner: special functions, symmetrisation by hand, a corpus drawn from a known model 2
// (the trained model must find the true links almost as well as the true parameters do), an
// objective that never falls, and results that do not depend on the number of threads.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "align/align.h"
#include "align/align_private.h"
#include "align/links.h"
#include "align/symmetrize.h"

static uint64_t rng_state;

static double uniform(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return (double)(rng_state >> 11) / 9007199254740992.0;
}

static int draw(const double *p, int n)
{
    double u = uniform();
    for (int i = 0; i < n - 1; i++) {
        u -= p[i];
        if (u < 0) return i;
    }
    return n - 1;
}

// ---- special functions ------------------------------------------------------------------------

static void test_gamma(void **state)
{
    (void)state;
    static const double xs[] = {0.001, 0.01, 0.0123, 0.5, 1, 1.7, 2, 3.3, 9.99, 10, 25, 1e3, 4e7};
    for (size_t i = 0; i < sizeof xs / sizeof *xs; i++) {
        double psi, ln, h = xs[i] * 1e-5;
        dgm_gamma_pair(xs[i], &psi, &ln);
        assert_true(fabs(ln - lgamma(xs[i])) <= 1e-11 * (1 + fabs(ln)));
        double numeric = (lgamma(xs[i] + h) - lgamma(xs[i] - h)) / (2 * h);
        assert_true(fabs(psi - numeric) <= 1e-6 * (1 + fabs(psi)));
    }
    double psi, ln;
    dgm_gamma_pair(1, &psi, &ln);
    assert_true(fabs(psi + 0.57721566490153286) < 1e-11); // Euler's constant
}

// ---- symmetrisation ---------------------------------------------------------------------------

static void expect_links(int method, const int16_t *forward, int n, const int16_t *backward, int m,
                         const char *wanted)
{
    uint8_t cells[200];
    dgm_align_link links[40];
    char text[300] = "";
    size_t count =
        dgm_symmetrize_links((dgm_symmetrize)method, forward, n, backward, m, cells, links);
    for (size_t k = 0; k < count; k++)
        sprintf(text + strlen(text), "%s%d-%d", k ? " " : "", links[k].source, links[k].target);
    assert_string_equal(text, wanted);
}

static void test_symmetrize(void **state)
{
    (void)state;
    // Forward: target 0 from 0, 1 from 0, 2 from 2, 3 from 3. Backward: source 0 to 0, 1 to 1,
    // 2 to 2, 3 to nothing.
    static const int16_t forward[] = {0, 0, 2, 3}, backward[] = {0, 1, 2, -1};
    expect_links(DGM_SYM_FORWARD, forward, 4, backward, 4, "0-0 0-1 2-2 3-3");
    expect_links(DGM_SYM_BACKWARD, forward, 4, backward, 4, "0-0 1-1 2-2");
    expect_links(DGM_SYM_INTERSECT, forward, 4, backward, 4, "0-0 2-2");
    expect_links(DGM_SYM_UNION, forward, 4, backward, 4, "0-0 0-1 1-1 2-2 3-3");
    // From 0-0 the neighbours in order: 0-1 (column 1 is free) joins first, then the diagonal 1-1
    // (row 1 is free); 2-2 brings in 3-3.
    expect_links(DGM_SYM_GROW_DIAG, forward, 4, backward, 4, "0-0 0-1 1-1 2-2 3-3");
    // Nothing to grow from: the last step alone. 3-0 of forward comes first and takes row 3 and
    // column 0; final-and then refuses everything in them.
    static const int16_t far_f[] = {3, -1, -1, -1}, far_b[] = {-1, 0, -1, 1};
    expect_links(DGM_SYM_GROW_DIAG, far_f, 4, far_b, 4, "");
    expect_links(DGM_SYM_GROW_DIAG_FINAL_AND, far_f, 4, far_b, 4, "3-0");
    expect_links(DGM_SYM_GROW_DIAG_FINAL, far_f, 4, far_b, 4, "1-0 3-0 3-1");
    static const int16_t one[] = {-1};
    expect_links(DGM_SYM_GROW_DIAG_FINAL_AND, one, 1, one, 1, "");
    for (int i = 0; i < DGM_SYM_COUNT; i++)
        assert_int_equal(dgm_symmetrize_find(dgm_symmetrize_name(i)), i);
    assert_int_equal(dgm_symmetrize_find("grow"), -1);
}

static dgm_text text(const char *s)
{
    return dgm_text_of(s);
}

static void test_error_rate(void **state)
{
    (void)state;
    dgm_aer aer = {0};
    dgm_error err;
    // A = {0-0, 1-1, 2-2}, S = {0-0, 3-3}, P = S and 1-1: 1 - (1 + 2) / (3 + 2)
    assert_int_equal(dgm_aer_add(&aer, text("0-0 1?1 3-3"), text("0-0 1-1 2-2"), &err), DGM_OK);
    assert_true(fabs(dgm_aer_rate(&aer) - 0.4) < 1e-12);
    // Sets: what is said twice counts once, and the rate is never below 0.
    dgm_aer twice = {0};
    assert_int_equal(dgm_aer_add(&twice, text("0-0 0-0 1?1"), text("0-0 0-0 0-0 1-1"), &err), DGM_OK);
    assert_true(twice.links == 2 && twice.sure == 1 && twice.right_found == 2 && twice.sure_found == 1);
    assert_true(dgm_aer_rate(&twice) == 0);
    static const char *const bad[] = {"0", "0-", "-1", "0-1x", "0+1", "1--1", "a-b", "9999999-0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(dgm_aer_add(&aer, text(bad[i]), text(""), &err), DGM_ERR_FORMAT);
    assert_int_equal(dgm_aer_add(&aer, text("0-0"), text("0?0"), &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "'0?0' is not a link");
}

// ---- a corpus with known links ----------------------------------------------------------------

enum { E = 300, F = 420, CHOICES = 4, NULLS = 6, PAIRS = 12000, LONGEST = 24 };

typedef struct truth {
    double t[E][CHOICES];
    int word[E][CHOICES];
    double null[NULLS];
    double zipf[E];
    double p0, tension;
    int m[PAIRS], n[PAIRS];
    int32_t e[PAIRS][LONGEST], f[PAIRS][LONGEST];
    int16_t link[PAIRS][LONGEST];
} truth;

static void normalise(double *p, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += p[i];
    for (int i = 0; i < n; i++) p[i] /= sum;
}

static double weight(const truth *x, int i, int j, int m, int n)
{
    return exp(-x->tension * fabs((i + 1.0) / m - (j + 1.0) / n));
}

static void draw_pair(truth *x, int k)
{
    int m = x->m[k] = 3 + (int)(uniform() * (LONGEST - 5));
    int n = x->n[k] = 1 + (int)(m * (0.8 + 0.4 * uniform()));
    if (n > LONGEST) n = x->n[k] = LONGEST;
    for (int i = 0; i < m; i++) x->e[k][i] = draw(x->zipf, E);
    for (int j = 0; j < n; j++) {
        if (uniform() < x->p0) {
            x->link[k][j] = -1;
            x->f[k][j] = draw(x->null, NULLS);
            continue;
        }
        double a[LONGEST];
        for (int i = 0; i < m; i++) a[i] = weight(x, i, j, m, n);
        normalise(a, m);
        int i = draw(a, m), e = x->e[k][i];
        x->link[k][j] = (int16_t)i;
        x->f[k][j] = x->word[e][draw(x->t[e], CHOICES)];
    }
}

static truth *draw_corpus(uint64_t seed)
{
    truth *x = calloc(1, sizeof *x);
    assert_non_null(x);
    rng_state = seed;
    x->p0 = 0.08;
    x->tension = 7;
    for (int e = 0; e < E; e++) {
        x->zipf[e] = 1.0 / (e + 5);
        for (int c = 0; c < CHOICES; c++) {
            x->word[e][c] = (int)(uniform() * F);
            x->t[e][c] = pow(0.35, c);
        }
        normalise(x->t[e], CHOICES);
    }
    for (int c = 0; c < NULLS; c++) x->null[c] = 1.0 / (c + 1);
    normalise(x->null, NULLS);
    normalise(x->zipf, E);
    for (int k = 0; k < PAIRS; k++) draw_pair(x, k);
    return x;
}

static double true_probability(const truth *x, int e, int f)
{
    double p = 0;
    for (int c = 0; c < CHOICES; c++)
        if (x->word[e][c] == f) p += x->t[e][c];
    return p;
}

// Best links under the parameters that made the corpus.
static void true_viterbi(const truth *x, int k, int16_t *link)
{
    int m = x->m[k], n = x->n[k];
    for (int j = 0; j < n; j++) {
        double z = 0, best = x->f[k][j] < NULLS ? x->p0 * x->null[x->f[k][j]] : 0;
        link[j] = -1;
        for (int i = 0; i < m; i++) z += weight(x, i, j, m, n);
        for (int i = 0; i < m; i++) {
            double p = (1 - x->p0) * weight(x, i, j, m, n) / z *
                       true_probability(x, x->e[k][i], x->f[k][j]);
            if (p > best) {
                best = p;
                link[j] = (int16_t)i;
            }
        }
    }
}

static void add_errors(dgm_aer *aer, const int16_t *wanted, const int16_t *found, int n)
{
    for (int j = 0; j < n; j++) {
        aer->sure += wanted[j] >= 0;
        aer->links += found[j] >= 0;
        if (found[j] >= 0 && found[j] == wanted[j]) {
            aer->sure_found++;
            aer->right_found++;
        }
    }
}

static dgm_bitext *load(const truth *x, int pairs)
{
    dgm_bitext *b = NULL;
    dgm_error err;
    assert_int_equal(dgm_bitext_open(&b, 60, &err), DGM_OK);
    for (int k = 0; k < pairs; k++)
        assert_int_equal(
            dgm_bitext_add_ids(b, x->e[k], (size_t)x->m[k], x->f[k], (size_t)x->n[k], &err),
            DGM_OK);
    assert_int_equal(dgm_bitext_finish(b, &err), DGM_OK);
    assert_int_equal(b->pairs, pairs);
    return b;
}

static void test_known_model(void **state)
{
    (void)state;
    truth *x = draw_corpus(42);
    dgm_bitext *b = load(x, PAIRS);
    dgm_pool *pool = NULL;
    dgm_aligner *a = NULL;
    dgm_error err;
    assert_int_equal(dgm_pool_open(&pool, 2, &err), DGM_OK);
    for (int bayes = 0; bayes < 2; bayes++) {
        dgm_align_params o;
        dgm_align_params_default(&o);
        o.alpha = bayes ? 0.01 : 0;
        assert_int_equal(dgm_aligner_open(&a, b, 0, &o, pool, &err), DGM_OK);
        for (int i = 0; i < 12; i++) dgm_aligner_iterate(a);
        int16_t *link = malloc(b->side[1].token_count * sizeof *link);
        dgm_aligner_viterbi(a, link);
        dgm_aer ours = {0}, best = {0};
        for (int k = 0; k < PAIRS; k++) {
            int16_t under_truth[LONGEST];
            true_viterbi(x, k, under_truth);
            add_errors(&best, x->link[k], under_truth, x->n[k]);
            add_errors(&ours, x->link[k], link + b->side[1].start[b->pair[k]], x->n[k]);
        }
        print_message("error rate %.2f %%, with the true parameters %.2f %%, tension %.2f\n",
                      100 * dgm_aer_rate(&ours), 100 * dgm_aer_rate(&best), dgm_aligner_tension(a));
        assert_true(dgm_aer_rate(&ours) <= dgm_aer_rate(&best) + 0.01);
        assert_true(fabs(dgm_aligner_tension(a) - x->tension) < 1);
        free(link);
        dgm_aligner_close(&a);
    }
    dgm_pool_close(&pool);
    dgm_bitext_close(&b);
    free(x);
}

static void test_objective(void **state)
{
    (void)state;
    truth *x = draw_corpus(7);
    dgm_bitext *b = load(x, 2000);
    dgm_error err;
    for (int model = 1; model <= 2; model++)
        for (int from = 0; from < 2; from++)
            for (int bayes = 0; bayes < 2; bayes++) {
                dgm_align_params o;
                dgm_align_params_default(&o);
                o.model = model;
                o.alpha = bayes ? 0.01 : 0;
                o.tension = from ? 0.5 : 25; // starts far from the truth, on both sides
                dgm_aligner *a = NULL;
                assert_int_equal(dgm_aligner_open(&a, b, from, &o, NULL, &err), DGM_OK);
                double last = -INFINITY;
                for (int i = 0; i < 15; i++) {
                    double now = dgm_aligner_iterate(a);
                    assert_true(isfinite(now));
                    // The tables are floats: rounding may take 1e-7 of the value.
                    if (!(bayes && i < 2)) assert_true(now >= last - 2e-7 * fabs(last));
                    last = now;
                }
                dgm_aligner_close(&a);
            }
    dgm_bitext_close(&b);
    free(x);
}

// Rows of the trained table are distributions (EM), and NULL's too.
static void test_rows(void **state)
{
    (void)state;
    truth *x = draw_corpus(9);
    dgm_bitext *b = load(x, 500);
    dgm_error err;
    dgm_align_params o;
    dgm_align_params_default(&o);
    o.alpha = 0;
    dgm_aligner *a = NULL;
    assert_int_equal(dgm_aligner_open(&a, b, 0, &o, NULL, &err), DGM_OK);
    for (int i = 0; i < 4; i++) dgm_aligner_iterate(a);
    for (uint32_t e = 0; e <= b->side[0].types; e++) {
        double sum = 0;
        for (uint32_t f = 0; f < b->side[1].types; f++)
            sum += (double)dgm_aligner_probability(a, e < b->side[0].types ? e : UINT32_MAX, f);
        assert_true(fabs(sum - 1) < 1e-4);
    }
    dgm_aligner_close(&a);
    dgm_bitext_close(&b);
    free(x);
}

// Sums in the order of the paper's formulas, sentence by sentence and in double precision, against
// the first two rounds of the word-by-word passes.
static double plain_likelihood(const dgm_bitext *b, const dgm_aligner *a, double p0, double tension)
{
    double total = 0;
    for (uint32_t p = 0; p < b->pairs; p++) {
        const uint32_t *e = b->side[0].token + b->side[0].start[p];
        const uint32_t *f = b->side[1].token + b->side[1].start[p];
        int m = (int)(b->side[0].start[p + 1] - b->side[0].start[p]);
        int n = (int)(b->side[1].start[p + 1] - b->side[1].start[p]);
        for (int j = 0; j < n; j++) {
            double z = 0, sum = 0;
            for (int i = 0; i < m; i++) {
                double w = exp(-tension * fabs((i + 1.0) / m - (j + 1.0) / n));
                z += w;
                sum += w * (double)dgm_aligner_probability(a, e[i], f[j]);
            }
            total +=
                log(p0 * (double)dgm_aligner_probability(a, UINT32_MAX, f[j]) + (1 - p0) * sum / z);
        }
    }
    return total;
}

static void test_plain_formula(void **state)
{
    (void)state;
    truth *x = draw_corpus(11);
    dgm_bitext *b = load(x, 60);
    dgm_error err;
    dgm_align_params o;
    dgm_align_params_default(&o);
    o.alpha = 0;
    dgm_aligner *a = NULL;
    assert_int_equal(dgm_aligner_open(&a, b, 0, &o, NULL, &err), DGM_OK);
    for (int i = 0; i < 4; i++) {
        double plain = plain_likelihood(b, a, o.p0, dgm_aligner_tension(a));
        double fast = dgm_aligner_iterate(a);
        assert_true(fabs(plain - fast) <= 1e-5 * fabs(plain));
    }
    dgm_aligner_close(&a);
    dgm_bitext_close(&b);
    free(x);
}

static void test_threads(void **state)
{
    (void)state;
    truth *x = draw_corpus(5);
    dgm_bitext *b = load(x, 3000);
    dgm_error err;
    int16_t *first = NULL;
    double objective = 0, tension = 0;
    size_t tokens = b->side[1].token_count;
    for (int threads = 1; threads <= 5; threads++) {
        dgm_pool *pool = NULL;
        dgm_aligner *a = NULL;
        dgm_align_params o;
        dgm_align_params_default(&o);
        assert_int_equal(dgm_pool_open(&pool, threads, &err), DGM_OK);
        assert_int_equal(dgm_aligner_open(&a, b, 0, &o, pool, &err), DGM_OK);
        double last = 0;
        for (int i = 0; i < 4; i++) last = dgm_aligner_iterate(a);
        int16_t *link = malloc(tokens * sizeof *link);
        dgm_aligner_viterbi(a, link);
        if (!first) {
            first = link;
            objective = last;
            tension = dgm_aligner_tension(a);
        } else {
            assert_memory_equal(first, link, tokens * sizeof *link);
            assert_true(last == objective && tension == dgm_aligner_tension(a));
            free(link);
        }
        dgm_aligner_close(&a);
        dgm_pool_close(&pool);
    }
    free(first);
    dgm_bitext_close(&b);
    free(x);
}

// ---- limits -----------------------------------------------------------------------------------

static void test_small(void **state)
{
    (void)state;
    dgm_bitext *b = NULL;
    dgm_error err;
    assert_int_equal(dgm_bitext_open(&b, 0, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_bitext_open(&b, 3, &err), DGM_OK);
    assert_int_equal(dgm_bitext_add_words(b, text(""), text("a"), &err), DGM_OK);
    assert_int_equal(dgm_bitext_add_words(b, text("a b c d"), text("a"), &err), DGM_OK);
    assert_int_equal(dgm_bitext_finish(b, &err), DGM_ERR_TEXT);
    assert_non_null(strstr(err.text, "of 2 lines 1 are empty and 1 longer than 3 tokens"));
    dgm_bitext_close(&b);

    assert_int_equal(dgm_bitext_open(&b, 3, &err), DGM_OK);
    assert_int_equal(dgm_bitext_add_words(b, text(" one\ttwo "), text("eins zwei drei"), &err),
                     DGM_OK);
    assert_int_equal(dgm_bitext_add_words(b, text("one"), text("eins"), &err), DGM_OK);
    assert_int_equal(dgm_bitext_finish(b, &err), DGM_OK);
    assert_int_equal(b->side[0].types, 2);
    assert_int_equal(b->line[0], 1); // sorted by length
    assert_true(
        dgm_text_equal(dgm_words_spell(&b->side[0].words, b->side[0].name[0]), text("one")));
    dgm_align_params o, wrong;
    dgm_align_params_default(&o);
    dgm_aligner *a = NULL;
    for (int k = 0; k < 5; k++) {
        wrong = o;
        if (k == 0) wrong.model = 3;
        if (k == 1) wrong.p0 = 1;
        if (k == 2) wrong.alpha = -1;
        if (k == 3) wrong.tension = 0;
        if (k == 4) wrong.tension = NAN;
        assert_int_equal(dgm_aligner_open(&a, b, 0, &wrong, NULL, &err), DGM_ERR_ARGUMENT);
        assert_null(a);
    }
    assert_int_equal(dgm_aligner_open(&a, b, 1, &o, NULL, &err), DGM_OK);
    for (int i = 0; i < 3; i++) assert_true(isfinite(dgm_aligner_iterate(a)));
    int16_t link[3];
    dgm_aligner_viterbi(a, link);
    assert_int_equal(link[0], 0);
    dgm_aligner_close(&a);
    dgm_bitext_close(&b);
}

static dgm_status whole_run(const truth *x, dgm_error *err)
{
    dgm_bitext *b = NULL;
    dgm_aligner *a = NULL;
    dgm_pool *pool = NULL;
    dgm_align_params o;
    dgm_align_params_default(&o);
    dgm_status st = dgm_bitext_open(&b, 60, err);
    for (int k = 0; k < 40 && st == DGM_OK; k++)
        st = dgm_bitext_add_ids(b, x->e[k], (size_t)x->m[k], x->f[k], (size_t)x->n[k], err);
    if (st == DGM_OK) st = dgm_bitext_finish(b, err);
    if (st == DGM_OK) st = dgm_pool_open(&pool, 2, err);
    if (st == DGM_OK) st = dgm_aligner_open(&a, b, 0, &o, pool, err);
    if (st == DGM_OK) dgm_aligner_iterate(a);
    dgm_aligner_close(&a);
    dgm_bitext_close(&b);
    dgm_pool_close(&pool);
    return st;
}

static void test_memory(void **state)
{
    (void)state;
    truth *x = draw_corpus(3);
    uint64_t live = dgm_mem_live();
    dgm_status st = DGM_ERR_MEMORY;
    int n = 0;
    while (st != DGM_OK) {
        dgm_error err;
        dgm_mem_inject((uint64_t)++n, 1);
        st = whole_run(x, &err);
        dgm_mem_inject(0, 0);
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        assert_int_equal(dgm_mem_live(), live);
        assert_true(n < 10000);
    }
    assert_true(n > 20);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gamma),         cmocka_unit_test(test_symmetrize),
        cmocka_unit_test(test_error_rate),    cmocka_unit_test(test_known_model),
        cmocka_unit_test(test_objective),     cmocka_unit_test(test_rows),
        cmocka_unit_test(test_plain_formula), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_small),         cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
