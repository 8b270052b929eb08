// SPDX-License-Identifier: MIT
// YAML with texts for people (i18n files): all strings that are values, by libyaml, whose events say where they
// stand. Keys stay, numbers, dates and words of YAML's own, and what has an anchor or a tag. A value is written in
// the style it had; one without quotes gets some where its translation needs them.
#include <string.h>
#include <yaml.h>

#include "base/mem.h"
#include "document/document.h"

enum { DEPTH_MAX = 256 };

typedef struct reading {
    dgm_document *d;
    dgm_text t;
    size_t index, byte; // libyaml counts characters: where both have come to
    struct {
        bool mapping, key;
    } stack[DEPTH_MAX];
    int depth;
} reading;

// ---- places ---------------------------------------------------------------------------------------

static size_t byte_of(const reading *r, size_t index)
{
    size_t at = r->byte;
    for (size_t i = r->index; i < index && at < r->t.size; i++) {
        at++;
        while (at < r->t.size && ((unsigned char)r->t.data[at] & 0xC0) == 0x80) at++;
    }
    return at;
}

static void move_to(reading *r, size_t index)
{
    if (index < r->index) return;
    r->byte = byte_of(r, index);
    r->index = index;
}

// ---- writing --------------------------------------------------------------------------------------

static bool is_word_of_yaml(dgm_text t)
{
    static const char *const words[] = {"true", "false", "yes",  "no",  "on",   "off",  "null",  "True", "False",
                                        "Yes",  "No",    "On",   "Off", "Null", "TRUE", "FALSE", "YES",  "NO",
                                        "ON",   "OFF",   "NULL", "y",   "n",    "Y",    "N"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (dgm_text_equal(t, dgm_text_of(words[i]))) return true;
    return false;
}

// May it stand without quotes?
static bool is_plain(dgm_text t)
{
    const char first = t.size ? t.data[0] : 0;
    if (!first || is_word_of_yaml(t) || strchr("-?:,[]{}#&*!|>'\"%@` .0123456789~+=", first)) return false;
    for (size_t i = 0; i < t.size; i++) {
        const char c = t.data[i], next = i + 1 < t.size ? t.data[i + 1] : ' ';
        if (strchr("[]{},\n\t", c) || (c == ':' && next == ' ') || (c == ' ' && (next == '#' || i + 1 == t.size)))
            return false;
    }
    return true;
}

static void put_double(dgm_text t, dgm_writer *out)
{
    dgm_write_u8(out, '"');
    dgm_escape_json.encode(t, out);
    dgm_write_u8(out, '"');
}

static void put_single(dgm_text t, dgm_writer *out)
{
    dgm_write_u8(out, '\'');
    for (size_t i = 0; i < t.size; i++) {
        if (t.data[i] == '\'') dgm_write_u8(out, '\'');
        dgm_write_u8(out, (uint8_t)t.data[i]);
    }
    dgm_write_u8(out, '\'');
}

// "|" or ">" with its first line as it was, then every line with the indentation of the first.
static void put_block(dgm_text raw, dgm_text t, dgm_writer *out)
{
    size_t header = 0, indent = 0;
    while (header < raw.size && raw.data[header] != '\n') header++;
    size_t first = header + 1;
    for (size_t i = first; i < raw.size && (raw.data[i] == ' ' || raw.data[i] == '\n'); i++)
        if (raw.data[i] == '\n') first = i + 1;
    while (first + indent < raw.size && raw.data[first + indent] == ' ') indent++;
    while (t.size && t.data[t.size - 1] == '\n') t.size--;
    dgm_write_bytes(out, raw.data, header);
    for (size_t at = 0; at <= t.size;) {
        const char *stop = at < t.size ? memchr(t.data + at, '\n', t.size - at) : NULL;
        const size_t end = stop ? (size_t)(stop - t.data) : t.size;
        dgm_write_u8(out, '\n');
        for (size_t i = 0; i < indent && end > at; i++) dgm_write_u8(out, ' ');
        dgm_write_bytes(out, t.data + at, end - at);
        if (raw.data[0] == '>' && stop) dgm_write_u8(out, '\n');
        at = end + 1;
    }
}

static dgm_status write_scalar(const dgm_document *d, size_t index, dgm_text text, dgm_writer *out, dgm_error *err)
{
    const size_t begin = dgm_segment_range(d, index).begin, end = dgm_segment_range(d, index).end;
    const dgm_text raw = dgm_source_part(d, 0, begin, end);
    (void)err;
    switch ((yaml_scalar_style_t)(uintptr_t)dgm_segment_user(d, index)) {
    case YAML_LITERAL_SCALAR_STYLE:
    case YAML_FOLDED_SCALAR_STYLE:
        put_block(raw, text, out);
        break;
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
        put_double(text, out);
        break;
    case YAML_SINGLE_QUOTED_SCALAR_STYLE:
        if (memchr(text.data, '\n', text.size))
            put_double(text, out);
        else
            put_single(text, out);
        break;
    default:
        if (is_plain(text))
            dgm_write_bytes(out, text.data, text.size);
        else
            put_double(text, out);
    }
    return DGM_OK;
}

// ---- reading --------------------------------------------------------------------------------------

// Numbers, dates and the like are no text, and a folded block with lines of its own is left alone.
static bool is_text(const yaml_event_t *e, dgm_text value)
{
    const yaml_scalar_style_t style = e->data.scalar.style;
    if (e->data.scalar.anchor || e->data.scalar.tag) return false;
    if (style == YAML_PLAIN_SCALAR_STYLE && is_word_of_yaml(value)) return false;
    for (size_t i = 0; style == YAML_FOLDED_SCALAR_STYLE && i < value.size; i++)
        if (value.data[i] == ' ' && (i == 0 || value.data[i - 1] == '\n')) return false;
    return true;
}

static dgm_status add_scalar(reading *r, const yaml_event_t *e, dgm_error *err)
{
    const dgm_text value = {(const char *)e->data.scalar.value, e->data.scalar.length};
    const yaml_scalar_style_t style = e->data.scalar.style;
    size_t end = byte_of(r, e->end_mark.index);
    int source = 0;
    if (!is_text(e, value)) return DGM_OK;
    const bool block = style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE;
    while (block && end > r->byte && strchr(" \r\n", r->t.data[end - 1])) end--;
    char *copy = dgm_strndup(value.data, value.size);
    if (!copy) return dgm_no_memory(err);
    DGM_TRY(dgm_document_add_source(r->d, copy, value.size, &source, err));
    const dgm_segment_spec spec = {.begin = r->byte,
                                   .end = end,
                                   .write = write_scalar,
                                   .user = (void *)(uintptr_t)style,
                                   .escape = &dgm_escape_none,
                                   .flags = DGM_SEGMENT_LINES | DGM_SEGMENT_TAGS | DGM_SEGMENT_ICU};
    DGM_TRY(dgm_segment_begin(r->d, &spec, NULL, err));
    DGM_TRY(dgm_segment_raw(r->d, dgm_document_source(r->d, source), err));
    return dgm_segment_end(r->d, err);
}

// Is the node that comes a key? The one behind it then is its value.
static bool take_turn(reading *r)
{
    if (!r->depth || !r->stack[r->depth - 1].mapping) return false;
    const bool key = r->stack[r->depth - 1].key;
    r->stack[r->depth - 1].key = !key;
    return key;
}

static dgm_status take_event(reading *r, const yaml_event_t *e, dgm_error *err)
{
    move_to(r, e->start_mark.index);
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return take_turn(r) ? DGM_OK : add_scalar(r, e, err);
    case YAML_ALIAS_EVENT:
        take_turn(r);
        return DGM_OK;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        take_turn(r);
        DGM_FAIL_IF(r->depth == DEPTH_MAX, err, DGM_ERR_UNSUPPORTED, "line %zu: nested deeper than %d",
                    e->start_mark.line + 1, DEPTH_MAX);
        r->stack[r->depth].mapping = r->stack[r->depth].key = e->type == YAML_MAPPING_START_EVENT;
        r->depth++;
        return DGM_OK;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        r->depth--;
        return DGM_OK;
    default:
        return DGM_OK;
    }
}

static dgm_status read_events(reading *r, yaml_parser_t *parser, dgm_error *err)
{
    for (;;) {
        yaml_event_t e;
        if (!yaml_parser_parse(parser, &e)) {
            if (parser->error == YAML_MEMORY_ERROR) return dgm_no_memory(err);
            return dgm_fail(err, DGM_ERR_FORMAT, "line %zu: no YAML: %s", parser->problem_mark.line + 1,
                            parser->problem ? parser->problem : "it cannot be read");
        }
        const bool last = e.type == YAML_STREAM_END_EVENT;
        const dgm_status st = take_event(r, &e, err);
        yaml_event_delete(&e);
        if (st != DGM_OK || last) return st;
    }
}

static dgm_status read_yaml(dgm_document *d, dgm_error *err)
{
    reading r = {.d = d, .t = dgm_document_source(d, 0)};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return dgm_no_memory(err);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)r.t.data, r.t.size);
    const dgm_status st = read_events(&r, &parser, err);
    yaml_parser_delete(&parser);
    return st;
}

const dgm_document_reader dgm_yaml_reader = {
    .format = DGM_FORMAT("yaml", "yaml yml", "values of YAML; keys and placeholders stay"),
    .read = read_yaml,
};
