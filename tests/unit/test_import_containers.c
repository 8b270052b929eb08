// SPDX-License-Identifier: MIT
// Files of Marian and Nematus: zip archives of numpy's arrays, Marian's binary models, YAML. Good ones, what is
// refused and in which words, and 200 damaged files of each kind.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "failures.h"
#include "import/marian_bin.h"
#include "import/npz.h"
#include "import/yaml.h"
#include "base/zip.h"
#include "scratch.h"

// ---- making files ------------------------------------------------------------------------------

typedef struct member {
    const char *name;
    const void *data;
    size_t size;
} member;

static const char *make_zip(const char *name, const member *list, size_t n, int method)
{
    const char *path = in_folder(name);
    remove(path);
    zip_t *z = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(z);
    for (size_t i = 0; i < n; i++) {
        zip_source_t *s = zip_source_buffer(z, list[i].data, list[i].size, 0);
        const zip_int64_t at = zip_file_add(z, list[i].name, s, ZIP_FL_ENC_UTF_8);
        assert_true(at >= 0);
        assert_int_equal(zip_set_file_compression(z, (zip_uint64_t)at, method, 0), 0);
    }
    assert_int_equal(zip_close(z), 0);
    return path;
}

// An array with this header.
static size_t make_npy(uint8_t *out, int version, const char *header, const void *data, size_t size)
{
    const size_t n = strlen(header);
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    out[8] = (uint8_t)n;
    out[9] = (uint8_t)(n >> 8);
    out[10] = out[11] = 0;
    uint8_t *p = out + (version == 1 ? 10 : 12);
    memcpy(p, header, n);
    memcpy(p + n, data, size);
    return (size_t)(p - out) + n + size;
}

static const float six[6] = {1, 2, 3, -4, 5.5f, 6};

// Two arrays: f4 [2, 3] and i1 [4].
static const char *make_npz(const char *name, int method)
{
    uint8_t a[512], b[512];
    const size_t na =
        make_npy(a, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }        \n", six,
                 sizeof six);
    const size_t nb = make_npy(b, 2, "{\"shape\": (4L,), 'fortran_order': True, 'descr': '|i1'}\n",
                               "\1\2\3\4", 4);
    const member list[] = {{"decoder_W.npy", a, na}, {"special:model.yml.npy", b, nb}};
    return make_zip(name, list, 2, method);
}

static void write_item(dgm_writer *heads, const char *name, uint64_t type, uint64_t dims,
                       uint64_t bytes)
{
    dgm_write_u64(heads, strlen(name) + 1);
    dgm_write_u64(heads, type);
    dgm_write_u64(heads, dims);
    dgm_write_u64(heads, bytes);
}

// f32 [2, 3] under a namespace, i8 for intgemm [2, 3] with the multiplier 8, YAML; type: of the second.
static dgm_writer make_bin(uint64_t type, const char *second)
{
    dgm_writer w = {0};
    dgm_write_u64(&w, 1);
    dgm_write_u64(&w, 3);
    write_item(&w, "F0::a", 0x404, 2, 256);
    write_item(&w, second, type, 2, 256);
    write_item(&w, "special:model.yml", 0x101, 1, 8);
    dgm_write_bytes(&w, "F0::a", 6);
    dgm_write_bytes(&w, second, strlen(second) + 1);
    dgm_write_bytes(&w, "special:model.yml", 18);
    static const uint32_t shapes[] = {2, 3, 2, 3, 8};
    for (size_t i = 0; i < 5; i++) dgm_write_u32(&w, shapes[i]);
    dgm_write_u64(&w, 5);
    dgm_write_zeros(&w, 5);
    for (size_t i = 0; i < 6; i++) dgm_write_f32(&w, six[i]);
    dgm_write_zeros(&w, 256 - 24);
    dgm_write_bytes(&w, "\1\2\3\4\5\6", 6);
    dgm_write_f32(&w, 8);
    dgm_write_zeros(&w, 256 - 10);
    dgm_write_bytes(&w, "a: b\n\0\0", 8);
    assert_false(w.failed);
    return w;
}

// ---- numpy -------------------------------------------------------------------------------------

