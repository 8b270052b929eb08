// SPDX-License-Identifier: MIT
// A part of an office document is walked once: every element gets a class from its name and from what stands around it,
// and what belongs to paragraphs is noted in order.
//
// A paragraph inside another, deep in something that is no text (a text box, a footnote), is cut out into a source of
// its own, so that ranges of segments never overlap: a frame collects the source, its items, and what was cut out of it
// leaves a mark.
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/xml.h"
#include "document/office_private.h"

enum { FRAMES_MAX = 24 };

typedef enum element_class {
    OUTSIDE, // around paragraphs
    PARAGRAPH,
    AROUND,     // in a paragraph, with text of it inside
    TEXT,       // a text element
    OPAQUE,     // in a paragraph; its content is no text of it
    OPAQUE_TOP, // the outermost of these
    SKIPPED     // not looked into
} element_class;

typedef struct frame {
    dgm_writer text; // the source, as far as it was copied
    size_t copied;   // offset in the part up to where
    int depth;       // of the paragraph that it is for, 0: the part itself
    size_t object;   // where the opaque element began
    dgm_office_item *items;
    size_t count, cap;
} frame;

typedef struct part_walk {
    dgm_document *d;
    dgm_package *p;
    const dgm_office_grammar *g;
    dgm_text source;
    unsigned char classes[DGM_XML_DEPTH];
    uint64_t paths[DGM_XML_DEPTH]; // as of items
    int depth;
    frame frames[FRAMES_MAX];
    int top; // the frame at hand
} part_walk;

bool dgm_office_listed(const char *list, const char *name)
{
    const size_t n = strlen(name);
    while (list && *list) {
        const size_t m = strcspn(list, " ");
        if (m == n && memcmp(list, name, n) == 0) return true;
        list += m + (list[m] == ' ');
    }
    return false;
}

// ---- frames ------------------------------------------------------------------------------------

static size_t place(const part_walk *w, size_t offset)
{
    const frame *f = &w->frames[w->top];
    return f->text.size + (offset - f->copied);
}

static dgm_status note(part_walk *w, dgm_office_kind kind, size_t begin, size_t end, dgm_error *err)
{
    frame *f = &w->frames[w->top];
    DGM_TRY(dgm_grow(&f->items, &f->cap, f->count + 1, sizeof *f->items, err));
    f->items[f->count++] = (dgm_office_item){kind, begin, end, w->depth > 0 ? w->paths[w->depth - 1] : DGM_HASH_START};
    return DGM_OK;
}

static void copy(part_walk *w, size_t end)
{
    frame *f = &w->frames[w->top];
    dgm_write_bytes(&f->text, w->source.data + f->copied, end - f->copied);
    f->copied = end;
}

static dgm_status push_frame(part_walk *w, size_t begin, dgm_error *err)
{
    copy(w, begin);
    DGM_FAIL_IF(w->top + 1 == FRAMES_MAX, err, DGM_ERR_FORMAT, "paragraphs are nested too deep");
    w->frames[++w->top] = (frame){.copied = begin, .depth = w->depth};
    return DGM_OK;
}

static dgm_status make_segments(part_walk *w, int source, const frame *f, dgm_error *err)
{
    if (w->g->text) return dgm_office_runs(w->d, w->p, source, w->g, f->items, f->count, err);
    return dgm_office_spans(w->d, source, w->g, f->items, f->count, err);
}

// Makes a source of the frame at hand.
static dgm_status finish_frame(part_walk *w, size_t end, int *source, dgm_error *err)
{
    frame *f = &w->frames[w->top];
    size_t size;
    copy(w, end);
    char *data = dgm_writer_take(&f->text, &size);
    if (!data) return dgm_no_memory(err);
    DGM_TRY(dgm_document_add_source(w->d, data, size, source, err));
    const dgm_status st = make_segments(w, *source, f, err);
    dgm_free(f->items);
    *f = (frame){0};
    return st;
}

static dgm_status pop_frame(part_walk *w, size_t end, dgm_error *err)
{
    int source;
    DGM_TRY(finish_frame(w, end, &source, err));
    frame *f = &w->frames[--w->top];
    const size_t begin = f->text.size;
    const element_class outer = (element_class)w->classes[w->depth - 1];
    dgm_write_format(&f->text, "%c%d%c", DGM_MARK_BEGIN, source, DGM_MARK_END);
    f->copied = end;
    // In a note or a frame it is part of that object; a paragraph that stands in another one's text is one by itself.
    return outer == PARAGRAPH || outer == AROUND ? note(w, DGM_OFFICE_OBJECT, begin, f->text.size, err) : DGM_OK;
}

// ---- elements ----------------------------------------------------------------------------------

static element_class classify(const part_walk *w, const char *name)
{
    const element_class outer = w->depth > 0 ? (element_class)w->classes[w->depth - 1] : OUTSIDE;
    if (outer == SKIPPED || dgm_office_listed(w->g->skip, name))
        return outer == PARAGRAPH || outer == AROUND ? OPAQUE_TOP : SKIPPED;
    if (dgm_office_listed(w->g->paragraph, name) && outer != TEXT) return PARAGRAPH;
    switch (outer) {
    case OUTSIDE:
        return OUTSIDE;
    case OPAQUE:
    case OPAQUE_TOP:
        return OPAQUE;
    case TEXT:
        return OPAQUE_TOP;
    default:
        if (dgm_office_listed(w->g->text, name)) return TEXT;
        return dgm_office_listed(w->g->run, name) || dgm_office_listed(w->g->around, name) ? AROUND : OPAQUE_TOP;
    }
}

