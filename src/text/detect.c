// SPDX-License-Identifier: MIT
// See detect.h.
#include "text/detect.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/cld2_shim.h"
#include "text/language_points_private.h"

enum {
    READ = 4096, // bytes of a text, enough for anybody
    LONGEST_WORD = 64,
};

// ---- points ------------------------------------------------------------------------------------

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : 63;
}

// Byte `at` of what points_text says in base 64.
static int point_at(size_t at)
{
    const char *four = points_text + at / 3 * 4;
    const unsigned bits = (unsigned)digit_of(four[0]) << 18 | (unsigned)digit_of(four[1]) << 12 |
                          (unsigned)(four[2] == '=' ? 0 : digit_of(four[2])) << 6 |
                          (unsigned)(four[3] == '=' ? 0 : digit_of(four[3]));
    return (int8_t)(uint8_t)(bits >> (16 - 8 * (at % 3)));
}

static void add_feature(const char *bytes, size_t size, int sums[POINT_LANGUAGES])
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ (uint8_t)bytes[i]) * 16777619u;
    const size_t bucket = (hash ^ hash >> 15) % POINT_BUCKETS;
    for (size_t k = 0; k < POINT_LANGUAGES; k++) sums[k] += point_at(bucket * POINT_LANGUAGES + k);
}

// A word in lower case between two spaces, and where its characters begin.
typedef struct padded {
    char bytes[4 * (LONGEST_WORD + 2)];
    size_t starts[LONGEST_WORD + 3];
    size_t count; // characters
} padded;

static void put(padded *w, uint32_t code)
{
    const size_t at = w->starts[w->count];
    w->starts[++w->count] = at + dgm_utf8_put(code, w->bytes + at);
}

// n-grams of one to five characters, and the whole word where it is longer.
static void add_word(padded *w, int sums[POINT_LANGUAGES])
{
    put(w, ' ');
    for (size_t n = 1; n <= POINT_LONGEST; n++)
        for (size_t i = 0; i + n <= w->count; i++) {
            const size_t begin = w->starts[i], end = w->starts[i + n];
            if (n > 1 || w->bytes[begin] != ' ') add_feature(w->bytes + begin, end - begin, sums);
        }
    if (w->count > POINT_LONGEST) add_feature(w->bytes, w->starts[w->count], sums);
    w->count = 0;
}

typedef struct letters {
    size_t all, latin, words;
    bool greets; // a word of everyday talk is among them
    int sums[POINT_LANGUAGES];
} letters;

// Words of talk, which newspapers hardly have and points therefore do not know. Those of two of the five are left out.
static void add_greeting(const padded *w, letters *out)
{
    static const struct {
        const char *word;
        char code[3];
    } talk[] = {{"hello", "en"},     {"hi", "en"},     {"hey", "en"},     {"bye", "en"},    {"yes", "en"},
                {"ok", "en"},        {"sorry", "en"},  {"thanks", "en"},  {"please", "en"}, {"hallo", "de"},
                {"ja", "de"},        {"nein", "de"},   {"danke", "de"},   {"bitte", "de"},  {"tsch\xc3\xbcss", "de"},
                {"bonjour", "fr"},   {"salut", "fr"},  {"oui", "fr"},     {"merci", "fr"},  {"hola", "es"},
                {"s\xc3\xad", "es"}, {"gracias", "es"}, {"adi\xc3\xb3s", "es"}, {"ciao", "it"}, {"grazie", "it"},
                {"s\xc3\xac", "it"}};
    const size_t size = w->starts[w->count] - 1; // behind the space before it
    for (size_t i = 0; i < sizeof talk / sizeof *talk; i++) {
        if (strlen(talk[i].word) != size || memcmp(talk[i].word, w->bytes + 1, size) != 0) continue;
        for (int k = 0; k < POINT_LANGUAGES; k++)
            if (strcmp(point_languages[k], talk[i].code) == 0) out->sums[k] += (int)(4 / point_scale);
        out->greets = true;
    }
}

