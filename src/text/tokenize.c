// SPDX-License-Identifier: MIT
// The Moses tokeniser as one pass over characters; see tokenize.h. (detokenize.c goes back.)
//
// Moses' script rewrites the line with one regular expression after the other. Here the same rules
// decide, for every character, whether a token begins before it:
//
//   letters, marks, numbers, - ` _ and format characters stick together
//   any other punctuation or symbol stands alone; runs of two or more dots are one token
//   ,   stands alone unless it is between two numbers
//   '   English splits before ("John 's"), French and Italian after ("l' eau"), others around it;
//       the typographic apostrophe between letters follows the same rule
//   .   at the end of a word stands alone unless the word is an abbreviation, has a dot and a
//       letter inside, or a lower-case word follows
//
// White space and control characters belong to no token.
#include "text/tokenize.h"

#include <string.h>

#include "base/mem.h"

void dgm_ranges_free(dgm_ranges *r)
{
    if (!r) return;
    dgm_free(r->items);
    *r = (dgm_ranges){0};
}

enum kind {
    GAP,   // white space, control
    WORD,  // sticks to its neighbours
    ALONE, // a token of its own
    DOT,   // sticks, looked at again when words are known
    COMMA,
    APOSTROPHE,
};

typedef struct letter {
    size_t pos;
    uint32_t code;
    uint16_t flags;
    uint8_t kind;
    bool starts; // a token begins here
} letter;

static uint8_t kind_of(uint32_t code, unsigned flags)
{
    if (flags & DGM_CHAR_SPACE) return GAP;
    switch (code) {
    case '.':
        return DOT;
    case ',':
        return COMMA;
    case '\'':
    case 0x2019:
        return APOSTROPHE;
    case '-':
    case '`':
        return WORD;
    default:
        break;
    }
    if (code < 32 || (code >= 0x7F && code < 0xA0)) return GAP;
    // Moses keeps the underscore apart; it is rare in text, and names in code survive this way.
    if (code == '_') return WORD;
    return flags & (DGM_CHAR_PUNCT | DGM_CHAR_SYMBOL) ? ALONE : WORD;
}

static bool is_alpha(const letter *c)
{
    return c->flags & (DGM_CHAR_LETTER | DGM_CHAR_MARK);
}

static bool is_number(const letter *c)
{
    return c->flags & DGM_CHAR_NUMBER;
}

// Decides about an apostrophe at c[0] with neighbours c[-1] and c[1]. Sets before and after.
static void place_apostrophe(const letter *c, dgm_language lang, bool *before, bool *after)
{
    const letter *left = c - 1, *right = c + 1;
    *before = *after = true;
    if (c->code != '\'' && !(is_alpha(left) && is_alpha(right))) return;
    switch (lang) {
    case DGM_LANG_EN:
        if (is_alpha(right) && (is_alpha(left) || (is_number(left) && right->code == 's')))
            *after = false;
        else if (is_number(left) && is_alpha(right))
            *before = *after = false;
        break;
    case DGM_LANG_FR:
    case DGM_LANG_IT:
        if (is_alpha(left) && is_alpha(right)) *before = false;
        break;
    default:
        break;
    }
}

// Marks token starts from the kinds alone. c[-1] and c[n] are sentinels of kind GAP.
static void mark_starts(letter *c, size_t n, dgm_language lang)
{
    bool split = true; // must the next character start a token?
    for (size_t i = 0; i < n; i++) {
        letter *x = &c[i];
        bool before = false, after = false;
        switch (x->kind) {
        case GAP:
        case ALONE:
            before = after = true;
            break;
        case COMMA:
            before = after = !(is_number(x - 1) && is_number(x + 1));
            break;
        case APOSTROPHE:
            place_apostrophe(x, lang, &before, &after);
            break;
        case DOT:
            if (x[-1].kind == DOT)
                after = x[1].kind != DOT; // inside or at the end of a run
            else
                before = x[1].kind == DOT; // first of a run
            break;
        default:
            break;
        }
        x->starts = split || before;
        split = after;
    }
}

static bool is_roman(dgm_text word)
{
    for (size_t i = 0; i < word.size; i++)
        if (!memchr("IVX", word.data[i], 3)) return false;
    return word.size > 0;
}

