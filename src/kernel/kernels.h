// SPDX-License-Identifier: MIT
// The compute kernels: one struct of function pointers, filled for the CPU at hand.
//
// Pure arithmetic: no allocation, no threads, no files. dgm_kernels_init fills the table with the
// C reference (suffix _c) and then climbs the ISA ladder (avx2, avx512, vnni, amx; neon, dotprod,
// i8mm), overwriting upward as far as the flags allow. The table is passed around, never global, so
// a test can hold two.
//
// Numeric contract
//   - A row's result never depends on the other rows of a call, on the number of rows or on the
//     thread: every element of a product is one chain of fused multiply-adds over k = 0..K-1.
//   - Everything except gemm_f32 and gemm_bf16 is bit-identical on every ISA. Reductions run in 16 virtual lanes:
//     element i belongs to lane i mod 16, lanes accumulate in order of i with fmaf (or +), then
//     fold l + (l + 8), l + (l + 4), l + (l + 2), l + (l + 1). exp, tanh and sigmoid are fixed
//     polynomials in fmaf. gemm_f32 may differ between ISAs in the last bits, gemm_bf16 does where the CPU has a
//     unit for it (kernel/gemm_bf16.h).
//   - Pointers need no alignment unless stated; outputs do not alias inputs unless stated.
//   - The C reference in ref/ is the contract; its comments give rounding, bounds and aliasing.
#ifndef DGM_KERNEL_KERNELS_H
#define DGM_KERNEL_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/act.h"
#include "kernel/cpu.h"
#include "kernel/gemm_bf16.h"
#include "kernel/gemm_int.h"

// C[m, n] = act(A[m, k] . W[n, k]^T + bias) + residual, for columns n_begin..n_end of W.
// c, bias and residual are addressed by absolute column: element (r, j) of the result is
// c[r * ldc + j - n_begin]; bias[j]; residual[r * ldr + j - n_begin].
// c may alias residual (same address and stride) but not a.
typedef struct dgm_gemm_f32_args {
    float *c;              // [m, n_end - n_begin], row stride ldc
    const float *a;        // [m, k], row stride lda
    const void *packed;    // W packed by the same table's pack_f32, 64-byte aligned
    const float *bias;     // [n] or NULL
    const float *residual; // [m, n_end - n_begin] or NULL, row stride ldr
    int m, n, k;           // n, k: size of the packed matrix
    int n_begin, n_end;    // n_begin is a multiple of DGM_GEMM_COLUMNS; n_end one too, or n
    int lda, ldc, ldr;
    dgm_act act;
} dgm_gemm_f32_args;

// Column ranges of a packed matrix start at multiples of this on every ISA.
#define DGM_GEMM_COLUMNS 64

typedef struct dgm_gemm_f32_ops {
    const char *name;                                                  // e.g. "gemm_f32_avx512"
    size_t (*packed_size)(int n, int k);                               // bytes, a multiple of 64
    void (*pack)(void *packed, const float *w, int n, int k, int ldw); // w [n, k], row stride ldw
    void (*run)(const dgm_gemm_f32_args *args);
} dgm_gemm_f32_ops;

enum { DGM_ATTEND_QUERIES = 4, DGM_BLOCK_KEYS = 16 };

// A query's attention weights: rows of n, one for each head, this many floats apart, so that whole
// vectors can be stored; what lies between them is not defined.
static inline int dgm_attend_stride(int n)
{
    return (n + 31) / 16 * 16;
}

// Up to DGM_ATTEND_QUERIES query rows, query r against n[r] keys and values. Key j of query r lies
// at k + row(j) * stride, value j at v + row(j) * stride, with row(j) = index[r] ? index[r][j] : j.
// The first `shared` rows are the same for all queries (at most the least n; 0 with one query).
typedef struct dgm_attend_args {
    float *out[DGM_ATTEND_QUERIES];     // of [heads * dv]
    const float *q[DGM_ATTEND_QUERIES]; // of [heads * dk]
    float *weights[DGM_ATTEND_QUERIES]; // of [heads, dgm_attend_stride(n)]
    const int32_t *index[DGM_ATTEND_QUERIES]; // of [n], or NULL
    int n[DGM_ATTEND_QUERIES];
    int queries, shared;
    const void *k, *v; // rows of heads * dk and heads * dv elements: float, or half (attend_f16)
    size_t stride;     // elements between rows
    int heads, dk, dv;
    float scale;         // multiplies q.k (multi-head); 1 for the product form
    // Added to the scores: bias[r][h * bias_stride + j] to that of key j and head h. bias_stride 0:
    // nothing is.
    const float *bias[DGM_ATTEND_QUERIES];
    size_t bias_stride;
    const int32_t *next; // rows of the next call, to be fetched meanwhile; NULL with next_n = 0
    int next_n;
} dgm_attend_args;

