// SPDX-License-Identifier: MIT
// Products on tensor cores: f16 and bf16 (a is f32 and rounded on the way), i8 (a is quantised).
//
//     a [m, k], w [n, ldw]  --cp.async-->  `stages` tiles of k in shared memory  -->  registers  -->  c
//
// A number of c is one chain of tensor instructions over k from the front, each of 16 (i8: 32, exact). What a
// block covers, 16 x 32, 64 x 64 or 128 x 128, decides how long that takes, not what comes out: a row has the same bits
// in every batch, and a listed column those of the whole layer.
#include "backend/cuda/products.cuh"

enum { PITCH = 20, A_PITCH = 40 }; // words of a row of a tile: no two rows of a fragment share a bank

// Of f16 and bf16: 32 numbers of k are a tile, 32 words of a and 16 of w.
struct halves {
    enum { DEPTH = 32, STEP = 16, A_WORDS = A_PITCH, ELEM = 2 };
    typedef float sum;
    // The words of lane (g, q) for rows `row` and `row` + 8 and numbers k .. k + 15.
    template <typename S> static __device__ void fragment(const uint32_t *tile, int row, int k, int q, uint32_t out[4])
    {
        for (int h = 0; h < 4; h++) {
            const float2 x = *(const float2 *)(tile + (row + h % 2 * 8) * A_PITCH + k + 2 * q + h / 2 * 8);
            out[h] = S::pack(x.x, x.y);
        }
    }
    static __device__ float value(const cuda_product &p, const place &, sum x, int, int, float bias)
    {
        return p.bias ? x + bias : x;
    }
};

struct tensor_f16 : halves {
    static __device__ float in_range(float x)
    {
        return fminf(fmaxf(x, -65504.0f), 65504.0f);
    }
    static __device__ uint32_t pack(float a, float b)
    {
        const __half2 h = __floats2half2_rn(in_range(a), in_range(b));
        return *(const uint32_t *)&h;
    }
    static __device__ void mma(float c[4], const uint32_t a[4], const uint32_t b[2])
    {
        mma_f16(c, a, b);
    }
};

struct tensor_bf16 : halves {
    static __device__ uint32_t pack(float a, float b)
    {
        const __nv_bfloat162 h = __floats2bfloat162_rn(a, b);
        return *(const uint32_t *)&h;
    }
    static __device__ void mma(float c[4], const uint32_t a[4], const uint32_t b[2])
    {
        mma_bf16(c, a, b);
    }
};

// 64 numbers of k are a tile: 16 words of both.
struct tensor_i8 {
    enum { DEPTH = 64, STEP = 32, A_WORDS = PITCH, ELEM = 1 };
    typedef int sum;
    template <typename S> static __device__ void fragment(const uint32_t *tile, int row, int k, int q, uint32_t out[4])
    {
        for (int h = 0; h < 4; h++) out[h] = tile[(row + h % 2 * 8) * PITCH + k / 4 + q + h / 2 * 4];
    }
    static __device__ void mma(int c[4], const uint32_t a[4], const uint32_t b[2])
    {
        mma_i8(c, a, b);
    }
    static __device__ float value(const cuda_product &p, const place &t, sum x, int row, int w, float bias)
    {
        const float by = __fmul_rn(p.a_scale[row], t.scale[w]);
        return p.bias ? __fmaf_rn((float)x, by, bias) : __fmul_rn((float)x, by);
    }
};

// ---- tiles --------------------------------------------------------------------------------------

// 16 bytes of a row of a tile, which has `words` words; the row has `valid`, then come zeros. row NULL: zeros alone.
template <int words, int pitch>
static __device__ void bring_part(uint32_t *tile, int i, const uint32_t *row, int at, int valid, bool aligned,
                                  const uint32_t *somewhere)
{
    const int part = i % (words / 4) * 4, left = valid - at - part;
    uint32_t *to = tile + i / (words / 4) * pitch + part;
    const int n = row == nullptr || left < 0 ? 0 : left < 4 ? left : 4;
    const uint32_t *from = n ? row + at + part : somewhere;
    if (aligned) {
        copy_async_16(to, from, 4 * n);
    } else {
        for (int j = 0; j < 4; j++) copy_async_4(to + j, j < n ? from + j : somewhere, j < n ? 4 : 0);
    }
}

template <typename S, int high, int wide, int threads>
static __device__ void bring(const cuda_product &p, const place &t, int k0, uint32_t *a, uint32_t *w)
{
    enum { A_TILE = S::ELEM == 1 ? 16 : 32, W_TILE = 16 };
    const int a_words = S::ELEM == 1 ? p.lda / 4 : p.k, w_words = p.ldw * S::ELEM / 4;
    const int a_at = S::ELEM == 1 ? k0 / 4 : k0, w_at = k0 * S::ELEM / 4;
    const size_t a_stride = S::ELEM == 1 ? p.lda / 4 : p.lda;
    const uint32_t *somewhere = (const uint32_t *)p.w;
    for (int i = threadIdx.x; i < high * A_TILE / 4; i += threads) {
        const int r = i / (A_TILE / 4);
        const uint32_t *row =
            r < t.rows ? (const uint32_t *)p.a + (size_t)a_row(p, t.row + r) * a_stride : nullptr;
        bring_part<A_TILE, S::A_WORDS>(a, i, row, a_at, a_words, p.aligned, somewhere);
    }
    for (int i = threadIdx.x; i < wide * W_TILE / 4; i += threads) {
        const int col = t.col + i / (W_TILE / 4);
        const uint32_t *row =
            col < p.n ? (const uint32_t *)t.w + (size_t)w_row(p, col) * w_words : nullptr;
        bring_part<W_TILE, PITCH>(w, i, row, w_at, w_words, true, somewhere);
    }
}

