// SPDX-License-Identifier: MIT
// Headlines in Title Case ("Angela Merkel Visits New York"): models have seen more of ordinary case, and take
// capitals for names. They are translated in ordinary case.
#ifndef DGM_TEXT_TITLES_H
#define DGM_TEXT_TITLES_H

#include "text/tokenize.h"
#include "text/vocab.h"

// Is it a headline: three words and more, two of them behind the first with a capital and lower-case letters? In
// English all begin with a capital but articles, prepositions and conjunctions; in German, French, Spanish and
// Italian those do, too, or it is ordinary text. In other languages never.
bool dgm_is_title(dgm_text text, dgm_language lang);

// Appends a headline to out in ordinary case: words but the first lose their capital where the vocabulary
// has them without, so that names keep it. *lowered is false, and nothing is appended, where the text
// is no headline or no word would change; its length in bytes does not.
dgm_status dgm_titles_lower(const dgm_vocab *v, dgm_text text, dgm_language lang, dgm_writer *out,
                            bool *lowered, dgm_error *err);

// English, in place: every word but articles, short prepositions and conjunctions gets a capital.
void dgm_titles_raise(char *text, size_t size);

#endif
