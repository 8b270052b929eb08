// SPDX-License-Identifier: MIT
// Paragraphs that are rows of runs (docx, pptx, xlsx): the text elements are texts, and the glue between two of them is
// a tag.
//
//     <w:r><w:t>Press </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>Enter</w:t></w:r><w:r><w:t> twice.</w:t></w:r>
//               text  [------------------ glue -------------]text [----- glue -----] text
//
// Glue that changes the properties of runs and glue that changes them back are a pair. So are the glue in which an
// element around runs begins (a link, an insertion, a field) and that in which it ends: these must stay nested, or the
// file is no XML any more. Where glue ends one such element and begins another, or one of them is cut by the
// paragraph's first or last text, and there are others, the paragraph becomes several segments, between which all glue
// stays. So it does where glue leads from a text in a run to one without, or the names of the two differ: elsewhere it
// would not end what it is put into.
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "document/office_private.h"

enum { OPEN_MAX = 64 };

typedef enum glue_role { GLUE_EMPTY, GLUE_OPEN, GLUE_CLOSE, GLUE_BREAK } glue_role;

// A text and the glue before it.
typedef struct chunk {
    size_t begin, end;
    size_t tag;        // where its text element begins
    uint64_t format;   // of its run
    uint64_t path;     // of its elements
    int opens, closes; // elements around runs that begin and end in the glue, after what does both
    bool breaks;
    glue_role role;
    size_t partner; // of an open or close: the chunk behind the other glue
    int pair;
} chunk;

typedef struct paragraph {
    dgm_document *d;
    dgm_package *p;
    const dgm_office_grammar *g;
    int source;
    dgm_text text;
    chunk *chunks;
    size_t count, cap;
} paragraph;

// ---- what there is -----------------------------------------------------------------------------

static dgm_status add_chunk(paragraph *p, const dgm_office_item *item, chunk *glue, dgm_error *err)
{
    DGM_TRY(dgm_grow(&p->chunks, &p->cap, p->count + 1, sizeof *p->chunks, err));
    glue->begin = item->begin;
    glue->end = item->end;
    p->chunks[p->count++] = *glue;
    glue->opens = glue->closes = 0;
    glue->breaks = false;
    return DGM_OK;
}

static void count_element(chunk *glue, bool opens)
{
    if (opens)
        glue->opens++;
    else if (glue->opens > 0)
        glue->opens--;
    else
        glue->closes++;
}

static dgm_status collect(paragraph *p, const dgm_office_item *items, size_t count, dgm_error *err)
{
    chunk glue = {0};
    p->count = 0;
    for (size_t i = 0; i < count; i++) {
        const dgm_office_item *item = &items[i];
        const dgm_text bytes = {p->text.data + item->begin, item->end - item->begin};
        chunk *last = p->count > 0 ? &p->chunks[p->count - 1] : NULL;
        switch (item->kind) {
        case DGM_OFFICE_RUN:
            glue.format = 0;
            break;
        case DGM_OFFICE_PROPERTIES:
            glue.format = dgm_hash_bytes(DGM_HASH_START, bytes.data, bytes.size);
            break;
        case DGM_OFFICE_TEXT_TAG:
            glue.tag = item->begin;
            glue.path = item->path;
            break;
        case DGM_OFFICE_TEXT:
            if (last && last->end == item->begin)
                last->end = item->end;
            else
                DGM_TRY(add_chunk(p, item, &glue, err));
            break;
        case DGM_OFFICE_OPEN:
        case DGM_OFFICE_FIELD:
        case DGM_OFFICE_CLOSE:
        case DGM_OFFICE_FIELD_END:
            count_element(&glue, item->kind == DGM_OFFICE_OPEN || item->kind == DGM_OFFICE_FIELD);
            break;
        case DGM_OFFICE_BREAK:
            glue.breaks = true;
            break;
        default:
            break;
        }
    }
    return DGM_OK;
}

// ---- which glue belongs together -----------------------------------------------------------------

typedef struct opened {
    size_t chunk;    // behind the glue
    int elements;    // that begin in it; 0: it changes properties
    uint64_t before; // properties before it
} opened;

