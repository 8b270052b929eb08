// SPDX-License-Identifier: MIT
// Quantisation for storage; see quantize.h. Called by convert.c and by backends that pack weights.
// Runs once per model, so it is plain C in the fixed order of the rows: the same file everywhere.
#include "format/quantize.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

// Largest |w|; negative when a value is not finite. By bits, whose order is that of the numbers: compilers make vectors
// of it.
static float largest(const float *w, size_t n)
{
    int32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, &w[i], sizeof bits);
        bits &= INT32_MAX;
        max = bits > max ? bits : max;
    }
    float value;
    memcpy(&value, &max, sizeof value);
    return isfinite(value) ? value : -1;
}

// Rounded to the nearest integer, to even; |v| is at most a little more than limit, which is below 2^22.
static inline int clip(float v, int limit)
{
    const float magic = 12582912.0f; // 1.5 * 2^23: sums have no fraction
    const int q = (int)((v + magic) - magic);
    return q > limit ? limit : q < -limit ? -limit : q;
}

bool dgm_quantize_i8(const float *w, int rows, int cols, int8_t *q, float *scale)
{
    size_t n = (size_t)cols;
    for (size_t r = 0; r < (size_t)rows; r++) {
        float max = largest(w + r * n, n);
        if (max < 0) return false;
        float s = max / 127;
        if (s < 1e-30f) s = 1; // a row of zeros, or of nothing but underflow
        for (size_t i = 0; i < n; i++) q[r * n + i] = (int8_t)clip(w[r * n + i] / s, 127);
        scale[r] = s;
    }
    return true;
}

int dgm_quantize_i16_bits(float max, int max_bits)
{
    int bits = max_bits;
    while (bits > -120 && ldexp((double)max, bits) > 32767) bits--;
    return bits;
}

void dgm_quantize_i16_by(const float *w, size_t n, int bits, int16_t *q)
{
    const float factor = ldexpf(1, bits);
    for (size_t i = 0; i < n; i++) q[i] = (int16_t)clip(w[i] * factor, 32767);
}

bool dgm_quantize_i16(const float *w, int rows, int cols, int max_bits, int16_t *q, float *scale)
{
    size_t n = (size_t)rows * (size_t)cols;
    float max = largest(w, n);
    if (max < 0) return false;
    const int bits = dgm_quantize_i16_bits(max, max_bits);
    dgm_quantize_i16_by(w, n, bits, q);
    *scale = ldexpf(1, -bits);
    return true;
}
