// SPDX-License-Identifier: MIT
// XLIFF 1.2 and 2: the text of <source> is translated into <target>, which is made where there is none. Units that have
// a translation are left alone, unless all are asked for, or the file says that it is none yet; and so are those that
// say translate="no".
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/xml.h"
#include "document/document.h"
#include "document/kept_private.h"

enum { OPEN_MAX = 64 };

typedef enum part_kind {
    PART_TEXT,
    PART_OPEN, // <g>, <pc>, <mrk>: text inside
    PART_CLOSE,
    PART_BEGIN, // <bpt>, <sc/>: a code that begins something, whole
    PART_END,   // <ept>, <ec/>
    PART_CODE   // <x/>, <ph>: whole
} part_kind;

// Something in <source>.
typedef struct part {
    part_kind kind;
    size_t begin, end;
    uint64_t id;    // BEGIN and END that belong together have the same
    size_t partner; // the other of a pair, + 1; 0: it stands alone
    int pair;
} part;

typedef struct span {
    size_t begin, end;
} span;

// The unit at hand: <trans-unit> or <segment>.
typedef struct unit {
    bool open, has_source, has_target, has_text; // has_text: in its target
    bool empty_tag;                              // <target/>
    span source, target;                         // <source> and all in it; the start tag of <target>
    size_t behind_source;                        // where a target is put: behind <source> and <seg-source>
    span inside;                                 // of the target
    size_t line_begin;                           // of the line that <source> begins
    span state;                                  // the attribute's value; empty: there is none
    bool is_new;                                 // by the state
    span prefix;                                 // of the name of <source>: "x:"
} unit;

typedef struct xliff {
    dgm_document *d;
    dgm_text text;
    dgm_kept kept;
    part *parts;
    size_t count, cap;
    unit u;
    // Open elements: what holds inside them.
    struct level {
        bool no;    // translate="no"
        bool lines; // xml:space="preserve"
        bool skip;  // neither source nor target of a unit: <alt-trans>, <note>
        bool source, target, code;
    } levels[DGM_XML_DEPTH + 1];
    int depth;
    size_t code; // where the code at hand begins
    part_kind code_kind;
    uint64_t code_id;
    span missing; // where the target's language is to be said; empty range, begin 0: nowhere
    const char *language_name;
    bool version_2, found;
} xliff;

static bool is(const char *name, const char *list)
{
    const size_t n = strlen(name);
    for (const char *at = list; *at;) {
        const size_t m = strcspn(at, " ");
        if (m == n && memcmp(at, name, n) == 0) return true;
        at += m + (at[m] == ' ');
    }
    return false;
}

static dgm_text bytes_of(const xliff *x, size_t begin, size_t end)
{
    return (dgm_text){x->text.data + begin, end - begin};
}

// ---- the content of <source> ---------------------------------------------------------------------

static dgm_status add_part(xliff *x, part_kind kind, size_t begin, size_t end, uint64_t id, dgm_error *err)
{
    part *last = x->count > 0 ? &x->parts[x->count - 1] : NULL;
    if (kind == PART_TEXT && last && last->kind == PART_TEXT && last->end == begin) {
        last->end = end;
        return DGM_OK;
    }
    DGM_TRY(dgm_grow(&x->parts, &x->cap, x->count + 1, sizeof *x->parts, err));
    x->parts[x->count++] = (part){.kind = kind, .begin = begin, .end = end, .id = id};
    return DGM_OK;
}

static uint64_t id_of(const dgm_xml_event *e)
{
    static const char *const names[] = {"rid", "startRef", "id"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = dgm_xml_attribute(e, names[i]);
        if (value) return dgm_hash_bytes(DGM_HASH_START, value, strlen(value));
    }
    return 0;
}

static dgm_status open_inline(xliff *x, const dgm_xml_event *e, const char *name, struct level *l, dgm_error *err)
{
    if (is(name, "g pc mrk")) return add_part(x, PART_OPEN, e->begin, e->end, 0, err);
    l->code = true;
    x->code = e->begin;
    x->code_kind = is(name, "bpt sc bx") ? PART_BEGIN : is(name, "ept ec ex") ? PART_END : PART_CODE;
    x->code_id = id_of(e);
    return DGM_OK;
}

