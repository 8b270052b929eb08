// SPDX-License-Identifier: MIT
// Gathered columns: rank over a sentence's own block must give the bits that the same columns of
// the whole layer give, in every precision, from every stored type, on the plain and on the best
// kernels; blocks are filled again and again without an allocation; a full arena is said.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/ops.h"
#include "base/clock.h"
#include "base/mem.h"

enum { V = 1403, WIDTH = 71, ROWS = 21, MOST = 700 };

typedef struct world {
    dgm_backend *backend;
    dgm_exec *exec;
    dgm_rng rng;
    float weight[V * WIDTH], bias[V], scale[V];
    int8_t bytes[V * WIDTH];
    dgm_tensor scales, tensor;
    dgm_linear *layer;
    dgm_mat hidden;
    dgm_gathered *block;
} world;

static float uniform(dgm_rng *r)
{
    return 2 * (float)dgm_rng_unit(r) - 1;
}

static void write_hidden(world *w)
{
    static float rows[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) rows[i] = uniform(&w->rng);
    dgm_op_write(w->exec, w->hidden, rows);
}

static world *open_world(const char *level, dgm_precision precision, dgm_tensor_type stored,
                         bool bias)
{
    world *w = calloc(1, sizeof *w);
    w->rng.state = 11;
    assert_int_equal(dgm_backend_open(&w->backend, "cpu", level, NULL), DGM_OK);
    for (int i = 0; i < V * WIDTH; i++) {
        w->weight[i] = uniform(&w->rng);
        w->bytes[i] = (int8_t)(127 * uniform(&w->rng));
    }
    w->bytes[5] = -128; // packing takes it as -127
    for (int i = 0; i < V; i++) {
        w->bias[i] = uniform(&w->rng);
        w->scale[i] = 0.01f + 0.01f * (float)dgm_rng_unit(&w->rng);
    }
    w->scales = (dgm_tensor){.name = "w.scale",
                             .type = DGM_TYPE_F32,
                             .n_dims = 1,
                             .rows = 1,
                             .cols = V,
                             .data = w->scale};
    w->tensor = (dgm_tensor){.name = "w", .type = stored, .n_dims = 2, .rows = V, .cols = WIDTH};
    w->tensor.data = stored == DGM_TYPE_I8 ? (const void *)w->bytes : (const void *)w->weight;
    if (stored == DGM_TYPE_I8) w->tensor.scale = &w->scales;
    const dgm_linear_part part = {.weight = &w->tensor, .bias = bias ? w->bias : NULL};
    assert_int_equal(dgm_linear_load(w->backend, &part, 1, precision, &w->layer, NULL), DGM_OK);
    dgm_bytes room = dgm_bytes_add(dgm_rank_bytes(w->backend, ROWS, 1, V),
                                   dgm_gathered_bytes(w->backend, w->layer, MOST, 1));
    room.device += dgm_exec_mat_bytes(w->backend, ROWS, WIDTH);
    assert_int_equal(dgm_exec_open(w->backend, room, &w->exec, NULL), DGM_OK);
    w->hidden = dgm_exec_mat(w->exec, ROWS, WIDTH);
    write_hidden(w);
    w->block = dgm_gathered_open(w->exec, w->layer, MOST);
    assert_non_null(w->block);
    return w;
}

static void close_world(world *w)
{
    dgm_linear_free(w->backend, &w->layer);
    dgm_exec_close(&w->exec);
    dgm_backend_close(&w->backend);
    free(w);
}

typedef struct results {
    float score[ROWS * V], watch_score[ROWS], log_z[ROWS];
    int32_t token[ROWS * V];
} results;

// apart: every row as the only one of a sentence. Many of these are read off a product with the whole layer.
static void rank_rows(world *w, const dgm_candidates *list, int k, bool normalise, bool apart, results *out)
{
    static const dgm_candidates *lists[ROWS];
    static dgm_candidates own[ROWS];
    static dgm_terms terms[ROWS];
    static int32_t watch[ROWS];
    for (int r = 0; r < ROWS; r++) {
        if (list) own[r] = *list;
        lists[r] = apart ? &own[r] : list;
        terms[r] = (dgm_terms){.lambda = 1};
        watch[r] = 0;
    }
    const dgm_rank_part part = {w->layer, w->hidden, 1};
    const dgm_rank r = {.parts = &part,
                        .part_count = 1,
                        .normalise = normalise,
                        .rows = ROWS,
                        .k = k,
                        .watch_count = 1,
                        .candidates = list ? lists : NULL,
                        .terms = terms,
                        .watch = watch,
                        .score = out->score,
                        .token = out->token,
                        .watch_score = out->watch_score,
                        .log_z = out->log_z};
    dgm_op_rank(w->exec, &r);
}

