// SPDX-License-Identifier: MIT
// What the files of sacremoses.h share: classes of characters as Moses' scripts see them, rewriting.
#ifndef DGM_TEXT_SACREMOSES_PRIVATE_H
#define DGM_TEXT_SACREMOSES_PRIVATE_H

#include "text/sacremoses.h"

// Perl's classes as sacremoses knows them: nothing above U+FFFF, Han and Hangul by language alone.
bool dgm_moses_alpha(const dgm_moses_rules *rules, uint32_t code);
bool dgm_moses_alnum(const dgm_moses_rules *rules, uint32_t code);
bool dgm_moses_number(uint32_t code);
bool dgm_moses_lower(uint32_t code);
bool dgm_moses_currency(uint32_t code);
bool dgm_moses_cjk(uint32_t code); // written without spaces, for the detokeniser

// A list that is rewritten again and again: `line` is the text, `spare` gets the next form of it.
typedef struct dgm_rewriting {
    dgm_glyphs *line;
    dgm_glyphs spare;
} dgm_rewriting;

// The rest of the line from `from` on, and the new form takes the place of the old.
void dgm_rewriting_end(dgm_rewriting *r, size_t from);
void dgm_rewriting_trim(dgm_rewriting *r);   // without white space at both ends
void dgm_rewriting_spaces(dgm_rewriting *r); // runs of U+0020 become one

// What a word in front of a dot is.
typedef enum dgm_moses_prefix {
    DGM_MOSES_WORD,
    DGM_MOSES_ABBREVIATION,
    DGM_MOSES_BEFORE_NUMBER // an abbreviation before numbers alone
} dgm_moses_prefix;
dgm_moses_prefix dgm_moses_find_prefix(const dgm_moses_rules *rules, dgm_text word);

void dgm_moses_punctuation(const dgm_moses_rules *rules, dgm_rewriting *r);

#endif
