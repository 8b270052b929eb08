// SPDX-License-Identifier: MIT
// Static scales in 16 bits: what a layer computes with one, to the last bit and at the edge of what
// 32-bit sums hold; whole translations, which depend on neither batch nor instruction set; and models
// that have none.
#define _GNU_SOURCE
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

#include "backend/ops.h"
#include "base/mem.h"
#include "dragoman/tools.h"
#include "engine.h"
#include "scratch.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"
#define RNN "tests/data/models/rnn-bahdanau-pieces.gguf"

static const char *const levels[] = {"c", "avx2", "avx512", "vnni", "neon"}; // those there are

// ---- one layer ---------------------------------------------------------------------------------

enum { ROWS = 3, N = 5, WIDEST = 4096 };

typedef struct layer {
    float w[N * WIDEST], x[ROWS * WIDEST];
    int k;
    float stored; // scale, in 127 steps
} layer;

// The product by hand: y [ROWS, N].
static void by_hand(const layer *l, float *y)
{
    float largest = 0;
    int64_t sums = 1;
    for (int i = 0; i < N * l->k; i++) largest = fmaxf(largest, fabsf(l->w[i]));
    const float weight_scale = exp2f(-floorf(log2f(4095 / largest)));
    for (int j = 0; j < N; j++) {
        int64_t sum = 0;
        for (int i = 0; i < l->k; i++) sum += llabs(llrintf(l->w[j * l->k + i] / weight_scale));
        if (sum > sums) sums = sum;
    }
    const int64_t room = INT32_MAX / sums;
    const float limit = room < 32767 ? (float)room : 32767.0f;
    const float scale = exp2f(-floorf(log2f(limit / (127 * l->stored))));
    for (int r = 0; r < ROWS; r++)
        for (int j = 0; j < N; j++) {
            int64_t sum = 0;
            for (int i = 0; i < l->k; i++) {
                const float v = rintf(l->x[r * l->k + i] / scale);
                sum += llrintf(fmaxf(-limit, fminf(limit, v))) *
                       llrintf(l->w[j * l->k + i] / weight_scale);
            }
            assert_true(llabs(sum) <= INT32_MAX);
            y[r * N + j] = (float)sum * (scale * weight_scale);
        }
}

static void compute(const layer *l, const char *level, float *y)
{
    dgm_tensor tensor = {.name = "w",
                         .type = DGM_TYPE_F32,
                         .n_dims = 2,
                         .shape = {N, l->k},
                         .rows = N,
                         .cols = l->k,
                         .data = l->w,
                         .bytes = (size_t)(N * l->k) * sizeof(float)};
    const dgm_linear_part part = {.weight = &tensor, .input_scale = l->stored};
    dgm_backend *b = NULL;
    dgm_exec *e = NULL;
    dgm_linear *w = NULL;
    assert_int_equal(dgm_backend_open(&b, "cpu", level, NULL), DGM_OK);
    dgm_backend_static(b, true);
    assert_int_equal(dgm_linear_load(b, &part, 1, DGM_PRECISION_I16, &w, NULL), DGM_OK);
    assert_int_equal(dgm_exec_open(b, dgm_bytes_both(8 << 20), &e, NULL), DGM_OK);
    dgm_mat in = dgm_exec_mat(e, ROWS, l->k), out = dgm_exec_mat(e, ROWS, N);
    dgm_op_write(e, in, l->x);
    dgm_op_linear(e, out, in, w, DGM_ACT_NONE, NULL);
    dgm_op_read(e, y, out);
    dgm_exec_close(&e);
    dgm_linear_free(b, &w);
    dgm_backend_close(&b);
}

static bool have(const char *level)
{
    dgm_backend *b = NULL;
    const bool yes = dgm_backend_open(&b, "cpu", level, NULL) == DGM_OK;
    dgm_backend_close(&b);
    return yes;
}

static void check_layer(const layer *l)
{
    float want[ROWS * N], got[ROWS * N];
    by_hand(l, want);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (!have(levels[i])) continue;
        compute(l, levels[i], got);
        for (int j = 0; j < ROWS * N; j++)
            if (got[j] != want[j])
                fail_msg("%s, k = %d, scale %g: y[%d] is %a, not %a", levels[i], l->k,
                         (double)l->stored, j, (double)got[j], (double)want[j]);
    }
}

static void test_layers(void **state)
{
    (void)state;
    static layer l;
    for (l.k = 1; l.k < 200; l.k = l.k * 3 + 4)
        for (int s = 0; s < 4; s++) {
            for (int i = 0; i < N * l.k; i++) l.w[i] = sinf((float)i);
            for (int i = 0; i < ROWS * l.k; i++) l.x[i] = 3 * cosf((float)i);
            l.stored = ldexpf(3.0f / 127, s - 2); // some saturate, some use few of the bits
            check_layer(&l);
        }
}

