// SPDX-License-Identifier: MIT
// The GGUF container: round trip, typed look-ups and their messages, damaged files, failed
// allocations. Damage is systematic (every truncation of a small file) and seeded (10,000 bit
// flips); after each of them the reader must give an error or data that can be read safely, which
// AddressSanitizer watches in the ASAN build.
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "format/gguf.h"
#include "format/quantize.h"

static char path[64];

static const float weights[12] = {0.5f, -1, 0.25f, 0, 2, -4, 1, 8, 0, 0, 0, 0}; // [3, 4]
static int8_t q8[12];
static int16_t q16[12];
static uint16_t halves[12], brains[12];
static float scale8[3], scale16;
static const float bias[3] = {1, 2, 3};
static const int32_t table[5] = {4, 3, 2, 1, 0};

static dgm_status produce_ones(void *arg, void *out, size_t bytes, dgm_error *err)
{
    (void)err;
    *(size_t *)arg = bytes;
    for (size_t i = 0; i < bytes / sizeof(float); i++) ((float *)out)[i] = 1;
    return DGM_OK;
}

static void fill(dgm_gguf_writer *w)
{
    static size_t produced;
    static const char *const words[] = {"ein", "", "zwei"};
    const int m34[] = {3, 4}, v3[] = {3}, v1[] = {1}, v5[] = {5};
    const int32_t ints[] = {-5, 0, 7};
    const uint32_t counts[] = {1, 2, 3};
    const float reals[] = {0.5f, -0.25f};
    const uint8_t bytes[] = {1, 2, 255};
    dgm_gguf_set_u8(w, "t.u8", 200);
    dgm_gguf_set_i8(w, "t.i8", -100);
    dgm_gguf_set_u16(w, "t.u16", 60000);
    dgm_gguf_set_i16(w, "t.i16", -30000);
    dgm_gguf_set_u32(w, "t.u32", 4000000000u);
    dgm_gguf_set_i32(w, "t.i32", -2000000000);
    dgm_gguf_set_u64(w, "t.u64", 1ull << 63);
    dgm_gguf_set_i64(w, "t.i64", -(1ll << 62));
    dgm_gguf_set_f32(w, "t.f32", 0.1f);
    dgm_gguf_set_f64(w, "t.f64", 0.1);
    dgm_gguf_set_bool(w, "t.bool", true);
    dgm_gguf_set_string(w, "t.string", "gr\xc3\xbc\xc3\x9f dich");
    dgm_gguf_set_strings(w, "t.strings", words, 3);
    dgm_gguf_set_array(w, "t.i32s", DGM_META_I32, ints, 3);
    dgm_gguf_set_array(w, "t.u32s", DGM_META_U32, counts, 3);
    dgm_gguf_set_array(w, "t.f32s", DGM_META_F32, reals, 2);
    dgm_gguf_set_array(w, "t.bytes", DGM_META_U8, bytes, 3);
    dgm_gguf_set_array(w, "t.none", DGM_META_I32, NULL, 0);
    dgm_gguf_add_tensor(w, "w.f32", DGM_TYPE_F32, 2, m34, weights);
    dgm_gguf_add_tensor(w, "w.f16", DGM_TYPE_F16, 2, m34, halves);
    dgm_gguf_add_tensor(w, "w.bf16", DGM_TYPE_BF16, 2, m34, brains);
    dgm_gguf_add_tensor(w, "w.i8", DGM_TYPE_I8, 2, m34, q8);
    dgm_gguf_add_tensor(w, "w.i8.scale", DGM_TYPE_F32, 1, v3, scale8);
    dgm_gguf_add_tensor(w, "w.i16", DGM_TYPE_I16, 2, m34, q16);
    dgm_gguf_add_tensor(w, "w.i16.scale", DGM_TYPE_F32, 1, v1, &scale16);
    dgm_gguf_add_tensor(w, "bias", DGM_TYPE_F32, 1, v3, bias);
    dgm_gguf_add_tensor(w, "table", DGM_TYPE_I32, 1, v5, table);
    dgm_gguf_add_produced(w, "made", DGM_TYPE_F32, 2, m34, produce_ones, &produced);
}

static dgm_status write_sample(dgm_error *err)
{
    dgm_gguf_writer *w;
    DGM_TRY(dgm_gguf_writer_open(&w, err));
    fill(w);
    dgm_status st = dgm_gguf_write(w, path, err);
    dgm_gguf_writer_close(&w);
    return st;
}

