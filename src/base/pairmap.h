// SPDX-License-Identifier: MIT
// A hash table from 64-bit keys to 32-bit numbers: counts of word pairs, numbers of whatever has a
// key. Keys are never removed. Used by phrase counting and table building.
#ifndef DGM_BASE_PAIRMAP_H
#define DGM_BASE_PAIRMAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct dgm_pairmap {
    uint64_t *key;   // [slots]
    uint32_t *value; // [slots] meaningful where used
    uint8_t *used;   // [slots]
    size_t slots;    // power of two, or 0
    size_t count;
} dgm_pairmap;

void dgm_pairmap_free(dgm_pairmap *m); // accepts all zero
// Where the value of a key stands, put there as `fresh` if the key is new; valid until the next
// call.
dgm_status dgm_pairmap_at(dgm_pairmap *m, uint64_t key, uint32_t fresh, uint32_t **value,
                          dgm_error *err);
const uint32_t *dgm_pairmap_find(const dgm_pairmap *m, uint64_t key); // NULL: not there

static inline uint64_t dgm_pairmap_key(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

#endif
