// SPDX-License-Identifier: MIT
// Attention over caches of halves, heads of 32, 64 or 128: a warp has a head of a query, and reads 16 bytes a lane.
#include "backend/cuda/attend.cuh"

enum { THREADS = 128, WARPS = THREADS / 32 };

#define LOG2_E 1.4426950408889634f

// `lanes` lanes share a key, 16 bytes each, so that a warp sees 32 / lanes keys at a time, and up to AHEAD times as many are
// under way. Every such group of lanes has a running softmax of its own, of powers of two; at the end they are put together.
template <int lanes> struct group {
    enum { KEYS = 32 / lanes, AHEAD = lanes == 4 ? 4 : 8 };
    float most, total, sum[8];
    template <int ahead> __device__ __forceinline__ void add(const float s[ahead], const uint4 v[ahead])
    {
        float now = most;
        CUDA_UNROLL
        for (int u = 0; u < ahead; u++) now = fmaxf(now, s[u]);
        if (now == -INFINITY) return;
        rescale(now);
        CUDA_UNROLL
        for (int u = 0; u < ahead; u++) {
            const float weight = exp2f(s[u] - now);
            const uint32_t pairs[4] = {v[u].x, v[u].y, v[u].z, v[u].w};
            total += weight;
            CUDA_UNROLL
            for (int h = 0; h < 4; h++) {
                const float2 x = __half22float2(*(const __half2 *)&pairs[h]);
                sum[2 * h] = fmaf(weight, x.x, sum[2 * h]);
                sum[2 * h + 1] = fmaf(weight, x.y, sum[2 * h + 1]);
            }
        }
    }
    __device__ __forceinline__ void rescale(float now)
    {
        const float keep = most == -INFINITY ? 0.0f : exp2f(most - now);
        total *= keep;
        CUDA_UNROLL
        for (int d = 0; d < 8; d++) sum[d] *= keep;
        most = now;
    }
    // With the group of the lanes that are `apart` away.
    __device__ __forceinline__ void join(int apart)
    {
        const float other = __shfl_xor_sync(~0u, most, apart), now = fmaxf(most, other);
        if (now > -INFINITY) rescale(now);
        total += __shfl_xor_sync(~0u, total, apart);
        CUDA_UNROLL
        for (int d = 0; d < 8; d++) sum[d] += __shfl_xor_sync(~0u, sum[d], apart);
    }
};

static __device__ __forceinline__ float dot_8(const float q[8], const uint4 k)
{
    const uint32_t pairs[4] = {k.x, k.y, k.z, k.w};
    float sum = 0;
    CUDA_UNROLL
    for (int h = 0; h < 4; h++) {
        const float2 x = __half22float2(*(const __half2 *)&pairs[h]);
        sum = fmaf(q[2 * h], x.x, sum);
        sum = fmaf(q[2 * h + 1], x.y, sum);
    }
    return sum;
}

// Keys j, j + KEYS, ... of the n, `ahead` of them.
template <int lanes, int ahead>
static __device__ __forceinline__ void walk(const cuda_attention &a, group<lanes> &own, const float q[8], const __half *keys,
                                            const __half *values, const float *bias, int first, int j, int n)
{
    uint4 k[ahead], v[ahead];
    float s[ahead];
    CUDA_UNROLL
    for (int u = 0; u < ahead; u++) {
        const int at = j + u * group<lanes>::KEYS;
        const size_t row = (size_t)key_row(a, first, at < n ? at : n - 1);
        k[u] = *(const uint4 *)(keys + row * a.k_stride);
        v[u] = *(const uint4 *)(values + row * a.v_stride);
    }
    CUDA_UNROLL
    for (int u = 0; u < ahead; u++) {
        const int at = j + u * group<lanes>::KEYS;
        s[u] = dot_8(q, k[u]);
        CUDA_UNROLL
        for (int h = lanes / 2; h; h /= 2) s[u] += __shfl_xor_sync(~0u, s[u], h);
        s[u] = at < n ? s[u] * a.scale + (bias ? bias[at] : 0.0f) : -INFINITY;
        s[u] *= LOG2_E;
    }
    own.template add<ahead>(s, v);
}

// The warps of a block have neighbouring heads of a row: what they read lies side by side. Where neighbours share keys, they
// have one head of neighbouring rows, which then finds in the processor's cache what another one read. A row is computed alike.
template <int lanes> static __global__ void __launch_bounds__(THREADS) attend_halves(cuda_attention a)
{
    typedef group<lanes> G;
    const int which = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    const int i = a.near ? blockIdx.x / a.heads * WARPS + threadIdx.x / 32 : which / a.heads;
    const int head = (a.near ? blockIdx.x : which) % a.heads;
    const bool work = i < a.q.rows;
    next_may_start();
    const int first = work ? a.first[i] : 0, n = work ? a.length[i] : 0; // were there before any kernel of this tape
    const int part = lane % lanes * 8, key = lane / lanes;
    wait_for_others();
    if (!work) return;
    const float4 *query = (const float4 *)(a.q.data + (size_t)i * a.q.stride + (size_t)head * a.dk + part);
    const float4 low = query[0], high = query[1];
    const float q[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    const float *bias = bias_of(a, i, head);
    const __half *keys = (const __half *)a.k + (size_t)head * a.dk + part;
    const __half *values = (const __half *)a.v + (size_t)head * a.dv + part;
    G own = {-INFINITY, 0.0f, {}};
    int from = 0; // half as many where more would only wait for numbers that nobody wants
    for (; n - from > G::KEYS * G::AHEAD / 2; from += G::KEYS * G::AHEAD)
        walk<lanes, G::AHEAD>(a, own, q, keys, values, bias, first, from + key, n);
    if (from < n) walk<lanes, G::AHEAD / 2>(a, own, q, keys, values, bias, first, from + key, n);
    CUDA_UNROLL
    for (int h = lanes; h < 32; h *= 2) own.join(h);
    if (key) return;
    float4 *to = (float4 *)(a.out.data + (size_t)i * a.out.stride + (size_t)head * a.dv + part);
    const float *x = own.sum, by = 1.0f / own.total;
    to[0] = {x[0] * by, x[1] * by, x[2] * by, x[3] * by};
    to[1] = {x[4] * by, x[5] * by, x[6] * by, x[7] * by};
    if (a.halves.data)
        *(uint4 *)((uint16_t *)a.halves.data + (size_t)i * a.halves.stride + (size_t)head * a.dv + part) = {
            round_pair(a.halves, x[0] * by, x[1] * by), round_pair(a.halves, x[2] * by, x[3] * by),
            round_pair(a.halves, x[4] * by, x[5] * by), round_pair(a.halves, x[6] * by, x[7] * by)};
}

template <int lanes> static void launch(cuda_tape *tape, const cuda_attention *a)
{
    const int blocks = a->near ? (a->q.rows + WARPS - 1) / WARPS * a->heads : (a->q.rows * a->heads + WARPS - 1) / WARPS;
    CUDA_LAUNCH(attend_halves<lanes>, (unsigned)blocks, THREADS, 0, tape, *a);
}

bool cuda_run_attend_halves(cuda_tape *tape, const cuda_attention *a)
{
    if (!a->half || !cuda_tiles_fit(a)) return false;
    if (a->dk == 32)
        launch<4>(tape, a);
    else if (a->dk == 64)
        launch<8>(tape, a);
    else
        launch<16>(tape, a);
    cuda_tape_made(tape, a->out, 0, offsetof(cuda_attention, halves));
    return true;
}