static int setup(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/dgm-gguf-%ld.gguf", (long)getpid());
    for (int i = 0; i < 12; i++) {
        uint32_t bits;
        memcpy(&bits, &weights[i], 4);
        halves[i] = dgm_float_to_half(weights[i]);
        brains[i] = (uint16_t)(bits >> 16); // exact: these weights have few bits
    }
    if (!dgm_quantize_i8(weights, 3, 4, q8, scale8)) return -1;
    if (!dgm_quantize_i16(weights, 3, 4, 15, q16, &scale16)) return -1;
    return write_sample(NULL) == DGM_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

// Reads whatever an opened file offers.
static uint64_t use_everything(const dgm_gguf *g)
{
    uint64_t sum = 0;
    for (int i = 0; i < dgm_gguf_meta_count(g); i++) {
        const dgm_meta *m = dgm_gguf_meta(g, i);
        assert_ptr_equal(dgm_gguf_find(g, m->key), m);
        for (size_t b = 0; b < m->raw_size; b++) sum += m->raw[b];
        if (m->type == DGM_META_STRING) sum += strlen(m->values);
        dgm_gguf_strings it = {0};
        dgm_gguf_text s;
        dgm_gguf_get_strings(g, m->key, DGM_OPTIONAL, &it, NULL);
        while (dgm_gguf_strings_next(&it, &s))
            for (size_t b = 0; b < s.size; b++) sum += (uint8_t)s.data[b];
    }
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i), *m;
        assert_ptr_equal(dgm_gguf_find_tensor(g, t->name), t);
        for (size_t b = 0; b < t->bytes; b++) sum += ((const uint8_t *)t->data)[b];
        if (dgm_gguf_matrix(g, t->name, -1, -1, DGM_REQUIRED, &m, NULL) != DGM_OK) continue;
        float *real = dgm_malloc((size_t)m->rows * (size_t)m->cols * sizeof *real);
        assert_non_null(real);
        dgm_tensor_to_f32(m, real);
        dgm_free(real);
    }
    return sum;
}

// ---- good files -------------------------------------------------------------------------------

static void test_metadata(void **state)
{
    (void)state;
    dgm_gguf *g;
    dgm_error err;
    assert_int_equal(dgm_gguf_open(&g, path, &err), DGM_OK);
    assert_int_equal(dgm_gguf_meta_count(g), 19);
    assert_int_equal(dgm_gguf_alignment(g), 64);
    assert_string_equal(dgm_gguf_path(g), path);
    uint32_t u = 1;
    int32_t i = 1;
    float f = 1;
    bool b = false;
    const char *s = NULL;
    const dgm_need req = DGM_REQUIRED;
    assert_int_equal(dgm_gguf_get_u32(g, "t.u32", req, 0, UINT32_MAX, &u, &err), DGM_OK);
    assert_int_equal(u, 4000000000u);
    assert_int_equal(dgm_gguf_get_i32(g, "t.i32", req, INT32_MIN, 0, &i, &err), DGM_OK);
    assert_int_equal(i, -2000000000);
    assert_int_equal(dgm_gguf_get_f32(g, "t.f32", req, 0, 1, &f, &err), DGM_OK);
    assert_true(f == 0.1f);
    assert_int_equal(dgm_gguf_get_bool(g, "t.bool", req, &b, &err), DGM_OK);
    assert_true(b);
    assert_int_equal(dgm_gguf_get_string(g, "t.string", req, &s, &err), DGM_OK);
    assert_string_equal(s, "gr\xc3\xbc\xc3\x9f dich");
    u = 77;
    assert_int_equal(dgm_gguf_get_u32(g, "absent", DGM_OPTIONAL, 0, 1, &u, &err), DGM_OK);
    assert_int_equal(u, 77);
    dgm_gguf_close(&g);
    assert_null(g);
    dgm_gguf_close(&g);
}

