// SPDX-License-Identifier: MIT
// Integer products of the kernel table: u8 x i8 and i16, both with exact int32 sums.
//
// Included by kernels.h. Who wants a product quantises its rows (quantize_i8, quantize_i16), packs
// the weights once and calls run; results are f32 and bit-identical on every ISA.
//
// i8. A row is q in [-127, 127], stored as q + 128 in a byte, with one scale; a weight is in
// [-127, 127] with a scale per output row (packing takes -128 as -127).
//     y = fmaf((float)acc, a_scale * w_scale[j], bias[j]), acc = sum over k of q * w, exact
// With bias NULL y = (float)acc * (a_scale * w_scale[j]). Then act, then + residual. k must not
// exceed DGM_GEMM_I8_MAX_K, so that acc fits in 32 bits whatever the numbers are.
//
// i16. Fixed point: a row is q = round(x * 2^sa), the weights w = round(x * 2^sw); the scales 2^-sa
// (of the row) and 2^-sw (of the matrix) multiply acc as above. acc fits because packing returns
// the largest |q| that no row of weights can push over: (2^31 - 1) / max_j sum_k |w[j, k]|, which
// is never stricter than K max|q| max|w| < 2^31. quantize_i16 chooses sa for that limit;
// quantize_i16_static is given it, and saturates at the limit.
//
// Rows of A are padded to whole DGM_GEMM_I8_DEPTH or DGM_GEMM_I16_DEPTH elements (quantisation
// writes the padding: it stands for zero), so lda is at least that.
#ifndef DGM_KERNEL_GEMM_INT_H
#define DGM_KERNEL_GEMM_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/act.h"

#define DGM_GEMM_I8_DEPTH 64
#define DGM_GEMM_I16_DEPTH 32
#define DGM_GEMM_I8_MAX_K 131072

// Elements of a quantised row of k elements, padding included.
static inline int dgm_gemm_i8_depth(int k)
{
    return (k + DGM_GEMM_I8_DEPTH - 1) / DGM_GEMM_I8_DEPTH * DGM_GEMM_I8_DEPTH;
}

static inline int dgm_gemm_i16_depth(int k)
{
    return (k + DGM_GEMM_I16_DEPTH - 1) / DGM_GEMM_I16_DEPTH * DGM_GEMM_I16_DEPTH;
}

// Columns, addresses and aliasing as in dgm_gemm_f32_args: c, residual by column - n_begin; bias
// and w_scale by absolute column; c may be the residual.
typedef struct dgm_gemm_i8_args {
    float *c;              // [m, n_end - n_begin], row stride ldc
    const uint8_t *a;      // [m, depth(k)], row stride lda bytes
    const float *a_scale;  // [m]
    const void *packed;    // W packed by the same table, 64-byte aligned
    const float *w_scale;  // [n]
    const float *bias;     // [n] or NULL
    const float *residual; // [m, n_end - n_begin] or NULL, row stride ldr
    int m, n, k;
    int n_begin, n_end; // n_begin is a multiple of DGM_GEMM_COLUMNS; n_end one too, or n
    int lda, ldc, ldr;
    dgm_act act;
    bool cold; // W is expected to come from memory, not from a cache: the same result
    // Where q is not NULL the results go there instead of to c, as input rows of another product:
    // each as quantize_i8_static with q_scale would write it. Padding is left to the caller.
    uint8_t *q; // [m, n_end - n_begin], row stride ldq bytes
    int ldq;
    float q_scale;
} dgm_gemm_i8_args;

typedef struct dgm_gemm_i8_ops {
    const char *name;                    // e.g. "gemm_i8_vnni"
    const char *layout;                  // of what pack writes, as files name it: equal names, equal bytes
    size_t (*packed_size)(int n, int k); // bytes, a multiple of 64
    // w [., k] by rows, stride ldw bytes. Packs n rows: rows[0..n) if rows is not NULL (a list of
    // candidates, in any order), else 0..n-1. Column j of the product is the j-th packed row.
    void (*pack)(void *packed, const int8_t *w, const int32_t *rows, int n, int k, int ldw);
    void (*run)(const dgm_gemm_i8_args *args);
} dgm_gemm_i8_ops;

typedef struct dgm_gemm_i16_args {
    float *c;              // [m, n_end - n_begin], row stride ldc
    const int16_t *a;      // [m, depth(k)], row stride lda elements
    const float *a_scale;  // [m]
    const void *packed;    // W packed by the same table, 64-byte aligned
    float w_scale;         // of the whole matrix
    const float *bias;     // [n] or NULL
    const float *residual; // [m, n_end - n_begin] or NULL, row stride ldr
    int m, n, k;
    int n_begin, n_end;
    int lda, ldc, ldr;
    dgm_act act;
    bool cold; // as for i8
} dgm_gemm_i16_args;

typedef struct dgm_gemm_i16_ops {
    const char *name;
    size_t (*packed_size)(int n, int k);
    // As for i8. Returns the largest |q| a row of A may hold, at most 32767; 0 if there is none
    // (the matrix must then be refused or quantised more coarsely). About 12 bits of magnitude in
    // the weights leave 11 to 13 for the rows at the usual sizes.
    int (*pack)(void *packed, const int16_t *w, const int32_t *rows, int n, int k, int ldw);
    void (*run)(const dgm_gemm_i16_args *args);
} dgm_gemm_i16_ops;

#endif
