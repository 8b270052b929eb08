// SPDX-License-Identifier: MIT
// From the parts of a segment to its items: glue and units, lines with tags and placeholders taken note of.
//
// A segment is cut at breaks (and at line breaks and tabs of text that means them) into stretches. A stretch with
// letters is a unit, white space at its ends and all of every other stretch is glue. A place between two bytes of a
// segment is a part and an offset in its text.
#include <string.h>

#include "base/mem.h"
#include "document/document_private.h"
#include "text/unicode.h"

enum { TAKEN_MAX = DGM_TAGS_MOST / 2, FIXED_MAX = 256 }; // of one line; what has more is no sentence
enum { NO_BREAK = 0xA0 };                                // the space that ties words together stays
enum { TAGS_OPEN = 16 };                                 // of a message of ICU, in one another

typedef struct place {
    size_t part, at; // at: 0 but in text
} place;

// The line that is being made.
typedef struct line_maker {
    dgm_document *d;
    dgm_writer line;
    size_t taken, fixed; // where those of this unit begin
    bool space;          // white space came last and is not written yet
    int standins;
    // In messages of ICU tags are part of the text: those that are open.
    dgm_text open[TAGS_OPEN];
    int open_pair[TAGS_OPEN], open_count, pairs;
} line_maker;

static dgm_text text_of(const dgm_document *d, const dgm_part *p)
{
    return dgm_pool_text(d, p->text, p->text_size);
}

// ---- items ----------------------------------------------------------------------------------------

static dgm_status add_item(dgm_document *d, const dgm_item *item, dgm_error *err)
{
    DGM_TRY(dgm_grow(&d->items, &d->item_cap, d->item_count + 1, sizeof *d->items, err));
    d->items[d->item_count++] = *item;
    return DGM_OK;
}

static dgm_status add_pool_text(dgm_document *d, size_t at, size_t size, dgm_error *err)
{
    const dgm_item item = {.kind = DGM_ITEM_TEXT, .at = at, .size = size};
    return size ? add_item(d, &item, err) : DGM_OK;
}

dgm_status dgm_items_add_text(dgm_document *d, dgm_text text, dgm_error *err)
{
    size_t at = 0;
    DGM_TRY(dgm_pool_add(d, text, &at, err));
    return add_pool_text(d, at, text.size, err);
}

// Everything between two places, as it is.
static dgm_status add_glue(dgm_document *d, place from, place to, dgm_error *err)
{
    for (size_t i = from.part; i < d->part_count && i <= to.part; i++) {
        const dgm_part *p = &d->parts[i];
        const size_t begin = i == from.part ? from.at : 0, end = i == to.part ? to.at : p->text_size;
        if (p->kind == DGM_PART_TEXT) {
            DGM_TRY(add_pool_text(d, p->text + begin, end > begin ? end - begin : 0, err));
        } else if (i < to.part) {
            const dgm_item item = {.kind = DGM_ITEM_BYTES, .bytes = p->bytes};
            DGM_TRY(add_item(d, &item, err));
        }
    }
    return DGM_OK;
}

// ---- lines ----------------------------------------------------------------------------------------

// The number of the line with this text; a new one, or that of a unit before.
static dgm_status number_line(dgm_document *d, dgm_unit *u, size_t unit, dgm_error *err)
{
    uint32_t number = (uint32_t)d->info.lines;
    if (!d->asked.no_memory) DGM_TRY(dgm_words_add(&d->lines, dgm_pool_text(d, u->text, u->text_size), &number, err));
    const bool fresh = number == d->info.lines;
    DGM_TRY(dgm_grow(&d->line_unit, &d->line_cap, (size_t)number + 1, sizeof *d->line_unit, err));
    u->line = number;
    u->next = fresh ? 0 : d->line_unit[number] + 1;
    d->line_unit[number] = unit;
    d->info.lines += fresh;
    return DGM_OK;
}

static dgm_status add_unit(dgm_document *d, dgm_unit *u, dgm_error *err)
{
    const dgm_item item = {.kind = DGM_ITEM_UNIT, .at = d->unit_count};
    DGM_TRY(dgm_grow(&d->units, &d->unit_cap, d->unit_count + 1, sizeof *d->units, err));
    u->segment = d->segment_count;
    u->taken_count = d->taken_count - u->taken;
    u->fixed_count = d->fixed_count - u->fixed;
    DGM_TRY(add_item(d, &item, err));
    DGM_TRY(number_line(d, u, d->unit_count, err));
    d->info.places++;
    d->info.tags += u->taken_count;
    d->units[d->unit_count++] = *u;
    return DGM_OK;
}

