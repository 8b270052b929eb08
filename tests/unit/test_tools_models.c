// SPDX-License-Identifier: MIT
// Models by name and by language: what dgm_models_named takes for a path, for a file, for a direction, and what it
// says; what is listed, which model is chosen, and that dgm_open takes the same names.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
        {"eng-deu", "/models/en-de.gguf"},     {"English-Deutsch", "/models/en-de.gguf"},
        {"de-AT-en-US", "/models/de-en.gguf"}, {"german_english", "/models/de-en.gguf"},
        {"de_en", "/models/de-en.gguf"},       {"en-de-student", "/models/en-de.gguf"},
        {"default", "/models/en-de.gguf"},
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
    static const char *const names[] = {"en-pt", "en", "-", "en-", "-de", "nothing", "de-de"};
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

static void expect_end(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    if (n < m || strcmp(path + n - m, end) != 0) fail_msg("%s is not %s", path, end);
}

// default.gguf is a link: the file is listed once, by its own name.
static void test_listed_once(void **state)
{
    (void)state;
    dgm_model_list *list = NULL;
    assert_int_equal(dgm_models_find(&list, NULL), DGM_OK);
    int found = 0;
    for (size_t i = 0; i < list->count; i++) {
        const dgm_model_entry *e = list->items[i];
        assert_int_equal(e->is_default, i == 0);
        found += strcmp(e->name, "en-de-student") == 0;
    }
    assert_int_equal(found, 1);
    expect_end(list->items[0]->path, "/models/en-de.gguf");
    dgm_models_free(&list);
}

typedef struct folder {
    char path[64], models[80];
} folder;

static void put(const folder *f, const char *target, const char *name)
{
    char path[200], real[4096];
    snprintf(path, sizeof path, "%s/%s", f->models, name);
    assert_non_null(realpath(target, real));
    assert_int_equal(symlink(real, path), 0);
}

static void expect_chosen(const char *source, const char *target, const char *end)
{
    char *path = NULL;
    dgm_error error = {{0}};
    if (dgm_models_choose(source, target, &path, &error) != DGM_OK) fail_msg("%s", error.text);
    expect_end(path, end);
    dgm_string_free(&path);
}

// Who asks for languages gets the model that has the fewest others; who does not, default.gguf. What
// DRAGOMAN_MODEL names goes before both.
static void test_chosen(void **state)
{
    (void)state;
    folder f = {.path = "/tmp/dgm_models_XXXXXX"};
    char command[100];
    assert_non_null(mkdtemp(f.path));
    snprintf(f.models, sizeof f.models, "%s/dragoman", f.path);
    assert_int_equal(mkdir(f.models, 0700), 0);
    unsetenv("DRAGOMAN_MODEL");
    setenv("XDG_DATA_HOME", f.path, 1);
    put(&f, "models/research/multilingual-small.gguf", "a.gguf");
    put(&f, "tests/data/models/transformer-pieces.gguf", "b.gguf");
    put(&f, "models/de-en.gguf", "c.gguf");
    put(&f, "models/en-de.gguf", "d.gguf");
    expect_chosen(NULL, NULL, "/a.gguf");
    put(&f, "models/en-de.gguf", "default.gguf");
    expect_chosen(NULL, NULL, "/default.gguf");
    expect_chosen("en", "de", "/d.gguf");
    expect_chosen("de", "en", "/c.gguf");
    expect_chosen("en", "fr", "/a.gguf");
    expect_chosen(NULL, "en", "/c.gguf");
    expect_chosen("xx", NULL, "/b.gguf");
    setenv("DRAGOMAN_MODEL", "models/research/multilingual-small.gguf", 1);
    expect_chosen("en", "de", "/multilingual-small.gguf");
    expect_chosen("xx", NULL, "/b.gguf");
    char *path = NULL;
    setenv("DRAGOMAN_MODEL", "models", 1);
    setenv("XDG_DATA_HOME", "/nowhere", 1);
    snprintf(command, sizeof command, "rm -r %s", f.path);
    assert_int_equal(system(command), 0);
    assert_int_equal(dgm_models_choose("en", "xx", &path, NULL), DGM_ERR_UNSUPPORTED);
    assert_null(path);
}

// dgm_open takes what -m takes: a name, a path, NULL; and says what there is.
static void test_opened(void **state)
{
    (void)state;
    static const char *const fine[] = {"de-en", "German-English", "default", NULL, "models/de-en.gguf"};
    dgm_translator *t = NULL;
    dgm_error error = {{0}};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        if (dgm_open(&t, fine[i], NULL, &error) != DGM_OK) fail_msg("%s", error.text);
        dgm_close(&t);
    }
    assert_int_equal(dgm_open(&t, "en-pt", NULL, &error), DGM_ERR_IO);
    assert_non_null(strstr(error.text, "'en-pt' is neither a file nor the name of a model"));
    assert_int_equal(dgm_open(&t, "models/en-pt.gguf", NULL, &error), DGM_ERR_IO);
    assert_string_equal(error.text, "cannot open 'models/en-pt.gguf': No such file or directory");
    char *text = NULL;
    assert_int_equal(dgm_inspect("de-en", NULL, &text, &error), DGM_OK);
    assert_non_null(strstr(text, "de-en-student"));
    dgm_string_free(&text);
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
        cmocka_unit_test(test_listed_once),
        cmocka_unit_test(test_chosen),
        cmocka_unit_test(test_opened),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
