// SPDX-License-Identifier: MIT
// Static scales of activations: translates a text in f32 and looks at the inputs of every product.
// Used by `dragoman quantize --calibrate` (quantize.c).
//
// Per linear layer the distribution of max |x| over the input rows is kept as a histogram with 32
// bins to the octave (a bin is 2.2 % wide), mean and deviation. A scale is then the quantile
// 1 - saturate, divided by 127.
#ifndef DGM_TOOLS_CALIBRATE_H
#define DGM_TOOLS_CALIBRATE_H

#include "dragoman/tools.h"
#include "format/gguf.h"

// Numbers of a tensor NAME.input_scale, docs/internals/FORMAT.md 1.2: scale, then what it was made from.
enum { DGM_INPUT_SCALE_SIZE = 8 };

typedef struct dgm_calibration {
    dgm_quantize_input *inputs; // names belong to this struct
    float (*values)[DGM_INPUT_SCALE_SIZE];
    size_t count;
    uint64_t lines, source_tokens, target_tokens;
} dgm_calibration;

// On failure *c is empty.
dgm_status dgm_calibrate(dgm_calibration *c, const char *model, const dgm_quantize_options *options,
                         dgm_error *err);
void dgm_calibration_free(dgm_calibration *c);

#endif