// ---- units ---------------------------------------------------------------------------------------

// Codes whose partner stands in the same text: those that nest are pairs.
static void pair_codes(xliff *x)
{
    size_t open[OPEN_MAX];
    int depth = 0;
    for (size_t i = 0; i < x->count; i++) {
        part *p = &x->parts[i];
        if (p->kind == PART_OPEN || p->kind == PART_BEGIN) {
            if (depth < OPEN_MAX) open[depth] = i;
            depth++;
        } else if (p->kind == PART_CLOSE || p->kind == PART_END) {
            part *o = depth > 0 && depth <= OPEN_MAX ? &x->parts[open[depth - 1]] : NULL;
            const bool fits =
                o && (p->kind == PART_CLOSE ? o->kind == PART_OPEN : o->kind == PART_BEGIN && o->id == p->id);
            if (fits) {
                o->partner = i + 1;
                p->partner = open[depth - 1] + 1;
            }
            if (fits || p->kind == PART_CLOSE) depth--;
        }
    }
}

static dgm_status put_part(xliff *x, part *p, dgm_error *err)
{
    const dgm_text bytes = bytes_of(x, p->begin, p->end);
    if (p->kind == PART_TEXT) return dgm_segment_raw(x->d, bytes, err);
    if (p->partner == 0) return dgm_segment_empty(x->d, bytes, err);
    if (p->kind == PART_OPEN || p->kind == PART_BEGIN) return dgm_segment_open(x->d, bytes, &p->pair, err);
    return dgm_segment_close(x->d, bytes, x->parts[p->partner - 1].pair, err);
}

// "<target>" as <source> is written: its prefix, the blanks before it.
static const char *new_target(xliff *x)
{
    const unit *u = &x->u;
    const dgm_text blanks = bytes_of(x, u->line_begin, u->source.begin);
    dgm_writer w = {0};
    dgm_write_bytes(&w, blanks.data, blanks.size);
    dgm_write_text(&w, "<");
    dgm_write_bytes(&w, x->text.data + u->prefix.begin, u->prefix.end - u->prefix.begin);
    dgm_write_text(&w, "target>");
    const char *made =
        w.failed ? NULL : dgm_kept_text(&x->kept, (dgm_text){(const char *)w.data, w.size}, (dgm_text){"", 0});
    dgm_writer_free(&w);
    return made;
}

static const char *end_tag(xliff *x)
{
    char name[80];
    const span p = x->u.prefix;
    const size_t n = p.end - p.begin < sizeof name - 8 ? p.end - p.begin : 0;
    memcpy(name, "</", 2);
    memcpy(name + 2, x->text.data + p.begin, n);
    return dgm_kept_text(&x->kept, (dgm_text){name, n + 2}, dgm_text_of("target>"));
}

// Where the translation goes, and what is written around it.
static dgm_status aim(xliff *x, dgm_segment_spec *spec, dgm_error *err)
{
    const unit *u = &x->u;
    if (!u->has_target) {
        spec->begin = spec->end = u->behind_source;
        spec->before = new_target(x);
        spec->behind = end_tag(x);
    } else if (u->empty_tag) {
        const dgm_text tag = bytes_of(x, u->target.begin, u->target.end);
        spec->begin = u->target.begin;
        spec->end = u->target.end;
        spec->before = dgm_kept_text(&x->kept, (dgm_text){tag.data, tag.size - 2}, dgm_text_of(">"));
        spec->behind = end_tag(x);
    } else {
        spec->begin = u->inside.begin;
        spec->end = u->inside.end;
        return DGM_OK;
    }
    return spec->before && spec->behind ? DGM_OK : dgm_no_memory(err);
}

