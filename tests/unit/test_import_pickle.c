// SPDX-License-Identifier: MIT
// Files of torch.save, read without running anything (import/pickle.h, torch_file.h): both layouts against what
// tests/oracle/make_pickles.py put into tests/data/import, hostile pickles, damaged files, failing allocations.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "import/torch_file.h"

static const char *const layouts[] = {"tests/data/import/zip.pt", "tests/data/import/old.pt"};

static dgm_torch *open_well(const char *path)
{
    dgm_torch *t;
    dgm_error err = {""};
    if (dgm_torch_open(&t, path, &err) != DGM_OK) fail_msg("%s", err.text);
    return t;
}

static dgm_store *tensors_of(dgm_torch *t)
{
    dgm_store *s;
    dgm_error err = {""};
    assert_int_equal(dgm_store_open(&s, (dgm_store_container){0}, &err), DGM_OK);
    if (dgm_torch_tensors(t, dgm_py_get(dgm_torch_root(t), "model"), "m.", s, &err) != DGM_OK)
        fail_msg("%s", err.text);
    return s;
}

static void expect(dgm_store *s, const char *name, int rows, int cols, const float *values)
{
    const int at = dgm_store_find(s, name);
    if (at < 0) fail_msg("%s is missing", name);
    const dgm_view v = dgm_view_whole(s, dgm_store_get(s, (size_t)at));
    float out[16];
    assert_int_equal(v.rows, rows);
    assert_int_equal(v.cols, cols);
    assert_int_equal(dgm_view_read(&v, 0, rows, out, NULL), DGM_OK);
    for (int i = 0; i < rows * cols; i++)
        if (out[i] != values[i]) fail_msg("%s: number %d is %g", name, i, (double)out[i]);
}

static void test_tensors(void **state)
{
    (void)state;
    static const float six[] = {0.25f, 0.5f, 0.75f, 1, 1.25f, 1.5f};
    static const float turned[] = {0.25f, 1, 0.5f, 1.25f, 0.75f, 1.5f};
    static const float rows[] = {1.25f, 1.5f, 1.75f, 2}, columns[] = {0.5f, 1, 1.5f, 2, 2.5f, 3};
    static const char *const types[] = {"m.f32", "m.f16", "m.bf16", "m.f64"};
    for (int i = 0; i < 2; i++) {
        dgm_torch *t = open_well(layouts[i]);
        dgm_store *s = tensors_of(t);
        for (int k = 0; k < 4; k++) expect(s, types[k], 2, 3, six);
        expect(s, "m.i64", 1, 2, (const float[]){1, -2});
        expect(s, "m.i8", 1, 2, (const float[]){3, -4});
        expect(s, "m.transposed", 3, 2, turned);
        expect(s, "m.rows", 2, 2, rows);
        expect(s, "m.columns", 1, 6, columns);
        expect(s, "m.cube", 2, 3, six);
        expect(s, "m.scalar", 1, 1, (const float[]){7});
        expect(s, "m.parameter", 1, 3, six);
        expect(s, "m.repeated", 3, 2, (const float[]){0.25f, 0.5f, 0.25f, 0.5f, 0.25f, 0.5f});
        assert_string_equal(dgm_store_get(s, (size_t)dgm_store_find(s, "m.bf16"))->dtype, "bfloat16");
        // Parts of one storage are views of the same bytes.
        assert_ptr_equal(dgm_store_get(s, (size_t)dgm_store_find(s, "m.rows"))->data,
                         dgm_store_get(s, (size_t)dgm_store_find(s, "m.whole"))->data + 16);
        dgm_store_close(&s);
        dgm_torch_close(&t);
    }
}

