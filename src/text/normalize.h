// SPDX-License-Identifier: MIT
// Steps that text goes through before it is cut into words: what tokenizer.json calls a normalizer.
//
//   nfc nfd nfkc nfkd     Unicode normal forms
//   lowercase             character by character
//   strip                 no white space at both ends
//   collapse              runs of white space become one space
//   spaces                runs of two or more U+0020 become one
//   charsmap              SentencePiece's compiled map (a trie of replacements), by grapheme
#ifndef DGM_TEXT_NORMALIZE_H
#define DGM_TEXT_NORMALIZE_H

#include "text/glyphs.h"

typedef struct dgm_normalizer dgm_normalizer;

// charsmap: copied; needed by the step of that name alone. An unknown step is DGM_ERR_FORMAT.
dgm_status dgm_normalizer_open(dgm_normalizer **n, const dgm_text *steps, size_t count, const void *charsmap,
                               size_t charsmap_size, dgm_error *err);
void dgm_normalizer_close(dgm_normalizer **n); // sets NULL; accepts NULL inside
dgm_status dgm_normalizer_run(const dgm_normalizer *n, dgm_glyphs *line, dgm_error *err);
// Is there a step of this name?
bool dgm_normalizer_knows(dgm_text step);

#endif
