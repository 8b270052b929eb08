// SPDX-License-Identifier: MIT
// Tokeniser and detokeniser by the conventions of Moses: punctuation stands apart, numbers with
// separators, known abbreviations and runs of dots stay whole, apostrophes follow the language
// (English "John 's", French "l' eau"). Own implementation; rules for en, de, fr, es, it, generic
// rules otherwise.
//
// Without escaping every token is a piece of the text, so a token is its byte span.
#ifndef DGM_TEXT_TOKENIZE_H
#define DGM_TEXT_TOKENIZE_H

#include <stdbool.h>

#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "text/unicode.h"

typedef enum dgm_language {
    DGM_LANG_OTHER = 0,
    DGM_LANG_EN,
    DGM_LANG_DE,
    DGM_LANG_FR,
    DGM_LANG_ES,
    DGM_LANG_IT,
} dgm_language;

// From a code such as "de", "de-AT", "deu", "ger"; anything else is DGM_LANG_OTHER.
dgm_language dgm_language_of(dgm_text code);

typedef struct dgm_range {
    size_t begin, end;
} dgm_range;

// A growing list of ranges; start with all zero. Functions replace the content.
typedef struct dgm_ranges {
    dgm_range *items;
    size_t count, cap;
} dgm_ranges;

void dgm_ranges_free(dgm_ranges *r);

// Tokens of one line. Control characters and white space separate and belong to no token.
dgm_status dgm_moses_tokenize(dgm_text line, dgm_language lang, dgm_ranges *tokens, dgm_error *err);

// Appends the tokens of a line to out, separated by one space; escape writes & | < > ' " [ ] as
// Moses does (&amp; &#124; &lt; &gt; &apos; &quot; &#91; &#93;).
dgm_status dgm_moses_tokenize_line(dgm_text line, dgm_language lang, bool escape, dgm_writer *out,
                                   dgm_error *err);

// Tokens to text, appended to out. spans (NULL or [count]): where each token stands in the
// appended text. unescape undoes the entities above.
dgm_status dgm_moses_detokenize(const dgm_text *tokens, size_t count, dgm_language lang,
                                bool unescape, dgm_writer *out, dgm_range *spans, dgm_error *err);
// The same for a line of tokens separated by spaces.
dgm_status dgm_moses_detokenize_line(dgm_text line, dgm_language lang, bool unescape,
                                     dgm_writer *out, dgm_error *err);

// Is `word` (without its final dot) an abbreviation after which a sentence does not end? 1 = yes,
// 2 = only before a number ("No. 5"), 0 = no.
int dgm_abbreviation(dgm_language lang, dgm_text word);

// What Moses writes in place of a character that its formats use for themselves; NULL: itself.
const char *dgm_moses_entity(uint32_t code);

#endif
