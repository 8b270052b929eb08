// SPDX-License-Identifier: MIT
// Products in zmm registers: the loops that gemm_i8_avx512, gemm_i8_vnni, gemm_i16_avx512, gemm_i16_vnni,
// gemm_bf16_avx512 and gemm_bf16_avx512bf16 share. Layout and epilogue are in kernel/gemm_int_tmpl.h.
//
// All types store 32-bit groups (4 x i8, 2 x i16 or bf16), 64 columns side by side: a step is 256 bytes
// of W in four registers and one broadcast group of each row of A. The including file defines
//     typedef ... zmm_group;                          what a broadcast group of A is kept as
//     zmm_group zmm_prepare(__m512i group);
//     __m512i zmm_dot(__m512i sums, zmm_group a, __m512i w);   16 columns, one step
//     enum { ZMM_REAL };                              1: sums are floats, in the bits of __m512i
// and includes this afterwards; all functions are static.
//
// Tiles are 6 rows x 64 columns at most: 24 sums, 4 registers of W, 1 of A. Up to three rows the
// product is bound by reading W. One row takes four panels at once, which keeps more lines in
// flight; two rows take one, as pairs of panels were slower from memory. Always whole steps of 256
// bytes: tiles of 32 columns run at half the speed from L3.
//
// Prefetch, measured on Zen 4: with one to three rows it costs 15 to 25 % in L2 and gives nothing
// in L3. From four rows on its slots are free: a single tile fetches 32 steps ahead (+3 to 6 % in
// L3), several row tiles share out the next panel. A stream from memory is left to the hardware: with
// four to six rows 85 to 100 % of a plain loop's speed instead of 67 to 86 %. Large results of few
// rows have their lines fetched for writing before the loop over k: +6 to 14 % from L3 at 2 to 16
// rows. Integer sums are exact; those of floats are chains over the steps in every tile, whatever its shape.
#ifndef DGM_KERNEL_X86_GEMM_ZMM_TMPL_H
#define DGM_KERNEL_X86_GEMM_ZMM_TMPL_H

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 32")
#endif
// Holds a value in a register: compilers would rather load W again for each row.
#define KEEP(x) __asm__("" : "+v"(x))

enum {
    VECTORS = PANEL / 16, // of a panel's step
    STEP = PANEL * 4,     // bytes
    ROWS = 6,             // of a tile
    SUMS = ROWS * VECTORS,
    AHEAD = 32,           // steps
    FETCH_ROWS = 16,      // fetch the lines of the result up to here ..
    FETCH_BYTES = 1 << 17 // .. and from here on
};

// Any args struct in bytes and steps.
typedef struct zmm_product {
    const char *a;
    size_t lda; // bytes
    const char *packed;
    size_t panel_size; // bytes
    int steps;         // of a panel
    bool has_start;    // 64 start values of the sums lie behind a panel's weights
    int m;
    bool cold;    // W comes from memory
    bool fetches; // the lines of the result
    int_out out;
} zmm_product;

INLINE __m512i zmm_broadcast(const char *a)
{
    int32_t group;
    memcpy(&group, a, sizeof group);
    return _mm512_set1_epi32(group);
}

INLINE __m512 zmm_biased(__m512i sums, float a_scale, __m512 w_scale, __m512 bias)
{
    if (ZMM_REAL) return _mm512_add_ps(_mm512_castsi512_ps(sums), bias);
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), _mm512_mul_ps(_mm512_set1_ps(a_scale), w_scale), bias);
}

// Scale, bias, act (none, relu or swish) and residual of sums in registers; a bias of -0 changes
// no bit.
INLINE void zmm_store(const int_out *o, const __m512i s[SUMS], int r, const int rows, int j,
                      const int vectors, const dgm_act act, const bool residual)
{
    const size_t at = (size_t)(j - o->n_begin);
    UNROLLED for (int t = 0; t < vectors; t++)
    {
        const __m512 scale =
            o->w_scale ? _mm512_loadu_ps(o->w_scale + j + 16 * t) : _mm512_set1_ps(o->w_scale_all);
        const __m512 bias = o->bias ? _mm512_loadu_ps(o->bias + j + 16 * t) : _mm512_set1_ps(-0.0f);
        UNROLLED for (int i = 0; i < rows; i++)
        {
            const size_t row = (size_t)(r + i);
            __m512 y = zmm_biased(s[i * vectors + t], ZMM_REAL ? 1.0f : o->a_scale[row], scale, bias);
            if (act == DGM_ACT_RELU) y = math_relu(y);
            if (act == DGM_ACT_SWISH) y = math_swish(y);
            if (residual) {
                const float *more = o->residual + row * (size_t)o->ldr + at + 16 * t;
                y = _mm512_add_ps(y, _mm512_loadu_ps(more));
            }
            _mm512_storeu_ps(o->c + row * (size_t)o->ldc + at + 16 * t, y);
        }
    }
}

