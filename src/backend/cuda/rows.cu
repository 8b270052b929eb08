// SPDX-License-Identifier: MIT
// Kernels of operations on rows: a block or a warp per row, sums in a fixed order.
#include "backend/cuda/device_math.cuh"
#include "backend/cuda/kernels_cuda.h"

enum { THREADS = 128 };

// Numbers of the enumeration dgm_tensor_type.
enum { TYPE_F32 = 0, TYPE_F16 = 1, TYPE_I8 = 24, TYPE_I16 = 25, TYPE_BF16 = 30 };

static __device__ float *row_of(cuda_rows m, int i)
{
    return m.data + (size_t)i * m.stride;
}

// One block a row; element j by thread j modulo its size.
#define ROW_KERNEL(name, ...) static __global__ void __launch_bounds__(THREADS) name(__VA_ARGS__)
#define EACH(j, n) for (int j = threadIdx.x; j < (n); j += THREADS)
#define LAUNCH(kernel, rows, stream, ...)                                                          \
    do {                                                                                           \
        if ((rows) > 0) CUDA_LAUNCH(kernel, (unsigned)(rows), THREADS, 0, stream, __VA_ARGS__);    \
    } while (0)

static __device__ float table_value(cuda_table t, int id, int j)
{
    const size_t at = (size_t)id * t.cols + j;
    switch (t.type) {
    case TYPE_F32: return ((const float *)t.data)[at];
    case TYPE_F16: return __half2float(((const __half *)t.data)[at]);
    case TYPE_BF16: return __bfloat162float(((const __nv_bfloat16 *)t.data)[at]);
    case TYPE_I8: return (float)((const int8_t *)t.data)[at] * t.scale[id];
    default: return (float)((const int16_t *)t.data)[at] * t.scale[0];
    }
}

ROW_KERNEL(embed_rows, cuda_rows y, cuda_table table, const int32_t *ids, float scale, const float *start,
           const float *positions, int position_cols, const int32_t *pos, cuda_halves halves)
{
    begin_kernel();
    const int i = blockIdx.x, id = ids[i];
    float *to = row_of(y, i);
    EACH(j, y.cols)
    {
        const float add = positions ? positions[(size_t)pos[i] * position_cols + j] : 0.0f;
        const float x = id < 0 ? (start ? start[j] : 0.0f) + add : fmaf(scale, table_value(table, id, j), add);
        to[j] = x;
        if (halves.data) put_one(halves, i, j, x);
    }
}

void cuda_run_embed(cuda_tape *tape, cuda_rows y, cuda_table table, const int32_t *ids, float scale,
                    const float *start, const float *positions, int position_cols, const int32_t *pos)
{
    const cuda_halves none = {};
    LAUNCH(embed_rows, y.rows, tape, y, table, ids, scale, start, positions, position_cols, pos, none);
    if (y.rows > 0) cuda_tape_made(tape, y, 8, 0);
}

// ---- norms: a warp a row, its numbers in registers --------------------------------------------------

enum { WARPS = THREADS / 32 };

static __device__ __forceinline__ float warp_sum(float x)
{
    for (int n = 16; n; n /= 2) x += __shfl_xor_sync(~0u, x, n);
    return x;
}

// 128 numbers at a time, up to `most` times; a row of more is read again. aligned: by 16 bytes.
template <int most> struct norm_row {
    float x[most][4];
    __device__ __forceinline__ void load(const float *from, int cols, bool aligned)
    {
        CUDA_UNROLL
        for (int i = 0; i < most; i++) {
            const int at = 128 * i + 4 * (threadIdx.x % 32);
            if (aligned && at + 4 <= cols) {
                const float4 y = *(const float4 *)(from + at);
                x[i][0] = y.x, x[i][1] = y.y, x[i][2] = y.z, x[i][3] = y.w;
            } else {
                CUDA_UNROLL
                for (int h = 0; h < 4; h++) x[i][h] = at + h < cols ? from[at + h] : 0.0f;
            }
        }
    }
    __device__ __forceinline__ float sum() const
    {
        float s = 0;
        CUDA_UNROLL
        for (int i = 0; i < most; i++) s += (x[i][0] + x[i][1]) + (x[i][2] + x[i][3]);
        return warp_sum(s);
    }
    __device__ __forceinline__ float squares(float mean, int cols) const
    {
        float s = 0;
        CUDA_UNROLL
        for (int i = 0; i < most; i++) {
            CUDA_UNROLL
            for (int h = 0; h < 4; h++) {
                const int at = 128 * i + 4 * (threadIdx.x % 32) + h;
                const float d = x[i][h] - mean;
                if (at < cols) s = fmaf(d, d, s);
            }
        }
        return warp_sum(s);
    }
};

