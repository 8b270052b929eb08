// SPDX-License-Identifier: MIT
// Surfaces of tokens; see surface.h.
#include "text/surface.h"

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"

static const char mark[] = "\xe2\x96\x81"; // U+2581, SentencePiece's space
static const char unknown[] = " \xe2\x81\x87 "; // what the unknown piece decodes to

bool dgm_char_in_word(uint32_t code)
{
    if (code < 0x80) return (code | 0x20) - 'a' < 26 || code - '0' < 10; // most of what is asked
    const unsigned c = dgm_char_class(code);
    return (c & (DGM_CHAR_LETTER | DGM_CHAR_MARK | DGM_CHAR_NUMBER)) != 0 &&
           !(c & DGM_CHAR_SPACELESS);
}

bool dgm_text_begins_in_word(dgm_text t)
{
    uint32_t code = 0;
    if (t.size == 0) return false;
    dgm_utf8_next(t.data, t.size, &code);
    return dgm_char_in_word(code);
}

bool dgm_text_ends_in_word(dgm_text t)
{
    uint32_t code = 0;
    if (t.size == 0) return false;
    const size_t last = dgm_utf8_prev(t.data, t.size);
    dgm_utf8_next(t.data + last, t.size - last, &code);
    return dgm_char_in_word(code);
}

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// "<0xE2>": the byte, or -1.
static int byte_piece(dgm_text p)
{
    if (p.size != 6 || memcmp(p.data, "<0x", 3) != 0 || p.data[5] != '>') return -1;
    const int high = hex(p.data[3]), low = hex(p.data[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// Appends the surface of one token; *inside: it continues a word.
static void write_surface(const dgm_vocab *v, int32_t id, dgm_writer *w, bool *inside)
{
    const dgm_text piece = dgm_vocab_piece(v, id);
    const bool words = dgm_vocab_get_kind(v) == DGM_VOCAB_WORDS;
    *inside = false;
    if (dgm_vocab_is_unknown(v, id)) {
        dgm_write_text(w, unknown);
    } else if (dgm_vocab_is_control(v, id)) {
        return;
    } else if (dgm_vocab_get_kind(v) == DGM_VOCAB_BPE) {
        dgm_vocab_surface(v, id, w, inside);
    } else if (words) {
        dgm_write_u8(w, ' ');
        dgm_write_bytes(w, piece.data, piece.size);
    } else if (byte_piece(piece) >= 0) {
        dgm_write_u8(w, (uint8_t)byte_piece(piece));
        *inside = byte_piece(piece) >= 0x80; // part of a character nobody knows yet
    } else {
        for (size_t i = 0; i < piece.size;) {
            if (piece.size - i >= 3 && memcmp(piece.data + i, mark, 3) == 0) {
                dgm_write_u8(w, ' ');
                i += 3;
            } else {
                dgm_write_u8(w, (uint8_t)piece.data[i++]);
            }
        }
        *inside = dgm_text_begins_in_word(piece); // the space mark is a symbol
    }
}

// Does a word that begins behind the text go on in it? A piece of a character that others complete counts as part of a
// word.
static bool ends_inside(dgm_text t)
{
    uint32_t code = 0;
    if (t.size == 0) return false;
    const size_t last = dgm_utf8_prev(t.data, t.size);
    dgm_utf8_next(t.data + last, t.size - last, &code);
    return code == 0xFFFD ? t.size - last < 3 : dgm_char_in_word(code);
}

dgm_status dgm_surfaces_from_right(dgm_surfaces *s, dgm_error *err)
{
    s->right_breaks = dgm_malloc(((size_t)s->count + 1) * sizeof *s->right_breaks);
    s->right_continues = dgm_malloc(((size_t)s->count + 1) * sizeof *s->right_continues);
    if (!s->right_breaks || !s->right_continues) return dgm_no_memory(err);
    for (int32_t i = 0; i < s->count; i++) {
        if (ends_inside(dgm_surface(s, i)))
            s->right_continues[s->right_continue_count++] = i;
        else
            s->right_breaks[s->right_break_count++] = i;
    }
    return DGM_OK;
}

static atomic_uint_fast64_t opened = 1;

dgm_status dgm_surfaces_open(dgm_surfaces **out, const dgm_vocab *v, dgm_error *err)
{
    *out = NULL;
    dgm_surfaces *s = dgm_calloc(1, sizeof *s);
    if (!s) return dgm_no_memory(err);
    dgm_writer w = {0};
    const size_t n = (size_t)dgm_vocab_size(v);
    s->count = (int32_t)n;
    s->name = 4 * atomic_fetch_add(&opened, 1);
    s->eos = dgm_vocab_eos(v);
    s->at = dgm_malloc((n + 1) * sizeof *s->at);
    s->breaks = dgm_malloc((n + 1) * sizeof *s->breaks);
    s->continues = dgm_malloc((n + 1) * sizeof *s->continues);
    bool full = !s->at || !s->breaks || !s->continues;
    for (int32_t i = 0; !full && i < s->count; i++) {
        bool inside;
        s->at[i] = (uint32_t)w.size;
        write_surface(v, i, &w, &inside);
        if (inside)
            s->continues[s->continue_count++] = i;
        else
            s->breaks[s->break_count++] = i;
    }
    if (!full) s->at[n] = (uint32_t)w.size;
    dgm_write_u8(&w, 0); // never empty
    full = full || w.failed;
    s->bytes = full ? NULL : dgm_writer_take(&w, NULL);
    if (!s->bytes || dgm_surfaces_from_right(s, err) != DGM_OK) {
        dgm_writer_free(&w);
        dgm_surfaces_close(&s);
        return dgm_no_memory(err);
    }
    *out = s;
    return DGM_OK;
}

void dgm_surfaces_close(dgm_surfaces **at)
{
    if (!at || !*at) return;
    dgm_surfaces *s = *at;
    *at = NULL;
    dgm_free(s->at);
    dgm_free(s->bytes);
    dgm_free(s->breaks);
    dgm_free(s->continues);
    dgm_free(s->right_breaks);
    dgm_free(s->right_continues);
    dgm_free(s);
}
