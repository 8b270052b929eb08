// SPDX-License-Identifier: MIT
// Placeholders: what programs put values in, which no translation may change. Those of printf, Python, ICU, shells,
// templates; names of emoji, and signs that no language has words for. Tags are not among them: they are taken out of
// the text before.
#include <string.h>

#include "document/document_private.h"
#include "text/unicode.h"

static char char_at(dgm_text t, size_t pos)
{
    return pos < t.size ? t.data[pos] : 0;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_plain(char c)
{
    return is_letter(c) || is_digit(c);
}

// From an opening to a closing text, over what may stand in between; 0: it does not close.
static size_t enclosed(dgm_text t, size_t pos, const char *open, const char *close)
{
    enum { LONGEST = 120 };
    const size_t from = pos + strlen(open), n = strlen(close);
    if (from > t.size || memcmp(t.data + pos, open, strlen(open)) != 0) return 0;
    for (size_t i = from; i + n <= t.size && i < from + LONGEST; i++) {
        if (memcmp(t.data + i, close, n) == 0) return i > from || *open == '{' ? i + n - pos : 0;
        if (dgm_is_break(t.data[i]) || t.data[i] == '{') return 0; // a line has spaces for them
    }
    return 0;
}

// "%s", "%1$s", "%-5.2f", "%ld", "%@"; not the sign of percent in "5% of", "100 % sure" or "100%ig".
static size_t format_at(dgm_text t, size_t pos)
{
    size_t end = pos + 1;
    if (char_at(t, end) == '%') return 2;
    while (is_digit(char_at(t, end)) || (char_at(t, end) && strchr("$-+.#*lhzjqL'", t.data[end]))) end++;
    const char kind = char_at(t, end);
    if (!kind || !strchr("sdifuxXcgGeEop@n", kind)) return 0;
    const char next = char_at(t, end + 1);
    return next >= 'a' && next <= 'z' && end == pos + 1 ? 0 : end + 1 - pos;
}

// "%(name)s"
static size_t named_format_at(dgm_text t, size_t pos)
{
    const size_t n = enclosed(t, pos, "%(", ")");
    size_t end = pos + n;
    while (n && (is_digit(char_at(t, end)) || (char_at(t, end) && strchr("-+.#", t.data[end])))) end++;
    return n && char_at(t, end) && strchr("sdifuxXcgGeor", t.data[end]) ? end + 1 - pos : n;
}

// ":smile:", not the colons of a time or of "std::".
static size_t emoji_at(dgm_text t, size_t pos)
{
    size_t end = pos + 1;
    bool letters = false;
    if (pos && (is_plain(t.data[pos - 1]) || t.data[pos - 1] == ':')) return 0;
    while (is_plain(char_at(t, end)) || char_at(t, end) == '+' || char_at(t, end) == '-')
        letters |= is_letter(t.data[end++]);
    const bool sign = end == pos + 3 && (t.data[pos + 1] == '+' || t.data[pos + 1] == '-'); // :+1:
    return end > pos + 1 && char_at(t, end) == ':' && (letters || sign) && char_at(t, end + 1) != ':' ? end + 1 - pos
                                                                                                      : 0;
}

// An entity that the file's escaping does not know, or text that holds HTML.
static size_t entity_at(dgm_text t, size_t pos)
{
    size_t end = pos + 1 + (char_at(t, pos + 1) == '#');
    const size_t name = end;
    while (is_plain(char_at(t, end)) && end < pos + 32) end++;
    return end > name && char_at(t, end) == ';' ? end + 1 - pos : 0;
}

static size_t variable_at(dgm_text t, size_t pos)
{
    size_t end = pos + 1;
    if (char_at(t, end) == '{') return enclosed(t, pos, "${", "}");
    if (char_at(t, end) == '(') return enclosed(t, pos, "$(", ")");
    if (pos && is_plain(t.data[pos - 1])) return 0;
    if (is_letter(char_at(t, end)))
        while (is_plain(char_at(t, end))) end++;
    if (char_at(t, end) == '$' && end > pos + 1) end++; // $name$
    return end > pos + 1 ? end - pos : 0;
}

// Signs that are the same in every language: (c), trademarks, arrows, pictures. Not those of money and degrees, for
// which translations may have words.
static bool is_sign(uint32_t code)
{
    enum { COPYRIGHT = 0xA9, REGISTERED = 0xAE, NUMERO = 0x2116 };
    const bool there = (code >= 0x2100 && code < 0x2C00 && code != NUMERO) || (code >= 0x1F000 && code < 0x1FB00);
    return code == COPYRIGHT || code == REGISTERED || (there && (dgm_char_class(code) & DGM_CHAR_SYMBOL));
}

// What belongs to the sign before it: joiners and forms of pictures.
static bool is_sign_joiner(uint32_t code)
{
    return code == 0x200D || code == 0x20E3 || code == 0xFE0E || code == 0xFE0F;
}

size_t dgm_signs_at(dgm_text t, size_t pos, bool *apart)
{
    enum { ARROWS = 0x2190, PICTURES = 0x2300 };
    uint32_t first = 0;
    size_t end = pos;
    dgm_utf8_next(t.data + pos, t.size - pos, &first);
    *apart = first < ARROWS || first >= PICTURES;
    while (end < t.size) {
        uint32_t code = 0;
        const size_t n = dgm_utf8_next(t.data + end, t.size - end, &code);
        if (!is_sign(code) && !(end > pos && is_sign_joiner(code))) break;
        end += n;
    }
    return end - pos;
}

// "10&nbsp;km": a space that ties two words together. Before marks it is a habit of the language.
static size_t tie_at(dgm_text t, size_t pos)
{
    enum { SIZE = sizeof DGM_TIE - 1 };
    uint32_t before = 0, behind = 0;
    if (pos == 0 || pos + SIZE >= t.size || memcmp(t.data + pos, DGM_TIE, SIZE) != 0) return 0;
    const size_t left = dgm_utf8_prev(t.data, pos), right = pos + SIZE;
    dgm_utf8_next(t.data + left, pos - left, &before);
    dgm_utf8_next(t.data + right, t.size - right, &behind);
    const bool word = (dgm_char_class(before) & (DGM_CHAR_LETTER | DGM_CHAR_NUMBER)) || before == '.' || before == ':';
    return word && (dgm_char_class(behind) & (DGM_CHAR_LETTER | DGM_CHAR_NUMBER)) ? SIZE : 0;
}

size_t dgm_placeholder_at(dgm_text t, size_t pos, bool icu)
{
    bool apart = false;
    size_t n = 0;
    switch (t.data[pos]) {
    case '{':
        n = enclosed(t, pos, "{{{", "}}}");
        if (!n) n = enclosed(t, pos, "{{", "}}");
        if (!n) n = enclosed(t, pos, "{%", "%}");
        return n ? n : enclosed(t, pos, "{", "}");
    case '$':
        return variable_at(t, pos);
    case '%':
        if (char_at(t, pos + 1) == '{') return enclosed(t, pos, "%{", "}");
        return char_at(t, pos + 1) == '(' ? named_format_at(t, pos) : format_at(t, pos);
    case '#':
        if (char_at(t, pos + 1) == '{') return enclosed(t, pos, "#{", "}");
        return icu && !is_plain(char_at(t, pos + 1)) ? 1 : 0;
    case ':':
        return emoji_at(t, pos);
    case '[':
        return enclosed(t, pos, "[[", "]]");
    case '&':
        return entity_at(t, pos);
    case '<':
    case '>': // "x < y"
        return pos > 0 && t.data[pos - 1] == ' ' && char_at(t, pos + 1) == ' ' ? 1 : 0;
    case '\xc2': // U+0080 to U+00BF
        n = tie_at(t, pos);
        return n ? n : dgm_signs_at(t, pos, &apart);
    case '\xe2': // U+2000 to U+2FFF
    case '\xf0': // beyond U+FFFF
        return dgm_signs_at(t, pos, &apart);
    default:
        return 0;
    }
}

bool dgm_text_speaks(dgm_text t)
{
    for (size_t i = 0; i < t.size;) {
        uint32_t code = 0;
        size_t n = dgm_placeholder_at(t, i, true);
        if (!n) {
            n = dgm_utf8_next(t.data + i, t.size - i, &code);
            if (dgm_char_class(code) & DGM_CHAR_LETTER) return true;
        }
        i += n;
    }
    return false;
}
