// SPDX-License-Identifier: MIT
// What the sentence splitter knows of words: abbreviations by what may follow them, and words that
// begin sentences and are no names.
#ifndef DGM_TEXT_SENTENCE_WORDS_H
#define DGM_TEXT_SENTENCE_WORDS_H

#include "text/tokenize.h"

typedef enum dgm_dot {
    DGM_DOT_ENDS = 0,  // an ordinary word: its dot ends the sentence
    DGM_DOT_TITLE,     // a name follows ("Dr."): never ends it
    DGM_DOT_MAY_END,   // ends it if a word follows that begins sentences ("Inc.", "Jan.")
    DGM_DOT_LIST_ENDS, // "etc.": ends it unless lower case follows; in German as MAY_END
    DGM_DOT_NUMBER,    // an abbreviation before a number only ("No. 5")
} dgm_dot;

// Is the word in a list of words between spaces, which begins and ends with one?
bool dgm_in_words(const char *list, dgm_text word);

// What the dot behind `word` (given without it) says.
dgm_dot dgm_dot_of(dgm_language lang, dgm_text word);

// A unit of measure: an abbreviation where a number stands before it.
bool dgm_is_unit(dgm_text word);

// Does the word begin sentences, without being a name or, in German, a noun? Without `particles` the
// words that are parts of names do not count ("J.-M. Le Pen").
bool dgm_opens_sentence(dgm_language lang, dgm_text word, bool particles);

// "Chapter 1.", "Abb. 2.": words whose number is followed by a heading.
bool dgm_is_caption(dgm_text word);

#endif
