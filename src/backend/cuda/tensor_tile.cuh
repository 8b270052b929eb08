// SPDX-License-Identifier: MIT
// Tiles of products in shared memory: how chunks come there and into the sums of warps (tensor.cu, tensor_parts.cu).
#ifndef DGM_BACKEND_CUDA_TENSOR_TILE_CUH
#define DGM_BACKEND_CUDA_TENSOR_TILE_CUH

#include "backend/cuda/tensor.cuh"

enum { PAIR = 2 }; // chunks of a stage, the second of the last one may be missing

// Where in its row of a chunk word `at` lies in shared memory. Rows begin at the same banks, or at two of them; so that
// lanes of neighbouring rows read other banks, every other row (or pair of rows) has its halves exchanged.
template <int words> static __device__ __forceinline__ int exchanged(int row, int at)
{
    return words == WORDS ? at ^ (row / 2 % 2 * (WORDS / 2)) : at ^ (row % 2 * (words / 2));
}

// Rows that end inside of a chunk, or do not begin at multiples of 16 bytes: four words one by one, of which `there`
// are there.
static CUDA_NOINLINE __device__ void copy_words(uint32_t *to, const char *from, int there)
{
    for (int j = 0; j < 4; j++) copy_async_4(to + j, from + 4 * j, j < there ? 4 : 0);
}

// What a thread brings of every chunk: the same 16 bytes of the same rows. Places in shared memory are a constant apart.
template <int high, int words, int threads> struct carrier {
    enum { EACH = words / 4, COUNT = high * EACH / threads, APART = threads / EACH * words };
    static_assert(high * EACH % threads == 0, "every thread brings as much");
    static_assert(threads / EACH % 4 == 0, "of rows that are exchanged alike");
    const char *from[COUNT]; // of the next chunk
    int bytes[COUNT];        // 16, or 0 for zeros
    static __device__ __forceinline__ int thread() // of those that share the tile
    {
        return (int)threadIdx.x % threads;
    }
    static __device__ __forceinline__ int row(int i)
    {
        return thread() / EACH + i * (threads / EACH);
    }
    static __device__ __forceinline__ int part() // word of the chunk
    {
        return thread() % EACH * 4;
    }
    static __device__ __forceinline__ int place()
    {
        return row(0) * words + exchanged<words>(row(0), part());
    }
    __device__ __forceinline__ void set(int i, const char *row, const void *somewhere)
    {
        from[i] = (row ? row : (const char *)somewhere) + 4 * part();
        bytes[i] = row ? 16 : 0;
    }
    // The chunk that is `later` after the next.
    __device__ __forceinline__ void bring(uint32_t *tile, int later) const
    {
        CUDA_UNROLL
        for (int i = 0; i < COUNT; i++)
            copy_async_16(tile + place() + i * APART, from[i] + later * words * 4, bytes[i]);
    }
    // `left` words of the rows are there from the next chunk on.
    __device__ __forceinline__ void bring_words(uint32_t *tile, int later, int left) const
    {
        CUDA_UNROLL
        for (int i = 0; i < COUNT; i++) {
            const int there = left - later * words - part();
            copy_words(tile + place() + i * APART, from[i] + later * words * 4, bytes[i] ? there : 0);
        }
    }
    __device__ __forceinline__ void go_on(int chunks)
    {
        CUDA_UNROLL
        for (int i = 0; i < COUNT; i++) from[i] += (ptrdiff_t)chunks * words * 4;
    }
};

static __device__ __forceinline__ chunk_words read_words(const uint32_t *tile, int row, int q)
{
    const uint32_t *from = tile + row * WORDS;
    return {{*(const uint2 *)(from + exchanged<WORDS>(row, 2 * q)),
             *(const uint2 *)(from + exchanged<WORDS>(row, WORDS / 2 + 2 * q))}};
}

