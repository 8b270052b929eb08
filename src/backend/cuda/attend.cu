// SPDX-License-Identifier: MIT
// Attention: on tensor cores where that may be (attend_tiles.cu), else a warp per query and head where heads are
// narrow (attend_narrow), else a block.
//
// A block walks over keys KEYS at a time: a warp makes the score of a key, the block the softmax of the
// chunk, its threads the columns of the sum; what came before is rescaled (a running softmax). The
// order depends on the query's own keys alone.
#include "backend/cuda/attend.cuh"

enum { THREADS = 128, WARPS = THREADS / 32, KEYS = 128 };

static __device__ float load(const void *data, int half, size_t at)
{
    return half ? __half2float(((const __half *)data)[at]) : ((const float *)data)[at];
}

// Of one key, by a whole warp; every lane has it.
static __device__ float score(const cuda_attention &a, const float *q, int head, size_t row)
{
    const int lane = threadIdx.x % 32;
    const size_t at = row * a.k_stride + (size_t)head * a.dk;
    float sum = 0;
    for (int d = lane; d < a.dk; d += 32) {
        const float k = load(a.k, a.half, at + d);
        sum = a.additive ? fmaf(a.additive[d], tanhf(q[d] + k), sum) : fmaf(q[d], k, sum);
    }
    for (int n = 16; n; n /= 2) sum += __shfl_xor_sync(~0u, sum, n);
    return a.additive ? sum : sum * a.scale;
}

// Scores of keys from .. from + n - 1 into shared memory; returns their maximum.
static __device__ float score_chunk(const cuda_attention &a, const float *q, int head, int first, int from,
                                    int n, const float *bias, float *scores, float *scratch)
{
    float most = -INFINITY;
    for (int j = threadIdx.x / 32; j < n; j += WARPS) {
        float s = score(a, q, head, key_row(a, first, from + j));
        if (bias) s += bias[from + j];
        if (threadIdx.x % 32 == 0) scores[j] = s;
        most = fmaxf(most, s);
    }
    return block_max<THREADS>(most, scratch); // and all scores are there
}

template <int columns> static __global__ void __launch_bounds__(THREADS) attend(cuda_attention a)
{
    begin_kernel();
    __shared__ float scores[KEYS], scratch[32];
    const int i = blockIdx.x, head = blockIdx.y, first = a.first[i], n = a.length[i];
    const float *q = a.q.data + (size_t)i * a.q.stride + (size_t)head * a.dk;
    const float *bias = bias_of(a, i, head);
    float sum[columns] = {}, total = 0, most = -INFINITY;
    for (int from = 0; from < n; from += KEYS) {
        const int count = n - from < KEYS ? n - from : KEYS;
        const float now = fmaxf(most, score_chunk(a, q, head, first, from, count, bias, scores, scratch));
        const float keep = most == -INFINITY ? 0.0f : expf(most - now);
        float part = 0;
        for (int j = threadIdx.x; j < count; j += THREADS) part += scores[j] = expf(scores[j] - now);
        total = fmaf(total, keep, block_sum<THREADS>(part, scratch));
        for (int c = 0; c < columns; c++) sum[c] *= keep;
        for (int j = 0; j < count; j++) {
            const size_t at = (size_t)key_row(a, first, from + j) * a.v_stride + (size_t)head * a.dv;
            for (int c = 0; c < columns; c++) {
                const int d = threadIdx.x + c * THREADS;
                if (d < a.dv) sum[c] = fmaf(scores[j], load(a.v, a.half, at + d), sum[c]);
            }
        }
        most = now;
        __syncthreads();
    }
    float *out = a.out.data + (size_t)i * a.out.stride + (size_t)head * a.dv;
    for (int c = 0; c < columns; c++) {
        const int d = threadIdx.x + c * THREADS;
        if (d < a.dv) out[d] = sum[c] / total;
    }
}

// ---- narrow heads -------------------------------------------------------------------------------

enum { NARROW = 128 }; // numbers of a key and of a value

// Of one key, by one thread.
static __device__ float narrow_score(const cuda_attention &a, const float *q, size_t at)
{
    float sum = 0;
    if (!a.wide) {
        for (int d = 0; d < a.dk; d++) sum = fmaf(q[d], load(a.k, a.half, at + d), sum);
    } else if (a.half) {
        for (int d = 0; d < a.dk; d += 8) {
            const uint4 x = *(const uint4 *)((const __half *)a.k + at + d);
            const uint32_t pairs[4] = {x.x, x.y, x.z, x.w};
            CUDA_UNROLL
            for (int h = 0; h < 4; h++) {
                const float2 k = __half22float2(*(const __half2 *)&pairs[h]);
                sum = fmaf(q[d + 2 * h], k.x, sum);
                sum = fmaf(q[d + 2 * h + 1], k.y, sum);
            }
        }
    } else {
        for (int d = 0; d < a.dk; d += 4) {
            const float4 k = *(const float4 *)((const float *)a.k + at + d);
            sum = fmaf(q[d], k.x, sum);
            sum = fmaf(q[d + 1], k.y, sum);
            sum = fmaf(q[d + 2], k.z, sum);
            sum = fmaf(q[d + 3], k.w, sum);
        }
    }
    return sum * a.scale;
}