typedef struct plan {
    opened stack[OPEN_MAX];
    int depth;
    uint64_t format;
    size_t with_elements, without_partner; // glue with elements, of them those that have no partner
} plan;

static void match(paragraph *p, size_t open, size_t close)
{
    p->chunks[open].role = GLUE_OPEN;
    p->chunks[close].role = GLUE_CLOSE;
    p->chunks[open].partner = close;
    p->chunks[close].partner = open;
}

static void push(plan *s, opened o)
{
    if (s->depth < OPEN_MAX) s->stack[s->depth++] = o;
}

// Back to properties that some glue changed, since the last element began: their pair ends here.
static void change_format(paragraph *p, plan *s, size_t i)
{
    const uint64_t now = p->chunks[i].format;
    if (now == s->format) return;
    for (int k = s->depth - 1; k >= 0 && s->stack[k].elements == 0; k--)
        if (s->stack[k].before == now) {
            match(p, s->stack[k].chunk, i);
            s->depth = k;
            s->format = now;
            return;
        }
    push(s, (opened){.chunk = i, .before = s->format});
    s->format = now;
}

// False: the elements of this glue cannot be one tag.
static bool change_elements(paragraph *p, plan *s, size_t i)
{
    const chunk *c = &p->chunks[i];
    s->with_elements++;
    if (c->breaks || (c->opens > 0 && c->closes > 0) || s->depth == OPEN_MAX) return false;
    if (c->opens > 0) {
        push(s, (opened){.chunk = i, .elements = c->opens, .before = s->format});
        s->without_partner++;
    } else {
        while (s->depth > 0 && s->stack[s->depth - 1].elements == 0) s->depth--;
        if (s->depth == 0) {
            s->without_partner++;
        } else {
            const opened *o = &s->stack[--s->depth];
            if (o->elements != c->closes) return false;
            match(p, o->chunk, i);
            s->without_partner--;
        }
    }
    s->format = c->format;
    return true;
}

// Roles of the glue between chunks [from, to). False: it has to be cut at elements.
static bool plan_roles(paragraph *p, size_t from, size_t to)
{
    plan s = {.format = p->chunks[from].format};
    for (size_t i = from; i < to; i++) p->chunks[i].role = GLUE_EMPTY;
    for (size_t i = from + 1; i < to; i++) {
        chunk *c = &p->chunks[i];
        if (c->path != c[-1].path) return false;
        if (c->opens > 0 || c->closes > 0) {
            if (!change_elements(p, &s, i)) return false;
        } else if (c->breaks) {
            c->role = GLUE_BREAK;
            s.format = c->format;
        } else {
            change_format(p, &s, i);
        }
    }
    return s.without_partner == 0 || s.with_elements == 1;
}

// ---- writing -----------------------------------------------------------------------------------

// What a segment with text elements that keep spaces needs to be written.
typedef struct lead {
    dgm_text tag;   // the first text element's start tag, with which its range begins
    dgm_text range; // as it was
} lead;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Do spaces stand at the beginning or end of the text from `at` on to the next tag?
static bool has_outer_space(dgm_text t, size_t at)
{
    const char *tag = memchr(t.data + at, '<', t.size - at);
    const size_t end = tag ? (size_t)(tag - t.data) : t.size;
    return end > at && (is_space(t.data[at]) || is_space(t.data[end - 1]));
}

// Text elements at whose ends there are spaces now say that these count.
static void keep_spaces(dgm_text t, const char *name, size_t length, dgm_writer *out)
{
    size_t plain = 0; // first byte not yet written
    for (size_t at = 0; at + length + 1 < t.size; at++) {
        if (t.data[at] != '<' || memcmp(t.data + at + 1, name, length) != 0 || t.data[at + 1 + length] != '>') continue;
        const size_t end = at + 1 + length; // of the name
        if (!has_outer_space(t, end + 1)) continue;
        dgm_write_bytes(out, t.data + plain, end - plain);
        dgm_write_text(out, " xml:space=\"preserve\"");
        plain = end;
    }
    dgm_write_bytes(out, t.data + plain, t.size - plain);
}

