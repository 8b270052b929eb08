// SPDX-License-Identifier: MIT
// From a line's evidence (text of other systems) to the rows that steer its search.
#ifndef DGM_ENGINE_EVIDENCE_H
#define DGM_ENGINE_EVIDENCE_H

#include "engine/engine_private.h"
#include "base/words.h"
#include "phrase/phrase_evidence.h"

// Subwords of words that were encoded before: n-best lists say the same words again and again.
typedef struct dgm_word_subwords {
    dgm_words words;
    size_t *at; // [words + 1]: subwords of word w are ids[at[w]] .. ids[at[w + 1])
    int32_t *ids;
    size_t at_cap, id_count, ids_cap;
} dgm_word_subwords;

// Buffers of one submit call. Start with all zero but t.
typedef struct dgm_evidence_maker {
    const dgm_translator *t;
    struct dgm_phrases *phrases; // who is asked about the line at hand; NULL: nobody
    dgm_posteriors posteriors;
    dgm_word_subwords known;
    dgm_tokens tokens;
    double *weights;
    int32_t *ids; // one translation, end symbol and all
    size_t weights_cap, ids_cap, id_count;
    uint64_t lines, rows, values; // made so far
    uint64_t pruned;              // lattices of them that were too large
    double seconds;
    dgm_candidate_list said; // by the phrase-based system
    uint64_t decoded;    // lines that it was asked about
    double decode_seconds;
} dgm_evidence_maker;

// Fills line->lmbr and, where they are wanted, ngrams. Where e is empty the phrase-based system is asked
// about the line, whose pieces are there; without one nothing is done.
// DGM_ERR_TEXT, DGM_ERR_ARGUMENT: the line's evidence cannot be used.
dgm_status dgm_evidence_line(dgm_evidence_maker *m, const dgm_evidence *e, dgm_line_state *line,
                             dgm_error *err);
void dgm_evidence_maker_free(dgm_evidence_maker *m);

#endif
