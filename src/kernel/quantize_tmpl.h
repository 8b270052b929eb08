// SPDX-License-Identifier: MIT
// Quantisation of one row, the text of quantize_<isa>.c; kernels.h has the contract.
//
// Included after a vec_<isa>.h with QUANTIZE_I8, QUANTIZE_I8_STATIC, QUANTIZE_I16,
// QUANTIZE_I16_STATIC and ROUND_BF16 defined as the functions' names.
#include <math.h>

#include "base/bytes.h"
#include "kernel/bytes_tmpl.h"

// Largest |x|; NaN does not count.
static inline float quantize_range(const float *x, int n)
{
    vf m0 = vf_set(0.0f), m1 = m0;
    int i = 0;
    for (; n - i >= 32; i += 32) {
        m0 = vf_max(vf_abs(vf_load(x + i)), m0);
        m1 = vf_max(vf_abs(vf_load(x + i + 16)), m1);
    }
    for (; n - i >= 16; i += 16) m0 = vf_max(vf_abs(vf_load(x + i)), m0);
    if (i < n) m1 = vf_max(vf_abs(vf_load_n(x + i, n - i)), m1);
    return vf_fold_max(vf_max(m0, m1));
}

static void QUANTIZE_I8(uint8_t *q, float *scale, const float *x, int n)
{
    quantize_by_range(q, scale, x, n, quantize_range(x, n));
}

static void QUANTIZE_I8_STATIC(uint8_t *q, const float *x, int n, float scale)
{
    quantize_bytes(q, x, n, 1.0f / scale);
}

// 2^s as the largest power that keeps range * 2^s, rounded, within limit. range is finite and at
// least 1e-30, so that s lies in [-127 .. 115] and both 2^s and 2^-s are floats.
static inline float quantize_power(float range, int limit)
{
    int s = ilogbf((float)limit) - ilogbf(range) + 1;
    while (ldexpf(range, s) > (float)limit + 0.5f || rintf(ldexpf(range, s)) > (float)limit) s--;
    return ldexpf(1.0f, s);
}

static inline void quantize_words(int16_t *q, const float *x, int n, float by, int limit)
{
    const vf factor = vf_set(by), low = vf_set(-(float)limit), high = vf_set((float)limit);
    int i = 0;
    for (; n - i >= 16; i += 16)
        vf_store_i16(q + i, quantize_scale(vf_load(x + i), factor, low, high));
    if (i < n) {
        vf_store_i16(q + i, quantize_scale(vf_load_n(x + i, n - i), factor, low, high));
        i += 16;
    }
    const int depth = dgm_gemm_i16_depth(n);
    if (i < depth) memset(q + i, 0, (size_t)(depth - i) * sizeof *q);
}

static void QUANTIZE_I16(int16_t *q, float *scale, const float *x, int n, int limit)
{
    const float range = quantize_range(x, n);
    float power = 1.0f;
    *scale = 1.0f;
    if (range > 3.4028234e38f) {
        power = 0.0f;
        *scale = INFINITY;
    } else if (range >= 1e-30f) {
        power = quantize_power(range, limit);
        *scale = 1.0f / power;
    } else {
        power = 0.0f;
    }
    quantize_words(q, x, n, power, limit);
}

static void QUANTIZE_I16_STATIC(int16_t *q, const float *x, int n, float scale, int limit)
{
    quantize_words(q, x, n, 1.0f / scale, limit);
}

// On integers, which the compiler turns into vectors: the instruction of that name takes denormals for zeros.
static void ROUND_BF16(uint16_t *y, const float *x, int n)
{
    const int depth = dgm_gemm_bf16_depth(n);
    for (int i = 0; i < n; i++) y[i] = dgm_float_to_bf16(x[i]);
    if (n < depth) memset(y + n, 0, (size_t)(depth - n) * sizeof *y);
}
