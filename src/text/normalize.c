// SPDX-License-Identifier: MIT
// Normalising steps over glyphs; see normalize.h.
//
// A compiled map is a little-endian u32, the size of a trie, the trie, and replacements that end with
// NUL. The trie is a double array of 32-bit units (Darts-clone): from a unit, the byte c leads to the unit
// at its offset xor c, which is a child if its label is c; a unit with a value has it at the offset itself.
#include "text/normalize.h"

#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "text/unicode.h"

typedef enum step { NFC, NFD, NFKC, NFKD, LOWERCASE, STRIP, COLLAPSE, SPACES, CHARSMAP, STEPS } step;
static const char *const step_names[STEPS] = {"nfc",   "nfd",      "nfkc",   "nfkd",    "lowercase",
                                              "strip", "collapse", "spaces", "charsmap"};

enum { STEPS_MOST = 16 };

struct dgm_normalizer {
    step steps[STEPS_MOST];
    size_t count;
    uint32_t *trie; // [units]
    size_t units;
    char *text; // replacements
    size_t text_size;
};

static size_t find_step(dgm_text name)
{
    size_t i = 0;
    while (i < STEPS && !dgm_text_equal(name, dgm_text_of(step_names[i]))) i++;
    return i;
}

bool dgm_normalizer_knows(dgm_text name)
{
    return find_step(name) < STEPS;
}

// ---- open -----------------------------------------------------------------------------------

static dgm_status read_charsmap(dgm_normalizer *n, const void *data, size_t size, dgm_error *err)
{
    dgm_reader r = dgm_reader_over(data, size);
    const uint32_t bytes = dgm_read_u32(&r);
    DGM_FAIL_IF(r.bad || bytes < 1024 || bytes % 4 != 0 || bytes > dgm_reader_left(&r), err, DGM_ERR_FORMAT,
                "the charsmap of %zu bytes has no trie of %u bytes", size, (unsigned)bytes);
    n->units = bytes / 4;
    n->trie = dgm_malloc(bytes);
    n->text_size = dgm_reader_left(&r) - bytes;
    n->text = dgm_malloc(n->text_size + 1);
    if (!n->trie || !n->text) return dgm_no_memory(err);
    for (size_t i = 0; i < n->units; i++) n->trie[i] = dgm_read_u32(&r);
    if (n->text_size) memcpy(n->text, dgm_read_bytes(&r, n->text_size), n->text_size);
    n->text[n->text_size] = 0;
    return DGM_OK;
}

static dgm_status open_steps(dgm_normalizer *n, const dgm_text *steps, size_t count, dgm_error *err)
{
    DGM_FAIL_IF(count > STEPS_MOST, err, DGM_ERR_FORMAT, "%zu normalising steps; at most %d are possible", count,
                STEPS_MOST);
    for (size_t i = 0; i < count; i++) {
        const size_t s = find_step(steps[i]);
        DGM_FAIL_IF(s == STEPS, err, DGM_ERR_FORMAT, "unknown normalising step '%.*s'",
                    (int)(steps[i].size < 60 ? steps[i].size : 60), steps[i].data);
        DGM_FAIL_IF(s == CHARSMAP && !n->trie, err, DGM_ERR_FORMAT, "the step charsmap has no map");
        n->steps[n->count++] = (step)s;
    }
    return DGM_OK;
}

dgm_status dgm_normalizer_open(dgm_normalizer **out, const dgm_text *steps, size_t count, const void *charsmap,
                               size_t charsmap_size, dgm_error *err)
{
    *out = NULL;
    dgm_normalizer *n = dgm_calloc(1, sizeof *n);
    if (!n) return dgm_no_memory(err);
    dgm_status st = charsmap_size ? read_charsmap(n, charsmap, charsmap_size, err) : DGM_OK;
    if (st == DGM_OK) st = open_steps(n, steps, count, err);
    if (st != DGM_OK) dgm_normalizer_close(&n);
    *out = n;
    return st;
}

void dgm_normalizer_close(dgm_normalizer **n)
{
    if (!n || !*n) return;
    dgm_free((*n)->trie);
    dgm_free((*n)->text);
    dgm_free(*n);
    *n = NULL;
}

// ---- the map ----------------------------------------------------------------------------------

static size_t offset_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

// The replacement of exactly these bytes; data NULL: none.
static dgm_text look_up(const dgm_normalizer *n, const char *key, size_t size)
{
    const dgm_text none = {NULL, 0};
    size_t at = offset_of(n->trie[0]);
    uint32_t unit = 0;
    bool valued = false;
    for (size_t i = 0; i < size; i++) {
        const uint32_t c = (unsigned char)key[i];
        at ^= c;
        if (c == 0 || at >= n->units) return none;
        unit = n->trie[at];
        if ((unit & (1u << 31 | 0xff)) != c) return none;
        at ^= offset_of(unit);
        valued = unit >> 8 & 1;
    }
    if (!valued || at >= n->units) return none;
    const size_t value = n->trie[at] & 0x7fffffff;
    if (value > n->text_size) return none;
    return (dgm_text){n->text + value, strlen(n->text + value)};
}