// The epilogue of sums in registers: rows x vectors of 16 columns.
INLINE void zmm_finish(const int_out *o, const __m512i s[SUMS], int r, const int rows, int j,
                       const int vectors)
{
    const bool inside = o->n_end - j >= 16 * vectors && !o->q;
    if (inside && o->act == DGM_ACT_NONE && !o->residual) {
        zmm_store(o, s, r, rows, j, vectors, DGM_ACT_NONE, false);
    } else if (inside && o->act == DGM_ACT_NONE) {
        zmm_store(o, s, r, rows, j, vectors, DGM_ACT_NONE, true);
    } else if (inside && o->act == DGM_ACT_RELU && !o->residual) {
        zmm_store(o, s, r, rows, j, vectors, DGM_ACT_RELU, false);
    } else if (inside && o->act == DGM_ACT_SWISH && !o->residual) {
        zmm_store(o, s, r, rows, j, vectors, DGM_ACT_SWISH, false);
    } else {
        int32_t sums[SUMS * 16] __attribute__((aligned(64)));
        UNROLLED for (int i = 0; i < rows; i++) UNROLLED for (int t = 0; t < vectors; t++)
            _mm512_store_si512(sums + 16 * (i * vectors + t), s[i * vectors + t]);
        int_finish(o, sums, r, rows, j, 16 * vectors);
    }
}

// Rows r.., columns j..: rows x (panels * 64) results. `lines` lines from `ahead` on are fetched
// into L2 at each step.
INLINE void zmm_tile(const zmm_product *z, int r, int j, const int rows, const int panels,
                     const char *ahead, const int lines)
{
    const size_t lda = z->lda, next = z->panel_size;
    const char *a = z->a + (size_t)r * lda, *w = z->packed + (size_t)(j / PANEL) * next;
    __m512i s[SUMS];
    UNROLLED for (int t = 0; t < panels * VECTORS; t++)
    {
        const char *start = w + (size_t)(t / VECTORS) * next + (size_t)z->steps * STEP;
        const __m512i first =
            z->has_start ? _mm512_load_si512(start + 64 * (t % VECTORS)) : _mm512_setzero_si512();
        UNROLLED for (int i = 0; i < rows; i++) s[i * panels * VECTORS + t] = first;
    }
    if (z->fetches) {
        UNROLLED for (int i = 0; i < rows; i++)
        {
            const float *c = z->out.c + (size_t)(r + i) * (size_t)z->out.ldc + (j - z->out.n_begin);
            UNROLLED for (int t = 0; t < panels * VECTORS; t++) __builtin_prefetch(c + 16 * t, 1);
        }
    }
    for (int x = 0; x < z->steps; x++, a += 4, w += STEP) {
        UNROLLED for (int t = 0; t < lines; t++) _mm_prefetch(ahead + 64 * t, _MM_HINT_T1);
        ahead += 64 * lines;
        UNROLLED for (int p = 0; p < panels; p++)
        {
            __m512i b[VECTORS];
            UNROLLED for (int t = 0; t < VECTORS; t++)
            {
                b[t] = _mm512_load_si512(w + (size_t)p * next + 64 * t);
                if (rows > 1) KEEP(b[t]);
            }
            UNROLLED for (int i = 0; i < rows; i++)
            {
                const zmm_group v = zmm_prepare(zmm_broadcast(a + (size_t)i * lda));
                UNROLLED for (int t = 0; t < VECTORS; t++)
                {
                    const int n = (i * panels + p) * VECTORS + t;
                    s[n] = zmm_dot(s[n], v, b[t]);
                }
            }
        }
    }
    zmm_finish(&z->out, s, r, rows, j, panels * VECTORS);
}

