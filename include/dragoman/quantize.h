// SPDX-License-Identifier: MIT
// Dragoman tools: weights in smaller types. Conventions as in tools.h.
#ifndef DRAGOMAN_QUANTIZE_H
#define DRAGOMAN_QUANTIZE_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

// Zero or NULL is the default of every field but `saturate` (dgm_quantize_default).
typedef struct dgm_quantize_options {
    size_t size;
    // Storage of the matrices: "f32", "f16", "bf16", "i16", "i8". Must be given. Vectors stay f32.
    const char *type;
    // Matrices whose name matches one of these stay as they are; * and ? as in a shell.
    const char *const *keep;
    size_t keep_count;
    // Recommended precision of products, dragoman.decode.precision: "f32", "i16", "i8", or "none"
    // to leave the key out. NULL: what fits the type.
    const char *precision;
    // Text to translate, line by line; the inputs of all products are watched and a static scale is
    // stored with every weight (docs/internals/FORMAT.md, 1.2). NULL: none.
    const char *calibrate;
    double saturate; // share of the input rows that a static scale may clip. Default 0.001
    int threads;     // of the calibration; 0: one per core. Default 1
    // Model card; NULL: as in the input.
    const char *name, *description, *license, *author, *url;
    const char *card_file; // Markdown
    dgm_progress progress; // of the calibration
    // A level of CPUs ("avx2", "vnni", "amx", ...): layers of i8 weights are stored as it packs them, too, so that
    // programs begin at once and share their memory; others read the file as well. Only with type "i8". NULL: not so.
    const char *packed;
} dgm_quantize_options;

DGM_API void dgm_quantize_init(dgm_quantize_options *options, size_t size);
static inline void dgm_quantize_default(dgm_quantize_options *options)
{
    dgm_quantize_init(options, sizeof *options);
}

// What became of one matrix. Errors are differences between the real values before and after.
typedef struct dgm_quantize_tensor {
    size_t size;
    const char *name, *from, *to; // types; the same two: copied bit by bit
    int32_t rows, cols;
    uint64_t bytes_before, bytes_after; // with scales
    double largest;                     // max |w|
    double max_error;
    double relative_error; // sqrt(sum of squared errors / sum of squared values)
    uint64_t saturated;    // values larger than the type can hold at its scale: clipped
    uint64_t vanished;     // values that became 0
    int through_f32;       // integers of another kind: rounded a second time
} dgm_quantize_tensor;

// max |x| of the input rows that one weight met, over the calibration text.
typedef struct dgm_quantize_input {
    size_t size;
    const char *name; // of the weight
    uint64_t rows;
    double scale; // stored: 127 of them are the largest input that is not clipped
    double mean, deviation, median, q90, q99, q999, max;
    double clipped; // share of rows that the scale clips
} dgm_quantize_input;

typedef struct dgm_quantize_report {
    size_t size;
    const dgm_quantize_tensor *const *tensors; // every matrix, in file order
    size_t tensor_count;
    const dgm_quantize_input *const *inputs; // with `calibrate`
    size_t input_count;
    size_t converted, kept, through_f32;
    uint64_t bytes_before, bytes_after;           // of all tensors
    double relative_error;                        // of all converted values together
    uint64_t lines, source_tokens, target_tokens; // of the calibration
} dgm_quantize_report;

// Writes a model with its matrices in another type. Everything else is copied. output NULL: only
// the report is made. report NULL: not wanted. An existing output is replaced at the end, in one
// step; it may be the input.
DGM_API dgm_status dgm_quantize(const char *model, const char *output,
                                const dgm_quantize_options *options, dgm_quantize_report **report,
                                dgm_error *error);
DGM_API void dgm_quantize_report_free(dgm_quantize_report **report);

#ifdef __cplusplus
}
#endif
#endif
