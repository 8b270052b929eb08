// SPDX-License-Identifier: MIT
// Attention of halves with heads of 32, 64 or 128 on tensor cores: a warp per head and up to 16 queries that
// look at the same keys, which are read once for all of them.
//
// Such queries are a group (attend_cuda.c): neighbours of a sentence in an encoder.
// A query whose keys are nobody else's is a group of its own: the warp computes 16 rows all the same, and leaves the
// others away. Rows of a tensor instruction know nothing of each other, and keys are taken in steps that the query's own
// number of keys gives: a query has the same bits in every group.
//
// Fragments: lane (g, q) has queries g and g + 8. Of keys it reads 16 bytes at a time, of which instructions see the
// numbers of a head in another order, as of the queries. Of values, lane (g, q) reads the columns TILES g .. of four of
// 16 keys, and column g of tile t is column TILES g + t of the head: what the lane has in the end of a query are 2 TILES
// numbers side by side.
#include "backend/cuda/attend.cuh"

enum { THREADS = 128, WARPS = THREADS / 32 };

#define LOG2_E 1.4426950408889634f

// Eight numbers of a row of keys or queries: halves, or f32 that are rounded here.
template <bool round> static __device__ __forceinline__ uint4 read_8(const void *rows, size_t at)
{
    if constexpr (round) {
        const float4 *from = (const float4 *)((const float *)rows + at), x = from[0], y = from[1];
        return {pack_f16(x.x, x.y), pack_f16(x.z, x.w), pack_f16(y.x, y.y), pack_f16(y.z, y.w)};
    } else {
        return *(const uint4 *)((const __half *)rows + at);
    }
}

template <bool round> static __device__ __forceinline__ uint2 read_4(const void *rows, size_t at)
{
    if constexpr (round) {
        const float4 x = *(const float4 *)((const float *)rows + at);
        return {pack_f16(x.x, x.y), pack_f16(x.z, x.w)};
    } else {
        return *(const uint2 *)((const __half *)rows + at);
    }
}

