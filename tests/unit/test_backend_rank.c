// SPDX-License-Identifier: MIT
// rank against a plain double-precision statement of its contract (backend/rank.h), on random
// rows: whole vocabulary and lists of candidates, one part and ensembles in both mixes, all terms; and
// that a row's result does not depend on its neighbours. Also the other operations' bookkeeping.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/ops.h"
#include "base/clock.h"
#include "base/mem.h"

enum { ROWS = 70, PARTS = 3, K = 9, WATCH = 2, WIDTH = 24, MAX_V = 1300 };

typedef struct world {
    dgm_backend *backend;
    dgm_exec *exec;
    dgm_rng rng;
    int vocabulary;
    float *weight[PARTS], *bias[PARTS];
    dgm_tensor tensor[PARTS];
    dgm_linear *linear[PARTS];
    dgm_mat hidden[PARTS];
    float rows[PARTS][ROWS * WIDTH]; // what is in them
    dgm_terms terms[ROWS];
    float *table;
    dgm_mat tables; // the same on the device
} world;

static float uniform(dgm_rng *r, float low, float high)
{
    return low + (high - low) * (float)dgm_rng_unit(r);
}

static int32_t *random_ids(dgm_rng *r, int vocabulary, int count)
{
    int32_t *ids = dgm_malloc((size_t)count * sizeof *ids);
    for (int i = 0; i < count; i++) // ascending, distinct
        ids[i] = (int32_t)((int64_t)vocabulary * i / count);
    (void)r;
    return ids;
}

static void open_world(world *w, int vocabulary, const char *level)
{
    memset(w, 0, sizeof *w);
    w->rng.state = 7 + (uint64_t)vocabulary;
    w->vocabulary = vocabulary;
    assert_int_equal(dgm_backend_open(&w->backend, "cpu", level, NULL), DGM_OK);
    dgm_bytes bytes = dgm_rank_bytes(w->backend, ROWS, PARTS, vocabulary);
    bytes.device += dgm_exec_mat_bytes(w->backend, 1, vocabulary);
    bytes.device += PARTS * dgm_exec_mat_bytes(w->backend, ROWS, WIDTH);
    bytes.device += 4 * DGM_MORE_MAX * WIDTH * 64 + (1 << 20); // columns of single rows,
    bytes.host += 1 << 12;                                     // and what says where they lie
    assert_int_equal(dgm_exec_open(w->backend, bytes, &w->exec, NULL), DGM_OK);
    w->table = dgm_malloc((size_t)vocabulary * sizeof(float));
    for (int i = 0; i < vocabulary; i++) w->table[i] = uniform(&w->rng, -1, 1);
    w->tables = dgm_tables_open(w->exec, 1, vocabulary);
    dgm_op_write(w->exec, w->tables, w->table);
    for (int p = 0; p < PARTS; p++) {
        size_t n = (size_t)vocabulary * WIDTH;
        w->weight[p] = dgm_malloc(n * sizeof(float));
        w->bias[p] = dgm_malloc((size_t)vocabulary * sizeof(float));
        for (size_t i = 0; i < n; i++) w->weight[p][i] = uniform(&w->rng, -1, 1);
        for (int i = 0; i < vocabulary; i++) w->bias[p][i] = uniform(&w->rng, -2, 2);
        w->tensor[p] = (dgm_tensor){.name = "w", .type = DGM_TYPE_F32, .n_dims = 2,
                                    .rows = vocabulary, .cols = WIDTH, .data = w->weight[p],
                                    .bytes = n * sizeof(float)};
        dgm_linear_part part = {.weight = &w->tensor[p], .bias = w->bias[p]};
        assert_int_equal(dgm_linear_load(w->backend, &part, 1, DGM_PRECISION_F32, &w->linear[p],
                                         NULL), DGM_OK);
        w->hidden[p] = dgm_exec_mat(w->exec, ROWS, WIDTH);
        for (int i = 0; i < ROWS * WIDTH; i++) w->rows[p][i] = uniform(&w->rng, -1, 1);
        dgm_op_write(w->exec, w->hidden[p], w->rows[p]);
    }
    for (int r = 0; r < ROWS; r++) w->terms[r] = (dgm_terms){.lambda = 1};
}

static void close_world(world *w)
{
    for (int p = 0; p < PARTS; p++) {
        dgm_linear_free(w->backend, &w->linear[p]);
        dgm_free(w->weight[p]);
        dgm_free(w->bias[p]);
    }
    dgm_free(w->table);
    dgm_exec_close(&w->exec);
    dgm_backend_close(&w->backend);
}

