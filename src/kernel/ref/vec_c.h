// SPDX-License-Identifier: MIT
// The 16-lane virtual vector in plain C: what each operation of vec_<isa>.h means, bit by bit.
//
// The templates (*_tmpl.h) are written over these operations only; x86/vec_avx2.h holds a vector
// in two ymm registers, x86/vec_avx512.h in one zmm. A new ISA supplies this list.
//   - Arithmetic is IEEE single precision, rounded to nearest even; vf_fma rounds once.
//   - vf_max and vf_min return the second operand if either is NaN or if both are zero, as the
//     x86 instructions do; a NaN in the second operand therefore comes through.
//   - The _n forms touch lanes 0..n-1 of memory only (1 <= n <= 16); vf_load_n fills with zero.
#ifndef DGM_KERNEL_REF_VEC_C_H
#define DGM_KERNEL_REF_VEC_C_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/attr.h"
#include "base/bytes.h"

// With a sanitizer's checks inlined a hundredfold the compiler needs a minute per file.
#if DGM_ASAN || defined(__SANITIZE_THREAD__)
#define VF_FN static __attribute__((noinline, unused))
#else
#define VF_FN static inline
#endif

typedef struct vf {
    float f[16];
} vf;

// How many sums a loop may keep in registers: 1, 4 or 16.
enum { VF_SUMS = 1 };

// In loops of 16 the compiler may use what vectors the base instruction set has.
#define VF_EACH for (int i = 0; i < 16; i++)

VF_FN vf vf_set(float x)
{
    vf r;
    VF_EACH r.f[i] = x;
    return r;
}

VF_FN vf vf_load(const float *p)
{
    vf r;
    memcpy(r.f, p, sizeof r.f);
    return r;
}

VF_FN vf vf_load_n(const float *p, int n)
{
    vf r = vf_set(0.0f);
    memcpy(r.f, p, (size_t)n * sizeof(float));
    return r;
}

// 16 bfloat16 numbers, converted exactly.
VF_FN vf vf_load_bf16_n(const uint16_t *p, int n)
{
    vf r = vf_set(0.0f);
    for (int i = 0; i < n; i++) r.f[i] = dgm_bf16_to_float(p[i]);
    return r;
}

VF_FN vf vf_load_bf16(const uint16_t *p)
{
    return vf_load_bf16_n(p, 16);
}

// 16 IEEE halves, converted exactly; and back, rounded to nearest even.
VF_FN vf vf_load_f16(const uint16_t *p)
{
    vf r;
    VF_EACH r.f[i] = dgm_half_to_float(p[i]);
    return r;
}

VF_FN vf vf_load_f16_n(const uint16_t *p, int n)
{
    vf r = vf_set(0.0f);
    for (int i = 0; i < n; i++) r.f[i] = dgm_half_to_float(p[i]);
    return r;
}

VF_FN void vf_store_f16_n(uint16_t *p, vf a, int n)
{
    for (int i = 0; i < n; i++) p[i] = dgm_float_to_half(a.f[i]);
}

VF_FN void vf_store_f16(uint16_t *p, vf a)
{
    vf_store_f16_n(p, a, 16);
}

// 16 signed bytes, converted exactly.
VF_FN vf vf_load_i8(const int8_t *p)
{
    vf r;
    VF_EACH r.f[i] = (float)p[i];
    return r;
}

VF_FN vf vf_load_i8_n(const int8_t *p, int n)
{
    vf r = vf_set(0.0f);
    for (int i = 0; i < n; i++) r.f[i] = (float)p[i];
    return r;
}

// 16 integers, rounded to nearest even.
VF_FN vf vf_load_i32(const int32_t *p)
{
    vf r;
    VF_EACH r.f[i] = (float)p[i];
    return r;
}

// table[index], for lanes that are small integers not below 0.
VF_FN vf vf_gather(const float *table, vf index)
{
    vf r;
    VF_EACH r.f[i] = table[(int)index.f[i]];
    return r;
}

// Rounded to nearest even, for |x| < 2^22: adding 1.5 * 2^23 leaves no place for a fraction.
VF_FN int vf_round(float x)
{
    return (int)((x + 12582912.0f) - 12582912.0f);
}

