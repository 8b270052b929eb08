// SPDX-License-Identifier: MIT
// Code points with their origin; see glyphs.h.
#include "text/glyphs.h"

#include "base/mem.h"
#include "text/unicode.h"

void dgm_glyphs_free(dgm_glyphs *g)
{
    if (!g) return;
    dgm_free(g->items);
    *g = (dgm_glyphs){0};
}

void dgm_glyphs_add(dgm_glyphs *g, dgm_glyph glyph)
{
    if (g->failed) return;
    if (g->count == g->cap && dgm_grow(&g->items, &g->cap, g->count + 1, sizeof *g->items, NULL) != DGM_OK) {
        g->failed = true;
        return;
    }
    g->items[g->count++] = glyph;
}

void dgm_glyphs_put(dgm_glyphs *g, uint32_t code, const dgm_glyph *where)
{
    dgm_glyphs_add(g, (dgm_glyph){code, where->begin, where->end});
}

void dgm_glyphs_read(dgm_glyphs *g, dgm_text text)
{
    for (size_t pos = 0; pos < text.size && !g->failed;) {
        uint32_t code;
        const size_t n = dgm_utf8_next(text.data + pos, text.size - pos, &code);
        dgm_glyphs_add(g, (dgm_glyph){code, (uint32_t)pos, (uint32_t)(pos + n)});
        pos += n;
    }
}

void dgm_glyphs_read_from(dgm_glyphs *g, dgm_text text, uint32_t begin, uint32_t end)
{
    for (size_t pos = 0; pos < text.size && !g->failed;) {
        uint32_t code;
        pos += dgm_utf8_next(text.data + pos, text.size - pos, &code);
        dgm_glyphs_add(g, (dgm_glyph){code, begin, end});
    }
}

void dgm_glyphs_write(const dgm_glyph *glyphs, size_t count, dgm_writer *out)
{
    for (size_t i = 0; i < count; i++) {
        char bytes[4];
        dgm_write_bytes(out, bytes, dgm_utf8_put(glyphs[i].code, bytes));
    }
}

void dgm_glyphs_swap(dgm_glyphs *a, dgm_glyphs *b)
{
    const dgm_glyphs old = *a;
    *a = *b;
    *b = old;
    a->failed = a->failed || b->failed;
    b->count = 0;
}
