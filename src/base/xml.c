// SPDX-License-Identifier: MIT
// XML by expat; see xml.h.
//
// expat's own guard against entities that grow counts from 8 MiB on. Ours comes before: since declared entities are not
// expanded in text, only attributes can grow, and a declaration that refers to another entity or is long is refused
// where it stands.
#include "base/xml.h"

#include <expat.h>
#include <string.h>

#include "base/mem.h"

enum {
    ENTITY_BYTES_MAX = 1024, // of a declared entity
    STEP = 1 << 28           // bytes handed to expat at once: it counts them in an int
};

typedef struct walk {
    dgm_text source;
    dgm_xml_taker take;
    void *cookie;
    dgm_error *err;
    XML_Parser parser;
    dgm_status status;
    size_t open[DGM_XML_DEPTH]; // where the tags of open elements begin
    int depth;
    size_t cdata; // where a CDATA section began
    bool in_cdata;
} walk;

// ---- memory: expat asks for realloc without the old size ---------------------------------------

typedef union block {
    size_t size;
    max_align_t align;
} block;

static void *xml_allocate(size_t size)
{
    if (size > SIZE_MAX - sizeof(block)) return NULL;
    block *b = dgm_malloc(sizeof *b + size);
    if (!b) return NULL;
    b->size = size;
    return b + 1;
}

static void *xml_grow(void *ptr, size_t size)
{
    if (!ptr) return xml_allocate(size);
    if (size > SIZE_MAX - sizeof(block)) return NULL;
    block *b = (block *)ptr - 1;
    b = dgm_realloc(b, sizeof *b + b->size, sizeof *b + size);
    if (!b) return NULL;
    b->size = size;
    return b + 1;
}

static void xml_release(void *ptr)
{
    if (ptr) dgm_free((block *)ptr - 1);
}

// ---- events ------------------------------------------------------------------------------------

static void stop(walk *w, dgm_status st)
{
    w->status = st;
    XML_StopParser(w->parser, XML_FALSE);
}

// After a stop expat still delivers what belongs to the same token: "<a/>" closes.
static void tell(walk *w, dgm_xml_event e)
{
    if (w->status != DGM_OK) return;
    const dgm_status st = w->take(w->cookie, &e, w->err);
    if (st != DGM_OK) stop(w, st);
}

static dgm_xml_event event_here(const walk *w, dgm_xml_kind kind)
{
    const size_t begin = (size_t)XML_GetCurrentByteIndex(w->parser);
    return (dgm_xml_event){
        .kind = kind, .begin = begin, .end = begin + (size_t)XML_GetCurrentByteCount(w->parser)};
}

static void XMLCALL on_open(void *cookie, const XML_Char *name, const XML_Char **attributes)
{
    walk *w = cookie;
    if (w->status != DGM_OK) return;
    if (w->depth == DGM_XML_DEPTH) {
        stop(w, dgm_fail(w->err, DGM_ERR_FORMAT, "elements are nested too deep"));
        return;
    }
    dgm_xml_event e = event_here(w, DGM_XML_OPEN);
    w->open[w->depth++] = e.begin;
    e.name = name;
    e.attributes = (const char *const *)attributes;
    tell(w, e);
}

static void XMLCALL on_close(void *cookie, const XML_Char *name)
{
    walk *w = cookie;
    dgm_xml_event e = event_here(w, DGM_XML_CLOSE);
    w->depth--;
    e.name = name;
    tell(w, e);
}

static void XMLCALL on_text(void *cookie, const XML_Char *text, int size)
{
    walk *w = cookie;
    if (w->in_cdata) return; // the section is told when it ends
    dgm_xml_event e = event_here(w, DGM_XML_TEXT);
    e.text = (dgm_text){text, (size_t)size};
    // Of a "]" that ends a document too early expat does not know the length; text is never longer than its source.
    if (e.end - e.begin < e.text.size) e.end = e.begin + e.text.size;
    if (e.end > w->source.size) e.end = w->source.size;
    tell(w, e);
}

static void XMLCALL on_cdata(void *cookie)
{
    walk *w = cookie;
    w->in_cdata = true;
    w->cdata = (size_t)XML_GetCurrentByteIndex(w->parser);
}

static void XMLCALL on_cdata_end(void *cookie)
{
    walk *w = cookie;
    dgm_xml_event e = event_here(w, DGM_XML_TEXT);
    const size_t begin = w->cdata + strlen("<![CDATA[");
    w->in_cdata = false;
    e.text = (dgm_text){w->source.data + begin, e.begin - begin};
    e.begin = w->cdata;
    tell(w, e);
}

static void XMLCALL on_comment(void *cookie, const XML_Char *text)
{
    (void)text;
    tell(cookie, event_here(cookie, DGM_XML_COMMENT));
}

static void XMLCALL on_entity(void *cookie, const XML_Char *name, int parameter)
{
    (void)name;
    if (!parameter) tell(cookie, event_here(cookie, DGM_XML_ENTITY));
}

