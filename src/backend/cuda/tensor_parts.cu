// SPDX-License-Identifier: MIT
// Products on tensor cores with no more tiles than processors: the four parts of k at once, each by a group of warps of
// the block, so that there are warps enough to hide what others wait for. Of rows that were rounded before.
#include "backend/cuda/tensor_tile.cuh"

enum { STAGES = 3 };

template <typename S, int rows, int columns, int down, int across>
static __global__ void __launch_bounds__(32 * rows *columns *PARTS) multiply_parts(cuda_product p)
{
    typedef tile<S, rows, columns, down, across> T;
    CUDA_DYNAMIC_SHARED(uint4, shared);
    const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4, part = threadIdx.x / T::THREADS;
    const int warp = threadIdx.x % T::THREADS / 32, r0 = warp / columns * down * 16, c0 = warp % columns * across * 8;
    uint32_t *const tiles = (uint32_t *)shared + part * STAGES * T::STAGE;
    const int chunks = chunks_of(p, S::CHUNK), size = part_size(chunks), begin = part * size;
    const int own_chunks = chunks - begin < size ? chunks - begin : size; // may be none
    const int pairs = (size + PAIR - 1) / PAIR, own_pairs = own_chunks > 0 ? (own_chunks + PAIR - 1) / PAIR : 0;
    T own = {};
    place t;
    next_may_start();
    find_place<T::HIGH, T::WIDE>(p, S::ELEM, &t); // without groups there is always one
    own.find_w(p, t);
    own.w.go_on(begin);
    own.left_w = own_chunks;
    for (int s = 0; s < STAGES - 1 && s < own_pairs; s++) own.bring_w(tiles + s * T::STAGE);
    wait_for_others();
    own.find_a(p, t);
    own.a.go_on(begin);
    own.left = own_chunks * S::A_WORDS;
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < own_pairs) own.bring_a(tiles + s * T::STAGE);
        copy_async_commit();
    }
    uint32_t *const end = tiles + STAGES * T::STAGE, *from = tiles, *to = end - T::STAGE;
    for (int s = 0; s < pairs; s++) {
        copy_async_wait<STAGES - 2>();
        __syncthreads();
        if (s + STAGES - 1 < own_pairs) {
            own.bring_w(to);
            own.bring_a(to);
        }
        copy_async_commit();
        if (s * PAIR < own_chunks) own.multiply(from, r0, c0, g, q);
        if (s * PAIR + 1 < own_chunks) own.multiply(from + T::CHUNK, r0, c0, g, q);
        from = from + T::STAGE == end ? tiles : from + T::STAGE;
        to = to + T::STAGE == end ? tiles : to + T::STAGE;
    }
    // The sums of the other parts, by way of what tiles were in.
    typedef typename S::sum sum;
    enum { EACH = down * across * 4 };
    sum *const others = (sum *)shared;
    const int thread = threadIdx.x % T::THREADS;
    copy_async_wait<0>();
    __syncthreads();
    if (part) {
        CUDA_UNROLL
        for (int i = 0; i < EACH; i++)
            others[((part - 1) * EACH + i) * T::THREADS + thread] = own.sums[i / 4 / across][i / 4 % across][i % 4];
    }
    __syncthreads();
    if (part) return;
    CUDA_UNROLL
    for (int i = 0; i < EACH; i++)
        for (int o = 0; o < PARTS - 1; o++)
            if ((o + 1) * size < chunks)
                own.sums[i / 4 / across][i / 4 % across][i % 4] += others[(o * EACH + i) * T::THREADS + thread];
    put_sums<S, down, across, T::HIGH, T::WIDE>(p, t, own.sums, r0 + g, c0 + 2 * q);
}

template <typename S, int rows, int columns, int down, int across>
static bool launch(cuda_tape *tape, const cuda_product *p)
{
    typedef tile<S, rows, columns, down, across> T;
    const size_t bytes = (size_t)PARTS * STAGES * T::STAGE * sizeof(uint32_t);
    if (bytes > (size_t)p->shared) return false;
    cuda_allow_shared(tape, (const void *)multiply_parts<S, rows, columns, down, across>, bytes);
    CUDA_LAUNCH((multiply_parts<S, rows, columns, down, across>), tiles_of(p, T::HIGH, T::WIDE), T::THREADS * PARTS,
                bytes, tape, *p);
    return true;
}

template <typename S> static bool run(cuda_tape *tape, const cuda_product *p)
{
    const double middle = tiles_per_processor(p, 64, 64);
    if (middle > 0.5 && middle <= 1 && launch<S, 2, 2, 2, 4>(tape, p)) return true;
    return launch<S, 2, 2, 1, 4>(tape, p);
}

bool cuda_run_parts(cuda_tape *tape, const cuda_product *p)
{
    if (p->type == CUDA_I8) return run<tensor_i8>(tape, p);
    if (!p->rounded) return false;
    return p->type == CUDA_F16 ? run<rounded<tensor_f16>>(tape, p) : run<rounded<tensor_bf16>>(tape, p);
}
