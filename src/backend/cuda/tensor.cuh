// SPDX-License-Identifier: MIT
// What products on tensor cores share (tensor.cu, tensor_few.cu, tensor_parts.cu, tensor_wide.cu): the order of their sums, and fragments.
//
// The order: k is taken in chunks of 16 words of w (32 halves, 64 bytes of i8), the chunks in four parts, one behind
// the other. A part is one chain of tensor instructions, two a chunk, of 8 words each; the sums of the four are added
// in their order. Whatever a kernel covers, and however many warps share a row, this is what it computes: a row has the
// same bits in every batch, and a listed column those of the whole layer.
//
// Fragments: lane (g, q) of a warp has rows g and g + 8 and columns g. Of an instruction's 8 words it takes 2 q and the
// next, where the manual has q and q + 4: k is shuffled inside of an instruction, alike for a and w, which its sum
// does not show, and everything is read 8 bytes at a time.
#ifndef DGM_BACKEND_CUDA_TENSOR_CUH
#define DGM_BACKEND_CUDA_TENSOR_CUH

#include "backend/cuda/products.cuh"

enum { PARTS = 4, WORDS = 16 }; // WORDS: of a chunk of w

static __device__ __forceinline__ int chunks_of(const cuda_product &p, int chunk)
{
    return (p.k + chunk - 1) / chunk;
}

// Chunks of a part; the last one may have fewer, or none.
static __device__ __forceinline__ int part_size(int chunks)
{
    return (chunks + PARTS - 1) / PARTS;
}

// 16 rows of a chunk of a, for its two instructions.
struct fragment {
    uint32_t w[2][4];
};

// Of f16 and bf16: a is f32, and rounded here.
template <typename S> struct halves {
    enum { CHUNK = 32, A_WORDS = 32, ELEM = 2, READY = 0 };
    typedef float sum;
    typedef float a_elem;
    // The numbers 4 q .. 4 q + 3 of an instruction, of the rows g and g + 8.
    static __device__ __forceinline__ fragment make(const float4 low[2], const float4 high[2])
    {
        fragment f;
        CUDA_UNROLL
        for (int i = 0; i < 2; i++) {
            f.w[i][0] = S::pack(low[i].x, low[i].y);
            f.w[i][1] = S::pack(high[i].x, high[i].y);
            f.w[i][2] = S::pack(low[i].z, low[i].w);
            f.w[i][3] = S::pack(high[i].z, high[i].w);
        }
        return f;
    }
};

// What a lane has of a row of a chunk, by instruction.
struct chunk_words {
    uint2 w[2];
};

// 16 rows of words that instructions take as they are.
static __device__ __forceinline__ fragment make_words(const chunk_words &low, const chunk_words &high)
{
    return {{{low.w[0].x, high.w[0].x, low.w[0].y, high.w[0].y}, {low.w[1].x, high.w[1].x, low.w[1].y, high.w[1].y}}};
}

struct tensor_f16 : halves<tensor_f16> {
    static __device__ __forceinline__ uint32_t pack(float a, float b)
    {
        return pack_f16(a, b);
    }
    static __device__ __forceinline__ void mma(float c[4], const uint32_t a[4], const uint32_t b[2])
    {
        mma_f16(c, a, b);
    }
    template <int columns>
    static __device__ __forceinline__ void group_mma(float *c, shared_matrix a, shared_matrix b, bool more)
    {
        group_mma_f16<columns>(c, a, b, more);
    }
};

struct tensor_bf16 : halves<tensor_bf16> {
    static __device__ __forceinline__ uint32_t pack(float a, float b)
    {
        const __nv_bfloat162 h = __floats2bfloat162_rn(a, b);
        return *(const uint32_t *)&h;
    }
    static __device__ __forceinline__ void mma(float c[4], const uint32_t a[4], const uint32_t b[2])
    {
        mma_bf16(c, a, b);
    }
    template <int columns>
    static __device__ __forceinline__ void group_mma(float *c, shared_matrix a, shared_matrix b, bool more)
    {
        group_mma_bf16<columns>(c, a, b, more);
    }
};

// The same where a was rounded before.
template <typename S> struct rounded : S {
    enum { A_WORDS = 16, READY = 1 }; // READY: a is what instructions take
    typedef uint16_t a_elem;
};

