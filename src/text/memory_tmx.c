// SPDX-License-Identifier: MIT
// TMX (Translation Memory eXchange 1.4): units of one segment per language.
//
//     <tu><tuv xml:lang="en"><seg>Press <bpt i="1">&lt;b></bpt>Enter<ept i="1">&lt;/b></ept>.</seg></tuv>
//         <tuv xml:lang="de"><seg>...</seg></tuv></tu>
//
// What stands in the elements of a segment is code, but for <hi>, which highlights text.
#include <string.h>

#include "base/encoding.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "base/textfile.h"
#include "base/xml.h"
#include "text/language_code.h"
#include "text/memory_private.h"

typedef struct tmx {
    dgm_memory *m;
    dgm_writer texts[2]; // of the unit at hand: source, target
    bool has[2];
    int side;   // of the variant at hand; -1: another language, or none
    bool in_segment, found;
    int code; // depth of elements in a segment that are code
} tmx;

// ---- reading -------------------------------------------------------------------------------------

static void open_variant(tmx *t, const dgm_xml_event *e)
{
    const char *code = dgm_xml_attribute(e, "xml:lang");
    if (!code) code = dgm_xml_attribute(e, "lang");
    const dgm_text language = dgm_text_of(code);
    t->side = dgm_language_agrees(language, dgm_text_of(t->m->source))   ? 0
              : dgm_language_agrees(language, dgm_text_of(t->m->target)) ? 1
                                                                         : -1;
    if (t->side >= 0 && t->has[t->side]) t->side = -1; // "en-US" and "en-GB": the first of them
}

static void open_element(tmx *t, const dgm_xml_event *e)
{
    const char *name = e->name;
    if (t->in_segment) {
        if (t->code > 0 || strcmp(name, "hi") != 0) t->code++;
    } else if (strcmp(name, "tmx") == 0) {
        t->found = true;
    } else if (strcmp(name, "tu") == 0) {
        t->has[0] = t->has[1] = false;
        t->texts[0].size = t->texts[1].size = 0;
    } else if (strcmp(name, "tuv") == 0) {
        open_variant(t, e);
    } else if (strcmp(name, "seg") == 0) {
        t->in_segment = true;
    }
}

static dgm_status end_unit(tmx *t, dgm_error *err)
{
    const dgm_writer *a = &t->texts[0], *b = &t->texts[1];
    if (!t->has[0] || !t->has[1]) return DGM_OK;
    if (a->failed || b->failed) return dgm_no_memory(err);
    return dgm_memory_add(t->m, (const char *)a->data, a->size, (const char *)b->data, b->size, err);
}

static dgm_status close_element(tmx *t, const char *name, dgm_error *err)
{
    if (t->code > 0) {
        t->code--;
    } else if (strcmp(name, "seg") == 0) {
        t->in_segment = false;
        if (t->side >= 0) t->has[t->side] = true;
        t->side = -1;
    } else if (strcmp(name, "tu") == 0) {
        return end_unit(t, err);
    }
    return DGM_OK;
}

static dgm_status take(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    tmx *t = cookie;
    if (e->kind == DGM_XML_OPEN) open_element(t, e);
    if (e->kind == DGM_XML_CLOSE) return close_element(t, e->name, err);
    if (e->kind == DGM_XML_TEXT && t->in_segment && t->code == 0 && t->side >= 0)
        dgm_write_bytes(&t->texts[t->side], e->text.data, e->text.size);
    return DGM_OK;
}

static dgm_status read_utf8(dgm_memory *m, dgm_text text, dgm_error *err)
{
    tmx t = {.m = m, .side = -1};
    dgm_status st = dgm_xml_walk(text, take, &t, err);
    if (st == DGM_OK && !t.found) st = dgm_fail(err, DGM_ERR_FORMAT, "no TMX: its outermost element is not <tmx>");
    dgm_writer_free(&t.texts[0]);
    dgm_writer_free(&t.texts[1]);
    return st;
}

