// SPDX-License-Identifier: MIT
// Tokeniser, detokeniser and punctuation normaliser that write what sacremoses writes, the Python
// port of Moses' scripts: models that were trained on text so prepared (FSMT, fairseq, Nematus) want
// exactly those tokens. Own implementation of the same rules, over code points with their origin.
//
// (tokenize.h has the rules of Dragoman's own word models: theirs keep names of files together,
// follow quotes by their shape, and every token is a piece of the text.)
#ifndef DGM_TEXT_SACREMOSES_H
#define DGM_TEXT_SACREMOSES_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/status.h"
#include "text/glyphs.h"
#include "text/tokenize.h"

typedef enum dgm_moses_option {
    DGM_MOSES_AGGRESSIVE = 1,  // a hyphen between letters or digits is a token of its own, "@-@"
    DGM_MOSES_ESCAPE = 2,      // & | < > ' " [ ] as entities (they are undone in any case)
    DGM_MOSES_PUNCTUATION = 4, // first MosesPunctNormalizer: quotes, dashes and spaces in few forms
    DGM_MOSES_UNICODE = 8,     // with it: full-width punctuation replaced before, control characters
                               // removed behind (as FSMT's tokeniser does)
} dgm_moses_option;

// The rules of one language: what follows from its code.
typedef struct dgm_moses_rules {
    char code[4];           // "de", "pt"; "" is unknown: abbreviations as in English
    const char *prefixes;   // abbreviations between blanks; "#" before one: only before a number
    const char *initials;   // letters that stand for words
    bool capitals, numbers; // so do A to Z, and numbers of one or two digits ("am 3. Oktober")
    bool han, kana, hangul; // are these letters? (each character of others' text stands alone)
    unsigned options;       // dgm_moses_option, combined
} dgm_moses_rules;

// language: "de", "de-AT", "deu"; anything else has the rules that sacremoses takes for it.
void dgm_moses_rules_init(dgm_moses_rules *rules, dgm_text language, unsigned options);

// Tokens of a line: ranges of `line`, which is rewritten (normalised, entities and "@-@" written out).
dgm_status dgm_sacremoses_tokenize(const dgm_moses_rules *rules, dgm_glyphs *line,
                                   dgm_ranges *tokens, dgm_error *err);
// Tokens, separated by one space, to text: `line` is rewritten.
dgm_status dgm_sacremoses_detokenize(const dgm_moses_rules *rules, dgm_glyphs *line, dgm_error *err);

// The same from text to text, appended to out; undo: tokens to text.
dgm_status dgm_sacremoses_line(const dgm_moses_rules *rules, bool undo, dgm_text line,
                               dgm_writer *out, dgm_error *err);

#endif