// centred: less its mean, and gamma x + beta; else gamma x.
template <int most, bool centred>
static __global__ void __launch_bounds__(THREADS)
    norm_rows(cuda_rows y, cuda_rows in, const float *gamma, const float *beta, float eps, int aligned,
              cuda_halves halves)
{
    const int row = blockIdx.x * WARPS + threadIdx.x / 32;
    norm_row<most> n, by, plus;
    next_may_start();
    by.load(gamma, y.cols, aligned);
    if (beta) plus.load(beta, y.cols, aligned);
    wait_for_others();
    if (row >= y.rows) return;
    n.load(row_of(in, row), y.cols, aligned);
    const float mean = centred ? n.sum() / (float)y.cols : 0.0f;
    const float inverse = 1.0f / sqrtf(n.squares(mean, y.cols) / (float)y.cols + eps);
    float *to = row_of(y, row);
    CUDA_UNROLL
    for (int i = 0; i < most; i++) {
        const int at = 128 * i + 4 * (threadIdx.x % 32);
        float out[4];
        CUDA_UNROLL
        for (int h = 0; h < 4; h++) {
            const float scaled = (n.x[i][h] - mean) * inverse;
            out[h] = centred ? fmaf(scaled, by.x[i][h], beta ? plus.x[i][h] : 0.0f) : scaled * by.x[i][h];
        }
        if (aligned && at + 4 <= y.cols) {
            *(float4 *)(to + at) = {out[0], out[1], out[2], out[3]};
            if (halves.data)
                *(uint2 *)((uint16_t *)halves.data + (size_t)row * halves.stride + at) = {
                    round_pair(halves, out[0], out[1]), round_pair(halves, out[2], out[3])};
        } else {
            CUDA_UNROLL
            for (int h = 0; h < 4; h++)
                if (at + h < y.cols) to[at + h] = out[h];
        }
    }
}

// Rows that are too long for registers: a block each.
template <bool centred>
ROW_KERNEL(norm_long_rows, cuda_rows y, cuda_rows in, const float *gamma, const float *beta, float eps)
{
    __shared__ float scratch[32];
    begin_kernel();
    const float *from = row_of(in, blockIdx.x);
    float *to = row_of(y, blockIdx.x);
    float sum = 0, square = 0;
    if (centred) {
        EACH(j, y.cols) sum += from[j];
        sum = block_sum<THREADS>(sum, scratch) / (float)y.cols;
    }
    EACH(j, y.cols) square = fmaf(from[j] - sum, from[j] - sum, square);
    const float inverse = 1.0f / sqrtf(block_sum<THREADS>(square, scratch) / (float)y.cols + eps);
    EACH(j, y.cols) to[j] = fmaf((from[j] - sum) * inverse, gamma[j], beta ? beta[j] : 0.0f);
}