// Exact, in whatever order.
struct tensor_i8 {
    enum { CHUNK = 64, A_WORDS = 16, ELEM = 1, READY = 1 };
    typedef int sum;
    typedef int8_t a_elem;
    static __device__ __forceinline__ void mma(int c[4], const uint32_t a[4], const uint32_t b[2])
    {
        mma_i8(c, a, b);
    }
};

// Behind products on tensor cores alone: as exact as halves need it, in a tenth of the instructions.
static __device__ __forceinline__ float swish(float x)
{
    return __fdividef(x, 1.0f + __expf(-x));
}

// c += a chunk of a times one of w.
template <typename S>
static __device__ __forceinline__ void add_chunk(typename S::sum c[4], const fragment &a, const chunk_words &w)
{
    CUDA_UNROLL
    for (int i = 0; i < 2; i++) {
        const uint32_t words[2] = {w.w[i].x, w.w[i].y};
        S::mma(c, a.w[i], words);
    }
}

// What becomes of the sums of a lane, down x across fragments of four: rows row + 8 i of the place, columns col + 8 j
// and the next. All that is to be read is on its way before the first of it is needed.
template <typename S, int down, int across> struct results {
    enum { ROWS = 2 * down };
    float x[ROWS][across][2];

    template <typename F> __device__ __forceinline__ void each(F f)
    {
        CUDA_UNROLL
        for (int i = 0; i < ROWS; i++) {
            CUDA_UNROLL
            for (int j = 0; j < across; j++) {
                CUDA_UNROLL
                for (int h = 0; h < 2; h++) f(i, j, h);
            }
        }
    }
    // Columns are of the product.
    __device__ __forceinline__ void scale(const cuda_product &p, const place &t, const typename S::sum sums[down][across][4],
                                          int row, int col)
    {
        if constexpr (S::ELEM == 1) {
            scale_integers(p, t, sums, row, col);
        } else {
            each([&](int i, int j, int h) { x[i][j][h] = sums[i / 2][j][i % 2 * 2 + h]; });
            if (!t.bias) return;
            float bias[across][2];
            CUDA_UNROLL
            for (int j = 0; j < 2 * across; j++) {
                const int at = col + j / 2 * 8 + j % 2;
                bias[j / 2][j % 2] = at < p.n ? t.bias[w_row(p, at)] : 0.0f;
            }
            each([&](int i, int j, int h) { x[i][j][h] += bias[j][h]; });
        }
    }
    __device__ __forceinline__ void scale_integers(const cuda_product &p, const place &t,
                                                   const typename S::sum sums[down][across][4], int row, int col)
    {
        float bias[across][2], by[across][2], rows_by[ROWS];
        CUDA_UNROLL
        for (int j = 0; j < 2 * across; j++) {
            const int at = col + j / 2 * 8 + j % 2;
            const int w = at < p.n ? w_row(p, at) : 0;
            bias[j / 2][j % 2] = t.bias && at < p.n ? t.bias[w] : 0.0f;
            by[j / 2][j % 2] = t.scale[w];
        }
        CUDA_UNROLL
        for (int i = 0; i < ROWS; i++)
            rows_by[i] = row + 8 * i < t.rows ? p.a_scale[a_row(p, t.row + row + 8 * i)] : 1.0f;
        each([&](int i, int j, int h) {
            const float y = (float)sums[i / 2][j][i % 2 * 2 + h], factor = __fmul_rn(rows_by[i], by[j][h]);
            x[i][j][h] = p.bias ? __fmaf_rn(y, factor, bias[j][h]) : __fmul_rn(y, factor);
        });
    }
    __device__ __forceinline__ void activate_all(int act)
    {
        if (act == DGM_ACT_NONE) return;
        if (act == DGM_ACT_RELU)
            each([&](int i, int j, int h) { x[i][j][h] = x[i][j][h] > 0.0f ? x[i][j][h] : 0.0f; });
        else if (act == DGM_ACT_SWISH)
            each([&](int i, int j, int h) { x[i][j][h] = swish(x[i][j][h]); });
        else
            each([&](int i, int j, int h) { x[i][j][h] = activate_other(x[i][j][h], act); });
    }
    // f(i, j, row of the product) for every pair of numbers. whole: all rows and columns are there.
    template <bool whole, typename F>
    __device__ __forceinline__ void pairs(const cuda_product &p, const place &t, int row, int col, F f)
    {
        CUDA_UNROLL
        for (int i = 0; i < ROWS; i++) {
            CUDA_UNROLL
            for (int j = 0; j < across; j++)
                if (whole || (row + 8 * i < t.rows && col + 8 * j < p.n)) f(i, j, (size_t)(t.row + row + 8 * i));
        }
    }
    // Two numbers at a time.
    template <bool whole> __device__ __forceinline__ void put_pairs(const cuda_product &p, const place &t, int row, int col)
    {
        if (p.residual) {
            float2 more[ROWS][across] = {};
            pairs<whole>(p, t, row, col, [&](int i, int j, size_t r) {
                more[i][j] = *(const float2 *)(p.residual + r * p.ldr + col + 8 * j);
            });
            each([&](int i, int j, int h) { x[i][j][h] += h ? more[i][j].y : more[i][j].x; });
        }
        if (p.c)
            pairs<whole>(p, t, row, col, [&](int i, int j, size_t r) {
                *(float2 *)(p.c + r * p.ldc + col + 8 * j) = {x[i][j][0], x[i][j][1]};
            });
        if (p.halves.data)
            pairs<whole>(p, t, row, col, [&](int i, int j, size_t r) {
                put_pair(p.halves, (int)r, col + 8 * j, x[i][j][0], x[i][j][1]);
            });
        if (p.keep)
            pairs<whole>(p, t, row, col, [&](int i, int j, size_t r) {
                const int at = col + 8 * j - p.keep_first; // keep_first and keep_count are even
                if (at < 0 || at >= p.keep_count) return;
                __half *const to = (__half *)p.keep + (size_t)p.keep_rows[r] * p.keep_stride;
                *(__half2 *)(to + at) = __floats2half2_rn(x[i][j][0], x[i][j][1]);
            });
    }
    __device__ __forceinline__ void put_singly(const cuda_product &p, const place &t, int row, int col)
    {
        each([&](int i, int j, int h) {
            const int at = col + 8 * j + h;
            if (row + 8 * i >= t.rows || at >= p.n) return;
            const size_t r = (size_t)(t.row + row + 8 * i);
            const int to = p.scatter ? w_row(p, at) : at;
            p.c[r * p.ldc + to] = p.residual ? x[i][j][h] + p.residual[r * p.ldr + to] : x[i][j][h];
        });
    }
};