static uint64_t path_of(const part_walk *w, element_class own, const char *name)
{
    const bool counts = own == TEXT || (own == AROUND && dgm_office_listed(w->g->run, dgm_xml_local(name)));
    return counts ? dgm_hash_bytes(w->paths[w->depth - 1], name, strlen(name) + 1) : DGM_HASH_START;
}

// Fields of Word are three characters in runs of their own: the field's begin, its separator, its end.
static dgm_status note_field(part_walk *w, const dgm_xml_event *e, dgm_error *err)
{
    for (size_t i = 0; e->attributes[i]; i += 2) {
        if (strcmp(dgm_xml_local(e->attributes[i]), "fldCharType") != 0) continue;
        const char *type = e->attributes[i + 1];
        const size_t at = place(w, e->begin);
        if (strcmp(type, "begin") == 0) return note(w, DGM_OFFICE_FIELD, at, at, err);
        if (strcmp(type, "end") == 0) return note(w, DGM_OFFICE_FIELD_END, at, at, err);
    }
    return DGM_OK;
}

static dgm_status open_element(part_walk *w, const dgm_xml_event *e, dgm_error *err)
{
    const char *name = dgm_xml_local(e->name);
    const element_class outer = w->depth > 0 ? (element_class)w->classes[w->depth - 1] : OUTSIDE;
    const element_class own = classify(w, name);
    if (own == PARAGRAPH && outer != OUTSIDE) DGM_TRY(push_frame(w, e->begin, err));
    w->paths[w->depth] = path_of(w, own, e->name);
    w->classes[w->depth++] = (unsigned char)own;
    const size_t begin = place(w, e->begin), end = place(w, e->end);
    switch (own) {
    case PARAGRAPH:
        return note(w, DGM_OFFICE_PARAGRAPH, begin, end, err);
    case TEXT:
        return note(w, DGM_OFFICE_TEXT_TAG, begin, end, err);
    case AROUND:
        return note(w, dgm_office_listed(w->g->run, name) ? DGM_OFFICE_RUN : DGM_OFFICE_OPEN, begin, end, err);
    case OPAQUE_TOP:
        w->frames[w->top].object = begin;
        return outer != TEXT && strcmp(name, "fldChar") == 0 ? note_field(w, e, err) : DGM_OK;
    default:
        return DGM_OK;
    }
}

static dgm_office_kind object_kind(const part_walk *w, const char *name)
{
    if (dgm_office_listed(w->g->breaks, name)) return DGM_OFFICE_BREAK;
    return strcmp(name, "rPr") == 0 ? DGM_OFFICE_PROPERTIES : DGM_OFFICE_OBJECT;
}

static dgm_status close_element(part_walk *w, const dgm_xml_event *e, dgm_error *err)
{
    const char *name = dgm_xml_local(e->name);
    const element_class own = (element_class)w->classes[--w->depth];
    const size_t begin = place(w, e->begin), end = place(w, e->end);
    switch (own) {
    case PARAGRAPH:
        DGM_TRY(note(w, DGM_OFFICE_END, begin, end, err));
        if (w->top > 0 && w->frames[w->top].depth == w->depth) return pop_frame(w, e->end, err);
        return DGM_OK;
    case AROUND:
        return dgm_office_listed(w->g->run, name) ? DGM_OK : note(w, DGM_OFFICE_CLOSE, begin, end, err);
    case OPAQUE_TOP:
        return note(w, object_kind(w, name), w->frames[w->top].object, end, err);
    default:
        return DGM_OK;
    }
}

// Text that is written in a way of its own (CDATA), references to entities and comments stay as they are.
static dgm_status inside(part_walk *w, const dgm_xml_event *e, dgm_error *err)
{
    const element_class own = w->depth > 0 ? (element_class)w->classes[w->depth - 1] : OUTSIDE;
    const bool in_text = own == TEXT || (!w->g->text && (own == PARAGRAPH || own == AROUND));
    if (!in_text) return DGM_OK;
    const bool plain = e->kind == DGM_XML_TEXT && w->source.data[e->begin] != '<';
    return note(w, plain ? DGM_OFFICE_TEXT : DGM_OFFICE_OBJECT, place(w, e->begin), place(w, e->end), err);
}

static dgm_status take(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    part_walk *w = cookie;
    switch (e->kind) {
    case DGM_XML_OPEN:
        return open_element(w, e, err);
    case DGM_XML_CLOSE:
        return close_element(w, e, err);
    default:
        return inside(w, e, err);
    }
}

dgm_status dgm_office_part(dgm_document *d, dgm_package *p, size_t member, const dgm_office_grammar *g, dgm_error *err)
{
    part_walk w = {.d = d, .p = p, .g = g};
    char *data;
    int source;
    DGM_TRY(dgm_package_load(p, member, &data, &w.source.size, err));
    w.source.data = data;
    dgm_status st = dgm_xml_walk(w.source, take, &w, err);
    if (st == DGM_OK) st = finish_frame(&w, w.source.size, &source, err);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "%s", dgm_zip_name(dgm_package_zip(p), member));
    for (int i = 0; i <= w.top; i++) {
        dgm_writer_free(&w.frames[i].text);
        dgm_free(w.frames[i].items);
    }
    dgm_free(data);
    return st == DGM_OK ? dgm_package_part(p, member, source, true, err) : st;
}
