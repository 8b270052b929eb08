// SPDX-License-Identifier: MIT
// From aligned sentence pairs to the rows of a phrase table: counts phrase pairs, scores them.
//
//     c(s, t)      times the phrase pair (s, t) was extracted, c(s) and c(t) its sums
//     p(s|t) = c(s, t) / c(t)        p(t|s) = c(s, t) / c(s)
//     lex(t|s) = prod over words t_j of the mean of w(t_j | s_i) over the s_i it is linked with,
//                w(t_j | NULL) if there is none (Koehn, Och and Marcu 2003); lex(s|t) mirrored
//     w            relative frequencies of links in the whole text
// where links inside a phrase pair are those it was seen with most often (ties: the smaller
// matrix). Orientations: (c(o, s, t) + 0.5) / (c(s, t) + 1.5).
//
// In memory are the text, its words, the distinct phrases (13 bytes each) and the linked word
// pairs; occurrences of phrase pairs, which are far more, are sorted in runs on disk (base/extsort.h)
// when they outgrow `memory`. The result is the same for any amount.
#ifndef DGM_PHRASE_PHRASE_COUNT_H
#define DGM_PHRASE_PHRASE_COUNT_H

#include "base/status.h"
#include "base/words.h"
#include "phrase/extract.h"

enum { DGM_PHRASE_SCORES = 4, DGM_PHRASE_ORIENTATIONS = 6 };

// Everything borrowed during the call that hands it out.
typedef struct dgm_phrase_row {
    const uint32_t *source, *target; // numbers of words
    int source_length, target_length;
    float score[DGM_PHRASE_SCORES];             // p(s|t), lex(s|t), p(t|s), lex(t|s)
    float orientation[DGM_PHRASE_ORIENTATIONS]; // previous m, s, d; next m, s, d
    uint64_t links;
    uint64_t source_count, target_count, count; // c(s), c(t), c(s, t)
} dgm_phrase_row;

typedef dgm_status (*dgm_phrase_taker)(void *cookie, const dgm_phrase_row *row, dgm_error *err);

typedef struct dgm_phrase_params {
    int max_length;     // of a phrase, 1 to DGM_PHRASE_LENGTH_MAX
    uint64_t prune;     // pairs seen this often or less are left out, but no translation of a
                        // single word
    uint32_t limit;     // translations kept per source phrase, best p(t|s) first; 0: all
    size_t memory;      // for sorting
    const char *folder; // of runs; NULL: $TMPDIR, else /tmp
} dgm_phrase_params;

typedef struct dgm_phrase_counter dgm_phrase_counter;

dgm_status dgm_phrase_counter_open(dgm_phrase_counter **c, const dgm_phrase_params *p,
                                   dgm_error *err);
void dgm_phrase_counter_close(dgm_phrase_counter **c); // sets *c to NULL; accepts NULL inside

// A sentence pair: the words of both sides one after the other, then its links.
dgm_status dgm_phrase_counter_word(dgm_phrase_counter *c, int side, dgm_text word, dgm_error *err);
dgm_status dgm_phrase_counter_pair(dgm_phrase_counter *c, const dgm_align_link *links, size_t count,
                                   dgm_error *err);
// From now on only source phrases that occur in lines given to this function are written; to be
// called after all pairs.
dgm_status dgm_phrase_counter_want(dgm_phrase_counter *c, const dgm_text *words, size_t count,
                                   dgm_error *err);
// All rows, source phrase by source phrase, translations of one by falling p(t|s).
dgm_status dgm_phrase_counter_rows(dgm_phrase_counter *c, dgm_phrase_taker take, void *cookie,
                                   dgm_error *err);

dgm_text dgm_phrase_counter_spell(const dgm_phrase_counter *c, int side, uint32_t word);

typedef struct dgm_phrase_totals {
    uint64_t pairs, tokens[2], types[2], phrases[2]; // distinct phrases
    uint64_t extracted, distinct, kept;              // phrase pairs
    uint64_t spilled;                                // bytes on disk
} dgm_phrase_totals;

dgm_phrase_totals dgm_phrase_counter_totals(const dgm_phrase_counter *c);

#endif