static void check_npz(const char *path)
{
    dgm_store *s;
    dgm_error err;
    if (dgm_npz_open(&s, path, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_store_count(s), 2);
    const dgm_stored *t = dgm_store_get(s, (size_t)dgm_store_find(s, "decoder_W"));
    assert_int_equal(t->type, DGM_STORED_F32);
    assert_int_equal(t->rows, 2);
    const dgm_view v = dgm_marian_weight(s, t); // [3, 2]
    float out[2];
    assert_int_equal(dgm_view_read(&v, 1, 1, out, &err), DGM_OK);
    assert_float_equal(out[0], 2, 0);
    assert_float_equal(out[1], 5.5f, 0);
    const uint8_t *data;
    t = dgm_store_get(s, (size_t)dgm_store_find(s, "special:model.yml"));
    assert_int_equal(t->type, DGM_STORED_I8);
    assert_int_equal(dgm_store_data(s, t, &data, &err), DGM_OK);
    assert_int_equal(data[3], 4);
    dgm_store_close(&s);
}

static void test_npz(void **state)
{
    (void)state;
    check_npz(make_npz("stored.npz", ZIP_CM_STORE));
    check_npz(make_npz("deflated.npz", ZIP_CM_DEFLATE));
}

static void test_npy_headers(void **state)
{
    (void)state;
    static const struct {
        const char *header, *message; // NULL: good
    } cases[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': ()}", NULL},
        {"{'descr':'|O','fortran_order':False,'shape':(1,)}", NULL},
        {"{'descr': '<U5', 'fortran_order': False, 'shape': (2,)}", NULL},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", "big-endian"},
        {"{'descr': 'x4', 'fortran_order': False, 'shape': (2,)}", "unknown type 'x4'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "records"},
        {"{'descr': '<f4', 'fortran_order': No, 'shape': (2,)}", "'fortran_order'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,-1)}", "bad number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,)}", "bad number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2", "'shape' does not end"},
        {"{'descr': '<f4', 'fortran_order': False}", "lacks"},
        {"{'descr': '<f4', 'descr': '<f4'}", "too many"},
        {"{'descr': '<f4'", "damaged"},
        {"[]", "not a dictionary"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t file[512];
        dgm_npy out;
        dgm_error err = {0};
        size_t need;
        const size_t n = make_npy(file, 3, cases[i].header, "", 0);
        const dgm_status st = dgm_npy_header(&out, file, n, &need, &err);
        assert_int_equal(need, 0);
        assert_int_equal(st == DGM_OK, cases[i].message == NULL);
        if (cases[i].message && !strstr(err.text, cases[i].message))
            fail_msg("case %zu: %s", i, err.text);
    }
    uint8_t file[512];
    dgm_npy out;
    dgm_error err = {0};
    size_t need;
    make_npy(file, 4, "{}", "", 0);
    assert_int_equal(dgm_npy_header(&out, file, 16, &need, &err), DGM_ERR_UNSUPPORTED);
    const size_t n =
        make_npy(file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", six, 8);
    assert_int_equal(dgm_npy_header(&out, file, 20, &need, &err), DGM_OK);
    assert_int_equal(need, n - 8);
}

static void expect_npz(const char *path, const char *message)
{
    dgm_store *s;
    dgm_error err = {0};
    assert_int_not_equal(dgm_npz_open(&s, path, &err), DGM_OK);
    assert_null(s);
    if (!strstr(err.text, message) || !strstr(err.text, path)) fail_msg("%s", err.text);
}

static void test_npz_refused(void **state)
{
    (void)state;
    uint8_t a[512];
    size_t n = make_npy(a, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", six, 24);
    expect_npz(make_zip("fortran.npz", &(member){"w.npy", a, n}, 1, ZIP_CM_STORE),
               "array 'w.npy': the array is in Fortran's order");
    n = make_npy(a, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)}", six, 24);
    expect_npz(make_zip("short.npz", &(member){"w.npy", a, n}, 1, ZIP_CM_STORE),
               "24 bytes of data for a shape of 32");
    expect_npz(make_zip("none.npz", &(member){"w.npy", "text", 4}, 1, ZIP_CM_DEFLATE),
               "not an array of numpy");
    expect_npz(put_text("text.npz", "no archive at all"), "not a zip archive");
    expect_npz(in_folder("absent.npz"), "cannot open");
}

// A byte of the data is wrong: the checksum says so when the array is read.
static void test_npz_checksum(void **state)
{
    (void)state;
    char *bytes = get(make_npz("good.npz", ZIP_CM_STORE));
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, in_folder("good.npz"), NULL), DGM_OK);
    const size_t size = f.size;
    dgm_mapfile_close(&f);
    const float wanted = six[4];
    size_t at = 0;
    while (at < size && memcmp(bytes + at, &wanted, sizeof wanted) != 0) at++;
    assert_true(at < size);
    bytes[at] ^= 1;
    dgm_store *s;
    dgm_error err = {0};
    const uint8_t *data;
    assert_int_equal(dgm_npz_open_memory(&s, bytes, size, &err), DGM_OK);
    assert_int_equal(dgm_store_data(s, dgm_store_get(s, 0), &data, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "wrong checksum"));
    dgm_store_close(&s);
    free(bytes);
}

// ---- Marian's binary file ----------------------------------------------------------------------

static void check_rows(const dgm_view *v, float first, float second)
{
    float out[16];
    assert_int_equal(dgm_view_read(v, 0, v->rows, out, NULL), DGM_OK);
    assert_float_equal(out[0], first, 1e-6);
    assert_float_equal(out[1], second, 1e-6);
}

static void test_bin(void **state)
{
    (void)state;
    static const uint64_t codes[] = {0x10001, 0x4101};
    for (size_t i = 0; i < 2; i++) {
        dgm_writer w = make_bin(codes[i], "b_W");
        dgm_store *s;
        dgm_error err;
        if (dgm_marian_bin_open_memory(&s, w.data, w.size, &err) != DGM_OK)
            fail_msg("%s", err.text);
        const dgm_stored *a = dgm_store_get(s, 0), *b = dgm_store_get(s, 1);
        assert_string_equal(a->name, "a");
        const dgm_view av = dgm_marian_weight(s, a), ar = dgm_marian_rows(s, a);
        check_rows(&av, 1, -4);
        check_rows(&ar, 1, 2);
        assert_true(dgm_marian_quantised(b) && !dgm_marian_quantised(a));
        const dgm_view bv = dgm_marian_weight(s, b), br = dgm_marian_rows(s, b);
        assert_int_equal(bv.rows, 3); // bytes lie as 3 rows of 2
        check_rows(&bv, 1 / 8.f, 2 / 8.f);
        check_rows(&br, 1 / 8.f, 3 / 8.f);
        assert_float_equal(dgm_view_divisor(&bv, 2), 8, 0);
        dgm_store_close(&s);
        dgm_writer_free(&w);
    }
    dgm_writer w = make_bin(0x4101, "Wemb"); // which the fork does not transpose
    dgm_store *s;
    assert_int_equal(dgm_marian_bin_open_memory(&s, w.data, w.size, NULL), DGM_OK);
    const dgm_view v = dgm_marian_rows(s, dgm_store_get(s, 1));
    check_rows(&v, 1 / 8.f, 2 / 8.f);
    assert_int_equal(v.rows, 2);
    dgm_store_close(&s);
    dgm_writer_free(&w);
}

static void expect_bin(const void *data, size_t size, const char *message)
{
    dgm_store *s;
    dgm_error err = {0};
    assert_int_not_equal(dgm_marian_bin_open_memory(&s, data, size, &err), DGM_OK);
    assert_null(s);
    if (!strstr(err.text, message)) fail_msg("'%s' instead of '%s'", err.text, message);
}

static void test_bin_refused(void **state)
{
    (void)state;
    dgm_writer w = make_bin(0x1801, "b_W");
    expect_bin(w.data, w.size, "tensor 'b_W': type packed8avx2 is packed for one kind");
    dgm_writer_free(&w);
    w = make_bin(0x777, "b_W");
    expect_bin(w.data, w.size, "tensor 'b_W': unknown type 0x777");
    dgm_writer_free(&w);
    w = make_bin(0x10001, "b_W");
    expect_bin(w.data, w.size - 1, "'special:model.yml' reaches past the end");
    expect_bin(w.data, 100, "ends inside its list of tensors");
    expect_bin(w.data, 130, "ends inside its names");
    w.data[0] = 2;
    expect_bin(w.data, w.size, "encrypted");
    w.data[0] = 9;
    expect_bin(w.data, w.size, "not a binary model of Marian");
    w.data[0] = 1;
    w.data[117] = 'x'; // where the first name ends
    expect_bin(w.data, w.size, "does not end where it says");
    dgm_writer_free(&w);
}

// ---- YAML --------------------------------------------------------------------------------------

static void test_yaml(void **state)
{
    (void)state;
    static const char text[] = "type: transformer\n"
                               "dim-emb: 512\n"
                               "normalize: 0.6\n"
                               "skip: false\n"
                               "transformer-preprocess: n\n"
                               "version: \"v1.9 \\u00e9\"\n"
                               "empty: ''\n"
                               "none: ~\n"
                               "list:\n  - 1\n  - [a, 'b']\n"
                               "? complex\n: 5\n"
                               "\"\\\"\": 6\n'''': 7\ntrue: 8\n\"\\u2581x\": 9\n"
                               "--- second\n...\n";
    json_t *o;
    dgm_error err;
    if (dgm_yaml_parse(&o, text, strlen(text), &err) != DGM_OK) fail_msg("%s", err.text);
    assert_string_equal(json_string_value(json_object_get(o, "type")), "transformer");
    assert_int_equal(json_integer_value(json_object_get(o, "dim-emb")), 512);
    assert_float_equal(json_real_value(json_object_get(o, "normalize")), 0.6, 1e-9);
    assert_true(json_is_false(json_object_get(o, "skip")));
    assert_string_equal(json_string_value(json_object_get(o, "transformer-preprocess")), "n");
    assert_string_equal(json_string_value(json_object_get(o, "version")), "v1.9 \xc3\xa9");
    assert_string_equal(json_string_value(json_object_get(o, "empty")), "");
    assert_true(json_is_null(json_object_get(o, "none")));
    const json_t *inner = json_array_get(json_object_get(o, "list"), 1);
    assert_string_equal(json_string_value(json_array_get(inner, 1)), "b");
    static const char *const keys[] = {"complex", "\"", "'", "true", "\xe2\x96\x81x"};
    for (int i = 0; i < 5; i++)
        assert_int_equal(json_integer_value(json_object_get(o, keys[i])), 5 + i);
    json_decref(o);
    assert_int_equal(dgm_yaml_parse(&o, "", 0, &err), DGM_OK);
    assert_true(json_is_null(o));
    json_decref(o);
}

static void test_yaml_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a: 1\na: 2\n", "line 2, column 1: this key is there twice"},
        {"a: &x 1\nb: *x\n", "line 2, column 4: aliases are not read"},
        {"? [a]\n: 1\n", "line 1, column 3: a key that is no plain word"},
        {"a: [1\n", "line 2, column 1"},
        {"a: \"\\0\"\n", "line 1, column 4: a NUL in a value"},
        {"a: \xff\n", "byte 3"},
    };
    json_t *o;
    dgm_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = put_text("bad.yml", cases[i][0]);
        err.text[0] = 0;
        assert_int_equal(dgm_yaml_read(&o, path, &err), DGM_ERR_FORMAT);
        assert_null(o);
        if (!strstr(err.text, cases[i][1]) || !strstr(err.text, path)) fail_msg("%s", err.text);
    }
    char deep[200];
    memset(deep, '[', sizeof deep);
    assert_int_equal(dgm_yaml_parse(&o, deep, sizeof deep, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "nested too deeply"));
}

