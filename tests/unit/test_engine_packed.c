// SPDX-License-Identifier: MIT
// `dragoman quantize --packed`: layers that lie packed in the file are used where they are, with the translations of
// the same file without them, on every level and in every precision; what does not fit is packed anew.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants the four above.
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/device.h"
#include "base/mem.h"
#include "dragoman/tools.h"
#include "format/rewrite.h"
#include "model/model.h"

static const char *const models[] = {"tests/data/models/transformer-pieces.gguf", "models/en-de.gguf",
                                     "tests/data/models/rnn-bahdanau-pieces.gguf"};
enum { MODELS = sizeof models / sizeof models[0], LINES = 3 };
static const char *const lines[LINES] = {"Good morning.", "The house is small.", "My house is your house, he said."};

static char folder[] = "/tmp/dragoman-packed-XXXXXX";

static const char *path_of(const char *name)
{
    static char paths[4][256];
    static int next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : 1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static dgm_status quantize(const char *from, const char *to, const char *type, const char *packed, dgm_error *error)
{
    dgm_quantize_options o;
    dgm_quantize_default(&o);
    o.type = type;
    o.packed = packed;
    return dgm_quantize(from, to, &o, NULL, error);
}

static void make(const char *from, const char *to, const char *packed)
{
    dgm_error error;
    if (quantize(from, to, "i8", packed, &error) != DGM_OK) fail_msg("%s", error.text);
}

// Translations with scores, one string; the caller frees it.
static char *translate(dgm_translator *t)
{
    char *text = calloc(1, 10000);
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate(t, lines, LINES, &r, NULL), DGM_OK);
    for (size_t i = 0; i < r->count; i++) {
        assert_int_equal(r->items[i]->status, DGM_OK);
        const double score = r->items[i]->translations[0]->score;
        sprintf(text + strlen(text), "%s\t%a\n", dgm_result_text(r->items[i]), score);
    }
    dgm_results_free(&r);
    return text;
}

static char *translate_file(const char *path, const char *precision, const char *device)
{
    dgm_translator *t = NULL;
    dgm_settings s;
    dgm_error error;
    dgm_settings_default(&s);
    s.beam = 3;
    s.precision = precision;
    s.device = device;
    s.max_length = 30;
    if (dgm_open(&t, path, &s, &error) != DGM_OK) return NULL; // a level that this machine lacks
    char *text = translate(t);
    dgm_close(&t);
    return text;
}

// Memory that the weights of a file take in i8, beside the file.
static uint64_t weight_bytes(const char *path)
{
    dgm_gguf *g = NULL;
    dgm_backend *b = NULL;
    dgm_model *m = NULL;
    dgm_error error;
    if (dgm_gguf_open(&g, path, &error) != DGM_OK) fail_msg("%s", error.text);
    assert_int_equal(dgm_backend_open(&b, "cpu", NULL, NULL), DGM_OK);
    if (dgm_model_load(&m, b, g, DGM_PRECISION_I8, &error) != DGM_OK) fail_msg("%s", error.text);
    const uint64_t bytes = dgm_model_describe(m)->packed_bytes;
    dgm_model_free(&m);
    dgm_backend_close(&b);
    dgm_gguf_close(&g);
    return bytes;
}

static void same_translations(const char *a, const char *b)
{
    static const char *const how[][2] = {
        {"i8", "cpu"}, {"i8", "cpu:c"}, {"i8", "cpu:avx2"}, {"i16", "cpu"}, {"f32", "cpu"}};
    for (size_t i = 0; i < sizeof how / sizeof how[0]; i++) {
        char *one = translate_file(a, how[i][0], how[i][1]), *other = translate_file(b, how[i][0], how[i][1]);
        assert_true(!one == !other);
        if (one) assert_string_equal(one, other);
        free(one);
        free(other);
    }
}

static void test_used_where_it_lies(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        make(models[i], path_of("plain.gguf"), NULL);
        make(models[i], path_of("packed.gguf"), i == 0 ? "c" : "vnni");
        same_translations(path_of("plain.gguf"), path_of("packed.gguf"));
        const uint64_t plain = weight_bytes(path_of("plain.gguf")), packed = weight_bytes(path_of("packed.gguf"));
        if (packed * 4 > plain)
            fail_msg("%s: %llu of %llu bytes", models[i], (unsigned long long)packed, (unsigned long long)plain);
    }
}