template <bool centred>
static void run_norm(cuda_tape *tape, cuda_rows y, cuda_rows in, const float *gamma, const float *beta, float eps)
{
    const unsigned grid = (unsigned)((y.rows + WARPS - 1) / WARPS);
    const int aligned = y.stride % 4 == 0 && in.stride % 4 == 0 && ((uintptr_t)y.data | (uintptr_t)in.data | (uintptr_t)gamma | (uintptr_t)beta) % 16 == 0;
    const cuda_halves none = {};
    if (y.rows <= 0) return;
    if (y.cols <= 256)
        CUDA_LAUNCH((norm_rows<2, centred>), grid, THREADS, 0, tape, y, in, gamma, beta, eps, aligned, none);
    else if (y.cols <= 512)
        CUDA_LAUNCH((norm_rows<4, centred>), grid, THREADS, 0, tape, y, in, gamma, beta, eps, aligned, none);
    else if (y.cols <= 1024)
        CUDA_LAUNCH((norm_rows<8, centred>), grid, THREADS, 0, tape, y, in, gamma, beta, eps, aligned, none);
    else
        CUDA_LAUNCH((norm_long_rows<centred>), (unsigned)y.rows, THREADS, 0, tape, y, in, gamma, beta, eps);
    if (aligned && y.cols <= 1024 && y.cols % 4 == 0) cuda_tape_made(tape, y, 6, 0);
}

void cuda_run_norm(cuda_tape *tape, cuda_rows y, cuda_rows in, const float *gamma, const float *beta, float eps)
{
    run_norm<true>(tape, y, in, gamma, beta, eps);
}

void cuda_run_rms_norm(cuda_tape *tape, cuda_rows y, cuda_rows in, const float *gamma, float eps)
{
    run_norm<false>(tape, y, in, gamma, nullptr, eps);
}

ROW_KERNEL(gated_rows, cuda_rows y, cuda_rows a, cuda_rows b, int act)
{
    begin_kernel();
    const int i = blockIdx.x;
    EACH(j, y.cols) row_of(y, i)[j] = activate(row_of(a, i)[j], act) * row_of(b, i)[j];
}

void cuda_run_gated(cuda_tape *tape, cuda_rows y, cuda_rows a, cuda_rows b, int act)
{
    LAUNCH(gated_rows, y.rows, tape, y, a, b, act);
}

ROW_KERNEL(act_rows, cuda_rows y, cuda_rows in, int act)
{
    begin_kernel();
    EACH(j, y.cols) row_of(y, blockIdx.x)[j] = activate(row_of(in, blockIdx.x)[j], act);
}

void cuda_run_act(cuda_tape *tape, cuda_rows y, cuda_rows in, int act)
{
    LAUNCH(act_rows, y.rows, tape, y, in, act);
}

ROW_KERNEL(add_rows, cuda_rows y, cuda_rows a, cuda_rows b)
{
    begin_kernel();
    const int i = blockIdx.x;
    EACH(j, y.cols) row_of(y, i)[j] = row_of(a, i)[j] + row_of(b, i)[j];
}

void cuda_run_add(cuda_tape *tape, cuda_rows y, cuda_rows a, cuda_rows b)
{
    LAUNCH(add_rows, y.rows, tape, y, a, b);
}

ROW_KERNEL(add_vector_rows, cuda_rows y, cuda_rows a, const float *v)
{
    begin_kernel();
    EACH(j, y.cols) row_of(y, blockIdx.x)[j] = row_of(a, blockIdx.x)[j] + v[j];
}

void cuda_run_add_vector(cuda_tape *tape, cuda_rows y, cuda_rows a, const float *v)
{
    LAUNCH(add_vector_rows, y.rows, tape, y, a, v);
}

ROW_KERNEL(maxout_rows, cuda_rows y, cuda_rows in)
{
    begin_kernel();
    const float *from = row_of(in, blockIdx.x);
    EACH(j, y.cols)
        row_of(y, blockIdx.x)[j] = from[2 * j] > from[2 * j + 1] ? from[2 * j] : from[2 * j + 1];
}

void cuda_run_maxout(cuda_tape *tape, cuda_rows y, cuda_rows in)
{
    LAUNCH(maxout_rows, y.rows, tape, y, in);
}