// Up to DGM_ATTEND_QUERIES query rows against the n keys and values of one sentence, which lie in
// blocks of DGM_BLOCK_KEYS positions: keys [heads][dk][16] (transposed), values [heads][16][dv].
// Position j is the (j mod 16)-th of block j / 16. What a block holds beyond n is read and ignored.
typedef struct dgm_attend_blocks_args {
    float *out[DGM_ATTEND_QUERIES];     // of [heads * dv]
    const float *q[DGM_ATTEND_QUERIES]; // of [heads * dk]
    float *weights[DGM_ATTEND_QUERIES]; // of [heads, dgm_attend_stride(n)]
    int queries;
    const void *blocks; // float, or half (attend_blocks_f16)
    size_t block;       // elements of a block
    size_t values;      // elements from the keys to the values, where heads are some of a block's; 0: keys of all heads
    int n, heads, dk, dv;
    float scale;
    const void *next; // blocks of the next call, to be fetched meanwhile; NULL with next_n = 0
    int next_n;
} dgm_attend_blocks_args;

// Additive attention of one row: e_j = w . tanh(q + k_j), softmax over j, out = sum_j p_j v_j.
typedef struct dgm_attend_add_args {
    float *out;     // [dv]
    const float *q; // [da]
    const float *w; // [da]
    const float *k; // [n, da], rows contiguous
    const float *v; // [n, dv], rows contiguous
    int n, da, dv;
    float *weights; // [n]
} dgm_attend_add_args;

// Norms of rows: the same bits as add_f32, the norm and quantize_i8 (or quantize_i8_static) one after the other.
typedef struct dgm_norm_args {
    float *y;                  // [rows, n], row stride ldy; may be x or add (same stride)
    const float *x;            // [rows, n], row stride ldx
    const float *add;          // [rows, n], row stride ld_add: x + add is normalised; NULL: x
    const float *gamma, *beta; // [n]; beta may be NULL
    uint8_t *q;                // [rows, depth(n)], row stride ldq: rows for gemm_i8; NULL: not wanted
    float *scale;              // [rows] with q
    float given_scale;         // of all rows of q; 0: each has its own
    int rows, n;               // n >= 1
    int ldy, ldx, ld_add, ldq;
    float eps;
    bool rms; // without mean and beta
} dgm_norm_args;

// A list of the k best (score, token), best first; ties go to the lower token id. Unused places
// hold (-inf, -1). Kept sorted by insertion: k is small.
typedef struct dgm_topk {
    float *score;   // [k]
    int32_t *token; // [k]
    int k;
} dgm_topk;

// A few outputs of a layer whose weights lie by rows as they are, not packed:
//   c[r, i] = a[r] . w[ids[i]] + bias[ids[i]]
// Integers: rows a quantised and padded as for gemm_i8 or gemm_i16, sums and epilogue as theirs,
// bit for bit. f32 and bf16: a reduction in 16 virtual lanes of f32, then + bias.
typedef struct dgm_dots_args {
    float *c;             // [m, count], row stride ldc
    const void *a;        // [m, k] of float, uint8_t, int16_t or uint16_t (bf16), row stride lda elements
    const float *a_scale; // [m]; integers only
    const void *w;        // [., k] of float, int8_t, int16_t or uint16_t, rows side by side
    const float *w_scale; // i8: by id
    float w_scale_all;    // i16, with w_scale NULL
    const float *bias;    // by id, or NULL
    const int32_t *ids;   // [count]
    int m, k, count;
    int lda, ldc;
} dgm_dots_args;

