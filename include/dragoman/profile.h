// SPDX-License-Identifier: MIT
// Dragoman tools: what a translator did and where its time went. Conventions as in tools.h.
#ifndef DRAGOMAN_PROFILE_H
#define DRAGOMAN_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- optimisations ------------------------------------------------------------------------------

// What the optimisations of Devlin 2017 did since dgm_open: counts of all workers and models.
typedef struct dgm_optimisations {
    size_t size;
    uint64_t rows, distinct;             // decoder rows, and distinct parents of each step
    uint64_t state_rows, state_products; // rows of all recurrent layers, products with states made
    uint64_t source_words, source_found; // words of the first encoder layer, of them looked up
    uint64_t target_words, target_found;
    uint64_t context_products;  // rows multiplied by the matrix of the context
    uint64_t activation_values; // sigmoid and tanh
    uint64_t early_stops;       // sentences that the margin ended
    uint64_t table_bytes;       // of pre-computed products
    // Unknown words of the output that were replaced, those in n-best lists included; of them by
    // the dictionary. The others are copies of source words.
    uint64_t unknown_words, unknown_translated;
    int32_t table_words[2];     // source, target
    int32_t merging;
    int32_t plain_attention; // contexts are multiplied one by one, not once per source position
    const char *activations; // "polynomial", "table", "libm"
} dgm_optimisations;

DGM_API void dgm_optimisations_count_sized(const dgm_translator *t, dgm_optimisations *counts,
                                           size_t size);
static inline void dgm_optimisations_count(const dgm_translator *t, dgm_optimisations *counts)
{
    dgm_optimisations_count_sized(t, counts, sizeof *counts);
}

// ---- profile ----------------------------------------------------------------------------------

// Where the time of a translator goes, by kind of operation.
typedef struct dgm_profile_row {
    size_t size;
    const char *phase;       // "encode", "step", "readout", "rank"
    const char *operation;   // "linear", "quantise", "encoder attention", "softmax and top-k", ...
    const char *precision;   // of linear and quantise, else ""
    int32_t inputs, outputs; // of linear, else 0
    uint64_t calls, rows;
    uint64_t multiply_adds; // of real rows and wanted columns: no padding
    uint64_t weight_bytes;  // packed weights walked over
    uint64_t other_bytes;   // activations read and written
    double seconds;         // CPU time
} dgm_profile_row;

typedef struct dgm_profile {
    size_t size;
    const dgm_profile_row *const *rows; // phase by phase, longest first
    size_t count;
    double elapsed;  // wall time since dgm_profile_start; the others are CPU time
    double busy;     // workers' time, of all of them together; with the rows and search
    double search;   // of it: search and bookkeeping, what is not in a row
    double counting; // of it: reading the clock, estimated; the rows are without it
    double text;     // not in busy: cutting and encoding of input, decoding and joining of output
    uint64_t encodes, steps, ranks; // calls
} dgm_profile;

// Starts counting at zero. While it is off, which it is at first, counting costs a look at a
// pointer per operation. No translation may be under way during any of these calls.
DGM_API dgm_status dgm_profile_start(dgm_translator *t, dgm_error *error);
DGM_API dgm_status dgm_profile_read(dgm_translator *t, dgm_profile **profile, dgm_error *error);
DGM_API void dgm_profile_stop(dgm_translator *t);
DGM_API void dgm_profile_free(dgm_profile **profile);

// ---- statistics ---------------------------------------------------------------------------------

// Something that is known of a translator and its work since dgm_open: a number or a text.
typedef struct dgm_statistic {
    size_t size;
    const char *name; // "target_tokens"; it stays from release to release
    const char *text; // the value; NULL: it is a number
    double number;    // of counts exact below 2^53
    int32_t whole;    // it has no fraction
    const char *help; // what it says, in a few words
} dgm_statistic;

typedef struct dgm_statistics {
    size_t size;
    const dgm_statistic *const *items; // always the same ones in the same order, later releases may add some
    size_t count;
} dgm_statistics;

// All of dgm_describe, dgm_count and dgm_optimisations_count by name, for programs that hand it on: as
// JSON (`translate --stats=json`), to a page of metrics. While a profile is on (dgm_profile_start),
// items of the time follow; then no translation may be under way.
DGM_API dgm_status dgm_statistics_read(dgm_translator *t, dgm_statistics **statistics,
                                       dgm_error *error);
DGM_API void dgm_statistics_free(dgm_statistics **statistics);

#ifdef __cplusplus
}
#endif
#endif