// One head of the queries of a group, and what became of the keys so far.
template <int width, bool round> struct tile {
    enum { CHUNKS = width / 32, TILES = width / 8 };
    uint32_t query[2 * CHUNKS][4];
    const void *keys, *values; // column of the head where this lane begins
    const float *bias[2];      // of the two queries, or NULL
    float most[2], total[2];   // by query: the largest score, and the sum of the weights of this lane's keys
    float sum[TILES][4];

    // `rows`: of the group. Those that are not there are computed as the first.
    __device__ __forceinline__ void begin(const cuda_attention &a, int row, int rows, int head)
    {
        const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
        uint4 x[2][CHUNKS];
        CUDA_UNROLL
        for (int h = 0; h < 2; h++) {
            const int i = g + 8 * h < rows ? row + g + 8 * h : row;
            bias[h] = bias_of(a, i, head);
            most[h] = -INFINITY;
            total[h] = 0;
            const size_t at = (size_t)head * width + 8 * q;
            CUDA_UNROLL
            for (int c = 0; c < CHUNKS; c++)
                x[h][c] = a.q_halves.data ? read_8<false>(a.q_halves.data, (size_t)i * a.q_halves.stride + at + 32 * c)
                                          : read_8<true>(a.q.data, (size_t)i * a.q.stride + at + 32 * c);
        }
        CUDA_UNROLL
        for (int c = 0; c < CHUNKS; c++) {
            const uint4 low = x[0][c], high = x[1][c];
            const uint32_t both[2][4] = {{low.x, high.x, low.y, high.y}, {low.z, high.z, low.w, high.w}};
            CUDA_UNROLL
            for (int w = 0; w < 8; w++) query[2 * c + w / 4][w % 4] = both[w / 4][w % 4];
        }
        const size_t elem = round ? sizeof(float) : sizeof(__half);
        keys = (const char *)a.k + ((size_t)head * width + 8 * q) * elem;
        values = (const char *)a.v + ((size_t)head * width + TILES * g) * elem;
        CUDA_UNROLL
        for (int t = 0; t < TILES; t++) sum[t][0] = sum[t][1] = sum[t][2] = sum[t][3] = 0;
    }
    // TILES numbers of a value.
    __device__ __forceinline__ void read_value(uint32_t to[TILES / 2], size_t at) const
    {
        if constexpr (TILES == 4) {
            const uint2 x = read_4<round>(values, at);
            to[0] = x.x, to[1] = x.y;
        } else {
            CUDA_UNROLL
            for (int t = 0; t < TILES / 8; t++) {
                const uint4 x = read_8<round>(values, at + 8 * t);
                to[4 * t] = x.x, to[4 * t + 1] = x.y, to[4 * t + 2] = x.z, to[4 * t + 3] = x.w;
            }
        }
    }
    // Scores of query h become weights; `left` keys are there, of which `from` is the first.
    template <int parts>
    __device__ __forceinline__ void weigh(float s[2 * parts][4], int h, int from, int left, float scale)
    {
        const int q = threadIdx.x % 4;
        float now = most[h];
        CUDA_UNROLL
        for (int j = 0; j < 4 * parts; j++) {
            float &x = s[j / 2][2 * h + j % 2];
            const int at = j / 2 * 8 + 2 * q + j % 2;
            x *= scale;
            if (bias[h] && at < left) x = fmaf(bias[h][from + at], LOG2_E, x);
            if (at >= left) x = -INFINITY;
            now = fmaxf(now, x);
        }
        now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
        now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
        const float keep = exp2f(most[h] - now);
        most[h] = now;
        total[h] *= keep;
        if (from > 0) {
            CUDA_UNROLL
            for (int t = 0; t < TILES; t++) sum[t][2 * h] *= keep, sum[t][2 * h + 1] *= keep;
        }
        CUDA_UNROLL
        for (int j = 0; j < 4 * parts; j++) {
            float &x = s[j / 2][2 * h + j % 2];
            x = exp2f(x - now);
            total[h] += x;
        }
    }
    // The next 16 * parts keys, of which `left` are there.
    template <int parts>
    __device__ __forceinline__ void add(const cuda_attention &a, int first, int from, int left, bool both, float scale)
    {
        const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
        uint4 k[2 * parts][CHUNKS];
        uint32_t v[4 * parts][TILES / 2];
        CUDA_UNROLL
        for (int t = 0; t < 2 * parts; t++) {
            const int at = 8 * t + g, row = key_row(a, first, from + (at < left ? at : left - 1));
            CUDA_UNROLL
            for (int c = 0; c < CHUNKS; c++) k[t][c] = read_8<round>(keys, (size_t)row * a.k_stride + 32 * c);
        }
        CUDA_UNROLL
        for (int u = 0; u < 4 * parts; u++) {
            const int at = u / 4 * 16 + u % 4 / 2 * 8 + 2 * q + u % 2;
            read_value(v[u], (size_t)key_row(a, first, from + (at < left ? at : left - 1)) * a.v_stride);
        }
        float s[2 * parts][4] = {};
        CUDA_UNROLL
        for (int t = 0; t < 2 * parts; t++) {
            CUDA_UNROLL
            for (int c = 0; c < CHUNKS; c++) {
                const uint32_t one[2] = {k[t][c].x, k[t][c].y}, other[2] = {k[t][c].z, k[t][c].w};
                mma_f16(s[t], query[2 * c], one);
                mma_f16(s[t], query[2 * c + 1], other);
            }
        }
        weigh<parts>(s, 0, from, left, scale);
        if (both) weigh<parts>(s, 1, from, left, scale);
        CUDA_UNROLL
        for (int p = 0; p < parts; p++) {
            const float *x = s[2 * p], *y = s[2 * p + 1];
            const uint32_t weights[4] = {pack_f16(x[0], x[1]), both ? pack_f16(x[2], x[3]) : 0, pack_f16(y[0], y[1]),
                                         both ? pack_f16(y[2], y[3]) : 0};
            add_values(weights, &v[4 * p]);
        }
    }
    // Of 16 keys. A pair for an instruction are the numbers of two neighbouring keys.
    __device__ __forceinline__ void add_values(const uint32_t weights[4], const uint32_t v[4][TILES / 2])
    {
        CUDA_UNROLL
        for (int t = 0; t < TILES; t += 2) {
            const uint32_t *w[4] = {&v[0][t / 2], &v[1][t / 2], &v[2][t / 2], &v[3][t / 2]};
            const uint32_t even[2] = {(*w[0] & 0xffff) | *w[1] << 16, (*w[2] & 0xffff) | *w[3] << 16};
            const uint32_t odd[2] = {*w[0] >> 16 | (*w[1] & 0xffff0000), *w[2] >> 16 | (*w[3] & 0xffff0000)};
            mma_f16(sum[t], weights, even);
            mma_f16(sum[t + 1], weights, odd);
        }
    }
    // Of query h, which is row i.
    __device__ __forceinline__ void put(const cuda_attention &a, int h, int i, int head)
    {
        float all = total[h] + __shfl_xor_sync(~0u, total[h], 1);
        all += __shfl_xor_sync(~0u, all, 2);
        if (i < 0) return;
        const float by = 1.0f / all;
        const int col = head * width + threadIdx.x % 4 * 2 * TILES;
        float x[2 * TILES];
        CUDA_UNROLL
        for (int j = 0; j < 2 * TILES; j++) x[j] = sum[j % TILES][2 * h + j / TILES] * by;
        float4 *to = (float4 *)(a.out.data + (size_t)i * a.out.stride + col);
        CUDA_UNROLL
        for (int j = 0; j < TILES / 2; j++) to[j] = {x[4 * j], x[4 * j + 1], x[4 * j + 2], x[4 * j + 3]};
        if (!a.halves.data) return;
        uint4 *halves = (uint4 *)((uint16_t *)a.halves.data + (size_t)i * a.halves.stride + col);
        CUDA_UNROLL
        for (int j = 0; j < TILES / 4; j++)
            halves[j] = {round_pair(a.halves, x[8 * j], x[8 * j + 1]), round_pair(a.halves, x[8 * j + 2], x[8 * j + 3]),
                         round_pair(a.halves, x[8 * j + 4], x[8 * j + 5]),
                         round_pair(a.halves, x[8 * j + 6], x[8 * j + 7])};
    }
};

