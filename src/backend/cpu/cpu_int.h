// SPDX-License-Identifier: MIT
// Private to backend/cpu: the structures behind the opaque types of backend.h.
#ifndef DGM_BACKEND_CPU_CPU_INT_H
#define DGM_BACKEND_CPU_CPU_INT_H

#include "backend/backend.h"
#include "kernel/kernels.h"

struct dgm_backend {
    dgm_kernels k;
    unsigned flags;
};

struct dgm_linear {
    int rows, cols; // [rows, cols] = [out, in]
    void *packed;
    size_t packed_bytes;
    float *bias; // [rows] or NULL
};

struct dgm_embedding {
    const dgm_tensor *table;
};

struct dgm_vector {
    int rows, cols;
    float *data;
};

struct dgm_exec {
    dgm_backend *backend;
    dgm_arena arena;
};

static inline float *cpu_row(dgm_mat m, int row)
{
    return (float *)m.data + (size_t)row * (size_t)m.stride;
}

#endif