// ---- what does not fit ------------------------------------------------------------------------------

static unsigned char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*size);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

static void write_file(const char *path, const unsigned char *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

// A byte in the first panel of every packed layer in turn, and of all of them.
static void test_other_numbers(void **state)
{
    (void)state;
    size_t size;
    make(models[0], path_of("plain.gguf"), NULL);
    make(models[0], path_of("packed.gguf"), "avx2");
    unsigned char *bytes = read_file(path_of("packed.gguf"), &size);
    dgm_gguf *g = NULL;
    assert_int_equal(dgm_gguf_open_memory(&g, bytes, size, NULL), DGM_OK);
    const uint64_t packed = weight_bytes(path_of("packed.gguf"));
    int layers = 0;
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        if (!dgm_rewrite_is_packed(t)) continue;
        layers++;
        unsigned char *at = bytes + ((const unsigned char *)t->data - bytes);
        *at ^= 0x55;
        write_file(path_of("other.gguf"), bytes, size);
        assert_true(weight_bytes(path_of("other.gguf")) > packed); // it was packed anew
        if (layers % 5 == 1) same_translations(path_of("plain.gguf"), path_of("other.gguf"));
        *at ^= 0x55;
    }
    assert_in_range(layers, 5, 1000);
    dgm_gguf_close(&g);
    free(bytes);
}

// The same tensors under another layout's name, and layers that are too short.
static void test_other_layouts(void **state)
{
    (void)state;
    make(models[0], path_of("plain.gguf"), NULL);
    make(models[0], path_of("packed.gguf"), "avx2");
    const uint64_t plain = weight_bytes(path_of("plain.gguf"));
    for (int kind = 0; kind < 3; kind++) {
        dgm_gguf *g = NULL;
        dgm_gguf_writer *w = NULL;
        assert_int_equal(dgm_gguf_open(&g, path_of("packed.gguf"), NULL), DGM_OK);
        assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
        dgm_gguf_set_copies(w, g);
        if (kind == 0) dgm_gguf_set_string(w, DGM_PACKED_LAYOUT, "i8-of-tomorrow");
        if (kind == 1) dgm_gguf_unset(w, DGM_PACKED_LAYOUT);
        for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
            const dgm_tensor *t = dgm_gguf_tensor(g, i);
            int shape[DGM_GGUF_MAX_DIMS];
            memcpy(shape, t->shape, sizeof shape);
            if (kind == 2 && dgm_rewrite_is_packed(t)) shape[0] -= 64;
            dgm_gguf_add_tensor(w, t->name, (dgm_tensor_type)t->type, t->n_dims, shape, t->data);
        }
        assert_int_equal(dgm_gguf_write(w, path_of("other.gguf"), NULL), DGM_OK);
        dgm_gguf_writer_close(&w);
        dgm_gguf_close(&g);
        assert_int_equal(weight_bytes(path_of("other.gguf")), plain);
        same_translations(path_of("plain.gguf"), path_of("other.gguf"));
    }
}

