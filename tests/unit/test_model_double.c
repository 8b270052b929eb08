// SPDX-License-Identifier: MIT
// Decoders of pairs and masked language models against PyTorch (training/dragoman_training).
//
// Pairs: logits and attention of both sides at every step, in every order and with every kind of
// sub-layer, alone, together and beside siblings. Masked language models: length logits through the
// order of the lengths, logits of wanted positions alone and in company, and nothing allocated.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "backend/ops.h"
#include "base/mem.h"
#include "fixture.h"

#define FOLDER "tests/data/models/"
enum { SENTENCES = 5, MOST = 64, WIDEST = 512 };

#define CHECK(expr)                                                                                \
    do {                                                                                           \
        dgm_error err_ = {{0}};                                                                    \
        dgm_error *err = &err_;                                                                    \
        if ((expr) != DGM_OK) fail_msg("%s", err_.text);                                           \
    } while (0)

// ---- pairs --------------------------------------------------------------------------------------

static void test_pairs(void **state)
{
    (void)state;
    fixture_check_family("double-", 7);
}

static void test_average_attention(void **state)
{
    (void)state;
    fixture_check_family("transformer-aan", 2);
}

static void test_pairs_memory(void **state)
{
    (void)state;
    fixture_check_memory("double-bidirectional");
    fixture_check_memory("double-ssru");
    fixture_check_memory("double-aan");
}

static void test_pairs_missing(void **state)
{
    (void)state;
    fixture_check_missing("double-aan", 20);
    fixture_check_missing("double-ssru", 20);
}

// ---- masked language models ---------------------------------------------------------------------

typedef struct masked {
    dgm_gguf *file, *dump;
    dgm_backend *backend;
    dgm_model *model;
    dgm_exec *exec;
    dgm_state *state;
    int vocabulary;
    int32_t slots[SENTENCES];
} masked;

static const int32_t *numbers(const masked *m, int k, const char *what, int *count)
{
    char name[64];
    const int32_t *values = NULL;
    snprintf(name, sizeof name, "%d.%s", k, what);
    CHECK(dgm_gguf_table(m->dump, name, -1, -1, INT32_MAX, DGM_REQUIRED, &values, count, err));
    return values;
}

static const float *matrix(const masked *m, int k, const char *what, int cols)
{
    char name[64];
    const dgm_tensor *t = NULL;
    snprintf(name, sizeof name, "%d.%s", k, what);
    CHECK(dgm_gguf_matrix(m->dump, name, -1, cols, DGM_REQUIRED, &t, err));
    return t->data;
}

static void open_masked(masked *m, const char *name, const char *level)
{
    char path[160];
    *m = (masked){0};
    snprintf(path, sizeof path, FOLDER "%s.gguf", name);
    CHECK(dgm_gguf_open(&m->file, path, err));
    snprintf(path, sizeof path, FOLDER "%s.cmlm.gguf", name);
    CHECK(dgm_gguf_open(&m->dump, path, err));
    CHECK(dgm_backend_open(&m->backend, "cpu", level, err));
    CHECK(dgm_model_load(&m->model, m->backend, m->file, DGM_PRECISION_F32, err));
    m->vocabulary = dgm_model_describe(m->model)->target_vocab;
    const dgm_limits l = {.slots = SENTENCES, .rows = 2 * MOST, .source = 64, .target = 20};
    const dgm_bytes logits = {.device = dgm_exec_mat_bytes(m->backend, 2 * MOST, m->vocabulary)};
    const dgm_limits fit = {l.slots,
                            l.rows,
                            dgm_model_describe(m->model)->max_source < l.source
                                ? dgm_model_describe(m->model)->max_source
                                : l.source,
                            l.target,
                            0,
                            0};
    CHECK(dgm_exec_open(m->backend, dgm_bytes_add(dgm_state_bytes(m->model, &fit), logits), &m->exec, err));
    CHECK(dgm_state_open(m->model, m->exec, &fit, &m->state, err));
    dgm_source sources[SENTENCES];
    for (int k = 0; k < SENTENCES; k++) sources[k].ids = numbers(m, k, "source", &sources[k].count);
    CHECK(dgm_encode(m->state, SENTENCES, sources, m->slots, err));
}

static void close_masked(masked *m)
{
    dgm_state_close(&m->state);
    dgm_exec_close(&m->exec);
    dgm_model_free(&m->model);
    dgm_backend_close(&m->backend);
    dgm_gguf_close(&m->dump);
    dgm_gguf_close(&m->file);
}

// Logits of what a call gave.
static void project(const masked *m, dgm_mat hidden, float *out)
{
    const dgm_mark mark = dgm_exec_mark(m->exec);
    dgm_mat y = dgm_exec_mat(m->exec, hidden.rows, m->vocabulary);
    dgm_op_linear(m->exec, y, hidden, dgm_model_output(m->model), DGM_ACT_NONE, NULL);
    dgm_op_read(m->exec, out, y);
    dgm_exec_reset(m->exec, mark);
}

static float many[2 * MOST * WIDEST], one[2 * MOST * WIDEST];