// Warps of rows x columns, each with `down` x `across` fragments of 16 x 8 sums.
template <typename S, int stages, int rows, int columns, int down, int across>
static __global__ void __launch_bounds__(32 * rows * columns, rows * columns == 8 ? 2 : 1)
    multiply(cuda_product p)
{
    enum {
        HIGH = rows * down * 16,
        WIDE = columns * across * 8,
        THREADS = 32 * rows * columns,
        A_SIZE = HIGH * S::A_WORDS,
        STAGE = A_SIZE + WIDE * PITCH
    };
    CUDA_DYNAMIC_SHARED(uint4, shared);
    uint32_t *const tiles = (uint32_t *)shared;
    place t;
    if (!find_place<HIGH, WIDE>(p, S::ELEM, &t)) return;
    const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4, warp = threadIdx.x / 32;
    const int r0 = warp / columns * down * 16, c0 = warp % columns * across * 8;
    const int count = (p.k + S::DEPTH - 1) / S::DEPTH;
    typename S::sum sums[down][across][4] = {};
    for (int s = 0; s < stages - 1; s++) {
        uint32_t *to = tiles + s * STAGE;
        if (s < count) bring<S, HIGH, WIDE, THREADS>(p, t, s * S::DEPTH, to, to + A_SIZE);
        copy_async_commit();
    }
    for (int s = 0; s < count; s++) {
        copy_async_wait<stages - 2>(); // this thread's part of tile s is there,
        __syncthreads();               // everybody's, and tile s - 1 was read
        const int next = s + stages - 1;
        uint32_t *to = tiles + next % stages * STAGE;
        if (next < count) bring<S, HIGH, WIDE, THREADS>(p, t, next * S::DEPTH, to, to + A_SIZE);
        copy_async_commit();
        const uint32_t *a = tiles + s % stages * STAGE, *w = a + A_SIZE;
        CUDA_UNROLL
        for (int k = 0; k < S::DEPTH; k += S::STEP) {
            uint32_t fa[down][4], fb[across][2];
            CUDA_UNROLL
            for (int i = 0; i < down; i++) S::template fragment<S>(a, r0 + 16 * i + g, k, q, fa[i]);
            CUDA_UNROLL
            for (int j = 0; j < across; j++)
                for (int h = 0; h < 2; h++)
                    fb[j][h] = w[(c0 + 8 * j + g) * PITCH + k * S::ELEM / 4 + q + h * 4];
            CUDA_UNROLL
            for (int i = 0; i < down; i++)
                for (int j = 0; j < across; j++) S::mma(sums[i][j], fa[i], fb[j]);
        }
    }
    CUDA_UNROLL
    for (int i = 0; i < down; i++) {
        CUDA_UNROLL
        for (int j = 0; j < across; j++) {
            CUDA_UNROLL
            for (int h = 0; h < 4; h++) {
                const int r = r0 + 16 * i + g + h / 2 * 8, col = t.col + c0 + 8 * j + 2 * q + h % 2;
                if (r >= t.rows || col >= p.n) continue;
                const int w = w_row(p, col), row = t.row + r;
                const float bias = t.bias ? t.bias[w] : 0.0f;
                put(p, row, col, w, S::value(p, t, sums[i][j][h], a_row(p, row), w, bias));
            }
        }
    }
}

// ---- launches -----------------------------------------------------------------------------------

template <typename S, int stages, int rows, int columns, int down, int across>
static void launch(cuda_tape *tape, const cuda_product *p)
{
    const int high = rows * down * 16, wide = columns * across * 8;
    const size_t bytes = (size_t)stages * (size_t)(high * S::A_WORDS + wide * PITCH) * sizeof(uint32_t);
    cuda_allow_shared(tape, (const void *)multiply<S, stages, rows, columns, down, across>, bytes);
    CUDA_LAUNCH((multiply<S, stages, rows, columns, down, across>), tiles_of(p, high, wide), 32 * rows * columns,
                bytes, tape, *p);
}

// Few rows: small tiles, so that many blocks share the reading of w. Many: large ones, which read both less often.
template <typename S> static void run(cuda_tape *tape, const cuda_product *p)
{
    const long large = (long)((p->m + 127) / 128) * ((p->n + 127) / 128);
    if (p->m <= 16)
        launch<S, 6, 1, 4, 1, 1>(tape, p);
    else if (!p->large || large < p->large || p->groups)
        launch<S, 3, 2, 2, 2, 4>(tape, p);
    else
        launch<S, 3, 2, 4, 4, 4>(tape, p);
}

void cuda_run_tensor(cuda_tape *tape, const cuda_product *p)
{
    switch (p->type) {
    case CUDA_F16: run<tensor_f16>(tape, p); break;
    case CUDA_BF16: run<tensor_bf16>(tape, p); break;
    default: run<tensor_i8>(tape, p); break;
    }
}
