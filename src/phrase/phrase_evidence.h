// SPDX-License-Identifier: MIT
// What a phrase-based system says about a line, for whoever takes that as evidence: a list of its
// best translations, or the lattice of its search. Any thread may ask.
#ifndef DGM_PHRASE_PHRASE_EVIDENCE_H
#define DGM_PHRASE_PHRASE_EVIDENCE_H

#include "dragoman/phrase.h"
#include "lattice/candidate_list.h"
#include "text/vocab.h"

typedef struct dgm_phrases dgm_phrases;

// o->lattice: lattices, else lists of o->nbest translations. subwords: as in phrase_system.h.
dgm_status dgm_phrases_open(dgm_phrases **p, const dgm_phrasal_options *o,
                            const dgm_vocab *const subwords[2], dgm_error *err);
void dgm_phrases_close(dgm_phrases **p); // sets NULL; accepts NULL inside
// Replaces the list, or gives a lattice that is the caller's to close; the other is left empty. The same
// bytes as `dragoman phrase translate` writes: a list's scores have the digits that they have there.
dgm_status dgm_phrases_say(dgm_phrases *p, dgm_text line, dgm_candidate_list *list,
                           dgm_lattice **lattice, dgm_error *err);

#endif
