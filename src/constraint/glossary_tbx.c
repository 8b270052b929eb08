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
//
// The XML reader underneath knows what such files need: elements, attributes, comments, CDATA,
// processing instructions, a document type (skipped), the five named entities and character
// references. Nothing is ever fetched or expanded, so a file cannot grow on reading.
#include <string.h>

#include "base/mem.h"
#include "constraint/glossary.h"

enum { DEPTH_MAX = 64 };

typedef struct tbx {
    dgm_glossary *g;
    dgm_text data;
    size_t at, line;
    const char *source, *target;
    dgm_text stack[DEPTH_MAX]; // names of the open elements
    int depth;
    // The concept at hand: terms behind each other in `words`, those of both languages.
    dgm_writer words;
    struct word {
        size_t begin, size;
        bool target, dropped;
    } *list;
    size_t count, cap;
    int language;  // of the element around: 0 none of ours, 1 source, 2 target
    bool in_term, in_status;
    size_t section; // first term of the section at hand: a status behind a term is about it
    size_t term_begin, status_begin;
    dgm_writer status;
    size_t pairs; // added
} tbx;

#define FAIL(t, ...) ((void)(t), dgm_fail(err, DGM_ERR_FORMAT, __VA_ARGS__))

// ---- names -------------------------------------------------------------------------------------

static dgm_text local(dgm_text name)
{
    const char *colon = memchr(name.data, ':', name.size);
    if (!colon) return name;
    const size_t skip = (size_t)(colon - name.data) + 1;
    return (dgm_text){name.data + skip, name.size - skip};
}

static bool is(dgm_text name, const char *a, const char *b)
{
    return dgm_text_equal(name, dgm_text_of(a)) || (b && dgm_text_equal(name, dgm_text_of(b)));
}

// ---- characters --------------------------------------------------------------------------------

static bool looking_at(const tbx *t, const char *what)
{
    const size_t n = strlen(what);
    return t->data.size - t->at >= n && memcmp(t->data.data + t->at, what, n) == 0;
}

static void step(tbx *t)
{
    if (t->data.data[t->at++] == '\n') t->line++;
}

