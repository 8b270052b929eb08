// SPDX-License-Identifier: MIT
// Two one-to-many alignments of a sentence pair become one set of links.
//
// forward[j] is the source position that made target token j, backward[i] the target position that
// made source token i, -1 for none: what dgm_aligner_viterbi gives for `from` = 0 and 1.
#ifndef DGM_ALIGN_SYMMETRIZE_H
#define DGM_ALIGN_SYMMETRIZE_H

#include <stddef.h>
#include <stdint.h>

typedef enum dgm_symmetrize {
    DGM_SYM_FORWARD = 0,
    DGM_SYM_BACKWARD,
    DGM_SYM_INTERSECT,
    DGM_SYM_UNION,
    DGM_SYM_GROW_DIAG,
    DGM_SYM_GROW_DIAG_FINAL,
    DGM_SYM_GROW_DIAG_FINAL_AND,
    DGM_SYM_COUNT
} dgm_symmetrize;

// "forward", "backward", "intersect", "union", "grow-diag", "grow-diag-final",
// "grow-diag-final-and"; the index of a name, -1 if there is none.
const char *dgm_symmetrize_name(int method);
int dgm_symmetrize_find(const char *name);

typedef struct dgm_align_link {
    uint16_t source, target;
} dgm_align_link;

// Links ordered by source, then target. cells: scratch of m * n + m + n bytes; links: room for
// m + n (no method gives more than the union). Returns how many there are.
size_t dgm_symmetrize_links(dgm_symmetrize method, const int16_t *forward, int n,
                            const int16_t *backward, int m, uint8_t *cells, dgm_align_link *links);

#endif
