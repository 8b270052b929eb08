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

// The largest h.C - |C|^2 / 2, of equals the lowest; warp w looks at centroids w, w + WARPS, ...
static __global__ void closest(cuda_rows rows, const __half *centroids, const float *half_square,
                               int count, int32_t *found)
{
    begin_kernel();
    __shared__ float best[WARPS];
    __shared__ int number[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float *h = row_of(rows, blockIdx.x);
    float most = -INFINITY;
    int which = 0;
    for (int c = warp; c < count; c += WARPS) {
        const __half *row = centroids + (size_t)c * rows.cols;
        float sum = 0;
        for (int j = lane; j < rows.cols; j += 32) sum = fmaf(h[j], __half2float(row[j]), sum);
        for (int n = 16; n; n /= 2) sum += __shfl_xor_sync(~0u, sum, n);
        sum -= half_square[c];
        if (sum > most) {
            most = sum;
            which = c;
        }
    }
    if (lane == 0) {
        best[warp] = most;
        number[warp] = which;
    }
    __syncthreads();
    if (threadIdx.x) return;
    for (int w = 1; w < WARPS; w++)
        if (best[w] > most || (best[w] == most && number[w] < which)) {
            most = best[w];
            which = number[w];
        }
    found[blockIdx.x] = most > -INFINITY ? which : 0;
}

void cuda_run_closest(cuda_tape *tape, cuda_rows rows, const void *centroids, const float *half_square,
                      int count, int32_t *found)
{
    if (rows.rows > 0)
        CUDA_LAUNCH(closest, (unsigned)rows.rows, THREADS, 0, tape, rows, (const __half *)centroids,
                    half_square, count, found);
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
