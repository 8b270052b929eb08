// SPDX-License-Identifier: MIT
// The 16-lane vector in two ymm registers; ref/vec_c.h says what each operation means.
//
// Partial stores go through a buffer: vmaskmovps to memory is microcode on AMD.
#ifndef DGM_KERNEL_X86_VEC_AVX2_H
#define DGM_KERNEL_X86_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef struct vf {
    __m256 a, b; // lanes 0..7, 8..15
} vf;

enum { VF_SUMS = 4 };

#define VF_FN static inline __attribute__((always_inline))

// All ones in the lanes below n, for each half.
VF_FN __m256i vf_first(int n, int half)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n - 8 * half), lane);
}

VF_FN vf vf_make(__m256 a, __m256 b)
{
    vf r = {a, b};
    return r;
}

VF_FN vf vf_set(float x)
{
    return vf_make(_mm256_set1_ps(x), _mm256_set1_ps(x));
}

VF_FN vf vf_load(const float *p)
{
    return vf_make(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}

VF_FN vf vf_load_n(const float *p, int n)
{
    // The second half starts at an element that may not exist; a masked load never touches it.
    const __m256 a = _mm256_maskload_ps(p, vf_first(n, 0));
    return vf_make(a, n > 8 ? _mm256_maskload_ps(p + 8, vf_first(n, 1)) : _mm256_setzero_ps());
}

VF_FN __m256 vf_widen_bf16(__m128i p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(p), 16));
}

VF_FN vf vf_load_bf16(const uint16_t *p)
{
    return vf_make(vf_widen_bf16(_mm_loadu_si128((const __m128i *)p)),
                   vf_widen_bf16(_mm_loadu_si128((const __m128i *)(p + 8))));
}

VF_FN vf vf_load_bf16_n(const uint16_t *p, int n)
{
    uint16_t buffer[16] = {0};
    memcpy(buffer, p, (size_t)n * sizeof *p);
    return vf_load_bf16(buffer);
}

VF_FN vf vf_load_f16(const uint16_t *p)
{
    return vf_make(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                   _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8))));
}

VF_FN vf vf_load_f16_n(const uint16_t *p, int n)
{
    uint16_t buffer[16] = {0};
    memcpy(buffer, p, (size_t)n * sizeof *p);
    return vf_load_f16(buffer);
}

VF_FN void vf_store_f16(uint16_t *p, vf a)
{
    enum { nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }; // a constant for clang
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(a.a, nearest));
    _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(a.b, nearest));
}

VF_FN void vf_store_f16_n(uint16_t *p, vf a, int n)
{
    uint16_t buffer[16];
    vf_store_f16(buffer, a);
    memcpy(p, buffer, (size_t)n * sizeof *p);
}

VF_FN vf vf_load_i8(const int8_t *p)
{
    const __m128i q = _mm_loadu_si128((const __m128i *)p);
    const __m256i a = _mm256_cvtepi8_epi32(q), b = _mm256_cvtepi8_epi32(_mm_srli_si128(q, 8));
    return vf_make(_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b));
}

VF_FN vf vf_load_i8_n(const int8_t *p, int n)
{
    int8_t buffer[16] = {0};
    memcpy(buffer, p, (size_t)n);
    return vf_load_i8(buffer);
}

VF_FN vf vf_load_i32(const int32_t *p)
{
    return vf_make(_mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)p)),
                   _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(p + 8))));
}

VF_FN vf vf_gather(const float *table, vf index)
{
    return vf_make(_mm256_i32gather_ps(table, _mm256_cvtps_epi32(index.a), 4),
                   _mm256_i32gather_ps(table, _mm256_cvtps_epi32(index.b), 4));
}

// 16 integers as 16-bit numbers, in order.
VF_FN __m256i vf_pack_16(vf x)
{
    const __m256i q = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));
    return _mm256_permute4x64_epi64(q, 0xd8);
}

VF_FN void vf_store_u8(uint8_t *p, vf x)
{
    const __m256i q = vf_pack_16(x);
    const __m128i b = _mm_packs_epi16(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
    _mm_storeu_si128((__m128i *)p, _mm_xor_si128(b, _mm_set1_epi8((char)0x80)));
}

VF_FN void vf_store_u8_4(uint8_t *p, vf a, vf b, vf c, vf d)
{
    vf_store_u8(p, a);
    vf_store_u8(p + 16, b);
    vf_store_u8(p + 32, c);
    vf_store_u8(p + 48, d);
}

VF_FN void vf_store_i16(int16_t *p, vf x)
{
    _mm256_storeu_si256((__m256i *)p, vf_pack_16(x));
}

VF_FN void vf_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}

