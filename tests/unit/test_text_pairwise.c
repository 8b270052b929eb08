// SPDX-License-Identifier: MIT
// Scores of pairs against the metric itself, and minimum Bayes risk against the numbers that
// tests/oracle/make_mbr.py computes from the definitions.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "dragoman/tools.h"
#include "metrics/pairwise.h"

#define LIST "tests/data/mbr/list.txt"
#define EXPECTED "tests/data/mbr/expected.txt"

static const char *const texts[] = {"Das ist ein Haus.",
                                    "Das ist, wie gesagt, kein kleines Haus!",
                                    "",
                                    "Haus Haus Haus Haus Haus",
                                    "über 1.000 Häuser \xff kosten 3,5%",
                                    "  das  ist ein   haus .",
                                    "ab"};
enum { TEXTS = sizeof texts / sizeof *texts };

static void test_against_metric(void **state)
{
    (void)state;
    dgm_error err;
    for (int k = 0; k < 4; k++) {
        dgm_metric_options o;
        dgm_metric_options_default(&o, k < 2 ? DGM_METRIC_BLEU : DGM_METRIC_CHRF);
        o.effective_order = true;
        o.lowercase = k % 2;
        dgm_metric *m = NULL;
        dgm_pairwise *p = NULL;
        assert_int_equal(dgm_metric_open(&m, &o, &err), DGM_OK);
        assert_int_equal(dgm_pairwise_open(&p, &o, &err), DGM_OK);
        for (int round = 0; round < 2; round++) { // used again after a clear
            dgm_pairwise_clear(p);
            for (int i = 0; i < TEXTS; i++)
                assert_int_equal(dgm_pairwise_add(p, dgm_text_of(texts[i]), &err), DGM_OK);
            for (size_t a = 0; a < TEXTS; a++)
                for (size_t b = 0; b < TEXTS; b++) {
                    int64_t row[DGM_METRIC_WIDTH_MAX] = {0};
                    const dgm_text ref = dgm_text_of(texts[b]);
                    dgm_metric_score want;
                    double x, y;
                    assert_int_equal(
                        dgm_metric_segment(m, dgm_text_of(texts[a]), &ref, 1, row, &err), DGM_OK);
                    dgm_metric_score_of(m, row, &want);
                    dgm_pairwise_score(p, a, b, &x, &y);
                    assert_true(x == want.score);
                    dgm_pairwise_score(p, b, a, &x, &y);
                    assert_true(y == want.score);
                }
        }
        dgm_pairwise_close(&p);
        dgm_metric_close(&m);
    }
    dgm_metric_options words;
    dgm_pairwise *p = NULL;
    dgm_metric_options_default(&words, DGM_METRIC_CHRF);
    words.word_order = 2;
    assert_int_equal(dgm_pairwise_open(&p, &words, &err), DGM_ERR_UNSUPPORTED);
    assert_null(p);
}

static void test_mbr(void **state)
{
    (void)state;
    FILE *f = fopen(EXPECTED, "r");
    char *line = NULL;
    size_t cap = 0;
    int rows = 0;
    dgm_error err;
    assert_non_null(f);
    while (getline(&line, &cap, f) > 0) {
        char utility[8];
        double scale, want;
        unsigned long long number;
        size_t choice, best = 0;
        int used = 0, n = 0;
        assert_int_equal(
            sscanf(line, "%7s %lf %llu %zu%n", utility, &scale, &number, &choice, &used), 4);
        dgm_mbr_options o;
        dgm_mbr *m = NULL;
        dgm_evidence_file *in = NULL;
        dgm_evidence list;
        const double *gains = NULL;
        dgm_mbr_default(&o);
        o.utility = utility;
        o.tokenize = "none"; // its words stand between blanks
        o.scale = scale;
        assert_int_equal(dgm_mbr_open(&m, &o, &err), DGM_OK);
        assert_int_equal(dgm_evidence_open(&in, LIST, NULL, &err), DGM_OK);
        assert_int_equal(dgm_evidence_next(in, number, &list, &err), DGM_OK);
        assert_int_equal(dgm_mbr_choose(m, &list, &best, &gains, &err), DGM_OK);
        assert_int_equal(best, choice);
        for (size_t i = 0; i < list.count; i++, used += n) {
            assert_int_equal(sscanf(line + used, "%lf%n", &want, &n), 1);
            assert_true(fabs(gains[i] - want) < 1e-5);
        }
        dgm_evidence_close(&in);
        dgm_mbr_close(&m);
        rows++;
    }
    assert_int_equal(rows, 36);
    free(line);
    fclose(f);
}

