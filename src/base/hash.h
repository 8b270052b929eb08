// SPDX-License-Identifier: MIT
// FNV-1a of 64 bits: for hash tables and fingerprints of things that belong together. Compact files
// hold tables made with it: it must not change.
#ifndef DGM_BASE_HASH_H
#define DGM_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define DGM_HASH_START 0xcbf29ce484222325u

static inline uint64_t dgm_hash_number(uint64_t hash, uint64_t v) // in one step
{
    return (hash ^ v) * 0x100000001b3u;
}

static inline uint64_t dgm_hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < size; i++) hash = dgm_hash_number(hash, p[i]);
    return hash;
}

// Of a spelling, folded to 32 bits.
static inline uint32_t dgm_hash_text(dgm_text t)
{
    const uint64_t h = dgm_hash_bytes(DGM_HASH_START, t.data, t.size);
    return (uint32_t)(h ^ h >> 32);
}

#endif