// Whatever has no handler above: among it references to entities in other files.
static void XMLCALL on_rest(void *cookie, const XML_Char *text, int size)
{
    (void)text;
    (void)size;
    walk *w = cookie;
    dgm_xml_event e = event_here(w, DGM_XML_OTHER);
    if (w->in_cdata || e.begin >= w->source.size) return;
    if (w->depth > 0 && w->source.data[e.begin] == '&') e.kind = DGM_XML_ENTITY;
    tell(w, e);
}

static void XMLCALL on_declared(void *cookie, const XML_Char *name, int parameter, const XML_Char *value, int size,
                                const XML_Char *base, const XML_Char *system, const XML_Char *public,
                                const XML_Char *notation)
{
    (void)parameter;
    (void)base;
    (void)system;
    (void)public;
    (void)notation;
    walk *w = cookie;
    if (!value || w->status != DGM_OK) return;
    if (memchr(value, '&', (size_t)size) || memchr(value, '%', (size_t)size) || size > ENTITY_BYTES_MAX)
        stop(w, dgm_fail(w->err, DGM_ERR_FORMAT,
                         "entity '%.60s' contains entities or more than %d bytes, by which a small file could grow "
                         "without bound; such files are not read",
                         name, ENTITY_BYTES_MAX));
}

// ---- what is wrong -----------------------------------------------------------------------------

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool ends_name(char c)
{
    return is_space(c) || memchr("/>=<\"'&;", c, 8) != NULL;
}

// The name that begins at an offset of the source, cut for a message.
static dgm_text name_at(dgm_text s, size_t at)
{
    size_t end = at;
    while (end < s.size && end - at < 60 && !ends_name(s.data[end])) end++;
    return (dgm_text){s.data + at, end - at};
}

static dgm_status never_closed(const walk *w, size_t at)
{
    const char *what = "a tag";
    DGM_FAIL_IF(at < w->source.size && w->source.data[at] == '&', w->err, DGM_ERR_FORMAT, "'&' begins no entity");
    if (at + 1 < w->source.size && (w->source.data[at + 1] == '!' || w->source.data[at + 1] == '?'))
        what = "a comment, an instruction or the document type";
    return dgm_fail(w->err, DGM_ERR_FORMAT, "%s is never closed", what);
}

// expat points at the byte that cannot be there.
static dgm_status bad_byte(const walk *w, size_t at)
{
    const dgm_text s = w->source;
    size_t from = at < s.size ? at : s.size;
    DGM_FAIL_IF(at < s.size && (unsigned char)s.data[at] >= 0x80, w->err, DGM_ERR_FORMAT, "invalid UTF-8");
    while (from > 0 && !ends_name(s.data[from - 1])) from--;
    DGM_FAIL_IF(from > 0 && s.data[from - 1] == '&', w->err, DGM_ERR_FORMAT, "'&' begins no entity");
    while (from > 0 && is_space(s.data[from - 1])) from--;
    DGM_FAIL_IF(from > 0 && s.data[from - 1] == '=', w->err, DGM_ERR_FORMAT, "an attribute's value needs quotes");
    DGM_FAIL_IF(at < s.size && s.data[at] == '<', w->err, DGM_ERR_FORMAT, "a tag is never closed");
    return dgm_fail(w->err, DGM_ERR_FORMAT, "a character that cannot be here: the file is no well-formed XML");
}

static dgm_status explain(const walk *w)
{
    const enum XML_Error code = XML_GetErrorCode(w->parser);
    const size_t at = (size_t)XML_GetCurrentByteIndex(w->parser);
    dgm_text name;
    switch (code) {
    case XML_ERROR_NO_MEMORY:
        return dgm_no_memory(w->err);
    case XML_ERROR_TAG_MISMATCH:
        name = name_at(w->source, at); // expat points behind "</" here
        return dgm_fail(w->err, DGM_ERR_FORMAT, "</%.*s> closes no open element", (int)name.size, name.data);
    case XML_ERROR_UNDEFINED_ENTITY:
        name = name_at(w->source, at + 1);
        return dgm_fail(w->err, DGM_ERR_FORMAT, "unknown entity '&%.*s;'", (int)name.size, name.data);
    case XML_ERROR_BAD_CHAR_REF:
        name = name_at(w->source, at + 1);
        return dgm_fail(w->err, DGM_ERR_FORMAT, "'&%.*s;' is no character", (int)name.size, name.data);
    case XML_ERROR_UNCLOSED_CDATA_SECTION:
        return dgm_fail(w->err, DGM_ERR_FORMAT, "a CDATA section is never closed");
    case XML_ERROR_UNCLOSED_TOKEN:
        return never_closed(w, at);
    case XML_ERROR_INVALID_TOKEN:
    case XML_ERROR_PARTIAL_CHAR:
        return bad_byte(w, at);
    case XML_ERROR_AMPLIFICATION_LIMIT_BREACH:
        return dgm_fail(w->err, DGM_ERR_FORMAT, "its entities make it grow without bound; such files are not read");
    default:
        break;
    }
    if (code == XML_ERROR_NO_ELEMENTS && w->depth > 0) {
        name = name_at(w->source, w->open[w->depth - 1] + 1);
        return dgm_fail(w->err, DGM_ERR_FORMAT, "<%.*s> is never closed", (int)name.size, name.data);
    }
    return dgm_fail(w->err, DGM_ERR_FORMAT, "no well-formed XML: %s", XML_ErrorString(code));
}