static void end_word(padded *word, letters *out)
{
    if (!word->count) return;
    add_greeting(word, out);
    add_word(word, out->sums);
    out->words++;
}

static bool is_latin(uint32_t code)
{
    return code < 0x250 || (code >= 0x1E00 && code < 0x1F00);
}

static void read_letters(dgm_text text, letters *out)
{
    padded word = {.count = 0};
    bool capital = false; // the word's first letter, and no other so far
    *out = (letters){0};
    for (size_t i = 0, n; i < text.size; i += n) {
        uint32_t code;
        n = dgm_utf8_next(text.data + i, text.size - i, &code);
        const unsigned class = dgm_char_class(code);
        if (!(class & (DGM_CHAR_LETTER | DGM_CHAR_MARK))) {
            end_word(&word, out);
            continue;
        }
        out->all++;
        out->latin += is_latin(code);
        if (word.count == 0) {
            put(&word, ' ');
            capital = out->words > 0 && class & DGM_CHAR_UPPER;
        } else if (capital && word.count == 2) {
            if (!(class & DGM_CHAR_UPPER)) add_feature("^", 1, out->sums);
            capital = false;
        }
        if (word.count <= LONGEST_WORD) put(&word, dgm_char_lower(code));
    }
    end_word(&word, out);
}

// Probabilities of the five languages.
static void weigh(const int *sums, float *p)
{
    double total = 0, best = sums[0];
    for (int k = 1; k < POINT_LANGUAGES; k++) best = fmax(best, sums[k]);
    for (int k = 0; k < POINT_LANGUAGES; k++) total += exp((double)point_scale * (sums[k] - best));
    for (int k = 0; k < POINT_LANGUAGES; k++) p[k] = (float)(exp((double)point_scale * (sums[k] - best)) / total);
}

// ---- names of languages ------------------------------------------------------------------------

// CLD2 has some codes of its own time.
static const char *modern(const char *code)
{
    static const char *const old[][2] = {{"iw", "he"}, {"jw", "jv"}, {"in", "id"}, {"ji", "yi"}, {"mo", "ro"}};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (strcmp(code, old[i][0]) == 0) return old[i][1];
    return code;
}

static bool same_language(const char *a, const char *b)
{
    const size_t n = strcspn(a, "-_"), m = strcspn(b, "-_");
    const bool norse = strncmp(a, "no", n) == 0 && m == 2 && (strncmp(b, "nb", 2) == 0 || strncmp(b, "nn", 2) == 0);
    return (n == m && strncmp(a, b, n) == 0) || (n == 2 && norse);
}

static int five_of(const char *code)
{
    for (int k = 0; k < POINT_LANGUAGES; k++)
        if (same_language(code, point_languages[k])) return k;
    return -1;
}

static bool all_of_five(const char *const *among, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (five_of(among[i]) < 0) return false;
    return count > 0;
}

static bool holds(const char *const *among, size_t count, const char *code)
{
    for (size_t i = 0; i < count; i++)
        if (same_language(code, among[i])) return true;
    return false;
}

// ---- both --------------------------------------------------------------------------------------

static size_t count_words(dgm_text text, const char *const *list)
{
    size_t found = 0;
    for (size_t i = 0, n; i < text.size; i += n + 1) {
        for (n = 0; i + n < text.size && text.data[i + n] != ' ';) n++;
        for (const char *const *w = list; *w; w++) {
            const bool same = strlen(*w) == n && memcmp(*w + 1, text.data + i + 1, n - 1) == 0;
            found += same && ((*w)[0] | 0x20) == (text.data[i] | 0x20);
        }
    }
    return found;
}

