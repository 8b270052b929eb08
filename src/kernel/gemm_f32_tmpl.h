// SPDX-License-Identifier: MIT
// What the f32 products of every ISA share: the packed layout and the epilogue.
//
// W [n, k] is stored as panels of 64 columns (rows of W), each k x 64 floats, 64-byte aligned:
//     packed[(j / 64) * k * 64 + i * 64 + j % 64] = W[j, i]
// The last panel is padded with zeros; its padding is computed and thrown away.
// Epilogue, in this order: + bias, act, + residual; each one rounded operation.
// Included after a vec_<isa>.h; all functions are static.
#ifndef DGM_KERNEL_GEMM_F32_TMPL_H
#define DGM_KERNEL_GEMM_F32_TMPL_H

#include <string.h>

#include "kernel/math_tmpl.h"

static inline size_t gemm_packed_size(int n, int k)
{
    const size_t panels = ((size_t)n + DGM_GEMM_COLUMNS - 1) / DGM_GEMM_COLUMNS;
    return panels * DGM_GEMM_COLUMNS * (size_t)k * sizeof(float);
}

static inline const float *gemm_panel(const void *packed, int column, int k)
{
    return (const float *)packed + (size_t)column * (size_t)k;
}

// In blocks of 16 elements of k: reads are whole lines, writes stay in one 4 KiB block.
static inline void gemm_pack(void *packed, const float *w, int n, int k, int ldw)
{
    float *out = packed;
    for (int j0 = 0; j0 < n; j0 += DGM_GEMM_COLUMNS, out += (size_t)k * DGM_GEMM_COLUMNS) {
        const int columns = n - j0 < DGM_GEMM_COLUMNS ? n - j0 : DGM_GEMM_COLUMNS;
        if (columns < DGM_GEMM_COLUMNS)
            memset(out, 0, (size_t)k * DGM_GEMM_COLUMNS * sizeof(float));
        for (int i0 = 0; i0 < k; i0 += 16) {
            const int depth = k - i0 < 16 ? k - i0 : 16;
            for (int j = 0; j < columns; j++) {
                const float *row = w + (size_t)(j0 + j) * (size_t)ldw + i0;
                for (int i = 0; i < depth; i++) out[(i0 + i) * DGM_GEMM_COLUMNS + j] = row[i];
            }
        }
    }
}

// Finishes 16 sums of row r, columns j .. j + 15 (absolute); columns from n_end on are dropped.
static inline __attribute__((always_inline)) void gemm_finish(const dgm_gemm_f32_args *g, vf sum,
                                                              int r, int j)
{
    const int count = g->n_end - j;
    const size_t at = (size_t)(j - g->n_begin);
    if (count <= 0) return;
    if (count >= 16) {
        if (g->bias) sum = vf_add(sum, vf_load(g->bias + j));
        if (g->act != DGM_ACT_NONE) sum = math_act(sum, g->act);
        if (g->residual)
            sum = vf_add(sum, vf_load(g->residual + (size_t)r * (size_t)g->ldr + at));
        vf_store(g->c + (size_t)r * (size_t)g->ldc + at, sum);
        return;
    }
    if (g->bias) sum = vf_add(sum, vf_load_n(g->bias + j, count));
    if (g->act != DGM_ACT_NONE) sum = math_act(sum, g->act);
    if (g->residual)
        sum = vf_add(sum, vf_load_n(g->residual + (size_t)r * (size_t)g->ldr + at, count));
    vf_store_n(g->c + (size_t)r * (size_t)g->ldc + at, sum, count);
}

#endif