// What else changes with a unit's translation: its state, and where the file has to name the target's language.
static dgm_status say_translated(xliff *x, size_t index, dgm_error *err)
{
    const char *language = dgm_document_asked(x->d)->target_language;
    const unit *u = &x->u;
    if (u->state.end > u->state.begin)
        DGM_TRY(dgm_document_replace(x->d, 0, u->state.begin, u->state.end, dgm_text_of("translated"), index, err));
    if (x->missing.begin == 0 || !language || !language[0]) return DGM_OK;
    dgm_writer w = {0};
    dgm_write_format(&w, " %s=\"", x->language_name);
    dgm_xml_write_attribute(&w, dgm_text_of(language));
    const char *said =
        w.failed ? NULL : dgm_kept_text(&x->kept, (dgm_text){(const char *)w.data, w.size}, dgm_text_of("\""));
    dgm_writer_free(&w);
    if (!said) return dgm_no_memory(err);
    const span at = x->missing;
    x->missing.begin = 0;
    return dgm_document_replace(x->d, 0, at.begin, at.begin, dgm_text_of(said), index, err);
}

static dgm_status end_unit(xliff *x, const struct level *l, dgm_error *err)
{
    const unit *u = &x->u;
    const bool done = u->has_target && u->has_text && !u->is_new && !dgm_document_asked(x->d)->all;
    if (!u->has_source || l->no || done) return DGM_OK;
    dgm_segment_spec spec = {.escape = &dgm_escape_xml, .flags = DGM_SEGMENT_ICU | DGM_SEGMENT_TAGS};
    if (l->lines) spec.flags |= DGM_SEGMENT_LINES;
    size_t index;
    DGM_TRY(aim(x, &spec, err));
    pair_codes(x);
    DGM_TRY(dgm_segment_begin(x->d, &spec, &index, err));
    for (size_t i = 0; i < x->count; i++) DGM_TRY(put_part(x, &x->parts[i], err));
    DGM_TRY(dgm_segment_end(x->d, err));
    return say_translated(x, index, err);
}

// ---- elements ------------------------------------------------------------------------------------

static void read_state(xliff *x, const dgm_xml_event *e)
{
    static const char new_states[] = "new needs-translation initial";
    const char *state = dgm_xml_attribute(e, "state");
    size_t begin, end;
    if (!state || !is(state, new_states)) return;
    x->u.is_new = true;
    if (!dgm_xml_attribute_place(bytes_of(x, e->begin, e->end), "state", &begin, &end)) return;
    x->u.state = (span){e->begin + begin, e->begin + end};
}

static void open_source(xliff *x, const dgm_xml_event *e)
{
    unit *u = &x->u;
    const char *colon = strchr(e->name, ':');
    u->has_source = true;
    u->source.begin = u->line_begin = e->begin;
    u->prefix = (span){e->begin + 1, e->begin + 1 + (colon ? (size_t)(colon - e->name) + 1 : 0)};
    x->count = 0;
    size_t at = e->begin;
    while (at > 0 && (x->text.data[at - 1] == ' ' || x->text.data[at - 1] == '\t')) at--;
    if (at > 0 && x->text.data[at - 1] == '\n') u->line_begin = at - 1;
}

// The element that names languages: where an attribute for the target's is missing.
static void look_for_language(xliff *x, const dgm_xml_event *e, const char *name)
{
    if (!is(name, x->version_2 ? "xliff" : "file")) return;
    x->language_name = x->version_2 ? "trgLang" : "target-language";
    if (dgm_xml_attribute(e, x->language_name)) return;
    size_t at = e->begin + 1 + strlen(e->name);
    x->missing = (span){at, at};
}

static void open_level(const dgm_xml_event *e, struct level *l)
{
    const char *translate = dgm_xml_attribute(e, "translate"), *space = dgm_xml_attribute(e, "xml:space");
    if (translate) l->no = strcmp(translate, "no") == 0;
    if (space) l->lines = strcmp(space, "preserve") == 0;
}

