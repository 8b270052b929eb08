// SPDX-License-Identifier: MIT
// Halves with the exponent of a float: the few functions of CUDA's header that src/backend/cuda uses.
#ifndef DGM_TESTS_PLUGINS_SOFTCUDA_CUDA_BF16_H
#define DGM_TESTS_PLUGINS_SOFTCUDA_CUDA_BF16_H

#include "softcuda.h"

struct __nv_bfloat16 {
    uint16_t bits;
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

inline float __bfloat162float(__nv_bfloat16 h)
{
    return __uint_as_float((uint32_t)h.bits << 16);
}

inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    const uint32_t u = __float_as_uint(x);
    if (isnan(x)) return {0x7fff};
    return {(uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}

inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b)
{
    return {__float2bfloat16_rn(a), __float2bfloat16_rn(b)};
}

#endif
