// SPDX-License-Identifier: MIT
// UTF-8, character classes, case and NFC; see unicode.h.
//
// Decoding is strict and self-contained (a table of lead bytes); properties come from utf8proc.
// utf8proc's own allocating functions are not used: memory goes through base/mem.h, so that
// allocation failures can be tested.
#include "text/unicode.h"

#include <string.h>
#include <utf8proc.h>

#include "base/lower_bound.h"
#include "base/mem.h"

#define REPLACEMENT 0xFFFDu

dgm_text dgm_text_trim(dgm_text t)
{
    uint32_t code;
    while (t.size) {
        size_t n = dgm_utf8_next(t.data, t.size, &code);
        if (!dgm_char_is_space(code)) break;
        t.data += n;
        t.size -= n;
    }
    while (t.size) {
        size_t start = dgm_utf8_prev(t.data, t.size);
        dgm_utf8_next(t.data + start, t.size - start, &code);
        if (!dgm_char_is_space(code)) break;
        t.size = start;
    }
    return t;
}

// ---- UTF-8 ---------------------------------------------------------------------------------

// Length of a sequence by its first byte and the range its second byte must lie in: the ranges
// exclude overlong forms (E0, F0), surrogates (ED) and code points above U+10FFFF (F4).
static int lead_byte(unsigned char c, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xBF;
    if (c < 0x80) return 1;
    if (c < 0xC2) return 0;
    if (c < 0xE0) return 2;
    if (c < 0xF0) {
        if (c == 0xE0) *low = 0xA0;
        if (c == 0xED) *high = 0x9F;
        return 3;
    }
    if (c > 0xF4) return 0;
    if (c == 0xF0) *low = 0x90;
    if (c == 0xF4) *high = 0x8F;
    return 4;
}

