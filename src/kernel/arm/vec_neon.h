// SPDX-License-Identifier: MIT
// The 16-lane vector in four 128-bit registers; ref/vec_c.h says what each operation means.
//
// Partial loads and stores go through a buffer. Maxima are a comparison and a selection: the
// instruction of that name treats NaN and zeros differently from the contract.
#ifndef DGM_KERNEL_ARM_VEC_NEON_H
#define DGM_KERNEL_ARM_VEC_NEON_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

typedef struct vf {
    float32x4_t q[4]; // lanes 0..3, 4..7, 8..11, 12..15
} vf;

enum { VF_SUMS = 4 };

#define VF_FN static inline __attribute__((always_inline))
#define VF_EACH for (int i = 0; i < 4; i++)

VF_FN vf vf_set(float x)
{
    vf r;
    VF_EACH r.q[i] = vdupq_n_f32(x);
    return r;
}

VF_FN vf vf_load(const float *p)
{
    vf r;
    VF_EACH r.q[i] = vld1q_f32(p + 4 * i);
    return r;
}

VF_FN vf vf_load_n(const float *p, int n)
{
    float buffer[16] = {0};
    memcpy(buffer, p, (size_t)n * sizeof(float));
    return vf_load(buffer);
}

VF_FN vf vf_load_bf16(const uint16_t *p)
{
    vf r;
    VF_EACH r.q[i] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16));
    return r;
}

VF_FN vf vf_load_bf16_n(const uint16_t *p, int n)
{
    uint16_t buffer[16] = {0};
    memcpy(buffer, p, (size_t)n * sizeof *p);
    return vf_load_bf16(buffer);
}

VF_FN vf vf_load_f16(const uint16_t *p)
{
    vf r;
    VF_EACH r.q[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i)));
    return r;
}

VF_FN vf vf_load_f16_n(const uint16_t *p, int n)
{
    uint16_t buffer[16] = {0};
    memcpy(buffer, p, (size_t)n * sizeof *p);
    return vf_load_f16(buffer);
}

VF_FN void vf_store_f16(uint16_t *p, vf a)
{
    VF_EACH vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(a.q[i])));
}

VF_FN void vf_store_f16_n(uint16_t *p, vf a, int n)
{
    uint16_t buffer[16];
    vf_store_f16(buffer, a);
    memcpy(p, buffer, (size_t)n * sizeof *p);
}

VF_FN vf vf_load_i8(const int8_t *p)
{
    const int8x16_t b = vld1q_s8(p);
    const int16x8_t low = vmovl_s8(vget_low_s8(b)), high = vmovl_s8(vget_high_s8(b));
    return (vf){{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
                 vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
                 vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
                 vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))}};
}

VF_FN vf vf_load_i8_n(const int8_t *p, int n)
{
    int8_t buffer[16] = {0};
    memcpy(buffer, p, (size_t)n);
    return vf_load_i8(buffer);
}

VF_FN vf vf_load_i32(const int32_t *p)
{
    vf r;
    VF_EACH r.q[i] = vcvtq_f32_s32(vld1q_s32(p + 4 * i));
    return r;
}

VF_FN vf vf_gather(const float *table, vf index)
{
    float x[16];
    int32_t at[16];
    VF_EACH vst1q_s32(at + 4 * i, vcvtq_s32_f32(index.q[i]));
    for (int i = 0; i < 16; i++) x[i] = table[at[i]];
    return vf_load(x);
}

// Eight lanes rounded to 16-bit numbers.
VF_FN int16x8_t vf_narrow(float32x4_t a, float32x4_t b)
{
    return vcombine_s16(vmovn_s32(vcvtnq_s32_f32(a)), vmovn_s32(vcvtnq_s32_f32(b)));
}

VF_FN void vf_store_u8(uint8_t *p, vf a)
{
    const int8x8_t low = vmovn_s16(vf_narrow(a.q[0], a.q[1]));
    const int8x8_t high = vmovn_s16(vf_narrow(a.q[2], a.q[3]));
    vst1q_u8(p, veorq_u8(vreinterpretq_u8_s8(vcombine_s8(low, high)), vdupq_n_u8(0x80)));
}

VF_FN void vf_store_u8_4(uint8_t *p, vf a, vf b, vf c, vf d)
{
    vf_store_u8(p, a);
    vf_store_u8(p + 16, b);
    vf_store_u8(p + 32, c);
    vf_store_u8(p + 48, d);
}

VF_FN void vf_store_i16(int16_t *p, vf a)
{
    vst1q_s16(p, vf_narrow(a.q[0], a.q[1]));
    vst1q_s16(p + 8, vf_narrow(a.q[2], a.q[3]));
}

VF_FN void vf_store(float *p, vf a)
{
    VF_EACH vst1q_f32(p + 4 * i, a.q[i]);
}