static void test_damage(void **state)
{
    (void)state;
    size_t size;
    dgm_error error;
    dgm_gguf *g = NULL;
    make(models[0], path_of("packed.gguf"), "avx2");
    unsigned char *bytes = read_file(path_of("packed.gguf"), &size);
    write_file(path_of("short.gguf"), bytes, size - 4096); // the end of the last packed layer is missing
    assert_int_equal(dgm_gguf_open(&g, path_of("short.gguf"), &error), DGM_ERR_FORMAT);
    // The key that names the layout with another type: the reader says so.
    dgm_gguf_writer *w = NULL;
    assert_int_equal(dgm_gguf_open_memory(&g, bytes, size, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    dgm_gguf_set_copies(w, g);
    dgm_gguf_set_u32(w, DGM_PACKED_LAYOUT, 4);
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        dgm_gguf_add_tensor(w, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape, t->data);
    }
    assert_int_equal(dgm_gguf_write(w, path_of("key.gguf"), NULL), DGM_OK);
    dgm_gguf_writer_close(&w);
    dgm_gguf_close(&g);
    dgm_translator *t = NULL;
    assert_int_equal(dgm_open(&t, path_of("key.gguf"), NULL, &error), DGM_ERR_FORMAT);
    assert_non_null(strstr(error.text, DGM_PACKED_LAYOUT));
    free(bytes);
}

// Bytes that lie anywhere: what is not aligned is packed anew.
static void test_memory(void **state)
{
    (void)state;
    size_t size;
    make(models[0], path_of("plain.gguf"), NULL);
    make(models[0], path_of("packed.gguf"), "avx2");
    unsigned char *bytes = read_file(path_of("packed.gguf"), &size);
    char *wanted = translate_file(path_of("plain.gguf"), "i8", "cpu");
    unsigned char *room = aligned_alloc(64, (size + 128) / 64 * 64);
    dgm_settings s;
    dgm_settings_default(&s);
    s.beam = 3;
    s.precision = "i8";
    s.max_length = 30;
    for (size_t skip = 0; skip <= 8; skip += 8) {
        dgm_translator *t = NULL;
        memcpy(room + skip, bytes, size);
        assert_int_equal(dgm_open_memory(&t, room + skip, size, &s, NULL), DGM_OK);
        char *got = translate(t);
        assert_string_equal(got, wanted);
        free(got);
        dgm_close(&t);
    }
    free(wanted);
    free(room);
    free(bytes);
}

// Tools that write the file again leave the packed layers out: their numbers may be others then.
static void test_written_again(void **state)
{
    (void)state;
    make(models[0], path_of("packed.gguf"), "amx");
    make(path_of("packed.gguf"), path_of("again.gguf"), NULL);
    dgm_gguf *g = NULL;
    assert_int_equal(dgm_gguf_open(&g, path_of("again.gguf"), NULL), DGM_OK);
    assert_null(dgm_gguf_find(g, DGM_PACKED_LAYOUT));
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) assert_false(dgm_rewrite_is_packed(dgm_gguf_tensor(g, i)));
    dgm_gguf_close(&g);
    make(path_of("packed.gguf"), path_of("twice.gguf"), "neon"); // and packs them once
    size_t one, two;
    unsigned char *a = read_file(path_of("packed.gguf"), &one), *b = read_file(path_of("twice.gguf"), &two);
    assert_int_equal(one, two);
    assert_memory_equal(a, b, one);
    free(a);
    free(b);
}

static void test_refusals(void **state)
{
    (void)state;
    dgm_error error;
    assert_int_equal(quantize(models[0], path_of("x.gguf"), "f16", "avx2", &error), DGM_ERR_ARGUMENT);
    assert_string_equal(error.text, "only weights of type i8 are packed, not f16");
    assert_int_equal(quantize(models[0], path_of("x.gguf"), "i8", "avx3", &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "unknown CPU level 'avx3'"));
    assert_int_not_equal(access(path_of("x.gguf"), F_OK), 0);
}

static void test_no_memory(void **state)
{
    (void)state;
    dgm_gguf *g = NULL;
    dgm_backend *b = NULL;
    make(models[0], path_of("packed.gguf"), "avx2");
    assert_int_equal(dgm_gguf_open(&g, path_of("packed.gguf"), NULL), DGM_OK);
    assert_int_equal(dgm_backend_open(&b, "cpu", NULL, NULL), DGM_OK);
    const uint64_t live = dgm_mem_live();
    for (uint64_t n = 1, loaded = 0; loaded < 3; n++) {
        dgm_model *m = NULL;
        const uint64_t before = dgm_mem_allocations();
        dgm_mem_inject(n, 1);
        const dgm_status st = dgm_model_load(&m, b, g, DGM_PRECISION_I8, NULL);
        dgm_mem_inject(0, 0);
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        loaded += st == DGM_OK && dgm_mem_allocations() - before < n;
        dgm_model_free(&m);
        assert_int_equal(dgm_mem_live(), live);
        assert_in_range(n, 1, 5000);
    }
    for (uint64_t n = 1; n < 60; n++) {
        dgm_mem_inject(n, 1);
        quantize(models[0], path_of("less.gguf"), "i8", "avx2", NULL);
        dgm_mem_inject(0, 0);
        assert_int_equal(dgm_mem_live(), live);
    }
    dgm_backend_close(&b);
    dgm_gguf_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_used_where_it_lies), cmocka_unit_test(test_other_numbers),
        cmocka_unit_test(test_other_layouts),      cmocka_unit_test(test_damage),
        cmocka_unit_test(test_memory),             cmocka_unit_test(test_written_again),
        cmocka_unit_test(test_refusals),           cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