static void test_arrays(void **state)
{
    (void)state;
    dgm_gguf *g;
    dgm_error err;
    assert_int_equal(dgm_gguf_open(&g, path, &err), DGM_OK);
    const int32_t *ints = NULL;
    const uint32_t *counts = NULL;
    const float *reals = NULL;
    const uint8_t *bytes = NULL;
    size_t n = 0;
    const dgm_need req = DGM_REQUIRED;
    assert_int_equal(dgm_gguf_get_i32s(g, "t.i32s", req, -5, 7, &ints, &n, &err), DGM_OK);
    assert_int_equal(n, 3);
    assert_int_equal(ints[0], -5);
    assert_int_equal((uintptr_t)ints % 4, 0);
    assert_int_equal(dgm_gguf_get_u32s(g, "t.u32s", req, 1, 3, &counts, &n, &err), DGM_OK);
    assert_int_equal(counts[2], 3);
    assert_int_equal(dgm_gguf_get_f32s(g, "t.f32s", req, &reals, &n, &err), DGM_OK);
    assert_true(n == 2 && reals[1] == -0.25f);
    assert_int_equal(dgm_gguf_get_bytes(g, "t.bytes", req, &bytes, &n, &err), DGM_OK);
    assert_true(n == 3 && bytes[2] == 255);
    assert_int_equal(dgm_gguf_get_i32s(g, "t.none", req, 0, 0, &ints, &n, &err), DGM_OK);
    assert_int_equal(n, 0);
    dgm_gguf_strings it = {0};
    dgm_gguf_text t;
    assert_int_equal(dgm_gguf_get_strings(g, "t.strings", req, &it, &err), DGM_OK);
    assert_true(dgm_gguf_strings_next(&it, &t) && t.size == 3 && memcmp(t.data, "ein", 3) == 0);
    assert_true(dgm_gguf_strings_next(&it, &t) && t.size == 0);
    assert_true(dgm_gguf_strings_next(&it, &t) && t.size == 4);
    assert_false(dgm_gguf_strings_next(&it, &t));
    dgm_gguf_close(&g);
}

static void test_tensors(void **state)
{
    (void)state;
    static const char *const names[] = {"w.f32", "w.f16", "w.bf16", "w.i8", "w.i16"};
    dgm_gguf *g;
    dgm_error err;
    assert_int_equal(dgm_gguf_open(&g, path, &err), DGM_OK);
    assert_int_equal(dgm_gguf_tensor_count(g), 10);
    const dgm_tensor *t;
    float real[12];
    for (int k = 0; k < 5; k++) {
        assert_int_equal(dgm_gguf_matrix(g, names[k], 3, 4, DGM_REQUIRED, &t, &err), DGM_OK);
        assert_int_equal((uintptr_t)t->data % 64, 0);
        dgm_tensor_to_f32(t, real);
        for (int i = 0; i < 12; i++) {
            float tolerance = t->type == DGM_TYPE_I8 ? scale8[i / 4] * 0.5f : 0;
            assert_true(real[i] >= weights[i] - tolerance && real[i] <= weights[i] + tolerance);
        }
    }
    const float *v;
    const int32_t *ids;
    int n;
    assert_int_equal(dgm_gguf_vector(g, "bias", 3, DGM_REQUIRED, &v, &err), DGM_OK);
    assert_memory_equal(v, bias, sizeof bias);
    assert_int_equal(dgm_gguf_table(g, "table", -1, 0, 4, DGM_REQUIRED, &ids, &n, &err), DGM_OK);
    assert_int_equal(n, 5);
    assert_memory_equal(ids, table, sizeof table);
    assert_int_equal(dgm_gguf_matrix(g, "none", 3, 4, DGM_OPTIONAL, &t, &err), DGM_OK);
    assert_null(t);
    assert_int_equal(dgm_gguf_matrix(g, "made", 3, 4, DGM_REQUIRED, &t, &err), DGM_OK);
    assert_true(((const float *)t->data)[11] == 1);
    dgm_gguf_close(&g);
}

