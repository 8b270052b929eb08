// SPDX-License-Identifier: MIT
// Products on tensor cores of up to 64 rows with listed rows of a large layer, which are read once: they decide the time.
//
//     a  --once-->  shared memory, all of k  -->  registers
//     w  --AHEAD chunks under way in every warp, of this group of columns or the next-->  registers
//
// There are as many blocks as processors; a warp takes one group of WIDE columns after the other. The sums are those of
// tensor.cuh, so is their order.
#include "backend/cuda/tensor.cuh"

enum { WARPS = 12, ACROSS = 2, WIDE = 8 * ACROSS, DOWN_MOST = 4, GAP = 32 };

// Rows in shared memory are as far apart that the lanes of a fragment read all banks.
static __host__ __device__ __forceinline__ int row_bytes(int chunks)
{
    return chunks * WORDS * 4 + GAP;
}

// Columns of a warp's group: which rows of w they are.
struct columns_w {
    const char *row[ACROSS]; // NULL: there are none
    __device__ __forceinline__ void find(const cuda_product &p, const int32_t which[ACROSS], int elem, int q)
    {
        CUDA_UNROLL
        for (int j = 0; j < ACROSS; j++)
            row[j] = which[j] >= 0 ? (const char *)p.w + (size_t)which[j] * p.ldw * elem + 8 * q : nullptr;
    }
};

static __device__ __forceinline__ void which_columns(const cuda_product &p, int group, int n, int g, int32_t which[ACROSS])
{
    CUDA_UNROLL
    for (int j = 0; j < ACROSS; j++) {
        const int col = group * WIDE + 8 * j + g;
        which[j] = group * WIDE < n && col < p.n ? p.w_rows[col] : -1; // what follows the last column is multiplied, too
    }
}

// Read once: not kept in the nearest cache.
static __device__ __forceinline__ chunk_words load_once(const char *row, int chunk)
{
    if (!row) return {};
    const char *from = row + chunk * (WORDS * 4);
    return {{load_stream((const uint2 *)from), load_stream((const uint2 *)(from + WORDS * 2))}};
}

static __device__ __forceinline__ chunk_words read_row(const char *row, int chunk, int q)
{
    const char *from = row + chunk * (WORDS * 4) + 8 * q;
    return {{*(const uint2 *)from, *(const uint2 *)(from + WORDS * 2)}};
}

template <typename S> static __device__ __forceinline__ void bring_rows(const cuda_product &p, char *rows, int high, int chunks)
{
    const int each = chunks * (WORDS / 4), bytes = row_bytes(chunks);
    for (int i = threadIdx.x; i < high * each; i += 32 * WARPS) {
        const int r = i / each, at = i % each;
        uint4 x = {0, 0, 0, 0};
        if (r < p.m) x = *(const uint4 *)((const char *)p.a + (size_t)r * p.lda * sizeof(typename S::a_elem) + 16 * at);
        *(uint4 *)(rows + r * bytes + 16 * at) = x;
    }
    __syncthreads();
}