static dgm_status add_fixed(dgm_document *d, size_t begin, size_t end, dgm_text bytes, bool word, dgm_error *err)
{
    DGM_TRY(dgm_grow(&d->fixed, &d->fixed_cap, d->fixed_count + 1, sizeof *d->fixed, err));
    d->fixed[d->fixed_count++] = (dgm_fixed){begin, end, bytes, word};
    return DGM_OK;
}

static void write_space(line_maker *m)
{
    const bool inside = m->line.size && m->line.data[m->line.size - 1] != ' ';
    if (m->space && inside) dgm_write_u8(&m->line, ' ');
    m->space = false;
}

// Text that the models need not see: a sign, or a tag of a message of ICU.
static dgm_status take_text(line_maker *m, dgm_text text, dgm_tag tag, bool sign, dgm_error *err)
{
    dgm_document *d = m->d;
    dgm_taken x = {.tag = tag, .text_size = text.size, .sign = sign, .before = m->space && m->line.size};
    if (tag.kind != DGM_TAG_CLOSE) write_space(m); // it goes with the word behind it
    x.tag.at = m->line.size;
    DGM_TRY(dgm_pool_add(d, text, &x.text, err));
    DGM_TRY(dgm_grow(&d->taken, &d->taken_cap, d->taken_count + 1, sizeof *d->taken, err));
    d->taken[d->taken_count++] = x;
    return DGM_OK;
}

// A pair where its end comes in order, else a tag that stands alone.
static dgm_tag pair_tag(line_maker *m, dgm_tag_kind kind, dgm_text name)
{
    if (kind == DGM_TAG_OPEN && m->open_count < TAGS_OPEN) {
        m->open[m->open_count] = name;
        m->open_pair[m->open_count++] = m->pairs;
        return (dgm_tag){0, DGM_TAG_OPEN, m->pairs++};
    }
    if (kind == DGM_TAG_CLOSE && m->open_count && dgm_text_equal(m->open[m->open_count - 1], name))
        return (dgm_tag){0, DGM_TAG_CLOSE, m->open_pair[--m->open_count]};
    return (dgm_tag){0, DGM_TAG_EMPTY, -1};
}

// What stands at pos and is taken out of the text: its length, 0: nothing.
static dgm_status take_out(line_maker *m, dgm_text t, size_t pos, bool icu, size_t *taken, dgm_error *err)
{
    bool apart = false;
    dgm_tag_kind kind = DGM_TAG_EMPTY;
    dgm_text name = {NULL, 0};
    const size_t sign = dgm_signs_at(t, pos, &apart), tag = icu ? dgm_tag_at(t, pos, &kind, &name) : 0;
    *taken = sign && apart ? sign : tag;
    if (!*taken) return DGM_OK;
    const dgm_tag made = tag ? pair_tag(m, kind, name) : (dgm_tag){0, DGM_TAG_EMPTY, -1};
    return take_text(m, (dgm_text){t.data + pos, *taken}, made, !tag, err);
}

static void note_space(line_maker *m)
{
    const size_t last = m->d->taken_count;
    if (last > m->taken && m->d->taken[last - 1].tag.at == m->line.size) m->d->taken[last - 1].behind = true;
    m->space = true;
}

// `text` is not in the pool, which moves.
static dgm_status put_text(line_maker *m, dgm_text t, bool icu, dgm_error *err)
{
    for (size_t i = 0, n; i < t.size; i += n) {
        uint32_t code = 0;
        DGM_TRY(take_out(m, t, i, icu, &n, err));
        if (n) continue;
        const size_t found = dgm_placeholder_at(t, i, icu);
        n = found ? found : dgm_utf8_next(t.data + i, t.size - i, &code);
        if (!found && dgm_char_is_space(code) && code != NO_BREAK) {
            note_space(m);
            continue;
        }
        write_space(m);
        if (found) DGM_TRY(add_fixed(m->d, m->line.size, m->line.size + n, (dgm_text){NULL, 0}, false, err));
        dgm_write_bytes(&m->line, t.data + i, n);
    }
    return DGM_OK;
}

// A word that the models copy, and that the text does not have.
static void put_standin(line_maker *m, dgm_text avoid)
{
    static const char *const words[] = {"X1", "Q7", "K2", "B5", "Z9", "W4", "V8", "J6", "X3", "Q4", "K9", "B8"};
    const int count = (int)(sizeof words / sizeof *words);
    while (m->standins < count) {
        const char *word = words[m->standins++];
        bool used = false;
        for (size_t i = 0; i + 2 <= avoid.size; i++) used |= memcmp(avoid.data + i, word, 2) == 0;
        if (used) continue;
        dgm_write_text(&m->line, word);
        return;
    }
    dgm_write_format(&m->line, "X%d", ++m->standins);
}