// ---- damage ------------------------------------------------------------------------------------

static uint32_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)random_state * n >> 32);
}

// Bytes changed, a part removed or the end cut off. Returns the new size.
static size_t damage(uint8_t *data, size_t size)
{
    switch (random_below(4)) {
    case 0:
        return random_below((uint32_t)size);
    case 1: {
        const size_t at = random_below((uint32_t)size), n = random_below((uint32_t)(size - at)) + 1;
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    }
    default:
        for (uint32_t n = random_below(8) + 1; n > 0; n--)
            data[random_below((uint32_t)size)] = (uint8_t)random_below(256);
        return size;
    }
}

static dgm_status read_all(dgm_store **s, dgm_error *err)
{
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < dgm_store_count(*s) && st == DGM_OK; i++) {
        const uint8_t *data;
        st = dgm_store_data(*s, dgm_store_get(*s, i), &data, err);
    }
    dgm_store_close(s);
    return st;
}

static dgm_status try_npz(const void *data, size_t size, dgm_error *err)
{
    dgm_store *s;
    DGM_TRY(dgm_npz_open_memory(&s, data, size, err));
    return read_all(&s, err);
}

static dgm_status try_npy(const void *data, size_t size, dgm_error *err)
{
    dgm_npy out;
    size_t need;
    return dgm_npy_header(&out, data, size, &need, err);
}

