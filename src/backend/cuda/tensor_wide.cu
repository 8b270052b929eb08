// SPDX-License-Identifier: MIT
// Products on tensor cores of many rows, on devices whose groups of warps multiply what lies in shared memory.
//
//     a, w  --boxes, by one thread-->  `STAGES` pairs of chunks in shared memory  --two groups of warps-->  c
//
// A group has 64 rows of a, and a block makes tiles of `columns` columns, one behind the other. Where k is small the rows are
// kept (`kept`): then only w comes through the stages, half as much. A stage has a barrier for "it is there" and one for
// "it was read": nobody waits for the whole block, and one group multiplies while the other adds the sums of a part
// or writes.
#include <stddef.h>

#include "backend/cuda/tensor.cuh"

enum { GROUP = 128, KEPT_PAIRS = 8 }; // GROUP: threads of a group

template <int groups, int columns, bool kept> struct shape {
    enum {
        HIGH = 64 * groups,
        WIDE = columns,
        MULTIPLIERS = GROUP * groups, // threads
        BRINGERS = groups == 2 ? GROUP : 32, // one of them works; a group gives its registers to the others
        THREADS = MULTIPLIERS + BRINGERS,
        A_BOX = HIGH * BOX_BYTES,     // of a pair of chunks
        W_BOX = WIDE * BOX_BYTES,
        STAGES = kept ? 6 : groups == 2 ? 7 : 6,
        STAGE = W_BOX + (kept ? 0 : A_BOX), // w, then a
        KEPT = kept ? KEPT_PAIRS * A_BOX : 0,
        BARRIERS = KEPT + STAGES * STAGE,
        BYTES = BARRIERS + 2 * STAGES * 8 + 1024 // boxes begin at multiples of that
    };
};

// What a block does.
struct job {
    int chunks, pairs, first_tile, last_tile;
    place t; // col: of the tile that is made now
    char *rows, *stages;
    uint64_t *there, *read; // barriers
};

// ---- bringing -----------------------------------------------------------------------------------

template <typename Z, bool kept>
static __device__ __forceinline__ void bring_all(const job &j, const tensor_map *a, const tensor_map *w)
{
    const int first = j.pairs < Z::STAGES ? j.pairs : Z::STAGES; // of the first tile, before anybody read one
    for (int k = 0; k < first; k++) {
        barrier_expect(&j.there[k], Z::W_BOX + Z::A_BOX);
        bring_box(j.stages + k * Z::STAGE, w, k, j.first_tile * Z::WIDE, &j.there[k]);
    }
    wait_for_others();
    int stage = 0, round = 0;
    for (int tile = j.first_tile; tile < j.last_tile; tile++) {
        for (int k = 0; k < j.pairs; k++) {
            const bool begun = tile == j.first_tile && k < first, rows = !kept || tile == j.first_tile;
            char *const to = j.stages + stage * Z::STAGE;
            if (round) barrier_wait(&j.read[stage], (round - 1) % 2);
            if (!begun) {
                barrier_expect(&j.there[stage], Z::W_BOX + (rows ? Z::A_BOX : 0));
                bring_box(to, w, k, tile * Z::WIDE, &j.there[stage]);
            }
            if (rows) bring_box(kept ? j.rows + k * Z::A_BOX : to + Z::W_BOX, a, k, j.t.row, &j.there[stage]);
            if (++stage == Z::STAGES) {
                stage = 0;
                round++;
            }
        }
    }
}

// ---- multiplying --------------------------------------------------------------------------------

// The rows of the product that a lane has: `row` of the tile, and 8 behind it.
struct two_rows {
    size_t at[2];
    bool there[2];

    __device__ __forceinline__ two_rows(const place &t, int row)
    {
        CUDA_UNROLL
        for (int i = 0; i < 2; i++) {
            there[i] = row + 8 * i < t.rows;
            at[i] = (size_t)(t.row + (there[i] ? row + 8 * i : t.rows - 1));
        }
    }
};

