// SPDX-License-Identifier: MIT
// Mixtures of experts: choices and ties, packing on first use by many threads, every precision, the
// same bits alone and in company and on every CPU level, broken experts. Logits against PyTorch are
// in test_model_transformer (fixtures transformer-moe-*).
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "kernel/cpu.h"

enum { EXPERTS = 9, D = 40, F = 27, ROWS = 64, THREADS = 4 };

static float weights[EXPERTS][2][F * D], biases[EXPERTS][2][D], gate_weights[EXPERTS * D];
static float inputs[ROWS * D];
static dgm_tensor tensors[EXPERTS][2];
static char names[EXPERTS][2][32];
static dgm_expert_part parts[EXPERTS];

static float noise(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / (float)(1 << 23) - 1.0f;
}

static int make_weights(void **state)
{
    (void)state;
    unsigned seed = 7;
    for (int e = 0; e < EXPERTS; e++)
        for (int i = 0; i < 2; i++) {
            dgm_tensor *t = &tensors[e][i];
            for (int j = 0; j < F * D; j++) weights[e][i][j] = 0.3f * noise(&seed);
            for (int j = 0; j < D; j++) biases[e][i][j] = 0.2f * noise(&seed);
            snprintf(names[e][i], sizeof names[e][i], "moe.%d.%s", e, i ? "out" : "in");
            *t = (dgm_tensor){.name = names[e][i], .type = DGM_TYPE_F32, .n_dims = 2};
            t->rows = t->shape[0] = i ? D : F;
            t->cols = t->shape[1] = i ? F : D;
            t->data = weights[e][i];
            t->bytes = sizeof weights[e][i];
            *(i ? &parts[e].out : &parts[e].in) = (dgm_linear_part){.weight = t, .bias = biases[e][i]};
        }
    for (int j = 0; j < EXPERTS * D; j++) gate_weights[j] = noise(&seed);
    for (int j = 0; j < ROWS * D; j++) inputs[j] = noise(&seed);
    return 0;
}

typedef struct bench {
    dgm_backend *backend;
    dgm_experts *experts;
    dgm_vector *gate;
    dgm_mixture how;
} bench;

static void open_bench(bench *b, const char *level, dgm_precision precision, const float *gate, int top)
{
    dgm_error err = {{0}};
    memset(b, 0, sizeof *b);
    assert_int_equal(dgm_backend_open(&b->backend, "cpu", level, &err), DGM_OK);
    assert_int_equal(
        dgm_experts_load(b->backend, NULL, parts, EXPERTS, precision, &b->experts, &err), DGM_OK);
    assert_int_equal(dgm_vector_from(b->backend, gate, EXPERTS, D, &b->gate, &err), DGM_OK);
    b->how = (dgm_mixture){.gate = b->gate, .top = top, .normalise = true, .scale = 1, .act = DGM_ACT_RELU};
}

static void close_bench(bench *b)
{
    dgm_vector_free(b->backend, &b->gate);
    dgm_experts_free(b->backend, &b->experts);
    dgm_backend_close(&b->backend);
}

// Results of rows first .. first + count - 1, and the worker's status.
static dgm_status mix(const bench *b, int first, int count, float *out, dgm_error *err)
{
    dgm_exec *x = NULL;
    dgm_bytes bytes = dgm_experts_bytes(b->backend, ROWS, D, EXPERTS);
    bytes.device += 3 * dgm_exec_mat_bytes(b->backend, ROWS, D);
    if (dgm_exec_open(b->backend, bytes, &x, err) != DGM_OK) return DGM_ERR_MEMORY;
    dgm_mat in = dgm_exec_mat(x, count, D), y = dgm_exec_mat(x, count, D);
    dgm_mat inner = dgm_exec_mat(x, count, F);
    dgm_op_write(x, in, inputs + first * D);
    dgm_op_experts(x, y, in, b->experts, &b->how, inner);
    dgm_op_read(x, out, y);
    dgm_status st = dgm_exec_status(x, err);
    dgm_error again;
    if (dgm_exec_status(x, &again) != DGM_OK) st = DGM_ERR_CANCELLED; // it is told once
    dgm_exec_close(&x);
    return st;
}

