// SPDX-License-Identifier: MIT
// See titles.h. A word is told from a name by the vocabulary, which was made from text in ordinary case: it has
// "visit" as a subword of its own, but no "merkel". Sums over several subwords say little ("face", "book"); but
// endings are taken off. What is left with its capital is no worse than before.
#include "text/titles.h"

#include <string.h>

#include "base/mem.h"
#include "text/sentence_words.h"

// Words that headlines write without a capital.
static const char *const function_words[] = {
    [DGM_LANG_EN] = " a an the and or but nor so yet as at by for from in into of off on onto out over per "
                    "to up upon via vs v with without than about after against amid among around before behind "
                    "between during since through toward towards under until within ",
    [DGM_LANG_DE] = " der die das den dem des ein eine einen einem einer eines und oder aber von vom zu zum zur in im "
                    "auf an am aus bei beim mit für nach über unter vor um durch gegen ohne wie als ist sind ",
    [DGM_LANG_FR] = " le la les un une des du de et ou mais à au aux en dans sur sous par pour avec sans chez ",
    [DGM_LANG_ES] = " el la los las un una unos unas y o pero de del a al en con sin por para sobre entre ",
    [DGM_LANG_IT] = " il lo la i gli le un una uno e o ma di del della dei delle a al alla in nel nella con su sul "
                    "sulla per tra fra ",
};

// Parts of names before a name ("New York", "Will Smith"), and behind one ("Gordon Brown").
static const char before_names[] = " New North South East West Northern Southern Eastern Western Great Saint Fort "
                                   "Mount Lake Cape Port United Prince Princess Queen King President Lady Sir "
                                   "Will Bill Mark Rose Grace Jack Frank Black White Red Real ";
static const char forms_of_address[] = " Mr Mrs Ms Miss Dr Prof Sir Lady Lord Saint St "; // a name follows
static const char behind_names[] = " Bush Brown White Black Green King Rose Cook Jobs Gates Woods Young Rice Page "
                                   "Stone Ford Bell Banks Wood Hill Lake May Street Park University City ";

// Names that are made of ordinary words.
static const char *const known_names[] = {
    "White House",  "Supreme Court",  "Wall Street",    "World Wide Web",   "World Cup",       "World Bank",
    "World War",    "World Health",   "Daily Mail",     "Nobel Prize",      "Black Sea",       "Red Cross",
    "Middle East",  "Premier League", "Super Bowl",     "Security Council", "Red Sea",         "Dead Sea",
    "Big Ben",      "Champions League", "Foreign Office", "Home Office",    "European Union",  "Green Party",
    "Labour Party", "Nobel Peace Prize", "Star Wars",   "Financial Times",  "New York Times",  "New Year",
};

enum { LONGEST = 64, WORDS_MAX = 64 }; // bytes of a word, words of a headline

typedef struct word {
    size_t begin, end;
    bool capital; // its first letter
    bool small;   // it has a lower-case letter
    bool mixed;   // a capital behind the first letter
    bool quoted;  // inside quotation marks
    bool follows; // a word, with nothing but white space between them
} word;

static bool is_letter(uint32_t code)
{
    return dgm_char_class(code) & (DGM_CHAR_LETTER | DGM_CHAR_MARK);
}

static bool is_apostrophe(uint32_t code)
{
    return code == '\'' || code == 0x2019;
}

// The word at or behind *pos; letters, with apostrophes between them. False at the end.
static bool next_word(dgm_text t, size_t *pos, word *w)
{
    uint32_t code;
    size_t n = 0, at = *pos;
    bool plain = at > 0; // only white space so far
    for (; at < t.size; at += n) {
        n = dgm_utf8_next(t.data + at, t.size - at, &code);
        if (is_letter(code)) break;
        plain &= dgm_char_is_space(code);
    }
    if (at >= t.size) return false;
    *w = (word){.begin = at, .follows = plain};
    for (; at < t.size; at += n) {
        n = dgm_utf8_next(t.data + at, t.size - at, &code);
        if (is_apostrophe(code)) {
            uint32_t after = 0;
            if (at + n < t.size) dgm_utf8_next(t.data + at + n, t.size - at - n, &after);
            if (!is_letter(after)) break;
        } else if (!is_letter(code)) {
            break;
        }
        const unsigned class = dgm_char_class(code);
        if (at == w->begin) w->capital = class & DGM_CHAR_UPPER;
        else w->mixed |= (class & DGM_CHAR_UPPER) != 0;
        w->small |= (class & DGM_CHAR_LOWER) != 0;
    }
    *pos = w->end = at;
    return true;
}

