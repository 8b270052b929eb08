// SPDX-License-Identifier: MIT
// The sentence splitter; see split.h. One pass over the text, no allocation but for the result.
//
// A sentence may end after . ! ? or ellipsis, with the quotes and brackets that close behind it,
// when white space follows and the next word does not begin in lower case; CJK stops end it
// without white space. A single dot does not end it after
//
//   an abbreviation or initial ("Dr. Who", "J. Smith", "No. 5")
//   a word of short parts ("U.S. Army", "z.B. Wien")
//   the number of an enumeration at the beginning ("1. Open the door")
//   a German ordinal ("am 3. Oktober")
//
// An empty line always ends a sentence.
#include <string.h>

#include "base/mem.h"
#include "text/split.h"

void dgm_pieces_free(dgm_pieces *p)
{
    if (!p) return;
    dgm_free(p->items);
    *p = (dgm_pieces){0};
}

static bool is_wide_stop(uint32_t code)
{
    return code == 0x3002 || code == 0xFF01 || code == 0xFF1F || code == 0xFF61;
}

static bool is_stop(uint32_t code)
{
    switch (code) {
    case '.':
    case '!':
    case '?':
    case 0x2026:
    case 0x203C:
    case 0x203D:
    case 0x2047:
    case 0x2048:
    case 0x2049:
    case 0x061F:
    case 0x06D4:
    case 0x0964:
    case 0x0965:
    case 0x104B:
    case 0x1362:
    case 0x1367:
    case 0x17D4:
        return true;
    default:
        return is_wide_stop(code);
    }
}

// Quotes and brackets that may stand between a stop and the end of its sentence. Most quotes open
// in one language and close in another: right behind a stop they close.
static bool is_closer(uint32_t code)
{
    switch (code) {
    case '"':
    case '\'':
    case ')':
    case ']':
    case '}':
    case 0x2018:
    case 0x2019:
    case 0x201C:
    case 0x201D:
    case 0xAB:
    case 0xBB:
    case 0x2039:
    case 0x203A:
    case 0x300D:
    case 0x300F:
    case 0x3009:
    case 0x300B:
    case 0x3011:
    case 0xFF09:
    case 0xFF3D:
    case 0xFF5D:
        return true;
    default:
        return false;
    }
}

// What may stand before the first word of a sentence.
static bool is_opener(uint32_t code)
{
    switch (code) {
    case '"':
    case '\'':
    case '(':
    case '[':
    case '{':
    case '-':
    case '*':
    case 0x2013:
    case 0x2014:
    case 0x2022:
    case 0x2018:
    case 0x201A:
    case 0x201C:
    case 0x201E:
    case 0xAB:
    case 0xBB:
    case 0x2039:
    case 0x203A:
    case 0xBF:
    case 0xA1:
    case 0x300C:
    case 0x300E:
        return true;
    default:
        return false;
    }
}

typedef struct scan {
    dgm_text text;
    dgm_language lang;
    size_t start; // of the current sentence
} scan;

static uint32_t code_at(const scan *s, size_t pos, size_t *n)
{
    uint32_t code = 0;
    *n = 1;
    if (pos < s->text.size) *n = dgm_utf8_next(s->text.data + pos, s->text.size - pos, &code);
    return code;
}

static bool is_digit(uint32_t code)
{
    return code >= '0' && code <= '9';
}

// "U.S", "e.g", "z.B", "Ph.D": parts of at most two letters between dots.
static bool has_short_parts(dgm_text word)
{
    size_t part = 0, dots = 0;
    for (size_t pos = 0; pos < word.size;) {
        uint32_t code;
        pos += dgm_utf8_next(word.data + pos, word.size - pos, &code);
        if (code == '.') {
            if (part == 0) return false;
            dots++;
            part = 0;
        } else if (code != '-') {
            if (!(dgm_char_class(code) & DGM_CHAR_LETTER) || ++part > 2) return false;
        }
    }
    return dots > 0 && part > 0;
}

static bool all_digits(dgm_text word)
{
    for (size_t i = 0; i < word.size; i++)
        if (!is_digit((unsigned char)word.data[i])) return false;
    return word.size > 0;
}

// Word that ends at `end` (the place of a dot): back to white space or an opening character.
static dgm_text word_before(const scan *s, size_t end)
{
    enum { LONGEST = 64 };
    size_t begin = end;
    while (begin > s->start && end - begin < LONGEST) {
        size_t prev = dgm_utf8_prev(s->text.data, begin), n;
        uint32_t code = code_at(s, prev, &n);
        if (dgm_char_is_space(code) || (is_opener(code) && code != '-' && code != '\'')) break;
        begin = prev;
    }
    return (dgm_text){s->text.data + begin, end - begin};
}

// English words that often begin a sentence and seldom follow an abbreviation: they tell "in the
// U.S. The ..." from "the U.S. Army".
static bool opens_sentence(const scan *s, size_t pos)
{
    static const char *const words[] = {
        "The",  "A",    "He",    "She",   "It",  "We",  "They", "You", "In", "But", "And",
        "This", "That", "There", "These", "His", "Her", "If",   "As",  "At", "For", "When"};
    size_t end = pos;
    while (end < s->text.size && (unsigned char)s->text.data[end] > ' ') end++;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (dgm_text_equal((dgm_text){s->text.data + pos, end - pos}, dgm_text_of(words[i])))
            return true;
    return false;
}

