// SPDX-License-Identifier: MIT
// Punctuation in few forms, as sacremoses' MosesPunctNormalizer makes it: substitutions one after the
// other. Most replace one text by another; the few with conditions have functions of their own.
#include <string.h>

#include "text/sacremoses_private.h"
#include "text/unicode.h"

#define NBSP "\xc2\xa0"

typedef struct exchange {
    const char *from, *to; // UTF-8; from NULL: runs of spaces become one
} exchange;

static bool is_any(uint32_t code, const char *set)
{
    return code > 0 && code < 0x80 && strchr(set, (int)code);
}

static size_t read_codes(const char *text, uint32_t *codes)
{
    size_t n = 0;
    for (size_t left = strlen(text), k; left > 0; left -= k, text += k)
        k = dgm_utf8_next(text, left, &codes[n++]);
    return n;
}

static void replace(dgm_rewriting *r, const exchange *x)
{
    enum { LONGEST = 8 };
    uint32_t from[LONGEST], to[LONGEST];
    const size_t size = read_codes(x->from, from), fresh = read_codes(x->to, to);
    const dgm_glyphs *l = r->line;
    size_t first = 0;
    while (first < l->count && l->items[first].code != from[0]) first++;
    if (first == l->count) return;
    for (size_t i = 0; i < l->count;) {
        size_t same = 0;
        while (same < size && i + same < l->count && l->items[i + same].code == from[same]) same++;
        if (same < size) {
            dgm_glyphs_add(&r->spare, l->items[i++]);
            continue;
        }
        for (size_t k = 0; k < fresh; k++)
            dgm_glyphs_put(&r->spare, to[k], &l->items[k < size ? i + k : i + size - 1]);
        i += size;
    }
    dgm_rewriting_end(r, l->count);
}

static void replace_all(dgm_rewriting *r, const exchange *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].from)
            replace(r, &list[i]);
        else
            dgm_rewriting_spaces(r);
}
#define REPLACE_ALL(r, list) replace_all(r, list, sizeof(list) / sizeof *(list))

// The middle one of three is taken out, or replaced, where both neighbours say so. What was one's right
// neighbour is not the next one's left.
typedef bool (*is_code)(uint32_t code);

static void replace_between(dgm_rewriting *r, is_code left, uint32_t middle, is_code right, uint32_t to)
{
    const dgm_glyphs *l = r->line;
    const dgm_glyph *g = l->items;
    size_t i = 0;
    for (; i + 2 < l->count; i++) {
        dgm_glyphs_add(&r->spare, g[i]);
        if (g[i + 1].code != middle || !left(g[i].code) || !right(g[i + 2].code)) continue;
        if (to) dgm_glyphs_put(&r->spare, to, &g[i + 1]);
        dgm_glyphs_add(&r->spare, g[i + 2]);
        i += 2;
    }
    dgm_rewriting_end(r, i);
}

static bool is_bracket(uint32_t code)
{
    return code == ')';
}

static bool is_stop(uint32_t code)
{
    return is_any(code, ".!:?;,");
}

static bool is_percent(uint32_t code)
{
    return code == '%';
}

static bool is_letter(uint32_t code)
{
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
}

// "word", -> "word," as English sets it.
static void quote_behind_comma(dgm_rewriting *r)
{
    const dgm_glyphs *l = r->line;
    for (size_t i = 0; i < l->count;) {
        size_t end = i + 1;
        while (l->items[i].code == '"' && end < l->count && is_any(l->items[end].code, ",.")) end++;
        for (size_t k = i + 1; k < end; k++) dgm_glyphs_add(&r->spare, l->items[k]);
        dgm_glyphs_add(&r->spare, l->items[i]);
        i = end;
    }
    dgm_rewriting_end(r, l->count);
}

// word." more -> word". more, but not at the end of the line or before a tag.
static void quote_before_dots(dgm_rewriting *r)
{
    const dgm_glyphs *l = r->line;
    const dgm_glyph *g = l->items;
    for (size_t i = 0; i < l->count;) {
        size_t dots = i;
        while (dots < l->count && g[dots].code == '.') dots++;
        size_t end = dots + 1;
        while (end < l->count && dgm_char_is_space(g[end].code)) end++;
        const bool quoted = dots > i && dots + 1 < l->count && g[dots].code == '"';
        const bool tag = end >= l->count || g[end].code == '<';
        if (!quoted || (tag && end == dots + 1)) {
            const size_t stop = dots > i ? dots : i + 1;
            while (i < stop) dgm_glyphs_add(&r->spare, g[i++]);
            continue;
        }
        dgm_glyphs_add(&r->spare, g[dots]);
        for (; i < dots; i++) dgm_glyphs_add(&r->spare, g[i]);
        for (i++; i < end + !tag; i++) dgm_glyphs_add(&r->spare, g[i]);
    }
    dgm_rewriting_end(r, l->count);
}

