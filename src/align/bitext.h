// SPDX-License-Identifier: MIT
// A parallel text in memory, as word alignment and phrase extraction want it.
//
// Words are numbers. After dgm_bitext_finish they are numbered by falling frequency (so that the
// busy part of any table indexed by words is small and stays in the cache), and pairs are sorted
// by their two lengths: a run of pairs with equal lengths is a group, and whatever depends on
// lengths alone is computed once per group. line[] leads back to the input.
//
//     pair      0 1 2 | 3 4 | 5 ...            group 0 has lengths (1,1), group 1 (1,2), ...
//     start[s]  where a pair's tokens of side s begin in token[s]; pairs + 1 entries
//
// Pairs with an empty side or more than max_length tokens on one take part in nothing; they are
// counted and keep their line.
#ifndef DGM_ALIGN_BITEXT_H
#define DGM_ALIGN_BITEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/words.h"

#define DGM_BITEXT_LENGTH_MAX 1000 // tokens: the largest max_length
#define DGM_BITEXT_NO_PAIR UINT32_MAX

typedef struct dgm_bitext_side {
    uint32_t *token;
    size_t token_count, token_cap;
    uint64_t *start; // [pairs + 1]
    size_t start_cap;
    uint32_t types;  // words are 0 .. types - 1
    uint32_t *name;  // [types] number that the word had when it was added
    uint64_t *freq;  // [types] falling
    dgm_words words; // spellings by the number when added; empty if ids were added
} dgm_bitext_side;

typedef struct dgm_bitext_group {
    uint32_t first, count; // pairs
    uint16_t length[2];
} dgm_bitext_group;

typedef struct dgm_bitext {
    int max_length;
    uint32_t lines, pairs, empty, too_long; // lines = pairs + empty + too_long
    dgm_bitext_side side[2];                // 0 source, 1 target
    uint32_t *line;                         // [pairs] line of a pair, from 0
    size_t line_cap;
    uint32_t *pair; // [lines] pair of a line or DGM_BITEXT_NO_PAIR; after finish
    dgm_bitext_group *group;
    uint32_t groups;
} dgm_bitext;

dgm_status dgm_bitext_open(dgm_bitext **b, int max_length, dgm_error *err);
void dgm_bitext_close(dgm_bitext **b); // sets *b to NULL; accepts NULL inside

// One line each: words between spaces or tabs, or ids of the caller's own vocabulary.
dgm_status dgm_bitext_add_words(dgm_bitext *b, dgm_text source, dgm_text target, dgm_error *err);
dgm_status dgm_bitext_add_ids(dgm_bitext *b, const int32_t *source, size_t source_count,
                              const int32_t *target, size_t target_count, dgm_error *err);
// No lines after this. DGM_ERR_TEXT when no pair is left.
dgm_status dgm_bitext_finish(dgm_bitext *b, dgm_error *err);

// The number a word had when it was added (an id), and its spelling if words were added.
static inline uint32_t dgm_bitext_name(const dgm_bitext *b, int side, uint32_t word)
{
    return b->side[side].name[word];
}

#endif
