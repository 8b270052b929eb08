// SPDX-License-Identifier: MIT
// Halves of IEEE 754: the few functions of CUDA's header that src/backend/cuda uses.
#ifndef DGM_TESTS_PLUGINS_SOFTCUDA_CUDA_FP16_H
#define DGM_TESTS_PLUGINS_SOFTCUDA_CUDA_FP16_H

#include "softcuda.h"

struct __half {
    uint16_t bits;
};

struct alignas(4) __half2 {
    __half x, y;
};

inline float softcuda_half(__half h)
{
    const int exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
    float x;
    if (exponent == 31)
        x = fraction ? NAN : INFINITY;
    else
        x = exponent ? ldexpf((float)(1024 + fraction), exponent - 25) : ldexpf((float)fraction, -24);
    return h.bits & 0x8000 ? -x : x;
}

struct softcuda_halves {
    float of[1 << 16];
    softcuda_halves()
    {
        for (int i = 0; i < 1 << 16; i++) of[i] = softcuda_half({(uint16_t)i});
    }
};

inline float __half2float(__half h)
{
    static const softcuda_halves all;
    return all.of[h.bits];
}

inline __half __float2half_rn(float x)
{
    const uint32_t u = __float_as_uint(x), sign = u >> 16 & 0x8000;
    const float size = fabsf(x);
    __half h;
    if (isnan(x))
        h.bits = 0x7fff;
    else if (size >= 65520.0f)
        h.bits = (uint16_t)(sign | 0x7c00);
    else if (size < 0x1p-14f)
        h.bits = (uint16_t)(sign | (uint32_t)lrintf(size * 0x1p24f));
    else
        h.bits = (uint16_t)(sign | (((u & 0x7fffffff) + 0xfff + (u >> 13 & 1) - (112u << 23)) >> 13));
    return h;
}

inline __half2 __floats2half2_rn(float a, float b)
{
    return {__float2half_rn(a), __float2half_rn(b)};
}

inline float2 __half22float2(__half2 h)
{
    return {__half2float(h.x), __half2float(h.y)};
}

#endif
