// SPDX-License-Identifier: MIT
// Text in capitals: models have seen little of it. It is translated in ordinary case and raised again.
#ifndef DGM_TEXT_CAPITALS_H
#define DGM_TEXT_CAPITALS_H

#include "text/vocab.h"

// Appends a text without lower-case letters to out in ordinary case: every word as the vocabulary knows it
// best, so that names keep a capital and acronyms all of theirs ("I LIVE IN LONDON, USA" becomes "I live
// in London, USA"). *lowered is false, and nothing is appended, where the text is in ordinary case
// already, has no word to lower, or would change its length in bytes: positions stay as they are.
dgm_status dgm_capitals_lower(const dgm_vocab *v, dgm_text text, dgm_tokens *scratch,
                              dgm_writer *out, bool *lowered, dgm_error *err);

// In place, without a change of length: letters whose capital is longer or shorter stay.
void dgm_capitals_raise(char *text, size_t size);

#endif
