// SPDX-License-Identifier: MIT
// The tokeniser of sacremoses.h. (sacremoses_undo.c goes the other way.)
//
// Moses' script is a row of substitutions; what one of them has consumed the same one does not see
// again, and texts with apostrophes and commas in a row show it. So the substitutions are made one
// after the other here too, each in one pass over the line:
//
//   1  white space to single spaces, control characters out
//   2  spaces around everything but letters, digits and . ' ` , -
//   3  hyphens between letters or digits (aggressive)
//   4  runs of dots become one character, DOTS + their number
//   5  commas that do not stand between numbers
//   6  apostrophes, by language
//   7  dots at the end of words that are no abbreviations
#include "text/sacremoses.h"

#include <string.h>

#include "base/mem.h"
#include "text/sacremoses_private.h"
#include "text/tokenize.h"
#include "text/unicode.h"

enum { DOTS = 0x110000 }; // beyond Unicode: no text has it

static void put(dgm_rewriting *r, uint32_t code, const dgm_glyph *where)
{
    dgm_glyphs_put(&r->spare, code, where);
}

static void put_apart(dgm_rewriting *r, const dgm_glyph *g)
{
    put(r, ' ', g);
    dgm_glyphs_add(&r->spare, *g);
    put(r, ' ', g);
}

// ---- the passes -----------------------------------------------------------------------------

static void clean(dgm_rewriting *r)
{
    const dgm_glyphs *l = r->line;
    bool space = false;
    for (size_t i = 0; i < l->count; i++) {
        const uint32_t c = l->items[i].code;
        const bool blank = dgm_char_is_space(c);
        if (blank && !space) put(r, ' ', &l->items[i]);
        if (!blank && c >= 32) dgm_glyphs_add(&r->spare, l->items[i]);
        space = blank;
    }
    dgm_rewriting_end(r, l->count);
    dgm_rewriting_trim(r);
}

static void separate_symbols(const dgm_moses_rules *rules, dgm_rewriting *r)
{
    const dgm_glyphs *l = r->line;
    for (size_t i = 0; i < l->count; i++) {
        const uint32_t c = l->items[i].code;
        const bool stays = c == ' ' || c == '.' || c == '\'' || c == '`' || c == ',' || c == '-' ||
                           c >= DOTS || dgm_moses_alnum(rules, c);
        if (stays)
            dgm_glyphs_add(&r->spare, l->items[i]);
        else
            put_apart(r, &l->items[i]);
    }
    dgm_rewriting_end(r, l->count);
}

static void split_hyphens(const dgm_moses_rules *rules, dgm_rewriting *r)
{
    const dgm_glyphs *l = r->line;
    const dgm_glyph *g = l->items;
    for (size_t i = 0; i < l->count; i++) {
        dgm_glyphs_add(&r->spare, g[i]);
        if (i + 2 >= l->count || g[i + 1].code != '-' || !dgm_moses_alnum(rules, g[i].code) ||
            !dgm_moses_alnum(rules, g[i + 2].code))
            continue;
        i++;
        for (const char *s = " @-@ "; *s; s++) put(r, (uint32_t)*s, &g[i]);
    }
    dgm_rewriting_end(r, l->count);
}

static void gather_dots(dgm_rewriting *r)
{
    const dgm_glyphs *l = r->line;
    for (size_t i = 0; i < l->count;) {
        size_t end = i;
        while (end < l->count && l->items[end].code == '.') end++;
        if (end - i < 2) {
            dgm_glyphs_add(&r->spare, l->items[i++]);
            continue;
        }
        put(r, ' ', &l->items[i]);
        dgm_glyphs_add(&r->spare, (dgm_glyph){(uint32_t)(DOTS + (end - i)), l->items[i].begin,
                                              l->items[end - 1].end});
        if (end < l->count) put(r, ' ', &l->items[end - 1]);
        i = end;
    }
    dgm_rewriting_end(r, l->count);
}

static void split_commas(dgm_rewriting *r)
{
    const dgm_glyphs *l = r->line;
    size_t i = 0;
    for (; i + 1 < l->count; i++) { // (no number), -> with spaces
        dgm_glyphs_add(&r->spare, l->items[i]);
        if (l->items[i + 1].code == ',' && !dgm_moses_number(l->items[i].code))
            put_apart(r, &l->items[++i]);
    }
    dgm_rewriting_end(r, i);
    for (i = 0; i + 1 < l->count; i++) { // ,(no number)
        if (l->items[i].code != ',' || dgm_moses_number(l->items[i + 1].code)) {
            dgm_glyphs_add(&r->spare, l->items[i]);
            continue;
        }
        put_apart(r, &l->items[i]);
        dgm_glyphs_add(&r->spare, l->items[++i]);
    }
    dgm_rewriting_end(r, i);
    const size_t n = l->count;
    if (n < 2 || l->items[n - 1].code != ',' || !dgm_moses_number(l->items[n - 2].code)) return;
    const dgm_glyph comma = l->items[--r->line->count]; // a number, at the end of the line
    dgm_glyphs_put(r->line, ' ', &comma);
    dgm_glyphs_add(r->line, comma);
}

