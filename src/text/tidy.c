// SPDX-License-Identifier: MIT
// See tidy.h. One pass over the text; a letter and its marks stand at the end of what is written until the next
// letter comes, and are composed then:
//
//     written ......... [letter mark mark]
//                       ^ letter_at
#include "text/tidy.h"

#include <string.h>

#include "base/mem.h"

enum { MARKS_MAX = 8 }; // on one letter; Hebrew with vowels and accents has up to 4

enum { ZWSP = 0x200B, ZWNJ = 0x200C, ZWJ = 0x200D, WIDE_SPACE = 0x3000 };

void dgm_tidied_free(dgm_tidied *t)
{
    dgm_writer_free(&t->text);
    dgm_writer_free(&t->scratch);
    dgm_free(t->from);
    *t = (dgm_tidied){0};
}

// ---- what there is to do -------------------------------------------------------------------------

static bool within(uint32_t code, uint32_t first, uint32_t last)
{
    return code >= first && code <= last;
}

// Seen by nobody.
static bool is_invisible(uint32_t code)
{
    if (code < 0x300) return (code < 0x20 && code != '\t') || within(code, 0x7F, 0x9F) || code == 0xAD;
    return code == 0x34F || code == 0x61C || code == 0x180E || within(code, ZWSP, 0x200F) ||
           within(code, 0x202A, 0x202E) || within(code, 0x2060, 0x206F) || code == 0xFEFF ||
           within(code, 0xFFF9, 0xFFFB);
}

static bool is_selector(uint32_t code) // of a variant, behind an emoji or a Han letter
{
    return within(code, 0xFE00, 0xFE0F);
}

// Marks that make one character with the letter before them.
static bool composes(uint32_t code)
{
    return within(code, 0x300, 0x36F) || code == 0x3099 || code == 0x309A || within(code, 0x1161, 0x11C2);
}

static bool is_mark(uint32_t code)
{
    return code >= 0x300 && (composes(code) || (dgm_char_class(code) & DGM_CHAR_MARK)) && !is_selector(code);
}

static bool is_wide_sign(uint32_t code)
{
    return code == WIDE_SPACE || within(code, 0xFF01, 0xFF0F) || within(code, 0xFF1A, 0xFF20) ||
           within(code, 0xFF3B, 0xFF40) || within(code, 0xFF5B, 0xFF60) || within(code, 0xFFE0, 0xFFE6);
}

// Other forms of characters that have plain ones.
static bool has_plain_form(uint32_t code)
{
    return within(code, 0xFB00, 0xFB06) || code == WIDE_SPACE || within(code, 0xFF01, 0xFF9F) ||
           within(code, 0xFFE0, 0xFFE6);
}

static bool is_east_asian(uint32_t code)
{
    return within(code, 0x3041, 0x30FF) || within(code, 0x3400, 0x9FFF) || within(code, 0xAC00, 0xD7A3) ||
           within(code, 0xF900, 0xFAFF) || within(code, 0xFF66, 0xFF9F) || within(code, 0x20000, 0x3FFFF);
}

typedef struct findings {
    bool odd, east_asian;
} findings;

static findings look(dgm_text t)
{
    findings found = {0};
    int marks = 0;
    for (size_t pos = 0; pos < t.size;) {
        uint32_t code;
        pos += dgm_utf8_next(t.data + pos, t.size - pos, &code);
        if (within(code, 0x20, 0x7E)) {
            marks = 0;
            continue;
        }
        marks = is_mark(code) ? marks + 1 : 0;
        found.east_asian |= is_east_asian(code);
        found.odd |= is_invisible(code) || composes(code) || has_plain_form(code) || is_selector(code) ||
                     marks > MARKS_MAX;
    }
    return found;
}

// ---- tidying -------------------------------------------------------------------------------------

typedef struct tidying {
    dgm_text in;
    dgm_tidied *out;
    size_t letter_at, letter_from; // of the letter written last, and where it comes from
    size_t letter_end;             // behind it
    int marks;                     // behind it, so far
    bool composable;
    uint32_t last; // code written last
    bool east_asian;
    dgm_error *err;
} tidying;

// Says where the bytes from `begin` on come from.
static dgm_status note_origin(tidying *t, size_t begin, size_t from)
{
    dgm_tidied *out = t->out;
    if (out->text.failed) return dgm_no_memory(t->err);
    DGM_TRY(dgm_grow(&out->from, &out->from_cap, out->text.size + 1, sizeof *out->from, t->err));
    for (size_t i = begin; i < out->text.size; i++) out->from[i] = (uint32_t)from;
    return DGM_OK;
}

