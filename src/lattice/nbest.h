// SPDX-License-Identifier: MIT
// N-best lists in Moses' text form, which Marian, fairseq and `dragoman translate --nbest` write
// too: one translation a line, lines of one source line together,
//
//     LINE ||| text ||| features ||| score [||| anything]
//
// LINE counts from 0 and never falls. Features are left to who wants them.
#ifndef DGM_LATTICE_NBEST_H
#define DGM_LATTICE_NBEST_H

#include <stdint.h>

#include "base/status.h"
#include "text/unicode.h"

typedef struct dgm_nbest_entry {
    uint64_t line;
    dgm_text text, features; // without white space at their ends; views into the line
    double score;            // finite
} dgm_nbest_entry;

// One line of the file. DGM_ERR_FORMAT with a message that says which field is wrong.
dgm_status dgm_nbest_parse(dgm_text line, dgm_nbest_entry *entry, dgm_error *err);

#endif
