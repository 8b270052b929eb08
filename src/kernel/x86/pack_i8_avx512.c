// SPDX-License-Identifier: MIT
// AVX-512: packing of i8 weights, the same bytes as ref/gemm_i8_c.c's.
//
// 16 rows of 64 bytes are 16 x 16 groups of four; a panel wants them the other way round. Turned round, lane i of
// every vector belongs to row i, so that the sums of the rows are those of the lanes.
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"
#include "kernel/gemm_int_tmpl.h"

enum { LANES = 16, LINE = 64 };

// x[g] lane i = x[i] lane g.
static inline void transpose(__m512i x[LANES])
{
    __m512i t[LANES];
    for (int i = 0; i < LANES; i += 4) { // within 128 bits: block b of t[i + j] has column 4 b + j of rows i .. i + 3
        const __m512i a = _mm512_unpacklo_epi32(x[i], x[i + 1]), b = _mm512_unpackhi_epi32(x[i], x[i + 1]);
        const __m512i c = _mm512_unpacklo_epi32(x[i + 2], x[i + 3]);
        const __m512i d = _mm512_unpackhi_epi32(x[i + 2], x[i + 3]);
        t[i] = _mm512_unpacklo_epi64(a, c);
        t[i + 1] = _mm512_unpackhi_epi64(a, c);
        t[i + 2] = _mm512_unpacklo_epi64(b, d);
        t[i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    for (int j = 0; j < 4; j++) { // the blocks: 0x88 takes the even ones of both, 0xdd the odd ones
        const __m512i even = _mm512_shuffle_i32x4(t[j], t[4 + j], 0x88);
        const __m512i odd = _mm512_shuffle_i32x4(t[j], t[4 + j], 0xdd);
        const __m512i more_even = _mm512_shuffle_i32x4(t[8 + j], t[12 + j], 0x88);
        const __m512i more_odd = _mm512_shuffle_i32x4(t[8 + j], t[12 + j], 0xdd);
        x[j] = _mm512_shuffle_i32x4(even, more_even, 0x88);
        x[4 + j] = _mm512_shuffle_i32x4(odd, more_odd, 0x88);
        x[8 + j] = _mm512_shuffle_i32x4(even, more_even, 0xdd);
        x[12 + j] = _mm512_shuffle_i32x4(odd, more_odd, 0xdd);
    }
}

// Columns j .. j + 15 of a panel; row[i] NULL: zeros.
static void pack_columns(int8_t *panel, int j, const int8_t *const row[LANES], int k)
{
    const int depth = dgm_gemm_i8_depth(k);
    const __m512i least = _mm512_set1_epi8(-127), ones = _mm512_set1_epi8(1), pairs = _mm512_set1_epi16(1);
    __m512i sums = _mm512_setzero_si512();
    for (int i0 = 0; i0 < depth; i0 += LINE) {
        const int count = k - i0 < LINE ? k - i0 : LINE;
        const __mmask64 there = ~0ULL >> (LINE - count);
        __m512i x[LANES];
        for (int i = 0; i < LANES; i++)
            x[i] = row[i] ? _mm512_max_epi8(_mm512_maskz_loadu_epi8(there, row[i] + i0), least)
                          : _mm512_setzero_si512();
        transpose(x);
        for (int g = 0; g < LANES; g++) {
            _mm512_storeu_si512(panel + ((size_t)(i0 / 4 + g) * PANEL + (size_t)j) * 4, x[g]);
            const __m512i two = _mm512_maddubs_epi16(ones, x[g]);
            sums = _mm512_add_epi32(sums, _mm512_madd_epi16(two, pairs));
        }
    }
    const __m512i start = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sums, 7)); // -128 * sum
    _mm512_storeu_si512(panel + (size_t)depth * PANEL + (size_t)j * sizeof(int32_t), start);
}

static void gemm_i8_pack_avx512(void *packed, const int8_t *w, const int32_t *rows, int n, int k, int ldw)
{
    int8_t *panel = packed;
    for (int first = 0; first < n; first += PANEL, panel += i8_panel_size(k))
        for (int j = 0; j < PANEL; j += LANES) {
            const int8_t *row[LANES];
            for (int i = 0; i < LANES; i++) {
                const int at = first + j + i;
                row[i] = at < n ? w + (size_t)(rows ? rows[at] : at) * (size_t)ldw : NULL;
            }
            pack_columns(panel, j, row, k);
        }
}

void dgm_pack_i8_init_avx512(dgm_kernels *k)
{
    k->gemm_i8.pack = gemm_i8_pack_avx512;
}
