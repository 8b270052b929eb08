// SPDX-License-Identifier: MIT
// Kernels that choose by hidden vectors: the nearest centroid, the experts of a mixture.
#include <float.h>

#include "backend/cuda/device_math.cuh"
#include "backend/cuda/kernels_cuda.h"

enum { THREADS = 256, WARPS = THREADS / 32, MOST = 2 };

static __device__ const float *row_of(cuda_rows m, int i)
{
    return m.data + (size_t)i * m.stride;
}

// ---- centroids ----------------------------------------------------------------------------------

// The largest h.C - |C|^2 / 2, of equals the lowest. A block looks at EACH centroids for a few rows, and a second kernel at
// what the blocks found. A sum is a row's and a centroid's alone: lane by lane, then over the lanes.

enum { EACH = 32, SIDE = 4 }; // SIDE: rows side by side, for which a centroid is read once

struct found_one {
    float most;
    int32_t which;
};

static __device__ bool nearer(found_one a, found_one b)
{
    return a.most > b.most || (a.most == b.most && a.which < b.which);
}

// Eight numbers of a centroid from j on, those behind its end zeros.
static __device__ __forceinline__ void load_eight(const __half *c, int j, int cols, float out[8])
{
    if (cols % 8 == 0) {
        const uint4 x = *(const uint4 *)(c + j);
        const uint32_t w[4] = {x.x, x.y, x.z, x.w};
        CUDA_UNROLL
        for (int i = 0; i < 4; i++) {
            const float2 y = __half22float2(*(const __half2 *)&w[i]);
            out[2 * i] = y.x;
            out[2 * i + 1] = y.y;
        }
    } else {
        CUDA_UNROLL
        for (int i = 0; i < 8; i++) out[i] = j + i < cols ? __half2float(c[j + i]) : 0.0f;
    }
}

static __global__ void __launch_bounds__(THREADS) closest_of(cuda_rows rows, const __half *centroids,
                                                             const float *half_square, int count, found_one *out)
{
    __shared__ found_one best[WARPS][SIDE];
    begin_kernel();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.y * SIDE;
    const int begin = blockIdx.x * EACH, end = begin + EACH < count ? begin + EACH : count;
    const float *h[SIDE];
    found_one own[SIDE];
    CUDA_UNROLL
    for (int r = 0; r < SIDE; r++) {
        h[r] = row_of(rows, first + r < rows.rows ? first + r : rows.rows - 1);
        own[r] = {-INFINITY, 0};
    }
    for (int c = begin + warp; c < end; c += WARPS) {
        const __half *row = centroids + (size_t)c * rows.cols;
        float sum[SIDE] = {};
        for (int j = 8 * lane; j < rows.cols; j += 8 * 32) {
            float x[8];
            load_eight(row, j, rows.cols, x);
            CUDA_UNROLL
            for (int r = 0; r < SIDE; r++) {
                CUDA_UNROLL
                for (int i = 0; i < 8; i++)
                    if (j + i < rows.cols) sum[r] = fmaf(h[r][j + i], x[i], sum[r]);
            }
        }
        CUDA_UNROLL
        for (int r = 0; r < SIDE; r++) {
            for (int n = 16; n; n /= 2) sum[r] += __shfl_xor_sync(~0u, sum[r], n);
            const found_one it = {sum[r] - half_square[c], c};
            if (it.most > own[r].most) own[r] = it;
        }
    }
    if (lane == 0) {
        CUDA_UNROLL
        for (int r = 0; r < SIDE; r++) best[warp][r] = own[r];
    }
    __syncthreads();
    const int r = threadIdx.x;
    if (r >= SIDE || first + r >= rows.rows) return;
    found_one most = best[0][r];
    for (int w = 1; w < WARPS; w++)
        if (nearer(best[w][r], most)) most = best[w][r];
    out[(size_t)(first + r) * gridDim.x + blockIdx.x] = most;
}

// A warp a row.
static __global__ void __launch_bounds__(32) closest_of_all(const found_one *parts, int count, int32_t *found)
{
    begin_kernel();
    const found_one *own = parts + (size_t)blockIdx.x * count;
    found_one most = {-INFINITY, 0};
    for (int i = threadIdx.x; i < count; i += 32)
        if (nearer(own[i], most)) most = own[i];
    for (int n = 16; n; n /= 2) {
        const found_one other = {__shfl_xor_sync(~0u, most.most, n), __shfl_xor_sync(~0u, most.which, n)};
        if (nearer(other, most)) most = other;
    }
    if (threadIdx.x == 0) found[blockIdx.x] = most.most > -INFINITY ? most.which : 0;
}

static int closest_blocks(int count)
{
    return (count + EACH - 1) / EACH;
}

size_t cuda_closest_scratch(int rows, int count)
{
    return (size_t)rows * (size_t)closest_blocks(count) * sizeof(found_one);
}