static void test_messages(void **state)
{
    (void)state;
    static const char *const names[] = {"one", "two", NULL};
    dgm_gguf *g;
    dgm_error e;
    assert_int_equal(dgm_gguf_open(&g, path, &e), DGM_OK);
    uint32_t u;
    float f;
    int k, n;
    const int32_t *ids;
    const float *v;
    const dgm_tensor *t;
    size_t count;
    const dgm_need req = DGM_REQUIRED;
#define EXPECT(call, line)                                                                         \
    do {                                                                                           \
        assert_int_equal((call), DGM_ERR_FORMAT);                                                  \
        assert_string_equal(e.text, (line));                                                       \
    } while (0)
    EXPECT(dgm_gguf_get_u32(g, "no.key", req, 0, 1, &u, &e), "key 'no.key' is missing");
    EXPECT(dgm_gguf_get_u32(g, "t.i32", req, 0, 1, &u, &e), "key 't.i32' is i32, expected u32");
    EXPECT(dgm_gguf_get_u32(g, "t.u32", req, 1, 64, &u, &e),
           "key 't.u32' is 4000000000, expected 1 to 64");
    EXPECT(dgm_gguf_get_f32(g, "t.f32", req, 1, 2, &f, &e), "key 't.f32' is 0.1, expected 1 to 2");
    EXPECT(dgm_gguf_get_u32(g, "t.strings", req, 1, 2, &u, &e),
           "key 't.strings' is string array, expected u32");
    EXPECT(dgm_gguf_get_i32s(g, "t.u32s", req, 1, 2, &ids, &count, &e),
           "key 't.u32s' is u32 array, expected i32 array");
    EXPECT(dgm_gguf_get_i32s(g, "t.i32s", req, 0, 9, &ids, &count, &e),
           "key 't.i32s': element 0 is -5, expected 0 to 9");
    EXPECT(dgm_gguf_get_enum(g, "t.string", req, names, &k, &e),
           "key 't.string' is 'gr\xc3\xbc\xc3\x9f dich', expected one of: one, two");
    EXPECT(dgm_gguf_matrix(g, "no", 1, 1, req, &t, &e), "tensor 'no' is missing");
    EXPECT(dgm_gguf_matrix(g, "w.f32", 4, -1, req, &t, &e),
           "tensor 'w.f32' has shape [3, 4], expected [4, any]");
    EXPECT(dgm_gguf_matrix(g, "bias", 3, 4, req, &t, &e),
           "tensor 'bias' has shape [3], expected [3, 4]");
    EXPECT(dgm_gguf_vector(g, "table", 5, req, &v, &e), "tensor 'table' is i32, expected f32");
    EXPECT(dgm_gguf_table(g, "table", 5, 1, 9, req, &ids, &n, &e),
           "tensor 'table': element 4 is 0, expected 1 to 9");
#undef EXPECT
    dgm_gguf_close(&g);
}

static void test_quantize(void **state)
{
    (void)state;
    assert_true(scale8[0] == 1.0f / 127 && scale8[1] == 8.0f / 127 && scale8[2] == 1);
    assert_int_equal(q8[1], -127);
    assert_int_equal(q8[0], 64); // 63.5 goes to the even neighbour
    assert_int_equal(q8[7], 127);
    assert_true(scale16 == 1.0f / 2048); // 8 * 4096 = 32768 would not fit
    assert_int_equal(q16[7], 16384);
    const float bad[2] = {1, 0.0f / 0.0f}, tiny[2] = {1e-44f, 0};
    int8_t q[2];
    int16_t h[2];
    float s;
    assert_false(dgm_quantize_i8(bad, 1, 2, q, &s));
    assert_false(dgm_quantize_i16(bad, 1, 2, 15, h, &s));
    assert_true(dgm_quantize_i8(tiny, 1, 2, q, &s));
    assert_true(s == 1 && q[0] == 0);
    assert_true(dgm_quantize_i16(tiny, 1, 2, 15, h, &s));
    assert_true(s == 1.0f / 32768);
}

// ---- golden -----------------------------------------------------------------------------------

static void list_number(dgm_writer *w, int type, const uint8_t *at)
{
    dgm_reader r = dgm_reader_over(at, 8);
    switch (type) {
    case DGM_META_U8:
    case DGM_META_BOOL:
        dgm_write_format(w, " %u", dgm_read_u8(&r));
        break;
    case DGM_META_I8:
        dgm_write_format(w, " %d", (int8_t)dgm_read_u8(&r));
        break;
    case DGM_META_U16:
        dgm_write_format(w, " %u", dgm_read_u16(&r));
        break;
    case DGM_META_I16:
        dgm_write_format(w, " %d", (int16_t)dgm_read_u16(&r));
        break;
    case DGM_META_U32:
        dgm_write_format(w, " %u", dgm_read_u32(&r));
        break;
    case DGM_META_I32:
        dgm_write_format(w, " %d", (int32_t)dgm_read_u32(&r));
        break;
    case DGM_META_U64:
        dgm_write_format(w, " %llu", (unsigned long long)dgm_read_u64(&r));
        break;
    case DGM_META_I64:
        dgm_write_format(w, " %lld", (long long)dgm_read_u64(&r));
        break;
    case DGM_META_F32:
        dgm_write_format(w, " %.9g", (double)dgm_read_f32(&r));
        break;
    default:
        dgm_write_format(w, " %.9g", dgm_read_f64(&r));
    }
}

