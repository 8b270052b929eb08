// SPDX-License-Identifier: MIT
// What kernels of attention share: where keys are, and what is added to their scores.
#ifndef DGM_BACKEND_CUDA_ATTEND_CUH
#define DGM_BACKEND_CUDA_ATTEND_CUH

#include <stddef.h>

#include "backend/cuda/device_math.cuh"
#include "backend/cuda/kernels_cuda.h"

// Row of key j of a query whose keys begin at `first`.
static __device__ __forceinline__ int key_row(const cuda_attention &a, int first, int j)
{
    return a.entries ? a.entries[first + j] : first * a.unit + j;
}

// What is added to the scores of query i: that of key j at [j].
static __device__ __forceinline__ const float *bias_of(const cuda_attention &a, int i, int head)
{
    if (!a.bias) return nullptr;
    const int place = a.entries ? a.length[i] - 1 : i - a.first[i];
    return a.bias + (size_t)head * (2 * a.reach - 1) + (a.reach - 1 - place);
}

// attend_tiles.cu, attend_halves.cu; false: not of such heads.
bool cuda_run_attend_tiles(cuda_tape *tape, const cuda_attention *a);
bool cuda_run_attend_halves(cuda_tape *tape, const cuda_attention *a);

#endif