// Rows g and g + 8 of a chunk in shared memory.
template <typename S> static __device__ __forceinline__ fragment read_a(const uint32_t *tile, int row, int q)
{
    if constexpr (S::READY) {
        return make_words(read_words(tile, row, q), read_words(tile, row + 8, q));
    } else {
        float4 lows[2], highs[2];
        CUDA_UNROLL
        for (int i = 0; i < 2; i++) {
            const int at = exchanged<S::A_WORDS>(row, 16 * i + 4 * q); // that of row + 8 too
            lows[i] = *(const float4 *)(tile + row * S::A_WORDS + at);
            highs[i] = *(const float4 *)(tile + (row + 8) * S::A_WORDS + at);
        }
        return S::make(lows, highs);
    }
}

// Warps of rows x columns, each with `down` x `across` fragments of 16 x 8 sums.
template <typename S, int rows, int columns, int down, int across> struct tile {
    enum {
        HIGH = rows * down * 16,
        WIDE = columns * across * 8,
        THREADS = 32 * rows * columns,
        A_SIZE = HIGH * S::A_WORDS, // words of a chunk
        CHUNK = A_SIZE + WIDE * WORDS,
        STAGE = PAIR * CHUNK
    };
    typename S::sum sums[down][across][4], total[down][across][4];
    carrier<HIGH, S::A_WORDS, THREADS> a;
    carrier<WIDE, WORDS, THREADS> w;
    bool whole;     // a is brought 16 bytes at a time
    int left, left_w; // words of a that are there from the next chunk on, chunks of w

    __device__ __forceinline__ void find_w(const cuda_product &p, const place &t)
    {
        CUDA_UNROLL
        for (int i = 0; i < decltype(w)::COUNT; i++) {
            const int col = t.col + w.row(i);
            w.set(i, col < p.n ? t.w + (size_t)w_row(p, col) * p.ldw * S::ELEM : nullptr, p.w);
        }
        left_w = chunks_of(p, S::CHUNK);
    }
    __device__ __forceinline__ void find_a(const cuda_product &p, const place &t)
    {
        const size_t stride = (size_t)p.lda * sizeof(typename S::a_elem);
        CUDA_UNROLL
        for (int i = 0; i < decltype(a)::COUNT; i++) {
            const int row = a.row(i);
            a.set(i, row < t.rows ? (const char *)p.a + (size_t)a_row(p, t.row + row) * stride : nullptr, p.w);
        }
        whole = S::READY || (p.aligned && p.k % S::CHUNK == 0); // READY: rows are padded
        left = chunks_of(p, S::CHUNK) * S::A_WORDS;
        if (!whole) left = p.k;
    }
    // The next pair of chunks; of the last one the second may be missing.
    __device__ __forceinline__ void bring_w(uint32_t *to)
    {
        w.bring(to + A_SIZE, 0);
        if (left_w > 1) w.bring(to + CHUNK + A_SIZE, 1);
        w.go_on(PAIR);
        left_w -= PAIR;
    }
    __device__ __forceinline__ void bring_a(uint32_t *to)
    {
        if (whole) {
            a.bring(to, 0);
            if (left > S::A_WORDS) a.bring(to + CHUNK, 1);
        } else {
            a.bring_words(to, 0, left);
            if (left > S::A_WORDS) a.bring_words(to + CHUNK, 1, left);
        }
        a.go_on(PAIR);
        left -= PAIR * S::A_WORDS;
    }
    __device__ __forceinline__ void multiply(const uint32_t *from, int r0, int c0, int g, int q)
    {
        chunk_words fw[across];
        CUDA_UNROLL
        for (int j = 0; j < across; j++) fw[j] = read_words(from + A_SIZE, c0 + 8 * j + g, q);
        CUDA_UNROLL
        for (int i = 0; i < down; i++) {
            const fragment fa = read_a<S>(from, r0 + 16 * i + g, q);
            CUDA_UNROLL
            for (int j = 0; j < across; j++) add_chunk<S>(sums[i][j], fa, fw[j]);
        }
    }
    // The sums of a part.
    __device__ __forceinline__ void add_part(bool first)
    {
        CUDA_UNROLL
        for (int i = 0; i < down; i++) {
            CUDA_UNROLL
            for (int j = 0; j < across; j++) {
                CUDA_UNROLL
                for (int h = 0; h < 4; h++) {
                    total[i][j][h] = first ? sums[i][j][h] : total[i][j][h] + sums[i][j][h];
                    sums[i][j][h] = 0;
                }
            }
        }
    }
};

#endif
