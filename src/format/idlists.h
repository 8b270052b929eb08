// SPDX-License-Identifier: MIT
// Lists of token ids as model files keep them, and the hash that ties them to a vocabulary: what
// shortlist.c and clusters.c share. docs/internals/FORMAT.md, section 2.6, has the bytes.
//
// For every row in order:     count  first  gap-1  gap-1 ...
// all as base-128 numbers, low 7 bits first, high bit set on all bytes but the last. Ids of one
// list are close to each other where a vocabulary is sorted by frequency: about 1.5 bytes each
// instead of 4.
#ifndef DGM_FORMAT_IDLISTS_H
#define DGM_FORMAT_IDLISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "format/gguf.h"

// Lists of ids below `limit`, one for each of `count` rows, at most `most` ids long.
typedef struct dgm_idlists {
    const char *key, *row; // for messages: "KEY: the list of ROW 3 is damaged"
    const uint8_t *data;
    size_t size;
    int count, limit;
    uint32_t most;
} dgm_idlists;

// Walks all lists once and checks them: at [count + 1] becomes where each begins, *longest the
// length of the longest.
dgm_status dgm_idlists_index(const dgm_idlists *x, uint32_t *at, int *longest, dgm_error *err);
// One list that was checked before. Returns its length; ids of out [longest] ascend.
int dgm_idlists_decode(const uint8_t *list, int32_t *out);
int dgm_idlists_length(const uint8_t *list);
// The same as bits of a set, without a list in between.
void dgm_idlists_mark(const uint8_t *list, uint64_t *bits);
// Appends the list of ids[0 .. count), which ascend.
void dgm_idlists_put(dgm_writer *w, const int32_t *ids, uint64_t count);

// FNV-1a over what gives ids their spellings, source then target, as 16 hexadecimal digits.
dgm_status dgm_vocabulary_hash(const dgm_gguf *g, int *sources, int *targets, char text[17],
                               dgm_error *err);

#endif