// The sums of a group: of a part of k, and of the parts before.
template <typename S, int columns> struct group_sums {
    enum { COUNT = columns / 2 };
    float part[COUNT], total[COUNT];

    // A chunk of a and one of w, the first of a part or one more.
    __device__ __forceinline__ void multiply(const char *a, const char *w, bool more)
    {
        begin_group_mma();
        CUDA_UNROLL
        for (int h = 0; h < 2; h++)
            S::template group_mma<columns>(part, make_shared_matrix(a + 32 * h), make_shared_matrix(w + 32 * h), more || h);
        commit_group_mma();
    }
    __device__ __forceinline__ void end_part(bool first)
    {
        CUDA_UNROLL
        for (int i = 0; i < COUNT; i++) total[i] = first ? part[i] : total[i] + part[i];
    }
    // SOME columns of a tile, from column `from` on: all that is read is on its way before the first of it is needed.
    // first: column of the tile. Rows that are not there are read as the last one, and not written.
    enum { SOME = 64 };
    __device__ __forceinline__ void finish_some(const cuda_product &p, const two_rows &r, int first, int from)
    {
        const int col = first + from + threadIdx.x % 4 * 2;
        float *const x = total + from / 2;
        float bias[SOME / 8][2];
        float2 more[2][SOME / 8];
        if (p.bias) {
            CUDA_UNROLL
            for (int i = 0; i < SOME / 4; i++) bias[i / 2][i % 2] = p.bias[col + i / 2 * 8 + i % 2];
        }
        if (p.residual) {
            CUDA_UNROLL
            for (int i = 0; i < SOME / 4; i++)
                more[i % 2][i / 2] = *(const float2 *)(p.residual + r.at[i % 2] * p.ldr + col + i / 2 * 8);
        }
        if (p.bias) {
            CUDA_UNROLL
            for (int i = 0; i < SOME / 2; i++) x[i] += bias[i / 4][i % 2];
        }
        if (p.act == DGM_ACT_RELU) {
            CUDA_UNROLL
            for (int i = 0; i < SOME / 2; i++) x[i] = x[i] > 0.0f ? x[i] : 0.0f;
        } else if (p.act == DGM_ACT_SWISH) {
            CUDA_UNROLL
            for (int i = 0; i < SOME / 2; i++) x[i] = swish(x[i]);
        } else if (p.act != DGM_ACT_NONE) {
            CUDA_UNROLL
            for (int i = 0; i < SOME / 2; i++) x[i] = activate_other(x[i], p.act);
        }
        if (p.residual) {
            CUDA_UNROLL
            for (int i = 0; i < SOME / 2; i++) x[i] += i % 2 ? more[i / 2 % 2][i / 4].y : more[i / 2 % 2][i / 4].x;
        }
        if (p.c) {
            CUDA_UNROLL
            for (int i = 0; i < SOME / 4; i++)
                if (r.there[i % 2])
                    *(float2 *)(p.c + r.at[i % 2] * p.ldc + col + i / 2 * 8) = {x[2 * i], x[2 * i + 1]};
        }
    }
    __device__ __forceinline__ void put_plain(const cuda_product &p, const two_rows &r, int first)
    {
        CUDA_UNROLL
        for (int from = 0; from < columns; from += SOME) {
            finish_some(p, r, first, from);
            CUDA_IN_ORDER;
        }
        if (p.halves.data)
            put_halves((uint16_t *)p.halves.data + r.at[0] * p.halves.stride + first,
                       (ptrdiff_t)(r.at[1] - r.at[0]) * p.halves.stride, r, 0, columns,
                       [&](float x, float y) { return round_pair(p.halves, x, y); });
        if (p.keep) {
            uint16_t *const keep = (uint16_t *)p.keep + (first - p.keep_first);
            const ptrdiff_t to = (ptrdiff_t)p.keep_rows[r.at[0]] * p.keep_stride;
            put_halves(keep + to, (ptrdiff_t)p.keep_rows[r.at[1]] * p.keep_stride - to, r, p.keep_first - first,
                       p.keep_first + p.keep_count - first, [](float x, float y) {
                           const __half2 h = __floats2half2_rn(x, y);
                           return *(const uint32_t *)&h;
                       });
        }
    }
    // Columns begin .. end - 1 of the tile, rows `apart` numbers apart: four lanes exchange what they have of a row, so that
    // each writes 16 bytes.
    template <typename F>
    __device__ __forceinline__ void put_halves(uint16_t *to, ptrdiff_t apart, const two_rows &r, int begin, int end, F pack)
    {
        const int q = threadIdx.x % 4;
        CUDA_UNROLL
        for (int i = 0; i < columns / 16; i++) {
            const int at = i / 2 * 32 + 8 * q;
            uint32_t v[4];
            CUDA_UNROLL
            for (int j = 0; j < 4; j++) {
                const float *const x = total + (i / 2 * 4 + j) * 4 + i % 2 * 2;
                v[j] = pack(x[0], x[1]);
            }
            const uint4 y = exchange(v, q);
            if (r.there[i % 2] && at >= begin && at < end) *(uint4 *)(to + i % 2 * apart + at) = y;
        }
    }
    // v[j] of lane s becomes word s of lane j.
    static __device__ __forceinline__ uint4 exchange(const uint32_t v[4], int q)
    {
        const bool odd = q & 1, high = q & 2;
        const uint32_t a = __shfl_xor_sync(~0u, odd ? v[0] : v[1], 1), b = __shfl_xor_sync(~0u, odd ? v[2] : v[3], 1);
        const uint32_t w[4] = {odd ? a : v[0], odd ? v[1] : a, odd ? b : v[2], odd ? v[3] : b};
        const uint32_t c = __shfl_xor_sync(~0u, high ? w[0] : w[2], 2), d = __shfl_xor_sync(~0u, high ? w[1] : w[3], 2);
        return {high ? c : w[0], high ? d : w[1], high ? w[2] : c, high ? w[3] : d};
    }
    template <int high> __device__ __forceinline__ void put(const cuda_product &p, const place &t)
    {
        const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
        if (p.plain && t.col + columns <= p.n) {
            put_plain(p, two_rows(t, row), t.col);
            return;
        }
        CUDA_UNROLL
        for (int j = 0; j < columns / 8; j += 4) {
            float some[1][4][4];
            CUDA_UNROLL
            for (int i = 0; i < 16; i++) some[0][i / 4][i % 4] = total[4 * j + i];
            put_sums<S, 1, 4, high, columns>(p, t, some, row, 8 * j + lane % 4 * 2);
        }
    }
};