typedef struct results {
    float score[ROWS * K], watch_score[ROWS * WATCH], log_z[ROWS * PARTS];
    int32_t token[ROWS * K];
} results;

static bool holds(const int32_t *list, int count, int32_t token)
{
    for (int i = 0; i < count; i++)
        if (list[i] == token) return true;
    return false;
}

static bool may_choose(const dgm_rank *r, int row, int32_t v)
{
    const dgm_candidates *c = r->candidates ? r->candidates[row] : NULL;
    const dgm_candidates *more = c && r->more ? r->more[row] : NULL;
    return !c || holds(c->ids, c->count, v) || (more && holds(more->ids, more->count, v));
}

// log p of every token of one row, in double; -inf outside the candidates.
static void reference_row(const world *w, const dgm_rank *r, int row, double *logp)
{
    double *mix = calloc((size_t)w->vocabulary, sizeof *mix), z[PARTS];
    double *logits = malloc((size_t)w->vocabulary * sizeof *logits);
    for (int p = 0; p < r->part_count; p++) {
        float h[WIDTH];
        dgm_op_read(w->exec, h, dgm_mat_rows(r->parts[p].hidden, row, 1));
        double sum = 0;
        for (int v = 0; v < w->vocabulary; v++) {
            logits[v] = w->bias[p][v];
            for (int i = 0; i < WIDTH; i++) logits[v] += (double)h[i] * w->weight[p][v * WIDTH + i];
            if (may_choose(r, row, v)) sum += exp(logits[v]);
        }
        z[p] = r->normalise ? log(sum) : 0;
        for (int v = 0; v < w->vocabulary; v++)
            mix[v] += r->mix == DGM_MIX_LOG_LINEAR ? r->parts[p].weight * (logits[v] - z[p])
                                                   : r->parts[p].weight * exp(logits[v] - z[p]);
    }
    for (int v = 0; v < w->vocabulary; v++) {
        logp[v] = r->mix == DGM_MIX_LOG_LINEAR ? mix[v] : log(mix[v]);
        if (!may_choose(r, row, v)) logp[v] = -INFINITY;
    }
    free(mix);
    free(logits);
}

static double full_score(const world *w, const dgm_terms *t, double logp, int32_t v)
{
    double s = t->base + t->constant + t->lambda * logp;
    if (t->table) s += w->table[v];
    for (int a = 0; a < t->add_count; a++)
        for (int i = 0; i < t->add[a].count; i++)
            if (t->add[a].ids[i] == v) s += t->add[a].values[i];
    return s;
}

static bool may_win(const dgm_rank *r, const dgm_terms *t, int32_t v)
{
    return !holds(r->never, r->never_count, v) && !holds(t->deny, t->deny_count, v) &&
           (!t->allow || holds(t->allow, t->allow_count, v));
}

static void check(const world *w, const dgm_rank *r)
{
    double *logp = malloc((size_t)w->vocabulary * sizeof *logp);
    for (int row = 0; row < r->rows; row++) {
        const dgm_terms *t = &r->terms[row];
        reference_row(w, r, row, logp);
        double worst = INFINITY;
        for (int i = 0; i < r->k; i++) {
            int32_t v = r->token[row * r->k + i];
            double s = r->score[row * r->k + i];
            if (v < 0) {
                assert_true(isinf(s) && s < 0);
                worst = -INFINITY;
                continue;
            }
            assert_true(may_win(r, t, v));
            assert_true(fabs(s - full_score(w, t, logp[v], v)) < 2e-5 * (1 + fabs(s)));
            assert_true(s <= worst);
            worst = s;
        }
        for (int v = 0; v < w->vocabulary; v++) // nothing better was missed
            if (may_win(r, t, v) && !holds(r->token + row * r->k, r->k, v) && logp[v] > -INFINITY)
                assert_true(full_score(w, t, logp[v], v) <= worst + 2e-5 * (1 + fabs(worst)));
        for (int i = 0; i < r->watch_count; i++) {
            int32_t v = r->watch[row * r->watch_count + i];
            double s = r->watch_score[row * r->watch_count + i];
            if (v < 0 || logp[v] == -INFINITY)
                assert_true(isinf(s) && s < 0);
            else
                assert_true(fabs(s - full_score(w, t, logp[v], v)) < 2e-5 * (1 + fabs(s)));
        }
    }
    free(logp);
}

