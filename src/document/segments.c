// SPDX-License-Identifier: MIT
// Segments as readers give them: begin, parts, end; see document.h.
#include <string.h>

#include "base/mem.h"
#include "document/document_private.h"

dgm_text dgm_pool_text(const dgm_document *d, size_t at, size_t size)
{
    return (dgm_text){d->pool.data ? (const char *)d->pool.data + at : "", size};
}

dgm_status dgm_pool_add(dgm_document *d, dgm_text text, size_t *at, dgm_error *err)
{
    *at = d->pool.size;
    dgm_write_bytes(&d->pool, text.data, text.size);
    return d->pool.failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_segment_begin(dgm_document *d, const dgm_segment_spec *spec, size_t *index, dgm_error *err)
{
    DGM_FAIL_IF(d->making || spec->begin > spec->end || spec->source < 0 || (size_t)spec->source >= d->source_count ||
                    spec->end > d->sources[spec->source].size,
                err, DGM_ERR_ARGUMENT, "a segment of a document begins where none can");
    DGM_TRY(dgm_grow(&d->segments, &d->segment_cap, d->segment_count + 1, sizeof *d->segments, err));
    d->segments[d->segment_count] = (dgm_segment){.spec = *spec, .item = d->item_count};
    if (!spec->escape) d->segments[d->segment_count].spec.escape = &dgm_escape_none;
    if (index) *index = d->segment_count;
    d->making = true;
    d->part_count = 0;
    d->pairs = 0;
    d->segment_pool = d->pool.size;
    return DGM_OK;
}

void dgm_segment_drop(dgm_document *d)
{
    d->making = false;
    d->part_count = 0;
}

dgm_status dgm_segment_end(dgm_document *d, dgm_error *err)
{
    size_t units = 0;
    d->making = false;
    dgm_segment *s = &d->segments[d->segment_count];
    DGM_TRY(dgm_units_make(d, &units, err));
    if (!units) { // nothing to translate: it stays as it is
        d->item_count = s->item;
        return DGM_OK;
    }
    s->item_count = d->item_count - s->item;
    if (s->spec.flags & DGM_SEGMENT_NESTED) {
        DGM_TRY(dgm_grow(&d->nested, &d->nested_cap, d->nested_count + 1, sizeof *d->nested, err));
        d->nested[d->nested_count++] = d->segment_count;
    }
    d->segment_count++;
    return DGM_OK;
}

dgm_status dgm_segment_end_at(dgm_document *d, size_t end, dgm_error *err)
{
    d->segments[d->segment_count].spec.end = end;
    return dgm_segment_end(d, err);
}

void *dgm_segment_user(const dgm_document *d, size_t index)
{
    return d->segments[index].spec.user;
}

dgm_range dgm_segment_range(const dgm_document *d, size_t index)
{
    return (dgm_range){d->segments[index].spec.begin, d->segments[index].spec.end};
}

static dgm_status add_part(dgm_document *d, const dgm_part *part, dgm_error *err)
{
    DGM_TRY(dgm_grow(&d->parts, &d->part_cap, d->part_count + 1, sizeof *d->parts, err));
    d->parts[d->part_count++] = *part;
    return DGM_OK;
}

dgm_status dgm_segment_text(dgm_document *d, dgm_text text, dgm_error *err)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .text_size = text.size};
    if (!text.size) return DGM_OK;
    DGM_TRY(dgm_pool_add(d, text, &part.text, err));
    return add_part(d, &part, err);
}

dgm_status dgm_segment_open(dgm_document *d, dgm_text bytes, int *pair, dgm_error *err)
{
    const dgm_part part = {.kind = DGM_PART_OPEN, .bytes = bytes, .pair = d->pairs};
    if (pair) *pair = d->pairs;
    d->pairs++;
    return add_part(d, &part, err);
}

dgm_status dgm_segment_close(dgm_document *d, dgm_text bytes, int pair, dgm_error *err)
{
    const dgm_part part = {.kind = DGM_PART_CLOSE, .bytes = bytes, .pair = pair};
    return add_part(d, &part, err);
}

dgm_status dgm_segment_empty(dgm_document *d, dgm_text bytes, dgm_error *err)
{
    const dgm_part part = {.kind = DGM_PART_EMPTY, .bytes = bytes, .pair = -1};
    return add_part(d, &part, err);
}

dgm_status dgm_segment_break(dgm_document *d, dgm_text bytes, dgm_error *err)
{
    const dgm_part part = {.kind = DGM_PART_BREAK, .bytes = bytes, .pair = -1};
    return add_part(d, &part, err);
}

dgm_status dgm_segment_keep(dgm_document *d, dgm_text bytes, const char *shown, dgm_error *err)
{
    const dgm_text text = dgm_text_of(shown);
    dgm_part part = {
        .kind = DGM_PART_KEEP, .bytes = bytes, .pair = -1, .shown = text.size > 0, .text_size = text.size};
    DGM_TRY(dgm_pool_add(d, text, &part.text, err));
    return add_part(d, &part, err);
}

// ---- tags in plain text ---------------------------------------------------------------------------

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == ':' || c == '.';
}

static size_t end_of_tag(dgm_text t, size_t pos)
{
    enum { LONGEST = 4096 };
    char quote = 0;
    for (size_t i = pos; i < t.size && i < pos + LONGEST; i++) {
        if (quote)
            quote = t.data[i] == quote ? 0 : quote;
        else if (t.data[i] == '>')
            return i + 1;
        else if (t.data[i] == '<')
            return 0;
        else if ((t.data[i] == '"' || t.data[i] == '\'') && t.data[i - 1] == '=')
            quote = t.data[i];
    }
    return 0;
}

