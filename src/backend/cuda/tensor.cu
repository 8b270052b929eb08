// SPDX-License-Identifier: MIT
// Products on tensor cores of many rows; of few: tensor_few.cu; by groups of warps: tensor_wide.cu.
//
//     a [m, k], w [n, ldw]  --cp.async-->  `stages` pairs of chunks in shared memory  -->  registers  -->  c
//
// What a block covers decides how long that takes, not what comes out (tensor.cuh).
#include <stddef.h>

#include "backend/cuda/tensor_tile.cuh"

template <typename S, int stages, int rows, int columns, int down, int across>
static __global__ void __launch_bounds__(32 * rows * columns) multiply(cuda_product p)
{
    typedef tile<S, rows, columns, down, across> T;
    CUDA_DYNAMIC_SHARED(uint4, shared);
    uint32_t *const tiles = (uint32_t *)shared;
    T own = {};
    place t;
    next_may_start();
    const bool late = p.groups || p.n_found; // what is multiplied is known afterwards
    if (late) wait_for_others();
    const bool work = find_place<T::HIGH, T::WIDE>(p, S::ELEM, &t);
    const int chunks = chunks_of(p, S::CHUNK), per_part = part_size(chunks), count = (chunks + PAIR - 1) / PAIR;
    if (work) {
        own.find_w(p, t);
        for (int s = 0; s < stages - 1 && s < count; s++) own.bring_w(tiles + s * T::STAGE);
    }
    if (!late) wait_for_others();
    if (!work) return;
    own.find_a(p, t);
    const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4, warp = threadIdx.x / 32;
    const int r0 = warp / columns * down * 16, c0 = warp % columns * across * 8;
    for (int s = 0; s < stages - 1; s++) {
        if (s < count) own.bring_a(tiles + s * T::STAGE);
        copy_async_commit(); // the first group has all of w
    }
    uint32_t *const end = tiles + stages * T::STAGE, *from = tiles, *to = end - T::STAGE;
    int in_part = 0;
    bool first = true;
    for (int s = 0; s < count; s++) {
        copy_async_wait<stages - 2>(); // this thread's share of stage s is there,
        __syncthreads();               // everybody's, and stage s - 1 was read
        if (s + stages - 1 < count) {
            own.bring_w(to);
            own.bring_a(to);
        }
        copy_async_commit();
        own.multiply(from, r0, c0, g, q);
        if (++in_part == per_part) {
            own.add_part(first);
            first = false;
            in_part = 0;
        }
        if (s * PAIR + 1 < chunks) {
            own.multiply(from + T::CHUNK, r0, c0, g, q);
            if (++in_part == per_part) {
                own.add_part(first);
                first = false;
                in_part = 0;
            }
        }
        from = from + T::STAGE == end ? tiles : from + T::STAGE;
        to = to + T::STAGE == end ? tiles : to + T::STAGE;
    }
    if (in_part) own.add_part(first);
    put_sums<S, down, across, T::HIGH, T::WIDE>(p, t, own.total, r0 + g, c0 + 2 * q);
}

// ---- launches -----------------------------------------------------------------------------------

template <typename S, int stages, int rows, int columns, int down, int across>
static bool launch(cuda_tape *tape, const cuda_product *p)
{
    typedef tile<S, rows, columns, down, across> T;
    const size_t bytes = (size_t)stages * T::STAGE * sizeof(uint32_t);
    if (bytes > (size_t)p->shared) return false;
    cuda_allow_shared(tape, (const void *)multiply<S, stages, rows, columns, down, across>, bytes);
    CUDA_LAUNCH((multiply<S, stages, rows, columns, down, across>), tiles_of(p, T::HIGH, T::WIDE), T::THREADS, bytes,
                tape, *p);
    return true;
}

// Few rows: warps share k. Else groups of warps, where the device has them. Else the largest tile of which there are
// enough for all processors, the parts of k one by one or, where there are no more tiles than processors, all at once.
// Devices with little shared memory have fewer stages under way.
template <typename S> static void run(cuda_tape *tape, const cuda_product *p)
{
    const double small = tiles_per_processor(p, 32, 64), middle = tiles_per_processor(p, 64, 64);
    if (p->n_found && cuda_run_listed(tape, p)) return;
    if (!p->groups && small < 0.3)
        cuda_run_few(tape, p);
    else if (cuda_run_wide(tape, p))
        return;
    else if (!p->groups && !p->n_found && (small <= 1 || (middle > 0.5 && middle <= 1)) && cuda_run_parts(tape, p))
        return;
    else if (!p->groups && tiles_per_processor(p, 128, 64) > 0.9 && launch<S, 4, 4, 2, 2, 4>(tape, p))
        return;
    else if (p->groups || middle > 0.9)
        launch<S, 4, 4, 2, 1, 4>(tape, p) || launch<S, 2, 4, 2, 1, 4>(tape, p);
    else
        launch<S, 4, 2, 2, 1, 4>(tape, p) || launch<S, 2, 2, 2, 1, 4>(tape, p);
}

void cuda_run_tensor(cuda_tape *tape, const cuda_product *p)
{
    with_type(p, [&](auto type) { run<decltype(type)>(tape, p); });
    cuda_tape_product(tape);
    if (p->paired)
        cuda_tape_made(tape, {p->c, p->m, p->n, p->ldc}, 0, offsetof(cuda_product, halves));
}
