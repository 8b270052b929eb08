// SPDX-License-Identifier: MIT
// Names of devices, shared objects that hold one, properties and precisions.
#define _GNU_SOURCE
#include <libgen.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/ops.h"
#include "base/mem.h"
#include "dragoman/tools.h"

static char plugins[PATH_MAX + 16];

static void expect_refused(const char *name, const char *unit, dgm_status status, const char *word)
{
    dgm_backend *b = NULL;
    dgm_error err = {{0}};
    assert_int_equal(dgm_backend_open(&b, name, unit, &err), status);
    assert_null(b);
    if (!strstr(err.text, word)) fail_msg("'%s' does not say '%s'", err.text, word);
    assert_null(strchr(err.text, '\n'));
}

static void test_names(void **state)
{
    (void)state;
    dgm_backend *b = NULL;
    assert_int_equal(dgm_backend_open(&b, "cpu:c", NULL, NULL), DGM_OK);
    assert_string_equal(dgm_backend_properties(b)->name, "cpu:c");
    dgm_backend_close(&b);
    assert_int_equal(dgm_backend_open(&b, "cpu:c", "c", NULL), DGM_OK); // says the same twice
    dgm_backend_close(&b);
    expect_refused("cpu:", NULL, DGM_ERR_ARGUMENT, "cpu:");
    expect_refused("cpu:sse9", NULL, DGM_ERR_ARGUMENT, "sse9");
    expect_refused("cpu:c", "avx2", DGM_ERR_ARGUMENT, "avx2");
    expect_refused("abacus", NULL, DGM_ERR_UNSUPPORTED, "abacus");
    expect_refused("", NULL, DGM_ERR_ARGUMENT, "cpu[:LEVEL]");
    expect_refused("../cpu", NULL, DGM_ERR_ARGUMENT, "../cpu");
    expect_refused("CPU", NULL, DGM_ERR_ARGUMENT, "CPU");
}

static void test_missing(void **state)
{
    (void)state;
    setenv("DRAGOMAN_PLUGINS", "/nowhere:/neither", 1);
    expect_refused("cuda", NULL, DGM_ERR_UNSUPPORTED, "DRAGOMAN_PLUGINS");
    expect_refused("cuda:1", NULL, DGM_ERR_UNSUPPORTED, "libdragoman-cuda.so");
    unsetenv("DRAGOMAN_PLUGINS");
}

