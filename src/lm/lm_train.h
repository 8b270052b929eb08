// SPDX-License-Identifier: MIT
// Training of n-gram models: counts, discounts, interpolated modified Kneser-Ney probabilities.
// Lines go in one by one, an ARPA file comes out; lm.h reads it. docs/manual/LANGUAGE_MODELS.md has the
// formulas. The vocabulary stays in memory, everything else is sorted within `memory` bytes and
// overflows to disk (base/extsort.h); the result does not depend on it.
#ifndef DGM_LM_LM_TRAIN_H
#define DGM_LM_LM_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/textfile.h"
#include "base/words.h"
#include "lm/lm.h"

typedef struct dgm_lm_params {
    int order;                        // 1 to DGM_LM_ORDER_MAX
    uint64_t prune[DGM_LM_ORDER_MAX]; // n-grams seen this often or less are left out; [0] is 0 and
                                      // none is smaller than the one before it
    bool fallback;                    // use fixed discounts where none can be estimated
    size_t memory;                    // bytes for sorting
    const char *folder;               // for temporary files; NULL: $TMPDIR, else /tmp
} dgm_lm_params;

// Of one order.
typedef struct dgm_lm_counts {
    uint64_t seen, kept; // n-grams before and after pruning
    uint64_t counts[4];  // n-grams with an adjusted count of 1, 2, 3, 4
    double discount[4];  // [1] to [3]: for counts of 1, 2, 3 and more
    bool fell_back;      // the discounts are the fixed ones
} dgm_lm_counts;

typedef struct dgm_lm_trainer dgm_lm_trainer;

dgm_status dgm_lm_trainer_open(dgm_lm_trainer **t, const dgm_lm_params *params, dgm_error *err);
void dgm_lm_trainer_close(dgm_lm_trainer **t); // sets *t to NULL; accepts NULL inside

// A word of the current line; "<unk>" is the unknown word. "<s>" and "</s>" are DGM_ERR_TEXT.
dgm_status dgm_lm_trainer_word(dgm_lm_trainer *t, dgm_text word, dgm_error *err);
// Ends the line. A line without words counts for nothing.
dgm_status dgm_lm_trainer_line(dgm_lm_trainer *t, dgm_error *err);
// Estimates and writes the ARPA text. `tick` (NULL: none) hears the share that is done.
typedef dgm_status (*dgm_lm_tick)(void *cookie, double share, dgm_error *err);
// Where text goes; a status other than DGM_OK ends the work.
typedef struct dgm_lm_sink {
    dgm_status (*put)(void *cookie, const void *data, size_t size, dgm_error *err);
    void *cookie;
} dgm_lm_sink;
dgm_status dgm_lm_trainer_write(dgm_lm_trainer *t, const dgm_lm_sink *sink, dgm_lm_tick tick,
                                void *cookie, dgm_error *err);
const dgm_lm_counts *dgm_lm_trainer_counts(const dgm_lm_trainer *t, int order); // after write
uint64_t dgm_lm_trainer_types(const dgm_lm_trainer *t);                         // different words
uint64_t dgm_lm_trainer_spilled(const dgm_lm_trainer *t); // bytes written to temporary files

// A number of an ARPA file: nine digits keep every float. Returns the length of the text.
int dgm_arpa_number(char *text, size_t size, float value);

#endif
