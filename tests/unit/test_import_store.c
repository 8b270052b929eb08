// SPDX-License-Identifier: MIT
// Named tensors of any container and views of them (import/store.h), and matrices that are written a few
// rows at a time.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "format/gguf.h"
#include "import/checkpoint.h"

// A container that gives every tensor bytes that count up from its position, and counts loads.
typedef struct counter {
    int loads, closed;
} counter;

static void close_counter(void *self)
{
    ((counter *)self)->closed++;
}

static dgm_status load_counted(void *self, const dgm_stored *t, void *out, dgm_error *err)
{
    ((counter *)self)->loads++;
    if (t->where == 99) return dgm_fail(err, DGM_ERR_FORMAT, "member 99 is damaged");
    for (size_t i = 0; i < t->bytes; i++) ((uint8_t *)out)[i] = (uint8_t)(t->where + i);
    return DGM_OK;
}

static dgm_store *open_counted(counter *c)
{
    dgm_store *s = NULL;
    dgm_error err;
    const dgm_store_container container = {.self = c, .close = close_counter, .load = load_counted};
    assert_int_equal(dgm_store_open(&s, container, &err), DGM_OK);
    return s;
}

static const dgm_stored *add(dgm_store *s, dgm_stored t, size_t element)
{
    dgm_error err;
    if (dgm_store_add(s, t, element, &err) != DGM_OK) fail_msg("%s", err.text);
    return dgm_store_get(s, dgm_store_count(s) - 1);
}

