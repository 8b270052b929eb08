// SPDX-License-Identifier: MIT
// AVX-512 VNNI: a few outputs of a layer from integer weights that lie by rows.
//
// vpdpbusd multiplies q + 128 with w, so 128 times the sum of a row's weights comes off again; it
// is computed on the way, by a second vpdpbusd with a row of 128s, once for all rows of a block:
// who asks for a few outputs waits for their bytes, not for the arithmetic. For one row alone the
// weights get the sign of q instead and are multiplied with |q|: one pass over them.
#include <immintrin.h>

#include "kernel/dots_int.h"
#include "kernel/kernels_private.h"

// 64 bytes of a row of weights; what lies behind it is zero and not touched.
static inline __m512i part(const void *row, size_t at, size_t bytes)
{
    const char *p = (const char *)row + at;
    if (at + 64 <= bytes) return _mm512_loadu_si512(p);
    return _mm512_maskz_loadu_epi8(((__mmask64)1 << (bytes - at)) - 1, p);
}

static inline __m512i part_i8(const void *row, size_t at, size_t bytes)
{
    return _mm512_max_epi8(part(row, at, bytes), _mm512_set1_epi8(-127));
}

// Sums of four vectors.
static inline void fold_4(const __m512i s[DOTS_COLUMNS], int32_t out[DOTS_COLUMNS])
{
    const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(s[0], s[1]),
                                        _mm512_unpackhi_epi32(s[0], s[1]));
    const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(s[2], s[3]),
                                        _mm512_unpackhi_epi32(s[2], s[3]));
    const __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd),
                                         _mm512_unpackhi_epi64(ab, cd));
    const __m256i h = _mm256_add_epi32(_mm512_castsi512_si256(all),
                                       _mm512_extracti64x4_epi64(all, 1));
    const __m128i q = _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    _mm_storeu_si128((__m128i *)(void *)out, q);
}

static void weight_sums(const dots_rows *b, size_t bytes, __m512i s[DOTS_COLUMNS])
{
    const __m512i middle = _mm512_set1_epi8((char)0x80);
    for (int j = 0; j < DOTS_COLUMNS; j++) s[j] = _mm512_setzero_si512();
    for (size_t at = 0; at < bytes; at += 64) {
        dots_fetch(b, at);
        for (int j = 0; j < DOTS_COLUMNS; j++)
            s[j] = _mm512_dpbusd_epi32(s[j], middle, part_i8(b->w[j], at, bytes));
    }
    for (int j = 0; j < DOTS_COLUMNS; j++)
        s[j] = _mm512_sub_epi32(_mm512_setzero_si512(), s[j]);
}

static void dots_one_row(const dgm_dots_args *g)
{
    const size_t bytes = (size_t)g->k;
    const uint8_t *a = g->a;
    const __m512i zero = _mm512_setzero_si512();
    for (int i = 0; i < g->count; i += DOTS_COLUMNS) {
        const dots_rows b = dots_block(g, i, 1);
        __m512i s[DOTS_COLUMNS] = {zero, zero, zero, zero};
        for (size_t at = 0; at < bytes; at += 64) {
            const __m512i q =
                _mm512_xor_si512(_mm512_loadu_si512(a + at), _mm512_set1_epi8((char)0x80));
            const __mmask64 negative = _mm512_movepi8_mask(q);
            const __m512i size = _mm512_abs_epi8(q);
            dots_fetch(&b, at);
            for (int j = 0; j < DOTS_COLUMNS; j++) {
                const __m512i w = part_i8(b.w[j], at, bytes);
                s[j] = _mm512_dpbusd_epi32(s[j], size, _mm512_mask_sub_epi8(w, negative, zero, w));
            }
        }
        int32_t sums[DOTS_COLUMNS];
        fold_4(s, sums);
        dots_finish(g, 0, i, b.count, sums);
    }
}

static void dots_i8_vnni(const dgm_dots_args *g)
{
    const size_t bytes = (size_t)g->k;
    if (g->m == 1) {
        dots_one_row(g);
        return;
    }
    for (int i = 0; i < g->count; i += DOTS_COLUMNS) {
        const dots_rows b = dots_block(g, i, 1);
        __m512i start[DOTS_COLUMNS];
        weight_sums(&b, bytes, start);
        for (int r = 0; r < g->m; r++) {
            const uint8_t *a = (const uint8_t *)g->a + (size_t)r * (size_t)g->lda;
            __m512i s[DOTS_COLUMNS] = {start[0], start[1], start[2], start[3]};
            for (size_t at = 0; at < bytes; at += 64) {
                const __m512i x = _mm512_loadu_si512(a + at); // rows of a are padded
                for (int j = 0; j < DOTS_COLUMNS; j++)
                    s[j] = _mm512_dpbusd_epi32(s[j], x, part_i8(b.w[j], at, bytes));
            }
            int32_t sums[DOTS_COLUMNS];
            fold_4(s, sums);
            dots_finish(g, r, i, b.count, sums);
        }
    }
}

static void dots_i16_vnni(const dgm_dots_args *g)
{
    const size_t bytes = (size_t)g->k * 2;
    for (int i = 0; i < g->count; i += DOTS_COLUMNS) {
        const dots_rows b = dots_block(g, i, 2);
        for (int r = 0; r < g->m; r++) {
            const int16_t *a = (const int16_t *)g->a + (size_t)r * (size_t)g->lda;
            __m512i s[DOTS_COLUMNS];
            for (int j = 0; j < DOTS_COLUMNS; j++) s[j] = _mm512_setzero_si512();
            for (size_t at = 0; at < bytes; at += 64) {
                const __m512i x = _mm512_loadu_si512(a + at / 2);
                if (r == 0) dots_fetch(&b, at);
                for (int j = 0; j < DOTS_COLUMNS; j++)
                    s[j] = _mm512_dpwssd_epi32(s[j], x, part(b.w[j], at, bytes));
            }
            int32_t sums[DOTS_COLUMNS];
            fold_4(s, sums);
            dots_finish(g, r, i, b.count, sums);
        }
    }
}

void dgm_dots_init_vnni(dgm_kernels *k)
{
    k->dots_i8 = dots_i8_vnni;
    k->dots_i16 = dots_i16_vnni;
}
