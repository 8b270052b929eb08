// SPDX-License-Identifier: MIT
// Markdown: CommonMark with tables, strike-through and task lists, by MD4C, and footnotes. Front matter, code and
// blocks of HTML stay.
//
// MD4C says which text there is and where, and which spans it stands in, but not where their marks are. These lie
// between one text and the next: what closes is read forwards from the text before it, what opens backwards from the
// text behind it.
//
//     See **the [manual](m.html)**.      text "See "  strong  text "the "  link  text "manual"  /link  /strong  text
//     "."
#include <md4c.h>
#include <string.h>

#include "base/mem.h"
#include "document/document.h"
#include "document/md_text.h"

enum { SPANS_MAX = 64 };

typedef enum event_kind {
    EVENT_TEXT,
    EVENT_ENTITY,
    EVENT_HTML,
    EVENT_SOFT,
    EVENT_HARD,
    EVENT_ENTER,
    EVENT_LEAVE
} event_kind;

typedef struct event {
    event_kind kind;
    MD_SPANTYPE span;
    size_t begin, end; // text: in the file
    dgm_text bytes;    // spans: their marks
} event;

typedef struct reading {
    dgm_document *d;
    dgm_text t;
    event *events;
    size_t count, cap;
    bool quiet; // a block of code or HTML
    dgm_status status;
    dgm_error *err;
} reading;

// ---- what MD4C says -------------------------------------------------------------------------------

static int add_event(reading *r, event e)
{
    if (r->status == DGM_OK) r->status = dgm_grow(&r->events, &r->cap, r->count + 1, sizeof *r->events, r->err);
    if (r->status != DGM_OK) return 1;
    r->events[r->count++] = e;
    return 0;
}

static bool is_footnote(dgm_text t, size_t at);
static dgm_status flush(reading *r, dgm_error *err);

// Footnotes may follow each other line by line: each is a paragraph of its own, though not to MD4C.
static dgm_status end_footnote(reading *r, size_t at)
{
    int depth = 0;
    if (!r->count || r->events[r->count - 1].kind != EVENT_SOFT || !is_footnote(r->t, at)) return DGM_OK;
    for (size_t i = 0; i < r->count; i++)
        depth += (r->events[i].kind == EVENT_ENTER) - (r->events[i].kind == EVENT_LEAVE);
    if (depth) return DGM_OK;
    r->count--;
    return flush(r, r->err);
}

static int on_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *user)
{
    reading *r = user;
    const bool inside = text >= r->t.data && text + size <= r->t.data + r->t.size;
    const size_t at = inside ? (size_t)(text - r->t.data) : 0;
    event e = {.kind = EVENT_TEXT, .begin = at, .end = at + size};
    if (r->quiet) return 0;
    if (type == MD_TEXT_SOFTBR)
        e.kind = EVENT_SOFT;
    else if (type == MD_TEXT_BR)
        e.kind = EVENT_HARD;
    else if (!inside)
        return 0; // a line break in code
    else if (type == MD_TEXT_ENTITY)
        e.kind = EVENT_ENTITY;
    else if (type == MD_TEXT_HTML)
        e.kind = EVENT_HTML;
    else if (r->status == DGM_OK)
        r->status = end_footnote(r, at);
    return add_event(r, e);
}

static int on_enter_span(MD_SPANTYPE type, void *detail, void *user)
{
    (void)detail;
    return add_event(user, (event){.kind = EVENT_ENTER, .span = type});
}

static int on_leave_span(MD_SPANTYPE type, void *detail, void *user)
{
    (void)detail;
    return add_event(user, (event){.kind = EVENT_LEAVE, .span = type});
}

// ---- marks ----------------------------------------------------------------------------------------

static size_t run_back(dgm_text t, size_t pos, char c)
{
    size_t n = 0;
    while (n < pos && t.data[pos - n - 1] == c) n++;
    return n;
}

static size_t run_of(dgm_text t, size_t pos, char c)
{
    size_t n = 0;
    while (pos + n < t.size && t.data[pos + n] == c) n++;
    return n;
}