// Skips behind `end`; false: it never comes.
static bool skip_behind(tbx *t, const char *end)
{
    while (t->at < t->data.size) {
        if (looking_at(t, end)) {
            t->at += strlen(end);
            return true;
        }
        step(t);
    }
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_spaces(tbx *t)
{
    while (t->at < t->data.size && is_space(t->data.data[t->at])) step(t);
}

// "&amp;" and the like, t->at on the ampersand, into w (NULL: nowhere).
static dgm_status read_entity(tbx *t, dgm_writer *w, dgm_error *err)
{
    static const struct {
        const char *name;
        uint32_t code;
    } known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    const size_t begin = ++t->at;
    while (t->at < t->data.size && t->at - begin < 12 && t->data.data[t->at] != ';') t->at++;
    if (t->at >= t->data.size || t->data.data[t->at] != ';')
        return FAIL(t, "line %zu: '&' begins no entity", t->line);
    const dgm_text name = {t->data.data + begin, t->at++ - begin};
    uint32_t code = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (is(name, known[i].name, NULL)) code = known[i].code;
    if (name.size > 1 && name.data[0] == '#') {
        const bool hex = name.data[1] == 'x';
        for (size_t i = hex ? 2 : 1; i < name.size && code <= 0x10FFFF; i++) {
            const char c = name.data[i];
            const int digit = c >= '0' && c <= '9'          ? c - '0'
                              : hex && c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : hex && c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                            : -1;
            code = digit < 0 ? 0x110000 : code * (hex ? 16 : 10) + (uint32_t)digit;
        }
    }
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return FAIL(t, "line %zu: unknown entity '&%.*s;'", t->line, (int)name.size, name.data);
    char bytes[4];
    if (w) dgm_write_bytes(w, bytes, dgm_utf8_put(code, bytes));
    return DGM_OK;
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
    if (word_text(t, t->count).size == 0) return FAIL(t, "line %zu: an empty term", t->line);
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

static dgm_status open_element(tbx *t, dgm_text name, dgm_text language, bool status,
                               dgm_error *err)
{
    if (t->depth == DEPTH_MAX)
        return FAIL(t, "line %zu: elements are nested too deep", t->line);
    t->stack[t->depth++] = name;
    const dgm_text n = local(name);
    if (is(n, "termEntry", "conceptEntry")) {
        if (t->in_term) return FAIL(t, "line %zu: an entry inside a term", t->line);
        t->count = t->words.size = 0;
    }
    if (is(n, "langSet", "langSec")) {
        if (language.size == 0)
            return FAIL(t, "line %zu: a language section without xml:lang", t->line);
        t->language = dgm_language_agrees(language, dgm_text_of(t->source))   ? 1
                      : dgm_language_agrees(language, dgm_text_of(t->target)) ? 2
                                                                              : 0;
    }
    if (is(n, "tig", "termSec") || is(n, "ntig", NULL)) t->section = t->count;
    if (is(n, "term", NULL) && t->language) {
        t->in_term = true;
        t->term_begin = t->words.size;
    }
    if (is(n, "termNote", NULL) && status) {
        t->in_status = true;
        t->status.size = 0;
    }
    return DGM_OK;
}

static dgm_status close_element(tbx *t, dgm_text name, dgm_error *err)
{
    if (t->depth == 0 || !dgm_text_equal(t->stack[t->depth - 1], name))
        return FAIL(t, "line %zu: </%.*s> closes no open element", t->line,
                    (int)(name.size < 60 ? name.size : 60), name.data);
    t->depth--;
    const dgm_text n = local(name);
    if (is(n, "term", NULL) && t->in_term) return end_term(t, err);
    if (is(n, "termNote", NULL) && t->in_status) end_status(t);
    if (is(n, "langSet", "langSec")) t->language = 0;
    if (is(n, "termEntry", "conceptEntry")) return end_concept(t, err);
    return DGM_OK;
}

static dgm_status read_name(tbx *t, dgm_text *name, dgm_error *err)
{
    const size_t begin = t->at;
    while (t->at < t->data.size && !is_space(t->data.data[t->at]) &&
           !strchr("/>=<\"'", t->data.data[t->at]))
        t->at++;
    *name = (dgm_text){t->data.data + begin, t->at - begin};
    if (name->size == 0) return FAIL(t, "line %zu: a name was expected", t->line);
    return DGM_OK;
}

static dgm_status read_attribute(tbx *t, dgm_text *name, dgm_text *value, dgm_error *err)
{
    DGM_TRY(read_name(t, name, err));
    skip_spaces(t);
    if (t->at >= t->data.size || t->data.data[t->at] != '=')
        return FAIL(t, "line %zu: attribute '%.*s' has no value", t->line,
                    (int)(name->size < 60 ? name->size : 60), name->data);
    t->at++;
    skip_spaces(t);
    const char quote = t->at < t->data.size ? t->data.data[t->at] : 0;
    if (quote != '"' && quote != '\'')
        return FAIL(t, "line %zu: an attribute's value needs quotes", t->line);
    const size_t line = t->line, begin = ++t->at;
    while (t->at < t->data.size && t->data.data[t->at] != quote) step(t);
    if (t->at >= t->data.size) return FAIL(t, "line %zu: a quote is never closed", line);
    *value = (dgm_text){t->data.data + begin, t->at++ - begin};
    return DGM_OK;
}

// A tag, t->at behind its '<'.
static dgm_status read_tag(tbx *t, dgm_error *err)
{
    dgm_text name, language = {0};
    bool status = false;
    if (looking_at(t, "/")) {
        t->at++;
        DGM_TRY(read_name(t, &name, err));
        skip_spaces(t);
        if (!looking_at(t, ">")) return FAIL(t, "line %zu: a tag is never closed", t->line);
        t->at++;
        return close_element(t, name, err);
    }
    DGM_TRY(read_name(t, &name, err));
    for (;;) {
        skip_spaces(t);
        if (t->at >= t->data.size) return FAIL(t, "line %zu: a tag is never closed", t->line);
        if (looking_at(t, ">") || looking_at(t, "/>")) break;
        dgm_text key, value;
        DGM_TRY(read_attribute(t, &key, &value, err));
        if (is(key, "xml:lang", "lang")) language = value;
        if (is(key, "type", NULL) && is(value, "administrativeStatus", "normativeAuthorization"))
            status = true;
    }
    const bool empty = looking_at(t, "/>");
    t->at += empty ? 2 : 1;
    DGM_TRY(open_element(t, name, language, status, err));
    return empty ? close_element(t, name, err) : DGM_OK;
}

// A document type with what it declares inside brackets.
static bool skip_doctype(tbx *t)
{
    int brackets = 0;
    for (; t->at < t->data.size; step(t)) {
        const char c = t->data.data[t->at];
        brackets += c == '[' ? 1 : c == ']' ? -1 : 0;
        if (c == '>' && brackets <= 0) {
            t->at++;
            return true;
        }
    }
    return false;
}

static dgm_writer *sink(tbx *t)
{
    return t->in_term ? &t->words : t->in_status ? &t->status : NULL;
}

static dgm_status read_cdata(tbx *t, dgm_error *err)
{
    const size_t line = t->line, begin = t->at += strlen("<![CDATA[");
    if (!skip_behind(t, "]]>")) return FAIL(t, "line %zu: a CDATA section is never closed", line);
    if (sink(t)) dgm_write_bytes(sink(t), t->data.data + begin, t->at - 3 - begin);
    return DGM_OK;
}

static dgm_status read_markup(tbx *t, dgm_error *err)
{
    const size_t line = t->line;
    bool closed = true;
    if (looking_at(t, "<![CDATA[")) return read_cdata(t, err);
    if (looking_at(t, "<!--"))
        closed = skip_behind(t, "-->");
    else if (looking_at(t, "<?"))
        closed = skip_behind(t, "?>");
    else if (looking_at(t, "<!"))
        closed = skip_doctype(t);
    else {
        t->at++;
        return read_tag(t, err);
    }
    if (!closed)
        return FAIL(t, "line %zu: a comment, an instruction or the document type is never closed",
                    line);
    return DGM_OK;
}

static dgm_status read_document(tbx *t, dgm_error *err)
{
    while (t->at < t->data.size) {
        const char c = t->data.data[t->at];
        if (c == '<') {
            DGM_TRY(read_markup(t, err));
        } else if (c == '&') {
            DGM_TRY(read_entity(t, sink(t), err));
        } else {
            if (sink(t)) dgm_write_u8(sink(t), (uint8_t)(is_space(c) ? ' ' : c));
            step(t);
        }
    }
    if (t->depth > 0)
        return FAIL(t, "line %zu: <%.*s> is never closed", t->line,
                    (int)(t->stack[t->depth - 1].size < 60 ? t->stack[t->depth - 1].size : 60),
                    t->stack[t->depth - 1].data);
    if (t->words.failed || t->status.failed) return dgm_no_memory(err);
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
    tbx t = {.g = g, .data = data, .line = 1, .source = source, .target = target};
    dgm_status st = read_document(&t, err);
    if (st == DGM_OK && t.pairs == 0)
        st = dgm_fail(err, DGM_ERR_FORMAT, "no concept has terms in '%s' and '%s'", source, target);
    dgm_writer_free(&t.words);
    dgm_writer_free(&t.status);
    dgm_free(t.list);
    return st;
}
