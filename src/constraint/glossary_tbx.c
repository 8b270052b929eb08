// SPDX-License-Identifier: MIT
// Glossaries in TBX (ISO 30042), both generations of element names:
//
//     <termEntry>                         <conceptEntry>
//       <langSet xml:lang="en">             <langSec xml:lang="en">
//         <tig><term>house</term></tig>       <termSec><term>house</term></termSec>
//       </langSet>                          </langSec>
//
// Every term of a concept in the source language gets all of its terms in the target language as
// variants. A term whose administrative status is deprecated or superseded is left out. Everything
// else in the file is skipped.
#include <string.h>

#include "base/mem.h"
#include "base/xml.h"
#include "constraint/glossary.h"
#include "text/language_code.h"

typedef struct tbx {
    dgm_glossary *g;
    dgm_text data;
    const char *source, *target;
    // The concept at hand: terms behind each other in `words`, those of both languages.
    dgm_writer words;
    struct word {
        size_t begin, size;
        bool target, dropped;
    } *list;
    size_t count, cap;
    int language; // of the element around: 0 none of ours, 1 source, 2 target
    bool in_term, in_status;
    size_t section; // first term of the section at hand: a status behind a term is about it
    size_t term_begin;
    dgm_writer status;
    size_t pairs; // added
} tbx;

static bool is(const char *name, const char *a, const char *b)
{
    return strcmp(name, a) == 0 || (b && strcmp(name, b) == 0);
}

// ---- the concept -------------------------------------------------------------------------------

static dgm_text word_text(const tbx *t, size_t i)
{
    if (t->list[i].size == 0) return (dgm_text){"", 0};
    return dgm_text_trim(
        (dgm_text){(const char *)t->words.data + t->list[i].begin, t->list[i].size});
}

static dgm_status end_term(tbx *t, dgm_error *err)
{
    t->in_term = false;
    if (t->words.failed) return dgm_no_memory(err);
    DGM_TRY(dgm_grow(&t->list, &t->cap, t->count + 1, sizeof *t->list, err));
    t->list[t->count] = (struct word){.begin = t->term_begin,
                                      .size = t->words.size - t->term_begin,
                                      .target = t->language == 2};
    DGM_FAIL_IF(word_text(t, t->count).size == 0, err, DGM_ERR_FORMAT, "an empty term");
    t->count++;
    return DGM_OK;
}

static bool holds(const dgm_writer *w, const char *word)
{
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= w->size; i++)
        if (memcmp(w->data + i, word, n) == 0) return true;
    return false;
}

static void end_status(tbx *t)
{
    t->in_status = false;
    if (!holds(&t->status, "deprecated") && !holds(&t->status, "superseded")) return;
    for (size_t i = t->section; i < t->count; i++) t->list[i].dropped = true;
}

static dgm_status end_concept(tbx *t, dgm_error *err)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->list[i].target || t->list[i].dropped) continue;
        for (size_t k = 0; k < t->count; k++) {
            if (!t->list[k].target || t->list[k].dropped) continue;
            DGM_TRY(dgm_glossary_add(t->g, word_text(t, i), word_text(t, k), err));
            t->pairs++;
        }
    }
    t->count = t->words.size = 0;
    return DGM_OK;
}

// ---- elements ----------------------------------------------------------------------------------

static dgm_status open_language(tbx *t, const dgm_xml_event *e, dgm_error *err)
{
    const char *code = dgm_xml_attribute(e, "xml:lang");
    if (!code) code = dgm_xml_attribute(e, "lang");
    DGM_FAIL_IF(!code || !code[0], err, DGM_ERR_FORMAT, "a language section without xml:lang");
    const dgm_text language = dgm_text_of(code);
    t->language = dgm_language_agrees(language, dgm_text_of(t->source))   ? 1
                  : dgm_language_agrees(language, dgm_text_of(t->target)) ? 2
                                                                          : 0;
    return DGM_OK;
}

