// SPDX-License-Identifier: MIT
// Cutting text: a line into sentences, and a line too long for the model into pieces that fit.
//
// An over-long line is cut at sentence ends first; a sentence that is still too long at clause
// ends (comma, semicolon, colon, dash), a clause at words, a word (or text written without spaces)
// between characters. Every sentence is a piece of its own, because models are trained on
// sentences; clauses and words are packed evenly into as few pieces as fit.
//
// Where a line is cut although it fits, it is at sentence ends alone.
//
//     text  |  piece 0  | sep |  piece 1  | sep |  piece 2  |
//     items   begin..end       begin..end
//
// What stands between two pieces is white space or nothing, so the pieces and separators make the
// line again. dgm_split_join writes translated pieces back into one line.
#ifndef DGM_TEXT_SPLIT_H
#define DGM_TEXT_SPLIT_H

#include "base/bytes.h"
#include "base/status.h"
#include "text/tokenize.h"
#include "text/unicode.h"
#include "text/vocab.h"

typedef enum dgm_cut {
    DGM_CUT_END = 0,      // the last piece: nothing follows
    DGM_CUT_SENTENCE = 1, // after a sentence
    DGM_CUT_CLAUSE = 2,
    DGM_CUT_WORD = 3,
    DGM_CUT_INSIDE = 4, // between two characters of a word
} dgm_cut;

typedef struct dgm_piece {
    size_t begin, end; // no white space at either end
    dgm_cut cut;       // what the cut after it is
} dgm_piece;

// Start with all zero. Functions replace the content.
typedef struct dgm_pieces {
    dgm_piece *items;
    size_t count, cap;
} dgm_pieces;

void dgm_pieces_free(dgm_pieces *p);

// Sentences of a text (which may hold line breaks; an empty line always ends a sentence). Knows
// abbreviations, initials, numbers, ordinals, quotes and brackets of lang; works on any language
// that ends sentences with . ! ? or their CJK, Arabic, Devanagari forms. Where a text has several
// sentences by their final marks, headlines without one are cut off, too (headlines.h). A text of white
// space alone has no sentence.
dgm_status dgm_split_sentences(dgm_text text, dgm_language lang, dgm_pieces *out, dgm_error *err);
// The same by final marks alone.
dgm_status dgm_split_at_marks(dgm_text text, dgm_language lang, dgm_pieces *out, dgm_error *err);

// How many tokens a text makes (eos not counted). Called on ranges of the line whose lengths add
// up to a small multiple of the line's.
typedef dgm_status (*dgm_count_fn)(void *arg, dgm_text text, size_t *tokens, dgm_error *err);

#define DGM_SPLIT_MIN 8 // smallest limit

typedef struct dgm_split_limits {
    size_t max_tokens; // of a piece, eos not counted; at least DGM_SPLIT_MIN where a line is longer
    dgm_language lang; // of the text
    dgm_count_fn count;
    void *count_arg;
    bool sentences; // cut at all sentence ends, also where the line fits
} dgm_split_limits;

// A line that fits is one piece (trimmed) unless `sentences` asks for more; a line of white space alone
// has no piece. No piece has more than 64 bytes for each of max_tokens. A single character that takes
// more than max_tokens is left as a piece of its own.
dgm_status dgm_split_line(dgm_text line, const dgm_split_limits *limits, dgm_pieces *out,
                          dgm_error *err);

// A dgm_count_fn over a vocabulary: arg is a dgm_vocab_counter.
typedef struct dgm_vocab_counter {
    const dgm_vocab *vocab;
    dgm_tokens tokens; // scratch; the caller frees it
} dgm_vocab_counter;
dgm_status dgm_vocab_count(void *arg, dgm_text text, size_t *tokens, dgm_error *err);

// Joins translations of the pieces: outputs[i] belongs to pieces->items[i]. Between two of them
// goes what stood between the pieces in the source; nothing where the output is written without
// spaces, one space where only the source was.
dgm_status dgm_split_join(dgm_text line, const dgm_pieces *pieces, const dgm_text *outputs,
                          dgm_writer *out, dgm_error *err);

#endif
