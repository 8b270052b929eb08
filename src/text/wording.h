// SPDX-License-Identifier: MIT
// How a line of text becomes words for the phrase-based systems, and words text again: subwords of a
// vocabulary, words by Moses' rules, or what stands between blanks.
#ifndef DGM_TEXT_WORDING_H
#define DGM_TEXT_WORDING_H

#include "text/tokenize.h"
#include "text/vocab.h"

// All zero: blanks.
typedef struct dgm_wording {
    const dgm_vocab *subwords; // NULL: words
    bool moses;                // of a text, by the rules of `language`
    dgm_language language;
} dgm_wording;

typedef dgm_status (*dgm_word_taker)(void *cookie, dgm_text word, dgm_error *err);

// Hands every word of a line over; it is borrowed during that call. Invalid UTF-8 is DGM_ERR_TEXT.
dgm_status dgm_wording_split(const dgm_wording *w, dgm_text line, dgm_word_taker take, void *cookie,
                             dgm_error *err);
// Appends words as text; of blanks, one stands between two of them.
dgm_status dgm_wording_join(const dgm_wording *w, const dgm_text *words, size_t count,
                            dgm_writer *out, dgm_error *err);

#endif
