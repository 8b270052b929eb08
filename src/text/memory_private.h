// SPDX-License-Identifier: MIT
// A translation memory (dragoman/memory.h): sources by number, and the translation of each.
#ifndef DGM_TEXT_MEMORY_PRIVATE_H
#define DGM_TEXT_MEMORY_PRIVATE_H

#include "base/bytes.h"
#include "base/words.h"
#include "dragoman/memory.h"

typedef struct dgm_memory_target {
    size_t begin, size; // in the pool
} dgm_memory_target;

struct dgm_memory {
    char *source, *target;      // languages
    dgm_words sources;          // with every run of white space as one blank
    dgm_memory_target *targets; // [sources.count]
    size_t target_cap;
    dgm_writer pool; // a NUL behind each
};

#endif