template <typename S, typename Z, bool kept>
static __device__ __forceinline__ void multiply_all(const cuda_product &p, job &j)
{
    const int per_part = part_size(j.chunks), rows = threadIdx.x / GROUP * 64 * BOX_BYTES;
    const bool one = threadIdx.x % 32 == 0;
    group_sums<S, Z::WIDE> sums;
    int stage = 0, parity = 0;
    wait_for_others();
    for (int tile = j.first_tile; tile < j.last_tile; tile++) {
        for (int begin = 0; begin < j.chunks; begin += per_part) {
            const int end = begin + per_part < j.chunks ? begin + per_part : j.chunks;
            int done = -1; // a stage that was read when all but the last chunk are multiplied
            for (int c = begin; c < end; c++) {
                const char *w = j.stages + stage * Z::STAGE, *a = kept ? j.rows + c / 2 * Z::A_BOX : w + Z::W_BOX;
                if (c % 2 == 0 || c == begin) barrier_wait(&j.there[stage], parity);
                sums.multiply(a + rows + c % 2 * 64, w + c % 2 * 64, c > begin);
                wait_group_mma<1>();
                if (done >= 0 && one) barrier_arrive(&j.read[done]);
                done = -1;
                if (c % 2 || c + 1 == j.chunks) {
                    done = stage;
                    if (++stage == Z::STAGES) {
                        stage = 0;
                        parity ^= 1;
                    }
                }
            }
            wait_group_mma<0>();
            if (done >= 0 && one) barrier_arrive(&j.read[done]);
            sums.end_part(begin == 0);
        }
        j.t.col = tile * Z::WIDE;
        sums.template put<Z::HIGH>(p, j.t);
    }
}