// Lanes in [-128, 127], rounded to nearest even; stored + 128.
VF_FN void vf_store_u8(uint8_t *p, vf a)
{
    VF_EACH p[i] = (uint8_t)(vf_round(a.f[i]) + 128);
}

// Four such vectors one behind the other.
VF_FN void vf_store_u8_4(uint8_t *p, vf a, vf b, vf c, vf d)
{
    vf_store_u8(p, a);
    vf_store_u8(p + 16, b);
    vf_store_u8(p + 32, c);
    vf_store_u8(p + 48, d);
}

// Lanes in [-32768, 32767], rounded to nearest even.
VF_FN void vf_store_i16(int16_t *p, vf a)
{
    VF_EACH p[i] = (int16_t)vf_round(a.f[i]);
}

VF_FN void vf_store(float *p, vf a)
{
    memcpy(p, a.f, sizeof a.f);
}

VF_FN void vf_store_n(float *p, vf a, int n)
{
    memcpy(p, a.f, (size_t)n * sizeof(float));
}

// Lanes n..15 become zero.
VF_FN vf vf_keep_n(vf a, int n)
{
    for (int i = n; i < 16; i++) a.f[i] = 0.0f;
    return a;
}

// Lanes n..15 become those of b.
VF_FN vf vf_blend_n(vf a, vf b, int n)
{
    for (int i = n; i < 16; i++) a.f[i] = b.f[i];
    return a;
}

VF_FN vf vf_add(vf a, vf b)
{
    VF_EACH a.f[i] += b.f[i];
    return a;
}

VF_FN vf vf_sub(vf a, vf b)
{
    VF_EACH a.f[i] -= b.f[i];
    return a;
}

VF_FN vf vf_mul(vf a, vf b)
{
    VF_EACH a.f[i] *= b.f[i];
    return a;
}

VF_FN vf vf_div(vf a, vf b)
{
    VF_EACH a.f[i] /= b.f[i];
    return a;
}

// a * b + c with one rounding.
VF_FN vf vf_fma(vf a, vf b, vf c)
{
    VF_EACH c.f[i] = fmaf(a.f[i], b.f[i], c.f[i]);
    return c;
}

VF_FN vf vf_max(vf a, vf b)
{
    VF_EACH b.f[i] = a.f[i] > b.f[i] ? a.f[i] : b.f[i];
    return b;
}

VF_FN vf vf_min(vf a, vf b)
{
    VF_EACH b.f[i] = a.f[i] < b.f[i] ? a.f[i] : b.f[i];
    return b;
}

VF_FN vf vf_abs(vf a)
{
    VF_EACH a.f[i] = fabsf(a.f[i]);
    return a;
}

// a < b ? x : y; a NaN compares false.
VF_FN vf vf_select_lt(vf a, vf b, vf x, vf y)
{
    VF_EACH y.f[i] = a.f[i] < b.f[i] ? x.f[i] : y.f[i];
    return y;
}

// The bits of t, shifted left by 23, added to the bits of p: multiplies p by 2^n when t is
// n + 1.5 * 2^23 and the result is a normal number.
VF_FN vf vf_scale_exponent(vf p, vf t)
{
    VF_EACH
    {
        uint32_t a, b;
        memcpy(&a, &p.f[i], 4);
        memcpy(&b, &t.f[i], 4);
        a += b << 23;
        memcpy(&p.f[i], &a, 4);
    }
    return p;
}

// Bit i is set if a > b in lane i.
VF_FN unsigned vf_greater_bits(vf a, vf b)
{
    unsigned bits = 0;
    VF_EACH bits |= (unsigned)(a.f[i] > b.f[i]) << i;
    return bits;
}

// Lane l takes l + (l + 8), then l + (l + 4), l + (l + 2), l + (l + 1).
VF_FN float vf_fold_add(vf a)
{
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) a.f[i] += a.f[i + half];
    return a.f[0];
}

VF_FN float vf_fold_max(vf a)
{
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) a.f[i] = a.f[i] > a.f[i + half] ? a.f[i] : a.f[i + half];
    return a.f[0];
}

// Lane i is vf_fold_add(a[i]).
VF_FN vf vf_fold_add_16(const vf a[16])
{
    vf r;
    VF_EACH r.f[i] = vf_fold_add(a[i]);
    return r;
}

#undef VF_EACH
#undef VF_FN
#endif
