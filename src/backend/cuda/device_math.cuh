// SPDX-License-Identifier: MIT
// Functions that kernels share: activations, and sums over a block in one fixed order.
#ifndef DGM_BACKEND_CUDA_DEVICE_MATH_CUH
#define DGM_BACKEND_CUDA_DEVICE_MATH_CUH

#include <math.h>

#include "backend/cuda/kernels_cuda.h"
#include "backend/cuda/ptx.cuh"
#include "kernel/act.h"

static __device__ __forceinline__ float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

// Once for all kernels of a file: products have it behind every number of a tile.
static __device__ CUDA_NOINLINE float activate_other(float x, int act)
{
    switch (act) {
    case DGM_ACT_RELU10: return fminf(fmaxf(x, 0.0f), 10.0f);
    case DGM_ACT_SWISH: return x * sigmoid(x);
    case DGM_ACT_GELU: return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    case DGM_ACT_GELU_TANH:
        return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * fmaf(0.044715f * x, x * x, x)));
    case DGM_ACT_GELU_SIGMOID: return fmaxf(x, -51.0f) * sigmoid(1.702f * fmaxf(x, -51.0f));
    case DGM_ACT_TANH: return tanhf(x);
    case DGM_ACT_SIGMOID: return sigmoid(x);
    default: return x;
    }
}

static __device__ __forceinline__ float activate(float x, int act)
{
    if (act == DGM_ACT_NONE) return x;
    if (act == DGM_ACT_RELU) return x > 0.0f ? x : 0.0f;
    return activate_other(x, act);
}

// Two neighbours, the first at an even place.
static __device__ __forceinline__ uint32_t round_pair(const cuda_halves &h, float x, float y)
{
    if (!h.bf16) return pack_f16(x, y);
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
    return *(const uint32_t *)&pair;
}

static __device__ __forceinline__ void put_pair(const cuda_halves &h, int row, int col, float x, float y)
{
    *(uint32_t *)((uint16_t *)h.data + (size_t)row * h.stride + col) = round_pair(h, x, y);
}

static __device__ __forceinline__ void put_one(const cuda_halves &h, int row, int col, float x)
{
    ((uint16_t *)h.data)[(size_t)row * h.stride + col] = (uint16_t)round_pair(h, x, x);
}

// Every thread of the block gets the result; scratch holds a number a warp.
template <int threads, typename Fold>
static __device__ __forceinline__ float block_fold(float x, float *scratch, Fold fold)
{
    for (int n = 16; n; n /= 2) x = fold(x, __shfl_xor_sync(~0u, x, n));
    __syncthreads(); // scratch may still be read
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    x = scratch[0];
    for (int w = 1; w < threads / 32; w++) x = fold(x, scratch[w]);
    return x;
}

template <int threads> static __device__ __forceinline__ float block_sum(float x, float *scratch)
{
    return block_fold<threads>(x, scratch, [](float a, float b) { return a + b; });
}

template <int threads> static __device__ __forceinline__ float block_max(float x, float *scratch)
{
    return block_fold<threads>(x, scratch, [](float a, float b) { return fmaxf(a, b); });
}

#endif
