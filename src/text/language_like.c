// SPDX-License-Identifier: MIT
// See language_like.h. Rules err on the side of language: a sentence that is copied is worse than a
// file name that is translated.
#include "text/language_like.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_ascii_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool has(dgm_text t, const char *part)
{
    const size_t size = strlen(part);
    const char *at = t.data, *const end = t.data + t.size;
    while ((size_t)(end - at) >= size && (at = memchr(at, part[0], (size_t)(end - at) - size + 1))) {
        if (memcmp(at, part, size) == 0) return true;
        at++;
    }
    return false;
}

static bool begins(dgm_text t, const char *part)
{
    const size_t size = strlen(part);
    return t.size >= size && memcmp(t.data, part, size) == 0;
}

static bool ends(dgm_text t, const char *part)
{
    const size_t size = strlen(part);
    return t.size >= size && memcmp(t.data + t.size - size, part, size) == 0;
}

// Without the marks that may stand around a word.
static dgm_text bare(dgm_text t)
{
    while (t.size && strchr("(\"'[,;:!?", t.data[0])) t.data++, t.size--;
    while (t.size && strchr(")\"'],;:!?.", t.data[t.size - 1])) t.size--;
    return t;
}

typedef struct letters {
    size_t all, digits;
    bool spaceless; // of a script in which a single letter may be a word
} letters;

static letters count_letters(dgm_text t)
{
    letters found = {0};
    for (size_t pos = 0; pos < t.size;) {
        uint32_t code;
        pos += dgm_utf8_next(t.data + pos, t.size - pos, &code);
        const unsigned class = dgm_char_class(code);
        found.all += (class & DGM_CHAR_LETTER) != 0;
        found.digits += (class & DGM_CHAR_NUMBER) != 0;
        found.spaceless |= (class & DGM_CHAR_LETTER) && (class & DGM_CHAR_SPACELESS);
    }
    return found;
}

// "{name}", "{{", "${HOME}", "<br/>", "&nbsp;", "%s", "%1$s", "%(name)s", "$PATH", "__NAME__".
static bool is_placeholder(dgm_text t)
{
    static const char *const around[][2] = {{"{", "}"},   {"<", ">"},   {"&", ";"},
                                            {"__", "__"}, {"[[", "]]"}, {"%(", ")s"}};
    for (size_t i = 0; i < sizeof around / sizeof *around; i++)
        if (t.size > 2 && begins(t, around[i][0]) && ends(t, around[i][1])) return true;
    if (begins(t, "{{") || ends(t, "}}") || begins(t, "${")) return true;
    if (t.size > 1 && t.data[0] == '$' && (is_ascii_letter(t.data[1]) || t.data[1] == '_'))
        return true;
    if (t.size < 2 || t.data[0] != '%') return false;
    size_t i = 1;
    while (i < t.size && (is_digit(t.data[i]) || strchr("$-+. #*lhz", t.data[i]))) i++;
    return i + 1 == t.size && strchr("sdifuxXcgGeEop%@", t.data[i]) != NULL;
}

bool dgm_is_file_name(dgm_text t)
{
    static const char known[] = " c h cc cpp hpp py txt md pdf png jpg jpeg gif svg html htm css "
                                "js ts json xml yaml yml toml csv tsv zip gz xz tar "
                                "exe dll so deb rpm sh bat conf cfg ini log java go rs php sql doc "
                                "docx xls xlsx ppt pptx odt ods mp3 mp4 wav avi "
                                "mov iso img bin dat db bak tmp o a gguf ";
    size_t dot = t.size;
    while (dot > 0 && t.data[dot - 1] != '.') dot--;
    if (dot < 2 || dot == t.size || t.size - dot > 6) return false;
    for (size_t i = 0; i < t.size; i++)
        if (!is_ascii_letter(t.data[i]) && !is_digit(t.data[i]) && !strchr("._-+*", t.data[i]))
            return false;
    char word[9] = " ";
    memcpy(word + 1, t.data + dot, t.size - dot);
    word[1 + t.size - dot] = ' ';
    return strstr(known, word) != NULL;
}

