// SPDX-License-Identifier: MIT
// Products on tensor cores of few rows: four warps share k, each with a part of it, and none waits for another before
// the end. Everything goes from memory into registers, w while the kernel before is still at work.
#include "backend/cuda/tensor.cuh"

// Chunks under way at a time: as many as registers hold.
template <typename S, int down, int across> struct ahead {
    enum { EACH = down * 2 * (S::READY ? 4 : 8) + across * 4, COUNT = EACH <= 20 ? 8 : EACH <= 40 ? 4 : 2 };
};

// What a lane needs of rows of a chunk of a; those that are not there are zeros.
template <typename S, int down> struct rows_a {
    const char *row[2 * down]; // NULL: zeros
    chunk_words x[2 * down];   // READY,
    float4 y[2 * down][2];     // or not
    __device__ __forceinline__ void find(const cuda_product &p, const place &t, int g)
    {
        CUDA_UNROLL
        for (int i = 0; i < 2 * down; i++) {
            const int r = 8 * i + g;
            const size_t stride = (size_t)p.lda * sizeof(typename S::a_elem);
            row[i] = r < t.rows ? (const char *)p.a + (size_t)a_row(p, t.row + r) * stride : nullptr;
        }
    }
    __device__ __forceinline__ void load(const cuda_product &p, int chunk, int q)
    {
        CUDA_UNROLL
        for (int i = 0; i < 2 * down; i++) {
            CUDA_UNROLL
            for (int h = 0; h < 2; h++) {
                if constexpr (S::READY)
                    x[i].w[h] = row[i] ? *(const uint2 *)(row[i] + chunk * 64 + 32 * h + 8 * q) : uint2{0, 0};
                else
                    y[i][h] = floats((const float *)row[i], chunk * 32 + 16 * h + 4 * q, p);
            }
        }
    }
    static __device__ __forceinline__ float4 floats(const float *row, int at, const cuda_product &p)
    {
        if (row && p.aligned && at + 4 <= p.k) return *(const float4 *)(row + at);
        float z[4];
        CUDA_UNROLL
        for (int i = 0; i < 4; i++) z[i] = row && at + i < p.k ? row[at + i] : 0.0f;
        return {z[0], z[1], z[2], z[3]};
    }
    __device__ __forceinline__ fragment get(int i) const
    {
        if constexpr (S::READY)
            return make_words(x[2 * i], x[2 * i + 1]);
        else
            return S::make(y[2 * i], y[2 * i + 1]);
    }
};

// Of a row of w, for lane q.
static __device__ __forceinline__ chunk_words load_words(const char *row, int chunk)
{
    const char *from = row + chunk * (WORDS * 4);
    return {{*(const uint2 *)from, *(const uint2 *)(from + WORDS * 2)}};
}

template <typename S, int down, int across>
static __global__ void __launch_bounds__(32 * PARTS) multiply_few(cuda_product p)
{
    enum { AHEAD = ahead<S, down, across>::COUNT };
    typedef typename S::sum sum;
    __shared__ sum others[PARTS - 1][down][across][4][32];
    place t;
    next_may_start();
    const bool late = p.groups || p.n_found;
    if (late) wait_for_others();
    const bool work = find_place<down * 16, across * 8>(p, S::ELEM, &t);
    const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4, part = threadIdx.x / 32;
    const int chunks = chunks_of(p, S::CHUNK), size = part_size(chunks);
    const int begin = part * size, end = begin + size < chunks ? begin + size : chunks;
    const char *w[across] = {};
    chunk_words fw[AHEAD][across];
    if (work) {
        CUDA_UNROLL
        for (int j = 0; j < across; j++) {
            const int col = t.col + 8 * j + g;
            if (col < p.n) w[j] = t.w + (size_t)w_row(p, col) * p.ldw * S::ELEM + 8 * q;
        }
    }
    const chunk_words none = {};
    CUDA_UNROLL
    for (int i = 0; i < AHEAD; i++) {
        CUDA_UNROLL
        for (int j = 0; j < across; j++)
            fw[i][j] = w[j] && begin + i < end ? load_words(w[j], begin + i) : none;
    }
    if (!late) wait_for_others();
    if (!work) return;
    rows_a<S, down> a[AHEAD];
    CUDA_UNROLL
    for (int i = 0; i < AHEAD; i++) a[i].find(p, t, g);
    sum sums[down][across][4] = {};
    for (int s = begin; s < end; s += AHEAD) {
        CUDA_UNROLL
        for (int i = 0; i < AHEAD; i++)
            if (s + i < end) a[i].load(p, s + i, q);
        CUDA_UNROLL
        for (int i = 0; i < AHEAD; i++) {
            if (s + i >= end) break;
            CUDA_UNROLL
            for (int d = 0; d < down; d++) {
                const fragment fa = a[i].get(d);
                CUDA_UNROLL
                for (int j = 0; j < across; j++) add_chunk<S>(sums[d][j], fa, fw[i][j]);
            }
            CUDA_UNROLL
            for (int j = 0; j < across; j++)
                if (w[j] && s + AHEAD + i < end) fw[i][j] = load_words(w[j], s + AHEAD + i);
        }
    }
    if (part) {
        CUDA_UNROLL
        for (int d = 0; d < down; d++)
            for (int j = 0; j < across; j++)
                for (int h = 0; h < 4; h++) others[part - 1][d][j][h][lane] = sums[d][j][h];
    }
    __syncthreads();
    if (part) return;
    CUDA_UNROLL
    for (int d = 0; d < down; d++) {
        CUDA_UNROLL
        for (int j = 0; j < across; j++) {
            CUDA_UNROLL
            for (int h = 0; h < 4; h++)
                for (int o = 0; o < PARTS - 1; o++)
                    if ((o + 1) * size < chunks) sums[d][j][h] += others[o][d][j][h][lane];
        }
    }
    put_sums<S, down, across, 16 * down, 8 * across>(p, t, sums, g, 2 * q);
}

template <typename S, int down, int across> static void launch(cuda_tape *tape, const cuda_product *p)
{
    CUDA_LAUNCH((multiply_few<S, down, across>), tiles_of(p, 16 * down, 8 * across), 32 * PARTS, 0, tape, *p);
}

// Narrow layers: as many blocks as there can be. Wide ones: each reads a once for more columns.
template <typename S> static void run(cuda_tape *tape, const cuda_product *p)
{
    const bool wide = p->n > 4096;
    if (p->m <= 16) {
        if (wide)
            launch<S, 1, 2>(tape, p);
        else
            launch<S, 1, 1>(tape, p);
    } else {
        if (wide)
            launch<S, 2, 4>(tape, p);
        else
            launch<S, 2, 2>(tape, p);
    }
}

void cuda_run_few(cuda_tape *tape, const cuda_product *p)
{
    with_type(p, [&](auto type) { run<decltype(type)>(tape, p); });
}
