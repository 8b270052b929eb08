// SPDX-License-Identifier: MIT
// Paragraphs of OpenDocument: text stands in the paragraph itself, elements around it are inline tags, everything else
// (a footnote, a picture, a field, several spaces) stays as it is and keeps its place.
#include <string.h>

#include "document/office_private.h"

enum { OPEN_MAX = 64 }; // inline elements inside each other; deeper ones are tags without a partner

typedef struct spans {
    dgm_document *d;
    dgm_text source;
    int pairs[OPEN_MAX];
    int open;
} spans;

static dgm_text bytes_of(const spans *s, const dgm_office_item *item)
{
    return (dgm_text){s->source.data + item->begin, item->end - item->begin};
}

// Further spaces are an element, <text:s>, of which the first is in the text; if it is not, words would become one.
static bool parts_words(const spans *s, const dgm_office_item *item)
{
    const dgm_text tag = bytes_of(s, item);
    const char before = item->begin > 0 ? s->source.data[item->begin - 1] : '>';
    return tag.size > 8 && memcmp(tag.data, "<text:s", 7) == 0 && (tag.data[7] == ' ' || tag.data[7] == '/') &&
           before != '>' && before != ' ' && before != '\n' && before != '\t';
}

static dgm_status put_tag(spans *s, const dgm_office_item *item, dgm_error *err)
{
    const dgm_text bytes = bytes_of(s, item);
    if (item->kind == DGM_OFFICE_OPEN) {
        if (s->open++ >= OPEN_MAX) return dgm_segment_empty(s->d, bytes, err);
        return dgm_segment_open(s->d, bytes, &s->pairs[s->open - 1], err);
    }
    if (item->kind == DGM_OFFICE_CLOSE) {
        if (--s->open >= OPEN_MAX) return dgm_segment_empty(s->d, bytes, err);
        return dgm_segment_close(s->d, bytes, s->pairs[s->open], err);
    }
    if (item->kind == DGM_OFFICE_BREAK || parts_words(s, item)) return dgm_segment_break(s->d, bytes, err);
    return dgm_segment_empty(s->d, bytes, err);
}

// Two neighbours that are one: parts of a text, an element without content.
static bool joins(const dgm_office_item *a, const dgm_office_item *b)
{
    if (a->kind == DGM_OFFICE_TEXT && b->kind == DGM_OFFICE_TEXT) return true;
    return a->kind == DGM_OFFICE_OPEN && b->kind == DGM_OFFICE_CLOSE && a->end == b->begin;
}

// Items between the tags of a paragraph.
static dgm_status put_items(spans *s, const dgm_office_item *items, size_t count, dgm_error *err)
{
    for (size_t i = 0; i < count;) {
        dgm_office_item item = items[i++];
        const bool element = item.kind == DGM_OFFICE_OPEN;
        while (i < count && joins(&item, &items[i])) {
            item.end = items[i++].end;
            if (element) {
                item.kind = DGM_OFFICE_OBJECT;
                break;
            }
        }
        if (item.kind == DGM_OFFICE_TEXT)
            DGM_TRY(dgm_segment_raw(s->d, bytes_of(s, &item), err));
        else
            DGM_TRY(put_tag(s, &item, err));
    }
    return DGM_OK;
}

static bool has_text(const dgm_office_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (items[i].kind == DGM_OFFICE_TEXT) return true;
    return false;
}

dgm_status dgm_office_spans(dgm_document *d, int source, const dgm_office_grammar *g, const dgm_office_item *items,
                            size_t count, dgm_error *err)
{
    spans s = {.d = d, .source = dgm_document_source(d, source)};
    for (size_t i = 0; i < count; i++) {
        if (items[i].kind != DGM_OFFICE_PARAGRAPH) continue;
        const size_t first = i + 1;
        while (items[i].kind != DGM_OFFICE_END) i++;
        if (!has_text(items + first, i - first)) continue;
        const dgm_segment_spec spec = {.source = source,
                                       .begin = items[first - 1].end,
                                       .end = items[i].begin,
                                       .escape = &dgm_escape_xml,
                                       .flags = g->flags | DGM_SEGMENT_IN_PLACE};
        size_t index;
        s.open = 0;
        DGM_TRY(dgm_segment_begin(d, &spec, &index, err));
        DGM_TRY(put_items(&s, items + first, i - first, err));
        DGM_TRY(dgm_segment_end(d, err));
    }
    return DGM_OK;
}
