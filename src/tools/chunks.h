// SPDX-License-Identifier: MIT
// Translating a text for what is seen on the way (calibration, records of hidden vectors): lines go
// through the translator in chunks, and nobody reads the translations.
#ifndef DGM_TOOLS_CHUNKS_H
#define DGM_TOOLS_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/tools.h"
#include "tools/directions.h"

enum { DGM_CHUNK_LINES = 256, DGM_CHUNK_BYTES = 1 << 20 }; // a chunk is full with either

typedef struct dgm_chunks {
    const char *text;     // the file
    uint64_t skip, lines; // first lines that are left out; lines to translate, 0: all
    const dgm_text_directions *directions; // only the lines of `block`, each in its direction, skip and
    int block;                             // lines counted among them; NULL: all, in the translator's
    // After every chunk; NULL: not wanted.
    dgm_status (*done)(void *cookie, const dgm_results *results, dgm_error *err);
    void *cookie;
    const char *stage; // for progress
    dgm_progress progress;
} dgm_chunks;

dgm_status dgm_chunks_translate(const dgm_chunks *c, dgm_translator *t, dgm_error *err);

#endif
