// SPDX-License-Identifier: MIT
// base/compact.h: kinds of files, sections, tables of words, damage.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/compact.h"
#include "base/mem.h"

static const uint8_t magic[DGM_COMPACT_MAGIC] = {'D', 'G', 'M', 'X', 'X', 0, 1, 0};

// Kind, three numbers of the header, one odd byte, the words.
static void make(dgm_writer *out, const dgm_words *words, const uint32_t *order)
{
    dgm_write_bytes(out, magic, sizeof magic);
    dgm_write_u32(out, (uint32_t)words->count);
    dgm_write_u64(out, words->byte_count);
    dgm_write_u64(out, dgm_spellings_slots(words));
    dgm_write_u8(out, 7);
    assert_int_equal(dgm_spellings_write(words, order, out, NULL), DGM_OK);
}

static dgm_status read_all(const dgm_compact *c, dgm_spellings *s, dgm_error *err)
{
    dgm_reader r;
    DGM_TRY(dgm_compact_begin(c, magic, "thing", &r, err));
    s->count = dgm_read_u32(&r);
    s->bytes = dgm_read_u64(&r);
    s->slot_count = dgm_read_u64(&r);
    DGM_FAIL_IF(!dgm_spellings_fit(s), err, DGM_ERR_FORMAT, "slots");
    dgm_read_u8(&r);
    dgm_spellings_read(s, &r);
    return dgm_compact_end(&r, err);
}

static void fill(dgm_words *words)
{
    char text[8];
    uint32_t n;
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "w%d", i);
        assert_int_equal(dgm_words_add(words, dgm_text_of(text), &n, NULL), DGM_OK);
    }
}

static void test_words(void **state)
{
    (void)state;
    dgm_words words = {0};
    uint32_t order[100];
    fill(&words);
    for (uint32_t i = 0; i < 100; i++) order[i] = 99 - i;
    for (int turned = 0; turned < 2; turned++) {
        dgm_writer out = {0};
        dgm_spellings s = {0};
        make(&out, &words, turned ? order : NULL);
        const dgm_compact c = {.data = out.data, .size = out.size};
        assert_int_equal(read_all(&c, &s, NULL), DGM_OK);
        assert_int_equal((uintptr_t)((const uint8_t *)s.at - out.data) % 8, 0);
        assert_int_equal((uintptr_t)((const uint8_t *)s.slots - out.data) % 8, 0);
        for (uint32_t i = 0; i < 100; i++) {
            const dgm_text t = dgm_words_spell(&words, turned ? order[i] : i);
            assert_int_equal(dgm_spellings_find(&s, t), i);
            assert_true(dgm_text_equal(dgm_spellings_get(&s, i), t));
        }
        assert_int_equal(dgm_spellings_find(&s, dgm_text_of("w100")), DGM_NO_SPELLING);
        assert_int_equal(dgm_spellings_find(&s, dgm_text_of("")), DGM_NO_SPELLING);
        assert_int_equal(dgm_spellings_get(&s, 100).size, 0);
        dgm_writer_free(&out);
    }
    dgm_words_free(&words);
}

static void test_damage(void **state)
{
    (void)state;
    dgm_words words = {0};
    dgm_writer out = {0};
    fill(&words);
    make(&out, &words, NULL);
    for (size_t n = 0; n < out.size; n++) { // no shorter file is accepted
        dgm_error e;
        dgm_spellings s = {0};
        const dgm_compact c = {.data = out.data, .size = n};
        assert_int_equal(read_all(&c, &s, &e), DGM_ERR_FORMAT);
        if (n < DGM_COMPACT_MAGIC) assert_string_equal(e.text, "not a thing of this version");
    }
    uint8_t *copy = dgm_malloc(out.size);
    for (size_t i = 0; i < out.size; i++) { // nor does one with wrong bytes make us read elsewhere
        memcpy(copy, out.data, out.size);
        copy[i] ^= 0xa5;
        dgm_spellings s = {0};
        const dgm_compact c = {.data = copy, .size = out.size};
        if (read_all(&c, &s, NULL) != DGM_OK) continue;
        for (uint32_t w = 0; w < 102; w++) {
            const uint32_t n = dgm_spellings_find(&s, dgm_words_spell(&words, w % 100));
            assert_true(n == DGM_NO_SPELLING || n < s.count);
            assert_true(dgm_spellings_get(&s, w).size <= s.bytes);
        }
    }
    dgm_free(copy);
    dgm_writer_free(&out);
    dgm_words_free(&words);
}

static void test_kinds(void **state)
{
    (void)state;
    char path[64];
    dgm_compact c;
    dgm_error e;
    bool compact = false;
    snprintf(path, sizeof path, "/tmp/dgm_compact_%ld", (long)getpid());
    const dgm_compact whole = {.data = magic, .size = sizeof magic};
    assert_int_equal(dgm_compact_save(&whole, path, &e), DGM_OK);
    assert_int_equal(dgm_compact_map(&c, path, magic, "things", &compact, &e), DGM_OK);
    assert_true(compact);
    assert_int_equal(c.size, sizeof magic);
    dgm_compact_close(&c);
    dgm_compact_close(&c);
    assert_int_equal(dgm_file_write(path, "text\n", 5, &e), DGM_OK);
    assert_int_equal(dgm_compact_map(&c, path, magic, "things", &compact, &e), DGM_OK);
    assert_false(compact);
    assert_null(c.data);
    unlink(path);
    assert_int_equal(dgm_compact_map(&c, path, magic, "things", &compact, &e), DGM_ERR_IO);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "text\n", 5), 5);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    assert_int_equal(dgm_compact_map(&c, path, magic, "things", &compact, &e), DGM_ERR_IO);
    assert_non_null(strstr(e.text, "compact things"));
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
