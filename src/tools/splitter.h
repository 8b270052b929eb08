// SPDX-License-Identifier: MIT
// How a line of text becomes words for the phrase-based tools, and words text again: between
// blanks, or the subwords of a model file.
#ifndef DGM_TOOLS_SPLITTER_H
#define DGM_TOOLS_SPLITTER_H

#include "base/bytes.h"
#include "format/gguf.h"
#include "format/modelfile.h"
#include "text/unicode.h"
#include "text/vocab.h"

typedef struct dgm_splitter {
    dgm_gguf *file;
    dgm_vocab *vocab; // NULL: between blanks
} dgm_splitter;

// subwords NULL: blanks. side: whose subwords.
dgm_status dgm_splitter_open(dgm_splitter *s, const char *subwords, dgm_side side, dgm_error *err);
void dgm_splitter_close(dgm_splitter *s); // accepts all zero

typedef dgm_status (*dgm_word_taker)(void *cookie, dgm_text word, dgm_error *err);

// Hands every word of a line over. Invalid UTF-8 is DGM_ERR_TEXT.
dgm_status dgm_splitter_line(const dgm_splitter *s, dgm_text line, dgm_word_taker take,
                             void *cookie, dgm_error *err);
// Appends words as text: subwords joined, else with one blank between them.
dgm_status dgm_splitter_join(const dgm_splitter *s, const dgm_text *words, size_t count,
                             dgm_writer *out, dgm_error *err);

#endif
