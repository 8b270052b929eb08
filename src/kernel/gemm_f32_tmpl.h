// SPDX-License-Identifier: MIT
// What the f32 products of every ISA share: the packed layout and the epilogue.
//
// W [n, k] is stored as panels of `width` columns (rows of W), each k x width floats:
//     packed[(j / width) * k * width + i * width + j % width] = W[j, i]
// width is the ISA's choice and divides DGM_GEMM_COLUMNS; the matrix is padded with zeros to whole
// DGM_GEMM_COLUMNS, the padding is computed and thrown away.
// Epilogue, in this order: + bias, act, + residual; each one rounded operation.
// Included after a vec_<isa>.h; all functions are static.
#ifndef DGM_KERNEL_GEMM_F32_TMPL_H
#define DGM_KERNEL_GEMM_F32_TMPL_H

#include <string.h>

#include "kernel/math_tmpl.h"

static inline size_t gemm_packed_size(int n, int k)
{
    const size_t blocks = ((size_t)n + DGM_GEMM_COLUMNS - 1) / DGM_GEMM_COLUMNS;
    return blocks * DGM_GEMM_COLUMNS * (size_t)k * sizeof(float);
}

// The panel that begins at a column, a multiple of the width.
static inline const float *gemm_panel(const dgm_gemm_f32_args *g, int column)
{
    return (const float *)g->packed + (size_t)column * (size_t)g->k;
}

// In blocks of 16 elements of k: reads are whole lines, writes stay in a few KiB.
static inline __attribute__((always_inline)) void gemm_pack(void *packed, const float *w, int n,
                                                            int k, int ldw, const int width)
{
    const int padded = (n + DGM_GEMM_COLUMNS - 1) / DGM_GEMM_COLUMNS * DGM_GEMM_COLUMNS;
    float *out = packed;
    for (int j0 = 0; j0 < padded; j0 += width, out += (size_t)k * (size_t)width) {
        const int columns = n - j0 < width ? n - j0 : width;
        if (columns < width) memset(out, 0, (size_t)k * (size_t)width * sizeof(float));
        for (int i0 = 0; i0 < k; i0 += 16) {
            const int depth = k - i0 < 16 ? k - i0 : 16;
            for (int j = 0; j < columns; j++) {
                const float *row = w + (size_t)(j0 + j) * (size_t)ldw + i0;
                float *to = out + (size_t)i0 * (size_t)width + j;
                for (int i = 0; i < depth; i++) to[i * width] = row[i];
            }
        }
    }
}

// True if sums of `columns` columns from j on can be stored as they are.
static inline bool gemm_is_plain(const dgm_gemm_f32_args *g, int j, int columns)
{
    return !g->bias && !g->residual && g->act == DGM_ACT_NONE && g->n_end - j >= columns;
}

// Address of element (r, j) of the result, j absolute.
static inline float *gemm_result(const dgm_gemm_f32_args *g, int r, int j)
{
    return g->c + (size_t)r * (size_t)g->ldc + (size_t)(j - g->n_begin);
}

// The epilogue for sums [rows, columns] of rows r.., columns j..; what lies beyond n_end is
// dropped. c may be the residual: each element is read before it is written.
static __attribute__((noinline)) void gemm_finish(const dgm_gemm_f32_args *g, const float *sums,
                                                  int r, int rows, int j, int columns)
{
    for (int i = 0; i < rows; i++, r++, sums += columns) {
        float *c = gemm_result(g, r, j);
        const float *bias = g->bias ? g->bias + j : NULL;
        const float *residual =
            g->residual ? g->residual + (size_t)r * (size_t)g->ldr + (j - g->n_begin) : NULL;
        const int width = g->n_end - j < columns ? g->n_end - j : columns;
        for (int t = 0; t < width; t += 16) {
            vf s = vf_load(sums + t);
            if (width - t >= 16) {
                if (bias) s = vf_add(s, vf_load(bias + t));
                s = math_act(s, g->act);
                if (residual) s = vf_add(s, vf_load(residual + t));
                vf_store(c + t, s);
            } else {
                const int rest = width - t;
                if (bias) s = vf_add(s, vf_load_n(bias + t, rest));
                s = math_act(s, g->act);
                if (residual) s = vf_add(s, vf_load_n(residual + t, rest));
                vf_store_n(c + t, s, rest);
            }
        }
    }
}

#endif