static void test_plugins(void **state)
{
    (void)state;
    char folders[PATH_MAX + 64];
    snprintf(folders, sizeof folders, "/nowhere:%s", plugins);
    setenv("DRAGOMAN_PLUGINS", folders, 1);
    dgm_backend *b = NULL;
    dgm_error err = {{0}};
    if (dgm_backend_open(&b, "echo:c", NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_string_equal(dgm_backend_properties(b)->name, "echo");
    dgm_exec *x = NULL;
    assert_int_equal(dgm_exec_open(b, dgm_bytes_both(1 << 20), &x, &err), DGM_OK);
    const float in[] = {1, 2, 3, 4, 5, 6};
    float out[6];
    dgm_mat a = dgm_exec_mat(x, 2, 3);
    dgm_op_write(x, a, in);
    dgm_op_add(x, a, a, a);
    dgm_op_read(x, out, a);
    for (int i = 0; i < 6; i++) assert_true(out[i] == 2 * in[i]);
    dgm_exec_close(&x);
    dgm_backend_close(&b);
    expect_refused("echo:sse9", NULL, DGM_ERR_ARGUMENT, "sse9"); // the device's own word
    expect_refused("stale", NULL, DGM_ERR_UNSUPPORTED, "another version");
    expect_refused("short", NULL, DGM_ERR_UNSUPPORTED, "another version");
    expect_refused("empty", NULL, DGM_ERR_UNSUPPORTED, "is no device");
    unsetenv("DRAGOMAN_PLUGINS");
}

// Which device "auto" opens for a model of so many bytes.
static void expect_chosen(uint64_t need, const char *name)
{
    dgm_backend *b = NULL;
    dgm_error err;
    // The stand-in calls itself by a name that is not the GPU's: the refusal says which was chosen.
    if (dgm_device_open(&b, "auto", NULL, need, &err) == DGM_OK)
        assert_int_equal(strncmp(dgm_backend_properties(b)->name, name, strlen(name)), 0);
    else
        assert_non_null(strstr(err.text, name));
    dgm_backend_close(&b);
}

// A device that is there but cannot be used is listed with its reason.
static void test_list(void **state)
{
    (void)state;
    enum { MOST = 8 };
    dgm_device_info list[MOST];
    char folder[] = "/tmp/dgm-devices-XXXXXX", from[PATH_MAX + 64], to[PATH_MAX];
    assert_non_null(mkdtemp(folder));
    setenv("DRAGOMAN_PLUGINS", folder, 1);
    size_t count = dgm_devices(list, MOST);
    assert_int_equal(count, 1);
    assert_int_equal(strncmp(list[0].name, "cpu:", 4), 0);
    assert_string_equal(list[0].precisions, "f32, i16, i8, bf16");
    assert_true(list[0].memory > 0 && list[0].memory_free > 0);
    assert_true(list[0].memory_free <= list[0].memory);
    assert_string_equal(list[0].problem, "");
    snprintf(from, sizeof from, "%s/libdragoman-stale.so", plugins);
    snprintf(to, sizeof to, "%s/libdragoman-cuda.so", folder);
    assert_int_equal(symlink(from, to), 0);
    count = dgm_devices(list, MOST);
    assert_int_equal(count, 2);
    assert_string_equal(list[1].name, "cuda");
    assert_non_null(strstr(list[1].problem, "another version"));
    assert_int_equal(dgm_devices(NULL, 0), 2);
    expect_chosen(1, "cpu"); // what cannot be used is not chosen
    unlink(to);
    rmdir(folder);
    // An object stays in memory under its name: the stand-in for a GPU lies in another folder.
    char other[] = "/tmp/dgm-devices-XXXXXX";
    assert_non_null(mkdtemp(other));
    setenv("DRAGOMAN_PLUGINS", other, 1);
    snprintf(from, sizeof from, "%s/libdragoman-echo.so", plugins);
    snprintf(to, sizeof to, "%s/libdragoman-cuda.so", other);
    assert_int_equal(symlink(from, to), 0);
    expect_chosen(1, "echo");
    expect_chosen(UINT64_MAX, "cpu"); // too large for it
    unlink(to);
    rmdir(other);
    unsetenv("DRAGOMAN_PLUGINS");
}

static void expect_opened(const char *device, const char *level, const char *name)
{
    dgm_backend *b = NULL;
    dgm_error err = {{0}};
    if (dgm_device_open(&b, device, level, 0, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_string_equal(dgm_backend_properties(b)->name, name);
    dgm_backend_close(&b);
}

// What settings mean: the CPU unless they say otherwise, at the level of the name, of the setting or of the
// environment, in this order.
static void test_named(void **state)
{
    (void)state;
    const char *level = getenv("DRAGOMAN_CPU");
    char kept[64] = "";
    if (level) snprintf(kept, sizeof kept, "%s", level);
    setenv("DRAGOMAN_CPU", "c", 1);
    expect_opened(NULL, NULL, "cpu:c");
    expect_opened("", NULL, "cpu:c");
    setenv("DRAGOMAN_CPU", "sse9", 1); // looked at only where nothing else says it
    expect_opened("cpu:c", NULL, "cpu:c");
    expect_opened("cpu", "c", "cpu:c");
    setenv("DRAGOMAN_PLUGINS", plugins, 1);
    expect_opened("echo", "c", "echo"); // has no levels
    unsetenv("DRAGOMAN_PLUGINS");
    dgm_backend *b = NULL;
    dgm_error err = {{0}};
    assert_int_equal(dgm_device_open(&b, NULL, NULL, 0, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "sse9"));
    unsetenv("DRAGOMAN_CPU");
    if (level) setenv("DRAGOMAN_CPU", kept, 1);
}

static void test_precisions(void **state)
{
    (void)state;
    dgm_backend *b = NULL;
    dgm_error err = {{0}};
    char list[64], few[6];
    assert_int_equal(dgm_backend_open(&b, "cpu", NULL, NULL), DGM_OK);
    for (int p = 0; p < DGM_PRECISIONS_IN_FILES; p++)
        assert_int_equal(dgm_backend_supports(b, (dgm_precision)p, &err), DGM_OK);
    assert_int_equal(dgm_backend_supports(b, DGM_PRECISION_F16, &err), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "f16"));
    assert_non_null(strstr(err.text, "f32, i16, i8, bf16"));
    assert_int_equal(dgm_backend_supports(b, DGM_PRECISION_BF16, &err), DGM_OK);
    dgm_backend_close(&b);
    assert_string_equal(dgm_precision_list(1u << DGM_PRECISION_BF16, list, sizeof list), "bf16");
    assert_string_equal(dgm_precision_list(~0u, list, sizeof list), "f32, i16, i8, f16, bf16");
    assert_string_equal(dgm_precision_list(~0u, few, sizeof few), "f32");
}

static void test_settings(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_translator *t = NULL;
    dgm_error err = {{0}};
    const char *model = "tests/data/models/cmlm-pieces.gguf";
    dgm_settings_default(&s);
    assert_string_equal(s.device, "cpu");
    s.device = "cpu:c";
    if (dgm_open(&t, model, &s, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(strncmp(dgm_describe(t)->device, "cpu c:", 6), 0);
    dgm_close(&t);
    s.device = "auto";
    assert_int_equal(dgm_open(&t, model, &s, &err), DGM_OK);
    dgm_close(&t);
    s.device = "abacus";
    assert_int_equal(dgm_open(&t, model, &s, &err), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "abacus"));
    s.device = "cpu";
    s.precision = "f16";
    assert_int_equal(dgm_open(&t, model, &s, &err), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "f32, i16, i8, bf16"));
}

// Lists of devices: every one gets a worker, and translations are those of one.
static void test_several(void **state)
{
    (void)state;
    static const char *const lists[] = {"cpu", "fake,fake", "echo,fake,cpu"}, *const bad[] = {",", "cpu,", "cpu,,cpu"};
    const char *lines[] = {"the house", "a small house is old", "Hello"};
    char first[3][512];
    dgm_settings s;
    dgm_error err = {{0}};
    dgm_translator *t = NULL;
    setenv("DRAGOMAN_PLUGINS", plugins, 1);
    dgm_settings_default(&s);
    for (int i = 0; i < 3; i++) {
        dgm_results *r = NULL;
        s.device = lists[i];
        if (dgm_open(&t, "tests/data/models/transformer-pieces.gguf", &s, &err) != DGM_OK) fail_msg("%s", err.text);
        assert_int_equal(dgm_describe(t)->threads, i + 1);
        assert_int_equal(dgm_translate(t, lines, 3, &r, &err), DGM_OK);
        for (size_t k = 0; k < 3; k++) {
            if (i == 0) snprintf(first[k], sizeof first[k], "%s", dgm_result_text(dgm_results_item(r, k)));
            assert_string_equal(dgm_result_text(dgm_results_item(r, k)), first[k]);
        }
        dgm_results_free(&r);
        dgm_close(&t);
    }
    unsetenv("DRAGOMAN_PLUGINS");
    for (int i = 0; i < 3; i++) {
        s.device = bad[i];
        assert_int_equal(dgm_open(&t, "tests/data/models/transformer-pieces.gguf", &s, &err), DGM_ERR_ARGUMENT);
        assert_non_null(strstr(err.text, "commas"));
    }
    s.device = "cpu,abacus";
    assert_int_equal(dgm_open(&t, "tests/data/models/transformer-pieces.gguf", &s, &err), DGM_ERR_UNSUPPORTED);
    assert_null(t);
}

// The least workspace, in KiB, that a device needs for a batch of so many tokens.
static int64_t least_workspace(const char *device)
{
    int64_t low = 0, high = 1 << 20;
    while (high - low > 16) {
        const int64_t middle = (low + high) / 2;
        dgm_settings s;
        dgm_translator *t = NULL;
        dgm_settings_default(&s);
        s.device = device;
        s.batch_tokens = 2000;
        s.workspace = middle << 10;
        const dgm_status st = dgm_open(&t, "tests/data/models/transformer-pieces.gguf", &s, NULL);
        assert_true(st == DGM_OK || st == DGM_ERR_ARGUMENT);
        dgm_close(&t);
        *(st == DGM_OK ? &high : &low) = middle;
    }
    return high;
}

// A workspace bounds both memories together where they are one, and each by itself where not.
static void test_two_memories(void **state)
{
    (void)state;
    setenv("DRAGOMAN_PLUGINS", plugins, 1);
    const int64_t one = least_workspace("cpu"), two = least_workspace("fake");
    unsetenv("DRAGOMAN_PLUGINS");
    assert_true(two < one);     // what the other memory holds need not fit
    assert_true(2 * two > one); // the larger one has to
}

enum { LINES = 200 };

// Translates with room for sentences of up to 500 tokens; their translations are `factor` times as long at most.
static dgm_counters run_lines(const char *device, float factor)
{
    const char *lines[LINES];
    dgm_settings s;
    dgm_error err = {{0}};
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    dgm_counters counts;
    for (int i = 0; i < LINES; i++) lines[i] = i % 3 ? "a small house is old" : "the house";
    dgm_settings_default(&s);
    s.device = device;
    s.threads = 1;
    s.beam = 4;
    s.batch = 64;
    s.batch_tokens = 1 << 16;
    s.max_length = s.max_source = 500;
    s.max_length_factor = factor;
    if (dgm_open(&t, "tests/data/models/transformer-pieces.gguf", &s, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_translate(t, lines, LINES, &r, &err), DGM_OK);
    dgm_count(t, &counts);
    dgm_results_free(&r);
    dgm_close(&t);
    return counts;
}

// Memory of a device is taken whether it is touched or not: less of it for the same sentences, and it suffices. Where
// translations are a hundred times as long as their sources it does not, and few are begun again for that.
static void test_scarce_memory(void **state)
{
    (void)state;
    setenv("DRAGOMAN_PLUGINS", plugins, 1);
    const dgm_counters here = run_lines("cpu", 1), there = run_lines("fake", 1), endless = run_lines("fake", 0);
    unsetenv("DRAGOMAN_PLUGINS");
    assert_true(there.arena_bytes + (8 << 20) < here.arena_bytes);
    assert_int_equal(there.restarts, 0);
    assert_int_equal(there.target_tokens, here.target_tokens);
    assert_true(endless.restarts > 0 && endless.restarts < LINES / 2);
}

int main(void)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        snprintf(plugins, sizeof plugins, "%s/plugins", dirname(self));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_missing),
        cmocka_unit_test(test_plugins),    cmocka_unit_test(test_list),       cmocka_unit_test(test_named),
        cmocka_unit_test(test_precisions), cmocka_unit_test(test_settings),   cmocka_unit_test(test_several),
        cmocka_unit_test(test_two_memories), cmocka_unit_test(test_scarce_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
