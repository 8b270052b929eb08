// SPDX-License-Identifier: MIT
// Products: c = act(a w^T + bias) + residual in f32, f16, bf16 and i8.
//
// A block computes a tile of 64 rows and 64 columns, walking over k from the front: a number of c is
// the sum of its k products in that order (f32: one by one; f16, bf16: by the tensor instruction of
// 16; i8: exact), whatever the tile and the number of rows. So a row has the same bits in every
// batch, and a listed column (w_rows) those of the whole layer.
//
//     a [m, k] f32, rounded on the way  ->  shared  |
//     w [n, ldw], zeros behind k        ->  shared  |  registers  ->  bias, act, residual  ->  c
//
// The next tiles are on their way from memory while the present ones are multiplied.
#include "backend/cuda/device_math.cuh"
#include "backend/cuda/kernels_cuda.h"

enum { TILE = 64 };

// Where a block works: rows row .. row + rows - 1 of the product, columns from col on.
struct place {
    int row, rows, col;
    const char *w; // of its group
    const float *bias, *scale;
};

// Tiles of rows are counted group by group; false: there are fewer.
static __device__ bool find_place(const cuda_product &p, int elem, place *out)
{
    int tile = blockIdx.y, begin = 0, end = p.m, group = 0;
    for (; group < p.groups; group++) {
        begin = p.first[group];
        end = p.first[group + 1];
        const int tiles = (end - begin + TILE - 1) / TILE;
        if (tile < tiles) break;
        tile -= tiles;
    }
    if (p.groups && group == p.groups) return false;
    out->row = begin + tile * TILE;
    out->rows = end - out->row < TILE ? end - out->row : TILE;
    out->col = blockIdx.x * TILE;
    out->w = (const char *)p.w + (size_t)group * p.w_group * elem;
    out->bias = p.bias ? p.bias + (size_t)group * p.bias_group : nullptr;
    out->scale = p.w_scale ? p.w_scale + (size_t)group * p.bias_group : nullptr;
    return out->rows > 0;
}

static __device__ int a_row(const cuda_product &p, int row)
{
    return p.a_rows ? p.a_rows[row] : row;
}

static __device__ int w_row(const cuda_product &p, int col)
{
    return p.w_rows ? p.w_rows[col] : col;
}

// One number of c from its sum, the bias already in it.
static __device__ void put(const cuda_product &p, int row, int col, int w, float y)
{
    if (p.scatter) col = w;
    y = activate(y, p.act);
    if (p.residual) y += p.residual[(size_t)row * p.ldr + col];
    p.c[(size_t)row * p.ldc + col] = y;
}

// ---- f32 and i8: 256 threads, 4 x 4 numbers each --------------------------------------------------

enum { DEPTH = 16 }; // words of k in a tile

struct sums_f32 {
    typedef float word;
    static const int elem = 4;
    static __device__ word a(const cuda_product &p, int row, int at)
    {
        return at < p.k ? ((const float *)p.a)[(size_t)row * p.lda + at] : 0.0f;
    }
    static __device__ word add(word a, word b, word sum)
    {
        return fmaf(a, b, sum);
    }
    static __device__ float value(const cuda_product &p, const place &, word sum, int, int, float bias)
    {
        return p.bias ? sum + bias : sum;
    }
};

struct sums_i8 {
    typedef int word;
    static const int elem = 1;
    static __device__ word a(const cuda_product &p, int row, int at) // lda and k are padded
    {
        return 4 * at < p.lda ? *(const int *)((const int8_t *)p.a + (size_t)row * p.lda + 4 * at) : 0;
    }
    static __device__ word add(word a, word b, word sum)
    {
        return __dp4a(a, b, sum);
    }
    static __device__ float value(const cuda_product &p, const place &t, word sum, int row, int w,
                                  float bias)
    {
        const float by = __fmul_rn(p.a_scale[row], t.scale[w]);
        return p.bias ? __fmaf_rn((float)sum, by, bias) : __fmul_rn((float)sum, by);
    }
};

