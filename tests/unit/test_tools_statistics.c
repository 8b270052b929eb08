// SPDX-License-Identifier: MIT
// Statistics by name: they say what the structs say, no name comes twice, times follow where a profile
// is on, and memory that is not there is an error.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dragoman/tools.h"
#include "failures.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"

static dgm_translator *translator;

static int set_up(void **state)
{
    (void)state;
    const char *const texts[] = {"a small house", "a house"};
    dgm_results *r = NULL;
    dgm_settings settings;
    dgm_settings_default(&settings);
    settings.time_devices = 1;
    if (dgm_open(&translator, MODEL, &settings, NULL) != DGM_OK) return -1;
    if (dgm_translate(translator, texts, 2, &r, NULL) != DGM_OK) return -1;
    dgm_results_free(&r);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    dgm_close(&translator);
    return 0;
}

static dgm_statistics *read_all(void)
{
    dgm_statistics *s = NULL;
    dgm_error error;
    if (dgm_statistics_read(translator, &s, &error) != DGM_OK) fail_msg("%s", error.text);
    assert_int_equal(s->size, sizeof *s);
    return s;
}

static const dgm_statistic *find(const dgm_statistics *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->items[i]->name, name) == 0) return s->items[i];
    return NULL;
}

static void they_say_what_the_structs_say(void **state)
{
    (void)state;
    dgm_statistics *s = read_all();
    dgm_counters c;
    dgm_optimisations n;
    dgm_count(translator, &c);
    dgm_optimisations_count(translator, &n);
    assert_true(find(s, "lines")->number == 2);
    assert_true(find(s, "target_tokens")->number == (double)c.target_tokens);
    assert_true(c.target_tokens > 0);
    assert_true(find(s, "projections")->number == (double)c.rank_rows);
    assert_true(find(s, "repeated_lines")->number == (double)c.repeated);
    assert_true(find(s, "evidence_seconds")->number == c.evidence_seconds);
    assert_false(find(s, "evidence_seconds")->whole);
    assert_true(find(s, "table_target_words")->number == (double)n.table_words[1]);
    assert_string_equal(find(s, "activations")->text, n.activations);
    assert_string_equal(find(s, "precision")->text, dgm_describe(translator)->precision);
    assert_string_equal(find(s, "kernels")->text, dgm_describe(translator)->kernels);
    assert_non_null(strstr(find(s, "kernels")->text, dgm_describe(translator)->precision));
    assert_true(find(s, "beam")->number == (double)dgm_describe(translator)->beam);
    assert_null(find(s, "cpu_seconds"));
    assert_true(find(s, "devices")->number == 0); // a CPU has no clock of its own
    assert_true(find(s, "device_seconds")->number == 0);
    dgm_statistics_free(&s);
    assert_null(s);
}

// Keys of JSON: lower case, digits and underscores, each once, each explained.
static void names_are_names(void **state)
{
    (void)state;
    dgm_statistics *s = read_all();
    for (size_t i = 0; i < s->count; i++) {
        const dgm_statistic *x = s->items[i];
        assert_int_equal(x->size, sizeof *x);
        assert_int_equal(strspn(x->name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(x->name));
        assert_true(x->help && x->help[0]);
        if (find(s, x->name) != x) fail_msg("%s comes twice", x->name);
    }
    dgm_statistics_free(&s);
}

static void times_come_with_a_profile(void **state)
{
    (void)state;
    const char *const texts[] = {"a small house"};
    dgm_results *r = NULL;
    dgm_error error;
    assert_int_equal(dgm_profile_start(translator, &error), DGM_OK);
    assert_int_equal(dgm_translate(translator, texts, 1, &r, &error), DGM_OK);
    dgm_results_free(&r);
    dgm_statistics *s = read_all();
    dgm_profile *p = NULL;
    assert_int_equal(dgm_profile_read(translator, &p, &error), DGM_OK);
    uint64_t products = 0;
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->rows[i]->operation, "linear") == 0) products += p->rows[i]->calls;
    assert_true(products > 0);
    assert_true(find(s, "f32_products")->number + find(s, "i16_products")->number +
                    find(s, "i8_products")->number ==
                (double)products);
    assert_true(find(s, "cpu_seconds")->number > 0);
    assert_true(find(s, "i8_products")->whole);
    dgm_profile_free(&p);
    dgm_profile_stop(translator);
    dgm_statistics_free(&s);
}

static dgm_status read_and_free(void)
{
    dgm_statistics *s = NULL;
    const dgm_status st = dgm_statistics_read(translator, &s, NULL);
    dgm_statistics_free(&s);
    return st;
}

static void mistakes_are_errors(void **state)
{
    (void)state;
    dgm_statistics *s = NULL;
    assert_int_equal(dgm_statistics_read(NULL, &s, NULL), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_statistics_read(translator, NULL, NULL), DGM_ERR_ARGUMENT);
    dgm_statistics_free(NULL);
    ALLOCATIONS_FAIL(read_and_free());
    assert_int_equal(dgm_profile_start(translator, NULL), DGM_OK);
    ALLOCATIONS_FAIL(read_and_free());
    dgm_profile_stop(translator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_say_what_the_structs_say),
        cmocka_unit_test(names_are_names),
        cmocka_unit_test(times_come_with_a_profile),
        cmocka_unit_test(mistakes_are_errors),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
