// SPDX-License-Identifier: MIT
// The tokenisers of BLEU: 13a, intl, char, zh, none; see metrics.h.
//
// They must give what sacreBLEU gives, which rewrites the line with regular expressions one after
// the other, each scanning left to right without overlap. The passes are kept apart here for that
// reason: a match consumes its characters, so "a.,b" depends on the order.
//
// The passes of 13a look at ASCII only, so they work on bytes: the bytes of other characters are
// "not a digit" either way. intl works on code points and Unicode categories.
#include <string.h>

#include "base/mem.h"
#include "metrics/metrics_private.h"

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_point(uint8_t c)
{
    return c == '.' || c == ',';
}

// [\{-\~\[-\` -\&\(-\+\:-\@\/] of mteval: ASCII punctuation but for ' , - .
static bool is_mark(uint8_t c)
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

static void put_pair(dgm_writer *out, const char *before, uint8_t a, const char *between, uint8_t b,
                     const char *after)
{
    dgm_write_text(out, before);
    dgm_write_u8(out, a);
    dgm_write_text(out, between);
    dgm_write_u8(out, b);
    dgm_write_text(out, after);
}

typedef bool (*byte_test)(uint8_t c);

static bool not_digit(uint8_t c)
{
    return !is_digit(c);
}

static bool is_dash(uint8_t c)
{
    return c == '-';
}

// Rewrites every pair (first, second) as before first between second after.
static void rewrite_pairs(const dgm_writer *in, dgm_writer *out, byte_test first, byte_test second,
                          const char *before, const char *between, const char *after)
{
    out->size = 0;
    for (size_t i = 0; i < in->size;) {
        if (i + 1 < in->size && first(in->data[i]) && second(in->data[i + 1])) {
            put_pair(out, before, in->data[i], between, in->data[i + 1], after);
            i += 2;
        } else {
            dgm_write_u8(out, in->data[i++]);
        }
    }
}

// The part that 13a and zh share: text in a, b is scratch; the result is in a.
static void tokenize_western(dgm_writer *a, dgm_writer *b)
{
    b->size = 0;
    for (size_t i = 0; i < a->size; i++) {
        if (is_mark(a->data[i])) {
            const uint8_t spaced[3] = {' ', a->data[i], ' '};
            dgm_write_bytes(b, spaced, 3);
        } else {
            dgm_write_u8(b, a->data[i]);
        }
    }
    rewrite_pairs(b, a, not_digit, is_point, "", " ", " ");
    rewrite_pairs(a, b, is_point, not_digit, " ", " ", "");
    rewrite_pairs(b, a, is_digit, is_dash, "", " ", " ");
}

// Appends t to out with every `from` replaced by `to`.
static void replace_all(dgm_text t, const char *from, const char *to, dgm_writer *out)
{
    size_t n = strlen(from);
    for (size_t i = 0; i < t.size;) {
        if (t.size - i >= n && memcmp(t.data + i, from, n) == 0) {
            dgm_write_text(out, to);
            i += n;
        } else {
            dgm_write_u8(out, (uint8_t)t.data[i++]);
        }
    }
}

static void tokenize_13a(dgm_text line, dgm_writer *a, dgm_writer *b)
{
    static const char *const changes[][2] = {{"<skipped>", ""}, {"-\n", ""},    {"\n", " "},
                                             {"&quot;", "\""},  {"&amp;", "&"}, {"&lt;", "<"},
                                             {"&gt;", ">"}};
    a->size = 0;
    dgm_write_bytes(a, line.data, line.size);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        if (a->size == 0 || !memchr(a->data, changes[i][0][0], a->size)) continue;
        b->size = 0;
        replace_all((dgm_text){(char *)a->data, a->size}, changes[i][0], changes[i][1], b);
        dgm_writer swap = *a;
        *a = *b;
        *b = swap;
    }
    b->size = 0;
    dgm_write_u8(b, ' ');
    dgm_write_bytes(b, a->data, a->size);
    dgm_write_u8(b, ' ');
    dgm_writer swap = *a;
    *a = *b;
    *b = swap;
    tokenize_western(a, b);
}

// sacreBLEU's table of Chinese characters. Two of its ranges are written with five hexadecimal
// digits where Python reads four, so U+2001-2A6D and U+2F81-2FA1 count as Chinese too; kept, since
// scores must agree.
static bool is_chinese(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x303F},
        {0x3100, 0x312F}, {0x31A0, 0x31BF}, {0x31C0, 0x31EF}, {0x3200, 0x33FF},
        {0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A},
        {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};
    if (c < ranges[0][0]) return false;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1]) return true;
    return false;
}

static void tokenize_zh(dgm_text line, dgm_writer *a, dgm_writer *b)
{
    line = dgm_text_trim(line);
    a->size = 0;
    for (size_t pos = 0; pos < line.size;) {
        uint32_t code;
        size_t n = dgm_utf8_next(line.data + pos, line.size - pos, &code);
        bool chinese = is_chinese(code);
        if (chinese) dgm_write_u8(a, ' ');
        dgm_write_bytes(a, line.data + pos, n);
        if (chinese) dgm_write_u8(a, ' ');
        pos += n;
    }
    tokenize_western(a, b);
}