template <typename S> static __global__ void __launch_bounds__(256) multiply(cuda_product p)
{
    typedef typename S::word word;
    __shared__ word as[DEPTH][TILE + 1], ws[DEPTH][TILE + 1];
    place t;
    if (!find_place(p, S::elem, &t)) return;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int words = S::elem == 1 ? p.ldw / 4 : p.ldw;
    word sum[4][4] = {};
    for (int k0 = 0; k0 < words; k0 += DEPTH) {
        for (int i = threadIdx.x; i < DEPTH * TILE; i += 256) {
            const int r = i / DEPTH, d = i % DEPTH;
            as[d][r] = r < t.rows ? S::a(p, a_row(p, t.row + r), k0 + d) : word(0);
            const int col = t.col + r;
            ws[d][r] = col < p.n && k0 + d < words
                           ? ((const word *)t.w)[(size_t)w_row(p, col) * words + k0 + d]
                           : word(0);
        }
        __syncthreads();
        for (int d = 0; d < DEPTH; d++) {
            word a[4], b[4];
            for (int i = 0; i < 4; i++) a[i] = as[d][ty + 16 * i];
            for (int j = 0; j < 4; j++) b[j] = ws[d][tx + 16 * j];
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] = S::add(a[i], b[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const int r = ty + 16 * i, col = t.col + tx + 16 * j;
            if (r >= t.rows || col >= p.n) continue;
            const int w = w_row(p, col), row = t.row + r;
            put(p, row, col, w, S::value(p, t, sum[i][j], a_row(p, row), w, t.bias ? t.bias[w] : 0.0f));
        }
}

// ---- f16 and bf16: 128 threads, four warps of 32 x 32 numbers --------------------------------------

enum { HALVES = 32, PITCH = HALVES + 8 }; // of k in a tile; 40: no two rows of a fragment share a bank

struct sums_f16 {
    static __device__ uint32_t pack(float a, float b)
    {
        const __half2 h = __floats2half2_rn(a, b);
        return *(const uint32_t *)&h;
    }
    static __device__ void mma(float c[4], const uint32_t a[4], const uint32_t b[2])
    {
        mma_f16(c, a, b);
    }
};

struct sums_bf16 {
    static __device__ uint32_t pack(float a, float b)
    {
        const __nv_bfloat162 h = __floats2bfloat162_rn(a, b);
        return *(const uint32_t *)&h;
    }
    static __device__ void mma(float c[4], const uint32_t a[4], const uint32_t b[2])
    {
        mma_bf16(c, a, b);
    }
};

// What a thread brings from memory for the next tiles: 16 numbers of a, 16 halves of w, of one row each
// half a row wide.
struct load {
    uint32_t a[8];
    uint4 w[2];
};

template <typename S>
static __device__ void fetch(const cuda_product &p, const float *a, const uint4 *w, int k0, load *l)
{
    const int at = k0 + threadIdx.x % 2 * 16;
    for (int i = 0; i < 8; i++) {
        const int k = at + 2 * i;
        const float x = a && k < p.k ? a[k] : 0.0f, y = a && k + 1 < p.k ? a[k + 1] : 0.0f;
        l->a[i] = S::pack(x, y);
    }
    const uint4 none = {0, 0, 0, 0};
    for (int i = 0; i < 2; i++) l->w[i] = w ? w[at / 8 + i] : none;
}

static __device__ void store(uint32_t *as, uint32_t *ws, const load &l)
{
    const int at = threadIdx.x / 2 * (PITCH / 2) + threadIdx.x % 2 * 8;
    for (int i = 0; i < 8; i++) as[at + i] = l.a[i];
    ((uint4 *)(ws + at))[0] = l.w[0];
    ((uint4 *)(ws + at))[1] = l.w[1];
}

template <typename S> static __global__ void __launch_bounds__(128) multiply_half(cuda_product p)
{
    __shared__ uint4 as4[TILE * PITCH / 8], ws4[TILE * PITCH / 8]; // aligned for loads of 16 bytes
    uint32_t *as = (uint32_t *)as4, *ws = (uint32_t *)ws4;
    place t;
    if (!find_place(p, 2, &t)) return;
    const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
    const int warp = threadIdx.x / 32, r0 = warp / 2 * 32, c0 = warp % 2 * 32;
    const int mine = threadIdx.x / 2; // the row of both tiles that this thread brings half of
    const float *a =
        mine < t.rows ? (const float *)p.a + (size_t)a_row(p, t.row + mine) * p.lda : nullptr;
    const uint4 *wr = t.col + mine < p.n
                         ? (const uint4 *)(t.w + (size_t)w_row(p, t.col + mine) * p.ldw * 2)
                         : nullptr;
    float sum[2][4][4] = {};
    load next;
    fetch<S>(p, a, wr, 0, &next);
    for (int k0 = 0; k0 < p.ldw; k0 += HALVES) {
        __syncthreads();
        store(as, ws, next);
        __syncthreads();
        if (k0 + HALVES < p.ldw) fetch<S>(p, a, wr, k0 + HALVES, &next);
        for (int k = 0; k < HALVES; k += 16) {
            uint32_t fa[2][4], fb[4][2];
            for (int i = 0; i < 2; i++)
                for (int h = 0; h < 4; h++)
                    fa[i][h] = as[(r0 + 16 * i + g + h % 2 * 8) * (PITCH / 2) + k / 2 + q + h / 2 * 4];
            for (int j = 0; j < 4; j++)
                for (int h = 0; h < 2; h++)
                    fb[j][h] = ws[(c0 + 8 * j + g) * (PITCH / 2) + k / 2 + q + h * 4];
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++) S::mma(sum[i][j], fa[i], fb[j]);
        }
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int h = 0; h < 4; h++) {
                const int r = r0 + 16 * i + g + h / 2 * 8, col = t.col + c0 + 8 * j + 2 * q + h % 2;
                if (r >= t.rows || col >= p.n) continue;
                const float y = sum[i][j][h];
                const int w = w_row(p, col);
                put(p, t.row + r, col, w, t.bias ? y + t.bias[w] : y);
            }
}

void cuda_run_product(cuda_tape *tape, const cuda_product *p)
{
    if (p->m <= 0 || p->n <= 0) return;
    const dim3 grid((unsigned)((p->n + TILE - 1) / TILE),
                    (unsigned)((p->m + TILE - 1) / TILE + p->groups));
    switch (p->type) {
    case CUDA_F32: CUDA_LAUNCH(multiply<sums_f32>, grid, 256, 0, tape, *p); break;
    case CUDA_I8: CUDA_LAUNCH(multiply<sums_i8>, grid, 256, 0, tape, *p); break;
    case CUDA_F16: CUDA_LAUNCH(multiply_half<sums_f16>, grid, 128, 0, tape, *p); break;
    case CUDA_BF16: CUDA_LAUNCH(multiply_half<sums_bf16>, grid, 128, 0, tape, *p); break;
    }
}

// ---- rows of 8 bits -----------------------------------------------------------------------------

enum { THREADS = 128 };

static __device__ float largest_of(cuda_rows in, float *scratch)
{
    const float *row = in.data + (size_t)blockIdx.x * in.stride;
    float most = 0; // fmaxf passes over what is no number
    for (int j = threadIdx.x; j < in.cols; j += THREADS) most = fmaxf(most, fabsf(row[j]));
    return block_max<THREADS>(most, scratch);
}

// As kernel/quantize_tmpl.h rounds.
static __global__ void quantize_rows(int8_t *q, int ldq, float *scale, cuda_rows in, float fixed)
{
    __shared__ float scratch[32];
    const float range = fixed > 0 ? 0.0f : largest_of(in, scratch);
    const bool zero = fixed <= 0 && !(range >= 1e-30f);
    const float by = fixed > 0 ? __fdiv_rn(1.0f, fixed) : zero ? 0.0f : __fdiv_rn(127.0f, range);
    const float *row = in.data + (size_t)blockIdx.x * in.stride;
    int8_t *to = q + (size_t)blockIdx.x * ldq;
    for (int j = threadIdx.x; j < ldq; j += THREADS) {
        const float x = j < in.cols ? __fmul_rn(row[j], by) : 0.0f;
        // A number that is none becomes the lower bound, as on a CPU.
        const float low = x > -127.0f ? x : -127.0f;
        to[j] = (int8_t)__float2int_rn(low < 127.0f ? low : 127.0f);
    }
    if (threadIdx.x == 0) scale[blockIdx.x] = fixed > 0 ? fixed : zero ? 1.0f : __fdiv_rn(range, 127.0f);
}

void cuda_run_quantize(cuda_tape *tape, int8_t *q, int ldq, float *scale, cuda_rows in, float fixed)
{
    if (in.rows > 0)
        CUDA_LAUNCH(quantize_rows, (unsigned)in.rows, THREADS, 0, tape, q, ldq, scale, in, fixed);
}

static __global__ void largest_rows(float *out, cuda_rows in)
{
    __shared__ float scratch[32];
    const float most = largest_of(in, scratch);
    if (threadIdx.x == 0) out[blockIdx.x] = most;
}

void cuda_run_largest(cuda_tape *tape, float *out, cuda_rows in)
{
    if (in.rows > 0) CUDA_LAUNCH(largest_rows, (unsigned)in.rows, THREADS, 0, tape, out, in);
}
