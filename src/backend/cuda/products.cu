// SPDX-License-Identifier: MIT
// Products: c = act(a w^T + bias) + residual. Here those without tensor cores, f32 and i8 of older devices; the others
// are in tensor.cu.
//
// A block computes a tile of 64 rows and 64 columns, walking over k from the front: a number of c is the sum of
// its k products in that order, one by one (i8: exact), whatever the tile and the number of rows. So a row has the
// same bits in every batch, and a listed column (w_rows) those of the whole layer.
#include "backend/cuda/products.cuh"

enum { TILE = 64 };

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

// One number of c from its sum, the bias already in it.
static __device__ void put(const cuda_product &p, int row, int col, int w, float y)
{
    if (p.scatter) col = w;
    y = activate(y, p.act);
    if (p.residual) y += p.residual[(size_t)row * p.ldr + col];
    p.c[(size_t)row * p.ldc + col] = y;
}

template <typename S> static __global__ void __launch_bounds__(256) multiply(cuda_product p)
{
    begin_kernel();
    typedef typename S::word word;
    __shared__ word as[DEPTH][TILE + 1], ws[DEPTH][TILE + 1];
    place t;
    if (!find_place<TILE, TILE>(p, S::elem, &t)) return;
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

static bool by_8(const float *p, int stride)
{
    return (uintptr_t)p % 8 == 0 && stride % 2 == 0;
}

void cuda_run_product(cuda_tape *tape, const cuda_product *given)
{
    cuda_product own = *given, *p = &own;
    if (p->m <= 0 || p->n <= 0) return;
    p->paired = !p->scatter && p->n % 2 == 0 && by_8(p->c, p->ldc) && by_8(p->residual, p->ldr);
    const dim3 grid = tiles_of(p, TILE, TILE);
    if (p->type == CUDA_F32)
        CUDA_LAUNCH(multiply<sums_f32>, grid, 256, 0, tape, *p);
    else if (p->type == CUDA_I8 && !p->tensor)
        CUDA_LAUNCH(multiply<sums_i8>, grid, 256, 0, tape, *p);
    else
        cuda_run_tensor(tape, p);
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
    begin_kernel();
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

static __global__ void round_rows(cuda_halves h, cuda_rows in)
{
    begin_kernel();
    const float *row = in.data + (size_t)blockIdx.x * in.stride;
    for (int j = 2 * threadIdx.x; j < h.stride; j += 2 * THREADS)
        put_pair(h, blockIdx.x, j, j < in.cols ? row[j] : 0.0f, j + 1 < in.cols ? row[j + 1] : 0.0f);
}

void cuda_run_round(cuda_tape *tape, cuda_halves h, cuda_rows in)
{
    if (in.rows > 0) CUDA_LAUNCH(round_rows, (unsigned)in.rows, THREADS, 0, tape, h, in);
}

static __global__ void largest_rows(float *out, cuda_rows in)
{
    begin_kernel();
    __shared__ float scratch[32];
    const float most = largest_of(in, scratch);
    if (threadIdx.x == 0) out[blockIdx.x] = most;
}

void cuda_run_largest(cuda_tape *tape, float *out, cuda_rows in)
{
    if (in.rows > 0) CUDA_LAUNCH(largest_rows, (unsigned)in.rows, THREADS, 0, tape, out, in);
}