// The same by the definition, for one row and the experts it is known to get.
static void plain(const float *row, int expert, double share, double *y)
{
    for (int i = 0; i < D; i++) {
        double sum = biases[expert][1][i];
        for (int f = 0; f < F; f++) {
            double inner = biases[expert][0][f];
            for (int j = 0; j < D; j++) inner += (double)weights[expert][0][f * D + j] * row[j];
            if (inner > 0) sum += weights[expert][1][i * F + f] * inner;
        }
        y[i] += share * sum;
    }
}

// All gates are equal: the lowest numbers win, with equal shares, and nobody else is packed.
static void test_ties(void **state)
{
    (void)state;
    static float out[ROWS * D], zeros[EXPERTS * D];
    for (int top = 1; top <= 2; top++) {
        bench b;
        dgm_error err = {{0}};
        open_bench(&b, NULL, DGM_PRECISION_F32, zeros, top);
        assert_int_equal(mix(&b, 0, ROWS, out, &err), DGM_OK);
        for (int r = 0; r < ROWS; r++) {
            double y[D] = {0};
            for (int t = 0; t < top; t++) plain(inputs + r * D, t, 1.0 / top, y);
            for (int i = 0; i < D; i++) assert_true(fabs(y[i] - out[r * D + i]) < 1e-5);
        }
        dgm_experts_use use = {0};
        dgm_experts_count(b.experts, &use);
        assert_int_equal(use.experts, EXPERTS);
        assert_int_equal(use.packed, top);
        assert_true(use.bytes * EXPERTS == use.largest * (uint64_t)top);
        close_bench(&b);
    }
}

// Every row by the definition: softmax over all, the two largest, weights over their sum.
static void test_definition(void **state)
{
    (void)state;
    static float out[ROWS * D];
    bench b;
    dgm_error err = {{0}};
    open_bench(&b, NULL, DGM_PRECISION_F32, gate_weights, 2);
    b.how.normalise = false;
    b.how.scale = 0.75f;
    assert_int_equal(mix(&b, 0, ROWS, out, &err), DGM_OK);
    for (int r = 0; r < ROWS; r++) {
        double g[EXPERTS], sum = 0, y[D] = {0};
        for (int e = 0; e < EXPERTS; e++) {
            g[e] = 0;
            for (int j = 0; j < D; j++) g[e] += (double)gate_weights[e * D + j] * inputs[r * D + j];
            sum += g[e] = exp(g[e]);
        }
        for (int t = 0; t < 2; t++) {
            int best = 0;
            for (int e = 1; e < EXPERTS; e++)
                if (g[e] > g[best]) best = e;
            plain(inputs + r * D, best, 0.75 * g[best] / sum, y);
            g[best] = -1;
        }
        for (int i = 0; i < D; i++) assert_true(fabs(y[i] - out[r * D + i]) < 1e-5);
    }
    close_bench(&b);
}

// A row gives the same bits alone and in company; integers give them on every CPU level.
static void test_invariance(void **state)
{
    (void)state;
    static float all[ROWS * D], one[ROWS * D], other[ROWS * D], exact[ROWS * D];
    const char *const levels[] = {"c", "avx2", NULL};
    for (int p = 0; p < DGM_PRECISIONS_IN_FILES; p++)
        for (int l = 0; l < 3; l++) {
            bench b;
            unsigned flags;
            dgm_error err = {{0}};
            if (levels[l] && dgm_cpu_limit(levels[l], &flags, NULL) != DGM_OK) continue;
            open_bench(&b, levels[l], (dgm_precision)p, gate_weights, 2);
            for (int r = ROWS - 1; r >= 0; r--)
                assert_int_equal(mix(&b, r, 1, one + r * D, &err), DGM_OK);
            assert_int_equal(mix(&b, 0, ROWS, all, &err), DGM_OK);
            assert_memory_equal(all, one, sizeof all);
            if (p == 0 && l == 0) memcpy(exact, all, sizeof all);
            assert_true(fixture_difference(all, exact, ROWS, D) < (p == 2 ? 0.05 : 0.005));
            if (l == 0) memcpy(other, all, sizeof all);
            if (p > 0) assert_memory_equal(all, other, sizeof all);
            close_bench(&b);
        }
}

