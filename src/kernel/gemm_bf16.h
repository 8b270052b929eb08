// SPDX-License-Identifier: MIT
// The product of bf16 numbers with f32 sums. Included by kernels.h.
//
// Rows of A are rounded to bf16 (round_bf16), weights are packed as bf16 once; sums, epilogue and results are f32:
//     y = act(sum over k of a w + bias[j]) + residual
//
// A product of two bf16 numbers is exact in f32, so that the order of the sums is all that versions can differ in:
//   c, avx2, avx512, neon   numbers are widened; one chain over k = 0, 1, .. from 0. The same bits on all of them, as
//                           long as no product is below the smallest normal float (2^-126)
//   avx512bf16              vdpbf16ps: within a pair of k the odd one is added first; what is denormal counts as zero
//   amx                     tdpbf16ps: 16 pairs of k have two sums of their own, of the even and of the odd ones, which
//                           are added to each other and then to the sum; what is denormal counts as zero
// Within one version a row's result depends on nothing but the row: a table multiplies one row and a thousand with the
// same version. Between versions results differ by rounding, less than k * 2^-22 * sum |a w| (tests/checkkernel).
//
// Rows of A are padded to whole DGM_GEMM_BF16_DEPTH elements with zeros, so lda is at least that.
#ifndef DGM_KERNEL_GEMM_BF16_H
#define DGM_KERNEL_GEMM_BF16_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/act.h"

#define DGM_GEMM_BF16_DEPTH 32

// Elements of a rounded row of k elements, padding included.
static inline int dgm_gemm_bf16_depth(int k)
{
    return (k + DGM_GEMM_BF16_DEPTH - 1) / DGM_GEMM_BF16_DEPTH * DGM_GEMM_BF16_DEPTH;
}

// Columns, addresses and aliasing as in dgm_gemm_f32_args.
typedef struct dgm_gemm_bf16_args {
    float *c;              // [m, n_end - n_begin], row stride ldc
    const uint16_t *a;     // [m, depth(k)], row stride lda elements
    const void *packed;    // W packed by any table: they share the layout; 64-byte aligned
    const float *bias;     // [n] or NULL
    const float *residual; // [m, n_end - n_begin] or NULL, row stride ldr
    int m, n, k;
    int n_begin, n_end; // n_begin is a multiple of DGM_GEMM_COLUMNS; n_end one too, or n
    int lda, ldc, ldr;
    dgm_act act;
    bool cold; // W is expected to come from memory, not from a cache: the same result
} dgm_gemm_bf16_args;

typedef struct dgm_gemm_bf16_ops {
    const char *name;                    // e.g. "gemm_bf16_avx512"
    size_t (*packed_size)(int n, int k); // bytes, a multiple of 64
    // w [., k] by rows, stride ldw elements. Packs n rows: rows[0..n) if rows is not NULL, else 0..n-1.
    void (*pack)(void *packed, const uint16_t *w, const int32_t *rows, int n, int k, int ldw);
    void (*run)(const dgm_gemm_bf16_args *args);
} dgm_gemm_bf16_ops;

#endif
