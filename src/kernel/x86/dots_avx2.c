// SPDX-License-Identifier: MIT
// AVX2: a few outputs of a layer from weights that lie by rows. The text of f32 and bf16 is
// kernel/dots_tmpl.h; integers multiply 32 bytes or 16 words of a row at a time (see
// gemm_i8_avx2.c for why vpmaddubsw is exact here).
#include <immintrin.h>
#include <string.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx2.h"

#define DOTS_F32 dots_f32_avx2
#define DOTS_BF16 dots_bf16_avx2
#include "kernel/dots_tmpl.h"

static inline int32_t fold(__m256i v)
{
    __m128i h = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    h = _mm_add_epi32(h, _mm_shuffle_epi32(h, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(h, _mm_shuffle_epi32(h, 0xb1)));
}

// 32 bytes of a row of weights; what lies behind it is zero and not touched.
static inline __m256i part(const void *row, size_t at, size_t bytes)
{
    char buffer[32] = {0};
    const char *p = (const char *)row + at;
    if (at + 32 <= bytes) return _mm256_loadu_si256((const __m256i *)(const void *)p);
    memcpy(buffer, p, bytes - at);
    return _mm256_loadu_si256((const __m256i *)(const void *)buffer);
}

static inline __m256i dot_i8(__m256i sums, __m256i q, __m256i size, __m256i w)
{
    w = _mm256_max_epi8(w, _mm256_set1_epi8(-127));
    const __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(w, q));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

static void dots_i8_avx2(const dgm_dots_args *g)
{
    const size_t bytes = (size_t)g->k;
    for (int i = 0; i < g->count; i += DOTS_COLUMNS) {
        const dots_rows b = dots_block(g, i, 1);
        for (int r = 0; r < g->m; r++) {
            const uint8_t *a = (const uint8_t *)g->a + (size_t)r * (size_t)g->lda;
            __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0;
            for (size_t at = 0; at < bytes; at += 32) { // rows of a are padded
                const __m256i u = _mm256_loadu_si256((const __m256i *)(const void *)(a + at));
                const __m256i q = _mm256_xor_si256(u, _mm256_set1_epi8((char)0x80));
                const __m256i size = _mm256_abs_epi8(q);
                if (r == 0 && at % 64 == 0) dots_fetch(&b, at);
                s0 = dot_i8(s0, q, size, part(b.w[0], at, bytes));
                s1 = dot_i8(s1, q, size, part(b.w[1], at, bytes));
                s2 = dot_i8(s2, q, size, part(b.w[2], at, bytes));
                s3 = dot_i8(s3, q, size, part(b.w[3], at, bytes));
            }
            const int32_t sums[DOTS_COLUMNS] = {fold(s0), fold(s1), fold(s2), fold(s3)};
            dots_finish(g, r, i, b.count, sums);
        }
    }
}

static void dots_i16_avx2(const dgm_dots_args *g)
{
    const size_t bytes = (size_t)g->k * 2;
    for (int i = 0; i < g->count; i += DOTS_COLUMNS) {
        const dots_rows b = dots_block(g, i, 2);
        for (int r = 0; r < g->m; r++) {
            const int16_t *a = (const int16_t *)g->a + (size_t)r * (size_t)g->lda;
            __m256i s[DOTS_COLUMNS];
            for (int j = 0; j < DOTS_COLUMNS; j++) s[j] = _mm256_setzero_si256();
            for (size_t at = 0; at < bytes; at += 32) {
                const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(a + at / 2));
                if (r == 0 && at % 64 == 0) dots_fetch(&b, at);
                for (int j = 0; j < DOTS_COLUMNS; j++)
                    s[j] = _mm256_add_epi32(s[j], _mm256_madd_epi16(x, part(b.w[j], at, bytes)));
            }
            const int32_t sums[DOTS_COLUMNS] = {fold(s[0]), fold(s[1]), fold(s[2]), fold(s[3])};
            dots_finish(g, r, i, b.count, sums);
        }
    }
}

void dgm_dots_init_avx2(dgm_kernels *k)
{
    k->dots_f32 = dots_f32_avx2;
    k->dots_bf16 = dots_bf16_avx2;
    k->dots_i8 = dots_i8_avx2;
    k->dots_i16 = dots_i16_avx2;
}