typedef struct job {
    const bench *b;
    float out[ROWS * D];
    dgm_status st;
} job;

static void *work(void *arg)
{
    job *j = arg;
    dgm_error err = {{0}};
    j->st = mix(j->b, 0, ROWS, j->out, &err);
    return NULL;
}

// Workers that meet fresh experts at the same time all get packed ones.
static void test_threads(void **state)
{
    (void)state;
    static float alone[ROWS * D];
    static job jobs[THREADS];
    for (int round = 0; round < 20; round++) {
        bench b;
        dgm_error err = {{0}};
        pthread_t threads[THREADS];
        open_bench(&b, NULL, (dgm_precision)(round % DGM_PRECISIONS_IN_FILES), gate_weights, 2);
        for (int t = 0; t < THREADS; t++) {
            jobs[t].b = &b;
            assert_int_equal(pthread_create(&threads[t], NULL, work, &jobs[t]), 0);
        }
        for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
        assert_int_equal(mix(&b, 0, ROWS, alone, &err), DGM_OK);
        for (int t = 0; t < THREADS; t++) {
            assert_int_equal(jobs[t].st, DGM_OK);
            assert_memory_equal(jobs[t].out, alone, sizeof alone);
        }
        close_bench(&b);
    }
}

// An expert that cannot be packed is an error when a row asks for it, every time, and only then.
static void test_broken(void **state)
{
    (void)state;
    static float out[ROWS * D], zeros[EXPERTS * D];
    for (int p = DGM_PRECISION_I16; p < DGM_PRECISIONS_IN_FILES; p++) {
        bench b;
        dgm_error err = {{0}};
        const float kept = weights[0][1][5];
        weights[0][1][5] = INFINITY;
        open_bench(&b, NULL, (dgm_precision)p, zeros, 1);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(mix(&b, 0, 2, out, &err), DGM_ERR_FORMAT);
            assert_string_equal(err.text, "tensor 'moe.0.out' holds numbers that are not finite");
        }
        weights[0][1][5] = kept;
        assert_int_equal(mix(&b, 0, 2, out, &err), DGM_OK);
        close_bench(&b);
    }
}

static void test_memory(void **state)
{
    (void)state;
    fixture_check_memory("transformer-moe-ssru");
}

static void test_missing_tensors(void **state)
{
    (void)state;
    fixture_check_missing("transformer-moe-ssru", 1 + 2 * (1 + 2 * 4) + 4 + 2 + 2 + 2 + 2);
}

// A text touches some of the experts, and the model counts them.
static void test_touched(void **state)
{
    (void)state;
    fixture f;
    fixture_result r;
    dgm_experts_use use;
    const int list[] = {1};
    fixture_walk walk = {list, NULL, 1, 0};
    fixture_open(&f, "transformer-moe-ssru", NULL);
    dgm_model_experts(f.model, &use);
    assert_int_equal(use.experts, 8);
    assert_int_equal(use.packed, 0);
    fixture_run(&f, &walk, &r);
    dgm_model_experts(f.model, &use);
    assert_in_range(use.packed, 2, 5); // two tokens in the encoder, three steps
    fixture_result_free(&r);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_invariance),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_missing_tensors),
        cmocka_unit_test(test_touched),
    };
    return cmocka_run_group_tests(tests, make_weights, NULL);
}
