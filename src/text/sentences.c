// SPDX-License-Identifier: MIT
// The sentence splitter; see split.h. One pass over the text, no allocation but for the result.
//
// A sentence may end after . ! ? or ellipsis, with the quotes and brackets that close behind it,
// when white space follows and the next word does not begin in lower case (an item "b) ..." and names
// like "eBay" may); CJK stops end it without white space. A single dot does not end it after
//
//   a title ("Dr. Who") or what a number or name belongs to ("No. 5", "Art. 1")
//   an initial, a word of short parts ("U.S. Army", "z.B. Wien") or another abbreviation ("Inc."),
//   unless a word follows that begins sentences and is no name ("in the U.S. The ...")
//   the number of an enumeration at the beginning ("1. Open the door") or of a heading
//   a German ordinal ("am 3. Oktober")
//
// An empty line always ends a sentence. Of a text with several sentences headlines without a final mark are
// cut off, too (headlines.c). sentence_words.c has the words; tests/data/sentences what is
// expected of five languages.
#include <string.h>

#include "base/mem.h"
#include "text/headlines.h"
#include "text/sentence_words.h"
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

// The word at `pos`, behind quotes and brackets; of an elided one the beginning ("L'" of "L'eau").
static dgm_text word_after(const scan *s, size_t pos)
{
    size_t n, end;
    while (pos < s->text.size) {
        uint32_t code = code_at(s, pos, &n);
        if (!is_opener(code) && !dgm_char_is_space(code)) break;
        pos += n;
    }
    for (end = pos; end < s->text.size; end += n) {
        uint32_t code = code_at(s, end, &n);
        bool elided = (code == '\'' || code == 0x2019) && s->lang != DGM_LANG_EN;
        if (elided && end - pos <= 4) return (dgm_text){s->text.data + pos, end + 1 - pos};
        if (!(dgm_char_class(code) & DGM_CHAR_LETTER)) break;
    }
    return (dgm_text){s->text.data + pos, end - pos};
}

static bool is_roman(dgm_text word)
{
    for (size_t i = 0; i < word.size; i++)
        if (!strchr("IVXLC", word.data[i])) return false;
    return word.size > 1;
}

static bool is_upper(uint32_t code)
{
    return dgm_char_class(code) & DGM_CHAR_UPPER;
}

// The word before `word`, which does not begin the sentence; empty where there is none.
static dgm_text previous_word(const scan *s, dgm_text word)
{
    size_t at = (size_t)(word.data - s->text.data);
    while (at > s->start) {
        size_t prev = dgm_utf8_prev(s->text.data, at), n;
        if (!dgm_char_is_space(code_at(s, prev, &n))) break;
        at = prev;
    }
    return at > s->start ? word_before(s, at) : (dgm_text){s->text.data + s->start, 0};
}

