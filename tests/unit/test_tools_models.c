// SPDX-License-Identifier: MIT
// Models by name: what dgm_models_named takes for a path, for a file, for a direction, and what it says.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "dragoman/tools.h"

static int set_up(void **state)
{
    (void)state;
    setenv("DRAGOMAN_MODEL", "models", 1);
    return setenv("XDG_DATA_HOME", "/nowhere", 1);
}

static void test_found(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"en-de", "/models/en-de.gguf"},       {"de-en", "/models/de-en.gguf"},
        {"eng-deu", "/models/default.gguf"},   {"English-Deutsch", "/models/default.gguf"},
        {"de-AT-en-US", "/models/de-en.gguf"}, {"german_english", "/models/de-en.gguf"},
        {"de_en", "/models/de-en.gguf"},       {"en-de-student", "/models/default.gguf"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = NULL;
        dgm_error error = {{0}};
        if (dgm_models_named(names[i][0], &path, &error) != DGM_OK) fail_msg("%s", error.text);
        const size_t n = strlen(path), m = strlen(names[i][1]);
        if (n < m || strcmp(path + n - m, names[i][1]) != 0) fail_msg("%s: %s", names[i][0], path);
        dgm_string_free(&path);
    }
}

// A path is a path, whether or not it is there.
static void test_paths(void **state)
{
    (void)state;
    static const char *const paths[] = {"models/en-de.gguf", "./en-de", "none.gguf", "models", "a/b", ""};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char *path = NULL;
        assert_int_equal(dgm_models_named(paths[i], &path, NULL), DGM_OK);
        assert_string_equal(path, paths[i]);
        dgm_string_free(&path);
    }
}

static void test_missing(void **state)
{
    (void)state;
    static const char *const names[] = {"en-fr", "en", "-", "en-", "-de", "nothing", "de-de"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = NULL;
        dgm_error error = {{0}};
        assert_int_equal(dgm_models_named(names[i], &path, &error), DGM_ERR_IO);
        assert_null(path);
        assert_non_null(strstr(error.text, "neither a file nor the name of a model"));
        assert_non_null(strstr(error.text, "en to de"));
    }
    char *path = NULL;
    assert_int_equal(dgm_models_named(NULL, &path, NULL), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_models_named("en-de", NULL, NULL), DGM_ERR_ARGUMENT);
}

static void test_memory(void **state)
{
    (void)state;
    dgm_status st = DGM_ERR_MEMORY;
    for (uint64_t fail = 1; st != DGM_OK; fail++) {
        const uint64_t live = dgm_mem_live();
        char *path = NULL;
        dgm_mem_inject(fail, 1);
        st = dgm_models_named("en-de", &path, NULL);
        dgm_mem_inject(0, 0);
        if (st != DGM_OK) assert_int_equal(st, DGM_ERR_MEMORY);
        dgm_string_free(&path);
        assert_int_equal(dgm_mem_live(), live);
        if (fail > 100000) fail_msg("never succeeds");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
