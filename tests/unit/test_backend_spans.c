// SPDX-License-Identifier: MIT
// Spans of time: what several cover together counts once, in whatever order they come.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/spans.h"
#include "base/clock.h"

static void overlaps_count_once(void **state)
{
    (void)state;
    dgm_spans s = {0};
    assert_true(dgm_spans_sum(&s) == 0);
    dgm_spans_add(&s, 1, 3);
    dgm_spans_add(&s, 5, 6);
    assert_true(dgm_spans_sum(&s) == 3);
    dgm_spans_add(&s, 2, 4); // reaches out of the first
    assert_true(dgm_spans_sum(&s) == 4);
    dgm_spans_add(&s, 0, 0.5); // late, before all others
    assert_true(dgm_spans_sum(&s) == 4.5);
    dgm_spans_add(&s, 2, 3); // inside
    dgm_spans_add(&s, 7, 7); // empty
    dgm_spans_add(&s, 9, 8); // none
    assert_true(dgm_spans_sum(&s) == 4.5);
    dgm_spans_add(&s, 0.25, 10); // over all of them
    assert_true(dgm_spans_sum(&s) == 10);
    assert_int_equal(s.count, 1);
}

// Two workers' spans, far more than are remembered, against a line of marks.
static void many_spans(void **state)
{
    (void)state;
    enum { LONG = 20000, WORKERS = 2 };
    static char busy[LONG];
    dgm_spans s = {0};
    dgm_rng rng = {7};
    memset(busy, 0, sizeof busy);
    int at[WORKERS] = {0, 0};
    for (;;) {
        const int w = at[0] <= at[1] ? 0 : 1;
        const int begin = at[w] + (int)dgm_rng_below(&rng, 9), end = begin + (int)dgm_rng_below(&rng, 9);
        if (end > LONG) break;
        memset(busy + begin, 1, (size_t)(end - begin));
        dgm_spans_add(&s, begin, end);
        at[w] = end;
    }
    int sum = 0;
    for (int i = 0; i < LONG; i++) sum += busy[i];
    assert_true(s.count <= DGM_SPANS);
    assert_true(sum > LONG / 2);
    assert_true(dgm_spans_sum(&s) == (double)sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlaps_count_once),
        cmocka_unit_test(many_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
