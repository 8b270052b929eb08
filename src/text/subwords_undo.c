// SPDX-License-Identifier: MIT
// From tokens of byte-pair encodings to text, and what single tokens write; see subwords.h.
#include <string.h>

#include "base/mem.h"
#include "text/subwords_private.h"
#include "text/surface.h"
#include "text/unicode.h"

// ---- letters and bytes --------------------------------------------------------------------------

static bool is_printable(unsigned byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

uint32_t dgm_byte_letter(unsigned char byte)
{
    if (is_printable(byte)) return byte;
    uint32_t code = 256;
    for (unsigned b = 0; b < byte; b++) code += !is_printable(b);
    return code;
}

int dgm_letter_byte(uint32_t code)
{
    if (code < 256) return is_printable(code) ? (int)code : -1;
    for (unsigned b = 0, letter = 256; b < 256; b++)
        if (!is_printable(b) && letter++ == code) return (int)b;
    return -1;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int dgm_byte_token(dgm_text t)
{
    if (t.size != 6 || memcmp(t.data, "<0x", 3) != 0 || t.data[5] != '>') return -1;
    const int high = hex(t.data[3]), low = hex(t.data[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// ---- GPT-2's words ----------------------------------------------------------------------------

enum { SPACE, LETTER, NUMBER, OTHER };

static int kind_of(uint32_t code)
{
    const unsigned flags = dgm_char_class(code);
    if (flags & DGM_CHAR_SPACE) return SPACE;
    if (flags & DGM_CHAR_LETTER) return LETTER;
    return flags & DGM_CHAR_NUMBER ? NUMBER : OTHER;
}

static size_t contraction(const dgm_glyph *g, size_t left)
{
    if (left < 2 || g[0].code != '\'') return 0;
    const uint32_t a = g[1].code, b = left > 2 ? g[2].code : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

// Length of the word at g.
static size_t word_length(const dgm_glyph *g, size_t left)
{
    size_t n = contraction(g, left);
    if (n) return n;
    const size_t lead = g[0].code == ' ' && left > 1 && kind_of(g[1].code) != SPACE;
    const int kind = kind_of(g[lead].code);
    for (n = lead + 1; n < left && kind_of(g[n].code) == kind;) n++;
    // of white space before a word, the last one goes with the word
    return kind == SPACE && n > 1 && n < left ? n - 1 : n;
}

dgm_status dgm_split_gpt2(const dgm_glyphs *line, dgm_ranges *words, dgm_error *err)
{
    for (size_t i = 0; i < line->count;) {
        const size_t n = word_length(line->items + i, line->count - i);
        DGM_TRY(dgm_grow(&words->items, &words->cap, words->count + 1, sizeof *words->items, err));
        words->items[words->count++] = (dgm_range){i, i + n};
        i += n;
    }
    return DGM_OK;
}

// ---- decode ---------------------------------------------------------------------------------

static bool ends_with(dgm_text t, const char *end, size_t size)
{
    return size > 0 && t.size >= size && memcmp(t.data + t.size - size, end, size) == 0;
}

static bool starts_with(dgm_text t, const char *begin, size_t size)
{
    return size > 0 && t.size >= size && memcmp(t.data, begin, size) == 0;
}

// Words with a space between them, or none where separators say so.
static void join_words(const dgm_subwords *s, const dgm_subword *tokens, size_t count, dgm_glyphs *out)
{
    bool glued = true;
    for (size_t i = 0; i < count; i++) {
        dgm_text t = tokens[i].text;
        bool more = false;
        if (!tokens[i].plain && s->style == DGM_BPE_JOINER && starts_with(t, s->separator, s->separator_size)) {
            t.data += s->separator_size;
            t.size -= s->separator_size;
            glued = true;
        }
        if (s->style == DGM_BPE_SPACER) {
            const bool spaced = starts_with(t, s->separator, s->separator_size);
            glued = i == 0 || !(spaced || tokens[i].plain);
            if (spaced && !tokens[i].plain) t = (dgm_text){t.data + s->separator_size, t.size - s->separator_size};
        } else if (!tokens[i].plain && ends_with(t, s->separator, s->separator_size)) {
            t.size -= s->separator_size;
            more = true;
        }
        if (!glued) dgm_glyphs_add(out, (dgm_glyph){' ', (uint32_t)i, (uint32_t)i});
        dgm_glyphs_read_from(out, t, (uint32_t)i, (uint32_t)i + 1);
        glued = more;
    }
}

// The bytes of all tokens, and the token of each.
typedef struct byte_line {
    dgm_writer bytes;
    uint32_t *from; // [bytes.size]
    size_t cap;
    bool failed;
} byte_line;

static void put_byte(byte_line *b, uint8_t byte, size_t token)
{
    dgm_write_u8(&b->bytes, byte);
    b->failed = b->failed || b->bytes.failed ||
                dgm_grow(&b->from, &b->cap, b->bytes.size, sizeof *b->from, NULL) != DGM_OK;
    if (!b->failed) b->from[b->bytes.size - 1] = (uint32_t)token;
}

// The bytes of a token of the vocabulary.
static void put_token(const dgm_subwords *s, dgm_text t, size_t token, byte_line *b)
{
    const int byte = s->style == DGM_BPE_METASPACE ? dgm_byte_token(t) : -1;
    if (byte >= 0) {
        put_byte(b, (uint8_t)byte, token);
        return;
    }
    for (size_t pos = 0; pos < t.size && !b->failed;) {
        uint32_t code;
        char plain[4];
        size_t n = dgm_utf8_next(t.data + pos, t.size - pos, &code);
        pos += n;
        const int letter = s->style == DGM_BPE_BYTE_LEVEL ? dgm_letter_byte(code) : -1;
        if (letter >= 0) {
            put_byte(b, (uint8_t)letter, token);
            continue;
        }
        if (s->style == DGM_BPE_METASPACE && code == DGM_SPACE_MARK) code = ' ';
        n = dgm_utf8_put(code, plain);
        for (size_t i = 0; i < n; i++) put_byte(b, (uint8_t)plain[i], token);
    }
}

static void read_bytes(const byte_line *b, size_t begin, dgm_glyphs *out)
{
    const char *data = (const char *)b->bytes.data;
    for (size_t pos = begin; pos < b->bytes.size;) {
        uint32_t code;
        const size_t n = dgm_utf8_next(data + pos, b->bytes.size - pos, &code);
        dgm_glyphs_add(out, (dgm_glyph){code, b->from[pos], b->from[pos + n - 1] + 1});
        pos += n;
    }
}

dgm_status dgm_subwords_decode(const dgm_subwords *s, const dgm_subword *tokens, size_t count, dgm_glyphs *out,
                               dgm_error *err)
{
    byte_line b = {0};
    dgm_status st = DGM_OK;
    if (s->style == DGM_BPE_BYTE_LEVEL || s->style == DGM_BPE_METASPACE) {
        for (size_t i = 0; i < count; i++) {
            for (size_t k = 0; tokens[i].plain && k < tokens[i].text.size; k++)
                put_byte(&b, (uint8_t)tokens[i].text.data[k], i);
            if (!tokens[i].plain) put_token(s, tokens[i].text, i, &b);
        }
        const bool space = s->prefix_space && b.bytes.size && b.bytes.data[0] == ' ';
        if (!b.failed) read_bytes(&b, space, out);
    } else {
        join_words(s, tokens, count, out);
        if (s->moses && !out->failed) st = dgm_sacremoses_detokenize(&s->rules, out, err);
    }
    const bool failed = b.failed || out->failed;
    dgm_writer_free(&b.bytes);
    dgm_free(b.from);
    return st == DGM_OK && failed ? dgm_no_memory(err) : st;
}

size_t dgm_subwords_settled(const dgm_subwords *s, const dgm_subword *tokens, size_t count)
{
    if (!s->moses || count == 0) return count;
    size_t first = count - 1; // "@-@" takes the space before it away
    while (first > 0 && ends_with(tokens[first - 1].text, s->separator, s->separator_size)) first--;
    return starts_with(tokens[first].text, "@", 1) ? first : count;
}

// ---- single tokens --------------------------------------------------------------------------

void dgm_subwords_surface(const dgm_subwords *s, dgm_text token, dgm_writer *out, bool *inside)
{
    *inside = false;
    if (s->style == DGM_BPE_SUBWORD_NMT || s->style == DGM_BPE_WORDS) {
        // The space of a word stands behind it: a token tells whether it ends a word, not whether it begins one.
        const bool more = ends_with(token, s->separator, s->separator_size);
        dgm_write_bytes(out, token.data, token.size - (more ? s->separator_size : 0));
        if (!more) dgm_write_u8(out, ' ');
        return;
    }
    if (s->style == DGM_BPE_JOINER) {
        const bool glued = starts_with(token, s->separator, s->separator_size);
        if (glued) token = (dgm_text){token.data + s->separator_size, token.size - s->separator_size};
        if (ends_with(token, s->separator, s->separator_size)) token.size -= s->separator_size;
        if (!glued) dgm_write_u8(out, ' ');
        dgm_write_bytes(out, token.data, token.size);
        *inside = glued && dgm_text_begins_in_word(token);
        return;
    }
    if (s->style == DGM_BPE_SPACER) {
        const bool spaced = starts_with(token, s->separator, s->separator_size);
        if (spaced) token = (dgm_text){token.data + s->separator_size, token.size - s->separator_size};
        if (spaced) dgm_write_u8(out, ' ');
        dgm_write_bytes(out, token.data, token.size);
        *inside = !spaced && dgm_text_begins_in_word(token);
        return;
    }
    const size_t start = out->size;
    byte_line b = {0};
    put_token(s, token, 0, &b);
    if (!b.failed) dgm_write_bytes(out, b.bytes.data, b.bytes.size);
    if (b.failed) out->failed = true;
    dgm_writer_free(&b.bytes);
    dgm_free(b.from);
    if (out->failed || out->size == start) return;
    const dgm_text written = {(const char *)out->data + start, out->size - start};
    // a byte that continues a character may be part of a word
    *inside = ((unsigned char)written.data[0] & 0xC0) == 0x80 || dgm_text_begins_in_word(written);
}

bool dgm_subwords_begins_word(const dgm_subwords *s, dgm_text token)
{
    uint32_t code = 0;
    if (token.size) dgm_utf8_next(token.data, token.size, &code);
    if (s->style == DGM_BPE_BYTE_LEVEL) return code == dgm_byte_letter(' ');
    if (s->style == DGM_BPE_METASPACE) return code == DGM_SPACE_MARK;
    if (s->style == DGM_BPE_SPACER) return starts_with(token, s->separator, s->separator_size);
    return s->style != DGM_BPE_JOINER || !starts_with(token, s->separator, s->separator_size);
}
