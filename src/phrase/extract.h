// SPDX-License-Identifier: MIT
// Phrase pairs of one aligned sentence pair (Och and Ney 2004), with the orientation towards their
// neighbours (Tillmann 2004; Koehn et al. 2005).
//
// A source span and a target span are a phrase pair when at least one link joins them and no link
// leads from a word inside one to a word outside the other. Words without links may stand at the
// ends of either span, so one link can make several pairs.
//
// Orientation, by words: with the previous target word (or the sentence's beginning) before the
// target span, the pair is
//     monotone       if the word before the source span, not the one behind it, is linked to it
//     swapped        if the word behind the source span, not the one before it, is linked to it
//     discontinuous  otherwise
// and the same, mirrored, towards the next target word.
#ifndef DGM_PHRASE_EXTRACT_H
#define DGM_PHRASE_EXTRACT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "align/symmetrize.h"

#define DGM_PHRASE_LENGTH_MAX 7 // words: links inside a pair are a matrix of 49 bits

typedef enum dgm_orientation {
    DGM_MONOTONE = 0,
    DGM_SWAPPED = 1,
    DGM_DISCONTINUOUS = 2,
} dgm_orientation;

typedef struct dgm_phrase_span {
    uint16_t source, source_length, target, target_length;
    uint8_t previous, next; // dgm_orientation
    // Bit i * DGM_PHRASE_LENGTH_MAX + j: source word i and target word j of the pair are linked.
    uint64_t links;
} dgm_phrase_span;

#define DGM_PHRASE_LINK(i, j) ((uint64_t)1 << ((i)*DGM_PHRASE_LENGTH_MAX + (j)))

typedef struct dgm_extractor dgm_extractor; // scratch, grows to the longest sentence

dgm_status dgm_extractor_open(dgm_extractor **x, int max_length, dgm_error *err);
void dgm_extractor_close(dgm_extractor **x); // sets *x to NULL; accepts NULL inside

// All phrase pairs of at most max_length words on each side, ordered by source position, source
// length, target position, target length; borrowed until the next call. Links must lie inside m
// source and n target words (DGM_ERR_TEXT) and may come in any order, also twice.
dgm_status dgm_extract(dgm_extractor *x, const dgm_align_link *links, size_t count, int m, int n,
                       const dgm_phrase_span **spans, size_t *span_count, dgm_error *err);

#endif