// Writes the word with its first letter in lower case; false where it is too long, or would change its length.
static bool write_small(dgm_text text, char *out)
{
    uint32_t code;
    if (text.size > LONGEST) return false;
    const size_t n = dgm_utf8_next(text.data, text.size, &code);
    char bytes[4];
    if (dgm_utf8_put(dgm_char_lower(code), bytes) != n) return false;
    memcpy(out, text.data, text.size);
    memcpy(out, bytes, n);
    return true;
}

static bool is_function_word(dgm_language lang, dgm_text text)
{
    char small[LONGEST];
    return write_small(text, small) && dgm_in_words(function_words[lang], (dgm_text){small, text.size});
}

bool dgm_is_title(dgm_text text, dgm_language lang)
{
    enum { WORDS = 3, CAPITALS = 2 };
    if ((size_t)lang >= sizeof function_words / sizeof *function_words || !function_words[lang]) return false;
    size_t pos = 0, words = 0, capitals = 0, functions = 0;
    for (word w; next_word(text, &pos, &w); words++) {
        const bool function = is_function_word(lang, (dgm_text){text.data + w.begin, w.end - w.begin});
        if (!w.capital && !(lang == DGM_LANG_EN && function && words > 0)) return false;
        if (words > 0 && w.capital && w.small) capitals++;
        if (words > 0 && function && w.follows) functions++;
    }
    return words >= WORDS && capitals >= CAPITALS && (lang == DGM_LANG_EN || functions > 0);
}

// The subword that is this word, or -1.
static int32_t subword_of(const dgm_vocab *v, const char *text, size_t size)
{
    char spelling[3 + LONGEST + 1] = "\xe2\x96\x81";
    if (size > LONGEST) return -1;
    memcpy(spelling + 3, text, size);
    return dgm_vocab_id(v, (dgm_text){spelling, 3 + size});
}

// Is it a word of the vocabulary with an English ending, as "visits" or "planning"?
static bool is_inflected(const dgm_vocab *v, const char *text, size_t size)
{
    static const char *const endings[] = {"s", "es", "ed", "d", "ing", "er", "ers", "or", "ors", "ly", "'s",
                                          "ment", "ments", "ion", "ions", "ation", "ity", "ness", "less", "ful",
                                          "able", "al", "ally", "ist", "ists", "r", "rs"};
    enum { SHORTEST = 3 };
    char stem[LONGEST + 2];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t n = strlen(endings[i]);
        if (size > LONGEST || size < n + SHORTEST || memcmp(text + size - n, endings[i], n) != 0) continue;
        const size_t left = size - n;
        memcpy(stem, text, left);
        if (subword_of(v, stem, left) >= 0) return true;
        if (stem[left - 1] == stem[left - 2] && left > SHORTEST && subword_of(v, stem, left - 1) >= 0)
            return true; // "planning"
        if (stem[left - 1] == 'i') { // "studies", "easily"
            stem[left - 1] = 'y';
            if (subword_of(v, stem, left) >= 0) return true;
        }
        memcpy(stem, text, left);
        stem[left] = 'e'; // "saving"
        if (strchr("aeiour", endings[i][0]) && subword_of(v, stem, left + 1) >= 0) return true;
    }
    return false;
}

// Is it a word in lower case (text: as it stands, small: in lower case), and not more usual with a capital?
static bool is_ordinary(const dgm_vocab *v, dgm_language lang, dgm_text text, const char *small)
{
    const float margin = 0.3f;
    const int32_t name = subword_of(v, text.data, text.size), own = subword_of(v, small, text.size);
    if (own >= 0) return name < 0 || dgm_vocab_score(v, own) >= dgm_vocab_score(v, name) - margin;
    return name < 0 && lang == DGM_LANG_EN && is_inflected(v, small, text.size);
}