// Size of the mark that opens a span and ends at pos.
static size_t opening(dgm_text t, size_t pos, MD_SPANTYPE span)
{
    size_t blank = 0;
    const char before = pos ? t.data[pos - 1] : 0;
    switch (span) {
    case MD_SPAN_EM:
        return before == '*' || before == '_' ? 1 : 0;
    case MD_SPAN_STRONG:
        return before == '*' || before == '_' ? 2 : 0;
    case MD_SPAN_DEL:
        return run_back(t, pos, '~') > 1 ? 2 : run_back(t, pos, '~');
    case MD_SPAN_CODE:
        blank = before == ' ' || before == '\n';
        return run_back(t, pos - blank, '`') ? run_back(t, pos - blank, '`') + blank : 0;
    case MD_SPAN_A:
        return before == '[' || before == '<' ? 1 : 0;
    case MD_SPAN_IMG:
        return before == '[' && pos > 1 && t.data[pos - 2] == '!' ? 2 : 0;
    default:
        return 0;
    }
}

// Behind brackets that begin at pos, others inside of them included; pos: they do not close.
static size_t behind(dgm_text t, size_t pos, char open, char close)
{
    int depth = 0;
    for (size_t i = pos; i < t.size; i++) {
        if (t.data[i] == '\\')
            i++;
        else if (t.data[i] == open)
            depth++;
        else if (t.data[i] == close && --depth == 0)
            return i + 1;
        else if (t.data[i] == '\n' && i + 1 < t.size && t.data[i + 1] == '\n')
            break;
    }
    return pos;
}

// Size of the mark that closes a span and begins at pos.
static size_t closing(dgm_text t, size_t pos, MD_SPANTYPE span)
{
    const char c = pos < t.size ? t.data[pos] : 0, next = pos + 1 < t.size ? t.data[pos + 1] : 0;
    size_t blank = 0;
    switch (span) {
    case MD_SPAN_EM:
        return c == '*' || c == '_' ? 1 : 0;
    case MD_SPAN_STRONG:
        return c == '*' || c == '_' ? 2 : 0;
    case MD_SPAN_DEL:
        return run_of(t, pos, '~') > 1 ? 2 : run_of(t, pos, '~');
    case MD_SPAN_CODE:
        blank = c == ' ' || c == '\n';
        return run_of(t, pos + blank, '`') ? run_of(t, pos + blank, '`') + blank : 0;
    case MD_SPAN_A:
    case MD_SPAN_IMG:
        if (c == '>') return 1;
        if (c != ']') return 0;
        if (next == '(') return behind(t, pos + 1, '(', ')') - pos;
        return next == '[' ? behind(t, pos + 1, '[', ']') - pos : 1;
    default:
        return 0;
    }
}

static bool has_place(const event *e)
{
    return e->kind == EVENT_TEXT || e->kind == EVENT_ENTITY || e->kind == EVENT_HTML;
}

// Marks of the spans, and where all of it begins and ends. False: they are not where they should be.
static bool find_marks(reading *r, size_t *begin, size_t *end)
{
    bool fine = true, first = true;
    size_t at = 0;
    for (size_t i = 0; i < r->count; i++) { // what closes
        event *e = &r->events[i];
        if (has_place(e)) {
            fine = fine && (first || e->begin >= at);
            at = e->end;
            first = false;
        } else if (e->kind == EVENT_LEAVE) {
            const size_t n = first ? 0 : closing(r->t, at, e->span);
            e->bytes = (dgm_text){r->t.data + at, n};
            at += n;
        } else if (e->kind != EVENT_ENTER) {
            continue;
        }
        *end = at;
    }
    first = true;
    for (size_t i = r->count; i-- > 0;) { // what opens
        event *e = &r->events[i];
        if (has_place(e)) {
            at = e->begin;
            first = false;
        } else if (e->kind == EVENT_ENTER) {
            const size_t n = first ? 0 : opening(r->t, at, e->span);
            e->bytes = (dgm_text){r->t.data + at - n, n};
            at -= n;
        } else {
            continue;
        }
        if (!first) *begin = at;
    }
    return fine && !first && *begin <= *end && *end <= r->t.size;
}

// ---- segments -------------------------------------------------------------------------------------

typedef struct making {
    reading *r;
    struct {
        int pair;
        dgm_text name; // of HTML
        size_t begin;  // behind the mark
    } open[SPANS_MAX];
    int depth;
} making;

static size_t place_of(const reading *r, dgm_text bytes)
{
    return (size_t)(bytes.data - r->t.data);
}

