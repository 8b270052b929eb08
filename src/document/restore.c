// SPDX-License-Identifier: MIT
// A translation with everything that was taken out of its line, escaped: tags, placeholders, parts that are kept.
//
// Placeholders were part of the line. Each must be in the translation once: where it is found it is claimed, what is
// found more often is left out, what is missing takes the place of what it was damaged to, and else is put where its
// neighbours went, like a tag.
#include <string.h>

#include "base/mem.h"
#include "document/document_private.h"
#include "text/unicode.h"

// Part of the translation that stands for something, or for nothing.
typedef struct claim {
    size_t begin, end;
    int32_t fixed; // -1: it is left out
} claim;

typedef struct restoring {
    const dgm_document *d;
    const dgm_unit *u;
    dgm_text source, target;
    const dgm_fixed *fixed;
    claim *claims; // in the order of the translation, once sorted
    size_t claim_count, claim_most;
    bool *found; // [fixed_count]
    dgm_tag *tags;
    int32_t *what; // [tag_count] index in taken, or -1 - index in fixed
    size_t tag_count;
    size_t *places, *order;
    struct {
        dgm_text form;
        bool alone, any_case;
        size_t at;
    } looked; // what find_free looked for last, and where that ended
    dgm_writer *out;
    char last;   // character of text that was written
    bool space;  // one is due before the next
    size_t ties; // that take the places of the next spaces
    char *shown; // source in which placeholders that are missing are no words
    dgm_status status;
    dgm_error *err;
} restoring;

static dgm_text form_of(const restoring *r, size_t i)
{
    return (dgm_text){r->source.data + r->fixed[i].begin, r->fixed[i].end - r->fixed[i].begin};
}

static bool is_tie(dgm_text form)
{
    return dgm_text_equal(form, dgm_text_of(DGM_TIE));
}

// ---- placeholders ---------------------------------------------------------------------------------

static bool is_claimed(const restoring *r, size_t begin, size_t end)
{
    for (size_t i = 0; i < r->claim_count; i++)
        if (begin < r->claims[i].end && r->claims[i].begin < end) return true;
    return false;
}

