// SPDX-License-Identifier: MIT
// See md_text.h.
#include "document/md_text.h"

#include <string.h>

#include "document/document_private.h"
#include "document/wrap.h"

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80;
}

static char char_at(dgm_text t, size_t pos)
{
    return pos < t.size ? t.data[pos] : 0;
}

static bool is_punctuation(char c)
{
    return c > ' ' && c < 0x7f && !is_plain(c);
}

// Would this character mean something?
static bool is_special(dgm_text t, size_t pos)
{
    const char c = t.data[pos], before = pos ? t.data[pos - 1] : ' ', next = char_at(t, pos + 1);
    switch (c) {
    case '\\':
        return is_punctuation(next) || next == 0;
    case '*':
    case '`':
        return true;
    case '_':
        return !(is_plain(before) && is_plain(next));
    case '<':
        return next == '/' || next == '!' || next == '?' || is_plain(next);
    case '[':
        return next == '^' && is_plain(char_at(t, pos + 2)); // a footnote
    case ']':
        return next == '(' || next == '[';
    case '|':
        return true;
    case '~':
        return before == '~' || next == '~';
    default:
        return false;
    }
}

static void encode_md(dgm_text t, dgm_writer *raw)
{
    for (size_t i = 0; i < t.size; i++) {
        const bool blank = t.data[i] == '\xc2' && char_at(t, i + 1) == '\xa0';
        if (is_special(t, i)) dgm_write_u8(raw, '\\');
        if (blank)
            dgm_write_text(raw, "&nbsp;");
        else
            dgm_write_u8(raw, (uint8_t)t.data[i]);
        i += blank;
    }
}

// Texts come from MD4C without their escapes.
static dgm_status decode_md(dgm_text raw, dgm_writer *text, dgm_writer *map, dgm_error *err)
{
    return dgm_escape_html.decode(raw, text, map, err);
}

const dgm_escape dgm_md_escape = {"md", decode_md, encode_md};

dgm_status dgm_md_entity(dgm_document *d, dgm_text raw, dgm_error *err)
{
    dgm_writer text = {0};
    dgm_status st = dgm_escape_html.decode(raw, &text, NULL, err);
    if (st == DGM_OK) st = dgm_segment_text(d, (dgm_text){(const char *)text.data, text.size}, err);
    dgm_writer_free(&text);
    return st;
}

void dgm_md_shown(dgm_text text, bool address, char *shown, size_t room)
{
    bool marked = address;
    shown[0] = 0;
    if (!text.size || text.size >= room) return;
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (c <= ' ' || (!address && !letter && c != '_')) return;
        marked |= c == '_' && i && i + 1 < text.size;
    }
    if (!marked) return;
    memcpy(shown, text.data, text.size);
    shown[text.size] = 0;
}

// ---- lines ----------------------------------------------------------------------------------------

// Would a line that begins so be a heading, a list, a quote, a table?
static bool begins_block(dgm_text t, size_t pos)
{
    const char c = char_at(t, pos), next = char_at(t, pos + 1);
    if (c == '>' || c == '=' || c == '#') return true;
    if ((c == '-' || c == '+') && (next == ' ' || next == 0 || next == c)) return true;
    if ((c == '~' || c == '`') && next == c && char_at(t, pos + 2) == c) return true;
    size_t i = pos;
    while (char_at(t, i) >= '0' && char_at(t, i) <= '9') i++;
    return i > pos && (char_at(t, i) == '.' || char_at(t, i) == ')') && (char_at(t, i + 1) == ' ' || i + 1 >= t.size);
}

// What begins a block in the translation and not in the source is escaped.
static size_t put_start(dgm_text source, dgm_text text, dgm_writer *out)
{
    size_t i = 0;
    if (!begins_block(text, 0) || begins_block(source, 0)) return 0;
    while (char_at(text, i) >= '0' && char_at(text, i) <= '9') i++;
    dgm_write_bytes(out, text.data, i);
    dgm_write_u8(out, '\\');
    return i;
}

// Longest line of the source's own, 0: it has only one. *indent: what its second line begins with.
static size_t source_width(const dgm_document *d, const dgm_segment_spec *s, dgm_text *indent)
{
    const dgm_text t = dgm_document_source(d, s->source);
    size_t width = 0, begin = s->begin;
    bool several = false;
    while (begin > 0 && t.data[begin - 1] != '\n') begin--;
    for (size_t i = begin; i <= s->end; i++) {
        if (i < s->end && t.data[i] != '\n') continue;
        const size_t columns = dgm_wrap_columns((dgm_text){t.data + begin, i - begin});
        if (columns > width) width = columns;
        if (i < s->end && !several) {
            size_t end = i + 1;
            while (end < s->end && (t.data[end] == ' ' || t.data[end] == '\t' || t.data[end] == '>')) end++;
            *indent = (dgm_text){t.data + i + 1, end - i - 1};
            several = true;
        }
        begin = i + 1;
    }
    return several ? width : 0;
}

static void put_wrapped(dgm_text text, size_t at, size_t width, dgm_text indent, dgm_writer *out)
{
    while (at < text.size) {
        size_t next = 0, wide = width, end = dgm_wrap_line(text, at, wide, &next);
        while (next < text.size && begins_block(text, next)) end = dgm_wrap_line(text, at, wide += 8, &next);
        dgm_write_bytes(out, text.data + at, end - at);
        if (next < text.size) {
            dgm_write_u8(out, '\n');
            dgm_write_bytes(out, indent.data, indent.size);
        }
        at = next;
    }
}

dgm_status dgm_md_write(const dgm_document *d, size_t index, dgm_text encoded, dgm_writer *out, dgm_error *err)
{
    const dgm_segment_spec *s = &d->segments[index].spec;
    dgm_text indent = {NULL, 0};
    const size_t width = source_width(d, s, &indent);
    const bool hard = memchr(encoded.data, '\n', encoded.size) != NULL; // has line breaks of its own
    const size_t at = put_start(dgm_source_part(d, s->source, s->begin, s->end), encoded, out);
    (void)err;
    if (width && !hard)
        put_wrapped(encoded, at, width > indent.size ? width - indent.size : width, indent, out);
    else
        dgm_write_bytes(out, encoded.data + at, encoded.size - at);
    return DGM_OK;
}
