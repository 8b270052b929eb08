// SPDX-License-Identifier: MIT
// The cache of imported models (dgm_models_cached): by content, made again where damaged, nothing left
// behind by what fails.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "dragoman/dragoman.h"
#include "dragoman/models.h"
#include "format/modelfile.h"
#include "marian_folder.h"

// A new folder for the cache, and no more files in it than `files` when it is removed.
static void end_cache(const char *cache, char *const *files, size_t count)
{
    char path[128];
    for (size_t i = 0; i < count; i++) assert_int_equal(unlink(files[i]), 0);
    snprintf(path, sizeof path, "%s/dragoman", cache);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(cache), 0);
}

static char *cached(const char *path, int made)
{
    char *file = NULL;
    int was = -1;
    dgm_error err = {{0}};
    if (dgm_models_cached(path, &file, &was, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(was, made);
    return file;
}

static void test_cache(void **state)
{
    (void)state;
    folder f = make_folder();
    char cache[] = "/tmp/dgm-cache-XXXXXX", *file[4];
    assert_non_null(mkdtemp(cache));
    setenv("XDG_CACHE_HOME", cache, 1);
    file[0] = cached(f.path, 1);
    assert_memory_equal(file[0], cache, strlen(cache));
    file[1] = cached(f.path, 0); // the second time it is there
    assert_string_equal(file[0], file[1]);
    assert_int_equal(truncate(file[0], 100), 0); // damaged: made again
    file[2] = cached(f.path, 1);
    assert_string_equal(file[0], file[2]);
    write_text(&f, "generation_config.json", "{\"num_beams\": 2}"); // another model
    file[3] = cached(f.path, 1);
    assert_string_not_equal(file[0], file[3]);
    dgm_gguf *g = NULL;
    assert_int_equal(dgm_modelfile_open(&g, file[3], NULL), DGM_OK);
    dgm_gguf_close(&g);
    dgm_translator *t = NULL; // dgm_open takes the folder, too
    dgm_error err = {{0}};
    if (dgm_open(&t, f.path, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_close(&t);
    char *both[] = {file[0], file[3]};
    end_cache(cache, both, 2);
    for (int i = 0; i < 4; i++) dgm_string_free(&file[i]);
    unsetenv("XDG_CACHE_HOME");
    remove_folder(&f);
}

// What is no such folder is given back, and a folder that cannot be imported leaves nothing.
static void test_cache_errors(void **state)
{
    (void)state;
    static const char *const paths[] = {"models/en-de.gguf", "models", "none.gguf", ""};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char *file = cached(paths[i], 0);
        assert_string_equal(file, paths[i]);
        dgm_string_free(&file);
    }
    folder f = make_folder();
    char cache[] = "/tmp/dgm-cache-XXXXXX", *file = NULL;
    dgm_error err = {{0}};
    assert_non_null(mkdtemp(cache));
    setenv("XDG_CACHE_HOME", cache, 1);
    write_text(&f, "config.json", "{\"model_type\": \"bert\"}");
    assert_int_not_equal(dgm_models_cached(f.path, &file, NULL, &err), DGM_OK);
    assert_null(file);
    assert_non_null(strstr(err.text, "bert"));
    end_cache(cache, NULL, 0);
    setenv("XDG_CACHE_HOME", "/dev/null/no", 1);
    assert_int_equal(dgm_models_cached(f.path, &file, NULL, &err), DGM_ERR_IO);
    assert_int_equal(dgm_models_cached(NULL, &file, NULL, &err), DGM_ERR_ARGUMENT);
    unsetenv("XDG_CACHE_HOME");
    remove_folder(&f);
}

static void test_cache_memory(void **state)
{
    (void)state;
    folder f = make_folder();
    char cache[] = "/tmp/dgm-cache-XXXXXX", *file = NULL;
    assert_non_null(mkdtemp(cache));
    setenv("XDG_CACHE_HOME", cache, 1);
    dgm_status st = DGM_ERR_MEMORY;
    for (uint64_t fail = 1; st != DGM_OK; fail++) {
        const uint64_t live = dgm_mem_live();
        dgm_mem_inject(fail, 1);
        st = dgm_models_cached(f.path, &file, NULL, NULL);
        dgm_mem_inject(0, 0);
        if (st != DGM_OK) assert_int_equal(st, DGM_ERR_MEMORY);
        if (st != DGM_OK) assert_int_equal(dgm_mem_live(), live);
    }
    end_cache(cache, &file, 1);
    dgm_string_free(&file);
    unsetenv("XDG_CACHE_HOME");
    remove_folder(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_cache_errors),
        cmocka_unit_test(test_cache_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
