// SPDX-License-Identifier: MIT
// Spellings and their numbers: every different string once, numbered by first appearance.
#ifndef DGM_BASE_WORDS_H
#define DGM_BASE_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

typedef struct dgm_words {
    char *bytes; // all spellings, back to back
    size_t byte_count, byte_cap;
    uint64_t *at; // [count + 1] where word w begins in bytes
    size_t count, at_cap;
    uint32_t *hash; // [count]
    size_t hash_cap;
    uint32_t *slot; // [slots] 0 = free, else word + 1
    size_t slots;   // power of two, or 0
} dgm_words;

void dgm_words_free(dgm_words *w); // accepts all zero
// Number of a spelling, added if new. DGM_ERR_UNSUPPORTED beyond 2^31 words.
dgm_status dgm_words_add(dgm_words *w, dgm_text spelling, uint32_t *number, dgm_error *err);
int64_t dgm_words_find(const dgm_words *w, dgm_text spelling); // -1: not there
dgm_text dgm_words_spell(const dgm_words *w, uint32_t number);

#endif
