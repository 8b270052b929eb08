// SPDX-License-Identifier: MIT
// A text some stretches of which are replaced by others, and where places of the new text stand in the old one.
//
//     "He is a good friend of mine."     stretch 13 .. 19
//     "He is a good Kumpel of mine."     every place inside of "Kumpel" belongs to "friend"
#ifndef DGM_TEXT_SPLICE_H
#define DGM_TEXT_SPLICE_H

#include "base/bytes.h"
#include "text/unicode.h"
#include "text/vocab.h"

typedef struct dgm_splice {
    size_t from, to;   // in the old text
    size_t begin, end; // in the new one
} dgm_splice;

// Start with all zero; used again from text to text.
typedef struct dgm_spliced {
    dgm_writer text;
    dgm_splice *items; // ascending, apart
    size_t count, cap;
} dgm_spliced;

void dgm_spliced_clear(dgm_spliced *s); // before a text
void dgm_spliced_free(dgm_spliced *s);
// `with` in place of old[from .. to), which lies behind what was replaced before.
dgm_status dgm_splice_add(dgm_spliced *s, dgm_text old, size_t from, size_t to, dgm_text with, dgm_error *err);
dgm_status dgm_splice_end(dgm_spliced *s, dgm_text old, dgm_error *err); // the rest of the old text
// What a stretch of the new text stands for in the old one: of a stretch that was put there, all that it replaced.
dgm_span dgm_splice_span(const dgm_spliced *s, dgm_span span);

#endif