static void test_refusals(void **state)
{
    (void)state;
    dgm_error err;
    dgm_mbr *m = NULL;
    dgm_mbr_options o;
    size_t best;
    dgm_mbr_default(&o);
    o.utility = "ter";
    assert_int_equal(dgm_mbr_open(&m, &o, &err), DGM_ERR_ARGUMENT);
    dgm_mbr_default(&o);
    o.scale = -1;
    assert_int_equal(dgm_mbr_open(&m, &o, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_mbr_open(&m, NULL, &err), DGM_OK);
    const dgm_evidence_candidate bad = {"a", 1, NAN};
    dgm_evidence e = {.size = sizeof(dgm_evidence), .candidates = &bad, .count = 0};
    assert_int_equal(dgm_mbr_choose(m, &e, &best, NULL, &err), DGM_ERR_ARGUMENT);
    e.count = 1;
    assert_int_equal(dgm_mbr_choose(m, &e, &best, NULL, &err), DGM_ERR_TEXT);
    dgm_mbr_close(&m);
}

// A list whose translations are all empty has no byte of text, and still an address for each.
static void test_empty_translations(void **state)
{
    (void)state;
    static const char lines[] = "0 |||  ||| F0= 0 ||| 0\n0 |||  ||| F0= 0 ||| -1\n";
    char path[] = "/tmp/dragoman-pairwise-XXXXXX";
    dgm_error err;
    dgm_evidence_file *in = NULL;
    dgm_evidence list;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, lines, sizeof lines - 1), sizeof lines - 1);
    close(fd);
    assert_int_equal(dgm_evidence_open(&in, path, NULL, &err), DGM_OK);
    assert_int_equal(dgm_evidence_next(in, 0, &list, &err), DGM_OK);
    assert_int_equal(list.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_non_null(list.candidates[i].text);
        assert_int_equal(list.candidates[i].size, 0);
    }
    dgm_evidence_close(&in);
    unlink(path);
}

// Lattices as lists of their best texts, with the scores of the paths; a failed call leaves nothing.
static void test_lattice_lists(void **state)
{
    (void)state;
    static const char lines[] = "lattice\n0 1 -1 das\n0 1 -3 ein\n0 1 -2 kein\n"
                                "1 2 0 haus\n2 3 0 ~.\n3 0\n\n"
                                "lattice\n0 1 -0.5 haus\n1 0\n";
    static const char *const want[] = {"das haus.", "kein haus.", "haus"};
    static const double scores[] = {-1, -2, -0.5};
    const dgm_evidence_options two = {.size = sizeof two, .nbest = 2};
    char path[] = "/tmp/dragoman-pairwise-XXXXXX";
    dgm_error err;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, lines, sizeof lines - 1), sizeof lines - 1);
    close(fd);
    dgm_status st = DGM_ERR_MEMORY;
    for (uint64_t n = 1; st != DGM_OK; n++) {
        const uint64_t before = dgm_mem_live();
        dgm_evidence_file *in = NULL;
        dgm_evidence list;
        size_t seen = 0;
        dgm_mem_inject(n, 1);
        st = dgm_evidence_open(&in, path, &two, &err);
        for (uint64_t line = 0; line < 2 && st == DGM_OK; line++) {
            st = dgm_evidence_next(in, line, &list, &err);
            if (st != DGM_OK) break;
            assert_null(list.lattice);
            assert_int_equal(list.count, 2 - line);
            for (size_t i = 0; i < list.count; i++, seen++) {
                assert_int_equal(list.candidates[i].size, strlen(want[seen]));
                assert_memory_equal(list.candidates[i].text, want[seen], strlen(want[seen]));
                assert_true(list.candidates[i].score == scores[seen]);
            }
        }
        if (st == DGM_OK) st = dgm_evidence_finish(in, 2, &err);
        dgm_mem_inject(0, 0);
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        dgm_evidence_close(&in);
        assert_int_equal(dgm_mem_live(), before);
        assert_true(n < 1000);
    }
    unlink(path);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    dgm_error err;
    dgm_evidence_candidate g[TEXTS];
    for (int i = 0; i < TEXTS; i++) g[i] = (dgm_evidence_candidate){texts[i], strlen(texts[i]), -i};
    const dgm_evidence e = {.size = sizeof(dgm_evidence), .candidates = g, .count = TEXTS};
    dgm_status st = DGM_ERR_MEMORY;
    for (uint64_t n = 1; st != DGM_OK; n++) {
        const uint64_t before = dgm_mem_live();
        dgm_mbr *m = NULL;
        size_t best;
        dgm_mem_inject(n, 1);
        st = dgm_mbr_open(&m, NULL, &err);
        if (st == DGM_OK) st = dgm_mbr_choose(m, &e, &best, NULL, &err);
        dgm_mem_inject(0, 0);
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        dgm_mbr_close(&m);
        assert_int_equal(dgm_mem_live(), before);
        assert_true(n < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_metric),
        cmocka_unit_test(test_mbr),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_empty_translations),
        cmocka_unit_test(test_lattice_lists),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