ROW_KERNEL(copy_rows, cuda_rows y, const int32_t *to, cuda_rows in, const int32_t *from, int half, cuda_halves halves)
{
    begin_kernel();
    const int i = blockIdx.x;
    const float *source = row_of(in, from ? from[i] : i);
    const size_t target = (size_t)(to ? to[i] : i) * y.stride;
    if (half) {
        __half *out = (__half *)y.data + target;
        EACH(j, y.cols) out[j] = __float2half_rn(source[j]);
    } else {
        EACH(j, y.cols) y.data[target + j] = source[j];
        if (halves.data) EACH(j, y.cols / 2) put_pair(halves, i, 2 * j, source[2 * j], source[2 * j + 1]);
    }
}

void cuda_run_copy(cuda_tape *tape, cuda_rows y, const int32_t *to, cuda_rows in, const int32_t *from,
                   int count, int half)
{
    const cuda_halves none = {};
    LAUNCH(copy_rows, count, tape, y, to, in, from, half, none);
    if (count > 0 && !half && !to && y.cols % 2 == 0) cuda_tape_made(tape, {y.data, count, y.cols, y.stride}, 5, 0);
}

ROW_KERNEL(zero_rows, cuda_rows y, const int32_t *rows)
{
    begin_kernel();
    const int i = blockIdx.x;
    EACH(j, y.cols) row_of(y, rows ? rows[i] : i)[j] = 0.0f;
}

const void *cuda_some_kernel(void)
{
    return (const void *)zero_rows;
}

void cuda_run_zero_rows(cuda_tape *tape, cuda_rows y, const int32_t *rows, int count)
{
    LAUNCH(zero_rows, count, tape, y, rows);
}

ROW_KERNEL(mean_rows, cuda_rows y, cuda_rows in, const int32_t *first, const int32_t *count)
{
    begin_kernel();
    const int i = blockIdx.x, n = count[i];
    const float part = 1.0f / (float)(n > 0 ? n : 1);
    EACH(j, y.cols)
    {
        float sum = 0;
        for (int r = 0; r < n; r++) sum += row_of(in, first[i] + r)[j];
        row_of(y, i)[j] = sum * part;
    }
}

void cuda_run_mean(cuda_tape *tape, cuda_rows y, cuda_rows in, const int32_t *first,
                   const int32_t *count)
{
    LAUNCH(mean_rows, y.rows, tape, y, in, first, count);
}

ROW_KERNEL(scale_rows, cuda_rows y, cuda_rows in, const float *factor)
{
    begin_kernel();
    const float by = factor[blockIdx.x];
    EACH(j, y.cols) row_of(y, blockIdx.x)[j] = by * row_of(in, blockIdx.x)[j];
}

void cuda_run_scale(cuda_tape *tape, cuda_rows y, cuda_rows in, const float *factor)
{
    LAUNCH(scale_rows, y.rows, tape, y, in, factor);
}

// ---- gates --------------------------------------------------------------------------------------

ROW_KERNEL(gru_rows, cuda_rows out, cuda_rows state, cuda_rows gx, cuda_rows gh)
{
    begin_kernel();
    const int i = blockIdx.x, n = out.cols;
    const float *x = row_of(gx, i), *h = row_of(gh, i), *old = row_of(state, i);
    EACH(j, n)
    {
        const float r = sigmoid(x[j] + h[j]), z = sigmoid(x[n + j] + h[n + j]);
        const float g = tanhf(fmaf(r, h[2 * n + j], x[2 * n + j]));
        row_of(out, i)[j] = z * old[j] + (1.0f - z) * g;
    }
}

void cuda_run_gru(cuda_tape *tape, cuda_rows out, cuda_rows state, cuda_rows gx, cuda_rows gh)
{
    LAUNCH(gru_rows, out.rows, tape, out, state, gx, gh);
}

