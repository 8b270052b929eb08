// SPDX-License-Identifier: MIT
// PO files of gettext: msgstr is filled from msgid, its plural forms from msgid and msgid_plural. Entries that have a
// translation stay unless all are asked for; the mark of fuzzy ones and their former msgid go.
//
// A text may stand in several strings, one below the other; what is in the quotes is joined in a source of its own,
// so that tags and escapes can be found across them.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "document/document.h"
#include "document/po_format.h"
#include "document/wrap.h"

enum { FORMS_MAX = 8 };

// Strings behind a keyword: from the first quote to behind the last.
typedef struct strings {
    size_t begin, end;
    bool there, empty;
} strings;

typedef struct entry {
    strings id, plural, str[FORMS_MAX];
    size_t forms;
    size_t flag_begin, flag_end;     // "fuzzy" with its comma, or the whole line
    size_t former_begin, former_end; // lines of "#|"
    bool fuzzy;
    dgm_po_format format;
} entry;

typedef struct po {
    dgm_document *d;
    dgm_text t;
    entry e;
    strings context; // is not looked at
    strings *last;   // where a string without a keyword goes
} po;

static bool begins(dgm_text t, size_t pos, const char *with)
{
    const size_t n = strlen(with);
    return pos + n <= t.size && memcmp(t.data + pos, with, n) == 0;
}

static dgm_status damaged(const po *p, size_t at, const char *what, dgm_error *err)
{
    return dgm_fail(err, DGM_ERR_FORMAT, "line %zu: %s", dgm_source_line(p->d, 0, at), what);
}

// ---- writing --------------------------------------------------------------------------------------

// In lines of at most 77 columns, cut behind "\n" and spaces, as gettext does it.
static void put_lines(dgm_text text, dgm_writer *out)
{
    dgm_write_text(out, "\"\"");
    for (size_t at = 0; at < text.size;) {
        size_t end = text.size, next = 0;
        for (size_t i = at; i + 1 < text.size; i++) {
            if (text.data[i] != '\\') continue;
            if (text.data[i + 1] == 'n') {
                end = i + 2;
                break;
            }
            i++;
        }
        const dgm_text row = {text.data, end};
        dgm_wrap_line(row, at, 75, &next);
        if (next <= at || next > end) next = end;
        dgm_write_text(out, "\n\"");
        dgm_write_bytes(out, text.data + at, next - at);
        dgm_write_text(out, "\"");
        at = next;
    }
}

static bool has_inner_break(dgm_text t)
{
    for (size_t i = 0; i + 2 < t.size; i++) {
        if (t.data[i] != '\\') continue;
        if (t.data[i + 1] == 'n') return true;
        i++;
    }
    return false;
}

typedef struct form {
    dgm_text id; // what is between the quotes of the source text
    dgm_po_format format;
} form;

typedef struct forms { // of the document
    form *items;
    size_t count, cap;
} forms;

static void release_forms(void *state)
{
    forms *f = state;
    dgm_free(f->items);
    dgm_free(f);
}

static dgm_status write_string(const dgm_document *d, size_t index, dgm_text encoded, dgm_writer *out, dgm_error *err)
{
    const forms *f = dgm_document_state(d);
    const form *own = &f->items[(size_t)(uintptr_t)dgm_segment_user(d, index)];
    dgm_writer checked = {0};
    dgm_status st = dgm_po_check(own->id, encoded, own->format, &checked, err);
    const dgm_text text = {checked.data ? (const char *)checked.data : "", checked.size};
    if (st == DGM_OK && (has_inner_break(text) || dgm_wrap_columns(text) > 70)) {
        put_lines(text, out);
    } else if (st == DGM_OK) {
        dgm_write_u8(out, '"');
        dgm_write_bytes(out, text.data, text.size);
        dgm_write_u8(out, '"');
    }
    dgm_writer_free(&checked);
    return st;
}

// ---- entries --------------------------------------------------------------------------------------

// What is in the quotes, joined, as part of a source that lives as long as the document.
static dgm_status join(po *p, const strings *s, dgm_text *out, dgm_error *err)
{
    char *data = dgm_malloc(s->end - s->begin + 1);
    size_t size = 0;
    int source = 0;
    bool inside = false;
    if (!data) return dgm_no_memory(err);
    for (size_t i = s->begin; i < s->end; i++) {
        if (p->t.data[i] == '"') {
            inside = !inside;
        } else if (inside) {
            data[size++] = p->t.data[i];
            if (p->t.data[i] == '\\' && i + 1 < s->end) data[size++] = p->t.data[++i];
        }
    }
    DGM_TRY(dgm_document_add_source(p->d, data, size, &source, err));
    *out = dgm_document_source(p->d, source);
    return DGM_OK;
}