static void check_refine(const masked *m)
{
    dgm_refine_target t[SENTENCES];
    static int32_t wanted[SENTENCES][MOST];
    dgm_mat hidden;
    for (int k = 0; k < SENTENCES; k++) {
        t[k] = (dgm_refine_target){.slot = m->slots[k], .wanted = wanted[k]};
        t[k].ids = numbers(m, k, "target", &t[k].count);
        for (int i = 0; i < t[k].count; i += 1 + (k == 2)) wanted[k][t[k].wanted_count++] = i;
    }
    CHECK(dgm_refine(m->state, SENTENCES, t, &hidden, err));
    assert_true(hidden.rows <= 2 * MOST && m->vocabulary <= WIDEST);
    project(m, hidden, many);
    const size_t width = (size_t)m->vocabulary;
    for (int k = 0, row = 0; k < SENTENCES; row += t[k++].wanted_count) {
        const float *expected = matrix(m, k, "logits", m->vocabulary);
        CHECK(dgm_refine(m->state, 1, &t[k], &hidden, err));
        project(m, hidden, one);
        assert_memory_equal(one, many + (size_t)row * width,
                            (size_t)t[k].wanted_count * width * sizeof(float));
        for (int i = 0; i < t[k].wanted_count; i++) {
            const double off = fixture_difference(
                one + (size_t)i * width, expected + (size_t)wanted[k][i] * width, 1, m->vocabulary);
            if (!(off <= 1e-4)) fail_msg("sentence %d, position %d: %g off", k, wanted[k][i], off);
        }
    }
}

// The lengths in falling order of PyTorch's logits.
static void check_lengths(const masked *m)
{
    int32_t alone[6], together[SENTENCES][6];
    dgm_length_query q[SENTENCES];
    for (int k = 0; k < SENTENCES; k++) { // the last slot first
        const int of = SENTENCES - 1 - k;
        q[k] = (dgm_length_query){.slot = m->slots[of], .longest = 15, .lengths = together[of]};
    }
    dgm_lengths(m->state, SENTENCES, q, 6);
    for (int k = 0; k < SENTENCES; k++) {
        const float *logit = matrix(m, k, "lengths", -1);
        const int32_t *found = together[k];
        assert_int_equal(q[SENTENCES - 1 - k].found, 6);
        dgm_length_query single = {.slot = m->slots[k], .longest = 15, .lengths = alone};
        dgm_lengths(m->state, 1, &single, 6);
        assert_int_equal(single.found, 6);
        assert_memory_equal(alone, found, sizeof alone);
        for (int i = 0; i < 6; i++) {
            assert_in_range(found[i], 1, 15);
            if (i > 0) assert_true(logit[found[i - 1] - 1] >= logit[found[i] - 1]);
        }
        int better = 0;
        for (int i = 0; i < 15; i++) better += logit[i] > logit[found[5] - 1];
        assert_int_equal(better, 5);
        single.longest = 4;
        dgm_lengths(m->state, 1, &single, 6);
        assert_int_equal(single.found, 4);
        single.shortest = 3;
        dgm_lengths(m->state, 1, &single, 6);
        assert_int_equal(single.found, 2);
        assert_true(alone[0] + alone[1] == 7);
    }
}

static void test_masked(void **state)
{
    (void)state;
    static const char *const names[] = {"cmlm-post", "cmlm-pre", "cmlm-pieces"};
    for (int i = 0; i < 3; i++)
        for (int level = 0; level < 2; level++) {
            masked m;
            open_masked(&m, names[i], level ? "c" : NULL);
            const uint64_t before = dgm_mem_allocations();
            check_refine(&m);
            check_lengths(&m);
            assert_int_equal(dgm_mem_allocations(), before);
            close_masked(&m);
        }
}

// What does not go: steps, targets of no sentence, too long, of no words.
static void test_refused(void **state)
{
    (void)state;
    masked m;
    dgm_error why = {{0}};
    dgm_mat hidden;
    open_masked(&m, "cmlm-pre", NULL);
    int32_t ids[64] = {0}, row;
    const int32_t first = 0;
    CHECK(dgm_start(m.state, 1, &m.slots[0], &row, err));
    const dgm_step_row step = {row, {DGM_NO_TOKEN, DGM_NO_TOKEN}};
    dgm_step_result out = {.rows = &row};
    assert_int_equal(dgm_step(m.state, 1, &step, &out, &why), DGM_ERR_UNSUPPORTED);
    const dgm_refine_target bad[] = {{9, ids, 3, &first, 1, NULL},
                                     {m.slots[0], ids, 0, &first, 0, NULL},
                                     {m.slots[0], ids, 21, &first, 1, NULL},
                                     {m.slots[0], (const int32_t[]){-1}, 1, &first, 1, NULL},
                                     {m.slots[0], ids, 3, (const int32_t[]){3}, 1, NULL}};
    for (int i = 0; i < 5; i++)
        assert_int_equal(dgm_refine(m.state, 1, &bad[i], &hidden, &why), DGM_ERR_ARGUMENT);
    close_masked(&m);
    fixture f;
    fixture_open(&f, "double-l2r", NULL);
    assert_int_equal(dgm_refine(f.state, 0, NULL, &hidden, &why), DGM_ERR_UNSUPPORTED);
    dgm_length_query q = {.longest = 5, .lengths = ids, .found = 7};
    dgm_lengths(f.state, 1, &q, 1);
    assert_int_equal(q.found, 0);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),        cmocka_unit_test(test_average_attention),
        cmocka_unit_test(test_pairs_memory), cmocka_unit_test(test_pairs_missing),
        cmocka_unit_test(test_masked),       cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