// One, two or three rows.
static void zmm_few_rows(const zmm_product *z)
{
    int j = z->out.n_begin;
    const int end = z->out.n_end;
    if (z->m == 1) {
        for (; end - j > 3 * PANEL; j += 4 * PANEL) zmm_tile(z, 0, j, 1, 4, NULL, 0);
        for (; j < end; j += PANEL) zmm_tile(z, 0, j, 1, 1, NULL, 0);
    } else if (z->m == 2) {
        for (; j < end; j += PANEL) zmm_tile(z, 0, j, 2, 1, NULL, 0);
    } else {
        for (; j < end; j += PANEL) zmm_tile(z, 0, j, 3, 1, NULL, 0);
    }
}

INLINE void zmm_tile_rows(const zmm_product *z, int r, int j, int rows, const char *ahead,
                          const int lines)
{
    switch (rows) {
    case 3:
        zmm_tile(z, r, j, 3, 1, ahead, lines);
        break;
    case 4:
        zmm_tile(z, r, j, 4, 1, ahead, lines);
        break;
    case 5:
        zmm_tile(z, r, j, 5, 1, ahead, lines);
        break;
    default:
        zmm_tile(z, r, j, 6, 1, ahead, lines);
        break;
    }
}

static void zmm_run(zmm_product *z)
{
    if (z->m <= 0) return;
    const size_t columns = (size_t)(z->out.n_end - z->out.n_begin);
    z->fetches =
        !z->out.q && z->m <= FETCH_ROWS && columns * (size_t)z->m * sizeof(float) >= FETCH_BYTES;
    if (z->m <= 3) {
        zmm_few_rows(z);
        return;
    }
    const int tiles = (z->m + ROWS - 1) / ROWS; // rows are split evenly: 8 = 4 + 4, not 6 + 2
    for (int j = z->out.n_begin; j < z->out.n_end; j += PANEL) {
        const char *w = z->packed + (size_t)(j / PANEL) * z->panel_size;
        const char *ahead = w + z->panel_size, *const stop = ahead + z->panel_size;
        if (tiles == 1 && z->cold) {
            zmm_tile_rows(z, 0, j, z->m, NULL, 0);
            continue;
        }
        if (tiles == 1) {
            zmm_tile_rows(z, 0, j, z->m, w + AHEAD * STEP, 4);
            continue;
        }
        for (int t = 0, r = 0; t < tiles; t++) {
            const int rows = (z->m - r + tiles - t - 1) / (tiles - t);
            if (ahead < stop && z->out.n_end - j > PANEL)
                zmm_tile_rows(z, r, j, rows, ahead, 2);
            else
                zmm_tile_rows(z, r, j, rows, NULL, 0);
            ahead += (size_t)z->steps * 2 * 64;
            r += rows;
        }
    }
}

static inline __attribute__((unused)) zmm_product zmm_from_i8(const dgm_gemm_i8_args *g)
{
    return (zmm_product){.a = (const char *)g->a,
                         .lda = (size_t)g->lda,
                         .packed = g->packed,
                         .panel_size = i8_panel_size(g->k),
                         .steps = dgm_gemm_i8_depth(g->k) / 4,
                         .m = g->m,
                         .cold = g->cold,
                         .out = i8_out(g)};
}

static inline __attribute__((unused)) zmm_product zmm_from_i16(const dgm_gemm_i16_args *g)
{
    return (zmm_product){.a = (const char *)g->a,
                         .lda = (size_t)g->lda * 2,
                         .packed = g->packed,
                         .panel_size = i16_panel_size(g->k),
                         .steps = dgm_gemm_i16_depth(g->k) / 2,
                         .m = g->m,
                         .cold = g->cold,
                         .out = i16_out(g)};
}

static inline __attribute__((unused)) zmm_product zmm_from_bf16(const dgm_gemm_bf16_args *g)
{
    return (zmm_product){.a = (const char *)g->a,
                         .lda = (size_t)g->lda * 2,
                         .packed = g->packed,
                         .panel_size = bf16_panel_size(g->k),
                         .steps = dgm_gemm_bf16_depth(g->k) / 2,
                         .m = g->m,
                         .cold = g->cold,
                         .out = bf16_out(g)};
}

#endif
