// SPDX-License-Identifier: MIT
// Text before and after translation.
#ifndef DRAGOMAN_TEXT_H
#define DRAGOMAN_TEXT_H

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where a sentence stands in a text: bytes from begin to end, without white space at either end.
typedef struct dgm_sentence {
    size_t begin, end;
} dgm_sentence;

// Finds the sentences of a text of any length, which may have line breaks; an empty line ends a
// sentence. Knows abbreviations, ordinals, numbers, initials, quotes and brackets of en, de, fr, es
// and it (`language`: a code such as "de" or "de-AT"; NULL or another one: what holds everywhere), and
// the stops of other scripts. This is what settings.split does with a line.
DGM_API dgm_status dgm_sentences(const char *text, size_t size, const char *language,
                                 dgm_sentence **sentences, size_t *count, dgm_error *error);
DGM_API void dgm_sentences_free(dgm_sentence **sentences);

// Text as models have seen it, valid UTF-8 of any length: what looks the same and is written in other bytes.
// Letters and their marks are composed (NFC), full-width letters and ligatures become plain ones, soft
// hyphens, zero-width characters and control characters are left out (docs/manual/TEXT.md says which). A
// translator does this with every line unless settings.raw is set. *tidy ends with NUL; dgm_string_free
// releases it.
DGM_API dgm_status dgm_tidy(const char *text, size_t size, char **tidy, size_t *tidy_size,
                            dgm_error *error);

// A sentence in capitals, or a headline in Title Case, in ordinary case, as the translator's model gets it;
// names and acronyms keep their capitals as far as its vocabulary knows them. Other text comes back as it is, and
// so does all text where the vocabulary is no SentencePiece model. As long as before; released as above.
DGM_API dgm_status dgm_ordinary_case(const dgm_translator *translator, const char *text, size_t size,
                                     char **ordinary, size_t *ordinary_size, dgm_error *error);

// Does this line of constraints (dgm_input.constraints) look like a row of a glossary, which would be a
// mistake: two entries without any mark, the first of which stands in the text to translate? 1 or 0.
DGM_API int dgm_constraints_like_terms(const char *constraints, size_t constraints_size,
                                       const char *text, size_t text_size);

#ifdef __cplusplus
}
#endif
#endif
