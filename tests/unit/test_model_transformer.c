// SPDX-License-Identifier: MIT
// The Transformer in every variant against PyTorch; allocations; incomplete files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fixture.h"

static void test_logits(void **state)
{
    (void)state;
    fixture_check_family("transformer-", 16);
}

static void test_memory(void **state)
{
    (void)state;
    fixture_check_memory("transformer-pre-learned");
    fixture_check_memory("transformer-post-marian-ssru");
}

// Weights are required, biases are not; in a tied model only the source embedding must be there.
static void test_missing_tensors(void **state)
{
    (void)state;
    fixture_check_missing("transformer-pre-gelu-untied", 3 + 4 + 4 + 4 + 2 + 2);
    fixture_check_missing("transformer-post-marian-ssru", 2 + 4 + 2 * 2 + 2 * 4 + 3 * 2);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_missing_tensors),
        cmocka_unit_test(test_position_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