// A lane makes the score of every 32nd key, then all go over the values of the 32 together, a lane for every 32nd
// column. Warps do not wait for each other.
template <int columns> static __global__ void __launch_bounds__(THREADS) attend_narrow(cuda_attention a)
{
    begin_kernel();
    __shared__ float queries[WARPS][NARROW];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, which = blockIdx.x * WARPS + warp;
    if (which >= a.q.rows * a.heads) return;
    const int i = which / a.heads, head = which % a.heads, first = a.first[i], n = a.length[i];
    const float *q = a.q.data + (size_t)i * a.q.stride + (size_t)head * a.dk, *bias = bias_of(a, i, head);
    for (int d = lane; d < a.dk; d += 32) queries[warp][d] = q[d];
    __syncwarp();
    float sum[columns] = {}, total = 0, most = -INFINITY;
    for (int from = 0; from < n; from += 32) {
        const int count = n - from < 32 ? n - from : 32;
        int row = 0;
        float s = -INFINITY;
        if (lane < count) {
            row = key_row(a, first, from + lane);
            s = narrow_score(a, queries[warp], (size_t)row * a.k_stride + (size_t)head * a.dk);
            if (bias) s += bias[from + lane];
        }
        float now = s;
        for (int h = 16; h; h /= 2) now = fmaxf(now, __shfl_xor_sync(~0u, now, h));
        now = fmaxf(now, most);
        const float keep = most == -INFINITY ? 0.0f : expf(most - now), part = lane < count ? expf(s - now) : 0.0f;
        float parts = part;
        for (int h = 16; h; h /= 2) parts += __shfl_xor_sync(~0u, parts, h);
        total = fmaf(total, keep, parts);
        for (int c = 0; c < columns; c++) sum[c] *= keep;
        for (int j = 0; j < count; j++) {
            const float weight = __shfl_sync(~0u, part, j);
            const int value = __shfl_sync(~0u, row, j);
            const size_t at = (size_t)value * a.v_stride + (size_t)head * a.dv;
            CUDA_UNROLL
            for (int c = 0; c < columns; c++) {
                const int d = lane + 32 * c;
                if (d < a.dv) sum[c] = fmaf(weight, load(a.v, a.half, at + d), sum[c]);
            }
        }
        most = now;
    }
    float *out = a.out.data + (size_t)i * a.out.stride + (size_t)head * a.dv;
    CUDA_UNROLL
    for (int c = 0; c < columns; c++) {
        const int d = lane + 32 * c;
        if (d >= a.dv) continue;
        out[d] = sum[c] / total;
        if (a.halves.data) put_one(a.halves, i, head * a.dv + d, sum[c] / total);
    }
}

static void run_narrow(cuda_tape *tape, cuda_attention a)
{
    const unsigned grid = (unsigned)((a.q.rows * a.heads + WARPS - 1) / WARPS);
    a.wide = a.dk % 8 == 0 && a.k_stride % 8 == 0 && (uintptr_t)a.k % 16 == 0;
    if (a.dv <= 32)
        CUDA_LAUNCH(attend_narrow<1>, grid, THREADS, 0, tape, a);
    else if (a.dv <= 64)
        CUDA_LAUNCH(attend_narrow<2>, grid, THREADS, 0, tape, a);
    else
        CUDA_LAUNCH(attend_narrow<4>, grid, THREADS, 0, tape, a);
    cuda_tape_made(tape, a.out, 0, offsetof(cuda_attention, halves));
}

void cuda_run_attend(cuda_tape *tape, const cuda_attention *a)
{
    // What is stored in halves, or counts as such, always in one way: order of sums.
    if (a->q.rows <= 0 || (a->round ? cuda_run_attend_tiles(tape, a) : cuda_run_attend_halves(tape, a))) return;
    if (!a->additive && a->dk <= NARROW && a->dv <= NARROW) {
        run_narrow(tape, *a);
        return;
    }
    const dim3 grid((unsigned)a->q.rows, (unsigned)a->heads);
    if (a->dv <= THREADS)
        CUDA_LAUNCH(attend<1>, grid, THREADS, 0, tape, *a);
    else if (a->dv <= 8 * THREADS)
        CUDA_LAUNCH(attend<8>, grid, THREADS, 0, tape, *a);
    else
        CUDA_LAUNCH(attend<64>, grid, THREADS, 0, tape, *a);
}

// ---- alignments ---------------------------------------------------------------------------------

