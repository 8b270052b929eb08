// SPDX-License-Identifier: MIT
// A line of text on its way to tokens or back: code points that know where they came from, so that a
// token still has its place in the text after any number of rewritings.
//
// From text to tokens `begin` and `end` are bytes of the text; from tokens to text they are numbers of
// tokens. What a rewriting puts in stands where its neighbour came from.
#ifndef DGM_TEXT_GLYPHS_H
#define DGM_TEXT_GLYPHS_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

typedef struct dgm_glyph {
    uint32_t code;
    uint32_t begin, end;
} dgm_glyph;

// A growing list; start with all zero. `failed` is set when memory ran out, further calls do nothing.
typedef struct dgm_glyphs {
    dgm_glyph *items; // [count]
    size_t count, cap;
    bool failed;
} dgm_glyphs;

void dgm_glyphs_free(dgm_glyphs *g); // accepts NULL and all zero
void dgm_glyphs_add(dgm_glyphs *g, dgm_glyph glyph);
// A code point that stands where that one came from.
void dgm_glyphs_put(dgm_glyphs *g, uint32_t code, const dgm_glyph *where);
// Appends the code points of a text; invalid UTF-8 is read as U+FFFD.
void dgm_glyphs_read(dgm_glyphs *g, dgm_text text);
// Appends the code points of a text that all came from begin .. end.
void dgm_glyphs_read_from(dgm_glyphs *g, dgm_text text, uint32_t begin, uint32_t end);
// Appends some of the glyphs as UTF-8.
void dgm_glyphs_write(const dgm_glyph *glyphs, size_t count, dgm_writer *out);
// Exchanges the two lists and empties the second: a rewriting reads one and writes the other.
void dgm_glyphs_swap(dgm_glyphs *a, dgm_glyphs *b);

#endif