static bool in_known_name(dgm_text text, const word *w)
{
    for (size_t i = 0; i < sizeof known_names / sizeof *known_names; i++) {
        const size_t n = strlen(known_names[i]);
        const size_t from = w->end > n ? w->end - n : 0;
        for (size_t at = from; at <= w->begin && at + n <= text.size; at++)
            if (memcmp(text.data + at, known_names[i], n) == 0) return true;
    }
    return false;
}

static bool is_quote(uint32_t code)
{
    return code == '"' || (code >= 0x201C && code <= 0x201F) || code == 0xAB || code == 0xBB;
}

static void mark_quoted(dgm_text text, word *words, size_t count)
{
    bool inside = false;
    size_t i = 0;
    for (size_t pos = 0; pos < text.size && i < count;) {
        uint32_t code;
        if (pos >= words[i].begin) words[i++].quoted = inside;
        pos += dgm_utf8_next(text.data + pos, text.size - pos, &code);
        inside ^= is_quote(code);
    }
}

// Lowers what is ordinary. Words in quotation marks may be a title themselves ("West Side Story"): false where
// nothing outside of them was lowered.
static bool lower_words(const dgm_vocab *v, dgm_language lang, dgm_text text, const word *words, size_t count,
                        char *out)
{
    bool names[WORDS_MAX + 1] = {false}, outside = false;
    for (size_t i = 0; i < count; i++) {
        const dgm_text t = {text.data + words[i].begin, words[i].end - words[i].begin};
        char small[LONGEST];
        names[i] = words[i].capital && (!words[i].small || words[i].mixed || !write_small(t, small) ||
                                        in_known_name(text, &words[i]) ||
                                        (!is_function_word(lang, t) && !is_ordinary(v, lang, t, small)));
    }
    for (size_t i = 1; i < count; i++) {
        const word *w = &words[i];
        const dgm_text t = {text.data + w->begin, w->end - w->begin};
        const dgm_text before = {text.data + w[-1].begin, w[-1].end - w[-1].begin};
        const bool joined = i + 1 < count && words[i + 1].follows;
        if (!w->capital || names[i]) continue;
        if (joined && names[i + 1] && dgm_in_words(before_names, t)) continue;
        if (w->follows && names[i - 1] && dgm_in_words(behind_names, t)) continue;
        if (dgm_in_words(forms_of_address, before)) continue;
        if (write_small(t, out + w->begin)) outside |= !w->quoted;
    }
    return outside;
}

dgm_status dgm_titles_lower(const dgm_vocab *v, dgm_text text, dgm_language lang, dgm_writer *out,
                             bool *lowered, dgm_error *err)
{
    word words[WORDS_MAX];
    size_t count = 0, pos = 0;
    const size_t start = out->size;
    *lowered = false;
    if (dgm_vocab_get_kind(v) != DGM_VOCAB_SENTENCEPIECE || !dgm_is_title(text, lang)) return DGM_OK;
    for (word w; next_word(text, &pos, &w); words[count++] = w)
        if (count == WORDS_MAX) return DGM_OK;
    mark_quoted(text, words, count);
    dgm_write_bytes(out, text.data, text.size);
    if (out->failed) return dgm_no_memory(err);
    *lowered = lower_words(v, lang, text, words, count, (char *)out->data + start);
    if (!*lowered) out->size = start;
    return DGM_OK;
}

void dgm_titles_raise(char *text, size_t size)
{
    const dgm_text t = {text, size};
    size_t pos = 0;
    bool first = true;
    for (word w; next_word(t, &pos, &w); first = false) {
        uint32_t code;
        char bytes[4];
        const size_t n = dgm_utf8_next(text + w.begin, size - w.begin, &code);
        if (!first && dgm_in_words(function_words[DGM_LANG_EN], (dgm_text){text + w.begin, w.end - w.begin})) continue;
        if (dgm_utf8_put(dgm_char_upper(code), bytes) == n) memcpy(text + w.begin, bytes, n);
    }
}
