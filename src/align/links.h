// SPDX-License-Identifier: MIT
// The symmetrised links of a whole bitext: written as text, counted for lexical tables, or asked
// for line by line (phrase extraction). And their error rate against links made by hand.
#ifndef DGM_ALIGN_LINKS_H
#define DGM_ALIGN_LINKS_H

#include "base/threads.h"
#include "align/bitext.h"
#include "align/lexicon.h"
#include "align/symmetrize.h"

// Everything borrowed. forward and backward: what dgm_aligner_viterbi gave for `from` 0 and 1.
typedef struct dgm_links {
    const dgm_bitext *b;
    const int16_t *forward;  // [target tokens]
    const int16_t *backward; // [source tokens]
    dgm_symmetrize method;
} dgm_links;

// Links of one pair. cells and links as in symmetrize.h.
size_t dgm_links_of_pair(const dgm_links *l, uint32_t pair, uint8_t *cells, dgm_align_link *links);
// Bytes of cells and number of links that any pair of this bitext may need.
size_t dgm_links_cells(const dgm_bitext *b);
size_t dgm_links_most(const dgm_bitext *b);

typedef dgm_status (*dgm_links_sink)(void *cookie, const char *text, size_t size, dgm_error *err);

// Pharaoh text, "0-0 1-2 ...", one line for every line of the input in its order, in parts of
// many lines; empty for lines that are no pair. sink NULL: only counts. counts NULL: only text.
dgm_status dgm_links_write(const dgm_links *l, dgm_pool *pool, dgm_links_sink sink, void *cookie,
                           dgm_link_counts *counts, dgm_error *err);

// Alignment error rate (Och and Ney 2003): 1 - (|A and S| + |A and P|) / (|A| + |S|).
typedef struct dgm_aer {
    uint64_t links, sure;             // |A|, |S|
    uint64_t sure_found, right_found; // |A and S|, |A and P|
} dgm_aer;

// gold: sure links "i-j", possible ones "i?j"; links: "i-j". The message does not name a place.
dgm_status dgm_aer_add(dgm_aer *aer, dgm_text gold, dgm_text links, dgm_error *err);
double dgm_aer_rate(const dgm_aer *aer); // 0 to 1

#endif