// "z. B.", "d. h.", "p. ej.", and of a list of Latin letters in front of what they abbreviate.
static bool introduces(const scan *s, dgm_text word)
{
    static const char *const whole[] = {"e.g", "i.e",  "z.B",  "d.h",  "u.a",
                                        "v.a", "p.ex", "p.ej", "p.es", "P.S"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (dgm_text_equal(word, dgm_text_of(whole[i]))) return true;
    dgm_text before = previous_word(s, word);
    return s->lang == DGM_LANG_DE && word.size == 1 && before.size == 2 && before.data[1] == '.' &&
           strchr("BhHaU", word.data[0]) && strchr("zZdDuUvV", before.data[0]);
}

// "44 a. C.", "1500 d. C.": letters of an era, not of a name.
static bool is_era(const scan *s, dgm_text word)
{
    dgm_text before = previous_word(s, word);
    return word.size == 1 && word.data[0] == 'C' && before.size == 2 && before.data[1] == '.' &&
           (before.data[0] == 'a' || before.data[0] == 'd');
}

// German words before a number that is no ordinal: "Nr. 7", "auf S. 80", "um 9".
static bool counts(dgm_text before)
{
    static const char words[] =
        " Nr. S. Bd. Kap. Abs. Art. Tel. ca. vs. um Nr Seite Nummer Kapitel Zimmer Gleis ";
    return dgm_in_words(words, before);
}

static bool is_ordinal(dgm_text word)
{
    return word.size > 1 && word.size <= 3 && word.data[word.size - 1] == '.' &&
           all_digits((dgm_text){word.data, word.size - 1});
}

// "8. 1982": one or two digits and a dot.
static bool begins_date(const scan *s, size_t pos)
{
    size_t digits = 0;
    while (pos < s->text.size && is_digit((unsigned char)s->text.data[pos])) pos++, digits++;
    return digits && digits <= 2 && pos < s->text.size && s->text.data[pos] == '.';
}

// A number before a dot: of an item, of a heading ("Chapter 1. The End"), or a German ordinal.
static bool number_is_inner(const scan *s, dgm_text word, bool opens, dgm_text next)
{
    if (opens) return word.size <= 3;
    dgm_text before = previous_word(s, word);
    bool second = before.size && before.data == s->text.data + s->start;
    if (second && word.size <= 3 && dgm_is_caption(before)) return true;
    if (s->lang != DGM_LANG_DE || word.size > 2 || counts(before)) return false;
    if (next.size == 0) // "7. 8. 1982": the first dot, the second one
        return begins_date(s, (size_t)(next.data - s->text.data)) || is_ordinal(before);
    return !dgm_opens_sentence(s->lang, next, true);
}

static bool ends_in_digit(dgm_text word)
{
    return word.size && is_digit((unsigned char)word.data[word.size - 1]);
}

// A capital letter with a dot, as in names: "J. R. R. Tolkien".
static bool is_initial(const scan *s, dgm_text word)
{
    uint32_t code;
    const char *end = word.data + word.size;
    return word.size && dgm_utf8_next(word.data, word.size, &code) == word.size && is_upper(code) &&
           end < s->text.data + s->text.size && *end == '.';
}

// The sentence so far is made of letters with dots, as a label is: "N. B. This is important."
static bool all_initials(const scan *s, dgm_text word)
{
    const char *start = s->text.data + s->start;
    for (; word.data > start; word = (dgm_text){word.data, word.size - 1}) {
        word = previous_word(s, word);
        if (word.size != 2 || word.data[1] != '.') return false;
    }
    return true;
}

// Does the single dot at `dot` belong to its word, given where the next word begins and its first
// character? A word that begins sentences tells "in the U.S. The ..." from "the U.S. Army".
static bool dot_is_inner(const scan *s, size_t dot, size_t next_pos, uint32_t first)
{
    dgm_text word = word_before(s, dot), next = word_after(s, next_pos);
    if (word.size == 0) return false;
    bool opens = word.data == s->text.data + s->start; // the sentence so far is this word
    bool fresh = dgm_opens_sentence(s->lang, next, true);
    if (all_digits(word)) return number_is_inner(s, word, opens, next);
    if (introduces(s, word)) return true;
    if (has_short_parts(word) || is_era(s, word)) return opens || !fresh;
    if (dgm_is_unit(word) && ends_in_digit(previous_word(s, word))) return !fresh;
    uint32_t letter;
    if (dgm_utf8_next(word.data, word.size, &letter) == word.size &&
        (dgm_char_class(letter) & DGM_CHAR_LETTER)) {
        // "as tall as I. But ..." against "I. Newton" at the beginning of a name.
        if (s->lang == DGM_LANG_EN && letter == 'I' && !opens) return false;
        if (dgm_dot_of(s->lang, word) == DGM_DOT_TITLE) return true; // "M. Le Pen"
        if (is_initial(s, next) || all_initials(s, word)) return true;
        return opens || !dgm_opens_sentence(s->lang, next, !is_upper(letter));
    }
    if (s->lang != DGM_LANG_EN && is_roman(word)) return !fresh;
    switch (dgm_dot_of(s->lang, word)) {
    case DGM_DOT_TITLE:
        return true;
    case DGM_DOT_MAY_END:
        return !fresh;
    case DGM_DOT_NUMBER:
        return is_digit(first);
    default:
        return false;
    }
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

// "iPhone", "eBay": names that begin in lower case also where a sentence begins.
static bool has_inner_capital(const scan *s, size_t pos)
{
    dgm_text word = word_after(s, pos);
    return word.size > 2 && word.data[0] >= 'a' && word.data[0] <= 'z' && word.data[1] >= 'A' &&
           word.data[1] <= 'Z';
}

// "b) Peel them."
static bool is_item(const scan *s, size_t pos)
{
    return pos + 2 < s->text.size && s->text.data[pos] >= 'a' && s->text.data[pos] <= 'z' &&
           s->text.data[pos + 1] == ')' && s->text.data[pos + 2] == ' ';
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
    if (next == 0 || is_stop(next) || next == ',' || next == ';' || next == ':') return pos;
    if ((dgm_char_class(next) & DGM_CHAR_LOWER) && !has_inner_capital(s, next_pos) &&
        !is_item(s, next_pos))
        return pos;
    if (stops > 1 && only_dot && is_digit(next)) return pos; // "since ... 1987"
    *ends = !(only_dot && stops == 1 && dot_is_inner(s, first, next_pos, next));
    return pos;
}

static dgm_status push_sentence(dgm_pieces *out, dgm_text text, size_t begin, size_t end,
                                dgm_error *err)
{
    if (begin == end) return DGM_OK;
    const dgm_text inner = dgm_text_trim((dgm_text){text.data + begin, end - begin});
    if (inner.size == 0) return DGM_OK;
    DGM_TRY(dgm_grow(&out->items, &out->cap, out->count + 1, sizeof *out->items, err));
    size_t from = (size_t)(inner.data - text.data);
    out->items[out->count++] = (dgm_piece){from, from + inner.size, DGM_CUT_SENTENCE};
    return DGM_OK;
}

dgm_status dgm_split_at_marks(dgm_text text, dgm_language lang, dgm_pieces *out, dgm_error *err)
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

// Cuts sentence i in two if it begins with a headline.
static dgm_status cut_headline(dgm_text text, dgm_language lang, size_t i, dgm_pieces *out,
                               dgm_error *err)
{
    const dgm_piece whole = out->items[i];
    const dgm_text sentence = {text.data + whole.begin, whole.end - whole.begin};
    const size_t cut = dgm_headline_end(sentence, lang);
    if (cut == 0) return DGM_OK;
    DGM_TRY(dgm_grow(&out->items, &out->cap, out->count + 1, sizeof *out->items, err));
    memmove(out->items + i + 1, out->items + i, (out->count - i) * sizeof *out->items);
    out->count++;
    const dgm_text headline = dgm_text_trim((dgm_text){sentence.data, cut});
    out->items[i] = (dgm_piece){whole.begin, whole.begin + headline.size, DGM_CUT_SENTENCE};
    out->items[i + 1].begin = whole.begin + cut;
    return DGM_OK;
}

dgm_status dgm_split_sentences(dgm_text text, dgm_language lang, dgm_pieces *out, dgm_error *err)
{
    DGM_TRY(dgm_split_at_marks(text, lang, out, err));
    if (out->count < 2) return DGM_OK; // one sentence by its marks stays one
    for (size_t i = 0; i < out->count; i++) DGM_TRY(cut_headline(text, lang, i, out, err));
    return DGM_OK;
}