// ---- apostrophes ----------------------------------------------------------------------------

enum { ALPHA = 1, NUMBER = 2, LETTER_S = 4 };

// One substitution: an apostrophe whose left neighbour is (or is not) one of `left`, and so on, gets
// spaces before and behind it.
typedef struct apostrophe {
    unsigned char left, right;
    bool left_is, right_is, before, behind;
} apostrophe;

static bool is_of(const dgm_moses_rules *rules, uint32_t code, unsigned kinds)
{
    return ((kinds & ALPHA) && dgm_moses_alpha(rules, code)) ||
           ((kinds & NUMBER) && dgm_moses_number(code)) || ((kinds & LETTER_S) && code == 's');
}

static void place_apostrophes(const dgm_moses_rules *rules, const apostrophe *a, dgm_rewriting *r)
{
    const dgm_glyphs *l = r->line;
    const dgm_glyph *g = l->items;
    size_t i = 0;
    for (; i + 2 < l->count; i++) {
        dgm_glyphs_add(&r->spare, g[i]);
        if (g[i + 1].code != '\'' || is_of(rules, g[i].code, a->left) != a->left_is ||
            is_of(rules, g[i + 2].code, a->right) != a->right_is)
            continue;
        if (a->before) put(r, ' ', &g[i + 1]);
        dgm_glyphs_add(&r->spare, g[i + 1]);
        if (a->behind) put(r, ' ', &g[i + 1]);
        dgm_glyphs_add(&r->spare, g[i + 2]);
        i += 2;
    }
    dgm_rewriting_end(r, i);
}

static void split_apostrophes(const dgm_moses_rules *rules, dgm_rewriting *r)
{
    static const apostrophe english[] = {
        {ALPHA, ALPHA, false, false, true, true},
        {ALPHA | NUMBER, ALPHA, false, true, true, true},
        {ALPHA, ALPHA, true, false, true, true},
        {ALPHA, ALPHA, true, true, true, false},     // John 's
        {NUMBER, LETTER_S, true, true, true, false}, // the 1980 's
    };
    static const apostrophe french[] = {
        {ALPHA, ALPHA, false, false, true, true},
        {ALPHA, ALPHA, false, true, true, true},
        {ALPHA, ALPHA, true, false, true, true},
        {ALPHA, ALPHA, true, true, false, true}, // l' eau
    };
    const dgm_glyphs *l = r->line;
    if (strcmp(rules->code, "en") == 0) {
        for (size_t i = 0; i < sizeof english / sizeof *english; i++)
            place_apostrophes(rules, &english[i], r);
    } else if (strcmp(rules->code, "fr") == 0 || strcmp(rules->code, "it") == 0) {
        for (size_t i = 0; i < sizeof french / sizeof *french; i++)
            place_apostrophes(rules, &french[i], r);
    } else {
        for (size_t i = 0; i < l->count; i++)
            if (l->items[i].code == '\'')
                put_apart(r, &l->items[i]);
            else
                dgm_glyphs_add(&r->spare, l->items[i]);
        dgm_rewriting_end(r, l->count);
    }
}

// ---- dots -----------------------------------------------------------------------------------

static dgm_moses_prefix find_prefix(const dgm_moses_rules *rules, const dgm_glyph *word,
                                    size_t count)
{
    char bytes[64];
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        if (size + 4 > sizeof bytes || word[i].code >= DOTS) return DGM_MOSES_WORD;
        size += dgm_utf8_put(word[i].code, bytes + size);
    }
    return dgm_moses_find_prefix(rules, (dgm_text){bytes, size});
}

// Does the dot behind g[begin .. end) belong to it? next: the first character of the next token, or NULL.
static bool keeps_dot(const dgm_moses_rules *rules, const dgm_glyph *g, size_t begin, size_t end,
                      const dgm_glyph *next)
{
    bool dot = false, alpha = false;
    for (size_t i = begin; i < end; i++) {
        dot |= g[i].code == '.';
        alpha |= dgm_moses_alpha(rules, g[i].code);
    }
    if (dot && alpha) return true;
    const dgm_moses_prefix prefix = find_prefix(rules, g + begin, end - begin);
    if (prefix == DGM_MOSES_ABBREVIATION || (next && dgm_moses_lower(next->code))) return true;
    return prefix == DGM_MOSES_BEFORE_NUMBER && next && next->code >= '0' && next->code <= '9';
}

