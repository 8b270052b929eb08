// SPDX-License-Identifier: MIT
// Fuzz target: the XML in office documents, and XLIFF. The first byte chooses the kind; the rest is the part with the
// text. What is accepted comes back to the byte where translations are the text itself, and is XML with as many tags
// where the words of every line stand the other way round.
// Parsers: src/document/read_office.c src/document/office_part.c src/document/office_runs.c
// Parsers: src/document/office_spans.c src/document/package.c src/document/read_xliff.c
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "base/xml.h"
#include "base/zip.h"
#include "dragoman/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TYPE(part, type)                                                                                               \
    "<Types><Override PartName=\"/" part "\" ContentType=\"application/vnd.openxmlformats-officedocument." type        \
    "+xml\"/></Types>"

static const struct kind {
    const char *name, *part, *types;
} kinds[] = {
    {"docx", "word/document.xml", TYPE("word/document.xml", "wordprocessingml.document.main")},
    {"pptx", "ppt/slides/slide1.xml", TYPE("ppt/slides/slide1.xml", "presentationml.slide")},
    {"xlsx", "xl/sharedStrings.xml", TYPE("xl/sharedStrings.xml", "spreadsheetml.sharedStrings")},
    {"odt", "content.xml", ""},
    {"xliff", NULL, NULL},
};

static void require(bool what)
{
    if (!what) abort();
}

static dgm_writer pack(const struct kind *k, const void *part, size_t size)
{
    dgm_writer out = {0};
    zip_source_t *source = zip_source_buffer_create(NULL, 0, 0, NULL);
    zip_source_keep(source);
    zip_t *z = zip_open_from_source(source, ZIP_TRUNCATE, NULL);
    zip_file_add(z, "[Content_Types].xml", zip_source_buffer(z, k->types, strlen(k->types), 0), 0);
    zip_file_add(z, k->part, zip_source_buffer(z, part, size, 0), 0);
    for (zip_uint64_t i = 0; i < 2; i++) zip_set_file_compression(z, i, ZIP_CM_STORE, 0);
    require(zip_close(z) == 0 && zip_source_open(source) == 0);
    char bytes[4096];
    for (zip_int64_t n; (n = zip_source_read(source, bytes, sizeof bytes)) > 0;)
        dgm_write_bytes(&out, bytes, (size_t)n);
    zip_source_close(source);
    zip_source_free(source);
    return out;
}

static int put(void *cookie, const char *data, size_t size)
{
    dgm_write_bytes(cookie, data, size);
    return 0;
}

static void put_line(dgm_document *d, size_t index, bool same)
{
    size_t size;
    const char *line = dgm_document_line(d, index, &size);
    dgm_writer w = {0};
    for (size_t end = size; !same;) {
        size_t begin = end;
        while (begin > 0 && line[begin - 1] != ' ') begin--;
        dgm_write_bytes(&w, line + begin, end - begin);
        if (begin == 0) break;
        dgm_write_u8(&w, ' ');
        end = begin - 1;
    }
    const dgm_status st = same ? dgm_document_put(d, index, line, size, NULL, 0, NULL)
                               : dgm_document_put(d, index, (const char *)w.data, w.size, NULL, 0, NULL);
    require(st == DGM_OK);
    dgm_writer_free(&w);
}

static dgm_status count_tags(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    (void)err;
    *(size_t *)cookie += e->kind == DGM_XML_OPEN;
    return DGM_OK;
}

static size_t tags_of(dgm_text text)
{
    size_t count = 0;
    require(dgm_xml_walk(text, count_tags, &count, NULL) == DGM_OK);
    return count;
}

static void compare(const struct kind *k, const dgm_writer *out, dgm_text part)
{
    if (!k->part) {
        tags_of((dgm_text){(const char *)out->data, out->size});
        return;
    }
    dgm_zip *z;
    require(dgm_zip_open_memory(&z, out->data, out->size, NULL) == DGM_OK);
    const size_t size = (size_t)dgm_zip_size(z, 1);
    char *now = malloc(size + 1);
    require(dgm_zip_read(z, 1, 0, now, size, NULL) == DGM_OK);
    require(tags_of((dgm_text){now, size}) == tags_of(part));
    free(now);
    dgm_zip_close(&z);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    const struct kind *k = &kinds[data[0] % (sizeof kinds / sizeof *kinds)];
    const dgm_text part = {(const char *)data + 1, size - 1};
    dgm_writer file = {0};
    if (k->part) file = pack(k, part.data, part.size);
    else dgm_write_bytes(&file, part.data, part.size);
    dgm_document_options options;
    dgm_document_options_default(&options);
    options.format = k->name;
    for (int same = 0; same < 2; same++) {
        dgm_document *d;
        dgm_writer out = {0};
        if (dgm_document_open(&d, file.data, file.size, NULL, &options, NULL) != DGM_OK) break;
        for (size_t i = 0; dgm_document_line(d, i, NULL); i++) put_line(d, i, same);
        require(dgm_document_write(d, put, &out, NULL) == DGM_OK);
        compare(k, &out, part);
        if (same && k->part) require(out.size == file.size && memcmp(out.data, file.data, out.size) == 0);
        dgm_writer_free(&out);
        dgm_document_close(&d);
    }
    dgm_writer_free(&file);
    return 0;
}