// Adds the weights of one head to out [n].
static __device__ void add_weights(const cuda_attention &a, int i, const float *q, int head, int first, int n,
                                   float *out, float *scores, float *scratch)
{
    const float *bias = bias_of(a, i, head);
    float total = 0, most = -INFINITY;
    for (int pass = 0; pass < 2; pass++)
        for (int from = 0; from < n; from += KEYS) {
            const int count = n - from < KEYS ? n - from : KEYS;
            const float now = score_chunk(a, q, head, first, from, count, bias, scores, scratch);
            if (pass == 0) {
                const float higher = fmaxf(most, now);
                float part = 0;
                for (int j = threadIdx.x; j < count; j += THREADS) part += expf(scores[j] - higher);
                const float keep = most == -INFINITY ? 0.0f : expf(most - higher);
                total = fmaf(total, keep, block_sum<THREADS>(part, scratch));
                most = higher;
            } else {
                for (int j = threadIdx.x; j < count; j += THREADS)
                    out[from + j] += expf(scores[j] - most) / total;
            }
            __syncthreads();
        }
}

static __global__ void __launch_bounds__(THREADS)
    weights(cuda_attention a, const int32_t *rows, const int32_t *at, int head, float *out)
{
    begin_kernel();
    __shared__ float scores[KEYS], scratch[32];
    const int i = rows[blockIdx.x], n = a.length[i];
    const float *q = a.q.data + (size_t)i * a.q.stride;
    const int begin = head < 0 ? 0 : head, end = head < 0 ? a.heads : head + 1;
    out += at[blockIdx.x];
    for (int j = threadIdx.x; j < n; j += THREADS) out[j] = 0.0f;
    for (int h = begin; h < end; h++)
        add_weights(a, i, q + (size_t)h * a.dk, h, a.first[i], n, out, scores, scratch);
    for (int j = threadIdx.x; j < n; j += THREADS) out[j] /= (float)(end - begin);
}

void cuda_run_weights(cuda_tape *tape, const cuda_attention *a, const int32_t *rows, const int32_t *at,
                      int count, int head, float *out)
{
    if (count > 0) CUDA_LAUNCH(weights, (unsigned)count, THREADS, 0, tape, *a, rows, at, head, out);
}

// ---- memory of sources --------------------------------------------------------------------------

// 8 numbers that begin at multiples of 16 bytes, or one.
template <int each> static __device__ __forceinline__ void put(const cuda_put &p, void *memory, size_t to, size_t from)
{
    if constexpr (each == 1) {
        const float x = load(p.kv, p.rounded, from);
        if (p.half)
            ((uint16_t *)memory)[to] = (uint16_t)pack_f16(x, x);
        else
            ((float *)memory)[to] = x;
    } else if (p.rounded) {
        *(uint4 *)((uint16_t *)memory + to) = *(const uint4 *)((const uint16_t *)p.kv + from);
    } else {
        const float4 *x = (const float4 *)((const float *)p.kv + from), low = x[0], high = x[1];
        if (p.half) {
            *(uint4 *)((uint16_t *)memory + to) = {pack_f16(low.x, low.y), pack_f16(low.z, low.w),
                                                   pack_f16(high.x, high.y), pack_f16(high.z, high.w)};
        } else {
            float4 *y = (float4 *)((float *)memory + to);
            y[0] = low;
            y[1] = high;
        }
    }
}

enum { PUT_BLOCKS = 32 }; // share a span

template <int each> static __global__ void __launch_bounds__(THREADS) put_spans(cuda_put p, const cuda_span *spans)
{
    begin_kernel();
    const cuda_span span = spans[blockIdx.x];
    const int per_layer = p.width / each, per_row = p.layers * per_layer, all = span.rows * per_row;
    CUDA_UNROLL_4
    for (int i = (int)(blockIdx.y * THREADS + threadIdx.x); i < all; i += PUT_BLOCKS * THREADS) {
        const int row = i / per_row, rest = i % per_row, layer = rest / per_layer, col = rest % per_layer * each;
        const size_t to = ((size_t)span.first * p.unit + row) * p.width + col;
        put<each>(p, p.memory[layer], to, (size_t)(span.row + row) * p.stride + layer * p.width + col);
    }
}

static bool by_8(const cuda_put *p)
{
    uintptr_t all = (uintptr_t)p->kv | (uintptr_t)(p->width % 8 * 2) | (uintptr_t)(p->stride % 8 * 2);
    for (int l = 0; l < p->layers; l++) all |= (uintptr_t)p->memory[l];
    return all % 16 == 0;
}

void cuda_run_put(cuda_tape *tape, const cuda_put *p, const cuda_span *spans, int count)
{
    const dim3 grid((unsigned)count, PUT_BLOCKS);
    if (count <= 0) return;
    if (by_8(p))
        CUDA_LAUNCH(put_spans<8>, grid, THREADS, 0, tape, *p, spans);
    else
        CUDA_LAUNCH(put_spans<1>, grid, THREADS, 0, tape, *p, spans);
    cuda_tape_made_none(tape);
}
