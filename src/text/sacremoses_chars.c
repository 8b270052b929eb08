// SPDX-License-Identifier: MIT
// Classes of characters as sacremoses sees them, and rewriting of lines; see sacremoses_private.h.
//
// Its lists of letters are Perl's Alphabetic without Han, Hangul and anything above U+FFFF; general
// categories come from utf8proc, and what categories do not tell (which marks are alphabetic) is a
// table here.
#include <string.h>

#include "text/sacremoses_private.h"
#include "text/unicode.h"

typedef struct span {
    uint16_t first, last;
} span;

// Marks that are not alphabetic: accents, cantillation, tone marks, selectors of variants.
static const span other_marks[] = {
    {0x300, 0x344},   {0x346, 0x36f},   {0x483, 0x489},   {0x591, 0x5af},   {0x658, 0x658},
    {0x6df, 0x6e0},   {0x6ea, 0x6ec},   {0x740, 0x74a},   {0x7eb, 0x7f3},   {0x7fd, 0x7fd},
    {0x818, 0x819},   {0x82d, 0x82d},   {0x859, 0x85b},   {0x898, 0x8e3},   {0x8ea, 0x8ef},
    {0x951, 0x954},   {0x9fe, 0x9fe},   {0xafa, 0xafc},   {0xb55, 0xb55},   {0xc3c, 0xc3c},
    {0xe47, 0xe4c},   {0xe4e, 0xe4e},   {0xec8, 0xecc},   {0xf18, 0xf3f},   {0xf82, 0xf87},
    {0xfc6, 0xfc6},   {0x1037, 0x1037}, {0x103a, 0x103a}, {0x1063, 0x1064}, {0x1069, 0x106d},
    {0x1087, 0x108f}, {0x109a, 0x109b}, {0x135d, 0x135e}, {0x1715, 0x1715}, {0x1734, 0x1734},
    {0x17b4, 0x17b5}, {0x17c9, 0x17dd}, {0x180b, 0x180f}, {0x1939, 0x193b}, {0x1a60, 0x1a60},
    {0x1a75, 0x1ace}, {0x1b34, 0x1b34}, {0x1b44, 0x1b44}, {0x1b6b, 0x1b73}, {0x1baa, 0x1baa},
    {0x1be6, 0x1be6}, {0x1bf2, 0x1bf3}, {0x1c36, 0x1c36}, {0x1cd0, 0x1cf9}, {0x1dc0, 0x1de6},
    {0x1df5, 0x1dff}, {0x20d0, 0x20f0}, {0x2cef, 0x2d7f}, {0x302a, 0x302f}, {0x3099, 0x309a},
    {0xa66f, 0xa672}, {0xa67c, 0xa67d}, {0xa69e, 0xa69e}, {0xa6f0, 0xa80b}, {0xa82c, 0xa82c},
    {0xa8c5, 0xa8ff}, {0xa92b, 0xa92d}, {0xa9b3, 0xa9b3}, {0xa9c0, 0xa9e5}, {0xaa7b, 0xaa7d},
    {0xaabf, 0xaac1}, {0xabec, 0xabed}, {0xfe00, 0xfe2f},
};
// Letters and numbers of Han, and syllables of Hangul.
static const span no_letters[] = {
    {0x3005, 0x3007}, {0x3021, 0x3029}, {0x3038, 0x303b},
    {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xac00, 0xd7a3},
    {0xf900, 0xfad9},
};
// What counts as a letter in text of these scripts, punctuation of the block U+3000 included.
static const span han[] = {
    {0x25cc, 0x25cc}, {0x2e80, 0x2fd5}, {0x3001, 0x3003}, {0x3005, 0x3011}, {0x3013, 0x301f},
    {0x3021, 0x302d}, {0x3030, 0x3030}, {0x3037, 0x303f}, {0x30fb, 0x30fb}, {0x3190, 0x319f},
    {0x31c0, 0x31e3}, {0x3220, 0x3247}, {0x3280, 0x32b0}, {0x32c0, 0x32cb}, {0x3358, 0x3370},
    {0x337b, 0x337f}, {0x33e0, 0x33fe}, {0x3400, 0x4db5}, {0x4e00, 0x9fd5}, {0xf900, 0xfad9},
    {0xfe45, 0xfe46}, {0xff61, 0xff65},
};
static const span kana[] = {
    {0x25cc, 0x25cc}, {0x3001, 0x3003}, {0x3008, 0x3011}, {0x3013, 0x301f}, {0x3030, 0x3035},
    {0x3037, 0x3037}, {0x303c, 0x303d}, {0x3041, 0x3096}, {0x3099, 0x30ff}, {0x31f0, 0x31ff},
    {0x32d0, 0x32fe}, {0x3300, 0x3357}, {0xfe45, 0xfe46}, {0xff61, 0xff9f},
};
static const span hangul[] = {
    {0x1100, 0x11ff}, {0x3001, 0x3003}, {0x3008, 0x3011}, {0x3013, 0x301f}, {0x302e, 0x3030},
    {0x3037, 0x3037}, {0x30fb, 0x30fb}, {0x3131, 0x318e}, {0x3200, 0x321e}, {0x3260, 0x327e},
    {0xa960, 0xa97c}, {0xac00, 0xd7fb}, {0xfe45, 0xfe46}, {0xff61, 0xff65}, {0xffa0, 0xffdc},
};

