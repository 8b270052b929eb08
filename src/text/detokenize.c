// SPDX-License-Identifier: MIT
// The Moses detokeniser: tokens to text; see tokenize.h. (tokenize.c goes the other way.)
//
// Every token says whether a space may stand before it (left) and after it (right); a space is
// written where both neighbours allow one. Rules, in order:
//
//   text written without spaces      no space inside it and around its punctuation
//   , . ? ! : ; % ) ] } and dots     no space before (French: a space before ? ! : ; %)
//   ( [ { ¿ ¡ # and currency         no space after
//   's 'll (en)   l' dell' (fr, it)  stick to their word
//   ' " and other quotes             open and close in turn, or by their shape and language
//   : between numbers, / in words    no space on either side
//
// Beyond Moses' script: quotes by shape, currency after its number ("5 € kosten"), German "geht's",
// slashes and addresses, quotations that began in an earlier line.
#include <string.h>

#include "base/mem.h"
#include "text/tokenize.h"

typedef struct token {
    dgm_text text;
    uint32_t first, last;             // code points
    unsigned first_flags, last_flags; // their classes
    bool single;                      // one code point
} token;

typedef struct state {
    dgm_language lang;
    unsigned quotes;      // straight double quotes met so far
    unsigned quotes_left; // and still to come
    unsigned ticks;       // straight single quotes met so far
} state;

enum { SPACE_BEFORE = 1, SPACE_AFTER = 2, BOTH = 3 };

static token describe(dgm_text t)
{
    token k = {.text = t};
    if (t.size == 0) return k;
    size_t n = dgm_utf8_next(t.data, t.size, &k.first);
    size_t at = dgm_utf8_prev(t.data, t.size);
    dgm_utf8_next(t.data + at, t.size - at, &k.last);
    k.first_flags = dgm_char_class(k.first);
    k.last_flags = dgm_char_class(k.last);
    k.single = n == t.size;
    return k;
}

static bool all_of(dgm_text t, const char *set)
{
    for (size_t i = 0; i < t.size; i++)
        if (!t.data[i] || !strchr(set, t.data[i])) return false;
    return t.size > 0;
}

static bool ends_in_word(const token *t)
{
    return t && (t->last_flags & (DGM_CHAR_LETTER | DGM_CHAR_MARK | DGM_CHAR_NUMBER));
}

static bool begins_letter(const token *t)
{
    return t && (t->first_flags & DGM_CHAR_LETTER);
}

static bool is_number(const token *t)
{
    return t && (t->first_flags & DGM_CHAR_NUMBER) && (t->last_flags & DGM_CHAR_NUMBER);
}

static bool begins_word(const token *t)
{
    return t && (t->first_flags & (DGM_CHAR_LETTER | DGM_CHAR_NUMBER));
}

static bool is_slash(const token *t)
{
    return t && t->single && t->first == '/';
}

static bool is_apostrophe(uint32_t code)
{
    return code == '\'' || code == 0x2019;
}

// A quote that opens and closes in turn.
static int toggle(unsigned *count)
{
    return (*count)++ % 2 == 0 ? SPACE_BEFORE : SPACE_AFTER;
}

