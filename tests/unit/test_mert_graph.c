// SPDX-License-Identifier: MIT
// MERT over graphs against lists of all their paths: the line search must find the same score and
// a step that reaches it, and the score under any weights must be that of the lists.
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
#include "phrase/mert.h"

enum { F = 5, LINES = 12, NODES_MAX = 9, ARCS_MAX = 40, WORDS_MAX = 64 };

static uint32_t random_state = 11;

static double random_unit(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) / 16777216.0;
}

static int below(int n)
{
    return (int)(random_unit() * n);
}

static const char *const VOCABULARY[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

typedef struct graph {
    int nodes, count;
    dgm_mert_arc arcs[ARCS_MAX];
    dgm_text words[ARCS_MAX][3];
    double features[ARCS_MAX][F];
} graph;

// Counts by a formula of the words, like BLEU's of a reference that a hash makes up.
static dgm_status rate(void *cookie, size_t sentence, const dgm_text *words, int count,
                       int64_t *row, dgm_error *err)
{
    (void)cookie;
    (void)err;
    uint32_t v = (uint32_t)sentence * 2654435761u + 7;
    for (int i = 0; i < count; i++) v = (v ^ (uint8_t)words[i].data[0]) * 16777619u + 3;
    int most = 10;
    row[0] = 8 + count % 5;
    row[1] = 10;
    for (int n = 0; n < 4; n++) {
        v = v * 1664525u + 1013904223u;
        int found = 1 + (int)(v >> 16) % (most < 10 - n ? most : 10 - n);
        row[2 + n] = most = found;
        row[6 + n] = 10 - n;
    }
    return DGM_OK;
}

static void make_graph(graph *g)
{
    g->nodes = 3 + below(NODES_MAX - 3);
    g->count = 0;
    for (int to = 1; to < g->nodes; to++) {
        int ways = 1 + below(4);
        for (int k = 0; k < ways; k++) {
            int i = g->count++, n = below(4) ? 1 + below(2) : 0;
            for (int w = 0; w < n; w++) g->words[i][w] = dgm_text_of(VOCABULARY[below(8)]);
            for (int f = 0; f < F; f++) g->features[i][f] = (float)(4 * random_unit() - 2);
            if (below(5) == 0) g->features[i][below(F)] = 0; // arcs of equal slopes
            int from = k ? below(to) : to - 1;
            g->arcs[i] = (dgm_mert_arc){from, to, g->words[i], n, g->features[i]};
        }
    }
}

// Adds all paths of a graph from a node on.
static size_t add_paths(dgm_mert_set *lists, size_t sentence, const graph *g, int node,
                        const dgm_text *words, int count, const double *features)
{
    dgm_error err;
    if (node == g->nodes - 1) {
        int64_t row[10];
        assert_int_equal(rate(NULL, sentence, words, count, row, &err), DGM_OK);
        assert_int_equal(dgm_mert_set_add(lists, sentence, features, row, &err), DGM_OK);
        return 1;
    }
    size_t paths = 0;
    for (int i = 0; i < g->count; i++) {
        const dgm_mert_arc *a = &g->arcs[i];
        if (a->from != node) continue;
        dgm_text more[WORDS_MAX];
        double sum[F];
        if (count) memcpy(more, words, (size_t)count * sizeof *words);
        if (a->count) memcpy(more + count, a->words, (size_t)a->count * sizeof *words);
        for (int f = 0; f < F; f++) sum[f] = features[f] + a->features[f];
        paths += add_paths(lists, sentence, g, a->to, more, count + a->count, sum);
    }
    return paths;
}

static dgm_metric *open_metric(void)
{
    dgm_error err;
    dgm_metric_options o;
    dgm_metric *m = NULL;
    dgm_metric_options_default(&o, DGM_METRIC_BLEU);
    assert_int_equal(dgm_metric_open(&m, &o, &err), DGM_OK);
    return m;
}

static double score_under(const dgm_mert_set *s, const double *weights)
{
    double score;
    dgm_error err;
    assert_int_equal(dgm_mert_set_score(s, weights, &score, &err), DGM_OK);
    return score;
}

static void make_sets(const dgm_metric *metric, dgm_mert_set **graphs, dgm_mert_set **lists)
{
    static graph g;
    dgm_error err;
    double none[F] = {0};
    assert_int_equal(dgm_mert_set_open(graphs, LINES, F, metric, &err), DGM_OK);
    assert_int_equal(dgm_mert_set_open(lists, LINES, F, metric, &err), DGM_OK);
    dgm_mert_set_rate(*graphs, rate, NULL);
    for (size_t i = 0; i < LINES; i++)
        for (int round = 0; round < 1 + (int)(i % 3); round++) { // one to three graphs each
            make_graph(&g);
            for (int twice = 0; twice < 2; twice++)
                assert_int_equal(dgm_mert_set_add_graph(*graphs, i, g.arcs, (size_t)g.count,
                                                        g.nodes, &err),
                                 DGM_OK);
            assert_true(add_paths(*lists, i, &g, 0, NULL, 0, none) > 0);
        }
}

static void lines_are_those_of_all_paths(void **state)
{
    (void)state;
    dgm_error err;
    dgm_metric *metric = open_metric();
    for (int trial = 0; trial < 40; trial++) {
        dgm_mert_set *graphs, *lists;
        make_sets(metric, &graphs, &lists);
        for (int round = 0; round < 6; round++) {
            double w[F], d[F] = {0}, v[F], step[2], score[2];
            for (int f = 0; f < F; f++) w[f] = 2 * random_unit() - 1;
            if (round % 2)
                d[below(F)] = 1;
            else
                for (int f = 0; f < F; f++) d[f] = 2 * random_unit() - 1;
            assert_true(fabs(score_under(graphs, w) - score_under(lists, w)) < 1e-9);
            assert_int_equal(dgm_mert_line(graphs, w, d, &step[0], &score[0], &err), DGM_OK);
            assert_int_equal(dgm_mert_line(lists, w, d, &step[1], &score[1], &err), DGM_OK);
            assert_true(fabs(score[0] - score[1]) < 1e-6);
            for (int k = 0; k < 2; k++) {
                for (int f = 0; f < F; f++) v[f] = w[f] + step[k] * d[f];
                assert_true(fabs(score_under(graphs, v) - score[0]) < 1e-6);
                assert_true(fabs(score_under(lists, v) - score[0]) < 1e-6);
            }
        }
        dgm_mert_set_close(&graphs);
        dgm_mert_set_close(&lists);
    }
    dgm_metric_close(&metric);
}

static void the_search_is_deterministic(void **state)
{
    (void)state;
    dgm_error err;
    dgm_metric *metric = open_metric();
    dgm_mert_set *graphs, *lists;
    make_sets(metric, &graphs, &lists);
    dgm_pool *pool = NULL;
    assert_int_equal(dgm_pool_open(&pool, 3, &err), DGM_OK);
    double w[2][F], score[2], start = 0;
    for (int k = 0; k < 2; k++) {
        for (int f = 0; f < F; f++) w[k][f] = 0.2;
        start = score_under(graphs, w[k]);
        dgm_mert_params p = {.restarts = 4, .directions = 3, .seed = 5, .pool = k ? pool : NULL};
        assert_int_equal(dgm_mert_search(graphs, &p, w[k], &score[k], &err), DGM_OK);
        assert_true(score[k] > start);
        assert_true(fabs(score_under(lists, w[k]) - score[k]) < 1e-6);
    }
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    dgm_pool_close(&pool);
    dgm_mert_set_close(&graphs);
    dgm_mert_set_close(&lists);
    dgm_metric_close(&metric);
}

// A search without hypotheses changes nothing.
static void nothing_to_search(void **state)
{
    (void)state;
    dgm_error err;
    dgm_metric *metric = open_metric();
    dgm_mert_set *none;
    assert_int_equal(dgm_mert_set_open(&none, LINES, F, metric, &err), DGM_OK);
    double w[F] = {0.2, 0.2, 0.2, 0.2, 0.2}, score = -1;
    const dgm_mert_params p = {.restarts = 1, .directions = 1, .seed = 5};
    assert_int_equal(dgm_mert_search(none, &p, w, &score, &err), DGM_OK);
    for (int f = 0; f < F; f++) assert_true(w[f] == 0.2);
    assert_true(score == 0);
    dgm_mert_set_close(&none);
    dgm_metric_close(&metric);
}

static double apart(const double *a, const double *b)
{
    double sum[2] = {0}, d = 0;
    for (int f = 0; f < F; f++) {
        sum[0] += fabs(a[f]);
        sum[1] += fabs(b[f]);
    }
    for (int f = 0; f < F; f++) d += fabs(a[f] / sum[0] - b[f] / sum[1]);
    return d;
}

// Graphs say nothing about weights far from those they were decoded with; a search that is held
// near these stays there, from its random starting points too, and never loses.
static void the_search_stays_near(void **state)
{
    (void)state;
    dgm_error err;
    dgm_metric *metric = open_metric();
    const double start[F] = {0.3, -0.1, 0.25, 0.05, 0.3};
    int gains = 0;
    for (int trial = 0; trial < 20; trial++) {
        dgm_mert_set *graphs, *lists;
        make_sets(metric, &graphs, &lists);
        for (double radius = 0.02; radius < 2; radius *= 3) {
            double w[2][F], score[2];
            for (int k = 0; k < 2; k++) {
                memcpy(w[k], start, sizeof start);
                dgm_mert_params p = {
                    .restarts = 4, .directions = 3, .seed = (uint64_t)trial, .radius = radius};
                assert_int_equal(dgm_mert_search(k ? lists : graphs, &p, w[k], &score[k], &err),
                                 DGM_OK);
                assert_true(apart(w[k], start) <= radius + 1e-6);
                assert_true(score[k] >= score_under(graphs, start));
                assert_true(fabs(score_under(lists, w[k]) - score[k]) < 1e-6);
            }
            gains += score[0] > score_under(graphs, start) + 1;
        }
        dgm_mert_set_close(&graphs);
        dgm_mert_set_close(&lists);
    }
    assert_true(gains > 40); // of 100
    dgm_metric_close(&metric);
}

static void wrong_graphs_are_refused(void **state)
{
    (void)state;
    dgm_error err;
    dgm_metric *metric = open_metric();
    dgm_mert_set *s;
    double f[F] = {0};
    int64_t row[10] = {1, 1, 1, 0, 0, 0, 1, 0, 0, 0};
    dgm_mert_arc arcs[2] = {{0, 1, NULL, 0, f}, {1, 2, NULL, 0, f}};
    assert_int_equal(dgm_mert_set_open(&s, 2, F, metric, &err), DGM_OK);
    assert_int_equal(dgm_mert_set_add_graph(s, 0, arcs, 2, 3, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "graphs need dgm_mert_set_rate");
    dgm_mert_set_rate(s, rate, NULL);
    assert_int_equal(dgm_mert_set_add_graph(s, 0, arcs, 2, 4, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_mert_set_add_graph(s, 0, arcs, 0, 1, &err), DGM_ERR_ARGUMENT);
    arcs[1].from = 2;
    assert_int_equal(dgm_mert_set_add_graph(s, 0, arcs, 2, 3, &err), DGM_ERR_ARGUMENT);
    arcs[1].from = 1;
    assert_int_equal(dgm_mert_set_add_graph(s, 0, arcs, 2, 3, &err), DGM_OK);
    assert_int_equal(dgm_mert_set_add(s, 0, f, row, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_mert_set_add(s, 1, f, row, &err), DGM_OK);
    assert_int_equal(dgm_mert_set_add_graph(s, 1, arcs, 2, 3, &err), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_mert_set_count(s), 3);
    dgm_mert_set_close(&s);
    dgm_metric_close(&metric);
}

static dgm_status tune_once(const dgm_metric *metric, const graph *g, dgm_error *err)
{
    dgm_mert_set *s = NULL;
    double w[F] = {0.2, 0.2, 0.2, 0.2, 0.2}, d[F] = {1}, step, score;
    dgm_status st = dgm_mert_set_open(&s, 1, F, metric, err);
    if (st == DGM_OK) {
        dgm_mert_set_rate(s, rate, NULL);
        st = dgm_mert_set_add_graph(s, 0, g->arcs, (size_t)g->count, g->nodes, err);
    }
    if (st == DGM_OK) st = dgm_mert_line(s, w, d, &step, &score, err);
    if (st == DGM_OK) st = dgm_mert_set_score(s, w, &score, err);
    dgm_mert_set_close(&s);
    return st;
}

static void allocations_fail(void **state)
{
    (void)state;
    static graph g;
    dgm_error err;
    dgm_metric *metric = open_metric();
    make_graph(&g);
    for (uint64_t n = 1;; n++) {
        uint64_t live = dgm_mem_live();
        dgm_mem_inject(n, 1);
        dgm_status st = tune_once(metric, &g, &err);
        dgm_mem_inject(0, 0);
        assert_int_equal(dgm_mem_live(), live);
        if (st == DGM_OK) break;
        assert_int_equal(st, DGM_ERR_MEMORY);
    }
    dgm_metric_close(&metric);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_those_of_all_paths),
        cmocka_unit_test(the_search_is_deterministic),
        cmocka_unit_test(the_search_stays_near),
        cmocka_unit_test(nothing_to_search),
        cmocka_unit_test(wrong_graphs_are_refused),
        cmocka_unit_test(allocations_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