ROW_KERNEL(lstm_rows, cuda_rows out, cuda_rows cell_out, cuda_rows cell, cuda_rows gx, cuda_rows gh)
{
    begin_kernel();
    const int i = blockIdx.x, n = out.cols;
    const float *x = row_of(gx, i), *h = row_of(gh, i);
    EACH(j, n)
    {
        const float in = sigmoid(x[j] + h[j]), forget = sigmoid(x[n + j] + h[n + j]);
        const float g = tanhf(x[2 * n + j] + h[2 * n + j]), o = sigmoid(x[3 * n + j] + h[3 * n + j]);
        const float c = forget * row_of(cell, i)[j] + in * g;
        row_of(cell_out, i)[j] = c;
        row_of(out, i)[j] = o * tanhf(c);
    }
}

void cuda_run_lstm(cuda_tape *tape, cuda_rows out, cuda_rows cell_out, cuda_rows cell, cuda_rows gx,
                   cuda_rows gh)
{
    LAUNCH(lstm_rows, out.rows, tape, out, cell_out, cell, gx, gh);
}

ROW_KERNEL(ssru_rows, cuda_rows out, cuda_rows cell_out, cuda_rows cell, cuda_rows in, cuda_rows f)
{
    begin_kernel();
    const int i = blockIdx.x;
    EACH(j, out.cols)
    {
        const float gate = sigmoid(row_of(f, i)[j]);
        const float c = gate * row_of(cell, i)[j] + (1.0f - gate) * row_of(in, i)[j];
        row_of(cell_out, i)[j] = c;
        row_of(out, i)[j] = c > 0.0f ? c : 0.0f;
    }
}

void cuda_run_ssru(cuda_tape *tape, cuda_rows out, cuda_rows cell_out, cuda_rows cell, cuda_rows in,
                   cuda_rows f)
{
    LAUNCH(ssru_rows, out.rows, tape, out, cell_out, cell, in, f);
}

ROW_KERNEL(gated_sum_rows, cuda_rows y, cuda_rows a, cuda_rows b, cuda_rows g)
{
    begin_kernel();
    const int i = blockIdx.x;
    const float *gate = row_of(g, i);
    EACH(j, y.cols)
        row_of(y, i)[j] = sigmoid(gate[j]) * row_of(a, i)[j] +
                          sigmoid(gate[y.cols + j]) * row_of(b, i)[j];
}

void cuda_run_gated_sum(cuda_tape *tape, cuda_rows y, cuda_rows a, cuda_rows b, cuda_rows g)
{
    LAUNCH(gated_sum_rows, y.rows, tape, y, a, b, g);
}

// ---- tables and distances -----------------------------------------------------------------------

static __global__ void set_tokens(float *row, const int32_t *ids, const float *values, int count)
{
    begin_kernel();
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) row[ids[i]] = values ? values[i] : 0.0f;
}

void cuda_run_set(cuda_tape *tape, float *row, const int32_t *ids, const float *values, int count)
{
    LAUNCH(set_tokens, (count + THREADS - 1) / THREADS, tape, row, ids, values, count);
}

ROW_KERNEL(distance_pairs, cuda_rows rows, const int32_t *one, const int32_t *two, double *out)
{
    begin_kernel();
    __shared__ double sums[2][THREADS];
    const float *a = row_of(rows, one[blockIdx.x]), *b = row_of(rows, two[blockIdx.x]);
    double apart = 0, length = 0;
    EACH(j, rows.cols)
    {
        const double d = (double)a[j] - (double)b[j];
        apart += d * d;
        length += (double)a[j] * (double)a[j] + (double)b[j] * (double)b[j];
    }
    sums[0][threadIdx.x] = apart;
    sums[1][threadIdx.x] = length;
    for (int n = THREADS / 2; n; n /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < n)
            for (int k = 0; k < 2; k++) sums[k][threadIdx.x] += sums[k][threadIdx.x + n];
    }
    if (threadIdx.x == 0)
        for (int k = 0; k < 2; k++) out[2 * blockIdx.x + k] = sums[k][0];
}

void cuda_run_distances(cuda_tape *tape, cuda_rows rows, const int32_t *one, const int32_t *two,
                        int count, double *out)
{
    LAUNCH(distance_pairs, count, tape, rows, one, two, out);
}
