// SPDX-License-Identifier: MIT
// Documents in tests: archives made of strings, lines as one text, translations that turn the order of words around,
// what is written.
#ifndef DGM_TESTS_UNIT_PACKAGES_H
#define DGM_TESTS_UNIT_PACKAGES_H

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
#include "base/zip.h"
#include "dragoman/document.h"

enum { WORDS_MAX = 512 };

typedef struct entry {
    const char *name, *text;
} entry;

static inline dgm_text text_of(const dgm_writer *w)
{
    return (dgm_text){w->data ? (const char *)w->data : "", w->size};
}

// Members up to one without a name; the first is not compressed.
static inline dgm_writer make_archive(const entry *list)
{
    dgm_writer out = {0};
    zip_source_t *source = zip_source_buffer_create(NULL, 0, 0, NULL);
    zip_source_keep(source);
    zip_t *z = zip_open_from_source(source, ZIP_TRUNCATE, NULL);
    for (size_t i = 0; list[i].name; i++) {
        zip_source_t *content = zip_source_buffer(z, list[i].text, strlen(list[i].text), 0);
        const zip_int64_t at = zip_file_add(z, list[i].name, content, 0);
        assert_int_equal(zip_set_file_compression(z, (zip_uint64_t)at, i ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0), 0);
    }
    assert_int_equal(zip_close(z), 0);
    assert_int_equal(zip_source_open(source), 0);
    char part[4096];
    for (zip_int64_t n; (n = zip_source_read(source, part, sizeof part)) > 0;) dgm_write_bytes(&out, part, (size_t)n);
    zip_source_close(source);
    zip_source_free(source);
    return out;
}

// The documents of tests/data/documents (tests/oracle/make_documents.py).
static inline dgm_writer read_corpus(void)
{
    dgm_writer out = {0};
    char part[1 << 14];
    FILE *f = popen("xz -dc tests/data/documents/office.zip.xz", "r");
    assert_non_null(f);
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) dgm_write_bytes(&out, part, n);
    assert_int_equal(pclose(f), 0);
    return out;
}

static inline char *member_of(dgm_text archive, const char *name)
{
    dgm_zip *z;
    dgm_error err;
    if (dgm_zip_open_memory(&z, archive.data, archive.size, &err) != DGM_OK) fail_msg("%s", err.text);
    const int i = dgm_zip_find(z, name);
    assert_true(i >= 0);
    const size_t size = (size_t)dgm_zip_size(z, (size_t)i);
    char *text = calloc(1, size + 1);
    if (dgm_zip_read(z, (size_t)i, 0, text, size, &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_zip_close(&z);
    return text;
}

static inline dgm_document *open_document(dgm_text data, const char *name)
{
    dgm_document *d;
    dgm_error err;
    dgm_document_options options;
    dgm_document_options_default(&options);
    options.target_language = "de";
    if (dgm_document_open(&d, data.data, data.size, name, &options, &err) != DGM_OK) fail_msg("%s", err.text);
    return d;
}

// Lines with "|" behind each.
static inline void list_lines(const dgm_document *d, char *out, size_t room)
{
    out[0] = '\0';
    for (size_t i = 0, size; dgm_document_line(d, i, &size); i++)
        snprintf(out + strlen(out), room - strlen(out), "%.*s|", (int)size, dgm_document_line(d, i, &size));
}

static inline void put_same(dgm_document *d)
{
    const char *line;
    for (size_t i = 0, size; (line = dgm_document_line(d, i, &size)); i++)
        assert_int_equal(dgm_document_put(d, i, line, size, NULL, 0, NULL), DGM_OK);
}

// The words of every line in another order, aligned: order[word] is drawn from `seed`, 0: the last one first.
static inline void put_shuffled(dgm_document *d, unsigned seed)
{
    const char *line;
    for (size_t i = 0, size; (line = dgm_document_line(d, i, &size)); i++) {
        dgm_text words[WORDS_MAX];
        size_t from[WORDS_MAX], count = 0;
        dgm_link links[WORDS_MAX];
        for (size_t at = 0; at < size && count < WORDS_MAX; count++) {
            const char *space = memchr(line + at, ' ', size - at);
            words[count] = (dgm_text){line + at, space ? (size_t)(space - line) - at : size - at};
            at += words[count].size + 1;
        }
        for (size_t k = 0; k < count; k++) from[k] = count - 1 - k;
        for (size_t k = count; seed && k > 1; k--) {
            seed = seed * 1103515245 + 12345;
            const size_t other = (seed >> 8) % k, swap = from[k - 1];
            from[k - 1] = from[other];
            from[other] = swap;
        }
        dgm_writer w = {0};
        for (size_t k = 0; k < count; k++) {
            if (k) dgm_write_u8(&w, ' ');
            dgm_write_bytes(&w, words[from[k]].data, words[from[k]].size);
            links[k] = (dgm_link){(int32_t)from[k], (int32_t)k};
        }
        dgm_error err;
        if (dgm_document_put(d, i, text_of(&w).data, w.size, links, count, &err) != DGM_OK) fail_msg("%s", err.text);
        dgm_writer_free(&w);
    }
}

static inline int put_bytes(void *cookie, const char *data, size_t size)
{
    dgm_write_bytes(cookie, data, size);
    return 0;
}

// Writes and closes it.
static inline dgm_writer write_document(dgm_document *d)
{
    dgm_writer out = {0};
    dgm_error err;
    if (dgm_document_write(d, put_bytes, &out, &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_document_close(&d);
    return out;
}

static inline void expect_refused(dgm_text data, const char *name, dgm_status status, const char *why)
{
    dgm_document *d;
    dgm_error err;
    const dgm_status st = dgm_document_open(&d, data.data, data.size, name, NULL, &err);
    if (st != status) fail_msg("%s: %s is expected, not %s", name, why, st == DGM_OK ? "success" : err.text);
    assert_null(d);
    if (!strstr(err.text, why)) fail_msg("'%s' is not in '%s'", why, err.text);
}

#endif