static dgm_status try_bin(const void *data, size_t size, dgm_error *err)
{
    dgm_store *s;
    DGM_TRY(dgm_marian_bin_open_memory(&s, data, size, err));
    return read_all(&s, err);
}

static dgm_status try_yaml(const void *data, size_t size, dgm_error *err)
{
    json_t *o;
    DGM_TRY(dgm_yaml_parse(&o, data, size, err));
    json_decref(o);
    return DGM_OK;
}

// 200 damaged copies: each is read, or refused in one line. At least `refused` of them are.
static void damage_and_try(const void *data, size_t size, int refused,
                           dgm_status (*try_it)(const void *, size_t, dgm_error *))
{
    const uint64_t live = dgm_mem_live();
    int bad = 0;
    random_state = 15;
    for (int i = 0; i < 200; i++) {
        uint8_t *copy = malloc(size);
        assert_non_null(copy);
        memcpy(copy, data, size);
        const size_t n = damage(copy, size);
        uint8_t *exact = malloc(n ? n : 1); // so that reading past its end shows
        memcpy(exact, copy, n);
        dgm_error err = {0};
        if (try_it(exact, n, &err) != DGM_OK) {
            bad++;
            assert_true(strlen(err.text) > 10 && !strchr(err.text, '\n'));
        }
        free(exact);
        free(copy);
    }
    assert_true(bad >= refused);
    assert_int_equal(dgm_mem_live(), live);
}

