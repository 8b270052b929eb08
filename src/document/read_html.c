// SPDX-License-Identifier: MIT
// HTML. Gumbo reads the page as a browser does and says where elements lie in the file: what is not to be translated
// (scripts, code, translate="no") and which attributes are texts. Between these, blocks limit segments, inline
// elements are tags in them, comments stay where they are.
#include <gumbo.h>
#include <setjmp.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "document/document.h"
#include "document/html_names.h"

enum { DEPTH_MAX = 1024, OPEN_MAX = 64 };

typedef enum area_kind { AREA_SKIP, AREA_KEEP, AREA_ATTRIBUTE } area_kind;

// A range of the file that Gumbo told us about.
typedef struct area {
    size_t begin, end;
    area_kind kind;
} area;

typedef struct page {
    dgm_document *d;
    int source;
    dgm_text t;
    area *areas; // those that are skipped or kept, then by where they begin
    size_t area_count, area_cap;
    uint32_t *order;
    size_t next_area;
    bool xml;   // XHTML: entities of HTML alone would break it
    bool ascii; // and nothing says that it is UTF-8: other characters are written as numbers
    // the segment that is being made
    bool making;
    size_t begin;
    size_t attribute; // the first area that was not looked at for attributes
    struct {
        dgm_text name;
        int pair;
    } open[OPEN_MAX];
    int open_count;
} page;

// ---- what Gumbo says ------------------------------------------------------------------------------

static dgm_status add_area(page *p, size_t begin, size_t end, area_kind kind, dgm_error *err)
{
    if (begin >= end || end > p->t.size) return DGM_OK;
    DGM_TRY(dgm_grow(&p->areas, &p->area_cap, p->area_count + 1, sizeof *p->areas, err));
    p->areas[p->area_count++] = (area){begin, end, kind};
    return DGM_OK;
}

static size_t offset_of(const page *p, const GumboStringPiece *part)
{
    const bool inside = part->data >= p->t.data && part->data + part->length <= p->t.data + p->t.size;
    return part->length && inside ? (size_t)(part->data - p->t.data) : p->t.size;
}

static dgm_text name_of(const GumboElement *e)
{
    GumboStringPiece tag = e->original_tag;
    gumbo_tag_from_original_text(&tag);
    return (dgm_text){tag.data ? tag.data : "", tag.data ? tag.length : 0};
}

static bool says(const GumboElement *e, const char *name, const char *value)
{
    const GumboAttribute *a = gumbo_get_attribute(&e->attributes, name);
    return a && dgm_html_same(dgm_text_of(a->value), value);
}

