// SPDX-License-Identifier: MIT
// Hidden vectors of a model that translates a text, with its best predictions: recorded to a file
// and walked again. What `dragoman cluster` learns from and measures with.
#ifndef DGM_TOOLS_RECORD_H
#define DGM_TOOLS_RECORD_H

#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "dragoman/tools.h"
#include "tools/directions.h"

typedef struct dgm_record {
    FILE *file;
    int width, best;         // numbers of a vector, predictions beside it
    size_t size;             // bytes of one record: f16 [width], i32 [best]
    uint64_t lines, records; // that are in the file
    int64_t left;            // while walking: records of this chunk that were not read yet
    char source[64], target[64]; // the direction that was translated, "" where the model does not say
    char device[64];             // where
} dgm_record;

// The translator whose vectors are recorded: the whole vocabulary, o's beam, precision and device. later:
// lines say their directions.
dgm_status dgm_record_open(dgm_translator **t, const char *model, bool later,
                           const dgm_cluster_options *o, dgm_error *err);
// What is translated: a text, or the lines of one block of it (directions NULL: all).
typedef struct dgm_record_text {
    const char *path;
    const dgm_text_directions *directions;
    int block;
} dgm_record_text;

// Opens or makes the file and translates the lines of the text that are not in it yet. path NULL:
// a file without a name that vanishes in the end. The same model, text and settings continue a file
// that was left unfinished; others are an error.
dgm_status dgm_record_make(dgm_record *r, dgm_translator *t, const dgm_record_text *text,
                           const char *path, const dgm_cluster_options *o, dgm_error *err);
void dgm_record_close(dgm_record *r); // accepts all zero

// Walks all records from the first, up to `most` at a time: vectors f16 [most, width], predictions
// [most, best]; *count is 0 behind the last.
dgm_status dgm_record_rewind(dgm_record *r, dgm_error *err);
dgm_status dgm_record_next(dgm_record *r, size_t most, uint16_t *vectors, int32_t *predictions,
                           size_t *count, dgm_error *err);

#endif