typedef struct dgm_kernels {
    dgm_gemm_f32_ops gemm_f32;
    dgm_gemm_i8_ops gemm_i8; // kernel/gemm_int.h has the contract of both
    dgm_gemm_i16_ops gemm_i16;
    dgm_gemm_bf16_ops gemm_bf16; // kernel/gemm_bf16.h

    // One row for gemm_i8: m = max |x|, *scale = m / 127, q = round(x * (127 / m)) + 128, to even,
    // clamped to 1 .. 255; m < 1e-30 counts as a row of zeros (scale 1). Writes depth(n) bytes.
    // NaN becomes -127 and does not count in m; with an infinity the scale is infinite.
    void (*quantize_i8)(uint8_t *q, float *scale, const float *x, int n);
    // The same with a scale that is given: q = round(x * (1 / scale)) + 128. What exceeds 127
    // scales saturates. scale is positive and not below 1e-30.
    void (*quantize_i8_static)(uint8_t *q, const float *x, int n, float scale);
    // One row for gemm_i16: q = round(x * 2^s), *scale = 2^-s, with the largest s that keeps
    // |q| <= limit (1 .. 32767, from gemm_i16.pack). Otherwise as quantize_i8; a row of zeros has
    // s = 0. Writes depth(n) elements.
    void (*quantize_i16)(int16_t *q, float *scale, const float *x, int n, int limit);
    // The same with a scale that is given, a power of two between 2^-110 and 2^110: what exceeds
    // limit scales saturates, so that sums fit whatever the row is.
    void (*quantize_i16_static)(int16_t *q, const float *x, int n, float scale, int limit);

    // One row for gemm_bf16: y = x rounded to nearest even; too large becomes infinity, NaN stays NaN. Writes depth(n)
    // elements.
    void (*round_bf16)(uint16_t *y, const float *x, int n);

    // y = (x - mean) / sqrt(var + eps) * gamma + beta, row by row, or x / sqrt(mean(x^2) + eps) * gamma;
    // and the rows as bytes, if they are wanted.
    void (*norm_rows)(const dgm_norm_args *args);
    // x = softmax(x) in place; all -inf gives zeros
    void (*softmax_f32)(float *x, int n);
    // largest element; -inf for n = 0
    float (*max_f32)(const float *x, int n);
    // sum over i of exp(x[i] - max); exp(-inf) = 0. No x[i] is more than 88 above max
    float (*sum_exp_f32)(const float *x, int n, float max);
    // y = act(x), element-wise; y may be x
    void (*act_f32)(float *y, const float *x, int n, dgm_act act);
    // y = a + b; y may be either
    void (*add_f32)(float *y, const float *a, const float *b, int n);
    // y = fmaf(scale, x, y)
    void (*axpy_f32)(float *y, const float *x, int n, float scale);
    float (*dot_f32)(const float *a, const float *b, int n);
    // y = table row * scale + add (add may be NULL: then one rounded product)
    void (*gather_f32)(float *y, const float *row, const float *add, int n, float scale);
    // i8 row with its scale: y = q * row_scale, then as gather_f32
    void (*gather_i8)(float *y, const int8_t *row, float row_scale, const float *add, int n,
                      float scale);

    void (*attend_f32)(const dgm_attend_args *args);
    void (*attend_add_f32)(const dgm_attend_add_args *args);
    // attend_f32 over keys and values in half precision, each converted exactly.
    void (*attend_f16)(const dgm_attend_args *args);
    void (*attend_blocks_f32)(const dgm_attend_blocks_args *args);
    void (*attend_blocks_f16)(const dgm_attend_blocks_args *args);
    // y = x as IEEE half, rounded to nearest even; too large becomes infinity.
    void (*half_f32)(uint16_t *y, const float *x, int n);

    // GRU with reset after the product. x, h: gate inputs [3n] in the order r, z, g (biases added):
    //   r = sig(xr + hr), z = sig(xz + hz), g = tanh(fmaf(r, hg, xg)), out = z * state + (1-z) * g
    // out may be state.
    void (*gru_f32)(float *out, const float *state, const float *x, const float *h, int n);
    // LSTM. x, h: [4n] in the order i, f, g, o:
    //   c' = sig(f) * c + sig(i) * tanh(g), out = sig(o) * tanh(c'). cell_out may be cell.
    void (*lstm_f32)(float *out, float *cell_out, const float *cell, const float *x, const float *h,
                     int n);
    // SSRU: f = sig(fx), c' = f * c + (1 - f) * x, out = relu(c'). cell_out may be cell.
    void (*ssru_f32)(float *out, float *cell_out, const float *cell, const float *x,
                     const float *fx, int n);

    // The same with tanh and sigmoid by look-up table: errors up to 2.4e-5 and 1.2e-5
    // (kernel/table_tmpl.h). act_table_f32 does every activation, those two by table.
    void (*act_table_f32)(float *y, const float *x, int n, dgm_act act);
    void (*gru_table_f32)(float *out, const float *state, const float *x, const float *h, int n);
    void (*lstm_table_f32)(float *out, float *cell_out, const float *cell, const float *x,
                           const float *h, int n);
    void (*ssru_table_f32)(float *out, float *cell_out, const float *cell, const float *x,
                           const float *fx, int n);

    // Offers x[0..n) as tokens first .. first + n - 1 (or ids[0..n) if ids is not NULL, which must
    // ascend) to the list.
    void (*topk_f32)(dgm_topk *list, const float *x, int n, int32_t first, const int32_t *ids);

    void (*dots_f32)(const dgm_dots_args *args);
    void (*dots_i8)(const dgm_dots_args *args);
    void (*dots_i16)(const dgm_dots_args *args);
    void (*dots_bf16)(const dgm_dots_args *args);

    // Which version of each family this table holds, e.g. "rows_avx2"; pointers end above.
    const char *quantize_name, *rows_name, *attend_name, *gates_name, *topk_name;
} dgm_kernels;

// flags: what the CPU has (dgm_cpu_flags) or less.
void dgm_kernels_init(dgm_kernels *k, unsigned flags);

// The switch between polynomials and look-up tables: act_f32 and the gates become the versions by
// table. Epilogues of products keep the polynomials.
void dgm_kernels_use_tables(dgm_kernels *k);
// act_f32 and the gates become scalar calls of the C library: the baseline of a benchmark.
void dgm_kernels_use_libm(dgm_kernels *k);

// A line such as "gemm_f32_avx512 rows_avx512 ...", for --version and logs. Returns buffer; names
// that do not fit are left out.
const char *dgm_kernels_describe(const dgm_kernels *k, char *buffer, size_t size);

#endif
