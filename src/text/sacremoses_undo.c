// SPDX-License-Identifier: MIT
// The detokeniser of sacremoses.h: tokens to text.
//
// Token by token: some stick to what stands before them (punctuation, closing quotes, English
// contractions), some to what follows (currency, opening brackets and quotes, French elisions).
// Quotes of a kind open and close in turn.
#include <string.h>

#include "base/mem.h"
#include "text/sacremoses_private.h"
#include "text/unicode.h"

typedef struct quote_count {
    dgm_range token; // a token that is spelled so
    unsigned count;
} quote_count;

typedef struct undoing {
    const dgm_moses_rules *rules;
    dgm_rewriting r;
    dgm_ranges tokens;
    quote_count *quotes; // [quote_used] kinds of quotes met so far
    size_t quote_used, quote_cap;
    unsigned double_quotes;
    bool space; // does the token before want one behind it?
} undoing;

static const dgm_glyph *glyphs_of(const undoing *u, size_t i, size_t *count)
{
    const dgm_range t = u->tokens.items[i];
    *count = t.end - t.begin;
    return u->r.line->items + t.begin;
}

static bool all_of(const dgm_glyph *g, size_t count, const char *set)
{
    for (size_t i = 0; i < count; i++)
        if (g[i].code == 0 || g[i].code > 0x7f || !strchr(set, (int)g[i].code)) return false;
    return count > 0;
}

// ---- entities and hyphens ---------------------------------------------------------------------

static bool reads(const dgm_glyphs *l, size_t at, const char *text)
{
    for (; *text; text++, at++)
        if (at >= l->count || l->items[at].code != (unsigned char)*text) return false;
    return true;
}

// " @-@ " becomes "-", here and at both ends of the line.
static void join_hyphens(dgm_rewriting *r)
{
    const dgm_glyphs *l = r->line;
    for (size_t i = 0; i < l->count;) {
        // at the beginning of the line the space before is not written
        const size_t lead = i == 0 && l->items[0].code == '@' ? 0 : 1;
        const bool here = reads(l, i, lead ? " @-@" : "@-@");
        const size_t end = i + lead + 3;
        if (!here || (end < l->count && l->items[end].code != ' ')) {
            dgm_glyphs_add(&r->spare, l->items[i++]);
            continue;
        }
        dgm_glyphs_put(&r->spare, '-', &l->items[i + lead + 1]);
        i = end < l->count ? end + 1 : end;
    }
    dgm_rewriting_end(r, l->count);
}

static void unescape(dgm_rewriting *r)
{
    static const struct {
        const char *entity;
        char c;
    } entities[] = {{"&amp;", '&'}, {"&#124;", '|'},  {"&bar;", '|'},  {"&lt;", '<'},
                    {"&gt;", '>'},  {"&apos;", '\''}, {"&quot;", '"'}, {"&#91;", '['},
                    {"&#93;", ']'}, {"&bra;", '['},   {"&ket;", ']'}};
    const dgm_glyphs *l = r->line;
    for (size_t i = 0; i < l->count;) {
        size_t used = 0;
        for (size_t e = 0; l->items[i].code == '&' && e < sizeof entities / sizeof *entities; e++) {
            if (!reads(l, i, entities[e].entity)) continue;
            used = strlen(entities[e].entity);
            dgm_glyphs_add(&r->spare, (dgm_glyph){(uint32_t)entities[e].c, l->items[i].begin,
                                                  l->items[i + used - 1].end});
            break;
        }
        if (!used) dgm_glyphs_add(&r->spare, l->items[i]);
        i += used ? used : 1;
    }
    dgm_rewriting_end(r, l->count);
}

// ---- tokens ---------------------------------------------------------------------------------

static void write(undoing *u, size_t i, bool space_before, bool space_behind)
{
    size_t count;
    const dgm_glyph *g = glyphs_of(u, i, &count);
    if (space_before && u->r.spare.count > 0) dgm_glyphs_put(&u->r.spare, ' ', &g[0]);
    for (size_t k = 0; k < count; k++) dgm_glyphs_add(&u->r.spare, g[k]);
    u->space = space_behind;
}

static bool is_language(const undoing *u, const char *code)
{
    return strcmp(u->rules->code, code) == 0;
}

static bool is_opening(const dgm_glyph *g, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t c = g[i].code;
        if (c != '(' && c != '[' && c != '{' && c != 0xBF && c != 0xA1 && !dgm_moses_currency(c))
            return false;
    }
    return count > 0;
}

// l' dell', before a word.
static bool is_elision(const undoing *u, size_t i)
{
    if (!is_language(u, "fr") && !is_language(u, "it") && !is_language(u, "ga")) return false;
    if (i + 1 >= u->tokens.count) return false;
    size_t n, next_count;
    const dgm_glyph *g = glyphs_of(u, i, &n), *next = glyphs_of(u, i + 1, &next_count);
    return n >= 2 && g[n - 1].code == '\'' && dgm_moses_alpha(u->rules, g[n - 2].code) &&
           dgm_moses_alpha(u->rules, next[0].code);
}

static bool is_quote(const dgm_glyph *g, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t c = g[i].code;
        if (c != '\'' && c != '"' && c != '`' && c != 0x201E && c != 0x201C) return false;
    }
    return count > 0;
}