// As dgm_utf8_next; *good tells an invalid sequence from a real U+FFFD.
static size_t next_code(const char *s, size_t n, uint32_t *code, bool *good)
{
    const unsigned char *p = (const unsigned char *)s;
    if (p[0] < 0x80) {
        *code = p[0];
        *good = true;
        return 1;
    }
    unsigned char low, high;
    int length = lead_byte(p[0], &low, &high);
    *code = REPLACEMENT;
    *good = false;
    if (length == 0) return 1;
    uint32_t value = p[0] & (0x7Fu >> length);
    for (int i = 1; i < length; i++) {
        if ((size_t)i >= n || p[i] < low || p[i] > high) return (size_t)i;
        value = value << 6 | (p[i] & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    *code = value;
    *good = true;
    return (size_t)length;
}

size_t dgm_utf8_next(const char *s, size_t n, uint32_t *code)
{
    bool good;
    return next_code(s, n, code, &good);
}

size_t dgm_utf8_prev(const char *s, size_t pos)
{
    size_t start = pos - 1;
    for (int i = 0; i < 3 && start > 0 && ((unsigned char)s[start] & 0xC0) == 0x80; i++) start--;
    // Stray continuation bytes stand for themselves.
    uint32_t code;
    return start + dgm_utf8_next(s + start, pos - start, &code) == pos ? start : pos - 1;
}

size_t dgm_utf8_first_bad(dgm_text t)
{
    size_t pos = 0;
    while (pos < t.size) {
        uint32_t code;
        bool good;
        size_t n = next_code(t.data + pos, t.size - pos, &code, &good);
        if (!good) return pos;
        pos += n;
    }
    return t.size;
}

bool dgm_utf8_valid(dgm_text t)
{
    return dgm_utf8_first_bad(t) == t.size;
}

size_t dgm_utf8_put(uint32_t code, char out[4])
{
    unsigned char *p = (unsigned char *)out;
    if (code < 0x80) {
        p[0] = (unsigned char)code;
        return 1;
    }
    if (code < 0x800) {
        p[0] = (unsigned char)(0xC0 | code >> 6);
        p[1] = (unsigned char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        if (code >= 0xD800 && code < 0xE000) return dgm_utf8_put(REPLACEMENT, out);
        p[0] = (unsigned char)(0xE0 | code >> 12);
        p[1] = (unsigned char)(0x80 | (code >> 6 & 0x3F));
        p[2] = (unsigned char)(0x80 | (code & 0x3F));
        return 3;
    }
    if (code > 0x10FFFF) return dgm_utf8_put(REPLACEMENT, out);
    p[0] = (unsigned char)(0xF0 | code >> 18);
    p[1] = (unsigned char)(0x80 | (code >> 12 & 0x3F));
    p[2] = (unsigned char)(0x80 | (code >> 6 & 0x3F));
    p[3] = (unsigned char)(0x80 | (code & 0x3F));
    return 4;
}

size_t dgm_utf8_count(dgm_text t)
{
    size_t count = 0;
    for (size_t pos = 0; pos < t.size; count++) {
        uint32_t code;
        pos += dgm_utf8_next(t.data + pos, t.size - pos, &code);
    }
    return count;
}

static dgm_status written(const dgm_writer *out, dgm_error *err)
{
    return out->failed ? dgm_no_memory(err) : DGM_OK;
}

static void put(dgm_writer *out, uint32_t code)
{
    char bytes[4];
    dgm_write_bytes(out, bytes, dgm_utf8_put(code, bytes));
}

dgm_status dgm_utf8_repair(dgm_text t, dgm_writer *out, size_t *replaced, dgm_error *err)
{
    size_t count = 0, copied = 0, pos = 0;
    while (pos < t.size) {
        uint32_t code;
        bool good;
        size_t n = next_code(t.data + pos, t.size - pos, &code, &good);
        if (!good) {
            dgm_write_bytes(out, t.data + copied, pos - copied);
            put(out, REPLACEMENT);
            copied = pos + n;
            count++;
        }
        pos += n;
    }
    if (pos > copied) dgm_write_bytes(out, t.data + copied, pos - copied);
    if (replaced) *replaced = count;
    return written(out, err);
}

bool dgm_is_break(char c)
{
    return c == '\n' || c == '\r' || c == '\0' || c == '\v' || c == '\f';
}

dgm_status dgm_line_clean(dgm_text in, dgm_writer *out, bool *repaired, dgm_error *err)
{
    size_t bad = 0, start = out->size;
    DGM_TRY(dgm_utf8_repair(in, out, &bad, err));
    *repaired = bad > 0;
    for (size_t i = start; i < out->size; i++)
        if (dgm_is_break((char)out->data[i])) out->data[i] = ' ';
    return DGM_OK;
}

dgm_status dgm_utf8_nfc(dgm_text t, dgm_writer *out, dgm_error *err)
{
    const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)t.data;
    if (t.size == 0) return DGM_OK;
    DGM_FAIL_IF(t.size > INT32_MAX, err, DGM_ERR_TEXT, "text is longer than 2 GiB");
    utf8proc_ssize_t need = utf8proc_decompose(bytes, (utf8proc_ssize_t)t.size, NULL, 0, options);
    DGM_FAIL_IF(need < 0, err, DGM_ERR_TEXT, "text is not valid UTF-8");
    utf8proc_int32_t *codes = dgm_malloc((size_t)need * sizeof *codes);
    if (!codes) return dgm_no_memory(err);
    utf8proc_ssize_t got =
        utf8proc_decompose(bytes, (utf8proc_ssize_t)t.size, codes, need, options);
    if (got == need) got = utf8proc_normalize_utf32(codes, need, options);
    for (utf8proc_ssize_t i = 0; i < got; i++) put(out, (uint32_t)codes[i]);
    dgm_free(codes);
    DGM_FAIL_IF(got < 0, err, DGM_ERR_TEXT, "text is not valid UTF-8");
    return written(out, err);
}

// ---- classes -------------------------------------------------------------------------------

typedef struct code_range {
    uint32_t first, last;
} code_range;

static bool in_ranges(uint32_t code, const code_range *ranges, size_t count)
{
    size_t at;
    DGM_LOWER_BOUND(size_t, at, 0, count, ranges[at].last < code);
    return at < count && ranges[at].first <= code;
}

#define IN_RANGES(code, table) in_ranges((code), (table), sizeof(table) / sizeof(table)[0])

static const code_range spaceless[] = {
    {0x0E00, 0x0EFF}, // Thai, Lao
    {0x1000, 0x109F}, // Burmese
    {0x1780, 0x17FF}, // Khmer
    {0x2E80, 0x2FFF}, // CJK radicals
    {0x3000, 0x312F}, // CJK punctuation, kana, bopomofo
    {0x3190, 0x9FFF}, // CJK symbols, Han
    {0xF900, 0xFAFF}, // Han, compatibility
    {0xFE10, 0xFE1F}, // vertical punctuation
    {0xFE30, 0xFE4F}, // CJK compatibility forms
    {0xFF00, 0xFF9F}, // full-width forms, half-width kana
    {0xFFE0, 0xFFEF}, {0x1AFF0, 0x1B16F}, {0x20000, 0x3FFFF},
};

bool dgm_char_is_space(uint32_t code)
{
    if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13) || (code >= 28 && code <= 31);
    if (code < 0x1680) return code == 0x85 || code == 0xA0;
    return code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

static unsigned category_class(uint32_t code)
{
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
        return DGM_CHAR_LETTER | DGM_CHAR_UPPER;
    case UTF8PROC_CATEGORY_LL:
        return DGM_CHAR_LETTER | DGM_CHAR_LOWER;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return DGM_CHAR_LETTER;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return DGM_CHAR_MARK;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return DGM_CHAR_NUMBER;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        return DGM_CHAR_PUNCT;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
        return DGM_CHAR_SYMBOL;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return 0; // dgm_char_is_space adds the flag
    default:
        return DGM_CHAR_CONTROL;
    }
}

unsigned dgm_char_class(uint32_t code)
{
    if (code > 0x10FFFF) return DGM_CHAR_CONTROL;
    unsigned flags = category_class(code);
    if (dgm_char_is_space(code)) flags |= DGM_CHAR_SPACE;
    if (code >= 0x0E00 && IN_RANGES(code, spaceless)) flags |= DGM_CHAR_SPACELESS;
    return flags;
}

bool dgm_char_is_digit(uint32_t code)
{
    return code <= 0x10FFFF && utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_ND;
}

bool dgm_char_is_currency(uint32_t code)
{
    return code <= 0x10FFFF && utf8proc_category((utf8proc_int32_t)code) == UTF8PROC_CATEGORY_SC;
}

bool dgm_char_break_between(uint32_t left, uint32_t right)
{
    if (left < 0x80 && right < 0x80) return !(left == '\r' && right == '\n');
    if (left > 0x10FFFF || right > 0x10FFFF) return true;
    // Two regional indicators make a flag; which two depends on the text before, so never cut.
    return utf8proc_grapheme_break((utf8proc_int32_t)left, (utf8proc_int32_t)right) &&
           left != 0x200D;
}

// ---- case ----------------------------------------------------------------------------------

uint32_t dgm_char_lower(uint32_t code)
{
    if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
    return code > 0x10FFFF ? code : (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
}

uint32_t dgm_char_upper(uint32_t code)
{
    if (code < 0x80) return code >= 'a' && code <= 'z' ? code - 32 : code;
    return code > 0x10FFFF ? code : (uint32_t)utf8proc_toupper((utf8proc_int32_t)code);
}

size_t dgm_char_plain(uint32_t code, uint32_t *out, size_t most)
{
    enum { LONGEST = 18 }; // of all of Unicode
    utf8proc_int32_t codes[LONGEST];
    int boundary = 0;
    const utf8proc_ssize_t n =
        utf8proc_decompose_char((utf8proc_int32_t)code, codes, LONGEST,
                                UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &boundary);
    const bool fits = n > 0 && (size_t)n <= most;
    for (utf8proc_ssize_t i = 0; fits && i < n; i++) out[i] = (uint32_t)codes[i];
    if (!fits) out[0] = code;
    return fits ? (size_t)n : 1;
}

// Unicode's Other_Lowercase and Other_Uppercase: cased although their category does not say so.
static const code_range other_cased[] = {
    {0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},
    {0x2E0, 0x2E4},     {0x345, 0x345},     {0x37A, 0x37A},     {0x10FC, 0x10FC},
    {0x1D2C, 0x1D6A},   {0x1D78, 0x1D78},   {0x1D9B, 0x1DBF},   {0x2071, 0x2071},
    {0x207F, 0x207F},   {0x2090, 0x209C},   {0x2160, 0x217F},   {0x24B6, 0x24E9},
    {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F2, 0xA7F4},
    {0xA7F8, 0xA7F9},   {0xAB5C, 0xAB5F},   {0xAB69, 0xAB69},   {0x10780, 0x10780},
    {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}, {0x1E030, 0x1E06D},
    {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189},
};

static bool is_cased(uint32_t code)
{
    return (dgm_char_class(code) & (DGM_CHAR_UPPER | DGM_CHAR_LOWER)) ||
           IN_RANGES(code, other_cased);
}

// Case_Ignorable: marks, format characters, modifiers, and what joins letters inside a word.
static bool is_case_ignorable(uint32_t code)
{
    switch (code) {
    case '\'':
    case '.':
    case ':':
    case 0xB7:
    case 0x387:
    case 0x55F:
    case 0x5F4:
    case 0x2018:
    case 0x2019:
    case 0x2024:
    case 0x2027:
    case 0xFE13:
    case 0xFE52:
    case 0xFE55:
    case 0xFF07:
    case 0xFF0E:
    case 0xFF1A:
        return true;
    default:
        break;
    }
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
        return true;
    default:
        return false;
    }
}

// Is the capital sigma at t[pos .. pos + n) the last letter of a word?
static bool sigma_is_final(dgm_text t, size_t pos, size_t n)
{
    uint32_t code = 0;
    bool before = false;
    for (size_t at = pos; at > 0;) {
        at = dgm_utf8_prev(t.data, at);
        dgm_utf8_next(t.data + at, pos - at, &code);
        if (is_case_ignorable(code)) continue;
        before = is_cased(code);
        break;
    }
    if (!before) return false;
    for (size_t at = pos + n; at < t.size;) {
        at += dgm_utf8_next(t.data + at, t.size - at, &code);
        if (!is_case_ignorable(code)) return !is_cased(code);
    }
    return true;
}

dgm_status dgm_utf8_lower(dgm_text t, dgm_writer *out, dgm_error *err)
{
    for (size_t pos = 0; pos < t.size;) {
        uint32_t code;
        size_t n = dgm_utf8_next(t.data + pos, t.size - pos, &code);
        if (code == 0x3A3)
            put(out, sigma_is_final(t, pos, n) ? 0x3C2 : 0x3C3);
        else if (code == 0x130)
            dgm_write_text(out, "i\xCC\x87");
        else
            put(out, dgm_char_lower(code));
        pos += n;
    }
    return written(out, err);
}
