// SPDX-License-Identifier: MIT
// A matrix of real values in any storage type of docs/internals/FORMAT.md, section 1.1, and what that costs.
// Used by the importers and by `dragoman quantize` (tools/quantize.c).
#ifndef DGM_FORMAT_CONVERT_H
#define DGM_FORMAT_CONVERT_H

#include "format/gguf.h"

typedef struct dgm_convert_error {
    double largest;            // max |w|
    double max_error;          // max |w - stored|
    double squares, of_errors; // sums of w^2 and of (w - stored)^2
    uint64_t saturated;        // values beyond the largest that the type and its scale can hold
    uint64_t vanished;         // values that became 0
} dgm_convert_error;

// f32, f16, bf16, i8 and i16 by name ("f16"); -1: none of them.
int dgm_convert_type(const char *name);

// Numbers in the scale companion of a matrix: rows (i8), 1 (i16) or 0.
int dgm_convert_scales(int type, int rows);

// real [rows, cols] -> data [rows, cols] of `type` and, for integers, scale (NULL otherwise).
// error NULL: not wanted. Numbers that are not finite, or too large for f16 or bf16, are refused;
// name is for the message.
dgm_status dgm_convert(const char *name, const float *real, int rows, int cols, int type,
                       void *data, float *scale, dgm_convert_error *error, dgm_error *err);

#endif
