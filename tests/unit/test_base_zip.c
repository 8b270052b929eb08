// SPDX-License-Identifier: MIT
// Zip archives written again, and those that would grow too much on unpacking. What is damaged is in
// test_import_containers.
#define _GNU_SOURCE // memmem
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include <cmocka.h>

#include "base/zip.h"

typedef struct entry {
    const char *name, *data;
    size_t size;
    int method;
} entry;

static dgm_writer make_archive(const entry *list, size_t count)
{
    dgm_writer out = {0};
    zip_source_t *source = zip_source_buffer_create(NULL, 0, 0, NULL);
    zip_source_keep(source);
    zip_t *z = zip_open_from_source(source, ZIP_TRUNCATE, NULL);
    for (size_t i = 0; i < count; i++) {
        zip_source_t *content = zip_source_buffer(z, list[i].data, list[i].size, 0);
        const zip_int64_t at = zip_file_add(z, list[i].name, content, 0);
        assert_int_equal(zip_set_file_compression(z, (zip_uint64_t)at, list[i].method, 0), 0);
        assert_int_equal(zip_file_set_mtime(z, (zip_uint64_t)at, 1000000000, 0), 0);
    }
    assert_int_equal(zip_close(z), 0);
    assert_int_equal(zip_source_open(source), 0);
    char part[4096];
    for (zip_int64_t n; (n = zip_source_read(source, part, sizeof part)) > 0;) dgm_write_bytes(&out, part, (size_t)n);
    zip_source_close(source);
    zip_source_free(source);
    return out;
}

static dgm_text text_of(const dgm_writer *w)
{
    return (dgm_text){(const char *)w->data, w->size};
}