static void expect_settings(const dgm_py *args)
{
    dgm_error err = {""};
    int64_t layers = 0;
    bool share = false;
    dgm_text arch = {0};
    assert_int_equal(dgm_py_int(args, "layers", 1, 9, &layers, &err), DGM_OK);
    assert_int_equal(dgm_py_bool(args, "share", &share, &err), DGM_OK);
    assert_int_equal(dgm_py_string(args, "arch", &arch, &err), DGM_OK);
    assert_true(layers == 6 && share && dgm_text_equal(arch, dgm_text_of("transformer")));
    assert_int_equal(dgm_py_int(args, "absent", 1, 9, &layers, &err), DGM_OK);
    assert_int_equal(dgm_py_int(args, "layers", 1, 5, &layers, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "\"layers\" is 6, expected 1 to 5");
    assert_int_equal(dgm_py_int(args, "arch", 1, 5, &layers, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "\"arch\" is not an integer");
    assert_int_equal(dgm_py_string(args, "layers", &arch, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "\"layers\" is not a text");
}

static void test_settings(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        dgm_torch *t = open_well(layouts[i]);
        const dgm_py *root = dgm_torch_root(t), *list = dgm_py_get(root, "list");
        expect_settings(dgm_py_get(root, "args"));
        assert_null(dgm_py_get(dgm_py_get(root, "args"), "none"));
        assert_int_equal(dgm_py_count(list), 7);
        assert_true(dgm_py_item(list, 1)->kind == DGM_PY_REAL && dgm_py_item(list, 1)->as.real == 2.5);
        assert_int_equal(dgm_py_item(list, 6)->kind, DGM_PY_BIG);
        assert_null(dgm_py_item(list, 7));
        dgm_torch_close(&t);
    }
    dgm_torch *t = open_well("tests/data/import/omega.pt");
    expect_settings(dgm_py_get(dgm_torch_root(t), "cfg"));
    dgm_torch_close(&t);
}

// ---- hostile and damaged ------------------------------------------------------------------------

static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *message;
    } rows[] = {
#define ROW(text, message) {text, sizeof text - 1, message}
        ROW("\x80\2cos\nsystem\nX\5\0\0\0touch\x85R.",
            "byte 13: it names 'os.system', which no translation model needs: refused (nothing in a "
            "pickle is ever run)"),
        ROW("\x80\4\x8c\10builtins\x8c\4eval\x93.",
            "byte 19: it names 'builtins.eval', which no translation model needs: refused (nothing in "
            "a pickle is ever run)"),
        ROW("\x80\2K\1K\1\x85R.", "byte 8: a call of something that is no name"),
        ROW("\x80\2K\1(.", "byte 6: an instruction finds no value"),
        ROW("\x80\2\x86.", "byte 3: an instruction finds no value"),
        ROW("\x80\2}K\1s.", "byte 6: items for nothing"),
        ROW("\x80\2h\5.", "byte 4: an empty memory slot"),
        ROW("\x80\2Nr\xff\xff\xff\x7f.", "byte 8: a memory slot far beyond those in use"),
        ROW("\x80\2X\xff\xff\xff\xff", "byte 7: the file ends inside a text"),
        ROW("\x80\2N", "byte 3: the pickle has no end (truncated?)"),
        ROW("\x80\2(t0e.", "byte 6: an instruction finds no mark"),
        ROW("\x80\2I1\n.", "byte 3: instruction 0x49 is not one that torch writes"),
        ROW("\x80\2\x82\1.", "byte 3: instruction 0x82 is not one that torch writes"),
        ROW("\x80\7N.", "byte 2: not a pickle of protocol 2 to 5"),
        ROW("\x80\2ccollections\nOrderedDict", "byte 15: a name without an end"),
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_pickle p = {0};
        dgm_error err = {""};
        const dgm_py *root;
        size_t used;
        assert_int_not_equal(
            dgm_pickle_read(&p, rows[i].bytes, rows[i].size, &used, &root, &err), DGM_OK);
        assert_string_equal(err.text, rows[i].message);
        dgm_pickle_free(&p);
    }
    // Marks within marks, and a list that holds itself.
    dgm_pickle p = {0};
    dgm_error err = {""};
    const dgm_py *root;
    size_t used;
    char deep[20002] = "\x80\2";
    memset(deep + 2, '(', 20000);
    assert_int_equal(dgm_pickle_read(&p, deep, sizeof deep, &used, &root, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "byte 10003: nested too deeply");
    // The file is large enough, but nothing was put into the slots before it.
    static const char far[] = "\x80\2Nr\x20\x4e\0\0";
    memcpy(deep, far, sizeof far - 1);
    assert_int_equal(dgm_pickle_read(&p, deep, sizeof deep, &used, &root, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "byte 8: a memory slot far beyond those in use");
    static const char circle[] = "\x80\2]q\0h\0a.";
    assert_int_equal(dgm_pickle_read(&p, circle, sizeof circle - 1, &used, &root, &err), DGM_OK);
    assert_ptr_equal(dgm_py_item(root, 0), root);
    dgm_pickle_free(&p);
}

// Opens bytes and looks at every tensor. True: all is well.
static bool try_bytes(const void *data, size_t size, dgm_error *err)
{
    dgm_torch *t;
    dgm_store *s = NULL;
    if (dgm_torch_open_memory(&t, "some.pt", data, size, err) != DGM_OK) return false;
    bool well = dgm_store_open(&s, (dgm_store_container){0}, err) == DGM_OK &&
                dgm_torch_tensors(t, dgm_py_get(dgm_torch_root(t), "model"), "", s, err) == DGM_OK;
    for (size_t i = 0; well && i < dgm_store_count(s); i++) {
        const dgm_view v = dgm_view_whole(s, dgm_store_get(s, i));
        float out[64];
        for (int r = 0; r < v.rows && v.cols <= 64; r++)
            assert_int_equal(dgm_view_read(&v, r, 1, out, NULL), DGM_OK);
    }
    dgm_store_close(&s);
    dgm_torch_close(&t);
    return well;
}

// 200 files with a byte changed, or cut off: each is read or ends in one sentence that names the file.
static void test_damaged(void **state)
{
    (void)state;
    int refused = 0;
    uint32_t seed = 15;
    for (int i = 0; i < 200; i++) {
        dgm_mapfile f;
        dgm_error err = {""};
        assert_int_equal(dgm_mapfile_open(&f, layouts[i % 2], &err), DGM_OK);
        uint8_t *copy = malloc(f.size);
        size_t size = f.size;
        memcpy(copy, f.data, f.size);
        for (int k = 0; k < 1 + i % 3; k++) {
            seed = seed * 1664525u + 1013904223u;
            copy[(seed >> 8) % size] ^= (uint8_t)(1u << (seed & 7));
        }
        if (i % 5 == 4) size = (seed >> 8) % size;
        uint8_t *exact = malloc(size ? size : 1); // so that a sanitizer sees a step beyond
        memcpy(exact, copy, size);
        if (!try_bytes(exact, size, &err)) {
            refused++;
            if (strncmp(err.text, "'some.pt': ", 11) != 0 || strchr(err.text, '\n'))
                fail_msg("file %d: %s", i, err.text);
        }
        free(exact);
        free(copy);
        dgm_mapfile_close(&f);
    }
    assert_in_range(refused, 100, 200);
}

static void test_other_files(void **state)
{
    (void)state;
    dgm_error err = {""};
    assert_false(try_bytes("hello", 5, &err));
    assert_string_equal(err.text, "'some.pt': neither a zip file nor a pickle: not what torch.save writes");
    assert_false(try_bytes("PK\3\4", 4, &err));
    assert_string_equal(err.text, "'some.pt': no directory at the end of the zip file (truncated?)");
    assert_false(try_bytes("\x80\2K\1.", 5, &err));
    assert_string_equal(err.text, "'some.pt': a pickle, but not one of torch.save");
}

static void test_no_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        dgm_mapfile f;
        dgm_error err = {""};
        assert_int_equal(dgm_mapfile_open(&f, layouts[i], &err), DGM_OK);
        assert_true(try_bytes(f.data, f.size, &err)); // jansson makes its seed once
        const uint64_t live = dgm_mem_live();
        bool well = false;
        for (int64_t at = 1; at < 400 && !well; at++) {
            dgm_mem_inject((uint64_t)at, 1);
            well = try_bytes(f.data, f.size, &err);
            dgm_mem_inject(0, 0);
            assert_int_equal(dgm_mem_live(), live);
        }
        assert_true(well);
        dgm_mapfile_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors),     cmocka_unit_test(test_settings),
        cmocka_unit_test(test_hostile),     cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_other_files), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