// One line as tests/oracle/check_gguf.py writes it.
static void list_meta(dgm_writer *w, const dgm_gguf *g, const dgm_meta *m)
{
    bool array = m->type == DGM_META_ARRAY;
    int type = array ? m->elem_type : m->type;
    const char *name = array && m->count == 0 ? "empty" : dgm_meta_type_name(type);
    dgm_write_format(w, array ? "%s [%s]" : "%s %s", m->key, name);
    dgm_gguf_strings it = {0};
    dgm_gguf_text s;
    if (array && type == DGM_META_STRING) {
        dgm_gguf_get_strings(g, m->key, DGM_REQUIRED, &it, NULL);
        while (dgm_gguf_strings_next(&it, &s))
            dgm_write_format(w, " \"%.*s\"", (int)s.size, s.data);
    } else if (type == DGM_META_STRING) {
        dgm_write_format(w, " \"%s\"", (const char *)m->values);
    } else {
        size_t step = m->count ? m->raw_size / m->count : 0;
        for (uint64_t i = 0; i < m->count; i++) list_number(w, type, m->raw + i * step);
    }
    dgm_write_text(w, "\n");
}

// Our writer still makes the golden bytes, and our reader sees in them what the public Python
// package sees (tests/data/format/sample.txt is made by check_gguf.py).
static void test_golden(void **state)
{
    (void)state;
    dgm_mapfile made, golden, expected;
    dgm_error err = {""};
    assert_int_equal(dgm_mapfile_open(&made, path, &err), DGM_OK);
    dgm_status st = dgm_mapfile_open(&golden, "tests/data/format/sample.gguf", &err);
    if (st != DGM_OK) print_error("%s\n", err.text);
    assert_int_equal(st, DGM_OK);
    assert_int_equal(dgm_mapfile_open(&expected, "tests/data/format/sample.txt", &err), DGM_OK);
    assert_int_equal(made.size, golden.size);
    assert_memory_equal(made.data, golden.data, made.size);
    dgm_gguf *g;
    assert_int_equal(dgm_gguf_open(&g, path, &err), DGM_OK);
    dgm_writer w = {0};
    for (int i = 0; i < dgm_gguf_meta_count(g); i++) list_meta(&w, g, dgm_gguf_meta(g, i));
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        dgm_write_format(&w, "tensor %s %s [", t->name, dgm_tensor_type_name(t->type));
        for (int d = 0; d < t->n_dims; d++) dgm_write_format(&w, d ? ",%d" : "%d", t->shape[d]);
        dgm_write_text(&w, "] ");
        for (size_t b = 0; b < t->bytes; b++)
            dgm_write_format(&w, "%02x", ((const uint8_t *)t->data)[b]);
        dgm_write_text(&w, "\n");
    }
    assert_int_equal(w.size, expected.size);
    assert_memory_equal(w.data, expected.data, w.size);
    dgm_writer_free(&w);
    dgm_gguf_close(&g);
    dgm_mapfile_close(&made);
    dgm_mapfile_close(&golden);
    dgm_mapfile_close(&expected);
}

// ---- damaged files ----------------------------------------------------------------------------

// Opens bytes that the caller may have damaged; copies so that ASan sees their exact end.
static dgm_status open_copy(const uint8_t *data, size_t size, dgm_error *err)
{
    uint8_t *copy = dgm_malloc(size);
    assert_non_null(copy);
    if (size) memcpy(copy, data, size);
    dgm_gguf *g;
    dgm_status st = dgm_gguf_open_memory(&g, copy, size, err);
    if (st == DGM_OK)
        use_everything(g);
    else
        assert_null(g);
    dgm_gguf_close(&g);
    dgm_free(copy);
    return st;
}

static void test_truncation(void **state)
{
    (void)state;
    dgm_mapfile f;
    dgm_error err;
    assert_int_equal(dgm_mapfile_open(&f, path, &err), DGM_OK);
    // The last tensor's padding may be missing; nothing else may.
    size_t needed = f.size - (64 - 12 * sizeof(float) % 64);
    for (size_t n = 0; n <= f.size; n++) {
        dgm_status st = open_copy(f.data, n, &err);
        assert_int_equal(st, n >= needed ? DGM_OK : DGM_ERR_FORMAT);
    }
    dgm_mapfile_close(&f);
}

