// SPDX-License-Identifier: MIT
// The 16-lane vector in one zmm register; ref/vec_c.h says what each operation means.
#ifndef DGM_KERNEL_X86_VEC_AVX512_H
#define DGM_KERNEL_X86_VEC_AVX512_H

#include <immintrin.h>
#include <stdint.h>

typedef __m512 vf;

enum { VF_SUMS = 16 };

#define VF_FN static inline __attribute__((always_inline))

VF_FN __mmask16 vf_first(int n)
{
    return (__mmask16)((1u << n) - 1u);
}

VF_FN vf vf_set(float x)
{
    return _mm512_set1_ps(x);
}

VF_FN vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

VF_FN vf vf_load_n(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(vf_first(n), p);
}

VF_FN vf vf_load_bf16_n(const uint16_t *p, int n)
{
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(vf_first(n), p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

VF_FN vf vf_load_bf16(const uint16_t *p)
{
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

VF_FN vf vf_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

VF_FN vf vf_load_f16_n(const uint16_t *p, int n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(vf_first(n), p));
}

VF_FN void vf_store_f16(uint16_t *p, vf a)
{
    _mm256_storeu_si256((__m256i *)p,
                        _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

VF_FN void vf_store_f16_n(uint16_t *p, vf a, int n)
{
    _mm256_mask_storeu_epi16(p, vf_first(n),
                             _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

VF_FN vf vf_load_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

VF_FN vf vf_load_i8_n(const int8_t *p, int n)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(vf_first(n), p)));
}

VF_FN vf vf_load_i32(const int32_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_loadu_si512(p));
}

VF_FN vf vf_gather(const float *table, vf index)
{
    return _mm512_i32gather_ps(_mm512_cvtps_epi32(index), table, 4);
}

VF_FN void vf_store_u8(uint8_t *p, vf a)
{
    const __m128i q = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a));
    _mm_storeu_si128((__m128i *)p, _mm_xor_si128(q, _mm_set1_epi8((char)0x80)));
}

VF_FN void vf_store_u8_4(uint8_t *p, vf a, vf b, vf c, vf d)
{
    const __m512i ab = _mm512_packs_epi32(_mm512_cvtps_epi32(a), _mm512_cvtps_epi32(b));
    const __m512i cd = _mm512_packs_epi32(_mm512_cvtps_epi32(c), _mm512_cvtps_epi32(d));
    // 128-bit block i holds the i-th four of a, b, c, d.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i q = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(ab, cd));
    _mm512_storeu_si512(p, _mm512_xor_si512(q, _mm512_set1_epi8((char)0x80)));
}

VF_FN void vf_store_i16(int16_t *p, vf a)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(a)));
}

VF_FN void vf_store(float *p, vf a)
{
    _mm512_storeu_ps(p, a);
}

VF_FN void vf_store_n(float *p, vf a, int n)
{
    _mm512_mask_storeu_ps(p, vf_first(n), a);
}

VF_FN vf vf_keep_n(vf a, int n)
{
    return _mm512_maskz_mov_ps(vf_first(n), a);
}

VF_FN vf vf_blend_n(vf a, vf b, int n)
{
    return _mm512_mask_blend_ps(vf_first(n), b, a);
}

VF_FN vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

VF_FN vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

VF_FN vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

VF_FN vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

VF_FN vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

VF_FN vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

VF_FN vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

VF_FN vf vf_abs(vf a)
{
    return _mm512_and_ps(a, _mm512_castsi512_ps(_mm512_set1_epi32(0x7fffffff)));
}

VF_FN vf vf_select_lt(vf a, vf b, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}

VF_FN vf vf_scale_exponent(vf p, vf t)
{
    const __m512i n = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), n));
}

VF_FN unsigned vf_greater_bits(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

VF_FN float vf_fold_add(vf a)
{
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

VF_FN float vf_fold_max(vf a)
{
    __m256 h = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

// Halves of a and b: lanes l + (l + 8) of each. Result: a's eight sums, then b's.
VF_FN vf vf_fold_halves(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
}

// Two vectors of 2 x 8 lanes give one of 4 x 4: a's lanes in blocks 0, 1, b's in 2, 3.
VF_FN vf vf_fold_quarters(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

// Two vectors of 4 blocks with 4 lanes give 4 blocks with 2 + 2 lanes: a's, then b's.
VF_FN vf vf_fold_pairs(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
}

VF_FN vf vf_fold_singles(vf a, vf b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}

VF_FN vf vf_fold_add_16(const vf a[16])
{
    vf h[8], q[4];
    for (int i = 0; i < 8; i++) h[i] = vf_fold_halves(a[2 * i], a[2 * i + 1]);
    for (int i = 0; i < 4; i++) q[i] = vf_fold_quarters(h[2 * i], h[2 * i + 1]);
    // q[i]: block b holds the four lanes of input 4 i + b.
    const vf r = vf_fold_singles(vf_fold_pairs(q[0], q[1]), vf_fold_pairs(q[2], q[3]));
    // Block b, lane i holds the sum of input 4 i + b: transpose.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_ps(order, r);
}

#undef VF_FN
#endif
