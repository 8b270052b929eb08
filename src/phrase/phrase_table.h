// SPDX-License-Identifier: MIT
// A phrase table: read from Moses' text files or mapped from a compact file, asked phrase by
// phrase. Built by phrase_build.c, used by the phrase-based decoder.
//
//     sources   sorted by their words' numbers, found by bisection
//     source k  has the options option_at[k] .. option_at[k + 1]; their target words stand behind
//               each other from word_at[k] on
//     option    length, number of its link matrix, scores (and orientations)
//
// Words are numbered by the bytes of their spellings on either side, so a table has one form,
// whatever the order of the text it was read from; options of one source keep theirs. Scores are
// probabilities as in the text: floats, or indices of 8 or 16 bits into a codebook per score.
// The same bytes lie in memory and in the file (little-endian machines only).
//
// A file is checked for its sizes when it is opened, its contents when they are used: a damaged
// one gives wrong phrases, never a read outside it. An open table is never changed: threads share
// it.
#ifndef DGM_PHRASE_PHRASE_TABLE_H
#define DGM_PHRASE_PHRASE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compact.h"
#include "base/status.h"
#include "phrase/phrase_count.h"
#include "text/unicode.h"

enum { DGM_TABLE_FEATURES = DGM_PHRASE_SCORES + DGM_PHRASE_ORIENTATIONS };

typedef struct dgm_phrase_table {
    dgm_compact bytes; // first: the whole, as in the file
    int bits;          // 0: floats; 8, 16: codebooks
    int features;      // 4, or 10 with orientations
    int max_length;    // of a source phrase
    bool has_links;    // else every matrix is 0
    dgm_spellings words[2];
    uint32_t sources, options, matrices;
    uint64_t source_words, target_words;
    const uint32_t *source_at;   // [sources + 1] in source_word
    const uint32_t *source_word; // [source_words]
    const uint32_t *option_at;   // [sources + 1]
    const uint64_t *word_at;     // [sources + 1] in target_word
    const uint32_t *target_word; // [target_words]
    const uint8_t *length;       // [options] target words
    const uint32_t *links;       // [options] matrix
    const uint64_t *matrix;      // [matrices]
    const float *codebook;       // [features][1 << bits]
    const void *score;           // [options][features] floats or codes
} dgm_phrase_table;

// A compact file, or Moses text (plain or gzip; reordering: its reordering table, or NULL): found
// by the first bytes. Messages name the file and, in text, the line.
dgm_status dgm_phrase_table_open(dgm_phrase_table **t, const char *path, const char *reordering,
                                 dgm_error *err);
dgm_status dgm_phrase_table_open_bytes(dgm_phrase_table **t, const void *data, size_t size,
                                       dgm_error *err); // borrowed
void dgm_phrase_table_close(dgm_phrase_table **t);      // sets *t to NULL; accepts NULL inside
dgm_status dgm_phrase_table_save(const dgm_phrase_table *t, const char *path, dgm_error *err);

#define DGM_TABLE_NO_WORD DGM_NO_SPELLING
uint32_t dgm_phrase_table_word(const dgm_phrase_table *t, int side, dgm_text word); // or NO_WORD
dgm_text dgm_phrase_table_spell(const dgm_phrase_table *t, int side, uint32_t word);

// Options of a source phrase. Returns how many there are; *first and *word_at are where they and
// their target words begin.
uint32_t dgm_phrase_table_find(const dgm_phrase_table *t, const uint32_t *words, int length,
                               uint32_t *first, uint64_t *word_at);

typedef struct dgm_table_option {
    const uint32_t *target; // [length]
    int length;             // 0 to DGM_PHRASE_LENGTH_MAX
    uint64_t links;
    float score[DGM_TABLE_FEATURES]; // orientations are 1/3 where the table has none
} dgm_table_option;

// Option i, whose words begin at *word_at, which moves to the next option's.
void dgm_phrase_table_option(const dgm_phrase_table *t, uint32_t i, uint64_t *word_at,
                             dgm_table_option *out);

// ---- text -------------------------------------------------------------------------------------

// Lines of "SOURCE ||| TARGET ||| P(S|T) LEX(S|T) P(T|S) LEX(T|S) ||| LINKS ||| ..." and, of the
// reordering table, "SOURCE ||| TARGET ||| 6 probabilities". A fifth score, the constant of old
// tables, is left out. reordering NULL: not written.
dgm_status dgm_phrase_table_write(const dgm_phrase_table *t, const char *path,
                                  const char *reordering, dgm_error *err);

// Reads lines of text; messages do not name a place.
typedef struct dgm_phrase_parser dgm_phrase_parser;
dgm_status dgm_phrase_parser_open(dgm_phrase_parser **p, dgm_error *err);
void dgm_phrase_parser_close(dgm_phrase_parser **p);
dgm_status dgm_phrase_parser_line(dgm_phrase_parser *p, dgm_text line, dgm_error *err);
// Lines of a reordering table, behind those of the phrase table. Pairs that it lacks keep 1/3.
dgm_status dgm_phrase_parser_reordering(dgm_phrase_parser *p, dgm_text line, dgm_error *err);
dgm_status dgm_phrase_parser_finish(dgm_phrase_parser *p, int bits, dgm_phrase_table **t,
                                    dgm_error *err);
dgm_status dgm_phrase_table_read(dgm_phrase_table **t, const char *path, const char *reordering,
                                 int bits, dgm_error *err);

// ---- building ---------------------------------------------------------------------------------

typedef struct dgm_phrase_builder dgm_phrase_builder;

dgm_status dgm_phrase_builder_open(dgm_phrase_builder **b, dgm_error *err);
void dgm_phrase_builder_close(dgm_phrase_builder **b);
// The number of a word of one side: what rows are made of.
dgm_status dgm_phrase_builder_word(dgm_phrase_builder *b, int side, dgm_text word, uint32_t *number,
                                   dgm_error *err);
// Counts of the row are ignored. DGM_ERR_FORMAT if the pair is there already.
dgm_status dgm_phrase_builder_row(dgm_phrase_builder *b, const dgm_phrase_row *row, bool oriented,
                                  dgm_error *err);
// Orientations of a row that is there; nothing happens if it is not.
dgm_status dgm_phrase_builder_orient(dgm_phrase_builder *b, const dgm_phrase_row *row,
                                     dgm_error *err);
dgm_status dgm_phrase_builder_finish(dgm_phrase_builder *b, int bits, dgm_phrase_table **t,
                                     dgm_error *err);

#endif