static void split_dots(const dgm_moses_rules *rules, dgm_rewriting *r)
{
    const dgm_glyphs *l = r->line;
    const dgm_glyph *g = l->items;
    for (size_t i = 0; i < l->count;) {
        size_t end = i, next;
        while (end < l->count && g[end].code != ' ') end++;
        for (next = end; next < l->count && g[next].code == ' ';) next++;
        const bool ends_in_dot = end > i + 1 && g[end - 1].code == '.';
        const bool apart =
            ends_in_dot && !keeps_dot(rules, g, i, end - 1, next < l->count ? &g[next] : NULL);
        for (size_t k = i; k < end; k++) {
            if (apart && k + 1 == end) put(r, ' ', &g[k]);
            dgm_glyphs_add(&r->spare, g[k]);
        }
        if (next < l->count && r->spare.count) put(r, ' ', &g[next]);
        i = next;
    }
    dgm_rewriting_end(r, l->count);
    const size_t n = l->count; // .' at the end of the line
    if (n < 2 || l->items[n - 1].code != '\'' || l->items[n - 2].code != '.') return;
    const dgm_glyph quote = l->items[n - 1], dot = l->items[n - 2];
    r->line->count -= 2;
    dgm_glyphs_put(r->line, ' ', &dot);
    dgm_glyphs_add(r->line, dot);
    dgm_glyphs_put(r->line, ' ', &quote);
    dgm_glyphs_add(r->line, quote);
}

// ---- tokens ---------------------------------------------------------------------------------

// Dots and entities written out.
static void spell_out(const dgm_moses_rules *rules, dgm_rewriting *r)
{
    const dgm_glyphs *l = r->line;
    for (size_t i = 0; i < l->count; i++) {
        const uint32_t c = l->items[i].code;
        const char *entity = rules->options & DGM_MOSES_ESCAPE ? dgm_moses_entity(c) : NULL;
        if (c > DOTS)
            for (uint32_t k = DOTS; k < c; k++) put(r, '.', &l->items[i]);
        else if (entity)
            for (; *entity; entity++) put(r, (uint32_t)*entity, &l->items[i]);
        else
            dgm_glyphs_add(&r->spare, l->items[i]);
    }
    dgm_rewriting_end(r, l->count);
}

static dgm_status list_tokens(const dgm_glyphs *l, dgm_ranges *tokens, dgm_error *err)
{
    for (size_t i = 0; i < l->count;) {
        size_t end = i;
        while (end < l->count && l->items[end].code != ' ') end++;
        if (end > i) {
            DGM_TRY(dgm_grow(&tokens->items, &tokens->cap, tokens->count + 1, sizeof *tokens->items, err));
            tokens->items[tokens->count++] = (dgm_range){i, end};
        }
        i = end + 1;
    }
    return DGM_OK;
}

dgm_status dgm_sacremoses_tokenize(const dgm_moses_rules *rules, dgm_glyphs *line,
                                   dgm_ranges *tokens, dgm_error *err)
{
    dgm_rewriting r = {.line = line};
    tokens->count = 0;
    if (rules->options & DGM_MOSES_PUNCTUATION) dgm_moses_punctuation(rules, &r);
    clean(&r);
    separate_symbols(rules, &r);
    if (rules->options & DGM_MOSES_AGGRESSIVE) split_hyphens(rules, &r);
    gather_dots(&r);
    split_commas(&r);
    split_apostrophes(rules, &r);
    split_dots(rules, &r);
    spell_out(rules, &r);
    const bool failed = line->failed || r.spare.failed;
    dgm_glyphs_free(&r.spare);
    const dgm_status st = failed ? dgm_no_memory(err) : list_tokens(line, tokens, err);
    if (st != DGM_OK) tokens->count = 0;
    return st;
}

dgm_status dgm_sacremoses_line(const dgm_moses_rules *rules, bool undo, dgm_text line,
                               dgm_writer *out, dgm_error *err)
{
    const size_t start = out->size;
    dgm_glyphs g = {0};
    dgm_ranges tokens = {0};
    dgm_glyphs_read(&g, line);
    dgm_status st = undo ? dgm_sacremoses_detokenize(rules, &g, err)
                         : dgm_sacremoses_tokenize(rules, &g, &tokens, err);
    if (st == DGM_OK && undo) dgm_glyphs_write(g.items, g.count, out);
    for (size_t i = 0; st == DGM_OK && i < tokens.count; i++) {
        if (i) dgm_write_u8(out, ' ');
        const dgm_range t = tokens.items[i];
        dgm_glyphs_write(g.items + t.begin, t.end - t.begin, out);
    }
    if (st == DGM_OK && out->failed) st = dgm_no_memory(err);
    if (st != DGM_OK) out->size = start;
    dgm_glyphs_free(&g);
    dgm_ranges_free(&tokens);
    return st;
}