size_t dgm_tag_at(dgm_text t, size_t pos, dgm_tag_kind *kind, dgm_text *name)
{
    if (pos + 2 >= t.size || t.data[pos] != '<') return 0;
    const bool close = t.data[pos + 1] == '/';
    const size_t from = pos + 1 + close;
    *kind = DGM_TAG_EMPTY;
    *name = (dgm_text){t.data + from, 0};
    if (pos + 6 < t.size && memcmp(t.data + pos, "<!--", 4) == 0) {
        for (size_t i = pos + 4; i + 3 <= t.size; i++)
            if (memcmp(t.data + i, "-->", 3) == 0) return i + 3 - pos;
        return 0;
    }
    if (!is_letter(t.data[from])) return 0;
    while (from + name->size < t.size && is_name(t.data[from + name->size])) name->size++;
    const char next = from + name->size < t.size ? t.data[from + name->size] : 0;
    if (next != '>' && next != '/' && next != ' ' && next != '\t' && next != '\n' && next != '\r') return 0;
    const size_t end = end_of_tag(t, from + name->size);
    if (!end) return 0;
    *kind = close ? DGM_TAG_CLOSE : t.data[end - 2] == '/' ? DGM_TAG_EMPTY : DGM_TAG_OPEN;
    return end - pos;
}

static bool is_void(dgm_text name)
{
    static const char *const names[] = {"br", "img", "hr", "wbr", "input", "BR", "IMG", "HR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (dgm_text_equal(name, dgm_text_of(names[i]))) return true;
    return false;
}

enum { OPEN_MAX = 32 };

typedef struct open_tags {
    struct {
        dgm_text name;
        int pair;
    } items[OPEN_MAX];
    int count;
} open_tags;

// A tag of plain text, which is raw bytes of the file: a pair where its end comes in order, else one that stands
// alone.
static dgm_status add_tag(dgm_document *d, dgm_text raw, dgm_tag_kind kind, dgm_text name, open_tags *open,
                          dgm_error *err)
{
    if (is_void(name) && name.size == 2) return dgm_segment_break(d, raw, err);
    if (kind == DGM_TAG_OPEN && !is_void(name) && open->count < OPEN_MAX) {
        int pair = 0;
        DGM_TRY(dgm_segment_open(d, raw, &pair, err));
        open->items[open->count].name = name;
        open->items[open->count++].pair = pair;
        return DGM_OK;
    }
    if (kind == DGM_TAG_CLOSE && open->count && dgm_text_equal(open->items[open->count - 1].name, name))
        return dgm_segment_close(d, raw, open->items[--open->count].pair, err);
    return dgm_segment_empty(d, raw, err);
}

static dgm_status add_tagged(dgm_document *d, dgm_text raw, dgm_text text, const uint32_t *map, dgm_error *err)
{
    size_t done = 0;
    open_tags open = {.count = 0};
    for (size_t i = 0; i < text.size;) {
        dgm_tag_kind kind = DGM_TAG_EMPTY;
        dgm_text name = {NULL, 0};
        const size_t n = text.data[i] == '<' ? dgm_tag_at(text, i, &kind, &name) : 0;
        if (!n) {
            i++;
            continue;
        }
        const size_t from = map[i], to = i + n < text.size ? map[i + n] : raw.size;
        DGM_TRY(dgm_segment_text(d, (dgm_text){text.data + done, i - done}, err));
        DGM_TRY(add_tag(d, (dgm_text){raw.data + from, to - from}, kind, name, &open, err));
        done = i += n;
    }
    return dgm_segment_text(d, (dgm_text){text.data + done, text.size - done}, err);
}

dgm_status dgm_segment_raw(dgm_document *d, dgm_text raw, dgm_error *err)
{
    const dgm_segment_spec *spec = &d->segments[d->segment_count].spec;
    dgm_writer text = {0}, map = {0};
    const bool tags = spec->flags & DGM_SEGMENT_TAGS && raw.size < UINT32_MAX;
    dgm_status st = spec->escape->decode(raw, &text, tags ? &map : NULL, err);
    if (st == DGM_OK && (text.failed || map.failed)) st = dgm_no_memory(err);
    const dgm_text plain = {text.data ? (const char *)text.data : "", text.size};
    const bool message = st == DGM_OK && spec->flags & DGM_SEGMENT_ICU && dgm_icu_is_message(plain);
    if (st == DGM_OK && tags && !message)
        st = add_tagged(d, raw, plain, (const uint32_t *)(const void *)map.data, err);
    else if (st == DGM_OK)
        st = dgm_segment_text(d, plain, err);
    dgm_writer_free(&text);
    dgm_writer_free(&map);
    return st;
}

dgm_status dgm_document_replace(dgm_document *d, int source, size_t begin, size_t end, dgm_text bytes, size_t segment,
                                dgm_error *err)
{
    if (segment >= d->segment_count) return DGM_OK; // it was left alone
    DGM_TRY(dgm_grow(&d->replacements, &d->replacement_cap, d->replacement_count + 1, sizeof *d->replacements, err));
    d->replacements[d->replacement_count++] = (dgm_replacement){source, begin, end, segment, bytes};
    return DGM_OK;
}
