// SPDX-License-Identifier: MIT
// Matrices and vectors of our file that are made of several tensors of theirs: gates that other programs
// store one by one, biases that are added up.
#ifndef DGM_IMPORT_COMPOSE_H
#define DGM_IMPORT_COMPOSE_H

#include "import/checkpoint.h"

typedef struct dgm_composer {
    dgm_checkpoint *weights;
    struct dgm_composed *made; // sources of weights until the file is written
} dgm_composer;

void dgm_composer_close(dgm_composer *c); // after the file is written; accepts all zero

enum { DGM_COMPOSE_MAX = 6 };

// Parts below each other, all of the same columns. swap: the two halves of the columns change places.
dgm_status dgm_compose_matrix(dgm_composer *c, const char *ours, const dgm_view *parts, int count,
                              bool swap, dgm_error *err);

// `count` numbers of a tensor from `first` on, added to those of a vector from `at` on.
typedef struct dgm_vector_term {
    const dgm_stored *t;
    int first, count, at;
} dgm_vector_term;

// A vector of zeros and what is added to it; a term without a tensor adds nothing.
dgm_status dgm_compose_vector(dgm_composer *c, const char *ours, int size,
                              const dgm_vector_term *terms, int count, dgm_error *err);

#endif