static dgm_status put_keep(line_maker *m, const dgm_part *p, dgm_error *err)
{
    write_space(m);
    const size_t begin = m->line.size;
    if (p->shown)
        dgm_write_bytes(&m->line, text_of(m->d, p).data, p->text_size);
    else
        put_standin(m, dgm_pool_text(m->d, m->d->segment_pool, m->d->pool.size - m->d->segment_pool));
    return add_fixed(m->d, begin, m->line.size, p->bytes, true, err);
}

static dgm_status put_tag(line_maker *m, const dgm_part *p, dgm_error *err)
{
    dgm_document *d = m->d;
    const bool space = m->space;
    const dgm_tag_kind kind = p->kind == DGM_PART_OPEN    ? DGM_TAG_OPEN
                              : p->kind == DGM_PART_CLOSE ? DGM_TAG_CLOSE
                                                          : DGM_TAG_EMPTY;
    if (kind != DGM_TAG_CLOSE) write_space(m); // it goes with the word behind it
    DGM_TRY(dgm_grow(&d->taken, &d->taken_cap, d->taken_count + 1, sizeof *d->taken, err));
    d->taken[d->taken_count++] =
        (dgm_taken){.tag = {m->line.size, kind, p->pair}, .bytes = p->bytes, .before = space};
    return DGM_OK;
}

// ---- stretches ------------------------------------------------------------------------------------

// Text that follows the ends of a stretch inwards to where no white space is.
static place skip_space(const dgm_document *d, place from, place to)
{
    while (from.part < to.part || (from.part == to.part && from.at < to.at)) {
        const dgm_part *p = &d->parts[from.part];
        if (p->kind != DGM_PART_TEXT) return from;
        const dgm_text t = text_of(d, p);
        const size_t end = from.part == to.part ? to.at : t.size;
        while (from.at < end) {
            uint32_t code = 0;
            const size_t n = dgm_utf8_next(t.data + from.at, end - from.at, &code);
            if (!dgm_char_is_space(code)) return from;
            from.at += n;
        }
        if (from.part == to.part) return from;
        from = (place){from.part + 1, 0};
    }
    return from;
}

static place skip_space_back(const dgm_document *d, place from, place to)
{
    for (;;) {
        const size_t least = to.part == from.part ? from.at : 0;
        if (to.part < d->part_count && d->parts[to.part].kind == DGM_PART_TEXT) {
            const dgm_text t = text_of(d, &d->parts[to.part]);
            while (to.at > least) {
                uint32_t code = 0;
                const size_t before = dgm_utf8_prev(t.data, to.at);
                dgm_utf8_next(t.data + before, to.at - before, &code);
                if (!dgm_char_is_space(code)) return to;
                to.at = before;
            }
        }
        if (to.part == from.part || d->parts[to.part - 1].kind != DGM_PART_TEXT) return to;
        to = (place){to.part - 1, d->parts[to.part - 1].text_size};
    }
}

// Text of the pool, which moves when something is added to it.
static dgm_status put_pool_text(line_maker *m, size_t at, size_t size, dgm_error *err)
{
    char *copy = dgm_strndup(dgm_pool_text(m->d, at, size).data, size);
    const dgm_status st = copy ? put_text(m, (dgm_text){copy, size}, false, err) : dgm_no_memory(err);
    dgm_free(copy);
    return st;
}

static dgm_status put_parts(line_maker *m, place from, place to, dgm_error *err)
{
    for (size_t i = from.part; i < m->d->part_count && i <= to.part; i++) {
        const dgm_part *p = &m->d->parts[i];
        const size_t begin = i == from.part ? from.at : 0, end = i == to.part ? to.at : p->text_size;
        if (p->kind == DGM_PART_TEXT) {
            if (end > begin) DGM_TRY(put_pool_text(m, p->text + begin, end - begin, err));
        } else if (i < to.part) {
            DGM_TRY(p->kind == DGM_PART_KEEP ? put_keep(m, p, err) : put_tag(m, p, err));
        }
    }
    return m->line.failed ? dgm_no_memory(err) : DGM_OK;
}

static bool has_text(const dgm_document *d, place from, place to)
{
    for (size_t i = from.part; i < d->part_count && i <= to.part; i++) {
        const dgm_part *p = &d->parts[i];
        const size_t begin = i == from.part ? from.at : 0, end = i == to.part ? to.at : p->text_size;
        if (p->kind == DGM_PART_TEXT && end > begin &&
            dgm_text_speaks(dgm_pool_text(d, p->text + begin, end - begin)))
            return true;
    }
    return false;
}

// The space before a sign at the end of a line.
static void trim_line(line_maker *m)
{
    const dgm_document *d = m->d;
    if (d->taken_count == m->taken || !d->taken[d->taken_count - 1].sign) return;
    while (m->line.size && m->line.data[m->line.size - 1] == ' ') m->line.size--;
    for (size_t i = m->taken; i < d->taken_count; i++)
        if (d->taken[i].tag.at > m->line.size) d->taken[i].tag.at = m->line.size;
}