dgm_status dgm_memory_read_text(dgm_memory *m, const char *text, size_t size, dgm_error *err)
{
    DGM_FAIL_IF(!m || (!text && size), err, DGM_ERR_ARGUMENT, "dgm_memory_read_text needs a memory and a text");
    const dgm_encoding encoding = size ? dgm_encoding_guess(text, size) : DGM_ENCODING_UTF8;
    if (encoding == DGM_ENCODING_UTF8) return read_utf8(m, (dgm_text){size ? text : "", size}, err);
    char *utf8 = size < SIZE_MAX / DGM_ENCODING_GROWTH ? dgm_malloc(size * DGM_ENCODING_GROWTH) : NULL;
    if (!utf8) return dgm_no_memory(err);
    const dgm_converted c = dgm_encoding_convert(encoding, text, size, true, utf8);
    const dgm_status st = c.wrong ? dgm_fail(err, DGM_ERR_FORMAT, "%s", c.wrong)
                                  : read_utf8(m, (dgm_text){utf8, c.made}, err);
    dgm_free(utf8);
    return st;
}

dgm_status dgm_memory_read(dgm_memory *m, const char *path, dgm_error *err)
{
    DGM_FAIL_IF(!m || !path, err, DGM_ERR_ARGUMENT, "dgm_memory_read needs a memory and a file");
    dgm_mapfile file = {0};
    dgm_writer unpacked = {0};
    DGM_TRY(dgm_mapfile_open(&file, path, err));
    const bool packed = file.size > 2 && memcmp(file.data, "\x1f\x8b", 2) == 0;
    dgm_status st = packed ? dgm_lines_collect(path, &unpacked, err) : DGM_OK;
    if (st == DGM_OK) {
        st = packed ? dgm_memory_read_text(m, (const char *)unpacked.data, unpacked.size, err)
                    : dgm_memory_read_text(m, (const char *)file.data, file.size, err);
        if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "'%s'", path);
    }
    dgm_writer_free(&unpacked);
    dgm_mapfile_close(&file);
    return st;
}

// ---- writing -------------------------------------------------------------------------------------

static void write_variant(dgm_writer *w, const char *language, dgm_text text)
{
    dgm_write_text(w, "<tuv xml:lang=\"");
    dgm_xml_write_attribute(w, dgm_text_of(language));
    dgm_write_text(w, "\"><seg>");
    dgm_xml_write(w, text);
    dgm_write_text(w, "</seg></tuv>");
}

static void write_all(const dgm_memory *m, dgm_writer *w)
{
    dgm_write_text(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tmx version=\"1.4\">\n<header "
                      "creationtool=\"dragoman\" creationtoolversion=\"" DGM_VERSION
                      "\" segtype=\"sentence\" o-tmf=\"dragoman\" adminlang=\"en\" srclang=\"");
    dgm_xml_write_attribute(w, dgm_text_of(m->source));
    dgm_write_text(w, "\" datatype=\"plaintext\"/>\n<body>\n");
    for (size_t i = 0; i < m->sources.count; i++) {
        const dgm_memory_target *t = &m->targets[i];
        dgm_write_text(w, "<tu>");
        write_variant(w, m->source, dgm_words_spell(&m->sources, (uint32_t)i));
        write_variant(w, m->target, (dgm_text){(const char *)m->pool.data + t->begin, t->size});
        dgm_write_text(w, "</tu>\n");
    }
    dgm_write_text(w, "</body>\n</tmx>\n");
}

dgm_status dgm_memory_text(const dgm_memory *m, char **text, size_t *size, dgm_error *err)
{
    DGM_FAIL_IF(!m || !text, err, DGM_ERR_ARGUMENT, "dgm_memory_text needs a memory and a place for its text");
    dgm_writer w = {0};
    write_all(m, &w);
    *text = dgm_writer_take(&w, size);
    return *text ? DGM_OK : dgm_no_memory(err);
}

dgm_status dgm_memory_write(const dgm_memory *m, const char *path, dgm_error *err)
{
    DGM_FAIL_IF(!m || !path, err, DGM_ERR_ARGUMENT, "dgm_memory_write needs a memory and a file");
    char *text;
    size_t size;
    dgm_textout *out;
    DGM_TRY(dgm_memory_text(m, &text, &size, err));
    dgm_status st = dgm_textout_open(&out, path, err);
    if (st == DGM_OK) {
        dgm_textout_write(out, text, size);
        st = dgm_textout_commit(&out, err);
    }
    dgm_free(text);
    return st;
}