VF_FN void vf_store_n(float *p, vf a, int n)
{
    float buffer[16];
    vf_store(buffer, a);
    memcpy(p, buffer, (size_t)n * sizeof(float));
}

// All ones in the lanes below n.
VF_FN uint32x4_t vf_first(int n, int quarter)
{
    static const int32_t lanes[4] = {0, 1, 2, 3};
    return vcltq_s32(vld1q_s32(lanes), vdupq_n_s32(n - 4 * quarter));
}

VF_FN vf vf_blend_n(vf a, vf b, int n)
{
    VF_EACH a.q[i] = vbslq_f32(vf_first(n, i), a.q[i], b.q[i]);
    return a;
}

VF_FN vf vf_keep_n(vf a, int n)
{
    return vf_blend_n(a, vf_set(0.0f), n);
}

VF_FN vf vf_add(vf a, vf b)
{
    VF_EACH a.q[i] = vaddq_f32(a.q[i], b.q[i]);
    return a;
}

VF_FN vf vf_sub(vf a, vf b)
{
    VF_EACH a.q[i] = vsubq_f32(a.q[i], b.q[i]);
    return a;
}

VF_FN vf vf_mul(vf a, vf b)
{
    VF_EACH a.q[i] = vmulq_f32(a.q[i], b.q[i]);
    return a;
}

VF_FN vf vf_div(vf a, vf b)
{
    VF_EACH a.q[i] = vdivq_f32(a.q[i], b.q[i]);
    return a;
}

VF_FN vf vf_fma(vf a, vf b, vf c)
{
    VF_EACH c.q[i] = vfmaq_f32(c.q[i], a.q[i], b.q[i]);
    return c;
}

VF_FN float32x4_t vf_max_4(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

VF_FN vf vf_max(vf a, vf b)
{
    VF_EACH a.q[i] = vf_max_4(a.q[i], b.q[i]);
    return a;
}

VF_FN vf vf_min(vf a, vf b)
{
    VF_EACH a.q[i] = vbslq_f32(vcltq_f32(a.q[i], b.q[i]), a.q[i], b.q[i]);
    return a;
}

VF_FN vf vf_abs(vf a)
{
    VF_EACH a.q[i] = vabsq_f32(a.q[i]);
    return a;
}

VF_FN vf vf_select_lt(vf a, vf b, vf x, vf y)
{
    VF_EACH y.q[i] = vbslq_f32(vcltq_f32(a.q[i], b.q[i]), x.q[i], y.q[i]);
    return y;
}

VF_FN vf vf_scale_exponent(vf p, vf t)
{
    VF_EACH
    {
        const int32x4_t n = vshlq_n_s32(vreinterpretq_s32_f32(t.q[i]), 23);
        p.q[i] = vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(p.q[i]), n));
    }
    return p;
}

VF_FN unsigned vf_greater_bits(vf a, vf b)
{
    static const uint32_t weights[4] = {1, 2, 4, 8};
    const uint32x4_t weight = vld1q_u32(weights);
    unsigned bits = 0;
    VF_EACH bits |= vaddvq_u32(vandq_u32(vcgtq_f32(a.q[i], b.q[i]), weight)) << (4 * i);
    return bits;
}

// Lanes l + (l + 8), then l + (l + 4): four are left.
VF_FN float32x4_t vf_fold_4(vf a)
{
    return vaddq_f32(vaddq_f32(a.q[0], a.q[2]), vaddq_f32(a.q[1], a.q[3]));
}

VF_FN float vf_fold_add(vf a)
{
    const float32x4_t s = vf_fold_4(a);
    const float32x2_t t = vadd_f32(vget_low_f32(s), vget_high_f32(s));
    return vget_lane_f32(t, 0) + vget_lane_f32(t, 1);
}

VF_FN float vf_fold_max(vf a)
{
    float x[4];
    vst1q_f32(x, vf_max_4(vf_max_4(a.q[0], a.q[2]), vf_max_4(a.q[1], a.q[3])));
    for (int half = 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) x[i] = x[i] > x[i + half] ? x[i] : x[i + half];
    return x[0];
}

// l + (l + 2) of two inputs.
VF_FN float32x4_t vf_fold_pair(float32x4_t a, float32x4_t b)
{
    return vaddq_f32(vcombine_f32(vget_low_f32(a), vget_low_f32(b)),
                     vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
}

VF_FN vf vf_fold_add_16(const vf a[16])
{
    vf r;
    VF_EACH
    {
        const vf *x = a + 4 * i;
        r.q[i] = vpaddq_f32(vf_fold_pair(vf_fold_4(x[0]), vf_fold_4(x[1])),
                            vf_fold_pair(vf_fold_4(x[2]), vf_fold_4(x[3])));
    }
    return r;
}

#undef VF_EACH
#undef VF_FN
#endif