// Rows far outside of the range, whose signs are those of the largest row of weights: the sums are as
// large as they can be, and no larger. A number that is none counts as the lowest.
static void test_overflow(void **state)
{
    (void)state;
    static layer l;
    l.k = WIDEST;
    l.stored = 1.0f / 127;
    for (int i = 0; i < N * l.k; i++) l.w[i] = i % 3 ? 1.0f : -1.0f;
    for (int i = 0; i < ROWS * l.k; i++) l.x[i] = i % l.k % 3 ? 1e9f : -1e9f;
    check_layer(&l);
    for (int i = 0; i < l.k; i++) l.x[i] = i % 3 ? INFINITY : -INFINITY;
    check_layer(&l);
    float nan[ROWS * N], lowest[ROWS * N];
    for (int i = 0; i < l.k; i++) l.x[i] = NAN;
    compute(&l, "c", nan);
    for (int i = 0; i < l.k; i++) l.x[i] = -1e9f;
    compute(&l, "c", lowest);
    assert_memory_equal(nan, lowest, sizeof nan);
}

// ---- translations ------------------------------------------------------------------------------

enum { TEXTS = 5 };

static const char *const texts[TEXTS] = {"Good morning.", "the old man sees the house .", "a",
                                         "The committee will meet again next week.", "und der"};

static const char *calibrate(const char *model, const char *name)
{
    dgm_quantize_options o;
    dgm_error error = {{0}};
    const char *to = in_folder(name);
    dgm_quantize_default(&o);
    o.type = "i16";
    o.calibrate = put_text("calibrate.txt", "Good morning.\nthe old man sees the house .\n");
    if (dgm_quantize(model, to, &o, NULL, &error) != DGM_OK) fail_msg("%s", error.text);
    return to;
}

static char *translated(const char *path, const char *precision, const char *level, int batch, bool fixed)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.precision = precision;
    s.cpu = level;
    s.batch = batch;
    s.nbest = 2;
    s.max_length = 10;
    s.static_scales = fixed;
    dgm_translator *t = open_with(&s, path);
    char *out = translate_texts(t, texts, TEXTS, true);
    dgm_close(&t);
    return out;
}

static void test_translations(void **state)
{
    (void)state;
    static const char *const models[] = {MODEL, RNN}, *const precisions[] = {"i16", "i8"};
    for (int m = 0; m < 2; m++) {
        char path[256];
        snprintf(path, sizeof path, "%s", calibrate(models[m], m ? "rnn.gguf" : "model.gguf"));
        for (int p = 0; p < 2; p++) {
            char *want = translated(path, precisions[p], "c", 8, true);
            char *rows = translated(path, precisions[p], "c", 8, false);
            assert_string_not_equal(want, rows); // scores are other ones
            free(rows);
            for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
                for (int batch = 1; batch <= 3 && have(levels[i]); batch += 2) {
                    char *got = translated(path, precisions[p], levels[i], batch, true);
                    assert_string_equal(got, want);
                    free(got);
                }
            free(want);
        }
    }
}

static void refuse(const char *path, const char *precision)
{
    dgm_settings s;
    dgm_translator *t = NULL;
    dgm_error error = {{0}};
    dgm_settings_default(&s);
    s.static_scales = 1;
    s.precision = precision;
    assert_int_equal(dgm_open(&t, path, &s, &error), DGM_ERR_UNSUPPORTED);
    assert_string_equal(error.text, "static-scales cannot be combined with this model: it takes scales of "
                                    "activations, which 'dragoman quantize --calibrate TEXT' stores, and "
                                    "products in i8 or i16");
}

static void test_refusals(void **state)
{
    (void)state;
    refuse(MODEL, "i16");
    refuse(RNN, NULL);
    refuse(calibrate(MODEL, "other.gguf"), "f32");
    const dgm_member both[] = {{.path = in_folder("other.gguf")}, {.path = MODEL}};
    dgm_settings s;
    dgm_translator *t = NULL;
    dgm_settings_default(&s);
    assert_int_equal(dgm_open_ensemble(&t, both, 2, &s, NULL), DGM_OK);
    dgm_close(&t);
    s.static_scales = 1; // of all members or of none
    assert_int_equal(dgm_open_ensemble(&t, both, 2, &s, NULL), DGM_ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_translations),
        cmocka_unit_test(test_refusals),
    };
    if (!scratch_open()) return 1;
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