static void map_characters(const dgm_normalizer *n, const dgm_glyph *g, size_t count, dgm_glyphs *out)
{
    enum { WHOLE = 6 }; // graphemes of fewer bytes are looked up as one
    char bytes[WHOLE + 4];
    size_t size = 0;
    for (size_t i = 0; i < count && size < WHOLE; i++) size += dgm_utf8_put(g[i].code, bytes + size);
    const dgm_text whole = size < WHOLE ? look_up(n, bytes, size) : (dgm_text){NULL, 0};
    if (whole.data) {
        dgm_glyphs_read_from(out, whole, g[0].begin, g[count - 1].end);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const dgm_text one = look_up(n, bytes, dgm_utf8_put(g[i].code, bytes));
        if (one.data)
            dgm_glyphs_read_from(out, one, g[i].begin, g[i].end);
        else
            dgm_glyphs_add(out, g[i]);
    }
}

// ---- steps ----------------------------------------------------------------------------------

// A grapheme in one of the normal forms. One that is longer than any real one stays as it is.
static void normal_form(step s, const dgm_glyph *g, size_t count, dgm_glyphs *out)
{
    enum { LONGEST = 64, DECOMPOSED = 18 };
    utf8proc_int32_t codes[LONGEST * DECOMPOSED];
    const bool compatible = s == NFKC || s == NFKD;
    const utf8proc_option_t options = (utf8proc_option_t)(
        UTF8PROC_STABLE | (s == NFC || s == NFKC ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
        (compatible ? UTF8PROC_COMPAT : 0));
    size_t n = 0;
    int boundary = 0;
    bool fits = count <= LONGEST;
    for (size_t i = 0; fits && i < count; i++) {
        const utf8proc_ssize_t k = utf8proc_decompose_char((utf8proc_int32_t)g[i].code, codes + n, DECOMPOSED,
                                                           options, &boundary);
        fits = k >= 0 && k <= DECOMPOSED;
        if (fits) n += (size_t)k;
    }
    // marks in canonical order
    for (size_t i = 1; fits && i < n; i++)
        for (size_t k = i; k > 0; k--) {
            const int here = utf8proc_get_property(codes[k])->combining_class;
            if (here == 0 || utf8proc_get_property(codes[k - 1])->combining_class <= here) break;
            const utf8proc_int32_t other = codes[k - 1];
            codes[k - 1] = codes[k];
            codes[k] = other;
        }
    const utf8proc_ssize_t made =
        fits ? utf8proc_normalize_utf32(codes, (utf8proc_ssize_t)n, options) : -1;
    if (made < 0) {
        for (size_t i = 0; i < count; i++) dgm_glyphs_add(out, g[i]);
        return;
    }
    for (utf8proc_ssize_t i = 0; i < made; i++)
        dgm_glyphs_add(out, (dgm_glyph){(uint32_t)codes[i], g[0].begin, g[count - 1].end});
}

static void by_grapheme(const dgm_normalizer *n, step s, const dgm_glyphs *line, dgm_glyphs *out)
{
    for (size_t i = 0; i < line->count;) {
        size_t end = i + 1;
        while (end < line->count && !dgm_char_break_between(line->items[end - 1].code, line->items[end].code))
            end++;
        if (s == CHARSMAP)
            map_characters(n, line->items + i, end - i, out);
        else if (end == i + 1 && line->items[i].code < 0x80)
            dgm_glyphs_add(out, line->items[i]);
        else
            normal_form(s, line->items + i, end - i, out);
        i = end;
    }
}

static void change_spaces(step s, const dgm_glyphs *line, dgm_glyphs *out)
{
    size_t begin = 0, end = line->count;
    while (s == STRIP && begin < end && dgm_char_is_space(line->items[begin].code)) begin++;
    while (s == STRIP && end > begin && dgm_char_is_space(line->items[end - 1].code)) end--;
    for (size_t i = begin; i < end; i++) {
        dgm_glyph g = line->items[i];
        if (s == COLLAPSE && dgm_char_is_space(g.code)) g.code = ' ';
        if (s != STRIP && g.code == ' ' && out->count && out->items[out->count - 1].code == ' ')
            out->items[out->count - 1].end = g.end;
        else
            dgm_glyphs_add(out, g);
    }
}

dgm_status dgm_normalizer_run(const dgm_normalizer *n, dgm_glyphs *line, dgm_error *err)
{
    dgm_glyphs out = {0};
    for (size_t i = 0; i < n->count; i++) {
        const step s = n->steps[i];
        if (s == LOWERCASE) {
            for (size_t k = 0; k < line->count; k++)
                line->items[k].code = dgm_char_lower(line->items[k].code);
            continue;
        }
        if (s == STRIP || s == COLLAPSE || s == SPACES)
            change_spaces(s, line, &out);
        else
            by_grapheme(n, s, line, &out);
        dgm_glyphs_swap(line, &out);
    }
    dgm_glyphs_free(&out);
    return line->failed ? dgm_no_memory(err) : DGM_OK;
}