// Composes the letter written last with its marks.
static dgm_status close_letter(tidying *t)
{
    dgm_tidied *out = t->out;
    const bool composable = t->composable;
    t->composable = false;
    if (!composable || t->marks > MARKS_MAX) return DGM_OK;
    out->scratch.size = 0;
    dgm_write_bytes(&out->scratch, out->text.data + t->letter_at, out->text.size - t->letter_at);
    if (out->scratch.failed) return dgm_no_memory(t->err);
    out->text.size = t->letter_at;
    DGM_TRY(dgm_utf8_nfc((dgm_text){(const char *)out->scratch.data, out->scratch.size}, &out->text, t->err));
    return note_origin(t, t->letter_at, t->letter_from);
}

static dgm_status put(tidying *t, uint32_t code, size_t from)
{
    char bytes[4];
    dgm_writer *out = &t->out->text;
    const bool mark = is_mark(code);
    if (!mark) {
        DGM_TRY(close_letter(t));
        t->letter_at = out->size;
        t->letter_from = from;
        t->marks = 0;
    } else if (++t->marks > MARKS_MAX) { // no letter of any language: decoration
        out->size = t->letter_end;
        return DGM_OK;
    }
    const size_t at = out->size;
    dgm_write_bytes(out, bytes, dgm_utf8_put(code, bytes));
    if (!mark) t->letter_end = out->size;
    t->composable |= composes(code);
    t->last = code;
    return note_origin(t, at, from);
}

// Do joiners mean something between these? Scripts from Arabic to Mongolian shape their letters by them, and
// emoji are joined.
static bool joins(uint32_t left, uint32_t right)
{
    const bool scripts = within(left, 0x600, 0x1FFF) && within(right, 0x600, 0x1FFF);
    const bool emoji = (left >= 0x2190 && right >= 0x2190) && !is_east_asian(left) && !is_east_asian(right);
    return scripts || emoji;
}

static bool is_needed(const tidying *t, uint32_t code, size_t next)
{
    uint32_t right = 0;
    if (next < t->in.size) dgm_utf8_next(t->in.data + next, t->in.size - next, &right);
    if (is_selector(code)) // behind symbols, digits of key caps, and Han
        return !(dgm_char_class(t->last) & (DGM_CHAR_LETTER | DGM_CHAR_MARK | DGM_CHAR_SPACE)) ||
               is_east_asian(t->last);
    if (code == ZWSP) return within(t->last, 0xE00, 0x17FF) && within(right, 0xE00, 0x17FF); // ends words there
    return (code == ZWJ || code == ZWNJ) && joins(t->last, right);
}

static dgm_status take(tidying *t, uint32_t code, size_t from, size_t next)
{
    uint32_t plain[4];
    if (is_invisible(code) || is_selector(code)) {
        if (dgm_char_is_space(code)) return put(t, ' ', from); // separators of ASCII
        return t->last && is_needed(t, code, next) ? put(t, code, from) : DGM_OK;
    }
    if (!has_plain_form(code) || (t->east_asian && is_wide_sign(code))) return put(t, code, from);
    const size_t count = dgm_char_plain(code, plain, sizeof plain / sizeof *plain);
    for (size_t i = 0; i < count; i++) DGM_TRY(put(t, plain[i], from));
    return DGM_OK;
}

dgm_status dgm_tidy_text(dgm_text text, dgm_tidied *out, bool *changed, dgm_error *err)
{
    const findings found = look(text);
    *changed = false;
    if (!found.odd) return DGM_OK;
    DGM_FAIL_IF(text.size > INT32_MAX, err, DGM_ERR_TEXT, "text is longer than 2 GiB");
    tidying t = {.in = text, .out = out, .east_asian = found.east_asian, .err = err};
    out->text.size = 0;
    for (size_t pos = 0; pos < text.size;) {
        uint32_t code;
        const size_t n = dgm_utf8_next(text.data + pos, text.size - pos, &code);
        DGM_TRY(take(&t, code, pos, pos + n));
        pos += n;
    }
    DGM_TRY(close_letter(&t));
    DGM_TRY(note_origin(&t, out->text.size, text.size));
    out->from[out->text.size] = (uint32_t)text.size;
    *changed = out->text.size != text.size || memcmp(out->text.data, text.data, text.size) != 0;
    return DGM_OK;
}