static dgm_status open_element(tbx *t, const dgm_xml_event *e, dgm_error *err)
{
    const char *name = dgm_xml_local(e->name);
    if (is(name, "termEntry", "conceptEntry")) {
        DGM_FAIL_IF(t->in_term, err, DGM_ERR_FORMAT, "an entry inside a term");
        t->count = t->words.size = 0;
    }
    if (is(name, "langSet", "langSec")) return open_language(t, e, err);
    if (is(name, "tig", "termSec") || is(name, "ntig", NULL)) t->section = t->count;
    if (is(name, "term", NULL) && t->language) {
        t->in_term = true;
        t->term_begin = t->words.size;
    }
    const char *type = dgm_xml_attribute(e, "type");
    if (is(name, "termNote", NULL) && type && is(type, "administrativeStatus", "normativeAuthorization")) {
        t->in_status = true;
        t->status.size = 0;
    }
    return DGM_OK;
}

static dgm_status close_element(tbx *t, const char *name, dgm_error *err)
{
    if (is(name, "term", NULL) && t->in_term) return end_term(t, err);
    if (is(name, "termNote", NULL) && t->in_status) end_status(t);
    if (is(name, "langSet", "langSec")) t->language = 0;
    if (is(name, "termEntry", "conceptEntry")) return end_concept(t, err);
    return DGM_OK;
}

// A term is one line: whatever is space in the file becomes a blank.
static void add_text(tbx *t, dgm_text text)
{
    dgm_writer *w = t->in_term ? &t->words : t->in_status ? &t->status : NULL;
    for (size_t i = 0; w && i < text.size; i++) {
        const char c = text.data[i];
        dgm_write_u8(w, (uint8_t)(c == '\t' || c == '\n' || c == '\r' ? ' ' : c));
    }
}

static dgm_status take(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    tbx *t = cookie;
    switch (e->kind) {
    case DGM_XML_OPEN:
        return open_element(t, e, err);
    case DGM_XML_CLOSE:
        return close_element(t, dgm_xml_local(e->name), err);
    case DGM_XML_TEXT:
        add_text(t, e->text);
        return DGM_OK;
    case DGM_XML_ENTITY:
        return dgm_fail(err, DGM_ERR_FORMAT, "unknown entity '%.*s'",
                        (int)(e->end - e->begin < 60 ? e->end - e->begin : 60), t->data.data + e->begin);
    default:
        return DGM_OK;
    }
}

static dgm_status read_document(tbx *t, dgm_error *err)
{
    DGM_TRY(dgm_xml_walk(t->data, take, t, err));
    if (t->words.failed || t->status.failed) return dgm_no_memory(err);
    DGM_FAIL_IF(t->pairs == 0, err, DGM_ERR_UNSUPPORTED, "no concept has terms in '%s' and '%s'", t->source, t->target);
    return DGM_OK;
}

static size_t line_of(dgm_text data, size_t at)
{
    size_t line = 1;
    for (size_t i = 0; i < at; i++) line += data.data[i] == '\n';
    return line;
}

dgm_status dgm_glossary_tbx(dgm_glossary *g, dgm_text data, const char *source, const char *target,
                            dgm_error *err)
{
    DGM_FAIL_IF(
        !source[0] || !target[0], err, DGM_ERR_UNSUPPORTED,
        "a TBX glossary requires a model that names its languages, and this one does not: use "
        "a TSV glossary");
    const size_t bad = dgm_utf8_first_bad(data);
    DGM_FAIL_IF(bad < data.size, err, DGM_ERR_FORMAT, "line %zu: invalid UTF-8",
                line_of(data, bad));
    tbx t = {.g = g, .data = data, .source = source, .target = target};
    const dgm_status st = read_document(&t, err);
    dgm_writer_free(&t.words);
    dgm_writer_free(&t.status);
    dgm_free(t.list);
    return st;
}
