// SPDX-License-Identifier: MIT
// Models in memory (dgm_open_memory): every kind, at any address, whole or not. What is cut off or
// damaged is an error, never a crash: buffers are exactly as long as they say, so that AddressSanitizer
// sees a look behind them in the ASAN build.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "dragoman/dragoman.h"
#include "engine.h"

#define FOLDER "tests/data/models/"

// One of every architecture, vocabulary and stored precision.
static const char *const kinds[] = {
    FOLDER "transformer-pieces.gguf",    FOLDER "transformer-i8.gguf", FOLDER "transformer-r2l.gguf",
    FOLDER "rnn-bahdanau-pieces.gguf",   FOLDER "rnn-devlin.gguf",     FOLDER "rnn-conditional-i8.gguf",
    FOLDER "self-normalised.gguf",       FOLDER "double-pieces.gguf",  FOLDER "double-bidirectional.gguf",
    FOLDER "cmlm-pieces.gguf",           FOLDER "transformer-moe-ssru.gguf",
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *const texts[] = {"Good morning.", "The house is small. a b c"};

static dgm_settings small(void)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.max_length = 6;
    return s;
}

// A whole file at an address that is `shift` bytes behind a multiple of 64; free *block.
static const char *load(const char *path, size_t shift, size_t *size, char **block)
{
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, path, NULL), DGM_OK);
    *size = f.size;
    *block = aligned_alloc(64, (f.size + shift + 63) / 64 * 64);
    assert_non_null(*block);
    memcpy(*block + shift, f.data, f.size);
    dgm_mapfile_close(&f);
    return *block + shift;
}

static dgm_translator *open_bytes(const char *data, size_t size)
{
    dgm_translator *t = NULL;
    dgm_error error;
    const dgm_settings s = small();
    if (dgm_open_memory(&t, data, size, &s, &error) != DGM_OK) fail_msg("%s", error.text);
    return t;
}

static void every_kind(void **state)
{
    (void)state;
    const uint64_t blocks = dgm_mem_live();
    for (int i = 0; i < KINDS; i++) {
        const dgm_settings s = small();
        dgm_translator *t = open_with(&s, kinds[i]);
        char *want = translate_texts(t, texts, 2, true), *block;
        dgm_close(&t);
        for (size_t shift = 0; shift < 64; shift += 21) {
            size_t size;
            const char *data = load(kinds[i], shift, &size, &block);
            t = open_bytes(data, size);
            if (shift) memset(block, 0x55, size + shift); // a copy was made
            char *got = translate_texts(t, texts, 2, true);
            assert_string_equal(got, want);
            free(got);
            dgm_close(&t);
            free(block);
        }
        free(want);
    }
    assert_int_equal(dgm_mem_live(), blocks);
}

// The bytes are not written to.
static void read_only(void **state)
{
    (void)state;
    size_t size, again;
    char *block, *other;
    const char *data = load(kinds[0], 0, &size, &block);
    dgm_translator *t = open_bytes(data, size);
    free(translate_texts(t, texts, 2, false));
    dgm_close(&t);
    assert_memory_equal(data, load(kinds[0], 0, &again, &other), size);
    free(block);
    free(other);
}

// Opens these bytes, wherever they are; where that works, they are translated with.
static dgm_status try_bytes(const char *data, size_t size)
{
    dgm_translator *t = NULL;
    dgm_error error = {{0}};
    const dgm_settings s = small();
    char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, data, size);
    const dgm_status st = dgm_open_memory(&t, exact, size, &s, &error);
    if (st != DGM_OK) {
        assert_null(t);
        assert_true(error.text[0]);
    } else {
        dgm_results *r = NULL;
        assert_int_equal(dgm_translate(t, texts, 1, &r, NULL), DGM_OK);
        dgm_results_free(&r);
        dgm_close(&t);
    }
    free(exact);
    return st;
}

static void cut_off(void **state)
{
    (void)state;
    const uint64_t blocks = dgm_mem_live();
    for (int i = 0; i < KINDS; i += 3) {
        char *block;
        size_t size;
        const char *data = load(kinds[i], 0, &size, &block);
        for (size_t n = 0; n < size - 64; n += n < 256 ? 1 : 397)
            assert_int_equal(try_bytes(data, n), DGM_ERR_FORMAT);
        for (size_t n = size - 64; n <= size; n++) { // the last tensor, and what fills the file up
            const dgm_status st = try_bytes(data, n);
            assert_true(st == DGM_ERR_FORMAT || (st == DGM_OK && n > size - 32));
        }
        assert_int_equal(try_bytes(data, size), DGM_OK);
        free(block);
    }
    assert_int_equal(dgm_mem_live(), blocks);
}

static void damaged(void **state)
{
    (void)state;
    const uint64_t blocks = dgm_mem_live();
    char *block;
    size_t size;
    load(kinds[0], 0, &size, &block);
    dgm_rng rng = {7};
    for (int i = 0; i < 400; i++) {
        // Most of them in what describes the tensors, which comes first.
        const size_t at = (size_t)dgm_rng_below(&rng, i % 4 ? 4096 : size);
        const char old = block[at];
        block[at] = (char)(old ^ (1 << dgm_rng_below(&rng, 8)));
        try_bytes(block, size);
        block[at] = old;
    }
    free(block);
    assert_int_equal(dgm_mem_live(), blocks);
}

static void refused(void **state)
{
    (void)state;
    dgm_translator *t = NULL;
    dgm_error error;
    char *block;
    size_t size;
    const char *data = load(kinds[0], 52, &size, &block);
    const uint64_t blocks = dgm_mem_live();
    assert_int_equal(dgm_open_memory(&t, data, 100, NULL, &error), DGM_ERR_FORMAT);
    assert_non_null(strstr(error.text, "the model in memory: "));
    assert_int_equal(dgm_open_memory(&t, NULL, 0, NULL, &error), DGM_ERR_ARGUMENT);
    assert_int_equal(dgm_open_memory(&t, data, 0, NULL, &error), DGM_ERR_FORMAT);
    assert_int_equal(dgm_open_memory(NULL, data, size, NULL, &error), DGM_ERR_ARGUMENT);
    dgm_settings s = small();
    s.beam = -1;
    assert_int_equal(dgm_open_memory(&t, data, size, &s, &error), DGM_ERR_ARGUMENT);
    for (uint64_t n = 1; n < 6; n++) {
        dgm_mem_inject(n, 1);
        assert_int_equal(dgm_open_memory(&t, data, size, NULL, &error), DGM_ERR_MEMORY);
        dgm_mem_inject(0, 0);
        assert_null(t);
    }
    assert_int_equal(dgm_mem_live(), blocks);
    free(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind), cmocka_unit_test(read_only), cmocka_unit_test(cut_off),
        cmocka_unit_test(damaged),    cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