// The event that ends the span which begins at i.
static size_t leave_of(const reading *r, size_t i)
{
    int depth = 0;
    for (size_t k = i; k < r->count; k++) {
        depth += r->events[k].kind == EVENT_ENTER;
        depth -= r->events[k].kind == EVENT_LEAVE;
        if (depth == 0) return k;
    }
    return r->count - 1;
}

// Bytes of a footnote's mark, "[^name]", at a place of the file; 0: none is there.
static size_t footnote_at(dgm_text t, size_t at)
{
    if (at + 4 > t.size || memcmp(t.data + at, "[^", 2) != 0 || (at && t.data[at - 1] == '\\')) return 0;
    size_t i = at + 2;
    while (i < t.size && !strchr(" \t\r\n[]^", t.data[i])) i++;
    return i > at + 2 && i < t.size && t.data[i] == ']' ? i + 1 - at : 0;
}

// Does a footnote begin there: "[^name]:"?
static bool is_footnote(dgm_text t, size_t at)
{
    const size_t mark = footnote_at(t, at);
    return mark && at + mark < t.size && t.data[at + mark] == ':';
}

static bool is_kept(const reading *r, const event *e)
{
    const bool address = e->span == MD_SPAN_A && (!e->bytes.size || e->bytes.data[0] == '<' ||
                                                  footnote_at(r->t, place_of(r, e->bytes)));
    return e->span == MD_SPAN_CODE || e->span == MD_SPAN_IMG || address || e->span == MD_SPAN_LATEXMATH;
}

// Code, images and addresses are one part: *i goes to their end.
static dgm_status keep_span(making *m, size_t *i, dgm_error *err)
{
    const reading *r = m->r;
    const event *enter = &r->events[*i];
    const size_t last = leave_of(r, *i), begin = place_of(r, enter->bytes);
    const size_t end = place_of(r, r->events[last].bytes) + r->events[last].bytes.size;
    const dgm_text bytes = {r->t.data + begin, end > begin ? end - begin : 0};
    char shown[64] = "";
    const event *text = *i + 1 < last ? &r->events[*i + 1] : NULL;
    if (text && last == *i + 2 && has_place(text))
        dgm_md_shown(dgm_source_part(r->d, 0, text->begin, text->end), enter->span == MD_SPAN_A, shown, sizeof shown);
    *i = last;
    if (enter->span == MD_SPAN_IMG || footnote_at(r->t, begin)) return dgm_segment_empty(r->d, bytes, err);
    return dgm_segment_keep(r->d, bytes, *shown ? shown : NULL, err);
}

static dgm_status add_html(making *m, const event *e, dgm_error *err)
{
    const dgm_text bytes = {m->r->t.data + e->begin, e->end - e->begin};
    dgm_tag_kind kind = DGM_TAG_EMPTY;
    dgm_text name = {NULL, 0};
    dgm_tag_at(bytes, 0, &kind, &name);
    if (name.size == 2 && (memcmp(name.data, "br", 2) == 0 || memcmp(name.data, "BR", 2) == 0))
        return dgm_segment_break(m->r->d, bytes, err);
    if (kind == DGM_TAG_OPEN && m->depth < SPANS_MAX) {
        m->open[m->depth].name = name;
        return dgm_segment_open(m->r->d, bytes, &m->open[m->depth++].pair, err);
    }
    if (kind == DGM_TAG_CLOSE && m->depth && m->open[m->depth - 1].name.size &&
        dgm_text_equal(m->open[m->depth - 1].name, name))
        return dgm_segment_close(m->r->d, bytes, m->open[--m->depth].pair, err);
    return dgm_segment_empty(m->r->d, bytes, err);
}

// "[text]" and "[text][]" refer to what is called "text": once that is translated, the name is said behind it.
static bool is_short_reference(dgm_text close)
{
    return close.size && close.data[0] == ']' && (close.size == 1 || (close.size == 3 && close.data[2] == ']'));
}

static dgm_status name_reference(reading *r, size_t begin, dgm_text *close, dgm_error *err)
{
    const size_t size = place_of(r, *close) - begin;
    char *data = dgm_malloc(size + 3);
    int source = 0;
    if (!data) return dgm_no_memory(err);
    memcpy(data, "][", 2);
    memcpy(data + 2, r->t.data + begin, size);
    data[size + 2] = ']';
    DGM_TRY(dgm_document_add_source(r->d, data, size + 3, &source, err));
    *close = dgm_document_source(r->d, source);
    return DGM_OK;
}

