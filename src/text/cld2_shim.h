// SPDX-License-Identifier: MIT
// The C face of CLD2, the Compact Language Detector. cld2_shim.cc catches what is thrown.
#ifndef DGM_TEXT_CLD2_SHIM_H
#define DGM_TEXT_CLD2_SHIM_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DGM_CLD2_MOST = 3 };

typedef struct dgm_cld2_candidate {
    char code[16]; // as CLD2 writes it: "de", "zh-Hant", "iw"
    int percent;   // of the text, 0 to 100
} dgm_cld2_candidate;

// Languages of valid UTF-8, the one of the most text first; returns how many, at most DGM_CLD2_MOST. best_effort: also
// of texts that are too short to be sure. *reliable: CLD2 is sure of the first. 0 also without memory.
int dgm_cld2(const char *text, size_t size, bool best_effort, dgm_cld2_candidate *candidates, bool *reliable);

#ifdef __cplusplus
}
#endif
#endif