void cuda_run_closest(cuda_tape *tape, cuda_rows rows, const void *centroids, const float *half_square,
                      int count, void *scratch, int32_t *found)
{
    if (rows.rows <= 0) return;
    const dim3 grid((unsigned)closest_blocks(count), (unsigned)((rows.rows + SIDE - 1) / SIDE));
    CUDA_LAUNCH(closest_of, grid, THREADS, 0, tape, rows, (const __half *)centroids, half_square, count,
                (found_one *)scratch);
    cuda_tape_made_none(tape);
    CUDA_LAUNCH(closest_of_all, (unsigned)rows.rows, 32, 0, tape, (const found_one *)scratch, closest_blocks(count), found);
    cuda_tape_made_none(tape);
}

// ---- experts ------------------------------------------------------------------------------------

// A block a row; logits of the gate in shared memory.
static __global__ void choose_experts(cuda_rows in, const float *gate, const float *bias, int experts,
                                      int top, int normalise, float scale, cuda_routing r)
{
    begin_kernel();
    CUDA_DYNAMIC_SHARED(float, logits);
    __shared__ float scratch[32];
    const int lane = threadIdx.x % 32, row = blockIdx.x;
    const float *x = row_of(in, row);
    for (int j = threadIdx.x / 32; j < experts; j += WARPS) {
        float sum = 0;
        for (int d = lane; d < in.cols; d += 32) sum = fmaf(x[d], gate[(size_t)j * in.cols + d], sum);
        for (int n = 16; n; n /= 2) sum += __shfl_xor_sync(~0u, sum, n);
        if (lane == 0) logits[j] = bias ? sum + bias[j] : sum;
    }
    __syncthreads();
    float most = -INFINITY, total = 0;
    for (int j = threadIdx.x; j < experts; j += THREADS) most = fmaxf(most, logits[j]);
    most = block_max<THREADS>(most, scratch);
    for (int j = threadIdx.x; j < experts; j += THREADS) total += expf(logits[j] - most);
    total = block_sum<THREADS>(total, scratch);
    if (threadIdx.x) return;
    float sum = 0, weight[MOST];
    int chosen[MOST];
    for (int t = 0; t < top; t++) { // of a gate that is no number the first ones
        int best = -1;
        for (int j = 0; j < experts; j++)
            if (!(t > 0 && j == chosen[0]) && (best < 0 || logits[j] > logits[best])) best = j;
        chosen[t] = best;
        weight[t] = expf(logits[best] - most) / total;
        sum += weight[t];
    }
    for (int t = 0; t < top; t++) {
        const float w = normalise ? weight[t] / fmaxf(sum, FLT_EPSILON) : weight[t];
        r.chosen[row * top + t] = chosen[t];
        r.weight[row * top + t] = w * scale;
    }
}

// Counting sort by expert, stable: one thread an expert.
static __global__ void sort_rows(int places, int top, int experts, cuda_routing r)
{
    begin_kernel();
    const int j = blockIdx.x * THREADS + threadIdx.x;
    if (j > experts) return;
    int before = 0;
    for (int p = 0; p < places; p++) before += r.chosen[p] < j;
    r.first[j] = before;
    if (j == experts) return;
    for (int p = 0; p < places; p++)
        if (r.chosen[p] == j) {
            r.order[before] = p / top;
            r.place[p] = before++;
        }
}

void cuda_run_route(cuda_tape *tape, cuda_rows in, const float *gate, const float *bias, int experts,
                    int top, int normalise, float scale, cuda_routing r)
{
    if (in.rows <= 0) return;
    CUDA_LAUNCH(choose_experts, (unsigned)in.rows, THREADS, (size_t)experts * sizeof(float), tape, in,
                gate, bias, experts, top, normalise, scale, r);
    CUDA_LAUNCH(sort_rows, (unsigned)(experts / THREADS + 1), THREADS, 0, tape, in.rows * top, top,
                experts, r);
}

static __global__ void combine_rows(cuda_rows y, cuda_rows result, int top, cuda_routing r)
{
    begin_kernel();
    const int row = blockIdx.x, at = row * top;
    // In the order of the experts' numbers, as rows are handled on a CPU.
    const int turn = top > 1 && r.chosen[at] > r.chosen[at + 1];
    for (int j = threadIdx.x; j < y.cols; j += THREADS) {
        float sum = 0;
        for (int t = 0; t < top; t++) {
            const int which = at + (turn ? top - 1 - t : t);
            sum = fmaf(r.weight[which], row_of(result, r.place[which])[j], sum);
        }
        y.data[(size_t)row * y.stride + j] = sum;
    }
}

void cuda_run_combine(cuda_tape *tape, cuda_rows y, cuda_rows result, int top, cuda_routing r)
{
    if (y.rows > 0) CUDA_LAUNCH(combine_rows, (unsigned)y.rows, THREADS, 0, tape, y, result, top, r);
}