// German and Spanish tokens stand apart from their apostrophe: "geht ' s", "O ' Neill".
static bool joins_words(const token *left, const token *right)
{
    if (!left || !right || !ends_in_word(left) || !begins_letter(right)) return false;
    static const char *const endings[] = {"s", "n", "ne", "nen", "m", "S"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (dgm_text_equal(right->text, dgm_text_of(endings[i]))) return true;
    return left->single && (left->first_flags & DGM_CHAR_LETTER);
}

static int place_double_quote(state *s, const token *left, const token *right)
{
    unsigned left_over = s->quotes_left--;
    if (!right) return SPACE_AFTER;
    // A quotation that began in an earlier sentence: ..., " he said.
    if (s->quotes == 0 && left_over % 2 == 1 && left && all_of(left->text, ".,!?"))
        return SPACE_AFTER;
    return toggle(&s->quotes);
}

static int place_single_quote(state *s, const token *left, const token *right)
{
    bool elides = s->lang == DGM_LANG_FR || s->lang == DGM_LANG_IT;
    if (!elides && joins_words(left, right)) return 0;
    if (elides && left && right && left->text.size <= 2 && begins_letter(left)) return 0; // d'1
    if (!right) return SPACE_AFTER;
    // "the Jones' house", unless a quotation is open
    if (s->lang == DGM_LANG_EN && s->ticks % 2 == 0 && left && left->last == 's')
        return SPACE_AFTER;
    return toggle(&s->ticks);
}

// Quotes whose side follows from their shape; -1 for other characters.
static int place_shaped_quote(const state *s, const token *t, const token *left, const token *right)
{
    bool german = s->lang == DGM_LANG_DE;
    switch (t->first) {
    case 0x201E: // „
    case 0x201A: // ‚
        return SPACE_BEFORE;
    case 0x201C: // “ opens, but closes in German
    case 0x2018: // ‘
        return german ? SPACE_AFTER : SPACE_BEFORE;
    case 0x2019: // ’
        if (joins_words(left, right)) return 0;
        return SPACE_AFTER;
    case 0x201D: // ”
        return SPACE_AFTER;
    case 0xAB: // «
    case 0x2039:
        if (s->lang == DGM_LANG_FR) return BOTH;
        return german ? SPACE_AFTER : SPACE_BEFORE;
    case 0xBB: // »
    case 0x203A:
        if (s->lang == DGM_LANG_FR) return BOTH;
        return german ? SPACE_BEFORE : SPACE_AFTER;
    default:
        return -1;
    }
}

static int place_symbol(state *s, const token *t, const token *left, const token *right)
{
    if (t->first == ':' && ((is_number(left) && is_number(right)) || is_slash(right))) return 0;
    if (is_slash(t) && left && right &&
        (ends_in_word(left) || is_slash(left) || left->last == ':') &&
        (is_slash(right) || begins_word(right)))
        return 0;
    if (all_of(t->text, ",.?!:;%}])\\") || t->first == 0x2026) {
        bool apart = s->lang == DGM_LANG_FR && t->single && memchr("?!:;%", (int)t->first, 5) &&
                     t->first < 128;
        return apart ? BOTH : SPACE_AFTER;
    }
    if (all_of(t->text, "([{")) return SPACE_BEFORE;
    switch (t->first) {
    case 0xBF: // ¿
    case 0xA1: // ¡
        return SPACE_BEFORE;
    case '#':
        return right && !(right->first_flags & DGM_CHAR_PUNCT) ? SPACE_BEFORE : BOTH;
    case '"':
        return place_double_quote(s, left, right);
    case '\'':
        return place_single_quote(s, left, right);
    case '$':
    case 0xA2:
    case 0xA3:
    case 0xA5:
    case 0x20AC: // $ ¢ £ ¥ €
        return is_number(left) && !is_number(right) ? BOTH : SPACE_BEFORE;
    default:
        return place_shaped_quote(s, t, left, right);
    }
}

// Which sides of the token want a space.
static int place(state *s, const token *t, const token *left, const token *right)
{
    if (t->text.size == 0) return BOTH;
    if (t->single || (t->first_flags & DGM_CHAR_PUNCT)) {
        if (t->single || all_of(t->text, ",.?!:;%}])\\([{")) {
            int sides = place_symbol(s, t, left, right);
            if (sides >= 0) return sides;
        }
    }
    if (s->lang == DGM_LANG_EN && is_apostrophe(t->first) && !t->single && ends_in_word(left))
        return SPACE_AFTER; // 's 'll ’ve
    if ((s->lang == DGM_LANG_FR || s->lang == DGM_LANG_IT) && is_apostrophe(t->last) &&
        !t->single && begins_letter(right))
        return SPACE_BEFORE; // l' dell'
    // "Cosmic Vision"-Programm
    if (t->first == '-' && !t->single && left && left->single &&
        (left->first == '"' || left->first == ')' || left->first == 0x201C ||
         left->first == 0x201D))
        return SPACE_AFTER;
    return BOTH;
}

// Appends the text with entities undone.
static void write_unescaped(dgm_writer *out, dgm_text t)
{
    static const struct {
        const char *entity;
        char c;
    } entities[] = {{"&amp;", '&'}, {"&#124;", '|'},  {"&bar;", '|'},  {"&lt;", '<'},
                    {"&gt;", '>'},  {"&apos;", '\''}, {"&quot;", '"'}, {"&#91;", '['},
                    {"&#93;", ']'}, {"&bra;", '['},   {"&ket;", ']'}};
    for (size_t i = 0; i < t.size;) {
        size_t used = 0;
        for (size_t e = 0; t.data[i] == '&' && e < sizeof entities / sizeof entities[0]; e++) {
            size_t n = strlen(entities[e].entity);
            if (t.size - i < n || memcmp(t.data + i, entities[e].entity, n) != 0) continue;
            dgm_write_u8(out, (uint8_t)entities[e].c);
            used = n;
            break;
        }
        if (!used) {
            dgm_write_bytes(out, t.data + i, 1);
            used = 1;
        }
        i += used;
    }
}

// The tokens with entities undone: views into *plain, list owned by the caller.
static dgm_status unescape_all(const dgm_text *tokens, size_t count, dgm_writer *plain,
                               dgm_text **list, dgm_error *err)
{
    dgm_text *fresh = dgm_calloc(count, sizeof *fresh);
    if (!fresh) return dgm_no_memory(err);
    *list = fresh;
    for (size_t i = 0; i < count; i++) {
        size_t from = plain->size;
        write_unescaped(plain, tokens[i]);
        fresh[i].size = plain->size - from;
    }
    if (plain->failed) return dgm_no_memory(err);
    const char *at = plain->data ? (const char *)plain->data : "";
    for (size_t i = 0; i < count; i++) {
        fresh[i].data = at;
        at += fresh[i].size;
    }
    return DGM_OK;
}

// Text written without spaces: between two of its characters, and around its punctuation.
static bool are_glued(unsigned left, unsigned right)
{
    const unsigned wide = DGM_CHAR_SPACELESS, mark = DGM_CHAR_SPACELESS | DGM_CHAR_PUNCT;
    return (left & right & wide) || (left & mark) == mark || (right & mark) == mark;
}

static void write_tokens(const dgm_text *tokens, size_t count, dgm_language lang, dgm_writer *out,
                         dgm_range *spans)
{
    size_t start = out->size;
    state s = {.lang = lang};
    token left, now = {.single = false}, right = {.single = false};
    bool want = false; // did the token before want a space after it?
    for (size_t i = 0; i < count; i++)
        s.quotes_left += tokens[i].size == 1 && tokens[i].data[0] == '"';
    if (count) right = describe(tokens[0]);
    for (size_t i = 0; i < count; i++) {
        left = now;
        now = right;
        if (i + 1 < count) right = describe(tokens[i + 1]);
        int sides = place(&s, &now, i ? &left : NULL, i + 1 < count ? &right : NULL);
        bool glued = i && are_glued(left.last_flags, now.first_flags);
        if (want && (sides & SPACE_BEFORE) && !glued) dgm_write_u8(out, ' ');
        if (spans) spans[i].begin = out->size - start;
        dgm_write_bytes(out, now.text.data, now.text.size);
        if (spans) spans[i].end = out->size - start;
        want = sides & SPACE_AFTER;
    }
}

dgm_status dgm_moses_detokenize(const dgm_text *tokens, size_t count, dgm_language lang,
                                bool unescape, dgm_writer *out, dgm_range *spans, dgm_error *err)
{
    size_t start = out->size;
    dgm_writer plain = {0};
    dgm_text *list = NULL;
    dgm_status st = DGM_OK;
    if (unescape) st = unescape_all(tokens, count, &plain, &list, err);
    if (st == DGM_OK) write_tokens(unescape ? list : tokens, count, lang, out, spans);
    if (st == DGM_OK && out->failed) st = dgm_no_memory(err);
    if (st != DGM_OK) out->size = start;
    dgm_writer_free(&plain);
    dgm_free(list);
    return st;
}

dgm_status dgm_moses_detokenize_line(dgm_text line, dgm_language lang, bool unescape,
                                     dgm_writer *out, dgm_error *err)
{
    dgm_text *tokens = NULL;
    size_t count = 0, cap = 0;
    dgm_status st = DGM_OK;
    for (size_t pos = 0; st == DGM_OK && pos < line.size;) {
        while (pos < line.size && line.data[pos] == ' ') pos++;
        size_t end = pos;
        while (end < line.size && line.data[end] != ' ') end++;
        if (end > pos) {
            st = dgm_grow(&tokens, &cap, count + 1, sizeof *tokens, err);
            if (st == DGM_OK) tokens[count++] = (dgm_text){line.data + pos, end - pos};
        }
        pos = end;
    }
    if (st == DGM_OK) st = dgm_moses_detokenize(tokens, count, lang, unescape, out, NULL, err);
    dgm_free(tokens);
    return st;
}