template <typename S, int down>
static __global__ void __launch_bounds__(32 * WARPS, 1) multiply_listed(cuda_product p)
{
    enum { AHEAD = down <= 2 ? 8 : 4 };
    typedef typename S::sum sum;
    CUDA_DYNAMIC_SHARED(uint4, shared);
    char *const rows = (char *)shared;
    const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4, warp = threadIdx.x / 32;
    const int chunks = chunks_of(p, S::CHUNK), per_part = part_size(chunks), bytes = row_bytes(chunks);
    next_may_start();
    wait_for_others();
    const int n = p.n_found ? *p.n_found : p.n, groups = (n + WIDE - 1) / WIDE, step = gridDim.x * WARPS;
    int group = warp * gridDim.x + blockIdx.x; // neighbours go to different processors
    int32_t which[ACROSS];
    columns_w w;
    chunk_words fw[AHEAD][ACROSS];
    which_columns(p, group, n, g, which);
    w.find(p, which, S::ELEM, q);
    CUDA_UNROLL
    for (int i = 0; i < AHEAD; i++) {
        CUDA_UNROLL
        for (int j = 0; j < ACROSS; j++) fw[i][j] = load_once(i < chunks ? w.row[j] : nullptr, i);
    }
    bring_rows<S>(p, rows, 16 * down, chunks);
    for (; group < groups; group += step) {
        sum sums[down][ACROSS][4] = {}, total[down][ACROSS][4];
        int in_part = 0;
        bool first = true;
        const auto add_part = [&] {
            CUDA_UNROLL
            for (int d = 0; d < down; d++) {
                CUDA_UNROLL
                for (int j = 0; j < ACROSS; j++) {
                    CUDA_UNROLL
                    for (int h = 0; h < 4; h++) {
                        total[d][j][h] = first ? sums[d][j][h] : total[d][j][h] + sums[d][j][h];
                        sums[d][j][h] = 0;
                    }
                }
            }
            first = false;
            in_part = 0;
        };
        which_columns(p, group + step, n, g, which);
        for (int s = 0; s < chunks; s += AHEAD) {
            const bool last = s + AHEAD >= chunks;
            if (last) w.find(p, which, S::ELEM, q);
            CUDA_UNROLL
            for (int i = 0; i < AHEAD; i++) {
                if (s + i < chunks) {
                    CUDA_UNROLL
                    for (int d = 0; d < down; d++) {
                        const char *row = rows + (16 * d + g) * bytes;
                        const fragment fa = make_words(read_row(row, s + i, q), read_row(row + 8 * bytes, s + i, q));
                        CUDA_UNROLL
                        for (int j = 0; j < ACROSS; j++) add_chunk<S>(sums[d][j], fa, fw[i][j]);
                    }
                    if (++in_part == per_part) add_part();
                }
                // What this place is for next: a later chunk, or the next group's.
                const int next = last ? i : s + AHEAD + i;
                CUDA_UNROLL
                for (int j = 0; j < ACROSS; j++) fw[i][j] = load_once(next < chunks ? w.row[j] : nullptr, next);
            }
        }
        if (in_part) add_part();
        const place t = {0, p.m, group * WIDE, (const char *)p.w, p.bias, p.w_scale};
        put_sums<S, down, ACROSS, 16 * down, WIDE>(p, t, total, g, 2 * q);
    }
}

// ---- launches -----------------------------------------------------------------------------------

template <typename S, int down> static bool launch(cuda_tape *tape, const cuda_product *p)
{
    const size_t bytes = (size_t)(16 * down * row_bytes((p->k + S::CHUNK - 1) / S::CHUNK));
    if (bytes > (size_t)p->shared) return false;
    const int groups = (p->n + WIDE - 1) / WIDE, most = (groups + WARPS - 1) / WARPS;
    cuda_allow_shared(tape, (const void *)multiply_listed<S, down>, bytes);
    CUDA_LAUNCH((multiply_listed<S, down>), dim3((unsigned)(p->processors < groups ? p->processors : most > 1 ? most : 1)),
                32 * WARPS, bytes, tape, *p);
    return true;
}

template <typename S> static bool run(cuda_tape *tape, const cuda_product *p)
{
    return p->m <= 16 ? launch<S, 1>(tape, p)
         : p->m <= 32 ? launch<S, 2>(tape, p)
         : p->m <= 48 ? launch<S, 3>(tape, p)
                      : launch<S, 4>(tape, p);
}

bool cuda_run_listed(cuda_tape *tape, const cuda_product *p)
{
    if (!p->w_rows || p->groups || p->a_rows || p->m > 16 * DOWN_MOST || (p->type != CUDA_I8 && !p->rounded)) return false;
    if (p->type == CUDA_I8) return run<tensor_i8>(tape, p);
    return p->type == CUDA_F16 ? run<rounded<tensor_f16>>(tape, p) : run<rounded<tensor_bf16>>(tape, p);
}