static dgm_status add_span(making *m, size_t *i, dgm_error *err)
{
    const event *e = &m->r->events[*i];
    if (e->kind == EVENT_ENTER && is_kept(m->r, e)) return keep_span(m, i, err);
    if (e->kind == EVENT_ENTER && m->depth < SPANS_MAX) {
        m->open[m->depth].name = (dgm_text){NULL, 0};
        m->open[m->depth].begin = place_of(m->r, e->bytes) + e->bytes.size;
        return dgm_segment_open(m->r->d, e->bytes, &m->open[m->depth++].pair, err);
    }
    if (e->kind == EVENT_LEAVE && m->depth && !m->open[m->depth - 1].name.size) {
        dgm_text close = e->bytes;
        m->depth--;
        if (e->span == MD_SPAN_A && is_short_reference(close))
            DGM_TRY(name_reference(m->r, m->open[m->depth].begin, &close, err));
        return dgm_segment_close(m->r->d, close, m->open[m->depth].pair, err);
    }
    return dgm_segment_empty(m->r->d, e->bytes, err);
}

// From the end of a line to where text goes on below.
static dgm_text line_break(const reading *r, size_t i)
{
    size_t from = 0, to = 0;
    for (size_t k = i; k-- > 0 && !from;)
        from = has_place(&r->events[k])  ? r->events[k].end
               : r->events[k].bytes.size ? place_of(r, r->events[k].bytes) + r->events[k].bytes.size
                                         : 0;
    for (size_t k = i + 1; k < r->count && !to; k++)
        to = has_place(&r->events[k])  ? r->events[k].begin
             : r->events[k].bytes.size ? place_of(r, r->events[k].bytes)
                                       : 0;
    return (dgm_text){r->t.data + from, to > from ? to - from : 0};
}

// Texts that follow each other without a gap, from event *i on: MD4C cuts them at brackets. Marks of footnotes stay.
static dgm_status add_text(making *m, size_t *i, dgm_error *err)
{
    const reading *r = m->r;
    size_t from = r->events[*i].begin;
    for (const event *e = &r->events[*i]; *i + 1 < r->count && e[1].kind == EVENT_TEXT && e[1].begin == e->end; e++)
        ++*i;
    const size_t end = r->events[*i].end;
    for (size_t at = from; at < end; at++) {
        const size_t mark = r->t.data[at] == '[' ? footnote_at(r->t, at) : 0;
        if (!mark || at + mark > end) continue;
        DGM_TRY(dgm_segment_text(r->d, (dgm_text){r->t.data + from, at - from}, err));
        DGM_TRY(dgm_segment_empty(r->d, (dgm_text){r->t.data + at, mark}, err));
        from = at + mark;
        at = from - 1;
    }
    return dgm_segment_text(r->d, (dgm_text){r->t.data + from, end - from}, err);
}

static dgm_status add_parts(making *m, dgm_error *err)
{
    const reading *r = m->r;
    for (size_t i = 0; i < r->count; i++) {
        const event *e = &r->events[i];
        const dgm_text text = {r->t.data + e->begin, e->end - e->begin};
        switch (e->kind) {
        case EVENT_TEXT:
            DGM_TRY(add_text(m, &i, err));
            break;
        case EVENT_ENTITY:
            DGM_TRY(dgm_md_entity(r->d, text, err));
            break;
        case EVENT_HTML:
            DGM_TRY(add_html(m, e, err));
            break;
        case EVENT_SOFT:
            DGM_TRY(dgm_segment_text(r->d, dgm_text_of(" "), err));
            break;
        case EVENT_HARD:
            DGM_TRY(dgm_segment_break(r->d, line_break(r, i), err));
            break;
        default:
            DGM_TRY(add_span(m, &i, err));
            break;
        }
    }
    return DGM_OK;
}

// The words of an image are a segment inside of it.
static dgm_status add_image(reading *r, size_t i, dgm_error *err)
{
    const size_t last = leave_of(r, i);
    const event *enter = &r->events[i];
    const size_t begin = place_of(r, enter->bytes) + enter->bytes.size, end = place_of(r, r->events[last].bytes);
    if (begin >= end || last != i + 2 || is_short_reference(r->events[last].bytes)) return DGM_OK;
    const dgm_segment_spec spec = {.begin = begin, .end = end, .escape = &dgm_md_escape, .flags = DGM_SEGMENT_NESTED};
    DGM_TRY(dgm_segment_begin(r->d, &spec, NULL, err));
    DGM_TRY(dgm_segment_text(r->d, dgm_source_part(r->d, 0, begin, end), err));
    return dgm_segment_end(r->d, err);
}

