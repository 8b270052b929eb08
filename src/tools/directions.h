// SPDX-License-Identifier: MIT
// The directions of a text's lines, from a file beside it ("en de", "de" or nothing a line, as `translate
// --directions` reads it), and the blocks of clusters that they belong to.
#ifndef DGM_TOOLS_DIRECTIONS_H
#define DGM_TOOLS_DIRECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "dragoman/dragoman.h"

typedef struct dgm_text_direction {
    dgm_direction codes; // the model's own, borrowed from the translator
    int block;           // what is learnt from its lines
} dgm_text_direction;

typedef struct dgm_text_directions {
    uint16_t *of; // [lines]: which of the items
    uint64_t lines;
    dgm_text_direction *items; // in the order in which the text has them
    size_t count;
    dgm_direction *blocks; // [block_count] languages of each, "": any; in the same order
    int block_count;
} dgm_text_directions;

// path: the directions of the lines of `text`, of which the first `lines` count (0: all). any: the blocks
// are for any language of that side (dgm_side). The translator, opened with direction_later, knows what
// names mean and what is not said.
dgm_status dgm_text_directions_read(dgm_text_directions *d, const dgm_translator *t,
                                    const char *path, const char *text, uint64_t lines,
                                    const bool any[2], dgm_error *err);
void dgm_text_directions_free(dgm_text_directions *d); // accepts all zero

// The codes of line `number` (from 0) if it belongs to the block, else NULL.
const dgm_direction *dgm_text_directions_line(const dgm_text_directions *d, uint64_t number,
                                              int block);
// Over which lines belong to a block and their directions.
uint64_t dgm_text_directions_hash(const dgm_text_directions *d, int block);

#endif
