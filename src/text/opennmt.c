// SPDX-License-Identifier: MIT
// OpenNMT's words; see opennmt.h.
#include "text/opennmt.h"

#include "base/mem.h"
#include "text/unicode.h"

enum { SPACE, LETTER, NUMBER, OTHER };

void dgm_opennmt_tokens_free(dgm_opennmt_tokens *t)
{
    if (!t) return;
    dgm_free(t->items);
    *t = (dgm_opennmt_tokens){0};
}

static int kind_of(uint32_t code)
{
    const unsigned flags = dgm_char_class(code);
    if (flags & DGM_CHAR_SPACE) return SPACE;
    if (flags & DGM_CHAR_LETTER) return LETTER;
    return flags & DGM_CHAR_NUMBER ? NUMBER : OTHER;
}

static bool is_mark(uint32_t code)
{
    return dgm_char_class(code) & DGM_CHAR_MARK;
}

// Marks in the text would be read as marks of tokens; control characters are dropped.
static void clean(dgm_glyphs *line)
{
    static const uint32_t others[][2] = {{0xFFED, 0x25A0}, {0xFFE8, 0x2502}, {0x2581, '_'},
                                         {0xFF05, '%'},    {0xFF03, '#'},    {0xFF1A, ':'}};
    size_t to = 0;
    for (size_t i = 0; i < line->count; i++) {
        dgm_glyph g = line->items[i];
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (g.code == others[k][0]) g.code = others[k][1];
        if ((g.code >= 32 || dgm_char_is_space(g.code)) && g.code != 0xFEFF) line->items[to++] = g;
    }
    line->count = to;
}

typedef struct cutting {
    dgm_opennmt_mode mode;
    const dgm_glyphs *line;
} cutting;

// Of conservative mode: what the character is, with the token before it going on or not.
static int kind_at(const cutting *c, size_t i, bool in_word)
{
    const uint32_t code = c->line->items[i].code;
    const int kind = kind_of(code);
    if (c->mode == DGM_OPENNMT_AGGRESSIVE) return kind;
    if (kind == NUMBER || code == '_' || (code == '-' && in_word)) return LETTER;
    if (!in_word || (code != '.' && code != ',') || i + 1 >= c->line->count) return kind;
    const int next = kind_of(c->line->items[i + 1].code);
    return next == LETTER || next == NUMBER ? LETTER : kind;
}

static dgm_status add(dgm_opennmt_tokens *t, dgm_opennmt_token token, dgm_error *err)
{
    DGM_TRY(dgm_grow(&t->items, &t->cap, t->count + 1, sizeof *t->items, err));
    t->items[t->count++] = token;
    return DGM_OK;
}

// Which of two tokens without a space between them has the joiner.
static void join(dgm_opennmt_token *left, int left_kind, dgm_opennmt_token *right, int right_kind)
{
    if (right_kind == OTHER || (right_kind == NUMBER && left_kind == LETTER))
        right->join_left = true;
    else
        left->join_right = true;
}

static size_t token_end(const cutting *c, size_t begin, int kind)
{
    const dgm_glyph *g = c->line->items;
    size_t end = begin + 1;
    for (; end < c->line->count; end++) {
        if (is_mark(g[end].code)) continue; // belongs to the character before it
        if (kind == OTHER || kind_at(c, end, true) != kind) break;
    }
    return end;
}

static dgm_status split_modes(const cutting *c, dgm_opennmt_tokens *t, dgm_error *err)
{
    int before = SPACE;
    bool spaced = false;
    for (size_t i = 0; i < c->line->count;) {
        const int kind = kind_at(c, i, false);
        if (kind == SPACE) {
            before = SPACE;
            spaced = true;
            i++;
            continue;
        }
        const size_t end = token_end(c, i, kind);
        DGM_TRY(add(t, (dgm_opennmt_token){.begin = i, .end = end, .spaced = spaced && t->count > 0}, err));
        if (before != SPACE) join(&t->items[t->count - 2], before, &t->items[t->count - 1], kind);
        before = kind;
        spaced = false;
        i = end;
    }
    return DGM_OK;
}

static dgm_status split_spaces(const dgm_glyphs *line, dgm_opennmt_tokens *t, dgm_error *err)
{
    bool spaced = false;
    for (size_t i = 0; i < line->count;) {
        size_t end = i;
        while (end < line->count && kind_of(line->items[end].code) != SPACE) end++;
        const dgm_opennmt_token token = {.begin = i, .end = end, .spaced = spaced && t->count > 0};
        if (end > i) DGM_TRY(add(t, token, err));
        spaced = true;
        i = end + 1;
    }
    return DGM_OK;
}

dgm_status dgm_opennmt_split(dgm_opennmt_mode mode, dgm_glyphs *line, dgm_opennmt_tokens *tokens, dgm_error *err)
{
    const cutting c = {.mode = mode, .line = line};
    tokens->count = 0;
    clean(line);
    return mode == DGM_OPENNMT_SPACE ? split_spaces(line, tokens, err) : split_modes(&c, tokens, err);
}
