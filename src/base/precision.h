// SPDX-License-Identifier: MIT
// How products are computed. Which of these a device has is one of its properties
// (backend/device.h); a model file recommends one of the first DGM_PRECISIONS_IN_FILES.
#ifndef DGM_BASE_PRECISION_H
#define DGM_BASE_PRECISION_H

#include <stddef.h>

typedef enum dgm_precision {
    DGM_PRECISION_F32 = 0,
    DGM_PRECISION_I16,
    DGM_PRECISION_I8,
    DGM_PRECISION_F16,
    DGM_PRECISION_BF16,
    DGM_PRECISION_COUNT
} dgm_precision;

enum { DGM_PRECISIONS_IN_FILES = DGM_PRECISION_I8 + 1 };

// In the order of the enumeration, NULL at the end.
extern const char *const dgm_precision_names[];
// The first three alone, for model files.
extern const char *const dgm_precision_file_names[];

// "f32, i16, i8" for a set of bits 1 << precision, into buffer.
const char *dgm_precision_list(unsigned set, char *buffer, size_t size);

#endif