static void random_terms(world *w, int32_t *ids, int count, float *values)
{
    for (int r = 0; r < ROWS; r++) {
        dgm_terms *t = &w->terms[r];
        *t = (dgm_terms){.base = uniform(&w->rng, -9, 0), .constant = 0.25f, .lambda = 1};
        if (r % 2) t->lambda = 0.5f;
        if (r % 3 == 0) t->table = w->tables.data;
        for (int a = 0; r % 4 == 1 && a <= r % 3; a++) dgm_terms_add(t, ids, values, count - a);
        if (r % 5 == 2) t->deny = ids, t->deny_count = count;
        if (r % 7 == 3) t->allow = ids, t->allow_count = count;
        if (r == 66) t->allow = ids, t->allow_count = 2; // fewer than k
    }
}

// Runs one setting on all rows and on a few rows alone; both must agree bit by bit.
static void run_setting(world *w, int parts, dgm_mix mix, bool normalise,
                        const dgm_candidates *const *candidates,
                        const dgm_candidates *const *more)
{
    static results all, alone;
    dgm_rank_part part[PARTS];
    for (int p = 0; p < parts; p++)
        part[p] = (dgm_rank_part){w->linear[p], w->hidden[p], 1.0f / (float)parts};
    const int32_t never[] = {1, w->vocabulary - 1};
    int32_t watch[ROWS * WATCH];
    for (int i = 0; i < ROWS * WATCH; i++)
        watch[i] = i % 5 == 4 ? -1 : (int32_t)dgm_rng_below(&w->rng, (uint64_t)w->vocabulary);
    dgm_rank r = {.parts = part, .part_count = parts, .mix = mix, .normalise = normalise,
                  .rows = ROWS, .k = K, .watch_count = WATCH, .candidates = candidates,
                  .more = more,
                  .terms = w->terms, .never = never, .never_count = 2, .watch = watch,
                  .score = all.score, .token = all.token, .watch_score = all.watch_score,
                  .log_z = all.log_z};
    uint64_t calls = dgm_mem_allocations();
    dgm_op_rank(w->exec, &r);
    assert_int_equal(dgm_mem_allocations(), calls);
    check(w, &r);
    for (int row = 0; row < ROWS; row += 23) {
        dgm_rank one = r;
        dgm_rank_part moved[PARTS];
        for (int p = 0; p < parts; p++) {
            moved[p] = part[p];
            moved[p].hidden = dgm_mat_rows(part[p].hidden, row, 1);
        }
        one.parts = moved;
        one.rows = 1;
        one.terms = &w->terms[row];
        one.candidates = candidates ? candidates + row : NULL;
        one.more = more ? more + row : NULL;
        one.watch = watch + row * WATCH;
        one.score = alone.score;
        one.token = alone.token;
        one.watch_score = alone.watch_score;
        one.log_z = alone.log_z;
        dgm_op_rank(w->exec, &one);
        assert_memory_equal(alone.score, all.score + row * K, K * sizeof(float));
        assert_memory_equal(alone.token, all.token + row * K, K * sizeof(int32_t));
        assert_memory_equal(alone.log_z, all.log_z + row * parts, (size_t)parts * sizeof(float));
    }
}

static void rank_everything(const char *level, int vocabulary)
{
    world w;
    open_world(&w, vocabulary, level);
    int count = vocabulary < 40 ? 3 : 17;
    int32_t *ids = random_ids(&w.rng, vocabulary, count);
    int32_t *few = random_ids(&w.rng, vocabulary, 4);
    int32_t *many = random_ids(&w.rng, vocabulary, vocabulary * 3 / 4);
    float values[17];
    for (int i = 0; i < 17; i++) values[i] = uniform(&w.rng, -3, 3);
    const dgm_candidates lists[] = {{.ids = few, .count = 4},
                                    {.ids = many, .count = vocabulary * 3 / 4}};
    const dgm_candidates *candidates[ROWS];
    for (int r = 0; r < ROWS; r++)
        candidates[r] = r < 20 ? NULL : &lists[r % 11 < 4];
    // Rows of the short list may also choose a few other tokens.
    int32_t *other = dgm_malloc((size_t)vocabulary * sizeof *other);
    int others = 0;
    for (int v = 0; v < vocabulary && others < 70; v += 1 + vocabulary / 200)
        if (!holds(few, 4, v)) other[others++] = v;
    const dgm_candidates beside[] = {{.ids = other, .count = others}, {.ids = other, .count = 1}};
    const dgm_candidates *more[ROWS];
    for (int r = 0; r < ROWS; r++)
        more[r] = candidates[r] == &lists[0] && r % 3 ? &beside[r % 3 - 1] : NULL;
    for (int with_terms = 0; with_terms < 2; with_terms++) {
        if (with_terms) random_terms(&w, ids, count, values);
        for (int parts = 1; parts <= PARTS; parts += 2)
            for (int mix = 0; mix < DGM_MIX_COUNT; mix++)
                for (int normalise = 0; normalise < 2; normalise++) {
                    run_setting(&w, parts, (dgm_mix)mix, normalise, NULL, NULL);
                    run_setting(&w, parts, (dgm_mix)mix, normalise, candidates, NULL);
                    run_setting(&w, parts, (dgm_mix)mix, normalise, candidates, more);
                }
    }
    dgm_free(ids);
    dgm_free(few);
    dgm_free(other);
    dgm_free(many);
    close_world(&w);
}