template <typename S, int groups, int columns, bool kept>
static __global__ void __launch_bounds__(shape<groups, columns, kept>::THREADS, groups == 1 ? 2 : 1)
    multiply_wide(cuda_product p, const CUDA_CONSTANT tensor_map a, const CUDA_CONSTANT tensor_map w)
{
    typedef shape<groups, columns, kept> Z;
    CUDA_DYNAMIC_SHARED(uint4, shared);
    const int tiles = (p.n + Z::WIDE - 1) / Z::WIDE;
    char *const memory = align_shared(shared, 1024);
    uint64_t *const barriers = (uint64_t *)(memory + Z::BARRIERS);
    job j = {chunks_of(p, S::CHUNK), 0, (int)(blockIdx.x * tiles / gridDim.x), (int)((blockIdx.x + 1) * tiles / gridDim.x),
             {(int)blockIdx.y * Z::HIGH, 0, 0, (const char *)p.w, p.bias, nullptr},
             memory, memory + Z::KEPT, barriers, barriers + Z::STAGES};
    j.pairs = (j.chunks + 1) / 2;
    j.t.rows = p.m - j.t.row < Z::HIGH ? p.m - j.t.row : Z::HIGH;
    next_may_start();
    if (threadIdx.x < Z::STAGES) {
        barrier_open(&j.there[threadIdx.x], 1);
        barrier_open(&j.read[threadIdx.x], Z::MULTIPLIERS / 32);
    }
    show_barriers();
    __syncthreads();
    if (threadIdx.x < Z::MULTIPLIERS) {
        if (groups == 2) more_registers<240>();
        multiply_all<S, Z, kept>(p, j);
        return;
    }
    if (groups == 2) fewer_registers<24>();
    if (threadIdx.x == Z::MULTIPLIERS)
        bring_all<Z, kept>(j, &a, &w);
    else
        wait_for_others();
}

// ---- launches -----------------------------------------------------------------------------------

template <typename S, int groups, int columns, bool kept>
static bool launch(cuda_tape *tape, const cuda_product *p, int blocks, const tensor_map *a, const tensor_map *w)
{
    typedef shape<groups, columns, kept> Z;
    const size_t bytes = Z::BYTES;
    if (bytes > (size_t)p->shared) return false;
    cuda_allow_shared(tape, (const void *)multiply_wide<S, groups, columns, kept>, bytes);
    CUDA_LAUNCH((multiply_wide<S, groups, columns, kept>), dim3((unsigned)blocks, (unsigned)((p->m + Z::HIGH - 1) / Z::HIGH)),
                (unsigned)Z::THREADS, bytes, tape, *p, *a, *w);
    return true;
}

template <typename S, int groups, int columns> static bool launch_tiles(cuda_tape *tape, const cuda_product *p)
{
    const int high = (p->m + 64 * groups - 1) / (64 * groups), tiles = (p->n + columns - 1) / columns;
    const int bf16 = p->type == CUDA_BF16;
    tensor_map a, w;
    if (!make_tensor_map(&a, p->a, p->m, p->k, p->lda, 64 * groups, bf16) ||
        !make_tensor_map(&w, p->w, p->n, p->k, p->ldw, columns, bf16))
        return false;
    if constexpr (groups == 1) return launch<S, 1, columns, false>(tape, p, tiles, &a, &w);
    // Blocks that share the columns of a row of tiles: one for each processor, in all.
    int blocks = p->processors / high;
    blocks = blocks < 1 ? 1 : blocks < tiles ? blocks : tiles;
    const bool again = blocks < tiles && p->k <= 2 * KEPT_PAIRS * S::CHUNK;
    return again ? launch<S, 2, columns, true>(tape, p, blocks, &a, &w) : launch<S, 2, columns, false>(tape, p, blocks, &a, &w);
}

// Large tiles where more than half of the processors have one, else small ones; as measured on an H200.
template <typename S> static bool run(cuda_tape *tape, const cuda_product *p)
{
    if (p->m > 64 && tiles_per_processor(p, 128, 128) > 0.54) return launch_tiles<S, 2, 128>(tape, p);
    return tiles_per_processor(p, 64, 64) > (p->m > 64 ? 0.6 : 1.0) && launch_tiles<S, 1, 64>(tape, p);
}

bool cuda_run_wide(cuda_tape *tape, const cuda_product *p)
{
    if (!p->warp_groups || !p->rounded || p->groups || p->a_rows || p->w_rows) return false;
    cuda_product q = *p;
    const bool keep = (uintptr_t)p->keep % 16 == 0 && p->keep_stride % 8 == 0;
    q.plain = p->paired && (!p->keep || (keep && p->keep_first % 8 == 0 && p->keep_count % 8 == 0));
    return p->type == CUDA_F16 ? run<rounded<tensor_f16>>(tape, &q) : run<rounded<tensor_bf16>>(tape, &q);
}
