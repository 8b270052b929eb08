// SPDX-License-Identifier: MIT
// Private to the recurrent models of import/: names of tensors, cells.
#ifndef DGM_IMPORT_RECURRENT_PRIVATE_H
#define DGM_IMPORT_RECURRENT_PRIVATE_H

#include "import/recurrent.h"

typedef struct tensor_names {
    char marian[96], nematus[96]; // "": there is none
} tensor_names;

// A tensor [rows, cols] by either name. Optional and absent: *t is NULL.
dgm_status dgm_recurrent_take(dgm_composer *c, const tensor_names *n, int rows, int cols,
                              dgm_need need, const dgm_stored **t, dgm_error *err);
// The same, added under our name: transposed, with its halves of columns swapped if asked; or as a vector.
dgm_status dgm_recurrent_matrix(dgm_composer *c, const char *ours, const tensor_names *n, int rows,
                                int cols, bool swap, dgm_error *err);
dgm_status dgm_recurrent_vector(dgm_composer *c, const char *ours, const tensor_names *n, int size,
                                dgm_error *err);

// Where a cell stands in their model; layers and cells count from 1.
typedef struct cell_place {
    bool decoder;
    bool reverse; // the second stack of an encoder
    bool forward; // an encoder layer of one direction
    int layer, cell;
} cell_place;

typedef struct cell_plan {
    cell_place at;
    dgm_recurrent_cell kind;
    const char *ours; // "enc.0.fwd", "dec.gru2.t0"
    const char *x;    // what its input's product is called: "w" or "x"; of a transition always "x"
    int input;        // its width; 0: a transition
    int hidden;
    bool norm;
    bool state_bias; // biases stand on the side of the state
    bool no_bias;    // may be missing
    bool swap;       // halves of the input
} cell_plan;

dgm_status dgm_recurrent_cell_add(dgm_composer *c, const cell_plan *p, dgm_error *err);

#endif
