// SPDX-License-Identifier: MIT
// The Transformer in every variant against PyTorch; allocations; incomplete files.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fixture.h"
#include "model/transformer/transformer_private.h"

static void test_logits(void **state)
{
    (void)state;
    fixture_check_family("transformer-", 31);
}

static void test_memory(void **state)
{
    (void)state;
    fixture_check_memory("transformer-pre-learned");
    fixture_check_memory("transformer-post-marian-ssru");
    fixture_check_memory("transformer-t5");
}

// Weights are required, biases are not; in a tied model only the source embedding must be there.
static void test_missing_tensors(void **state)
{
    (void)state;
    fixture_check_missing("transformer-pre-gelu-untied", 3 + 4 + 4 + 4 + 2 + 2);
    fixture_check_missing("transformer-post-marian-ssru", 2 + 4 + 2 * 2 + 2 * 4 + 3 * 2);
}

// Buckets of relative positions as T5 has them: 32 of them, 128 positions; from the oracle's torch.
// Every bit of the sines, by themselves.
static void test_sinusoids(void **state)
{
    (void)state;
    static const struct {
        int rows, d;
        bool marian;
    } sizes[] = {{1026, 512, false}, {1024, 1024, true}, {2000, 256, true},
                 {1, 2, false},      {33, 2, true},      {4100, 130, false}};
    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
        const int rows = sizes[n].rows, d = sizes[n].d, half = d / 2;
        float *table = dgm_malloc((size_t)rows * (size_t)d * sizeof *table);
        assert_non_null(table);
        assert_int_equal(dgm_transformer_sinusoids(table, rows, d, sizes[n].marian, NULL), DGM_OK);
        for (int i = 0; i < half; i++) {
            const double rate = sizes[n].marian ? exp(-log(10000.0) * i / (half > 1 ? half - 1 : 1))
                                                : pow(10000.0, -2.0 * i / d);
            for (int p = 0; p < rows; p++) {
                const float sine = (float)sin(p * rate), cosine = (float)cos(p * rate);
                const float *row = table + p * d;
                if (memcmp(&row[i], &sine, sizeof sine) || memcmp(&row[half + i], &cosine, sizeof cosine))
                    fail_msg("%d x %d: position %d, rate %d", rows, d, p, i);
            }
        }
        dgm_free(table);
    }
}

static void test_buckets(void **state)
{
    (void)state;
    static const struct {
        int ahead, both_ways, one_way;
    } rows[] = {{-1000, 15, 31}, {-128, 15, 31}, {-127, 15, 31}, {-91, 15, 29}, {-90, 14, 29},
                {-64, 14, 26},   {-45, 12, 23},  {-32, 12, 21},  {-31, 11, 21}, {-17, 10, 16},
                {-16, 10, 16},   {-15, 9, 15},   {-12, 9, 12},   {-11, 8, 11},  {-8, 8, 8},
                {-7, 7, 7},      {-1, 1, 1},     {0, 0, 0},      {1, 17, 0},    {7, 23, 0},
                {8, 24, 0},      {16, 26, 0},    {100, 31, 0},   {5000, 31, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(dgm_transformer_bucket(rows[i].ahead, true, 32, 128), rows[i].both_ways);
        assert_int_equal(dgm_transformer_bucket(rows[i].ahead, false, 32, 128), rows[i].one_way);
    }
}

// Learned positions end somewhere: the step after the last is refused, not read past the table.
static void test_position_limit(void **state)
{
    (void)state;
    fixture f;
    dgm_error err;
    fixture_open(&f, "transformer-pre-learned", NULL);
    const dgm_model_info *info = dgm_model_describe(f.model);
    assert_int_equal(info->max_source, 40);
    assert_int_equal(info->max_target, 40);
    dgm_limits limits = {.slots = 1, .rows = 1, .source = 4, .target = 64};
    dgm_exec *exec;
    dgm_state *s;
    assert_int_equal(dgm_exec_open(f.backend, dgm_state_bytes(f.model, &limits), &exec, &err), 0);
    assert_int_equal(dgm_state_open(f.model, exec, &limits, &s, &err), DGM_OK);
    dgm_source source = {f.sentence[4].source, f.sentence[4].source_count};
    int32_t slot, row, next;
    assert_int_equal(dgm_encode(s, 1, &source, &slot, &err), DGM_OK);
    assert_int_equal(dgm_start(s, 1, &slot, &row, &err), DGM_OK);
    dgm_step_result out = {.rows = &next};
    for (int t = 0; t < 40; t++) {
        dgm_step_row step = {row, {t == 0 ? info->start : 5, DGM_NO_TOKEN}};
        assert_int_equal(dgm_step(s, 1, &step, &out, &err), DGM_OK);
        row = next;
        dgm_retain(s, 1, &row);
    }
    dgm_step_row beyond = {row, {5, DGM_NO_TOKEN}};
    assert_int_equal(dgm_step(s, 1, &beyond, &out, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "the model has no position 40");
    dgm_state_close(&s);
    dgm_exec_close(&exec);
    fixture_close(&f);
}

// Ids index the embeddings: one outside the vocabulary is refused before anything is computed.
static void test_token_limits(void **state)
{
    (void)state;
    fixture f;
    dgm_error err;
    fixture_open(&f, "transformer-pre-learned", NULL);
    const dgm_model_info *info = dgm_model_describe(f.model);
    const int32_t bad[] = {-1, INT32_MIN, INT32_MAX, info->source_vocab};
    const int32_t good[] = {5, 6, info->source_eos};
    int32_t slot = 0, row = 0, next = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const int32_t ids[] = {5, bad[i], info->source_eos};
        dgm_source source = {ids, 3};
        assert_int_equal(dgm_encode(f.state, 1, &source, &slot, &err), DGM_ERR_ARGUMENT);
        assert_non_null(strstr(err.text, "is not one of the vocabulary's"));
    }
    dgm_source source = {good, 3};
    assert_int_equal(dgm_encode(f.state, 1, &source, &slot, &err), DGM_OK);
    assert_int_equal(dgm_start(f.state, 1, &slot, &row, &err), DGM_OK);
    dgm_step_result out = {.rows = &next};
    for (int position = 0; position < 2; position++) {
        const int32_t wrong[] = {INT32_MIN, -2, INT32_MAX, info->target_vocab, DGM_NO_TOKEN};
        for (int i = 0; i < (position ? 5 : 4); i++) { // no token is a start, later it is none
            dgm_step_row step = {row, {wrong[i], DGM_NO_TOKEN}};
            assert_int_equal(dgm_step(f.state, 1, &step, &out, &err), DGM_ERR_ARGUMENT);
        }
        dgm_step_row step = {row, {position ? 5 : info->start, DGM_NO_TOKEN}};
        assert_int_equal(dgm_step(f.state, 1, &step, &out, &err), DGM_OK);
        row = next;
        dgm_retain(f.state, 1, &row);
    }
    dgm_step_row nowhere = {-1, {5, DGM_NO_TOKEN}};
    assert_int_equal(dgm_step(f.state, 1, &nowhere, &out, &err), DGM_ERR_ARGUMENT);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_missing_tensors),
        cmocka_unit_test(test_sinusoids),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_position_limit),
        cmocka_unit_test(test_token_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
