// SPDX-License-Identifier: MIT
// JSON with texts for people (i18n files): all strings that are values. Jansson says whether it is JSON; then strings
// are found by a walk over the bytes, which are known to be good. Keys stay, and what stands under a key that begins
// with "@" (notes in ARB files).
#include <string.h>

#include "base/json.h"
#include "document/document.h"

typedef struct walk {
    dgm_document *d;
    dgm_text t;
    const dgm_escape *escape;
    int depth;
    int quiet; // depth of the object under "@..." that is being passed over; 0: none
    bool note; // the value that comes next belongs to such a key
} walk;

static size_t end_of_string(dgm_text t, size_t pos)
{
    for (size_t i = pos + 1; i < t.size; i++) {
        if (t.data[i] == '\\')
            i++;
        else if (t.data[i] == '"')
            return i;
    }
    return t.size;
}

static bool is_key(dgm_text t, size_t pos)
{
    while (pos < t.size && strchr(" \t\r\n", t.data[pos]) && t.data[pos]) pos++;
    return pos < t.size && t.data[pos] == ':';
}

static dgm_status add_value(walk *w, size_t begin, size_t end, dgm_error *err)
{
    const dgm_segment_spec spec = {.begin = begin,
                                   .end = end,
                                   .escape = w->escape,
                                   .flags = DGM_SEGMENT_LINES | DGM_SEGMENT_TAGS | DGM_SEGMENT_ICU};
    DGM_TRY(dgm_segment_begin(w->d, &spec, NULL, err));
    DGM_TRY(dgm_segment_raw(w->d, (dgm_text){w->t.data + begin, end - begin}, err));
    return dgm_segment_end(w->d, err);
}

static dgm_status take_string(walk *w, size_t begin, size_t end, dgm_error *err)
{
    if (is_key(w->t, end + 1)) {
        w->note = begin < end && w->t.data[begin] == '@';
        return DGM_OK;
    }
    const bool note = w->note || w->quiet;
    w->note = false;
    return note ? DGM_OK : add_value(w, begin, end, err);
}

static dgm_status walk_values(walk *w, dgm_error *err)
{
    for (size_t i = 0; i < w->t.size; i++) {
        const char c = w->t.data[i];
        if (c == '"') {
            const size_t end = end_of_string(w->t, i);
            DGM_TRY(take_string(w, i + 1, end, err));
            i = end;
        } else if (c == '{' || c == '[') {
            w->depth++;
            if (w->note && !w->quiet) w->quiet = w->depth;
            w->note = false;
        } else if (c == '}' || c == ']') {
            if (w->quiet == w->depth) w->quiet = 0;
            w->depth--;
        } else if (c == ',') {
            w->note = false;
        }
    }
    return DGM_OK;
}

// A file that writes "\u00fc" goes on to do so.
static bool is_ascii(dgm_text t)
{
    bool escapes = false;
    for (size_t i = 0; i < t.size; i++) {
        if ((unsigned char)t.data[i] >= 0x80) return false;
        escapes |= t.data[i] == '\\' && i + 1 < t.size && t.data[i + 1] == 'u';
    }
    return escapes;
}

static dgm_status read_json(dgm_document *d, dgm_error *err)
{
    const dgm_text t = dgm_document_source(d, 0);
    json_t *tree = NULL;
    DGM_TRY(dgm_json_parse(&tree, t.data, t.size, err));
    json_decref(tree);
    walk w = {.d = d, .t = t, .escape = is_ascii(t) ? &dgm_escape_json_ascii : &dgm_escape_json};
    return walk_values(&w, err);
}

const dgm_document_reader dgm_json_reader = {
    .format = DGM_FORMAT("json", "json arb", "values of JSON; keys and placeholders stay"),
    .read = read_json,
};