static dgm_status write_spaced(const dgm_document *d, size_t index, dgm_text encoded, dgm_writer *out, dgm_error *err)
{
    const lead *l = dgm_segment_user(d, index);
    dgm_writer whole = {0};
    dgm_write_bytes(&whole, l->tag.data, l->tag.size);
    dgm_write_bytes(&whole, encoded.data, encoded.size);
    const dgm_text now = {(const char *)whole.data, whole.size};
    const char *name = l->tag.data + 1;
    const dgm_status st = whole.failed ? dgm_no_memory(err) : DGM_OK;
    if (st == DGM_OK && dgm_text_equal(now, l->range))
        dgm_write_bytes(out, now.data, now.size);
    else if (st == DGM_OK)
        keep_spaces(now, name, strcspn(name, " \t\r\n/>"), out);
    dgm_writer_free(&whole);
    return st;
}

// ---- segments ------------------------------------------------------------------------------------

static dgm_status put_glue(paragraph *p, size_t i, dgm_error *err)
{
    chunk *c = &p->chunks[i];
    const size_t begin = c[-1].end;
    const dgm_text bytes = {p->text.data + begin, c->begin - begin};
    switch (c->role) {
    case GLUE_OPEN:
        return dgm_segment_open(p->d, bytes, &c->pair, err);
    case GLUE_CLOSE:
        return dgm_segment_close(p->d, bytes, p->chunks[c->partner].pair, err);
    case GLUE_BREAK:
        return dgm_segment_break(p->d, bytes, err);
    default:
        return dgm_segment_empty(p->d, bytes, err);
    }
}

static dgm_status put_segment(paragraph *p, size_t from, size_t to, dgm_error *err)
{
    const chunk *first = &p->chunks[from];
    dgm_segment_spec spec = {.source = p->source,
                             .begin = first->begin,
                             .end = p->chunks[to - 1].end,
                             .escape = &dgm_escape_xml,
                             .flags = p->g->flags | DGM_SEGMENT_IN_PLACE};
    if (p->g->keeps_space) {
        lead *l = dgm_package_keep(p->p, sizeof *l);
        if (!l) return dgm_no_memory(err);
        l->tag = (dgm_text){p->text.data + first->tag, first->begin - first->tag};
        l->range = (dgm_text){l->tag.data, spec.end - first->tag};
        spec.begin = first->tag;
        spec.write = write_spaced;
        spec.user = l;
    }
    size_t index;
    DGM_TRY(dgm_segment_begin(p->d, &spec, &index, err));
    for (size_t i = from; i < to; i++) {
        const chunk *c = &p->chunks[i];
        if (i > from) DGM_TRY(put_glue(p, i, err));
        DGM_TRY(dgm_segment_raw(p->d, (dgm_text){p->text.data + c->begin, c->end - c->begin}, err));
    }
    return dgm_segment_end(p->d, err);
}

// Does a segment begin with this text, where a paragraph is cut?
static bool is_cut(const chunk *c)
{
    return c->opens > 0 || c->closes > 0 || c->path != c[-1].path;
}

static dgm_status put_paragraph(paragraph *p, dgm_error *err)
{
    if (p->count == 0) return DGM_OK;
    if (plan_roles(p, 0, p->count)) return put_segment(p, 0, p->count, err);
    for (size_t from = 0; from < p->count;) {
        size_t to = from + 1;
        while (to < p->count && !is_cut(&p->chunks[to])) to++;
        plan_roles(p, from, to);
        DGM_TRY(put_segment(p, from, to, err));
        from = to;
    }
    return DGM_OK;
}

dgm_status dgm_office_runs(dgm_document *d, dgm_package *package, int source, const dgm_office_grammar *g,
                           const dgm_office_item *items, size_t count, dgm_error *err)
{
    paragraph p = {.d = d, .p = package, .g = g, .source = source, .text = dgm_document_source(d, source)};
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < count && st == DGM_OK; i++) {
        if (items[i].kind != DGM_OFFICE_PARAGRAPH) continue;
        const size_t first = i + 1;
        while (items[i].kind != DGM_OFFICE_END) i++;
        st = collect(&p, items + first, i - first, err);
        if (st == DGM_OK) st = put_paragraph(&p, err);
    }
    dgm_free(p.chunks);
    return st;
}