// CLD2 takes every thirtieth Spanish line for Galician or Portuguese. Their small words differ.
static bool is_spanish(dgm_text text, const char *code, const float *p)
{
    static const char *const spanish[] = {"el",   "los", "las",   "y",  "una", "del", "fue",
                                          "pero", "muy", "hasta", "es", "ha",  NULL};
    static const char *const others[] = {"unha", "os",   "do",   "da",  "dos", "das", "ao", "aos",
                                         "e",    "ou",   "non",  "foi", "o",   "coa", "um", "uma",
                                         "pola", "polo", "\xc3\xa9", "\xc3\xa0", "na", "nas", NULL};
    if (!same_language(code, "gl") && !same_language(code, "pt")) return false;
    return p[five_of("es")] > 0.99f && count_words(text, spanish) > 2 * count_words(text, others);
}

typedef struct candidates {
    dgm_language_candidate *items;
    size_t count;
    const char *const *among;
    size_t among_count;
} candidates;

static void add_candidate(candidates *g, const char *code, float confidence)
{
    const char *name = code;
    size_t at = 0;
    if (g->among_count && !holds(g->among, g->among_count, code)) return;
    for (size_t i = 0; i < g->among_count; i++)
        if (same_language(code, g->among[i])) {
            name = g->among[i];
            break;
        }
    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->items[i].code, name) == 0) return;
    while (at < g->count && g->items[at].confidence >= confidence) at++;
    if (at == DGM_DETECT_MOST) return;
    if (g->count == DGM_DETECT_MOST) g->count--;
    memmove(&g->items[at + 1], &g->items[at], (g->count - at) * sizeof *g->items);
    g->items[at].confidence = confidence;
    snprintf(g->items[at].code, sizeof g->items[at].code, "%s", name);
    g->count++;
}

// The points' candidates share what the others leave.
static void add_points(candidates *g, const float *p, float share)
{
    for (int k = 0; k < POINT_LANGUAGES; k++)
        if (p[k] >= 1e-4f || g->among_count) add_candidate(g, point_languages[k], share * p[k]);
}

static void add_cld2(candidates *g, const dgm_cld2_candidate *found, int count, float share)
{
    for (int i = 0; i < count; i++) add_candidate(g, modern(found[i].code), share * 0.01f * (float)found[i].percent);
}

// Do the points decide, and not the first of CLD2's?
static bool points_decide(const candidates *g, dgm_text text, const letters *l, const float *p,
                          const dgm_cld2_candidate *first, bool reliable)
{
    const char *code = first ? modern(first->code) : NULL;
    float most = 0;
    for (int k = 0; k < POINT_LANGUAGES; k++) most = p[k] > most ? p[k] : most;
    if (!code || five_of(code) >= 0 || all_of_five(g->among, g->among_count)) return true;
    if (g->among_count) return !holds(g->among, g->among_count, code);
    return reliable ? is_spanish(text, code, p) : most >= 0.99f || (l->greets && l->words < 3);
}

size_t dgm_detect_language(dgm_text text, const char *const *among, size_t among_count, dgm_language_candidate *out)
{
    candidates g = {out, 0, among, among ? among_count : 0};
    letters l;
    if (text.size > READ) {
        text.size = READ;
        while (text.size && ((unsigned char)text.data[text.size] & 0xC0) == 0x80) text.size--;
    }
    read_letters(text, &l);
    if (l.all == 0) return 0;
    dgm_cld2_candidate found[DGM_CLD2_MOST];
    bool reliable, sure;
    int count = dgm_cld2(text.data, text.size, false, found, &reliable);
    sure = reliable && count > 0;
    if (!sure) count = dgm_cld2(text.data, text.size, true, found, &reliable);
    if (2 * l.latin <= l.all) { // the five are written in Latin letters
        add_cld2(&g, found, count, sure ? 0.95f : 0.5f);
        return g.count;
    }
    float p[POINT_LANGUAGES];
    weigh(l.sums, p);
    if (points_decide(&g, text, &l, p, count ? found : NULL, sure)) {
        add_points(&g, p, 1.0f);
        add_cld2(&g, found, count, 0.05f);
    } else {
        add_cld2(&g, found, count, sure ? 0.95f : 0.5f);
        add_points(&g, p, sure ? 0.05f : 0.4f);
    }
    return g.count;
}