#define HOLDS(table, code) holds(table, sizeof(table) / sizeof *(table), code)

static bool holds(const span *table, size_t count, uint32_t code)
{
    size_t low = 0;
    while (count > 0) {
        const size_t half = count / 2;
        if (table[low + half].last < code) {
            low += half + 1;
            count -= half + 1;
        } else if (table[low + half].first > code) {
            count = half;
        } else {
            return true;
        }
    }
    return false;
}

bool dgm_moses_alpha(const dgm_moses_rules *rules, uint32_t code)
{
    if (code < 0x80) return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
    if (rules->han && (HOLDS(han, code) || (code >= 0x20000 && code <= 0x2fa1d))) return true;
    if (code > 0xffff) return false;
    if (rules->kana && HOLDS(kana, code)) return true;
    if (rules->hangul && HOLDS(hangul, code)) return true;
    const unsigned flags = dgm_char_class(code);
    if (flags & DGM_CHAR_LETTER) return !HOLDS(no_letters, code);
    if (flags & DGM_CHAR_MARK) return !HOLDS(other_marks, code);
    // Roman numerals, letters in circles
    return (code >= 0x2160 && code <= 0x2188) || (code >= 0x24b6 && code <= 0x24e9) || code == 0x25cc;
}

bool dgm_moses_alnum(const dgm_moses_rules *rules, uint32_t code)
{
    if (code >= '0' && code <= '9') return true;
    if (dgm_moses_alpha(rules, code)) return true;
    return code > 0x7f && code <= 0xffff && dgm_char_is_digit(code);
}

bool dgm_moses_number(uint32_t code)
{
    return code <= 0xffff && (dgm_char_class(code) & DGM_CHAR_NUMBER) && !HOLDS(no_letters, code);
}

bool dgm_moses_lower(uint32_t code)
{
    if (code > 0xffff) return false;
    // Lower case by property: modifier letters, small Roman numerals and letters in circles too.
    static const span others[] = {{0xaa, 0xaa},     {0xba, 0xba},     {0x2b0, 0x2b8},
                                  {0x2c0, 0x2c1},   {0x2e0, 0x2e4},   {0x345, 0x345},
                                  {0x37a, 0x37a},   {0x1d2c, 0x1d6a}, {0x1d78, 0x1d78},
                                  {0x1d9b, 0x1dbf}, {0x2071, 0x2071}, {0x207f, 0x207f},
                                  {0x2090, 0x209c}, {0x2170, 0x217f}, {0x24d0, 0x24e9}};
    return (dgm_char_class(code) & DGM_CHAR_LOWER) || HOLDS(others, code);
}

bool dgm_moses_currency(uint32_t code)
{
    return dgm_char_is_currency(code);
}

bool dgm_moses_cjk(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0x1100, 0x11ff},   {0x2e80, 0xa4cf},   {0xa840, 0xa87f},   {0xac00, 0xd7af},
                  {0xf900, 0xfaff},   {0xfe30, 0xfe4f},   {0xff65, 0xffdc},   {0x17000, 0x18aff},
                  {0x1b000, 0x1b12f}, {0x1b170, 0x1b2ff}, {0x20000, 0x2ffff}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code <= ranges[i].last) return code >= ranges[i].first;
    return false;
}

// ---- rewriting ------------------------------------------------------------------------------

void dgm_rewriting_end(dgm_rewriting *r, size_t from)
{
    for (size_t i = from; i < r->line->count; i++) dgm_glyphs_add(&r->spare, r->line->items[i]);
    dgm_glyphs_swap(r->line, &r->spare);
}

void dgm_rewriting_trim(dgm_rewriting *r)
{
    dgm_glyphs *l = r->line;
    size_t begin = 0;
    while (l->count > 0 && dgm_char_is_space(l->items[l->count - 1].code)) l->count--;
    while (begin < l->count && dgm_char_is_space(l->items[begin].code)) begin++;
    l->count -= begin;
    if (begin) memmove(l->items, l->items + begin, l->count * sizeof *l->items);
}

void dgm_rewriting_spaces(dgm_rewriting *r)
{
    dgm_glyphs *l = r->line;
    size_t to = 0;
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].code != ' ' || to == 0 || l->items[to - 1].code != ' ')
            l->items[to++] = l->items[i];
    l->count = to;
}
