// SPDX-License-Identifier: MIT
// External sort: of more records than memory holds. Counting and estimating of n-gram models
// (lm/lm_train.c), building them (lm/lm_build.c) and counting of phrase pairs (phrase/phrase_count.c)
// are made of it.
//
// A record is `width` words of 32 bits; the first `keys` of them are its key, compared one after
// the other. Records are collected in a buffer; when it is full it is sorted (by digits of 11 bits,
// last one first: linear, stable) and written behind the others as a run into one unnamed file.
// Reading merges the runs. If everything fits into the buffer no file is made, and the order of
// what is read is the same either way.
//
//     buffer  | record record ... |   scratch of the same size for the sort
//     file    | run 0 | run 1 | ...   each sorted; the reader holds a window of every one
//
// With `sum` records of equal keys become one whose 64-bit number behind the keys is their sum.
#ifndef DGM_BASE_EXTSORT_H
#define DGM_BASE_EXTSORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/status.h"

typedef struct dgm_extsort dgm_extsort;

typedef struct dgm_extsort_options {
    int keys, width;
    size_t memory;      // bytes of buffer and scratch together, at most
    bool sum;           // add up records of equal keys
    bool sorted;        // records come in order: a tape
    const char *folder; // of the file; NULL: $TMPDIR, else /tmp
} dgm_extsort_options;

dgm_status dgm_extsort_open(dgm_extsort **r, const dgm_extsort_options *options, dgm_error *err);
void dgm_extsort_close(dgm_extsort **r); // sets *r to NULL; accepts NULL inside

dgm_status dgm_extsort_push(dgm_extsort *r, const uint32_t *record, dgm_error *err);
// From the first record again, no pushing afterwards. May be called any number of times.
dgm_status dgm_extsort_rewind(dgm_extsort *r, dgm_error *err);
// The next record, borrowed until the next call; NULL at the end.
dgm_status dgm_extsort_next(dgm_extsort *r, const uint32_t **record, dgm_error *err);
uint64_t dgm_extsort_spilled(const dgm_extsort *r); // bytes written to the file

static inline void dgm_extsort_put_f64(uint32_t *at, double v)
{
    memcpy(at, &v, sizeof v);
}

static inline double dgm_extsort_f64(const uint32_t *at)
{
    double v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline void dgm_extsort_put_u64(uint32_t *at, uint64_t v)
{
    memcpy(at, &v, sizeof v);
}

static inline uint64_t dgm_extsort_u64(const uint32_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

// Negative, zero, positive: key a comes before, with, after b.
static inline int dgm_extsort_compare(const uint32_t *a, const uint32_t *b, int keys)
{
    for (int i = 0; i < keys; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

#endif
