// SPDX-License-Identifier: MIT
// Dragoman tools: the mean of several checkpoints. Conventions as in tools.h.
#ifndef DRAGOMAN_AVERAGE_H
#define DRAGOMAN_AVERAGE_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DGM_AVERAGE_MAX = 64 };

// Zero or NULL is the default of every field.
typedef struct dgm_average_options {
    size_t size;
    const double *weights; // [count] positive; NULL: equal
    const char *type;      // storage of the matrices. NULL: as in the first model
} dgm_average_options;

DGM_API void dgm_average_init(dgm_average_options *options, size_t size);
static inline void dgm_average_default(dgm_average_options *options)
{
    dgm_average_init(options, sizeof *options);
}

typedef struct dgm_average_report {
    size_t size;
    uint64_t tensors, parameters; // averaged
    uint64_t dropped_scales;      // static scales of activations: they belong to other weights
} dgm_average_report;

// Writes the mean of 2 to DGM_AVERAGE_MAX checkpoints of one model. DGM_ERR_ARGUMENT for models
// that differ in more than their weights. report NULL: not wanted.
DGM_API dgm_status dgm_average(const char *const *models, size_t count, const char *output,
                               const dgm_average_options *options, dgm_average_report *report,
                               dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
