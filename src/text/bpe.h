// SPDX-License-Identifier: MIT
// Byte-pair encoding: a word as symbols, merged pair by pair in the order in which the pairs were
// learnt (Sennrich, Haddow and Birch 2016). What the symbols are, and what becomes of the result, is
// the business of subwords.h.
//
// A heap of the pairs that can be merged makes a word of n symbols cost n log n; nothing is allocated
// for a word once the scratch has grown.
#ifndef DGM_TEXT_BPE_H
#define DGM_TEXT_BPE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/status.h"

typedef struct dgm_bpe dgm_bpe;

#define DGM_BPE_MERGES_MAX (1 << 24)

// merges [count]: "left right", first learnt first. by_rounds: all occurrences of a pair are merged
// before pairs that arise from it are looked at (subword-nmt); else always the pair that ranks first.
dgm_status dgm_bpe_open(dgm_bpe **bpe, const dgm_text *merges, size_t count, bool by_rounds,
                        dgm_error *err);
void dgm_bpe_close(dgm_bpe **bpe); // sets NULL; accepts NULL inside

// A symbol of a word, at first a character.
typedef struct dgm_bpe_piece {
    uint32_t begin, end; // bytes of the word
    uint32_t from, to;   // where it came from; a merged one has both of its parts
    int32_t symbol;      // its number; set by dgm_bpe_merge, -1 where no merge knows it
    int32_t next, before; // used while merging
} dgm_bpe_piece;

typedef struct dgm_bpe_pair {
    uint32_t rank, at;
    int32_t left, right; // symbols: the pair is stale when they are others now
} dgm_bpe_pair;

typedef struct dgm_bpe_word {
    dgm_writer text; // the word
    dgm_bpe_piece *pieces;
    size_t count, cap;
    dgm_bpe_pair *heap, *fresh; // scratch
    size_t heap_cap, fresh_cap;
} dgm_bpe_word;

void dgm_bpe_word_free(dgm_bpe_word *w); // accepts all zero
void dgm_bpe_word_clear(dgm_bpe_word *w);
// Appends a symbol that is spelled so.
dgm_status dgm_bpe_word_add(dgm_bpe_word *w, const void *bytes, size_t size, uint32_t from, uint32_t to,
                            dgm_error *err);
// Merges the pieces of a word.
dgm_status dgm_bpe_merge(const dgm_bpe *bpe, dgm_bpe_word *w, dgm_error *err);
// The two symbols that a symbol was first merged from; false where it is none of the merges' results.
bool dgm_bpe_parts(const dgm_bpe *bpe, int32_t symbol, int32_t *left, int32_t *right);
dgm_text dgm_bpe_spell(const dgm_bpe *bpe, int32_t symbol);

#endif