static dgm_status add_form(po *p, const strings *from, const strings *to, size_t *segment, dgm_error *err)
{
    forms *f = dgm_document_state(p->d);
    dgm_text id = {NULL, 0};
    DGM_TRY(join(p, from, &id, err));
    DGM_TRY(dgm_grow(&f->items, &f->cap, f->count + 1, sizeof *f->items, err));
    f->items[f->count] = (form){id, p->e.format};
    const dgm_segment_spec spec = {.begin = to->begin,
                                   .end = to->end,
                                   .escape = &dgm_escape_po,
                                   .write = write_string,
                                   .flags = DGM_SEGMENT_LINES | DGM_SEGMENT_TAGS | DGM_SEGMENT_ICU,
                                   .user = (void *)(uintptr_t)f->count++};
    DGM_TRY(dgm_segment_begin(p->d, &spec, segment, err));
    DGM_TRY(dgm_segment_raw(p->d, id, err));
    return dgm_segment_end(p->d, err);
}

static bool is_wanted(const po *p)
{
    bool empty = true;
    for (size_t i = 0; i < p->e.forms; i++) empty = empty && p->e.str[i].empty;
    return p->e.id.there && !p->e.id.empty && p->e.forms && (empty || p->e.fuzzy || dgm_document_asked(p->d)->all);
}

static dgm_status finish_entry(po *p, dgm_error *err)
{
    entry *e = &p->e;
    size_t segment = 0;
    for (size_t i = 0; is_wanted(p) && i < e->forms; i++) {
        const bool many = e->plural.there && (i > 0 || e->forms == 1);
        DGM_TRY(add_form(p, many ? &e->plural : &e->id, &e->str[i], &segment, err));
        if (i > 0 || !e->fuzzy) continue;
        DGM_TRY(dgm_document_replace(p->d, 0, e->flag_begin, e->flag_end, dgm_text_of(""), segment, err));
        if (e->former_end > e->former_begin)
            DGM_TRY(dgm_document_replace(p->d, 0, e->former_begin, e->former_end, dgm_text_of(""), segment, err));
    }
    *e = (entry){.forms = 0};
    p->last = NULL;
    return DGM_OK;
}

// ---- lines ----------------------------------------------------------------------------------------

// "#, fuzzy, c-format": where the word goes with its comma, or all of the line.
static void read_flags(po *p, size_t begin, size_t end, size_t next)
{
    entry *e = &p->e;
    const dgm_text flags = {p->t.data + begin, end - begin};
    const dgm_po_format format = dgm_po_format_of(flags);
    if (format) e->format = format;
    for (size_t i = begin; i + 5 <= end; i++) {
        if (!begins(p->t, i, "fuzzy")) continue;
        e->fuzzy = true;
        e->flag_begin = i;
        e->flag_end = i + 5;
        while (e->flag_end < end && (p->t.data[e->flag_end] == ',' || p->t.data[e->flag_end] == ' ')) e->flag_end++;
        size_t before = i;
        while (before > begin && (p->t.data[before - 1] == ' ' || p->t.data[before - 1] == ',')) before--;
        if (e->flag_end == end) e->flag_begin = before; // the last word: the comma before it
        if (e->flag_end == end && before == begin) {    // the only one
            e->flag_begin = begin;
            e->flag_end = next;
        }
        return;
    }
}

// The string at pos, in a line that ends at `end`.
static dgm_status read_string(po *p, size_t pos, size_t end, dgm_error *err)
{
    if (!p->last) return damaged(p, pos, "a string without msgid or msgstr", err);
    size_t close = pos + 1;
    while (close < end && p->t.data[close] != '"') close += p->t.data[close] == '\\' ? 2 : 1;
    if (close >= end) return damaged(p, pos, "a string without its closing quote", err);
    for (size_t i = close + 1; i < end; i++)
        if (p->t.data[i] != ' ' && p->t.data[i] != '\t')
            return damaged(p, i, "something stands behind a string", err);
    if (!p->last->there) *p->last = (strings){.begin = pos, .there = true, .empty = true};
    p->last->end = close + 1;
    p->last->empty = p->last->empty && close == pos + 1;
    return DGM_OK;
}