// row and col: of the tile, which has `high` rows and `wide` columns.
template <typename S, int down, int across, int high, int wide>
static __device__ __forceinline__ void put_sums(const cuda_product &p, const place &t,
                                                const typename S::sum sums[down][across][4], int row, int col)
{
    results<S, down, across> out;
    out.scale(p, t, sums, row, t.col + col);
    out.activate_all(p.act);
    if (!p.paired)
        out.put_singly(p, t, row, t.col + col);
    else if (t.rows == high && t.col + wide <= p.n)
        out.template put_pairs<true>(p, t, row, t.col + col);
    else
        out.template put_pairs<false>(p, t, row, t.col + col);
}

// f(S()) with the S of the product.
template <typename F> static auto with_type(const cuda_product *p, F f)
{
    if (p->type == CUDA_I8) return f(tensor_i8());
    if (p->type == CUDA_F16) return p->rounded ? f(rounded<tensor_f16>()) : f(tensor_f16());
    return p->rounded ? f(rounded<tensor_bf16>()) : f(tensor_bf16());
}

static inline double tiles_per_processor(const cuda_product *p, int high, int wide)
{
    return (double)((p->m + high - 1) / high) * ((p->n + wide - 1) / wide) / p->processors;
}

// tensor_few.cu, tensor_parts.cu, tensor_wide.cu; false: not on this device, or not of such rows.
void cuda_run_few(cuda_tape *tape, const cuda_product *p);
bool cuda_run_wide(cuda_tape *tape, const cuda_product *p);
bool cuda_run_parts(cuda_tape *tape, const cuda_product *p);
bool cuda_run_listed(cuda_tape *tape, const cuda_product *p); // tensor_listed.cu

#endif