bool dgm_is_hexadecimal(dgm_text t)
{
    size_t digits = 0;
    for (size_t i = 0; i < t.size; i++) {
        const char c = t.data[i];
        if (!is_digit(c) && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F') && c != '-')
            return false;
        digits += is_digit(c);
    }
    return t.size >= 8 && digits >= 4;
}

static bool is_identifier(dgm_text t)
{
    bool inner = has(t, "::") || has(t, "->") || ends(t, "()");
    for (size_t i = 1; i + 1 < t.size; i++)
        inner |=
            t.data[i] == '_' && is_ascii_letter(t.data[i - 1]) && is_ascii_letter(t.data[i + 1]);
    return inner;
}

static bool is_address(dgm_text t)
{
    if (has(t, "://") || begins(t, "www.") || begins(t, "mailto:")) return true;
    const char *at = memchr(t.data, '@', t.size);
    if (at) return at == t.data || memchr(at, '.', t.size - (size_t)(at - t.data)) != NULL;
    if (begins(t, "/") || begins(t, "./") || begins(t, "~/") || begins(t, "../")) return true;
    return t.size > 2 && is_ascii_letter(t.data[0]) && t.data[1] == ':' && t.data[2] == '\\';
}

static bool is_word(dgm_text token)
{
    enum { SUFFIX = 3 }; // letters behind a number: "5GB", "1st", "2024-05-01T12:00:00Z"
    if (is_placeholder(token)) return false;
    const dgm_text t = bare(token);
    const letters found = count_letters(t);
    if (found.all == 0) return false;
    if (found.spaceless) return true;
    if (found.all == 1 || is_placeholder(t) || is_address(t) || dgm_is_file_name(t) ||
        dgm_is_hexadecimal(t))
        return false;
    if (t.data[0] == '<' || t.data[0] == '#') return false;
    if ((is_digit(t.data[0]) || t.data[0] == '+') && found.all <= SUFFIX) return false;
    if ((t.data[0] == 'v' || t.data[0] == 'V') && t.size > 1 && is_digit(t.data[1])) return false;
    return !is_identifier(t);
}

// A call or an element: a name right before its bracket.
static bool is_called(dgm_text t, char bracket)
{
    const char *const end = t.data + t.size;
    for (const char *at = t.data; (at = memchr(at, bracket, (size_t)(end - at))); at++)
        if (at > t.data && (is_ascii_letter(at[-1]) || at[-1] == '_')) return true;
    return false;
}

// Signs of code in a line; language has few of them. Braces alone say nothing: "Dear {name}".
static bool is_code(dgm_text t)
{
    static const char *const signs[] = {"==", "!=", "&&", "||", "->", "::",  "+=", "-=", "++",
                                        "=>", "</", "/>", "();", ");", " = ", "<<", "=\""};
    size_t found = is_called(t, '(') || is_called(t, '[');
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) found += has(t, signs[i]);
    const char last = t.data[t.size - 1];
    if (begins(t, "#include") || begins(t, "//") || begins(t, "/*")) return true;
    if (begins(t, "<") && last == '>' && found) return true;
    return found >= 3 || (found >= 1 && (last == ';' || last == '{' || (last == '}' && has(t, ";"))));
}

bool dgm_is_language(dgm_text text)
{
    const dgm_text t = dgm_text_trim(text);
    const bool one = begins(t, "{{") && ends(t, "}}") && !has((dgm_text){t.data, t.size - 1}, "}}");
    if (t.size == 0 || one || is_code(t)) return false; // one: "{{ name }}", with blanks inside
    for (size_t pos = 0; pos < t.size;) {
        uint32_t code;
        size_t n = dgm_utf8_next(t.data + pos, t.size - pos, &code);
        if (dgm_char_is_space(code)) {
            pos += n;
            continue;
        }
        size_t end = pos;
        while (end < t.size) {
            n = dgm_utf8_next(t.data + end, t.size - end, &code);
            if (dgm_char_is_space(code)) break;
            end += n;
        }
        if (is_word((dgm_text){t.data + pos, end - pos})) return true;
        pos = end;
    }
    return false;
}
