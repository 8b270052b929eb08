// SPDX-License-Identifier: MIT
// What gguf_read.c (opens and checks) and gguf_get.c (looks up) share.
#ifndef DGM_FORMAT_GGUF_PRIVATE_H
#define DGM_FORMAT_GGUF_PRIVATE_H

#include "base/mapfile.h"
#include "format/gguf.h"

struct dgm_gguf {
    dgm_mapfile file; // empty when opened from memory
    const uint8_t *data;
    size_t size;
    char *path;
    uint32_t alignment;
    dgm_meta *meta; // [n_meta] in file order
    dgm_tensor *tensors;
    uint64_t *offsets;      // [n_tensors] from the start of the data section
    uint32_t *meta_order;   // [n_meta] indices sorted by key
    uint32_t *tensor_order; // [n_tensors] indices sorted by name
    int n_meta, n_tensors;
    uint8_t *copies; // NUL-terminated strings and aligned number arrays
};

// Bytes of a metadata value of fixed size; 0 for strings, arrays and unknown types.
size_t dgm_meta_type_size(int type);

// The companion's name: "NAME.scale". out has room for DGM_GGUF_MAX_NAME + 8 bytes.
void dgm_scale_name(char *out, const char *name);

#endif
