// SPDX-License-Identifier: MIT
// A phrase-based system: models, decoder, and how lines become words and words text.
//
//     line --wording--> words --decoder--> list of translations --wording--> text
//                                      \-> search graph --pruned--> lattice
//
// A dgm_phrase_system is what threads share; a dgm_phrase_worker belongs to one of them. Used by
// `dragoman phrase`, by mert and by the engine, whose searches it gives evidence to.
#ifndef DGM_PHRASE_PHRASE_SYSTEM_H
#define DGM_PHRASE_PHRASE_SYSTEM_H

#include "dragoman/phrase.h"
#include "lattice/lattice.h"
#include "phrase/phrase_decode.h"
#include "text/wording.h"

typedef struct dgm_phrase_system {
    dgm_phrase_table *table;
    dgm_lm *lm;
    dgm_pb_params params;
    dgm_pb_model *model;
    dgm_wording wording[2]; // of the source, of the target
    double lattice_beam;
} dgm_phrase_system;

// subwords: vocabularies of both sides, borrowed, where o->subwords names a model; else NULL inside.
dgm_status dgm_phrase_system_open(dgm_phrase_system **s, const dgm_phrasal_options *o,
                                  const dgm_vocab *const subwords[2], dgm_error *err);
void dgm_phrase_system_close(dgm_phrase_system **s); // sets NULL; accepts NULL inside

typedef struct dgm_phrase_worker {
    const dgm_phrase_system *s;
    dgm_pb_decoder *decoder;
    // Source words of the line at hand: spellings lie in `bytes`.
    dgm_text *words;
    size_t count, cap;
    dgm_writer bytes;
    struct dgm_phrase_worker *next; // of a list that its owner keeps
} dgm_phrase_worker;

dgm_status dgm_phrase_worker_open(dgm_phrase_worker **w, const dgm_phrase_system *s,
                                  dgm_error *err);
void dgm_phrase_worker_close(dgm_phrase_worker **w); // sets NULL; accepts NULL inside
// Translates a line, as dgm_pb_decode does. DGM_ERR_TEXT: it is not text, or too long.
dgm_status dgm_phrase_worker_decode(dgm_phrase_worker *w, dgm_text line,
                                    const dgm_pb_translation **list, int *count, dgm_error *err);
// The search graph of that line as a lattice of words, pruned to the system's lattice_beam.
dgm_status dgm_phrase_worker_lattice(dgm_phrase_worker *w, dgm_lattice **out, dgm_error *err);

#endif