// A footnote begins "[^name]: ", which is no text: the paragraph begins behind it.
static size_t behind_footnote(reading *r, size_t begin)
{
    size_t at = begin + footnote_at(r->t, begin) + 1, k = 0;
    if (!is_footnote(r->t, begin)) return begin;
    for (; at < r->t.size && (r->t.data[at] == ' ' || r->t.data[at] == '\t'); at++) continue;
    while (k < r->count && r->events[k].kind == EVENT_TEXT && r->events[k].end <= at) k++;
    r->count -= k;
    memmove(r->events, r->events + k, r->count * sizeof *r->events);
    if (r->count && r->events[0].kind == EVENT_TEXT && r->events[0].begin < at) r->events[0].begin = at;
    return at;
}

static dgm_status flush(reading *r, dgm_error *err)
{
    size_t begin = 0, end = 0;
    if (!r->count || !find_marks(r, &begin, &end)) {
        r->count = 0;
        return DGM_OK;
    }
    begin = behind_footnote(r, begin);
    if (begin >= end) r->count = 0;
    if (!r->count) return DGM_OK;
    making m = {.r = r};
    const dgm_segment_spec spec = {.begin = begin, .end = end, .escape = &dgm_md_escape, .write = dgm_md_write};
    DGM_TRY(dgm_segment_begin(r->d, &spec, NULL, err));
    DGM_TRY(add_parts(&m, err));
    DGM_TRY(dgm_segment_end(r->d, err));
    for (size_t i = 0; i < r->count; i++)
        if (r->events[i].kind == EVENT_ENTER && r->events[i].span == MD_SPAN_IMG) DGM_TRY(add_image(r, i, err));
    r->count = 0;
    return DGM_OK;
}

static int on_block(reading *r, MD_BLOCKTYPE type, bool enter)
{
    if (r->status == DGM_OK) r->status = flush(r, r->err);
    if (type == MD_BLOCK_CODE || type == MD_BLOCK_HTML) r->quiet = enter;
    return r->status != DGM_OK;
}

static int on_enter_block(MD_BLOCKTYPE type, void *detail, void *user)
{
    (void)detail;
    return on_block(user, type, true);
}

static int on_leave_block(MD_BLOCKTYPE type, void *detail, void *user)
{
    (void)detail;
    return on_block(user, type, false);
}

// Behind YAML or TOML between lines of "---" or "+++" at the beginning.
static size_t front_matter(dgm_text t)
{
    const char *mark = t.size > 4 && memcmp(t.data, "---", 3) == 0 ? "---" : "+++";
    if (t.size < 5 || memcmp(t.data, mark, 3) != 0 || (t.data[3] != '\n' && t.data[3] != '\r')) return 0;
    for (size_t i = 4; i + 3 < t.size; i++) {
        const char next = i + 4 < t.size ? t.data[i + 4] : '\n';
        if (t.data[i] == '\n' && memcmp(t.data + i + 1, mark, 3) == 0 && (next == '\n' || next == '\r')) return i + 4;
    }
    return 0;
}

static dgm_status read_md(dgm_document *d, dgm_error *err)
{
    reading r = {.d = d, .t = dgm_document_source(d, 0), .err = err};
    const size_t from = front_matter(r.t);
    const MD_PARSER parser = {.flags = MD_DIALECT_GITHUB,
                              .enter_block = on_enter_block,
                              .leave_block = on_leave_block,
                              .enter_span = on_enter_span,
                              .leave_span = on_leave_span,
                              .text = on_text};
    const int failed = md_parse(r.t.data + from, (MD_SIZE)(r.t.size - from), &parser, &r);
    dgm_free(r.events);
    DGM_TRY(r.status);
    return failed ? dgm_no_memory(err) : DGM_OK;
}

const dgm_document_reader dgm_md_reader = {
    .format = DGM_FORMAT("md", "md markdown mkd mdown", "Markdown (CommonMark, tables); code and front matter stay"),
    .read = read_md,
};