static bool is_text_attribute(const GumboElement *e, dgm_text element, const char *name)
{
    static const char *const names[] = {"alt", "title", "placeholder", "aria-label", "label", NULL};
    for (size_t i = 0; names[i]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    if (strcmp(name, "value") == 0 && dgm_html_same(element, "input"))
        return says(e, "type", "submit") || says(e, "type", "button");
    if (strcmp(name, "content") == 0 && dgm_html_same(element, "meta"))
        return says(e, "name", "description") || says(e, "name", "keywords") || says(e, "property", "og:title") ||
               says(e, "property", "og:description");
    return false;
}

// Values between quotes; a bare one is a word that programs read.
static dgm_status add_attributes(page *p, const GumboElement *e, dgm_text element, dgm_error *err)
{
    for (unsigned i = 0; i < e->attributes.length; i++) {
        const GumboAttribute *a = e->attributes.data[i];
        const size_t at = offset_of(p, &a->original_value), size = a->original_value.length;
        if (at >= p->t.size || size < 3 || (p->t.data[at] != '"' && p->t.data[at] != '\'')) continue;
        if (!is_text_attribute(e, element, a->name)) continue;
        DGM_TRY(add_area(p, at + 1, at + size - 1, AREA_ATTRIBUTE, err));
    }
    return DGM_OK;
}

static bool is_untranslated(const GumboElement *e)
{
    const GumboAttribute *class = gumbo_get_attribute(&e->attributes, "class");
    return says(e, "translate", "no") || (class && strstr(class->value, "notranslate"));
}

// An element that was met: its areas. *inside: its children are looked at.
static dgm_status enter(page *p, const GumboNode *node, bool *inside, dgm_error *err)
{
    const GumboElement *e = &node->v.element;
    const dgm_text name = name_of(e);
    const size_t begin = offset_of(p, &e->original_tag), close = offset_of(p, &e->original_end_tag);
    const bool copied =
        node->parse_flags & (GUMBO_INSERTION_RECONSTRUCTED_FORMATTING_ELEMENT | GUMBO_INSERTION_ADOPTION_AGENCY_CLONED);
    *inside = true;
    if (begin >= p->t.size || copied) return DGM_OK; // not written in the file
    const bool code = dgm_html_is_code(name), raw = dgm_html_is_raw(name), foreign = is_untranslated(e);
    if (!code && !raw && !foreign) return add_attributes(p, e, name, err);
    *inside = false;
    const bool empty = dgm_html_is_void(name);
    const size_t end = close < p->t.size ? close + e->original_end_tag.length
                       : empty           ? begin + e->original_tag.length
                                         : e->end_pos.offset;
    const bool part = dgm_html_is_inline(name) && !raw;
    return add_area(p, begin, end, part ? AREA_KEEP : AREA_SKIP, err);
}

static const GumboVector *children_of(const GumboNode *n)
{
    if (n->type == GUMBO_NODE_DOCUMENT) return &n->v.document.children;
    return n->type == GUMBO_NODE_ELEMENT || n->type == GUMBO_NODE_TEMPLATE ? &n->v.element.children : NULL;
}

// Without recursion: pages nest as deep as they like.
static dgm_status walk_tree(page *p, const GumboNode *root, dgm_error *err)
{
    const GumboNode *n = root;
    for (;;) {
        bool inside = true;
        if (n->type == GUMBO_NODE_ELEMENT || n->type == GUMBO_NODE_TEMPLATE) DGM_TRY(enter(p, n, &inside, err));
        const GumboVector *children = inside ? children_of(n) : NULL;
        if (children && children->length) {
            n = children->data[0];
            continue;
        }
        for (;;) {
            if (n == root || !n->parent) return DGM_OK;
            const GumboVector *siblings = children_of(n->parent);
            if (n->index_within_parent + 1 < siblings->length) {
                n = siblings->data[n->index_within_parent + 1];
                break;
            }
            n = n->parent;
        }
    }
}

static int compare_areas(const void *context, uint32_t a, uint32_t b)
{
    const area *areas = context, *x = &areas[a], *y = &areas[b];
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return a < b ? -1 : a > b;
}

// ---- nesting --------------------------------------------------------------------------------------

// Gumbo goes through its tree by recursion: what is nested too deep is refused before it is read.
static dgm_status check_depth(const page *p, dgm_error *err)
{
    int depth = 0;
    for (size_t i = 0; i < p->t.size;) {
        dgm_tag_kind kind = DGM_TAG_EMPTY;
        dgm_text name = {NULL, 0};
        const size_t n = p->t.data[i] == '<' ? dgm_tag_at(p->t, i, &kind, &name) : 0;
        if (n && !dgm_html_is_void(name) && !dgm_html_closes_itself(name))
            depth += kind == DGM_TAG_OPEN ? 1 : kind == DGM_TAG_CLOSE && depth ? -1 : 0;
        DGM_FAIL_IF(depth > DEPTH_MAX, err, DGM_ERR_UNSUPPORTED, "line %zu: elements are nested deeper than %d",
                    dgm_source_line(p->d, p->source, i), DEPTH_MAX);
        i += n ? n : 1;
    }
    return DGM_OK;
}

// ---- Gumbo's memory -------------------------------------------------------------------------------

// Gumbo does not look whether it gets what it asks for. It is given parts of chunks, which are freed together, and
// where there is no memory for one it is left by a jump.
typedef struct chunk {
    struct chunk *before;
    max_align_t parts[];
} chunk;

typedef struct memory {
    jmp_buf none;
    chunk *last;
    size_t used, size; // of the last chunk
} memory;

enum { CHUNK = 1 << 18 };

static void *take(void *cookie, size_t size)
{
    memory *m = cookie;
    const size_t align = _Alignof(max_align_t), need = (size / align + 1) * align;
    if (need > m->size - m->used) {
        const size_t room = need > CHUNK ? need : CHUNK;
        chunk *c = room >= size ? dgm_malloc(sizeof *c + room) : NULL;
        if (!c) longjmp(m->none, 1);
        c->before = m->last;
        m->last = c;
        m->size = room;
        m->used = 0;
    }
    m->used += need;
    return (char *)m->last->parts + m->used - need;
}

static void keep(void *cookie, void *part)
{
    (void)cookie;
    (void)part;
}

static GumboOutput *parse(memory *m, dgm_text text)
{
    GumboOptions options = kGumboDefaultOptions;
    options.max_errors = 0;
    options.allocator = take;
    options.deallocator = keep;
    options.userdata = m;
    return setjmp(m->none) == 0 ? gumbo_parse_with_options(&options, text.data, text.size) : NULL;
}

static dgm_status ask_gumbo(page *p, dgm_error *err)
{
    memory m = {.last = NULL};
    DGM_TRY(check_depth(p, err));
    const GumboOutput *output = parse(&m, p->t);
    dgm_status st = output ? walk_tree(p, output->document, err) : dgm_no_memory(err);
    for (chunk *c = m.last, *before; c; c = before) {
        before = c->before;
        dgm_free(c);
    }
    if (st == DGM_OK && p->area_count) {
        p->order = dgm_malloc(p->area_count * sizeof *p->order);
        if (!p->order) return dgm_no_memory(err);
        dgm_sort_indices(p->order, p->area_count, compare_areas, p->areas);
    }
    return st;
}

// ---- segments -------------------------------------------------------------------------------------

static dgm_status begin_segment(page *p, size_t at, dgm_error *err)
{
    if (p->making) return DGM_OK;
    // Its end is known when the next block begins.
    const dgm_segment_spec spec = {.source = p->source,
                                   .begin = at,
                                   .end = at,
                                   .escape = p->xml     ? &dgm_escape_xhtml
                                             : p->ascii ? &dgm_escape_html_ascii
                                                        : &dgm_escape_html,
                                   .flags = DGM_SEGMENT_IN_PLACE};
    p->making = true;
    p->begin = at;
    p->open_count = 0;
    return dgm_segment_begin(p->d, &spec, NULL, err);
}

static dgm_status add_attribute(page *p, const area *a, dgm_error *err)
{
    const dgm_segment_spec spec = {.source = p->source,
                                   .begin = a->begin,
                                   .end = a->end,
                                   .escape = p->xml     ? &dgm_escape_xhtml_attribute
                                             : p->ascii ? &dgm_escape_html_attribute_ascii
                                                        : &dgm_escape_html_attribute,
                                   .flags = DGM_SEGMENT_NESTED | DGM_SEGMENT_IN_PLACE};
    DGM_TRY(dgm_segment_begin(p->d, &spec, NULL, err));
    DGM_TRY(dgm_segment_raw(p->d, (dgm_text){p->t.data + a->begin, a->end - a->begin}, err));
    return dgm_segment_end(p->d, err);
}

// Ends the segment, if there is one, and adds the attributes up to here.
static dgm_status end_segment(page *p, size_t at, dgm_error *err)
{
    if (p->making) DGM_TRY(dgm_segment_end_at(p->d, at, err));
    p->making = false;
    for (; p->attribute < p->area_count && p->areas[p->order[p->attribute]].begin < at; p->attribute++) {
        const area *a = &p->areas[p->order[p->attribute]];
        if (a->kind == AREA_ATTRIBUTE) DGM_TRY(add_attribute(p, a, err));
    }
    return DGM_OK;
}

static dgm_status add_inline(page *p, size_t at, size_t size, dgm_tag_kind kind, dgm_text name, dgm_error *err)
{
    const dgm_text bytes = {p->t.data + at, size};
    DGM_TRY(begin_segment(p, at, err));
    if (dgm_html_same(name, "br")) return dgm_segment_break(p->d, bytes, err);
    if (kind == DGM_TAG_OPEN && !dgm_html_is_void(name) && p->open_count < OPEN_MAX) {
        p->open[p->open_count].name = name;
        return dgm_segment_open(p->d, bytes, &p->open[p->open_count++].pair, err);
    }
    for (int i = p->open_count; kind == DGM_TAG_CLOSE && i-- > 0;) {
        const dgm_text other = p->open[i].name;
        if (other.size != name.size || strncmp(other.data, name.data, name.size) != 0) continue;
        p->open_count = i;
        return dgm_segment_close(p->d, bytes, p->open[i].pair, err);
    }
    return dgm_segment_empty(p->d, bytes, err);
}

// Is what is kept an identifier ("max_size"), which models copy and the engine looks after? A copy of it, or "":
// other words would be translated.
static void shown_of(dgm_text bytes, char *out, size_t room)
{
    const char *from = memchr(bytes.data, '>', bytes.size), *end = bytes.data + bytes.size;
    size_t size = 0;
    bool marked = false;
    for (const char *c = from ? from + 1 : end; c < end && *c != '<'; c++) {
        const bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
        if ((!letter && *c != '_') || size + 1 >= room) {
            marked = false;
            break;
        }
        marked |= *c == '_' && size;
        out[size++] = *c;
    }
    out[marked && out[size - 1] != '_' ? size : 0] = 0;
}

static dgm_status add_kept(page *p, const area *a, dgm_error *err)
{
    char shown[32];
    const dgm_text bytes = {p->t.data + a->begin, a->end - a->begin};
    DGM_TRY(begin_segment(p, a->begin, err));
    shown_of(bytes, shown, sizeof shown);
    return dgm_segment_keep(p->d, bytes, *shown ? shown : NULL, err);
}

// A tag or comment at pos; *next is behind it, or pos: it is text.
static dgm_status read_tag(page *p, size_t pos, size_t *next, dgm_error *err)
{
    dgm_tag_kind kind = DGM_TAG_EMPTY;
    dgm_text name = {NULL, 0};
    const size_t n = dgm_tag_at(p->t, pos, &kind, &name);
    *next = pos + n;
    if (!n) {
        const char c = pos + 1 < p->t.size ? p->t.data[pos + 1] : 0;
        const char *end = c == '!' || c == '?' ? memchr(p->t.data + pos, '>', p->t.size - pos) : NULL;
        if (!end) return DGM_OK;
        *next = (size_t)(end - p->t.data) + 1;
        return end_segment(p, pos, err);
    }
    if (!name.size)
        return p->making ? dgm_segment_empty(p->d, (dgm_text){p->t.data + pos, n}, err) : DGM_OK; // a comment
    if (dgm_html_is_inline(name)) return add_inline(p, pos, n, kind, name, err);
    return end_segment(p, pos, err);
}

// The area that begins here; areas inside of others are passed over.
static const area *area_at(page *p, size_t pos)
{
    while (p->next_area < p->area_count) {
        const area *a = &p->areas[p->order[p->next_area]];
        if (a->kind != AREA_ATTRIBUTE && a->begin >= pos) return a;
        p->next_area++;
    }
    return NULL;
}

static dgm_status read_page(page *p, dgm_error *err)
{
    for (size_t pos = 0; pos < p->t.size;) {
        const area *a = area_at(p, pos);
        size_t next = pos;
        if (a && a->begin == pos) {
            DGM_TRY(a->kind == AREA_KEEP ? add_kept(p, a, err) : end_segment(p, pos, err));
            pos = a->end;
            continue;
        }
        if (p->t.data[pos] == '<') DGM_TRY(read_tag(p, pos, &next, err));
        if (next > pos) {
            pos = next;
            continue;
        }
        const size_t limit = a ? a->begin : p->t.size;
        const char *stop = memchr(p->t.data + pos + 1, '<', limit - pos - 1);
        next = stop ? (size_t)(stop - p->t.data) : limit;
        DGM_TRY(begin_segment(p, pos, err));
        DGM_TRY(dgm_segment_raw(p->d, (dgm_text){p->t.data + pos, next - pos}, err));
        pos = next;
    }
    return end_segment(p, p->t.size, err);
}

// Browsers take a page that does not say what it is written in for something old.
static bool needs_ascii(dgm_text t)
{
    enum { HEAD = 1024 };
    for (size_t i = 0; i < t.size; i++)
        if ((unsigned char)t.data[i] >= 0x80) return false;
    for (size_t i = 0; i + 5 < t.size && i < HEAD; i++)
        if (dgm_html_same((dgm_text){t.data + i, 5}, "utf-8")) return false;
    return t.size < 5 || memcmp(t.data, "<?xml", 5) != 0;
}

// Does it say that it is XML, by its first line or the namespace of its elements?
static bool is_xml(dgm_text t)
{
    static const char space[] = "http://www.w3.org/1999/xhtml";
    enum { HEAD = 1024 };
    if (t.size > 5 && memcmp(t.data, "<?xml", 5) == 0) return true;
    for (size_t i = 0; i + sizeof space < t.size && i < HEAD; i++)
        if (memcmp(t.data + i, space, sizeof space - 1) == 0) return true;
    return false;
}

dgm_status dgm_html_read(dgm_document *d, int source, bool xml, dgm_error *err)
{
    page p = {.d = d, .source = source, .t = dgm_document_source(d, source)};
    p.xml = xml || is_xml(p.t);
    p.ascii = !dgm_document_marked(d) && needs_ascii(p.t); // the mark says that it is UTF-8
    dgm_status st = ask_gumbo(&p, err);
    if (st == DGM_OK) st = read_page(&p, err);
    dgm_free(p.areas);
    dgm_free(p.order);
    return st;
}

static dgm_status read_html(dgm_document *d, dgm_error *err)
{
    return dgm_html_read(d, 0, false, err);
}

static bool sniff_html(dgm_text data)
{
    size_t at = 0;
    while (at < data.size &&
           (data.data[at] == ' ' || data.data[at] == '\n' || data.data[at] == '\r' || data.data[at] == '\t'))
        at++;
    const dgm_text doctype = {data.data + at, data.size - at < 14 ? 0 : 14},
                   html = {data.data + at, data.size - at < 5 ? 0 : 5};
    return dgm_html_same(doctype, "<!doctype html") || dgm_html_same(html, "<html");
}

const dgm_document_reader dgm_html_reader = {
    .format = DGM_FORMAT("html", "html htm xhtml", "pages; scripts, code and what is marked translate=\"no\" stay"),
    .sniff = sniff_html,
    .read = read_html,
};
