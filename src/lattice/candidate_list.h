// SPDX-License-Identifier: MIT
// Translations with scores as they are collected for evidence (dgm_evidence of dragoman.h).
#ifndef DGM_LATTICE_CANDIDATE_LIST_H
#define DGM_LATTICE_CANDIDATE_LIST_H

#include "base/bytes.h"
#include "dragoman/dragoman.h"
#include "lattice/lattice.h"

// Start with all zero. Whoever adds one writes its text to `text` first; texts move until all are
// there.
typedef struct dgm_candidate_list {
    dgm_writer text; // of all, back to back
    size_t taken;    // bytes of it that belong to items
    dgm_evidence_candidate *items;
    size_t count, cap;
} dgm_candidate_list;

void dgm_candidate_list_clear(dgm_candidate_list *c); // keeps the memory
void dgm_candidate_list_free(dgm_candidate_list *c);
// What was written to `text` since the last one is a translation.
dgm_status dgm_candidate_list_add(dgm_candidate_list *c, double score, dgm_error *err);
// The n best texts of a lattice, with their paths' scores.
dgm_status dgm_candidate_list_paths(dgm_candidate_list *c, const dgm_lattice *l, size_t n, dgm_error *err);
// All are there: what they are as evidence, until the next change.
dgm_evidence dgm_candidate_list_evidence(dgm_candidate_list *c);

#endif