// Which strings a keyword begins; NULL: it is none. *size: of the keyword.
static strings *keyword_at(po *p, size_t pos, size_t *size)
{
    entry *e = &p->e;
    *size = 7;
    if (begins(p->t, pos, "msgctxt")) {
        p->context = (strings){.begin = 0};
        return &p->context;
    }
    *size = 12;
    if (begins(p->t, pos, "msgid_plural")) return &e->plural;
    *size = 5;
    if (begins(p->t, pos, "msgid")) return &e->id;
    *size = 9;
    if (begins(p->t, pos, "msgstr[") && pos + 8 < p->t.size && p->t.data[pos + 8] == ']') {
        const size_t number = (size_t)(p->t.data[pos + 7] - '0');
        if (number >= FORMS_MAX || number != e->forms) return NULL;
        return &e->str[e->forms++];
    }
    *size = 6;
    if (!begins(p->t, pos, "msgstr") || e->forms) return NULL;
    return &e->str[e->forms++];
}

static dgm_status read_keyword(po *p, size_t pos, size_t end, dgm_error *err)
{
    size_t size = 0;
    const bool fresh =
        begins(p->t, pos, "msgctxt") || (begins(p->t, pos, "msgid") && !begins(p->t, pos, "msgid_plural"));
    if (fresh && p->e.forms) DGM_TRY(finish_entry(p, err));
    p->last = keyword_at(p, pos, &size);
    if (!p->last || p->last->there)
        return damaged(p, pos, "neither a comment nor msgid, msgid_plural or msgstr in its order", err);
    pos += size;
    while (pos < end && (p->t.data[pos] == ' ' || p->t.data[pos] == '\t')) pos++;
    if (pos >= end || p->t.data[pos] != '"') return damaged(p, pos, "a string in quotes is expected", err);
    return read_string(p, pos, end, err);
}

static dgm_status read_comment(po *p, size_t begin, size_t end, size_t next, dgm_error *err)
{
    if (p->e.forms) DGM_TRY(finish_entry(p, err));
    if (begins(p->t, begin, "#,")) read_flags(p, begin + 1, end, next);
    // The whole line goes when "fuzzy" is all it says.
    if (p->e.fuzzy && p->e.flag_begin == begin + 1) p->e.flag_begin = begin;
    if (begins(p->t, begin, "#|")) {
        if (!p->e.former_end) p->e.former_begin = begin;
        p->e.former_end = next;
    }
    return DGM_OK;
}

static dgm_status read_entries(po *p, dgm_error *err)
{
    for (size_t at = 0; at < p->t.size;) {
        const char *stop = memchr(p->t.data + at, '\n', p->t.size - at);
        const size_t next = stop ? (size_t)(stop - p->t.data) + 1 : p->t.size;
        size_t begin = at, end = stop ? next - 1 : next;
        if (end > at && p->t.data[end - 1] == '\r') end--;
        while (begin < end && (p->t.data[begin] == ' ' || p->t.data[begin] == '\t')) begin++;
        if (begin == end) {
            if (p->e.forms) DGM_TRY(finish_entry(p, err));
        } else if (p->t.data[begin] == '#') {
            DGM_TRY(read_comment(p, begin, end, next, err));
        } else if (p->t.data[begin] == '"') {
            DGM_TRY(read_string(p, begin, end, err));
        } else {
            DGM_TRY(read_keyword(p, begin, end, err));
        }
        at = next;
    }
    if (p->e.id.there && !p->e.forms) return damaged(p, p->t.size, "the last entry has no msgstr", err);
    return finish_entry(p, err);
}

static dgm_status read_po(dgm_document *d, dgm_error *err)
{
    po p = {.d = d, .t = dgm_document_source(d, 0)};
    forms *f = dgm_calloc(1, sizeof *f);
    if (!f) return dgm_no_memory(err);
    dgm_document_set_state(d, f, release_forms);
    return read_entries(&p, err);
}

const dgm_document_reader dgm_po_reader = {
    .format = DGM_FORMAT("po", "po pot", "messages of gettext: empty and fuzzy ones, or all"),
    .read = read_po,
};