// The warps of a block have neighbouring heads of a group: what they read lies side by side.
template <int width, bool round> static __global__ void __launch_bounds__(THREADS) attend_tiles(cuda_attention a)
{
    const int which = blockIdx.x * WARPS + threadIdx.x / 32, g = threadIdx.x % 32 / 4;
    const int group = which / a.heads, head = which % a.heads;
    const bool work = group < a.group_count;
    next_may_start();
    // Of the path all was there before any kernel of this tape.
    const int row = !work ? 0 : a.groups ? a.groups[group] : group;
    const int rows = !work ? 0 : a.groups ? a.groups[group + 1] - row : 1;
    const int first = work ? a.first[row] : 0, n = work ? a.length[row] : 0;
    wait_for_others();
    if (!work) return;
    tile<width, round> own;
    own.begin(a, row, rows, head);
    const bool both = rows > 8;
    const float scale = a.scale * LOG2_E;
    int from = 0;
    if (width < 128) // what is under way has to find place in registers
        for (; n - from > 16; from += 32) own.template add<2>(a, first, from, n - from, both, scale);
    for (; from < n; from += 16) own.template add<1>(a, first, from, n - from, both, scale);
    own.put(a, 0, g < rows ? row + g : -1, head);
    if (both) own.put(a, 1, g + 8 < rows ? row + g + 8 : -1, head);
}

static bool by_16(const void *p, int stride, size_t elem)
{
    return (uintptr_t)p % 16 == 0 && (size_t)stride * elem % 16 == 0;
}

template <int width> static void launch(cuda_tape *tape, const cuda_attention *a)
{
    const unsigned grid = (unsigned)((a->group_count * a->heads + WARPS - 1) / WARPS);
    if (a->half)
        CUDA_LAUNCH((attend_tiles<width, false>), grid, THREADS, 0, tape, *a);
    else
        CUDA_LAUNCH((attend_tiles<width, true>), grid, THREADS, 0, tape, *a);
}

int cuda_tiles_fit(const cuda_attention *a)
{
    const size_t elem = a->half ? sizeof(__half) : sizeof(float);
    return (a->half || a->round) && !a->additive && a->dk == a->dv && (a->dk == 32 || a->dk == 64 || a->dk == 128) &&
           by_16(a->k, a->k_stride, elem) && by_16(a->v, a->v_stride, elem) &&
           by_16(a->q.data, a->q.stride, sizeof(float)) && by_16(a->out.data, a->out.stride, sizeof(float));
}

bool cuda_run_attend_tiles(cuda_tape *tape, const cuda_attention *a)
{
    if (!cuda_tiles_fit(a)) return false;
    if (a->dk == 32)
        launch<32>(tape, a);
    else if (a->dk == 64)
        launch<64>(tape, a);
    else
        launch<128>(tape, a);
    cuda_tape_made(tape, a->out, 0, offsetof(cuda_attention, halves));
    return true;
}