static void test_rank_reference(void **state)
{
    (void)state;
    rank_everything("c", 37);
    rank_everything("c", 700);
}

static void test_rank_best_isa(void **state)
{
    (void)state;
    rank_everything(NULL, 8);
    rank_everything(NULL, 64);
    rank_everything(NULL, MAX_V);
}

// Equal scores: the lower token id comes first, whatever the chunk it lies in.
static void test_rank_ties(void **state)
{
    (void)state;
    world w;
    open_world(&w, MAX_V, NULL);
    for (int v = 0; v < MAX_V; v++) w.bias[0][v] = 0;
    memset(w.weight[0], 0, (size_t)MAX_V * WIDTH * sizeof(float));
    dgm_linear_part part = {.weight = &w.tensor[0], .bias = w.bias[0]};
    dgm_linear_free(w.backend, &w.linear[0]);
    assert_int_equal(dgm_linear_load(w.backend, &part, 1, DGM_PRECISION_F32, &w.linear[0], NULL),
                     DGM_OK);
    float score[K];
    int32_t token[K];
    dgm_rank_part one = {w.linear[0], dgm_mat_rows(w.hidden[0], 0, 1), 1};
    dgm_rank r = {.parts = &one, .part_count = 1, .normalise = true, .rows = 1, .k = K,
                  .terms = w.terms, .score = score, .token = token};
    dgm_op_rank(w.exec, &r);
    for (int i = 0; i < K; i++) {
        assert_int_equal(token[i], i);
        assert_true(fabsf(score[i] + logf(MAX_V)) < 1e-5f);
    }
    close_world(&w);
}

static void test_linear_load_stacks_and_fails_cleanly(void **state)
{
    (void)state;
    world w;
    open_world(&w, 100, NULL);
    dgm_linear_part parts[2] = {{.weight = &w.tensor[0], .bias = w.bias[0]},
                                {.weight = &w.tensor[1]}};
    dgm_linear *stack = NULL;
    for (uint64_t at = 1;; at++) {
        dgm_mem_inject(at, 1);
        dgm_status st = dgm_linear_load(w.backend, parts, 2, DGM_PRECISION_F32, &stack, NULL);
        dgm_mem_inject(0, 0);
        if (st == DGM_OK) break;
        assert_int_equal(st, DGM_ERR_MEMORY);
        assert_null(stack);
    }
    assert_int_equal(dgm_linear_rows(stack), 200);
    dgm_mat y = dgm_exec_mat(w.exec, ROWS, 200);
    dgm_op_linear(w.exec, y, w.hidden[0], stack, DGM_ACT_NONE, NULL);
    float products[ROWS * 200];
    dgm_op_read(w.exec, products, y);
    for (int v = 0; v < 200; v += 7) {
        double sum = v < 100 ? w.bias[0][v] : 0;
        const float *row = v < 100 ? w.weight[0] + v * WIDTH : w.weight[1] + (v - 100) * WIDTH;
        for (int i = 0; i < WIDTH; i++) sum += (double)row[i] * (double)w.rows[0][i];
        assert_true(fabs(sum - (double)products[v]) < 1e-5);
    }
    dgm_error e;
    w.tensor[1].cols = WIDTH - 1;
    dgm_linear *bad;
    assert_int_equal(dgm_linear_load(w.backend, parts, 2, DGM_PRECISION_F32, &bad, &e),
                     DGM_ERR_FORMAT);
    dgm_linear_free(w.backend, &stack);
    close_world(&w);
    dgm_backend *b;
    assert_int_equal(dgm_backend_open(&b, "abacus", NULL, &e), DGM_ERR_UNSUPPORTED);
    assert_int_equal(dgm_backend_open(&b, "cpu", "sse9", &e), DGM_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_reference),
        cmocka_unit_test(test_rank_best_isa),
        cmocka_unit_test(test_rank_ties),
        cmocka_unit_test(test_linear_load_stacks_and_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