static void test_damage(void **state)
{
    (void)state;
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, make_npz("damage.npz", ZIP_CM_DEFLATE), NULL), DGM_OK);
    damage_and_try(f.data, f.size, 120, try_npz);
    dgm_mapfile_close(&f);
    uint8_t npy[256];
    const size_t n =
        make_npy(npy, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", "", 0);
    damage_and_try(npy, n, 100, try_npy);
    dgm_writer w = make_bin(0x4101, "b_W");
    damage_and_try(w.data, w.size, 60, try_bin);
    dgm_writer_free(&w);
    static const char yaml[] = "a: 'b'\nlist:\n  - \"c\\n\"\n  - {d: 1.5, e: [f, g]}\n? h\n: i\n";
    damage_and_try(yaml, sizeof yaml - 1, 60, try_yaml);
}

static dgm_status open_npz_once(void)
{
    dgm_store *s;
    DGM_TRY(dgm_npz_open(&s, in_folder("good.npz"), NULL));
    return read_all(&s, NULL);
}

static dgm_status open_bin_once(void)
{
    dgm_store *s;
    DGM_TRY(dgm_marian_bin_open(&s, in_folder("good.bin"), NULL));
    return read_all(&s, NULL);
}

static dgm_status read_yaml_once(void)
{
    json_t *o;
    DGM_TRY(dgm_yaml_read(&o, in_folder("good.yml"), NULL));
    json_decref(o);
    return DGM_OK;
}

static void test_memory(void **state)
{
    (void)state;
    make_npz("good.npz", ZIP_CM_DEFLATE);
    ALLOCATIONS_FAIL(open_npz_once());
    dgm_writer w = make_bin(0x10001, "b_W");
    put("good.bin", w.data, w.size);
    dgm_writer_free(&w);
    ALLOCATIONS_FAIL(open_bin_once());
    put_text("good.yml", "a: 1\nb: [x, {y: z}]\n");
    ALLOCATIONS_FAIL(read_yaml_once());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npz),         cmocka_unit_test(test_npy_headers),
        cmocka_unit_test(test_npz_refused), cmocka_unit_test(test_npz_checksum),
        cmocka_unit_test(test_bin),         cmocka_unit_test(test_bin_refused),
        cmocka_unit_test(test_yaml),        cmocka_unit_test(test_yaml_refused),
        cmocka_unit_test(test_damage),      cmocka_unit_test(test_memory),
    };
    if (!scratch_open()) return 1;
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
