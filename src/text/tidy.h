// SPDX-License-Identifier: MIT
// Text as models have seen it: what looks the same on a screen and is other bytes. Letters and their marks
// are composed, full-width forms and ligatures become plain letters, and what nobody sees is left out.
#ifndef DGM_TEXT_TIDY_H
#define DGM_TEXT_TIDY_H

#include "text/unicode.h"

// Start with all zero; used again by every call.
typedef struct dgm_tidied {
    dgm_writer text;
    uint32_t *from; // [text.size + 1] where in the original a byte comes from, in ascending order
    size_t from_cap;
    dgm_writer scratch;
} dgm_tidied;

void dgm_tidied_free(dgm_tidied *t);

// Tidies valid UTF-8; *changed is false, and nothing is written, where there is nothing to do, as in nearly
// all texts:
//   - letters and marks behind them of Latin, Greek, Cyrillic, kana and Hangul are composed (NFC); more marks on one
//     letter than any language has are left out, all of them;
//   - full-width letters, digits and signs become ASCII, half-width kana full kana, "ﬁ" becomes "fi"; in text with
//     Han, kana or Hangul, whose punctuation is full-width, the signs stay;
//   - soft hyphens, zero-width spaces and joiners, byte order marks, marks of direction and control characters are
//     left out; joiners stay where scripts and emoji need them.
dgm_status dgm_tidy_text(dgm_text text, dgm_tidied *out, bool *changed, dgm_error *err);

#endif