static bool same_token(const undoing *u, dgm_range a, size_t i)
{
    size_t count;
    const dgm_glyph *g = glyphs_of(u, i, &count), *other = u->r.line->items + a.begin;
    if (a.end - a.begin != count) return false;
    for (size_t k = 0; k < count; k++)
        if (g[k].code != other[k].code) return false;
    return true;
}

// How many quotes spelled like token i there were; low and high ones count as straight.
static unsigned *count_of(undoing *u, size_t i)
{
    size_t count, shaped = 0;
    const dgm_glyph *g = glyphs_of(u, i, &count);
    while (shaped < count && g[shaped].code > 0x7f) shaped++;
    if (shaped == count || (count == 1 && g[0].code == '"')) return &u->double_quotes;
    for (size_t k = 0; k < u->quote_used; k++)
        if (same_token(u, u->quotes[k].token, i)) return &u->quotes[k].count;
    if (dgm_grow(&u->quotes, &u->quote_cap, u->quote_used + 1, sizeof *u->quotes, NULL) != DGM_OK) {
        u->r.spare.failed = true;
        return &u->double_quotes;
    }
    u->quotes[u->quote_used] = (quote_count){.token = u->tokens.items[i]};
    return &u->quotes[u->quote_used++].count;
}

static void write_quote(undoing *u, size_t i)
{
    size_t n, before_count = 0;
    const dgm_glyph *g = glyphs_of(u, i, &n);
    const dgm_glyph *before = i > 0 ? glyphs_of(u, i - 1, &before_count) : NULL;
    unsigned *count = count_of(u, i);
    if (is_language(u, "cs") && n == 1 && g[0].code == 0x201E) *count = 0;
    if (is_language(u, "cs") && n == 1 && g[0].code == 0x201C) *count = 1;
    if (*count % 2 == 0 && is_language(u, "en") && n == 1 && g[0].code == '\'' && before &&
        before[before_count - 1].code == 's') {
        write(u, i, false, true); // the Jones' house
        return;
    }
    const bool opens = *count % 2 == 0;
    write(u, i, opens && u->space, !opens);
    ++*count;
}

// sacremoses looks at the last two tokens of the line, whatever the place.
static bool is_czech_decimal(const undoing *u, size_t i)
{
    if (!is_language(u, "cs") || i < 2) return false;
    size_t n, number_count, dot_count;
    const dgm_glyph *g = glyphs_of(u, i, &n);
    const dgm_glyph *number = glyphs_of(u, u->tokens.count - 2, &number_count);
    const dgm_glyph *dot = glyphs_of(u, u->tokens.count - 1, &dot_count);
    return all_of(g, n, "0123456789") && all_of(number, number_count, "0123456789") &&
           dot_count == 1 && all_of(dot, 1, ".,");
}

static void write_token(undoing *u, size_t i)
{
    size_t n;
    const dgm_glyph *g = glyphs_of(u, i, &n);
    if (dgm_moses_cjk(g[0].code) && !is_language(u, "ko")) {
        size_t before_count = 0;
        const dgm_glyph *before = i > 0 ? glyphs_of(u, i - 1, &before_count) : NULL;
        const bool joins = before && dgm_moses_cjk(before[before_count - 1].code);
        write(u, i, u->space && !joins, true);
    } else if (is_opening(g, n)) {
        write(u, i, u->space, false);
    } else if (all_of(g, n, ",.?!:;\\%}])")) {
        write(u, i, is_language(u, "fr") && n == 1 && all_of(g, 1, "?!:;\\%"), true);
    } else if (is_language(u, "en") && i > 0 && n > 1 && g[0].code == '\'' &&
               dgm_moses_alpha(u->rules, g[1].code)) {
        write(u, i, false, true);
    } else if (is_czech_decimal(u, i)) {
        write(u, i, false, true);
    } else if (is_elision(u, i)) {
        write(u, i, u->space, false);
    } else if (is_quote(g, n)) {
        write_quote(u, i);
    } else {
        write(u, i, u->space, true);
    }
}

static dgm_status list_tokens(undoing *u, dgm_error *err)
{
    const dgm_glyphs *l = u->r.line;
    dgm_ranges *t = &u->tokens;
    for (size_t i = 0; i < l->count;) {
        size_t end = i;
        while (end < l->count && !dgm_char_is_space(l->items[end].code)) end++;
        if (end > i) {
            DGM_TRY(dgm_grow(&t->items, &t->cap, t->count + 1, sizeof *t->items, err));
            t->items[t->count++] = (dgm_range){i, end};
        }
        i = end + 1;
    }
    return DGM_OK;
}

dgm_status dgm_sacremoses_detokenize(const dgm_moses_rules *rules, dgm_glyphs *line, dgm_error *err)
{
    undoing u = {.rules = rules, .r = {.line = line}, .space = true};
    join_hyphens(&u.r);
    unescape(&u.r);
    dgm_status st = list_tokens(&u, err);
    for (size_t i = 0; st == DGM_OK && i < u.tokens.count; i++) write_token(&u, i);
    if (st == DGM_OK) dgm_rewriting_end(&u.r, line->count);
    if (st == DGM_OK && (line->failed || u.r.spare.failed)) st = dgm_no_memory(err);
    dgm_glyphs_free(&u.r.spare);
    dgm_ranges_free(&u.tokens);
    dgm_free(u.quotes);
    return st;
}