// ---- the walk ----------------------------------------------------------------------------------

static void set_handlers(walk *w)
{
    XML_SetUserData(w->parser, w);
    XML_SetElementHandler(w->parser, on_open, on_close);
    XML_SetCharacterDataHandler(w->parser, on_text);
    XML_SetCdataSectionHandler(w->parser, on_cdata, on_cdata_end);
    XML_SetCommentHandler(w->parser, on_comment);
    XML_SetSkippedEntityHandler(w->parser, on_entity);
    XML_SetEntityDeclHandler(w->parser, on_declared);
    XML_SetDefaultHandler(w->parser, on_rest); // with it, declared entities are not expanded
}

static void parse(walk *w)
{
    for (size_t at = 0;;) {
        const size_t left = w->source.size - at;
        const size_t now = left < STEP ? left : STEP;
        if (XML_Parse(w->parser, w->source.data + at, (int)now, now == left) != XML_STATUS_OK) {
            if (w->status == DGM_OK) w->status = explain(w);
            if (w->status == DGM_ERR_FORMAT)
                dgm_error_prefix(w->err, "line %zu", (size_t)XML_GetCurrentLineNumber(w->parser));
            return;
        }
        at += now;
        if (now == left) return;
    }
}

// Expat takes this for UTF-16 whatever it is told, and places would be those of other bytes.
static bool looks_wide(dgm_text s)
{
    if (s.size < 2) return false;
    return !s.data[0] || !s.data[1] || memcmp(s.data, "\xff\xfe", 2) == 0 || memcmp(s.data, "\xfe\xff", 2) == 0;
}

dgm_status dgm_xml_walk(dgm_text source, dgm_xml_taker take, void *cookie, dgm_error *err)
{
    static const XML_Memory_Handling_Suite memory = {xml_allocate, xml_grow, xml_release};
    walk w = {.source = source.size > 0 ? source : dgm_text_of(""), .take = take, .cookie = cookie, .err = err};
    DGM_FAIL_IF(looks_wide(source), err, DGM_ERR_FORMAT, "line 1: it is UTF-16; XML in UTF-8 is read");
    w.parser = XML_ParserCreate_MM("UTF-8", &memory, NULL);
    if (!w.parser) return dgm_no_memory(err);
    set_handlers(&w);
    parse(&w);
    XML_ParserFree(w.parser);
    return w.status;
}

// ---- names and attributes ----------------------------------------------------------------------

const char *dgm_xml_local(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon ? colon + 1 : name;
}

const char *dgm_xml_attribute(const dgm_xml_event *open, const char *name)
{
    for (size_t i = 0; open->attributes && open->attributes[i]; i += 2)
        if (strcmp(open->attributes[i], name) == 0) return open->attributes[i + 1];
    return NULL;
}

bool dgm_xml_attribute_place(dgm_text tag, const char *name, size_t *begin, size_t *end)
{
    size_t at = 1; // behind '<'
    while (at < tag.size && !ends_name(tag.data[at])) at++;
    while (at < tag.size) {
        while (at < tag.size && is_space(tag.data[at])) at++;
        const size_t from = at;
        while (at < tag.size && !ends_name(tag.data[at])) at++;
        const dgm_text found = {tag.data + from, at - from};
        while (at < tag.size && (is_space(tag.data[at]) || tag.data[at] == '=')) at++;
        if (found.size == 0 || at >= tag.size) return false;
        const char *close = memchr(tag.data + at + 1, tag.data[at], tag.size - at - 1);
        if (!close) return false;
        *begin = at + 1;
        *end = (size_t)(close - tag.data);
        if (dgm_text_equal(found, dgm_text_of(name))) return true;
        at = *end + 1;
    }
    return false;
}

static const char *escape(unsigned char c, bool attribute)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return attribute ? "&quot;" : NULL;
    case '\'':
        return attribute ? "&#39;" : NULL;
    case '\n':
        return attribute ? "&#10;" : NULL;
    case '\t':
        return attribute ? "&#9;" : NULL;
    case '\r':
        return "&#13;";
    default:
        return c < ' ' ? "" : NULL;
    }
}

static void write_escaped(dgm_writer *w, dgm_text text, bool attribute)
{
    size_t plain = 0; // first byte not yet written
    for (size_t i = 0; i < text.size; i++) {
        const char *instead = escape((unsigned char)text.data[i], attribute);
        if (!instead) continue;
        dgm_write_bytes(w, text.data + plain, i - plain);
        dgm_write_text(w, instead);
        plain = i + 1;
    }
    dgm_write_bytes(w, text.data + plain, text.size - plain);
}

void dgm_xml_write(dgm_writer *w, dgm_text text)
{
    write_escaped(w, text, false);
}

void dgm_xml_write_attribute(dgm_writer *w, dgm_text text)
{
    write_escaped(w, text, true);
}
