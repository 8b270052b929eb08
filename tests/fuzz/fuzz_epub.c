// SPDX-License-Identifier: MIT
// Fuzz target: books. The input is what the members of an EPUB hold, with zero bytes between them, in the order of
// `names`; an empty one is left out. What is accepted comes back to the byte where translations are the text itself;
// where the words of every line stand the other way round, each member that was XML is XML with as many elements
// (unless a page is listed as text/html, which may hold entities of HTML alone), and the book that comes out is read
// again.
// Parsers: src/document/read_epub.c
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>

#include "base/xml.h"
#include "base/zip.h"
#include "documents.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
    "META-INF/container.xml", "O/book.opf", "O/toc.ncx", "O/one.xhtml", "O/text/a b.xhtml", "cover.html",
    "META-INF/encryption.xml"};

enum { MEMBERS = 1 + sizeof names / sizeof *names, HEADS = 2048 };

static void require(bool what)
{
    if (!what) abort();
}

// ---- mutations -------------------------------------------------------------------------------------

// A member as lines of tags or of attributes; a member in another one's place.
static size_t mutate(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    static const char zero[] = {0};
    fuzz_span v[MEMBERS];
    size_t count = 0, begin = 0;
    for (size_t i = 0; i <= size && count + 1 < MEMBERS; i++)
        if (i == size || data[i] == 0) {
            v[count++] = (fuzz_span){begin, i};
            begin = i + 1;
        }
    const fuzz_span s = v[fuzz_below(r, count)], other = v[fuzz_below(r, count)];
    uint8_t *part = NULL;
    size_t now = s.end - s.begin;
    switch (fuzz_below(r, 8)) {
    case 0: return fuzz_copy(data, size, max, s, other);
    case 1: return fuzz_put(data, size, max, (fuzz_span){s.begin, s.begin}, zero, 1);
    default:
        part = malloc(now + 256);
        if (!part) return size;
        memcpy(part, data + s.begin, now);
        now = fuzz_fields(part, now, now + 256, fuzz_below(r, 3) ? "<" : fuzz_below(r, 2) ? "\"" : " ", r);
        size = fuzz_put(data, size, max, s, part, now);
        free(part);
        return size;
    }
}
FUZZ_MUTATOR(mutate)

// ---- books -----------------------------------------------------------------------------------------

static fuzz_member member(const char *name, const void *data, size_t size)
{
    return (fuzz_member){.name = (const uint8_t *)name, .name_size = strlen(name), .data = data, .size = size,
                         .full = (uint32_t)size};
}

// *file is the caller's.
static size_t pack(const uint8_t *data, size_t size, uint8_t **file)
{
    static const char type[] = "application/epub+zip";
    fuzz_member m[MEMBERS] = {member("mimetype", type, sizeof type - 1)};
    size_t count = 1, at = 0;
    for (size_t i = 0; i + 1 < MEMBERS && at < size; i++) {
        const uint8_t *end = memchr(data + at, 0, size - at);
        const size_t n = end ? (size_t)(end - data) - at : size - at;
        if (n) m[count++] = member(names[i], data + at, n);
        at += n + 1;
    }
    *file = malloc(size + HEADS);
    require(*file != NULL);
    return fuzz_zip_make(*file, size + HEADS, m, count);
}

static dgm_status count_element(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    (void)err;
    *(size_t *)cookie += e->kind == DGM_XML_OPEN;
    return DGM_OK;
}

// Elements of a member; SIZE_MAX: it is no XML.
static size_t elements_of(dgm_zip *z, size_t at)
{
    size_t count = 0;
    const size_t size = (size_t)dgm_zip_size(z, at);
    char *text = malloc(size + 1);
    require(text && dgm_zip_read(z, at, 0, text, size, NULL) == DGM_OK);
    const bool xml = dgm_xml_walk((dgm_text){text, size}, count_element, &count, NULL) == DGM_OK;
    free(text);
    return xml ? count : SIZE_MAX;
}

static void compare(const void *before, size_t before_size, const text_buffer *after)
{
    static const char type[] = "text/html";
    const bool html = memmem(before, before_size, type, sizeof type - 1) != NULL;
    dgm_zip *old, *new;
    require(dgm_zip_open_memory(&old, before, before_size, NULL) == DGM_OK);
    require(dgm_zip_open_memory(&new, after->data, after->size, NULL) == DGM_OK);
    require(dgm_zip_count(old) == dgm_zip_count(new));
    for (size_t i = 0; i < dgm_zip_count(old); i++) {
        require(strcmp(dgm_zip_name(old, i), dgm_zip_name(new, i)) == 0);
        const size_t count = html ? SIZE_MAX : elements_of(old, i);
        require(count == SIZE_MAX || count == elements_of(new, i));
    }
    dgm_zip_close(&old);
    dgm_zip_close(&new);
}

static dgm_document *open_book(const void *data, size_t size, dgm_error *err)
{
    dgm_document *d = NULL;
    return dgm_document_open(&d, data, size, NULL, NULL, err) == DGM_OK ? d : NULL;
}

static void write_same(dgm_document *d, const void *file, size_t size)
{
    text_buffer out = {NULL, 0};
    for (size_t i = 0; i < dgm_document_describe(d)->lines; i++) {
        size_t length;
        const char *line = dgm_document_line(d, i, &length);
        require(dgm_document_put(d, i, line, length, NULL, 0, NULL) == DGM_OK);
    }
    require(dgm_document_write(d, take_bytes, &out, NULL) == DGM_OK);
    require(out.size == size && memcmp(out.data, file, size) == 0);
    free(out.data);
}

static void write_reversed(dgm_document *d, const void *file, size_t size)
{
    text_buffer out = {NULL, 0};
    require(translate_by_rule(d, RULE_REVERSED, NULL) == DGM_OK);
    require(dgm_document_write(d, take_bytes, &out, NULL) == DGM_OK);
    compare(file, size, &out);
    dgm_document *again = open_book(out.data, out.size, NULL);
    require(again != NULL);
    dgm_document_close(&again);
    free(out.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *file;
    dgm_error err = {""};
    const size_t file_size = pack(data, size, &file);
    dgm_document *d = open_book(file, file_size, &err);
    if (d) {
        require(strcmp(dgm_document_describe(d)->format, "epub") == 0);
        write_same(d, file, file_size);
        write_reversed(d, file, file_size);
        dgm_document_close(&d);
    } else {
        require(err.text[0] && !strchr(err.text, '\n'));
    }
    free(file);
    return 0;
}
