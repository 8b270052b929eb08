// SPDX-License-Identifier: MIT
// Words as OpenNMT's tokeniser cuts them (pyonmttok, its modes conservative and aggressive with their default
// options), and where it puts marks.
//
//   aggressive     runs of letters, runs of numbers, every other character by itself
//   conservative   letters and numbers together, with - and _ in them, and with . and , between them
//
// Between two tokens without a space one has a joiner: the one that is no word, or the number.
#ifndef DGM_TEXT_OPENNMT_H
#define DGM_TEXT_OPENNMT_H

#include "text/glyphs.h"

typedef enum dgm_opennmt_mode {
    DGM_OPENNMT_SPACE = 0, // what stands between white space
    DGM_OPENNMT_CONSERVATIVE,
    DGM_OPENNMT_AGGRESSIVE,
} dgm_opennmt_mode;

typedef struct dgm_opennmt_token {
    size_t begin, end;       // glyphs
    bool join_left, join_right;
    bool spaced;             // white space before it
} dgm_opennmt_token;

typedef struct dgm_opennmt_tokens {
    dgm_opennmt_token *items;
    size_t count, cap;
} dgm_opennmt_tokens;

// Replaces the list. The characters that have a meaning as marks are exchanged for others in the line.
dgm_status dgm_opennmt_split(dgm_opennmt_mode mode, dgm_glyphs *line, dgm_opennmt_tokens *tokens, dgm_error *err);
void dgm_opennmt_tokens_free(dgm_opennmt_tokens *t);

#endif