static void test_bit_flips(void **state)
{
    (void)state;
    dgm_mapfile f;
    dgm_error err;
    assert_int_equal(dgm_mapfile_open(&f, path, &err), DGM_OK);
    uint8_t *bytes = dgm_malloc(f.size);
    assert_non_null(bytes);
    dgm_rng rng = {2026};
    int refused = 0;
    for (int i = 0; i < 10000; i++) {
        memcpy(bytes, f.data, f.size);
        for (uint64_t flips = 1 + dgm_rng_below(&rng, 3); flips > 0; flips--) {
            uint64_t bit = dgm_rng_below(&rng, f.size * 8);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        refused += open_copy(bytes, f.size, &err) != DGM_OK;
    }
    assert_in_range(refused, 1000, 9999);
    dgm_free(bytes);
    dgm_mapfile_close(&f);
}

// A file made by hand: header, metadata and tensor infos as the caller writes them.
static void begin_file(dgm_writer *w, uint64_t tensors, uint64_t metas)
{
    dgm_writer_free(w);
    dgm_write_text(w, "GGUF");
    dgm_write_u32(w, 3);
    dgm_write_u64(w, tensors);
    dgm_write_u64(w, metas);
}

static void put_name(dgm_writer *w, const char *name)
{
    dgm_write_u64(w, strlen(name));
    dgm_write_text(w, name);
}

static void put_info(dgm_writer *w, const char *name, uint64_t cols, uint64_t rows, uint32_t type,
                     uint64_t offset)
{
    put_name(w, name);
    dgm_write_u32(w, 2);
    dgm_write_u64(w, cols);
    dgm_write_u64(w, rows);
    dgm_write_u32(w, type);
    dgm_write_u64(w, offset);
}

static void expect_refused(dgm_writer *w, const char *message)
{
    dgm_error err = {""};
    dgm_write_zeros(w, 256);
    assert_int_not_equal(open_copy(w->data, w->size, &err), DGM_OK);
    assert_string_equal(err.text, message);
}

static void test_hostile_metadata(void **state)
{
    (void)state;
    dgm_writer w = {0};
    dgm_write_text(&w, "GGML");
    expect_refused(&w, "not a model file (no GGUF header)");
    begin_file(&w, 1ull << 40, 0);
    expect_refused(
        &w, "1099511627776 tensors and 0 metadata entries, at most 65536 of each are allowed");
    begin_file(&w, 0, 65536);
    expect_refused(&w, "file is truncated");
    begin_file(&w, 0, 0);
    w.data[4] = 2;
    expect_refused(&w, "GGUF version 2 is not supported (this program reads 3)");
    begin_file(&w, 0, 0);
    memcpy(w.data + 4, "\0\0\0\3", 4);
    expect_refused(&w, "big-endian GGUF files are not supported");
    begin_file(&w, 0, 1);
    dgm_write_u64(&w, 1ull << 60);
    expect_refused(&w, "a metadata key has 1152921504606846976 bytes, 1 to 255 are allowed");
    begin_file(&w, 0, 1);
    put_name(&w, "k");
    dgm_write_u32(&w, 13);
    expect_refused(&w, "key 'k': unknown type 13");
    begin_file(&w, 0, 1);
    put_name(&w, "k");
    dgm_write_u32(&w, DGM_META_STRING);
    dgm_write_u64(&w, UINT64_MAX);
    expect_refused(&w, "key 'k': file is truncated");
    begin_file(&w, 0, 1);
    put_name(&w, "k");
    dgm_write_u32(&w, DGM_META_ARRAY);
    dgm_write_u32(&w, DGM_META_F64);
    dgm_write_u64(&w, 1ull << 61); // times 8 overflows
    expect_refused(&w, "key 'k': file is truncated");
    begin_file(&w, 0, 1);
    put_name(&w, "k");
    dgm_write_u32(&w, DGM_META_ARRAY);
    dgm_write_u32(&w, DGM_META_ARRAY);
    dgm_write_u64(&w, 1);
    expect_refused(&w, "key 'k': array of arrays");
    begin_file(&w, 0, 1);
    put_name(&w, "k");
    dgm_write_u32(&w, DGM_META_BOOL);
    dgm_write_u8(&w, 2);
    expect_refused(&w, "key 'k': a bool is neither 0 nor 1");
    begin_file(&w, 0, 2);
    for (int i = 0; i < 2; i++) {
        put_name(&w, "twice");
        dgm_write_u32(&w, DGM_META_U8);
        dgm_write_u8(&w, 1);
    }
    expect_refused(&w, "key 'twice' occurs twice");
    begin_file(&w, 0, 1);
    put_name(&w, "general.alignment");
    dgm_write_u32(&w, DGM_META_U32);
    dgm_write_u32(&w, 48);
    expect_refused(&w, "key 'general.alignment' is 48, expected a power of two from 8 to 65536");
    begin_file(&w, 0, 1);
    dgm_write_u64(&w, 3);
    dgm_write_bytes(&w, "a\0b", 3);
    expect_refused(&w, "a metadata key contains a NUL byte");
    dgm_writer_free(&w);
}

static void test_hostile_tensors(void **state)
{
    (void)state;
    dgm_writer w = {0};
    begin_file(&w, 1, 0);
    put_info(&w, "t", 1u << 30, 1u << 30, DGM_TYPE_F32, 0);
    expect_refused(&w, "tensor 't' reaches past the end of the file (truncated?)");
    begin_file(&w, 1, 0);
    put_info(&w, "t", 4, 4, DGM_TYPE_F32, UINT64_MAX - 31);
    expect_refused(&w, "tensor 't' reaches past the end of the file (truncated?)");
    begin_file(&w, 1, 0);
    put_info(&w, "t", 4, 1ull << 40, DGM_TYPE_F32, 0);
    expect_refused(&w, "tensor 't': a dimension of 1099511627776");
    begin_file(&w, 1, 0);
    put_info(&w, "t", 4, 0, DGM_TYPE_F32, 0);
    expect_refused(&w, "tensor 't': a dimension of 0");
    begin_file(&w, 1, 0);
    put_info(&w, "t", 4, 4, DGM_TYPE_F32, 8);
    expect_refused(&w, "tensor 't': offset 8 is not a multiple of 32");
    begin_file(&w, 2, 0);
    put_info(&w, "t", 4, 4, DGM_TYPE_F32, 0);
    put_info(&w, "t", 4, 4, DGM_TYPE_F32, 64);
    expect_refused(&w, "tensor 't' occurs twice");
    begin_file(&w, 2, 0);
    put_info(&w, "a", 4, 4, DGM_TYPE_F32, 32);
    put_info(&w, "b", 4, 4, DGM_TYPE_F32, 0);
    expect_refused(&w, "tensors 'b' and 'a' overlap");
    begin_file(&w, 2, 0);
    put_info(&w, "a", 4, 4, DGM_TYPE_I8, 0);
    put_info(&w, "a.scale", 4, 1, DGM_TYPE_F32, 32);
    expect_refused(&w, "tensor 'a.scale' is not f32 [4]");
    begin_file(&w, 1, 0);
    put_name(&w, "t");
    dgm_write_u32(&w, 5);
    expect_refused(&w, "tensor 't': 5 dimensions, 1 to 4 are allowed");
    dgm_writer_free(&w);
}

// A quantised type of another program: the file opens (and may be listed), the tensor is refused.
static void test_unknown_type(void **state)
{
    (void)state;
    dgm_writer w = {0};
    dgm_error err;
    dgm_gguf *g;
    const dgm_tensor *t;
    begin_file(&w, 2, 0);
    put_info(&w, "q", 32, 2, 12, 0);
    put_info(&w, "i", 4, 2, DGM_TYPE_I8, 64);
    dgm_write_zeros(&w, 256);
    assert_int_equal(dgm_gguf_open_memory(&g, w.data, w.size, &err), DGM_OK);
    assert_string_equal(dgm_tensor_type_name(dgm_gguf_tensor(g, 0)->type), "?");
    assert_int_equal(dgm_gguf_matrix(g, "q", -1, -1, DGM_REQUIRED, &t, &err), DGM_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "tensor 'q' has type 12, which this program cannot read");
    assert_int_equal(dgm_gguf_matrix(g, "i", -1, -1, DGM_REQUIRED, &t, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "tensor 'i.scale' is missing");
    dgm_gguf_close(&g);
    assert_int_equal(dgm_gguf_open_memory(&g, w.data + 1, 8, &err), DGM_ERR_ARGUMENT);
    dgm_writer_free(&w);
}

// ---- writer -----------------------------------------------------------------------------------

static dgm_status produce_failure(void *arg, void *out, size_t bytes, dgm_error *err)
{
    (void)arg, (void)out, (void)bytes;
    return dgm_fail(err, DGM_ERR_FORMAT, "no data today");
}

static void test_writer_errors(void **state)
{
    (void)state;
    const int shape[] = {2, 2}, empty[] = {0, 2};
    dgm_gguf_writer *w;
    dgm_error err;
    assert_int_equal(dgm_gguf_writer_open(&w, &err), DGM_OK);
    dgm_gguf_add_tensor(w, "a", DGM_TYPE_F32, 2, shape, weights);
    assert_int_equal(dgm_gguf_write(w, "/nonexistent/x.gguf", &err), DGM_ERR_IO);
    assert_string_equal(err.text, "cannot write '/nonexistent/x.gguf': No such file or directory");
    assert_int_equal(dgm_gguf_write(w, "/dev/full/x", &err), DGM_ERR_IO);
    dgm_gguf_add_produced(w, "b", DGM_TYPE_F32, 2, shape, produce_failure, NULL);
    // A failed write leaves the old file and no temporary neighbour.
    assert_int_equal(dgm_gguf_write(w, path, &err), DGM_ERR_FORMAT);
    assert_string_equal(err.text, "no data today");
    dgm_gguf *g;
    assert_int_equal(dgm_gguf_open(&g, path, &err), DGM_OK);
    dgm_gguf_close(&g);
    char pattern[96];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "%s.tmp-*", path);
    assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
    globfree(&found);
    dgm_gguf_add_tensor(w, "a", DGM_TYPE_F32, 2, shape, weights);
    dgm_gguf_set_string(w, "k", "set after a failure");
    assert_int_equal(dgm_gguf_write(w, path, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "tensor 'a' is added twice");
    dgm_gguf_writer_close(&w);
    assert_int_equal(dgm_gguf_writer_open(&w, &err), DGM_OK);
    dgm_gguf_add_tensor(w, "a", DGM_TYPE_F32, 2, empty, weights);
    assert_int_equal(dgm_gguf_write(w, path, &err), DGM_ERR_ARGUMENT);
    dgm_gguf_writer_close(&w);
    assert_int_equal(dgm_gguf_writer_open(&w, &err), DGM_OK);
    dgm_gguf_set_array(w, "k", DGM_META_STRING, weights, 1);
    assert_int_equal(dgm_gguf_write(w, path, &err), DGM_ERR_ARGUMENT);
    dgm_gguf_writer_close(&w);
    assert_null(w);
}

// Copying all metadata, with one key replaced and one removed.
static void test_copy(void **state)
{
    (void)state;
    char other[96];
    snprintf(other, sizeof other, "%s.copy", path);
    dgm_gguf *a, *b;
    dgm_gguf_writer *w;
    dgm_error err;
    assert_int_equal(dgm_gguf_open(&a, path, &err), DGM_OK);
    assert_int_equal(dgm_gguf_writer_open(&w, &err), DGM_OK);
    dgm_gguf_set_u32(w, "t.u32", 5);
    dgm_gguf_set_copies(w, a);
    dgm_gguf_unset(w, "t.u8");
    assert_int_equal(dgm_gguf_write(w, other, &err), DGM_OK);
    dgm_gguf_writer_close(&w);
    assert_int_equal(dgm_gguf_open(&b, other, &err), DGM_OK);
    assert_int_equal(dgm_gguf_meta_count(b), dgm_gguf_meta_count(a) - 1);
    for (int i = 0; i < dgm_gguf_meta_count(a); i++) {
        const dgm_meta *m = dgm_gguf_meta(a, i), *n = dgm_gguf_find(b, m->key);
        if (strcmp(m->key, "t.u8") == 0) {
            assert_null(n);
        } else if (strcmp(m->key, "t.u32") != 0) {
            assert_true(n && n->type == m->type && n->raw_size == m->raw_size);
            assert_memory_equal(n->raw, m->raw, m->raw_size);
        }
    }
    dgm_gguf_close(&a);
    dgm_gguf_close(&b);
    assert_int_equal(unlink(other), 0);
}

static dgm_status open_once(dgm_error *err)
{
    dgm_gguf *g;
    dgm_status st = dgm_gguf_open(&g, path, err);
    dgm_gguf_close(&g);
    return st;
}

static void test_no_memory(void **state)
{
    (void)state;
    dgm_status (*const calls[])(dgm_error *) = {open_once, write_sample};
    for (size_t c = 0; c < 2; c++) {
        uint64_t live = dgm_mem_live();
        int failures = 0;
        for (uint64_t at = 1;; at++) {
            dgm_error err = {""};
            dgm_mem_inject(at, 1);
            dgm_status st = calls[c](&err);
            dgm_mem_inject(0, 0);
            assert_int_equal(dgm_mem_live(), live);
            if (st == DGM_OK) break;
            assert_int_equal(st, DGM_ERR_MEMORY);
            assert_non_null(strstr(err.text, "out of memory"));
            failures++;
        }
        assert_in_range(failures, 5, 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_bit_flips),
        cmocka_unit_test(test_hostile_metadata),
        cmocka_unit_test(test_hostile_tensors),
        cmocka_unit_test(test_unknown_type),
        cmocka_unit_test(test_writer_errors),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