static void others_are_copied(void **state)
{
    (void)state;
    static const char mime[] = "application/epub+zip";
    char noise[500];
    for (size_t i = 0; i < sizeof noise; i++) noise[i] = (char)(i * i * 31 >> 3);
    const entry list[] = {{"mimetype", mime, strlen(mime), ZIP_CM_STORE},
                          {"a.xml", "<a>one</a>", 10, ZIP_CM_DEFLATE},
                          {"noise.bin", noise, sizeof noise, ZIP_CM_DEFLATE},
                          {"b.xml", "<b/>", 4, ZIP_CM_STORE}};
    dgm_writer before = make_archive(list, 4), after = {0}, again = {0};
    const dgm_zip_part parts[] = {{1, {"<a>another one</a>", 18}}, {3, {"<b>x</b>", 8}}};
    dgm_error err;
    if (dgm_zip_rewrite(text_of(&before), parts, 2, &after, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_zip_rewrite(text_of(&before), parts, 2, &again, &err), DGM_OK);
    assert_true(dgm_text_equal(text_of(&after), text_of(&again))); // no time of day in it
    assert_memory_equal(after.data + 30, "mimetypeapplication/epub+zip", 28);
    dgm_zip *z;
    char out[32] = {0};
    assert_int_equal(dgm_zip_open_memory(&z, after.data, after.size, &err), DGM_OK);
    assert_int_equal(dgm_zip_count(z), 4);
    for (size_t i = 0; i < 4; i++) assert_string_equal(dgm_zip_name(z, i), list[i].name);
    assert_int_equal(dgm_zip_read(z, 1, 0, out, 18, &err), DGM_OK);
    assert_string_equal(out, "<a>another one</a>");
    dgm_zip_close(&z);
    // The packed bytes of what was not replaced are there as they were.
    const char *packed = memmem(before.data, before.size, "noise.bin", 9);
    assert_non_null(packed);
    assert_non_null(memmem(after.data, after.size, packed + 9, 200));
    dgm_writer_free(&before);
    dgm_writer_free(&after);
    dgm_writer_free(&again);
}

// A directory may name members in another order than they lie in, and none at the beginning: what lies before the first
// change must neither be lost nor freed, since it is the caller's.
static void any_order(void **state)
{
    (void)state;
    char large[500]; // what lies before the change is more than what follows
    memset(large, 'a', sizeof large);
    const entry list[] = {{"a.xml", large, sizeof large, ZIP_CM_STORE}, {"b.xml", "<b>2</b>", 8, ZIP_CM_STORE}};
    dgm_writer ordered = make_archive(list, 2), turned = {0};
    const char *directory = memmem(ordered.data, ordered.size, "PK\1\2", 4);
    const char *second = memmem(directory + 4, 100, "PK\1\2", 4), *end = memmem(directory, 200, "PK\5\6", 4);
    const size_t first = (size_t)(directory - (const char *)ordered.data);
    dgm_write_bytes(&turned, ordered.data, first);
    dgm_write_bytes(&turned, second, (size_t)(end - second));
    dgm_write_bytes(&turned, directory, (size_t)(second - directory));
    dgm_write_bytes(&turned, end, ordered.size - (size_t)(end - (const char *)ordered.data));
    char *owned = malloc(turned.size); // of malloc's, so that a free of it is noticed
    memcpy(owned, turned.data, turned.size);
    const dgm_zip_part part = {0, {"<b>other</b>", 12}};
    dgm_writer out = {0};
    dgm_zip *z;
    char text[500] = {0};
    assert_int_equal(dgm_zip_rewrite((dgm_text){owned, turned.size}, &part, 1, &out, NULL), DGM_OK);
    assert_memory_equal(owned, turned.data, turned.size);
    assert_int_equal(dgm_zip_open_memory(&z, out.data, out.size, NULL), DGM_OK);
    for (size_t i = 0; i < 2; i++) {
        const bool changed = strcmp(dgm_zip_name(z, i), "b.xml") == 0;
        assert_int_equal(dgm_zip_read(z, i, 0, text, changed ? 12 : sizeof text, NULL), DGM_OK);
        assert_memory_equal(text, changed ? "<b>other</b>" : large, changed ? 12 : sizeof large);
    }
    dgm_zip_close(&z);
    free(owned);
    dgm_writer_free(&ordered);
    dgm_writer_free(&turned);
    dgm_writer_free(&out);
}

static void damage_is_refused(void **state)
{
    (void)state;
    dgm_writer out = {0};
    dgm_error err;
    const dgm_zip_part part = {5, {"x", 1}};
    assert_int_equal(dgm_zip_rewrite(dgm_text_of("PK no archive"), NULL, 0, &out, &err), DGM_ERR_FORMAT);
    const entry one = {"a", "b", 1, ZIP_CM_STORE};
    dgm_writer archive = make_archive(&one, 1);
    assert_int_equal(dgm_zip_rewrite(text_of(&archive), &part, 1, &out, &err), DGM_ERR_FORMAT); // no such member
    dgm_writer_free(&archive);
    dgm_writer_free(&out);
}

// 20 MiB of zeros in 20 KiB.
static void growth_is_limited(void **state)
{
    (void)state;
    enum { SIZE = 20 << 20 };
    char *zeros = calloc(1, SIZE);
    const entry list[] = {{"x", "y", 1, ZIP_CM_STORE}, {"bomb", zeros, SIZE, ZIP_CM_DEFLATE}};
    dgm_writer archive = make_archive(list, 2);
    dgm_zip *z;
    dgm_error err;
    assert_int_equal(dgm_zip_open_memory(&z, archive.data, archive.size, &err), DGM_OK);
    assert_int_equal(dgm_zip_check_unpacked(z, UINT64_MAX, 1200, &err), DGM_OK);
    assert_int_equal(dgm_zip_check_unpacked(z, UINT64_MAX, 200, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "more than 200 times its size on unpacking"));
    assert_int_equal(dgm_zip_check_unpacked(z, SIZE, 1200, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "member 'bomb' says that it is 20971520 bytes long"));
    dgm_zip_close(&z);
    // A directory that claims 2 GB: the packed bytes cannot hold them.
    uint8_t *entry_at = memmem(archive.data, archive.size, "PK\1\2", 4);
    entry_at = memmem(entry_at + 4, (size_t)(archive.data + archive.size - entry_at) - 4, "PK\1\2", 4);
    memcpy(entry_at + 24, "\0\0\0\x80", 4);
    assert_int_equal(dgm_zip_open_memory(&z, archive.data, archive.size, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "2147483648 bytes cannot come out of"));
    dgm_writer_free(&archive);
    free(zeros);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_copied),
        cmocka_unit_test(any_order),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(growth_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
