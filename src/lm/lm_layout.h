// SPDX-License-Identifier: MIT
// What the reader (lm.c) and the writer (lm_build.c) of compact language models agree on: the first
// bytes, the bits of a node, the bytes of a level. The order of the sections is in lm.c.
#ifndef DGM_LM_LM_LAYOUT_H
#define DGM_LM_LM_LAYOUT_H

#include "lm/lm.h"

static const uint8_t dgm_lm_magic[8] = {'D', 'G', 'M', 'L', 'M', 0, 1, 0};

static inline uint64_t dgm_lm_node_bits(const dgm_lm_level *l)
{
    return (uint64_t)l->word_bits + l->prob_bits + l->backoff_bits + l->begin_bits;
}

// One node more, for the end of the last one's children, and eight bytes to read beyond it. Counts
// are below 2^32 and nodes at most 128 bits: no overflow.
static inline uint64_t dgm_lm_level_bytes(const dgm_lm_level *l)
{
    return ((l->count + 1) * dgm_lm_node_bits(l) + 7) / 8 + 8;
}

#endif