static void test_loading(void **state)
{
    (void)state;
    counter c = {0};
    dgm_store *s = open_counted(&c);
    dgm_error err;
    add(s, (dgm_stored){.name = "a", .type = DGM_STORED_I8, .n_dims = 2, .shape = {2, 3}}, 1);
    add(s, (dgm_stored){.name = "b", .type = DGM_STORED_I8, .n_dims = 1, .shape = {4}, .where = 7},
        1);
    add(s,
        (dgm_stored){.name = "bad", .type = DGM_STORED_I8, .n_dims = 1, .shape = {4}, .where = 99},
        1);
    const uint8_t *data;
    assert_int_equal(dgm_store_data(s, dgm_store_get(s, 0), &data, &err), DGM_OK);
    assert_int_equal(dgm_store_data(s, dgm_store_get(s, 0), &data, &err), DGM_OK);
    assert_int_equal(data[5], 5);
    assert_int_equal(c.loads, 1); // kept
    assert_int_equal(dgm_store_data(s, dgm_store_get(s, 1), &data, &err), DGM_OK);
    assert_int_equal(data[3], 10);
    assert_int_equal(dgm_store_data(s, dgm_store_get(s, 2), &data, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "member 99 is damaged");
    assert_int_equal(dgm_store_data(s, dgm_store_get(s, 2), &data, &err), DGM_ERR_FORMAT);
    assert_int_equal(dgm_store_find(s, "b"), 1);
    assert_int_equal(dgm_store_find(s, "c"), -1);
    dgm_store_close(&s);
    assert_null(s);
    assert_int_equal(c.closed, 1);
}

static void test_bad_shapes(void **state)
{
    (void)state;
    counter c = {0};
    dgm_store *s = open_counted(&c);
    dgm_error err;
    add(s, (dgm_stored){.name = "scalar", .type = DGM_STORED_F32}, 4);
    assert_int_equal(dgm_store_get(s, 0)->rows, 1);
    assert_int_equal(dgm_store_get(s, 0)->bytes, 4);
    dgm_stored t = {.name = "scalar", .type = DGM_STORED_F32};
    assert_int_equal(dgm_store_add(s, t, 4, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "tensor 'scalar' is there twice");
    t = (dgm_stored){.name = "n", .n_dims = 2, .shape = {-1, 2}};
    assert_int_equal(dgm_store_add(s, t, 4, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "tensor 'n': negative number in the shape");
    t = (dgm_stored){.name = "n", .n_dims = 3, .shape = {65536, 65536, 2}};
    assert_int_equal(dgm_store_add(s, t, 4, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "tensor 'n': the shape is too large");
    t = (dgm_stored){.name = "n", .n_dims = 2, .shape = {INT32_MAX, INT32_MAX}};
    assert_int_equal(dgm_store_add(s, t, 8, &err), DGM_ERR_FORMAT);
    assert_int_equal(dgm_store_count(s), 1);
    // Whatever bytes a damaged file has for a name: it is a name, and not a lack of memory.
    add(s, (dgm_stored){.name = "W\xff\xc3", .type = DGM_STORED_F32}, 4);
    assert_int_equal(dgm_store_find(s, "W\xff\xc3"), 1);
    dgm_store_close(&s);
}

static void test_views(void **state)
{
    (void)state;
    counter c = {0};
    dgm_store *s = open_counted(&c);
    dgm_error err;
    const double reals[6] = {0.5, 1, 1.5, 2, 2.5, 3};
    const int8_t bytes[6] = {1, -2, 3, -4, 5, -6};
    const float divisors[3] = {2, 4, 8};
    dgm_stored t = {.name = "f64", .type = DGM_STORED_F64, .n_dims = 2, .shape = {3, 2}};
    t.data = (const uint8_t *)reals;
    dgm_view v = dgm_view_whole(s, add(s, t, 8));
    float out[6];
    dgm_view part = dgm_view_rows(v, 1, 2);
    assert_int_equal(dgm_view_read(&part, 1, 1, out, &err), DGM_OK);
    assert_true(out[0] == 2.5f && out[1] == 3);
    part = dgm_view_transposed(v);
    assert_true(part.rows == 2 && part.cols == 3);
    assert_int_equal(dgm_view_read(&part, 0, 2, out, &err), DGM_OK);
    const float transposed[6] = {0.5f, 1.5f, 2.5f, 1, 2, 3};
    assert_memory_equal(out, transposed, sizeof out);
    t = (dgm_stored){.name = "i8", .type = DGM_STORED_I8, .n_dims = 2, .shape = {3, 2}};
    t.data = (const uint8_t *)bytes;
    v = dgm_view_whole(s, add(s, t, 1));
    v.divisors = (const uint8_t *)divisors;
    v.divisor_step = 1;
    part = dgm_view_rows(v, 1, 2);
    assert_int_equal(dgm_view_read(&part, 0, 2, out, &err), DGM_OK);
    const float divided[4] = {0.75f, -1, 0.625f, -0.75f};
    assert_memory_equal(out, divided, sizeof divided);
    int8_t q[4];
    assert_int_equal(dgm_view_read_i8(&part, 0, 2, q, &err), DGM_OK);
    assert_memory_equal(q, bytes + 2, sizeof q);
    dgm_store_close(&s);
}

// ---- written a few rows at a time --------------------------------------------------------------

enum { ROWS = 700, COLS = 1024 }; // more than one call

static float value(int row, int col)
{
    return (float)((row * 31 + col * 17) % 255 - 127) / (float)(row + 1);
}

static dgm_status fetch_rows(const void *source, int first, int rows, float *out, dgm_error *err)
{
    (void)err;
    assert_true(first >= 0 && rows > 0 && first + rows <= ROWS);
    *(int *)(uintptr_t)source += rows < ROWS;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < COLS; c++) *out++ = value(first + r, c);
    return DGM_OK;
}

static void check_type(const char *type, float tolerance)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/dragoman-test-store-%d.gguf", (int)getpid());
    int parts = 0;
    dgm_error err;
    dgm_import_job job = {.dir = "rows", .output = path, .storage = -1};
    assert_int_equal(dgm_gguf_writer_open(&job.w, &err), DGM_OK);
    const int storage = strcmp(type, "f32") == 0   ? DGM_TYPE_F32
                        : strcmp(type, "i16") == 0 ? DGM_TYPE_I16
                                                   : DGM_TYPE_I8;
    assert_int_equal(dgm_import_matrix(&job, "m", ROWS, COLS, storage, fetch_rows, &parts, &err),
                     DGM_OK);
    if (dgm_import_write(&job, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_true(parts > 1);
    dgm_gguf_writer_close(&job.w);
    dgm_gguf *g;
    const dgm_tensor *t;
    assert_int_equal(dgm_gguf_open(&g, path, &err), DGM_OK);
    if (dgm_gguf_matrix(g, "m", ROWS, COLS, DGM_REQUIRED, &t, &err) != DGM_OK)
        fail_msg("%s", err.text);
    float *real = malloc(sizeof(float) * ROWS * COLS);
    dgm_tensor_to_f32(t, real);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++) {
            const float want = value(r, c), got = real[r * COLS + c];
            const float step = storage == DGM_TYPE_I8 ? 127.0f / (float)(r + 1) : 127.0f;
            if (got - want > tolerance * step || want - got > tolerance * step)
                fail_msg("%s: row %d, column %d: %g, expected %g", type, r, c, (double)got,
                         (double)want);
        }
    free(real);
    dgm_gguf_close(&g);
    dgm_import_free_weights(&job);
    unlink(path);
}

static void test_rows(void **state)
{
    (void)state;
    check_type("f32", 0);
    check_type("i8", 0.5f / 127 * 1.001f);
    check_type("i16", 0.5f / 32767 * 2.001f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loading),
        cmocka_unit_test(test_bad_shapes),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
