// SPDX-License-Identifier: MIT
// Properties files of Java: "key = value", values over several lines with backslashes.
#include "document/document.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static bool is_stop(char c)
{
    return c == '\n' || c == '\r';
}

// The end of the logical line that begins at pos: backslashes before line breaks go on.
static size_t end_of_line(dgm_text t, size_t pos)
{
    while (pos < t.size && !is_stop(t.data[pos])) {
        if (t.data[pos] == '\\') {
            pos++;
            if (pos + 1 < t.size && t.data[pos] == '\r' && t.data[pos + 1] == '\n') pos++;
        }
        pos++;
    }
    return pos < t.size ? pos : t.size;
}

// Where the value begins: behind the key and what separates them.
static size_t value_of(dgm_text t, size_t pos, size_t end)
{
    while (pos < end && !is_blank(t.data[pos]) && t.data[pos] != '=' && t.data[pos] != ':')
        pos += t.data[pos] == '\\' ? 2 : 1;
    while (pos < end && is_blank(t.data[pos])) pos++;
    if (pos < end && (t.data[pos] == '=' || t.data[pos] == ':')) pos++;
    while (pos < end && is_blank(t.data[pos])) pos++;
    return pos < end ? pos : end;
}

static bool is_ascii(dgm_text t)
{
    for (size_t i = 0; i < t.size; i++)
        if ((unsigned char)t.data[i] >= 0x80) return false;
    return true;
}

static dgm_status read_properties(dgm_document *d, dgm_error *err)
{
    const dgm_text t = dgm_document_source(d, 0);
    const dgm_escape *escape = is_ascii(t) ? &dgm_escape_properties_ascii : &dgm_escape_properties;
    for (size_t at = 0; at < t.size;) {
        while (at < t.size && (is_blank(t.data[at]) || is_stop(t.data[at]))) at++;
        if (at >= t.size) break;
        if (t.data[at] == '#' || t.data[at] == '!') { // a comment does not go on
            while (at < t.size && !is_stop(t.data[at])) at++;
            continue;
        }
        const size_t end = end_of_line(t, at), begin = value_of(t, at, end);
        const dgm_segment_spec spec = {.begin = begin,
                                       .end = end,
                                       .escape = escape,
                                       .flags = DGM_SEGMENT_LINES | DGM_SEGMENT_TAGS | DGM_SEGMENT_ICU};
        DGM_TRY(dgm_segment_begin(d, &spec, NULL, err));
        DGM_TRY(dgm_segment_raw(d, (dgm_text){t.data + begin, end - begin}, err));
        DGM_TRY(dgm_segment_end(d, err));
        at = end;
    }
    return DGM_OK;
}

const dgm_document_reader dgm_properties_reader = {
    .format = DGM_FORMAT("properties", "properties", "values of Java's properties; keys and placeholders stay"),
    .read = read_properties,
};