// Does the dot after `word` (letters c[from .. to)) belong to it? next: first letter of the next
// token, or the sentinel at the end of the line.
static bool keeps_dot(const char *line, const letter *c, size_t from, size_t to, const letter *next,
                      dgm_language lang)
{
    dgm_text word = {line + c[from].pos, c[to].pos - c[from].pos};
    bool inner_dot = false, alpha = false, digits = true;
    for (size_t i = from; i < to; i++) {
        inner_dot |= c[i].kind == DOT;
        alpha |= is_alpha(&c[i]);
        digits &= c[i].code >= '0' && c[i].code <= '9';
    }
    bool last = next->kind == GAP;
    if (inner_dot && alpha) return true;
    if (!last && (next->flags & DGM_CHAR_LOWER)) return true;
    // German ordinals: "am 3. Oktober", "Ludwig XIV. von Frankreich".
    if (lang == DGM_LANG_DE && !last && ((digits && word.size <= 2) || is_roman(word))) return true;
    int kind = dgm_abbreviation(lang, word);
    return kind == 1 || (kind == 2 && !last && is_number(next));
}

// Splits off final dots that do not belong to their word.
static void split_dots(const char *line, letter *c, size_t n, dgm_language lang)
{
    size_t start = 0;
    for (size_t i = 0; i < n; i++) {
        if (c[i].starts) start = i;
        bool ends = c[i + 1].starts || c[i + 1].kind == GAP;
        if (c[i].kind != DOT || !ends || i == start || c[i - 1].kind == DOT) continue;
        size_t next = i + 1;
        while (next < n && c[next].kind == GAP) next++;
        if (!keeps_dot(line, c, start, i, &c[next], lang)) c[i].starts = true;
    }
}

static dgm_status read_letters(dgm_text line, letter **letters, size_t *count, dgm_error *err)
{
    size_t n = dgm_utf8_count(line), pos = 0;
    letter *all = dgm_calloc(n + 2, sizeof *all); // with a sentinel at both ends
    if (!all) return dgm_no_memory(err);
    for (size_t i = 1; i <= n; i++) {
        letter *c = &all[i];
        c->pos = pos;
        pos += dgm_utf8_next(line.data + pos, line.size - pos, &c->code);
        c->flags = (uint16_t)dgm_char_class(c->code);
        c->kind = kind_of(c->code, c->flags);
    }
    all[n + 1].pos = pos;
    all[n + 1].starts = true;
    *letters = all;
    *count = n;
    return DGM_OK;
}

dgm_status dgm_moses_tokenize(dgm_text line, dgm_language lang, dgm_ranges *tokens, dgm_error *err)
{
    tokens->count = 0;
    if (line.size == 0) return DGM_OK;
    letter *all = NULL;
    size_t n = 0;
    DGM_TRY(read_letters(line, &all, &n, err));
    letter *c = all + 1;
    mark_starts(c, n, lang);
    split_dots(line.data, c, n, lang);
    dgm_status st = DGM_OK;
    for (size_t i = 0; st == DGM_OK && i < n;) {
        if (c[i].kind == GAP) {
            i++;
            continue;
        }
        size_t end = i + 1;
        while (end < n && !c[end].starts && c[end].kind != GAP) end++;
        st = dgm_grow(&tokens->items, &tokens->cap, tokens->count + 1, sizeof *tokens->items, err);
        if (st == DGM_OK) tokens->items[tokens->count++] = (dgm_range){c[i].pos, c[end].pos};
        i = end;
    }
    dgm_free(all);
    if (st != DGM_OK) tokens->count = 0;
    return st;
}

const char *dgm_moses_entity(uint32_t code)
{
    switch (code) {
    case '&':
        return "&amp;";
    case '|':
        return "&#124;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '\'':
        return "&apos;";
    case '"':
        return "&quot;";
    case '[':
        return "&#91;";
    case ']':
        return "&#93;";
    default:
        return NULL;
    }
}

dgm_status dgm_moses_tokenize_line(dgm_text line, dgm_language lang, bool escape, dgm_writer *out,
                                   dgm_error *err)
{
    dgm_ranges tokens = {0};
    dgm_status st = dgm_moses_tokenize(line, lang, &tokens, err);
    for (size_t i = 0; st == DGM_OK && i < tokens.count; i++) {
        dgm_range r = tokens.items[i];
        if (i) dgm_write_u8(out, ' ');
        if (!escape) {
            dgm_write_bytes(out, line.data + r.begin, r.end - r.begin);
            continue;
        }
        for (size_t k = r.begin; k < r.end; k++) {
            const char *entity = dgm_moses_entity((uint8_t)line.data[k]);
            if (entity)
                dgm_write_text(out, entity);
            else
                dgm_write_bytes(out, line.data + k, 1);
        }
    }
    dgm_ranges_free(&tokens);
    if (st == DGM_OK && out->failed) st = dgm_no_memory(err);
    return st;
}
