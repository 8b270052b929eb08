// SPDX-License-Identifier: MIT
// Lists of tokens that are made on the device: unions of bitmaps that it keeps, with a few tokens more.
//
//     mark    bits of the list, a word a thread, and how many there are in each tile of THREADS words
//     write   the tokens, ascending: every warp writes those of 32 words, one word at a time, side by side
//
// A list's places are those of its bits alone, so nothing depends on who else has a list in the step.
#include "backend/cuda/device_math.cuh"
#include "backend/cuda/kernels_cuda.h"

enum { THREADS = 256, WARPS = THREADS / 32, AHEAD = 8 };

// Every thread gets the sum; scratch holds a number a warp.
static __device__ int sum_of_block(int x, int *scratch)
{
    for (int n = 16; n; n /= 2) x += __shfl_xor_sync(~0u, x, n);
    __syncthreads(); // scratch may still be read
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (int w = 0; w < WARPS; w++) x += scratch[w];
    return x;
}

static __global__ void __launch_bounds__(THREADS) mark(const cuda_joint *lists, int words, int *counts)
{
    __shared__ unsigned more[THREADS];
    __shared__ int scratch[WARPS];
    begin_kernel();
    const cuda_joint list = lists[blockIdx.y];
    const int first = blockIdx.x * THREADS, w = first + (int)threadIdx.x;
    more[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < list.add_count; i += THREADS) {
        const int at = list.add[i] / 32 - first;
        if (at >= 0 && at < THREADS) atomicOr(&more[at], 1u << list.add[i] % 32);
    }
    __syncthreads();
    unsigned bits = 0;
    if (w < words) {
        bits = more[threadIdx.x];
        for (int m = 0; m < list.map_count; m += AHEAD) {
            unsigned of[AHEAD];
            CUDA_UNROLL
            for (int h = 0; h < AHEAD; h++) of[h] = m + h < list.map_count ? list.maps[m + h][w] : 0;
            CUDA_UNROLL
            for (int h = 0; h < AHEAD; h++) bits |= of[h];
        }
        list.bits[w] = bits;
    }
    const int count = sum_of_block(__popc(bits), scratch);
    if (threadIdx.x == 0) counts[blockIdx.y * gridDim.x + blockIdx.x] = count;
}

static __global__ void __launch_bounds__(THREADS) write_ids(const cuda_joint *lists, int words, const int *counts)
{
    __shared__ int scratch[WARPS], of_warp[WARPS];
    begin_kernel();
    const cuda_joint list = lists[blockIdx.y];
    const int *own = counts + (size_t)blockIdx.y * gridDim.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, w = blockIdx.x * THREADS + (int)threadIdx.x;
    int before = 0;
    for (int i = threadIdx.x; i < (int)blockIdx.x; i += THREADS) before += own[i];
    int at = sum_of_block(before, scratch);
    const unsigned bits = w < words ? list.bits[w] : 0;
    int up_to = __popc(bits); // this word's and those before it in the warp
    for (int n = 1; n < 32; n *= 2) {
        const int left = __shfl_sync(~0u, up_to, (lane - n) & 31);
        if (lane >= n) up_to += left;
    }
    if (lane == 31) of_warp[warp] = up_to;
    __syncthreads();
    for (int i = 0; i < warp; i++) at += of_warp[i];
    const int from = at + up_to - __popc(bits);
    for (int i = 0; i < 32; i++) {
        const unsigned word = __shfl_sync(~0u, bits, i);
        const int to = __shfl_sync(~0u, from, i);
        if (word >> lane & 1) list.ids[to + __popc(word & ((1u << lane) - 1))] = (w - lane + i) * 32 + lane;
    }
    if (blockIdx.x + 1 < gridDim.x || warp + 1 < WARPS) return;
    const int all = __shfl_sync(~0u, at + up_to, 31);
    for (int i = lane; i < CUDA_LIST_SPARE; i += 32) list.ids[all + i] = 0; // tiles of products end behind it
    if (lane == 0) *list.found = all;
}

int cuda_list_tiles(int words)
{
    return (words + THREADS - 1) / THREADS;
}

void cuda_run_join(cuda_tape *tape, const cuda_joint *lists, int count, int words, int *counts)
{
    if (count <= 0 || words <= 0) return;
    const dim3 grid((unsigned)cuda_list_tiles(words), (unsigned)count);
    CUDA_LAUNCH(mark, grid, THREADS, 0, tape, lists, words, counts);
    cuda_tape_made_none(tape);
    CUDA_LAUNCH(write_ids, grid, THREADS, 0, tape, lists, words, counts);
    cuda_tape_made_none(tape);
}
