// SPDX-License-Identifier: MIT
// Finds what a translation must not damage; see protect.h. One pass over the sentence: at every place
// where something may begin, its kinds are tried, the most particular first.
#include "text/protect.h"

#include <string.h>

#include "base/mem.h"
#include "text/language_like.h"

static char char_at(dgm_text t, size_t pos)
{
    return pos < t.size ? t.data[pos] : 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_ascii_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_plain(char c) // of words in ASCII
{
    return is_ascii_letter(c) || is_digit(c);
}

static bool holds(dgm_text t, size_t pos, const char *part)
{
    const size_t n = strlen(part);
    return pos + n <= t.size && memcmp(t.data + pos, part, n) == 0;
}

static size_t run_of(dgm_text t, size_t pos, const char *others)
{
    size_t end = pos;
    while (end < t.size && (is_plain(t.data[end]) || (t.data[end] && strchr(others, t.data[end])))) end++;
    return end - pos;
}

dgm_protector dgm_protector_for(dgm_text source, dgm_text target)
{
    static const struct {
        const char *codes; // between spaces
        dgm_numerals how;
    } known[] = {{" en eng ", {'.', ','}},
                 {" de deu ger es spa it ita nl nld pt por da dan id ind ro ron tr tur hr hrv sl slv el ell ",
                  {',', '.'}},
                 {" fr fra fre pl pol cs ces sk slk ru rus uk ukr bg bul fi fin sv swe no nb nn nob hu hun et est lv "
                  "lav lt lit ",
                  {',', ' '}}};
    dgm_protector p = {.from = dgm_language_of(source), .to = dgm_language_of(target)};
    for (int side = 0; side < 2; side++) {
        const dgm_text code = side ? target : source;
        char word[6] = " ";
        size_t n = 0;
        while (n < code.size && n < 4 && is_ascii_letter(code.data[n])) n++;
        if (n < 2 || n > 3) continue;
        memcpy(word + 1, code.data, n);
        word[n + 1] = ' ';
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (strstr(known[i].codes, word)) *(side ? &p.target : &p.source) = known[i].how;
    }
    return p;
}

// ---- placeholders ------------------------------------------------------------------------------

// Up to the closing text, no farther than a short way and not over line breaks or another opening.
static size_t enclosed(dgm_text t, size_t pos, const char *open, const char *close)
{
    enum { LONGEST = 120 };
    if (!holds(t, pos, open)) return 0;
    const size_t from = pos + strlen(open);
    for (size_t i = from; i < t.size && i < from + LONGEST; i++) {
        if (holds(t, i, close)) return i + strlen(close) - pos;
        if (t.data[i] == '\n' || t.data[i] == '{' || t.data[i] == '<') return 0;
    }
    return 0;
}

// "%s", "%1$s", "%-5d", "%.2f", "%@"; not the sign of percent.
static size_t format_at(dgm_text t, size_t pos)
{
    const char before = pos ? t.data[pos - 1] : ' ', two = pos > 1 ? t.data[pos - 2] : ' ';
    if (is_plain(before) || (before == ' ' && is_digit(two)) || before == '%') return 0;
    size_t end = pos + 1;
    const char first = char_at(t, end);
    while (is_digit(char_at(t, end)) || (char_at(t, end) && strchr("$-+.#*lhzj", t.data[end]))) end++;
    const char kind = char_at(t, end);
    if (!kind || !strchr("sdifuxXcgGeop@", kind) || is_plain(char_at(t, end + 1))) return 0;
    return first == ' ' ? 0 : end + 1 - pos;
}

static bool is_tag(dgm_text t) // with its brackets
{
    const size_t from = t.data[1] == '/' ? 2 : 1;
    if (!is_ascii_letter(char_at(t, from))) return false;
    for (size_t i = from; i < t.size - 1; i++)
        if ((unsigned char)t.data[i] >= 0x80 && !memchr(t.data, '=', t.size)) return false;
    return true;
}

static size_t placeholder_at(dgm_text t, size_t pos)
{
    const char next = char_at(t, pos + 1);
    size_t n = 0;
    switch (t.data[pos]) {
    case '{':
        n = enclosed(t, pos, "{{", "}}");
        return n ? n : enclosed(t, pos, "{", "}");
    case '$':
        if (next == '{') return enclosed(t, pos, "${", "}");
        if (!is_ascii_letter(next) && next != '_') return 0;
        n = run_of(t, pos + 1, "_");
        return n > 1 ? n + 1 : 0;
    case '%':
        n = next == '(' ? enclosed(t, pos, "%(", ")s") : 0;
        if (next == '(' && !n) n = enclosed(t, pos, "%(", ")d");
        return n ? n : format_at(t, pos);
    case '<':
        n = enclosed(t, pos, "<", ">");
        return n > 2 && is_tag((dgm_text){t.data + pos, n}) ? n : 0;
    case '&':
        n = run_of(t, pos + 1, "#");
        return n > 1 && char_at(t, pos + 1 + n) == ';' ? n + 2 : 0;
    case '[': return enclosed(t, pos, "[[", "]]");
    case '_':
        n = run_of(t, pos, "_");
        return n > 4 && holds(t, pos, "__") && holds(t, pos + n - 2, "__") && next == '_' ? n : 0;
    default: return 0;
    }
}

// ---- addresses and code ------------------------------------------------------------------------

// What stands up to white space or a quote, without the marks of the sentence around it.
static dgm_text token_at(dgm_text t, size_t pos)
{
    size_t end = pos;
    while (end < t.size && (unsigned char)t.data[end] > ' ' && !strchr("\"<>`|", t.data[end])) {
        const bool space = holds(t, end, "\xC2\xA0"), dash_or_quote = holds(t, end, "\xE2\x80");
        if (space || dash_or_quote || holds(t, end, "«") || holds(t, end, "»")) break;
        end++;
    }
    const bool opened = memchr(t.data + pos, '(', end - pos) != NULL;
    while (end > pos && strchr(opened ? ".,;:!?']" : ".,;:!?']})", t.data[end - 1])) end--;
    return (dgm_text){t.data + pos, end - pos};
}

// "name@host.org", at the beginning of a token.
static size_t mail_at(dgm_text t)
{
    const size_t local = run_of(t, 0, "._%+-");
    if (local == 0 || char_at(t, local) != '@' || !is_plain(t.data[0])) return 0;
    size_t host = run_of(t, local + 1, ".-");
    while (host && !is_plain(t.data[local + host])) host--;
    return memchr(t.data + local + 1, '.', host) ? local + 1 + host : 0;
}

// "example.com", "shop.example.de/path": a name of letters, digits and dots that ends in a known domain.
static size_t host_at(dgm_text t)
{
    static const char known[] = " com org net de uk eu io fr edu gov info at ch nl es it pl ru eu tv ";
    const size_t n = run_of(t, 0, ".-");
    size_t dot = n;
    while (dot > 0 && t.data[dot - 1] != '.') dot--;
    char word[8] = " ";
    if (dot < 3 || n - dot < 2 || n - dot > 4 || (n < t.size && t.data[n] != '/')) return 0;
    if (!is_plain(t.data[0]) || !is_plain(t.data[dot - 2]) || is_digit(t.data[dot - 2])) return 0;
    memcpy(word + 1, t.data + dot, n - dot);
    word[1 + n - dot] = ' ';
    return strstr(known, word) ? t.size : 0;
}

static size_t address_at(dgm_text t)
{
    const size_t scheme = run_of(t, 0, "+.-");
    if (scheme && holds(t, scheme, "://") && t.size > scheme + 3) return t.size;
    if ((holds(t, 0, "www.") || holds(t, 0, "mailto:")) && t.size > 8) return t.size;
    if (t.data[0] == '@' && is_ascii_letter(char_at(t, 1))) return 1 + run_of(t, 1, "_");
    const size_t mail = mail_at(t);
    return mail ? mail : host_at(t);
}

// free: nothing stands right before it.
static size_t path_at(dgm_text t, bool free)
{
    if (t.size > 2 && is_ascii_letter(t.data[0]) && t.data[1] == ':' && t.data[2] == '\\') return t.size;
    size_t skip = 0;
    while (skip < 3 && skip < t.size && strchr(".~", t.data[skip])) skip++;
    const bool named = is_plain(char_at(t, skip + 1)) || t.data[0] == '~';
    if (free && char_at(t, skip) == '/' && named && t.size > 2) return t.size;
    size_t slash = t.size;
    while (slash > 0 && t.data[slash - 1] != '/') slash--;
    return dgm_is_file_name((dgm_text){t.data + slash, t.size - slash}) ? t.size : 0;
}

// An identifier: "get_name", "std::move", "p->next", "run()", "--no-protect".
static size_t identifier_at(dgm_text t)
{
    if (holds(t, 0, "--") && is_ascii_letter(char_at(t, 2))) return 2 + run_of(t, 2, "-_");
    size_t end = 0;
    bool inner = false;
    if (!is_ascii_letter(t.data[0]) && t.data[0] != '_') return 0;
    for (;;) {
        end += run_of(t, end, "_");
        const size_t sign = holds(t, end, "::") || holds(t, end, "->") ? 2 : char_at(t, end) == '.' ? 1 : 0;
        if (!sign || !is_ascii_letter(char_at(t, end + sign))) break;
        inner |= sign == 2;
        end += sign;
    }
    for (size_t i = 1; i + 1 < end; i++)
        inner |= t.data[i] == '_' && is_plain(t.data[i - 1]) && is_plain(t.data[i + 1]);
    if (holds(t, end, "()")) return end + 2;
    return inner ? end : 0;
}

static size_t code_at(dgm_text t, bool free)
{
    bool letters = false;
    for (size_t i = 0; i < t.size; i++) letters |= is_ascii_letter(t.data[i]);
    if (letters && dgm_is_hexadecimal(t)) return t.size;
    const size_t path = path_at(t, free);
    return path ? path : identifier_at(t);
}

// ---- names -------------------------------------------------------------------------------------

// Length of the word at pos; *capital: it begins with one, not all of it are; *foreign: some letters are
// not ASCII.
static size_t word_at(dgm_text t, size_t pos, bool *capital, bool *foreign)
{
    size_t end = pos, small = 0;
    *capital = *foreign = false;
    while (end < t.size) {
        uint32_t code;
        const size_t n = dgm_utf8_next(t.data + end, t.size - end, &code);
        const unsigned class = dgm_char_class(code);
        if (!(class & (DGM_CHAR_LETTER | DGM_CHAR_MARK))) break;
        if (end == pos) *capital = (class & DGM_CHAR_UPPER) != 0;
        small += (class & DGM_CHAR_LOWER) != 0;
        *foreign |= code >= 0xC0 && code < 0x250;
        end += n;
    }
    *capital &= small > 0;
    return end - pos;
}

static bool is_among(dgm_text word, const char *words)
{
    const size_t n = word.size;
    for (const char *at = words; *at; at += strcspn(at, " ") + (at[strcspn(at, " ")] != 0))
        if (strcspn(at, " ") == n && memcmp(at, word.data, n) == 0) return true;
    return false;
}

// Where letters beyond ASCII do not say that a word is a name, these do.
static bool is_first_name(dgm_text word)
{
    static const char german[] = "Jürgen Jörg Jörn Günter Günther Björn Sören Rüdiger Götz Käthe Bärbel "
                                 "René André Zoë Lüder Jürg "
                                 "Daniël François José Jesús Raúl Léon Noël Noëlle "
                                 "Chloé Hélène Bjørn Søren Jørgen Änne Gül Özlem";
    return is_among(word, german);
}

// "Präsident", "Staatssekretärin": by how they end.
static bool is_office(dgm_text word)
{
    static const char *const ends[] = {"räsident",  "räsidentin",    "räsidenten", "ürgermeister", "ürgermeisters",
                                       "ürgermeisterin", "führer",   "führers",    "führerin",     "ekretär",
                                       "ekretärs",  "ekretärin",     "rätin",      "nwältin",      "rztin",
                                       "apitän",    "ischöfin",      "räfin",      "önigin",       "ürstin"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(ends[i]);
        if (word.size > n && memcmp(word.data + word.size - n, ends[i], n) == 0) return true;
    }
    return false;
}

// The last word of a text that ends in white space, which is cut before it; empty: there is none.
static dgm_text take_last_word(dgm_text *text)
{
    const dgm_text t = dgm_text_trim(*text);
    size_t from = t.size;
    if (t.size == text->size) return (dgm_text){t.data, 0};
    while (from > 0 && (unsigned char)t.data[from - 1] > ' ') from--;
    *text = (dgm_text){t.data, from};
    return (dgm_text){t.data + from, t.size - from};
}

// Does a title end here, alone or with the office of who has it ("Herr Bürgermeister")?
static bool is_title(dgm_text before)
{
    static const char german[] = "Herr Herrn Frau Dr. Prof. Familie";
    dgm_text word = take_last_word(&before);
    if (is_office(word)) word = take_last_word(&before);
    return word.size && is_among(word, german);
}

// A name and those behind it. In English, words with foreign letters are names; in German those with a
// title before them that are no offices, and some first names.
static size_t name_at(const dgm_protector *p, dgm_text t, size_t pos)
{
    bool capital, foreign;
    size_t n = word_at(t, pos, &capital, &foreign);
    const dgm_text word = {t.data + pos, n};
    if (!capital || !foreign || n < 3) return 0;
    if (p->from == DGM_LANG_DE) {
        if (!is_first_name(word) && (is_office(word) || !is_title((dgm_text){t.data, pos}))) return 0;
    } else if (p->from != DGM_LANG_EN) {
        return 0;
    }
    while (char_at(t, pos + n) == ' ') {
        const size_t more = word_at(t, pos + n + 1, &capital, &foreign);
        if (!capital || more < 2) break;
        n += 1 + more;
    }
    return n;
}

// ---- all of it ---------------------------------------------------------------------------------

static dgm_status add(dgm_protected_list *out, size_t begin, size_t size, int32_t kind, dgm_error *err)
{
    DGM_TRY(dgm_grow(&out->items, &out->cap, out->count + 1, sizeof *out->items, err));
    out->items[out->count++] = (dgm_protected){begin, begin + size, kind};
    return DGM_OK;
}

// Does a token at pos have a sign that plain words have not?
static bool is_odd(dgm_text token)
{
    for (size_t i = 0; i < token.size; i++)
        if (strchr("@:/\\_.()>-0123456789", token.data[i])) return true;
    return false;
}

// What begins at pos, where a word may begin. size 0: nothing.
static dgm_protected thing_at(const dgm_protector *p, dgm_text t, size_t pos)
{
    const char c = t.data[pos];
    dgm_protected found = {pos, pos, DGM_PROTECTED_PLACEHOLDER};
    size_t n = placeholder_at(t, pos), end = 0;
    if (n == 0 && c == '`') {
        const char *close = memchr(t.data + pos + 1, '`', t.size - pos - 1);
        found.kind = DGM_PROTECTED_CODE;
        n = close && close > t.data + pos + 1 ? (size_t)(close - t.data) + 1 - pos : 0;
    }
    if (n == 0) {
        const dgm_text token = token_at(t, pos);
        const bool odd = token.size > 2 && is_odd(token);
        found.kind = DGM_PROTECTED_ADDRESS;
        n = odd ? address_at(token) : 0;
        if (odd && n == 0) {
            found.kind = DGM_PROTECTED_CODE;
            n = code_at(token, pos == 0 || strchr(" (\"'", t.data[pos - 1]));
        }
    }
    if (n == 0) {
        if (dgm_protect_digits(p, t, pos, &found, &end)) return found;
        found = (dgm_protected){pos, pos, DGM_PROTECTED_NAME};
        if (!end) n = name_at(p, t, pos);
    }
    found.end = pos + n;
    return found;
}

// Words of plain letters are passed over: letters up to the next sign that is none.
static size_t skip_plain(dgm_text t, size_t pos)
{
    while (pos < t.size && is_ascii_letter(t.data[pos])) pos++;
    return pos;
}

dgm_status dgm_protect_find(const dgm_protector *p, dgm_text t, dgm_protected_list *out, dgm_error *err)
{
    bool inside = false; // of a word
    out->count = 0;
    for (size_t pos = 0; pos < t.size;) {
        if (!inside) {
            const size_t plain = skip_plain(t, pos);
            if (plain > pos && (plain == t.size || t.data[plain] == ' ')) { // the usual word
                pos = plain + (plain < t.size);
                continue;
            }
            const dgm_protected found = thing_at(p, t, pos);
            if (found.end > found.begin) {
                DGM_TRY(add(out, found.begin, found.end - found.begin, found.kind, err));
                inside = false;
                pos = found.end;
                while (pos < t.size && is_digit(t.data[pos])) pos++;
                continue;
            }
        } else if (strchr("{<$", t.data[pos])) { // placeholders may begin inside a word: "file{n}"
            const size_t n = placeholder_at(t, pos);
            if (n) {
                DGM_TRY(add(out, pos, n, DGM_PROTECTED_PLACEHOLDER, err));
                inside = false;
                pos += n;
                continue;
            }
        }
        uint32_t code;
        pos += dgm_utf8_next(t.data + pos, t.size - pos, &code);
        inside = dgm_char_class(code) & (DGM_CHAR_LETTER | DGM_CHAR_MARK | DGM_CHAR_NUMBER);
    }
    return DGM_OK;
}