static bool in_word(dgm_text t, size_t pos, bool before)
{
    if (before ? pos == 0 : pos >= t.size) return false;
    uint32_t code = 0;
    const size_t at = before ? dgm_utf8_prev(t.data, pos) : pos;
    dgm_utf8_next(t.data + at, t.size - at, &code);
    return (dgm_char_class(code) & (DGM_CHAR_LETTER | DGM_CHAR_NUMBER)) != 0;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_same(const char *data, dgm_text form, bool any_case)
{
    if (!any_case) return memcmp(data, form.data, form.size) == 0;
    for (size_t i = 0; i < form.size; i++)
        if (lower(data[i]) != lower(form.data[i])) return false;
    return true;
}

static bool is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

// The first place of a text in the translation that nothing has claimed; target.size: none. alone: not inside of a
// word. Claims stay: the same text is looked for from where that ended the last time.
static size_t find_free(restoring *r, dgm_text form, bool alone, bool any_case)
{
    const dgm_text t = r->target;
    const bool asked = alone == r->looked.alone && any_case == r->looked.any_case;
    size_t i = asked && dgm_text_equal(form, r->looked.form) ? r->looked.at : 0;
    const bool jumps = form.size && !(any_case && is_letter(form.data[0])); // to where its first byte stands
    for (; form.size && i + form.size <= t.size; i++) {
        const char *next = jumps ? memchr(t.data + i, form.data[0], t.size - form.size - i + 1) : t.data + i;
        if (!next) {
            i = t.size;
            break;
        }
        i = (size_t)(next - t.data);
        if (!is_same(next, form, any_case)) continue;
        if (alone && (in_word(t, i, true) || in_word(t, i + form.size, false))) continue;
        if (!is_claimed(r, i, i + form.size)) break;
    }
    r->looked.form = form, r->looked.alone = alone, r->looked.any_case = any_case;
    return r->looked.at = form.size && i + form.size <= t.size ? i : t.size;
}

static void claim_range(restoring *r, size_t begin, size_t end, int32_t fixed)
{
    r->claims[r->claim_count++] = (claim){begin, end, fixed};
    if (fixed >= 0) r->found[fixed] = true;
}

// Long ones first: "{0}" is part of "${0}". any_case: those that are still missing, as "{Name}" for "{name}".
static void claim_found(restoring *r, bool any_case)
{
    for (size_t size = 0, next = SIZE_MAX; next; next = size) {
        size = 0;
        for (size_t i = 0; i < r->u->fixed_count; i++) {
            const dgm_text form = form_of(r, i);
            if (form.size < next && form.size > size) size = form.size;
        }
        for (size_t i = 0; size && i < r->u->fixed_count; i++) {
            const dgm_text form = form_of(r, i);
            const bool asked = form.size == size && !r->found[i];
            const size_t at = asked ? find_free(r, form, r->fixed[i].word, any_case) : r->target.size;
            if (at < r->target.size) claim_range(r, at, at + size, (int32_t)i);
        }
    }
}

static bool is_odd(char c)
{
    return c && strchr("{}%$#<>:[]@_&\\", c);
}

// U+FFFD: what is left of a sign that the model knows only byte by byte.
static bool is_broken(dgm_text t, size_t pos)
{
    return t.size - pos >= 3 && memcmp(t.data + pos, "\xef\xbf\xbd", 3) == 0;
}

// Target words that hold signs of placeholders and are none that was claimed: [*begin, *end) of the next from pos on.
static bool next_damaged(const restoring *r, size_t pos, size_t *begin, size_t *end)
{
    const dgm_text t = r->target;
    for (size_t i = pos; i < t.size;) {
        while (i < t.size && (t.data[i] == ' ' || is_claimed(r, i, i + 1))) i++;
        size_t stop = i, odd = 0, first = t.size, last = 0;
        for (; stop < t.size && t.data[stop] != ' ' && !is_claimed(r, stop, stop + 1); stop++)
            if (is_odd(t.data[stop]) || is_broken(t, stop)) {
                odd++;
                if (first > stop) first = stop;
                last = stop + 1;
            }
        const bool colon = odd == 1 && first < t.size && t.data[first] == ':'; // the end of a clause
        if (odd && !colon) {
            while (stop > last && strchr(".,;!?", t.data[stop - 1])) stop--;
            *begin = i;
            *end = stop;
            return true;
        }
        i = stop > i ? stop : i + 1;
    }
    return false;
}

// Missing ones take the place of damaged ones, in order, as long as both last.
static void claim_damaged(restoring *r)
{
    size_t pos = 0, begin = 0, end = 0;
    for (size_t i = 0; i < r->u->fixed_count; i++) {
        if (r->found[i] || r->fixed[i].word || is_tie(form_of(r, i))) continue;
        if (!next_damaged(r, pos, &begin, &end)) return;
        claim_range(r, begin, end, (int32_t)i);
        pos = end;
    }
}

static void leave_out(restoring *r, size_t at, size_t size)
{
    const bool space = at > 0 && r->target.data[at - 1] == ' '; // goes with it
    claim_range(r, at - space, at + size, -1);
}

// ":mile:" beside ":smile:": a placeholder that the line does not have goes, too.
static void leave_out_invented(restoring *r)
{
    for (size_t at = 0; at < r->target.size && r->claim_count < r->claim_most;) {
        const dgm_text rest = {r->target.data + at, r->target.size - at}; // nothing stands before it
        const size_t n = dgm_placeholder_at(rest, 0, false);
        bool kind = false; // the line has one that begins like it
        for (size_t i = 0; n && i < r->u->fixed_count; i++)
            kind |= !r->fixed[i].bytes.data && form_of(r, i).data[0] == r->target.data[at];
        if (kind && !is_claimed(r, at, at + n)) leave_out(r, at, n);
        at += n ? n : 1;
    }
}

// A stand-in that grew ("X1s") is still found; what came twice goes.
static void claim_rest(restoring *r)
{
    for (size_t i = 0; i < r->u->fixed_count; i++) {
        const dgm_text form = form_of(r, i);
        if (!r->found[i]) {
            const size_t at = find_free(r, form, false, false);
            if (at < r->target.size) claim_range(r, at, at + form.size, (int32_t)i);
        }
    }
    for (size_t i = 0; i < r->u->fixed_count && r->claim_count < 2 * r->u->fixed_count; i++) {
        const dgm_text form = form_of(r, i);
        // What is shown may be an ordinary word that the translation has elsewhere, too.
        if (r->fixed[i].bytes.data && form.size > 2) continue;
        const size_t at = find_free(r, form, r->fixed[i].word, false);
        if (at >= r->target.size) continue;
        leave_out(r, at, form.size);
    }
    leave_out_invented(r);
}

static void sort_claims(restoring *r)
{
    for (size_t i = 1; i < r->claim_count; i++) {
        const claim x = r->claims[i];
        size_t k = i;
        for (; k > 0 && r->claims[k - 1].begin > x.begin; k--) r->claims[k] = r->claims[k - 1];
        r->claims[k] = x;
    }
}

// ---- tags -----------------------------------------------------------------------------------------

// Tags, and placeholders that are missing as tags that stand alone, in the order of the source.
static void list_tags(restoring *r)
{
    const dgm_taken *taken = r->u->taken_count ? r->d->taken + r->u->taken : NULL;
    size_t t = 0;
    for (size_t f = 0; f <= r->u->fixed_count; f++) {
        const bool last = f == r->u->fixed_count;
        for (; t < r->u->taken_count && (last || taken[t].tag.at <= r->fixed[f].begin); t++) {
            r->tags[r->tag_count] = taken[t].tag;
            r->what[r->tag_count++] = (int32_t)t;
        }
        if (last || r->found[f]) continue;
        r->tags[r->tag_count] = (dgm_tag){r->fixed[f].begin, DGM_TAG_EMPTY, -1};
        r->what[r->tag_count++] = -1 - (int32_t)f;
    }
}

// What stands in the list of tags is no word any more; its bytes stay, so that words keep their numbers.
static void hide_missing(restoring *r)
{
    memcpy(r->shown, r->source.data, r->source.size);
    for (size_t i = 0; i < r->u->fixed_count; i++)
        if (!r->found[i])
            memset(r->shown + r->fixed[i].begin, is_tie(form_of(r, i)) ? ' ' : '.', form_of(r, i).size);
}

// No tag stands inside of a placeholder.
static void leave_claims(restoring *r)
{
    size_t least = 0;
    for (size_t i = 0; i < r->tag_count; i++) {
        size_t *at = &r->places[r->order[i]];
        for (size_t k = 0; k < r->claim_count; k++) {
            const claim *c = &r->claims[k];
            if (*at <= c->begin || *at >= c->end) continue;
            *at = r->tags[r->order[i]].kind == DGM_TAG_CLOSE ? c->end : c->begin;
        }
        if (*at < least) *at = least;
        least = *at;
    }
}

// ---- writing --------------------------------------------------------------------------------------

static void put_encoded(restoring *r, dgm_text text)
{
    if (!text.size) return;
    if (r->space && text.data[0] != ' ') dgm_write_u8(r->out, ' ');
    r->space = false;
    r->last = text.data[text.size - 1];
    r->d->segments[r->u->segment].spec.escape->encode(text, r->out);
}

static void put_text(restoring *r, size_t from, size_t to)
{
    for (size_t i = from; r->ties && i < to; i++) {
        if (r->target.data[i] != ' ' || (i == 0 && from == 0)) continue;
        put_encoded(r, (dgm_text){r->target.data + from, i - from});
        put_encoded(r, dgm_text_of(DGM_TIE));
        r->ties--;
        from = i + 1;
    }
    if (from < to) put_encoded(r, (dgm_text){r->target.data + from, to - from});
}

static void put_bytes(restoring *r, dgm_text bytes, bool closes)
{
    if (r->space && !closes) dgm_write_u8(r->out, r->last = ' ');
    r->space = r->space && closes;
    if (r->status == DGM_OK) r->status = dgm_bytes_write(r->d, bytes, r->out, r->err);
}

static void put_taken(restoring *r, const dgm_taken *x)
{
    const bool closes = x->tag.kind == DGM_TAG_CLOSE;
    put_bytes(r, x->bytes, closes);
    if (x->bytes.data) return;
    const dgm_text text = dgm_pool_text(r->d, x->text, x->text_size);
    r->d->segments[r->u->segment].spec.escape->encode(text, r->out);
}

static void put_fixed(restoring *r, size_t i)
{
    if (!r->fixed[i].bytes.data) {
        put_encoded(r, form_of(r, i));
        return;
    }
    put_bytes(r, r->fixed[i].bytes, false);
    r->last = 'x';
}

static bool is_space(dgm_text t, size_t pos)
{
    return pos >= t.size || t.data[pos] == ' ';
}

// A mark that stands directly behind a word, not the first of something else.
static bool is_mark(dgm_text t, size_t pos)
{
    return pos < t.size && strchr(".,;:!?)]", t.data[pos]) && is_space(t, pos + 1);
}

static void want_space(restoring *r)
{
    r->space = r->space || r->last != ' ';
}

// In place of the space before it, else of the next one.
static void put_tie(restoring *r)
{
    const bool written = r->last == ' ' && r->out->size && r->out->data[r->out->size - 1] == ' ';
    if (!r->space && !written) {
        r->ties++;
        return;
    }
    if (!r->space) r->out->size--;
    r->space = false;
    put_encoded(r, dgm_text_of(DGM_TIE));
    r->last = ' ';
}

static void put_sign(restoring *r, const dgm_taken *x, size_t at)
{
    if (x->before) want_space(r);
    put_encoded(r, dgm_pool_text(r->d, x->text, x->text_size));
    r->space = x->behind && !is_mark(r->target, at) && !is_space(r->target, at);
}

static void put_tag(restoring *r, size_t i)
{
    const size_t at = r->places[i];
    const int32_t what = r->what[i];
    if (what >= 0) {
        const dgm_taken *x = &r->d->taken[r->u->taken + (size_t)what];
        if (x->sign) {
            put_sign(r, x, at);
            return;
        }
        // A blank on one side alone is kept at the ends, where no word can have taken it along.
        const bool empty = x->tag.kind == DGM_TAG_EMPTY, apart = empty && x->before && x->behind;
        const bool leads = empty && x->behind && x->tag.at == 0 && at == 0;
        const bool ends = empty && x->before && x->tag.at == r->source.size && at == r->target.size;
        if (apart || ends) want_space(r);
        put_taken(r, x);
        r->space = r->space || ((apart || leads) && !is_space(r->target, at));
        return;
    }
    const dgm_fixed *f = &r->fixed[-1 - what];
    if (is_tie(form_of(r, (size_t)(-1 - what)))) {
        put_tie(r);
        return;
    }
    const bool beside = in_word(r->source, f->begin, true), ahead = in_word(r->source, f->end, false);
    if (f->begin > 0 && (is_space(r->source, f->begin - 1) || (!beside && in_word(r->target, at, true))))
        want_space(r);
    put_fixed(r, (size_t)(-1 - what));
    const bool marked = at < r->target.size && strchr(".,;:!?)]", r->target.data[at]);
    const bool apart = f->end < r->source.size && is_space(r->source, f->end);
    r->space = (apart || (!ahead && !marked)) && !is_space(r->target, at);
}

// Does a number stand there when the program runs? "#" of a plural, "%d", "%1$.2f", "%(count)u".
static bool is_number(dgm_text form)
{
    const bool format = form.size > 1 && form.data[0] == '%';
    return (form.size == 1 && form.data[0] == '#') || (format && strchr("diuf", form.data[form.size - 1]));
}

// Blanks around a placeholder as in the source: "Datei{0}" gets one back, "# 5" loses it; "%d files" does not become
// "%d-Dateien".
static size_t put_claim(restoring *r, const claim *c)
{
    size_t end = c->end;
    if (c->fixed < 0) return end + (c->begin == 0 && end < r->target.size && is_space(r->target, end));
    const dgm_fixed *f = &r->fixed[c->fixed];
    const bool letter = in_word(r->target, c->begin, true);
    if (f->begin > 0 && is_space(r->source, f->begin - 1) && letter) want_space(r);
    put_fixed(r, (size_t)c->fixed);
    const bool apart = f->end < r->source.size && is_space(r->source, f->end);
    const bool hyphen = end < r->target.size && r->target.data[end] == '-' && in_word(r->target, end + 1, false);
    if (apart && hyphen && is_number(form_of(r, (size_t)c->fixed))) end++;
    r->space = apart && in_word(r->target, end, false);
    return end;
}

static void write_all(restoring *r)
{
    size_t at = 0, c = 0;
    for (size_t i = 0; i <= r->tag_count; i++) {
        const size_t to = i < r->tag_count ? r->places[r->order[i]] : r->target.size;
        while (c < r->claim_count && (r->claims[c].begin < to || (i == r->tag_count && r->claims[c].begin <= to))) {
            put_text(r, at, r->claims[c].begin);
            at = put_claim(r, &r->claims[c++]);
        }
        put_text(r, at, to);
        if (at < to) at = to;
        if (i < r->tag_count) put_tag(r, r->order[i]);
    }
}

static dgm_status prepare(restoring *r, dgm_error *err)
{
    const size_t fixed = r->u->fixed_count, most = r->u->taken_count + fixed;
    r->claim_most = 3 * fixed + 1;
    r->claims = dgm_malloc(r->claim_most * sizeof *r->claims);
    r->found = dgm_calloc(fixed + 1, sizeof *r->found);
    r->tags = dgm_malloc((most + 1) * sizeof *r->tags);
    r->what = dgm_malloc((most + 1) * sizeof *r->what);
    r->places = dgm_calloc(2 * (most + 1), sizeof *r->places);
    r->shown = dgm_malloc(r->source.size + 1);
    if (!r->claims || !r->found || !r->tags || !r->what || !r->places || !r->shown) return dgm_no_memory(err);
    r->order = r->places + most + 1;
    return DGM_OK;
}

static void release(restoring *r)
{
    dgm_free(r->claims);
    dgm_free(r->found);
    dgm_free(r->tags);
    dgm_free(r->what);
    dgm_free(r->places);
    dgm_free(r->shown);
}

static restoring start_with(const dgm_document *d, const dgm_unit *u, dgm_text target, dgm_writer *out,
                            dgm_error *err)
{
    return (restoring){.d = d,
                       .u = u,
                       .source = dgm_pool_text(d, u->text, u->text_size),
                       .target = target,
                       .fixed = u->fixed_count ? d->fixed + u->fixed : NULL,
                       .out = out,
                       .last = ' ',
                       .err = err};
}

dgm_status dgm_unit_restore(const dgm_document *d, const dgm_unit *u, dgm_text translation, const dgm_link *links,
                            size_t link_count, dgm_writer *out, dgm_error *err)
{
    restoring r = start_with(d, u, translation, out, err);
    dgm_status st = prepare(&r, err);
    if (st == DGM_OK) {
        claim_found(&r, false);
        claim_found(&r, true);
        claim_damaged(&r);
        claim_rest(&r);
        sort_claims(&r);
        list_tags(&r);
        hide_missing(&r);
        st = dgm_tags_place(r.shown, r.source.size, r.tags, r.tag_count, translation.data, translation.size, links,
                            link_count, r.places, r.order, err);
    }
    if (st == DGM_OK) {
        leave_claims(&r);
        write_all(&r);
        st = out->failed ? dgm_no_memory(err) : r.status;
    }
    release(&r);
    return st;
}

dgm_status dgm_unit_source(const dgm_document *d, const dgm_unit *u, dgm_writer *out, dgm_error *err)
{
    restoring r = start_with(d, u, dgm_pool_text(d, u->text, u->text_size), out, err);
    dgm_status st = prepare(&r, err);
    if (st == DGM_OK) {
        for (size_t i = 0; i < u->fixed_count; i++) claim_range(&r, r.fixed[i].begin, r.fixed[i].end, (int32_t)i);
        list_tags(&r);
        for (size_t i = 0; i < r.tag_count; i++) {
            r.order[i] = i;
            r.places[i] = r.tags[i].at;
        }
        write_all(&r);
        st = out->failed ? dgm_no_memory(err) : r.status;
    }
    release(&r);
    return st;
}