static dgm_status open_element(xliff *x, const dgm_xml_event *e, dgm_error *err)
{
    const char *name = dgm_xml_local(e->name);
    x->levels[x->depth + 1] = x->levels[x->depth];
    struct level *l = &x->levels[++x->depth];
    if (l->skip || l->code) return DGM_OK;
    if (l->source) return open_inline(x, e, name, l, err);
    if (x->depth == 1) {
        const char *version = dgm_xml_attribute(e, "version");
        x->found = is(name, "xliff");
        x->version_2 = version && version[0] == '2';
    }
    open_level(e, l);
    look_for_language(x, e, name);
    if (is(name, "trans-unit segment")) {
        x->u = (unit){.open = true};
        if (x->version_2) read_state(x, e);
    } else if (x->u.open && is(name, "source")) {
        l->source = true;
        open_source(x, e);
    } else if (x->u.open && is(name, "target")) {
        l->target = true;
        x->u.has_target = true;
        x->u.target = (span){e->begin, e->end};
        x->u.inside = (span){e->end, e->end};
        if (!x->version_2) read_state(x, e);
    } else if (x->u.open && !l->target) {
        l->skip = true; // <alt-trans>, <note>; what follows <seg-source> stands behind it
    }
    return DGM_OK;
}

static dgm_status close_element(xliff *x, const dgm_xml_event *e, dgm_error *err)
{
    const char *name = dgm_xml_local(e->name);
    const struct level own = x->levels[x->depth--], *outer = &x->levels[x->depth];
    if (own.code && !outer->code) return add_part(x, x->code_kind, x->code, e->end, x->code_id, err);
    if (own.code) return DGM_OK;
    if (own.source && outer->source) return add_part(x, PART_CLOSE, e->begin, e->end, 0, err);
    if (own.source) x->u.source.end = x->u.behind_source = e->end;
    if (own.target && !outer->target) {
        x->u.inside.end = e->begin;
        x->u.empty_tag = e->begin == e->end;
    }
    if (own.skip && !outer->skip && is(name, "seg-source")) x->u.behind_source = e->end;
    if (!own.skip && x->u.open && is(name, "trans-unit segment")) {
        x->u.open = false;
        return end_unit(x, &own, err);
    }
    return DGM_OK;
}

static dgm_status take(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    xliff *x = cookie;
    const struct level *l = &x->levels[x->depth];
    if (e->kind == DGM_XML_OPEN) return open_element(x, e, err);
    if (e->kind == DGM_XML_CLOSE) return close_element(x, e, err);
    if (l->skip || l->code) return DGM_OK;
    if (l->target && e->kind == DGM_XML_TEXT) x->u.has_text = true;
    if (!l->source) return DGM_OK;
    const bool plain = e->kind == DGM_XML_TEXT && x->text.data[e->begin] != '<';
    return add_part(x, plain ? PART_TEXT : PART_CODE, e->begin, e->end, 0, err);
}

static void release(void *state)
{
    xliff *x = state;
    dgm_kept_free(&x->kept);
    dgm_free(x->parts);
    dgm_free(x);
}

static dgm_status read_xliff(dgm_document *d, dgm_error *err)
{
    xliff *x = dgm_calloc(1, sizeof *x);
    if (!x) return dgm_no_memory(err);
    dgm_document_set_state(d, x, release);
    x->d = d;
    x->text = dgm_document_source(d, 0);
    DGM_TRY(dgm_xml_walk(x->text, take, x, err));
    DGM_FAIL_IF(!x->found, err, DGM_ERR_FORMAT, "no XLIFF: its outermost element is not <xliff>");
    return DGM_OK;
}

static bool sniff_xliff(dgm_text data)
{
    enum { BEGIN = 512 };
    const size_t n = data.size < BEGIN ? data.size : BEGIN;
    for (size_t i = 0; i + 6 < n; i++)
        if (memcmp(data.data + i, "<xliff", 6) == 0) return true;
    return false;
}

const dgm_document_reader dgm_xliff_reader = {
    .format = {.size = sizeof(dgm_document_format),
               .name = "xliff",
               .endings = "xliff xlf xlf2 mxliff sdlxliff",
               .summary = "XLIFF 1.2 and 2: units without a translation, or all of them"},
    .sniff = sniff_xliff,
    .read = read_xliff,
};
