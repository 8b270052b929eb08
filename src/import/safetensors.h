// SPDX-License-Identifier: MIT
// Reader of safetensors files, whole or in shards, for the importers.
//
//     | u64 N | N bytes of JSON: {"name": {"dtype", "shape", "data_offsets": [begin, end]}} | data
//     |
//
// Opening checks everything the file controls: N against the file and 100 MB, ranges against the
// file, size = product of the shape times the element, no overlap, unique names over all shards,
// shard names without folders. Tensors are views into the mapped files; they are not aligned.
#ifndef DGM_IMPORT_SAFETENSORS_H
#define DGM_IMPORT_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define DGM_SAFE_MAX_DIMS 8

typedef enum dgm_safe_type {
    DGM_SAFE_OTHER = 0, // integers, f64, 8-bit floats: known by size only
    DGM_SAFE_F32,
    DGM_SAFE_F16,
    DGM_SAFE_BF16
} dgm_safe_type;

typedef struct dgm_safe_tensor {
    const char *name;
    const char *dtype; // as spelled in the file
    dgm_safe_type type;
    int n_dims;
    int shape[DGM_SAFE_MAX_DIMS];
    int rows, cols;      // cols: last dimension; rows: product of the others (1 without any)
    const uint8_t *data; // unaligned
    size_t bytes;
} dgm_safe_tensor;

typedef struct dgm_safetensors dgm_safetensors;

// Folder with model.safetensors, or with model.safetensors.index.json and the shards it names.
dgm_status dgm_safetensors_open(dgm_safetensors **s, const char *dir, dgm_error *err);
// One whole file in memory, which stays the caller's and must outlive *s.
dgm_status dgm_safetensors_open_memory(dgm_safetensors **s, const void *data, size_t size,
                                       dgm_error *err);
void dgm_safetensors_close(dgm_safetensors **s); // sets *s to NULL; accepts NULL inside

size_t dgm_safetensors_count(const dgm_safetensors *s);
const dgm_safe_tensor *dgm_safetensors_get(const dgm_safetensors *s, size_t i);
// Index of a tensor, -1 if absent.
int dgm_safetensors_find(const dgm_safetensors *s, const char *name);

// All values of a tensor of type f32, f16 or bf16. out [rows, cols]
void dgm_safe_to_f32(const dgm_safe_tensor *t, float *out);

#endif