// Does the single dot at `dot` belong to its word, given the next word and its first character?
static bool dot_is_inner(const scan *s, size_t dot, size_t next_pos, uint32_t next)
{
    dgm_text word = word_before(s, dot);
    if (word.size == 0) return false;
    bool opens = word.data == s->text.data + s->start; // the sentence so far is this word
    if (all_digits(word)) {
        if (opens && word.size <= 3) return true;
        return s->lang == DGM_LANG_DE && word.size <= 2 && !is_digit(next);
    }
    if (has_short_parts(word)) {
        bool may_end = (word.data[0] >= 'A' && word.data[0] <= 'Z') || // U.S., not e.g.
                       dgm_text_equal(word, dgm_text_of("a.m")) ||
                       dgm_text_equal(word, dgm_text_of("p.m"));
        return !(s->lang == DGM_LANG_EN && may_end && opens_sentence(s, next_pos));
    }
    // "as tall as I. But ..." against "I. Newton" at the beginning of a name.
    if (s->lang == DGM_LANG_EN && word.size == 1 && word.data[0] == 'I' && !opens) return false;
    int kind = dgm_abbreviation(s->lang, word);
    return kind == 1 || (kind == 2 && is_digit(next));
}

// After white space at pos: position of the next word's text, and whether an empty line lies
// between.
static size_t skip_space(const scan *s, size_t pos, bool *empty_line)
{
    int breaks = 0;
    while (pos < s->text.size) {
        size_t n;
        uint32_t code = code_at(s, pos, &n);
        if (!dgm_char_is_space(code)) break;
        if (code == '\n' || code == 0x2029) breaks += code == '\n' ? 1 : 2;
        pos += n;
    }
    *empty_line = breaks >= 2;
    return pos;
}

// First character of the next word, behind quotes, brackets and dashes.
static uint32_t first_letter(const scan *s, size_t pos)
{
    for (int i = 0; i < 8 && pos < s->text.size; i++) {
        size_t n;
        uint32_t code = code_at(s, pos, &n);
        if (!is_opener(code) && !dgm_char_is_space(code)) return code;
        pos += n;
    }
    return 0;
}

// French sets a space before the closing quote: "... fin. \u00BB". German closes with the other
// one.
static size_t skip_spaced_closer(const scan *s, size_t pos)
{
    bool empty_line;
    size_t n, after, at = skip_space(s, pos, &empty_line);
    uint32_t code = code_at(s, at, &n);
    if (s->lang == DGM_LANG_DE || empty_line || (code != 0xBB && code != 0x203A)) return pos;
    uint32_t behind = code_at(s, at + n, &after);
    bool closes = at + n >= s->text.size || dgm_char_is_space(behind) || is_closer(behind);
    return closes ? at + n : pos;
}

// A stop stands at pos. Returns the end of the run of stops and closers behind it, and in *ends
// whether the sentence ends there.
static size_t judge_stop(const scan *s, size_t pos, bool *ends)
{
    size_t n, stops = 0, first = pos;
    uint32_t code = code_at(s, pos, &n);
    bool wide = false, only_dot = code == '.';
    while (pos < s->text.size && is_stop(code)) {
        wide |= is_wide_stop(code);
        stops++;
        pos += n;
        code = code_at(s, pos, &n);
    }
    while (pos < s->text.size && is_closer(code)) {
        pos += n;
        code = code_at(s, pos, &n);
    }
    *ends = false;
    if (pos >= s->text.size) return pos;
    if (wide) {
        *ends = true;
        return pos;
    }
    if (!dgm_char_is_space(code)) return pos;
    pos = skip_spaced_closer(s, pos);
    bool empty_line;
    size_t next_pos = skip_space(s, pos, &empty_line);
    if (next_pos >= s->text.size) return pos;
    uint32_t next = first_letter(s, next_pos);
    // Nothing but quotes or dots left ("fine. \"", "fine . .") is no sentence.
    if (next == 0 || is_stop(next) || (dgm_char_class(next) & DGM_CHAR_LOWER)) return pos;
    *ends = !(only_dot && stops == 1 && dot_is_inner(s, first, next_pos, next));
    return pos;
}

static dgm_status push_sentence(dgm_pieces *out, dgm_text text, size_t begin, size_t end,
                                dgm_error *err)
{
    dgm_text inner = dgm_text_trim((dgm_text){text.data + begin, end - begin});
    if (inner.size == 0) return DGM_OK;
    DGM_TRY(dgm_grow(&out->items, &out->cap, out->count + 1, sizeof *out->items, err));
    size_t from = (size_t)(inner.data - text.data);
    out->items[out->count++] = (dgm_piece){from, from + inner.size, DGM_CUT_SENTENCE};
    return DGM_OK;
}

dgm_status dgm_split_sentences(dgm_text text, dgm_language lang, dgm_pieces *out, dgm_error *err)
{
    scan s = {.text = text, .lang = lang};
    out->count = 0;
    bool empty_line;
    s.start = skip_space(&s, 0, &empty_line);
    for (size_t pos = s.start; pos < text.size;) {
        size_t n;
        uint32_t code = code_at(&s, pos, &n);
        bool ends = false;
        if (is_stop(code)) {
            pos = judge_stop(&s, pos, &ends);
        } else if (dgm_char_is_space(code)) {
            size_t next = skip_space(&s, pos, &empty_line);
            ends = empty_line;
            if (!ends) pos = next;
        } else {
            pos += n;
        }
        if (!ends) continue;
        DGM_TRY(push_sentence(out, text, s.start, pos, err));
        pos = s.start = skip_space(&s, pos, &empty_line);
    }
    DGM_TRY(push_sentence(out, text, s.start, text.size, err));
    if (out->count) out->items[out->count - 1].cut = DGM_CUT_END;
    return DGM_OK;
}