static dgm_status finish_line(line_maker *m, dgm_error *err)
{
    trim_line(m);
    dgm_unit u = {.taken = m->taken, .fixed = m->fixed, .text_size = m->line.size};
    DGM_TRY(dgm_pool_add(m->d, (dgm_text){(const char *)m->line.data, m->line.size}, &u.text, err));
    return add_unit(m->d, &u, err);
}

static dgm_status add_stretch(dgm_document *d, place from, place to, size_t *units, dgm_error *err)
{
    const place begin = skip_space(d, from, to), end = skip_space_back(d, begin, to);
    if (!has_text(d, begin, end)) return add_glue(d, from, to, err);
    line_maker m = {.d = d, .taken = d->taken_count, .fixed = d->fixed_count};
    dgm_status st = add_glue(d, from, begin, err);
    if (st == DGM_OK) st = put_parts(&m, begin, end, err);
    const bool small =
        d->taken_count - m.taken <= TAKEN_MAX && d->fixed_count - m.fixed <= FIXED_MAX && m.line.size <= DGM_LINE_MAX;
    if (st == DGM_OK && !small) { // no sentence
        d->taken_count = m.taken;
        d->fixed_count = m.fixed;
        st = add_glue(d, begin, end, err);
    } else if (st == DGM_OK) {
        st = finish_line(&m, err);
        *units += 1;
    }
    dgm_writer_free(&m.line);
    return st == DGM_OK ? add_glue(d, end, to, err) : st;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

dgm_status dgm_items_add_line(dgm_document *d, dgm_text text, bool icu, dgm_error *err)
{
    line_maker m = {.d = d, .taken = d->taken_count, .fixed = d->fixed_count};
    size_t lead = 0, end = text.size;
    while (lead < end && is_blank(text.data[lead])) lead++;
    while (end > lead && is_blank(text.data[end - 1])) end--;
    DGM_TRY(dgm_items_add_text(d, (dgm_text){text.data, lead}, err));
    const dgm_text own = {text.data + lead, end - lead};
    dgm_status st = DGM_OK;
    if (!dgm_text_speaks(own)) {
        st = dgm_items_add_text(d, own, err);
    } else {
        st = put_text(&m, own, icu, err);
        if (st == DGM_OK && m.line.failed) st = dgm_no_memory(err);
        if (st == DGM_OK && d->fixed_count - m.fixed > FIXED_MAX) {
            d->fixed_count = m.fixed;
            st = dgm_items_add_text(d, own, err);
        } else if (st == DGM_OK) {
            st = finish_line(&m, err);
        }
    }
    dgm_writer_free(&m.line);
    return st == DGM_OK ? dgm_items_add_text(d, (dgm_text){text.data + end, text.size - end}, err) : st;
}

// A message of ICU is one text without tags.
static dgm_status try_icu(dgm_document *d, size_t *units, dgm_error *err)
{
    bool found = false;
    const size_t before = d->unit_count;
    if (!(d->segments[d->segment_count].spec.flags & DGM_SEGMENT_ICU) || d->part_count != 1) return DGM_OK;
    if (d->parts[0].kind != DGM_PART_TEXT) return DGM_OK;
    DGM_TRY(dgm_icu_items(d, text_of(d, &d->parts[0]), &found, err));
    *units = d->unit_count - before;
    if (found) d->part_count = 0;
    return DGM_OK;
}

dgm_status dgm_units_make(dgm_document *d, size_t *units, dgm_error *err)
{
    const bool lines = d->segments[d->segment_count].spec.flags & DGM_SEGMENT_LINES;
    place from = {0, 0};
    DGM_TRY(try_icu(d, units, err));
    for (size_t i = 0; i < d->part_count; i++) {
        const dgm_part p = d->parts[i];
        for (size_t k = 0; p.kind == DGM_PART_TEXT && lines && k < p.text_size; k++) {
            if (text_of(d, &p).data[k] != '\n' && text_of(d, &p).data[k] != '\t') continue;
            DGM_TRY(add_stretch(d, from, (place){i, k}, units, err));
            DGM_TRY(add_pool_text(d, p.text + k, 1, err));
            from = (place){i, k + 1};
        }
        if (p.kind != DGM_PART_BREAK) continue;
        DGM_TRY(add_stretch(d, from, (place){i, 0}, units, err));
        const dgm_item item = {.kind = DGM_ITEM_BYTES, .bytes = p.bytes};
        DGM_TRY(add_item(d, &item, err));
        from = (place){i + 1, 0};
    }
    if (d->part_count) DGM_TRY(add_stretch(d, from, (place){d->part_count, 0}, units, err));
    d->part_count = 0;
    return DGM_OK;
}