VF_FN void vf_store_n(float *p, vf x, int n)
{
    float buffer[16];
    vf_store(buffer, x);
    memcpy(p, buffer, (size_t)n * sizeof(float));
}

VF_FN vf vf_keep_n(vf x, int n)
{
    return vf_make(_mm256_and_ps(x.a, _mm256_castsi256_ps(vf_first(n, 0))),
                   _mm256_and_ps(x.b, _mm256_castsi256_ps(vf_first(n, 1))));
}

VF_FN vf vf_blend_n(vf x, vf y, int n)
{
    return vf_make(_mm256_blendv_ps(y.a, x.a, _mm256_castsi256_ps(vf_first(n, 0))),
                   _mm256_blendv_ps(y.b, x.b, _mm256_castsi256_ps(vf_first(n, 1))));
}

VF_FN vf vf_add(vf x, vf y)
{
    return vf_make(_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b));
}

VF_FN vf vf_sub(vf x, vf y)
{
    return vf_make(_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b));
}

VF_FN vf vf_mul(vf x, vf y)
{
    return vf_make(_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b));
}

VF_FN vf vf_div(vf x, vf y)
{
    return vf_make(_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b));
}

VF_FN vf vf_fma(vf x, vf y, vf z)
{
    return vf_make(_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b));
}

VF_FN vf vf_max(vf x, vf y)
{
    return vf_make(_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b));
}

VF_FN vf vf_min(vf x, vf y)
{
    return vf_make(_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b));
}

VF_FN vf vf_abs(vf x)
{
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    return vf_make(_mm256_and_ps(x.a, mask), _mm256_and_ps(x.b, mask));
}

VF_FN vf vf_select_lt(vf a, vf b, vf x, vf y)
{
    return vf_make(_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(a.a, b.a, _CMP_LT_OQ)),
                   _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(a.b, b.b, _CMP_LT_OQ)));
}

VF_FN __m256 vf_scale_half(__m256 p, __m256 t)
{
    const __m256i n = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), n));
}

VF_FN vf vf_scale_exponent(vf p, vf t)
{
    return vf_make(vf_scale_half(p.a, t.a), vf_scale_half(p.b, t.b));
}

VF_FN unsigned vf_greater_bits(vf x, vf y)
{
    const int a = _mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_GT_OQ));
    const int b = _mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_GT_OQ));
    return (unsigned)a | (unsigned)b << 8;
}

VF_FN float vf_fold_add(vf x)
{
    __m256 h = _mm256_add_ps(x.a, x.b);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

VF_FN float vf_fold_max(vf x)
{
    __m256 h = _mm256_max_ps(x.a, x.b);
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

// Eight inputs: lane i is vf_fold_add(x[i]).
VF_FN __m256 vf_fold_add_8(const vf x[8])
{
    __m256 q[4];
    for (int i = 0; i < 4; i++) {
        // Inputs i and i + 4, l + (l + 8) each; then l + (l + 4): four lanes of i, four of i + 4.
        const __m256 h = _mm256_add_ps(x[i].a, x[i].b);
        const __m256 g = _mm256_add_ps(x[i + 4].a, x[i + 4].b);
        q[i] =
            _mm256_add_ps(_mm256_permute2f128_ps(h, g, 0x20), _mm256_permute2f128_ps(h, g, 0x31));
    }
    // Within each 128-bit half: l + (l + 2) of two inputs, then l + (l + 1) of four.
    const __m256 p =
        _mm256_add_ps(_mm256_shuffle_ps(q[0], q[1], 0x44), _mm256_shuffle_ps(q[0], q[1], 0xee));
    const __m256 r =
        _mm256_add_ps(_mm256_shuffle_ps(q[2], q[3], 0x44), _mm256_shuffle_ps(q[2], q[3], 0xee));
    return _mm256_add_ps(_mm256_shuffle_ps(p, r, 0x88), _mm256_shuffle_ps(p, r, 0xdd));
}

VF_FN vf vf_fold_add_16(const vf x[16])
{
    return vf_make(vf_fold_add_8(x), vf_fold_add_8(x + 8));
}

#undef VF_FN
#endif