static void tokenize_char(dgm_text line, dgm_writer *a)
{
    a->size = 0;
    for (size_t pos = 0; pos < line.size;) {
        uint32_t code;
        size_t n = dgm_utf8_next(line.data + pos, line.size - pos, &code);
        if (pos) dgm_write_u8(a, ' ');
        dgm_write_bytes(a, line.data + pos, n);
        pos += n;
    }
}

// One of the two pair passes of intl: punctuation next to something that is not a number.
// punct_first: (\p{P})(\P{N}) -> " \1 \2", otherwise (\P{N})(\p{P}) -> "\1 \2 ".
static void rewrite_intl(dgm_text in, dgm_writer *out, bool punct_first)
{
    out->size = 0;
    for (size_t pos = 0; pos < in.size;) {
        uint32_t code, next = 0;
        size_t n = dgm_utf8_next(in.data + pos, in.size - pos, &code), m = 0;
        if (pos + n < in.size) m = dgm_utf8_next(in.data + pos + n, in.size - pos - n, &next);
        unsigned first = dgm_char_class(code), second = m ? dgm_char_class(next) : 0;
        bool hit = punct_first ? (first & DGM_CHAR_PUNCT) && !(second & DGM_CHAR_NUMBER)
                               : !(first & DGM_CHAR_NUMBER) && (second & DGM_CHAR_PUNCT);
        if (!m || !hit) {
            dgm_write_bytes(out, in.data + pos, n);
            pos += n;
            continue;
        }
        if (punct_first) dgm_write_u8(out, ' ');
        dgm_write_bytes(out, in.data + pos, n);
        dgm_write_u8(out, ' ');
        dgm_write_bytes(out, in.data + pos + n, m);
        if (!punct_first) dgm_write_u8(out, ' ');
        pos += n + m;
    }
}

static void tokenize_intl(dgm_text line, dgm_writer *a, dgm_writer *b)
{
    rewrite_intl(line, b, false);
    rewrite_intl((dgm_text){(char *)b->data, b->size}, a, true);
    b->size = 0;
    for (size_t pos = 0; pos < a->size;) {
        uint32_t code;
        size_t n = dgm_utf8_next((char *)a->data + pos, a->size - pos, &code);
        bool symbol = dgm_char_class(code) & DGM_CHAR_SYMBOL;
        if (symbol) dgm_write_u8(b, ' ');
        dgm_write_bytes(b, a->data + pos, n);
        if (symbol) dgm_write_u8(b, ' ');
        pos += n;
    }
    dgm_writer swap = *a;
    *a = *b;
    *b = swap;
}

// Without white space at the end, as Python's rstrip.
static dgm_text trim_end(dgm_text t)
{
    while (t.size) {
        uint32_t code;
        size_t at = dgm_utf8_prev(t.data, t.size);
        dgm_utf8_next(t.data + at, t.size - at, &code);
        if (!dgm_char_is_space(code)) break;
        t.size = at;
    }
    return t;
}

dgm_status dgm_bleu_tokenize_raw(dgm_bleu_tokenizer t, dgm_text line, dgm_writer *a, dgm_writer *b,
                                 dgm_error *err)
{
    line = trim_end(line);
    switch (t) {
    case DGM_BLEU_13A:
        tokenize_13a(line, a, b);
        break;
    case DGM_BLEU_INTL:
        tokenize_intl(line, a, b);
        break;
    case DGM_BLEU_CHAR:
        tokenize_char(line, a);
        break;
    case DGM_BLEU_ZH:
        tokenize_zh(line, a, b);
        break;
    default:
        a->size = 0;
        dgm_write_bytes(a, line.data, line.size);
        break;
    }
    return a->failed || b->failed ? dgm_no_memory(err) : DGM_OK;
}

bool dgm_next_word(dgm_text *rest, dgm_text *word)
{
    uint32_t code;
    while (rest->size) {
        size_t n = dgm_utf8_next(rest->data, rest->size, &code);
        if (!dgm_char_is_space(code)) break;
        rest->data += n;
        rest->size -= n;
    }
    if (rest->size == 0) return false;
    word->data = rest->data;
    while (rest->size) {
        size_t n = dgm_utf8_next(rest->data, rest->size, &code);
        if (dgm_char_is_space(code)) break;
        rest->data += n;
        rest->size -= n;
    }
    word->size = (size_t)(rest->data - word->data);
    return true;
}

dgm_status dgm_bleu_tokenize(dgm_bleu_tokenizer t, dgm_text line, dgm_writer *out, dgm_error *err)
{
    dgm_writer clean = {0}, a = {0}, b = {0};
    dgm_status st = dgm_utf8_repair(line, &clean, NULL, err);
    if (st == DGM_OK)
        st = dgm_bleu_tokenize_raw(t, (dgm_text){(char *)clean.data, clean.size}, &a, &b, err);
    if (st == DGM_OK) {
        dgm_text rest = {(char *)a.data, a.size}, word;
        for (bool first = true; dgm_next_word(&rest, &word); first = false) {
            if (!first) dgm_write_u8(out, ' ');
            dgm_write_bytes(out, word.data, word.size);
        }
        if (out->failed) st = dgm_no_memory(err);
    }
    dgm_writer_free(&clean);
    dgm_writer_free(&a);
    dgm_writer_free(&b);
    return st;
}