// Full-width punctuation and digits; a full stop gets one space behind it.
static void replace_wide(dgm_rewriting *r)
{
    static const exchange wide[] = {
        {"，", ","},  {"、", ","},  {"”", "\""}, {"“", "\""}, {"∶", ":"}, {"：", ":"}, {"？", "?"},
        {"《", "\""}, {"》", "\""}, {"）", ")"}, {"！", "!"}, {"（", "("}, {"；", ";"}, {"」", "\""},
        {"「", "\""}, {"～", "~"},  {"’", "'"},  {"…", "..."}, {"━", "-"}, {"〈", "<"}, {"〉", ">"},
        {"【", "["},  {"】", "]"},  {"％", "%"},
    };
    const dgm_glyphs *l = r->line;
    for (size_t i = 0; i < l->count;) {
        const dgm_glyph g = l->items[i++];
        if (g.code >= 0xFF10 && g.code <= 0xFF19) {
            dgm_glyphs_put(&r->spare, g.code - 0xFF10 + '0', &g);
        } else if (g.code == 0x3002 || g.code == 0xFF0E) {
            dgm_glyphs_put(&r->spare, '.', &g);
            dgm_glyphs_put(&r->spare, ' ', &g);
            while (i < l->count && dgm_char_is_space(l->items[i].code)) i++;
        } else {
            dgm_glyphs_add(&r->spare, g);
        }
    }
    dgm_rewriting_end(r, l->count);
    REPLACE_ALL(r, wide);
}

static void remove_controls(dgm_rewriting *r)
{
    dgm_glyphs *l = r->line;
    size_t to = 0;
    for (size_t i = 0; i < l->count; i++)
        if (!(dgm_char_class(l->items[i].code) & DGM_CHAR_CONTROL)) l->items[to++] = l->items[i];
    l->count = to;
}

static void replace_quotes(dgm_rewriting *r)
{
    static const exchange before[] = {
        {"`", "'"},   {"''", " \" "}, {"„", "\""}, {"“", "\""}, {"”", "\""},
        {"–", "-"},   {"—", " - "},   {NULL, NULL}, {"´", "'"},
    };
    static const exchange behind[] = {
        {"‘", "'"},   {"‚", "'"},     {"’", "'"},  {"''", "\""}, {"´´", "\""}, {"…", "..."},
        {NBSP "«" NBSP, "\""}, {"«" NBSP, "\""}, {"«", "\""},
        {NBSP "»" NBSP, "\""}, {NBSP "»", "\""}, {"»", "\""},
        {NBSP "%", "%"},       {"nº" NBSP, "nº "}, {NBSP ":", ":"}, {NBSP "ºC", " ºC"},
        {NBSP "cm", " cm"},    {NBSP "?", "?"},  {NBSP "!", "!"},  {NBSP ";", ";"},
        {"," NBSP, ", "},      {NULL, NULL},
    };
    REPLACE_ALL(r, before);
    replace_between(r, is_letter, 0x2018, is_letter, '\'');
    replace_between(r, is_letter, 0x2019, is_letter, '\'');
    REPLACE_ALL(r, behind);
}

static bool is_one_of(const char *code, const char *const *list)
{
    while (*list && strcmp(*list, code) != 0) list++;
    return *list != NULL;
}

void dgm_moses_punctuation(const dgm_moses_rules *rules, dgm_rewriting *r)
{
    static const exchange brackets[] = {{"\r", ""}, {"(", " ("}, {")", ") "}, {NULL, NULL}};
    static const exchange spaces[] = {{"( ", "("}, {" )", ")"}};
    static const exchange colons[] = {{" :", ":"}, {" ;", ";"}};
    static const exchange comma = {",\"", "\","};
    static const char *const quotes[] = {"de", "es", "fr", NULL};
    static const char *const commas[] = {"de", "es", "cs", "fr", NULL};
    if (rules->options & DGM_MOSES_UNICODE) replace_wide(r);
    REPLACE_ALL(r, brackets);
    replace_between(r, is_bracket, ' ', is_stop, 0);
    REPLACE_ALL(r, spaces);
    replace_between(r, dgm_char_is_digit, ' ', is_percent, 0);
    REPLACE_ALL(r, colons);
    replace_quotes(r);
    if (strcmp(rules->code, "en") == 0) quote_behind_comma(r);
    if (is_one_of(rules->code, quotes)) {
        replace(r, &comma);
        quote_before_dots(r);
    }
    replace_between(r, dgm_char_is_digit, 0xA0, dgm_char_is_digit,
                    is_one_of(rules->code, commas) ? ',' : '.');
    if (rules->options & DGM_MOSES_UNICODE) remove_controls(r);
    dgm_rewriting_trim(r);
}