static void rank(world *w, const dgm_candidates *list, int k, bool normalise, results *out)
{
    rank_rows(w, list, k, normalise, false, out);
}

static void same_results(const results *one, const results *other, size_t n)
{
    assert_memory_equal(one->score, other->score, n * sizeof(float));
    assert_memory_equal(one->token, other->token, n * sizeof(int32_t));
    assert_memory_equal(one->watch_score, other->watch_score, sizeof one->watch_score);
    assert_memory_equal(one->log_z, other->log_z, sizeof one->log_z);
}

static void compare(world *w, int count)
{
    static results whole, picked, gathered;
    static float logit[ROWS][V];
    static int32_t ids[MOST];
    for (int i = 0; i < count; i++) ids[i] = (int32_t)((int64_t)V * i / count);
    const dgm_candidates plain = {.ids = ids, .count = count};
    const dgm_candidates packed = {.ids = ids, .count = count, .gathered = &w->block};
    uint64_t allocations = dgm_mem_allocations();
    dgm_op_gather_columns(w->exec, w->block, ids, count);
    rank(w, NULL, V, false, &whole);
    for (int i = 0; i < ROWS * V; i++) logit[i / V][whole.token[i]] = whole.score[i];
    rank(w, &packed, count, false, &gathered);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < count; i++)
            assert_memory_equal(&logit[r][gathered.token[r * count + i]],
                                &gathered.score[r * count + i], sizeof(float));
    for (int normalise = 0; normalise < 2; normalise++) { // and all that rank makes of them
        rank(w, &plain, count, normalise, &picked);
        rank(w, &packed, count, normalise, &gathered);
        const size_t n = (size_t)ROWS * (size_t)count;
        same_results(&picked, &gathered, n);
        if (count < MOST) continue;
        rank_rows(w, &packed, count, normalise, true, &gathered);
        same_results(&picked, &gathered, n);
        rank_rows(w, &plain, count, normalise, true, &gathered);
        same_results(&picked, &gathered, n);
    }
    assert_int_equal(dgm_mem_allocations(), allocations);
    assert_int_equal(dgm_exec_status(w->exec, NULL), DGM_OK);
}

static void compare_all(const char *level)
{
    static const int counts[] = {MOST, 1, 64, 65, 513, 300};
    static const dgm_tensor_type stored[] = {DGM_TYPE_F32, DGM_TYPE_I8};
    for (int p = 0; p < DGM_PRECISIONS_IN_FILES; p++)
        for (int t = 0; t < 4; t++) {
            world *w = open_world(level, (dgm_precision)p, stored[t / 2], t % 2);
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) compare(w, counts[i]);
            close_world(w);
        }
}

static void test_reference(void **state)
{
    (void)state;
    compare_all("c");
}

static void test_best_isa(void **state)
{
    (void)state;
    compare_all(NULL);
}

// Two tensors stacked into one layer; and a block that does not fit.
static void test_stack_and_room(void **state)
{
    (void)state;
    world *w = open_world(NULL, DGM_PRECISION_I8, DGM_TYPE_F32, true);
    assert_null(dgm_gathered_open(w->exec, w->layer, 1 << 28));
    dgm_linear_free(w->backend, &w->layer);
    dgm_tensor half[2] = {w->tensor, w->tensor};
    half[0].rows = 800;
    half[1].rows = V - 800;
    half[1].data = w->weight + 800 * WIDTH;
    const dgm_linear_part parts[2] = {{.weight = &half[0], .bias = w->bias},
                                      {.weight = &half[1], .bias = w->bias + 800}};
    assert_int_equal(dgm_linear_load(w->backend, parts, 2, DGM_PRECISION_I8, &w->layer, NULL),
                     DGM_OK);
    dgm_exec_close(&w->exec);
    dgm_bytes room = dgm_bytes_add(dgm_rank_bytes(w->backend, ROWS, 1, V),
                                   dgm_gathered_bytes(w->backend, w->layer, MOST, 1));
    room.device += dgm_exec_mat_bytes(w->backend, ROWS, WIDTH);
    assert_int_equal(dgm_exec_open(w->backend, room, &w->exec, NULL), DGM_OK);
    w->hidden = dgm_exec_mat(w->exec, ROWS, WIDTH);
    write_hidden(w);
    w->block = dgm_gathered_open(w->exec, w->layer, MOST);
    assert_non_null(w->block);
    compare(w, MOST);
    close_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_best_isa),
        cmocka_unit_test(test_stack_and_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
