// SPDX-License-Identifier: MIT
// Whether a model's numbers fit f16: what is found of models of every kind, of one with huge numbers and of one
// with none; and what a GPU made of software then computes in.
#define _GNU_SOURCE
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/device.h"
#include "dragoman/tools.h"
#include "failures.h"
#include "model/range.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"

static char device_folder[PATH_MAX + 16];

// A model in memory, whose numbers can be changed.
typedef struct copy {
    void *data;
    size_t size;
} copy;

static copy read_model(const char *path)
{
    copy c = {NULL, 0};
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    c.size = (size_t)ftell(f);
    rewind(f);
    c.data = aligned_alloc(64, (c.size + 63) / 64 * 64);
    assert_non_null(c.data);
    assert_int_equal(fread(c.data, 1, c.size, f), c.size);
    fclose(f);
    return c;
}

static void multiply(const copy *c, const char *tensor, float factor)
{
    dgm_gguf *file = NULL;
    assert_int_equal(dgm_gguf_open_memory(&file, c->data, c->size, NULL), DGM_OK);
    const dgm_tensor *t = dgm_gguf_find_tensor(file, tensor);
    assert_non_null(t);
    assert_int_equal(t->type, DGM_TYPE_F32);
    float *x = (float *)(uintptr_t)t->data;
    for (size_t i = 0; i < t->bytes / sizeof *x; i++) x[i] *= factor;
    dgm_gguf_close(&file);
}

static dgm_status find_range(dgm_gguf *file, dgm_precision precision, float *largest)
{
    dgm_backend *b = NULL;
    dgm_model *m = NULL;
    dgm_error err = {0};
    dgm_status st = dgm_backend_open(&b, "cpu", NULL, &err);
    if (st == DGM_OK) st = dgm_model_load(&m, b, file, precision, &err);
    if (st == DGM_OK) st = dgm_model_range(m, largest, &err);
    dgm_model_free(&m);
    dgm_backend_close(&b);
    return st;
}

static float range_of(const copy *c, dgm_precision precision)
{
    dgm_gguf *file = NULL;
    float largest = -1;
    assert_int_equal(dgm_gguf_open_memory(&file, c->data, c->size, NULL), DGM_OK);
    assert_int_equal(find_range(file, precision, &largest), DGM_OK);
    dgm_gguf_close(&file);
    return largest;
}

static void every_kind_of_model(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob("tests/data/models/*.gguf", 0, NULL, &found), 0);
    int models = 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        if (strstr(path, ".fixture.") || strstr(path, ".cmlm.")) continue;
        const copy c = read_model(path);
        const float largest = range_of(&c, DGM_PRECISION_F32);
        if (!(largest > 0 && largest < 1e3f)) fail_msg("%s: %g", path, (double)largest);
        assert_true(range_of(&c, DGM_PRECISION_F32) == largest); // every time
        free(c.data);
        models++;
    }
    globfree(&found);
    assert_true(models > 40);
}

static void huge_numbers_are_seen(void **state)
{
    (void)state;
    const copy c = read_model(MODEL);
    const float before = range_of(&c, DGM_PRECISION_F32);
    multiply(&c, "dec.0.self.norm.weight", 65536);
    const float after = range_of(&c, DGM_PRECISION_F32);
    assert_true(before < 100 && after > 30000 && isfinite(after));
    multiply(&c, "enc.0.ffn.norm.weight", INFINITY);
    assert_true(isinf(range_of(&c, DGM_PRECISION_F32)));
    free(c.data);
}

static void memory_that_is_not_there(void **state)
{
    (void)state;
    const copy c = read_model(MODEL);
    dgm_gguf *file = NULL;
    float largest;
    assert_int_equal(dgm_gguf_open_memory(&file, c.data, c.size, NULL), DGM_OK);
    ALLOCATIONS_FAIL(find_range(file, DGM_PRECISION_F32, &largest));
    dgm_gguf_close(&file);
    free(c.data);
}

// ---- what becomes of it -------------------------------------------------------------------------

// Opens the model on the software GPU; its first translation must be the CPU's in f32.
static void expect_precision(const copy *c, const char *asked, const char *precision, int widened)
{
    const char *const texts[] = {"a small house"};
    char *said[2];
    for (int k = 0; k < 2; k++) {
        dgm_settings s;
        dgm_error err = {0};
        dgm_translator *t = NULL;
        dgm_results *r = NULL;
        dgm_settings_default(&s);
        s.precision = k ? asked : "f32";
        s.device = k ? "cuda" : "cpu";
        s.max_length = 4;
        s.raw = 1;
        if (dgm_open_memory(&t, c->data, c->size, &s, &err) != DGM_OK) fail_msg("%s", err.text);
        if (k) {
            assert_string_equal(dgm_describe(t)->precision, precision);
            assert_int_equal(dgm_describe(t)->widened, widened);
        }
        assert_int_equal(dgm_translate(t, texts, 1, &r, &err), DGM_OK);
        said[k] = strdup(r->items[0]->translations[0]->text);
        dgm_results_free(&r);
        dgm_close(&t);
    }
    assert_string_equal(said[0], said[1]);
    free(said[0]);
    free(said[1]);
}

static void a_gpu_chooses(void **state)
{
    (void)state;
    if (access(device_folder, R_OK) != 0) skip(); // builds with sanitizers have no software GPU
    setenv("DRAGOMAN_PLUGINS", device_folder, 1);
    const copy c = read_model(MODEL);
    expect_precision(&c, NULL, "f16", 0);
    multiply(&c, "dec.0.self.norm.weight", 65536);
    expect_precision(&c, NULL, "bf16", 1);
    expect_precision(&c, "f32", "f32", 0); // who asks gets it
    dgm_settings s;
    dgm_error err = {0};
    dgm_translator *t = NULL;
    dgm_settings_default(&s);
    s.device = "cuda";
    s.precision = "i8"; // which capability 9.0 multiplies as f16
    assert_int_equal(dgm_open_memory(&t, c.data, c.size, &s, &err), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "device cuda:0 multiplies i8 as f16"));
    setenv("SOFTCUDA_CAPABILITY", "75", 1);
    assert_int_equal(dgm_open_memory(&t, c.data, c.size, &s, &err), DGM_OK);
    dgm_close(&t);
    expect_precision(&c, NULL, "f32", 1);
    unsetenv("SOFTCUDA_CAPABILITY");
    free(c.data);
    const copy w = read_model(MODEL);
    multiply(&w, "dec.0.ffn.in.weight", 1e7f); // a weight that f16 cannot hold
    multiply(&w, "dec.0.ffn.out.weight", 1e-7f);
    expect_precision(&w, NULL, "bf16", 1);
    free(w.data);
    unsetenv("DRAGOMAN_PLUGINS");
}

int main(void)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = '\0';
        snprintf(device_folder, sizeof device_folder, "%s/softcuda", dirname(self));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_model),
        cmocka_unit_test(huge_numbers_are_seen),
        cmocka_unit_test(memory_that_is_not_there),
        cmocka_unit_test(a_gpu_chooses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
