// SPDX-License-Identifier: MIT
// What the integer and bf16 products of every ISA share: the packed layouts and the epilogue.
//
// i8: panels of 64 columns (rows of W), depth = k rounded up to 64:
//     int8_t [depth / 4][64][4]   groups of 4 consecutive k of one column, 64 columns side by side
//     int32_t [64]                -128 * the column's sum: where the sums of unsigned rows start
// i16, bf16: int16_t or uint16_t [depth / 2][64][2], depth = k rounded up to 32.
// Padding is zero in both directions. A group is what vpdpbusd (4 x 8 bits), vpdpwssd and vdpbf16ps
// (2 x 16 bits) and a row of an AMX tile add into one 32-bit lane; every ISA reads the same block. The
// start values lie behind the panel's weights so that a panel is one stream; they also keep
// panels from being a power of two apart.
// Included after a vec_<isa>.h; all functions are static.
#ifndef DGM_KERNEL_GEMM_INT_TMPL_H
#define DGM_KERNEL_GEMM_INT_TMPL_H

#include <string.h>

#include "kernel/math_tmpl.h"

enum { PANEL = DGM_GEMM_COLUMNS };

static inline size_t int_panels(int n)
{
    return ((size_t)n + PANEL - 1) / PANEL;
}

// Bytes of a panel.
static inline size_t i8_panel_size(int k)
{
    return (size_t)dgm_gemm_i8_depth(k) * PANEL + PANEL * sizeof(int32_t);
}

static inline size_t i16_panel_size(int k)
{
    return (size_t)dgm_gemm_i16_depth(k) * PANEL * sizeof(int16_t);
}

static inline size_t bf16_panel_size(int k)
{
    return (size_t)dgm_gemm_bf16_depth(k) * PANEL * sizeof(uint16_t);
}

static inline const int8_t *i8_panel(const dgm_gemm_i8_args *g, int column)
{
    return (const int8_t *)g->packed + (size_t)(column / PANEL) * i8_panel_size(g->k);
}

static inline const int16_t *i16_panel(const dgm_gemm_i16_args *g, int column)
{
    return (const int16_t *)g->packed + (size_t)(column / PANEL) * i16_panel_size(g->k) / 2;
}

static inline const uint16_t *bf16_panel(const dgm_gemm_bf16_args *g, int column)
{
    return (const uint16_t *)g->packed + (size_t)(column / PANEL) * bf16_panel_size(g->k) / 2;
}

// `columns` rows of w from `first` on, or those that `rows` names, as one panel of pairs of 16 bits. In blocks of 32
// elements of k: reads are whole lines, writes stay in 4 KiB.
static inline __attribute__((unused)) void pairs_pack_panel(void *panel, const void *w, const int32_t *rows, int first,
                                                            int columns, int k, int ldw)
{
    for (int i0 = 0; i0 < k; i0 += 32) {
        uint16_t *out = (uint16_t *)panel + (size_t)i0 * PANEL;
        const int count = k - i0 < 32 ? k - i0 : 32;
        if (columns < PANEL) memset(out, 0, 32 * PANEL * sizeof *out);
        for (int j = 0; j < columns; j++) {
            uint16_t line[32] = {0};
            const size_t row = (size_t)(rows ? rows[first + j] : first + j);
            memcpy(line, (const uint16_t *)w + row * (size_t)ldw + i0, (size_t)count * sizeof *line);
            for (int g = 0; g < 16; g++) memcpy(out + (g * PANEL + j) * 2, line + 2 * g, 4);
        }
    }
}

// The epilogue's side of any args struct.
typedef struct int_out {
    float *c;
    const float *a_scale; // NULL: sums are floats, there are no scales
    const float *w_scale; // NULL: one for all columns
    float w_scale_all;
    const float *bias, *residual;
    int n_begin, n_end, ldc, ldr;
    dgm_act act;
    uint8_t *q; // NULL: results are floats, to c
    int ldq;
    float q_factor;
} int_out;

static inline int_out i8_out(const dgm_gemm_i8_args *g)
{
    return (int_out){.c = g->c,
                     .a_scale = g->a_scale,
                     .w_scale = g->w_scale,
                     .bias = g->bias,
                     .residual = g->residual,
                     .n_begin = g->n_begin,
                     .n_end = g->n_end,
                     .ldc = g->ldc,
                     .ldr = g->ldr,
                     .act = g->act,
                     .q = g->q,
                     .ldq = g->ldq,
                     .q_factor = g->q ? 1.0f / g->q_scale : 0.0f};
}

static inline int_out i16_out(const dgm_gemm_i16_args *g)
{
    return (int_out){.c = g->c,
                     .a_scale = g->a_scale,
                     .w_scale_all = g->w_scale,
                     .bias = g->bias,
                     .residual = g->residual,
                     .n_begin = g->n_begin,
                     .n_end = g->n_end,
                     .ldc = g->ldc,
                     .ldr = g->ldr,
                     .act = g->act};
}

static inline int_out bf16_out(const dgm_gemm_bf16_args *g)
{
    return (int_out){.c = g->c,
                     .bias = g->bias,
                     .residual = g->residual,
                     .n_begin = g->n_begin,
                     .n_end = g->n_end,
                     .ldc = g->ldc,
                     .ldr = g->ldr,
                     .act = g->act};
}

// The first `count` of 16 results as bytes, in the operations of quantize_tmpl.h.
static inline void int_store_q(const int_out *o, vf y, size_t r, size_t at, int count)
{
    uint8_t *q = o->q + r * (size_t)o->ldq + at, bytes[16];
    const vf v = vf_min(vf_max(vf_mul(y, vf_set(o->q_factor)), vf_set(-127.0f)), vf_set(127.0f));
    vf_store_u8(count >= 16 ? q : bytes, v);
    if (count < 16) memcpy(q, bytes, (size_t)count);
}

// 16 sums, of which `count` are wanted, with scale and bias.
static inline vf int_scaled_16(const int_out *o, const int32_t *sums, int r, int j, int count)
{
    const bool whole = count >= 16;
    const vf row = vf_set(o->a_scale[r]), y = vf_load_i32(sums);
    vf s = vf_set(o->w_scale_all);
    if (o->w_scale) s = whole ? vf_load(o->w_scale + j) : vf_load_n(o->w_scale + j, count);
    s = vf_mul(row, s);
    if (!o->bias) return vf_mul(y, s);
    return vf_fma(y, s, whole ? vf_load(o->bias + j) : vf_load_n(o->bias + j, count));
}

// The same of sums that are floats.
static inline vf int_real_16(const int_out *o, const int32_t *sums, int j, int count)
{
    float real[16];
    memcpy(real, sums, sizeof real);
    const vf y = vf_load(real);
    if (!o->bias) return y;
    return vf_add(y, count >= 16 ? vf_load(o->bias + j) : vf_load_n(o->bias + j, count));
}

// One vector of 16 sums, the first `count` of them wanted: scale, bias, act, residual.
static inline void int_finish_16(const int_out *o, const int32_t *sums, int r, int j, int count)
{
    const size_t at = (size_t)(j - o->n_begin);
    const bool whole = count >= 16;
    vf y = o->a_scale ? int_scaled_16(o, sums, r, j, count) : int_real_16(o, sums, j, count);
    y = math_act(y, o->act);
    if (o->residual) {
        const float *more = o->residual + (size_t)r * (size_t)o->ldr + at;
        y = vf_add(y, whole ? vf_load(more) : vf_load_n(more, count));
    }
    if (o->q) {
        int_store_q(o, y, (size_t)r, at, count);
        return;
    }
    float *c = o->c + (size_t)r * (size_t)o->ldc + at;
    if (whole)
        vf_store(c, y);
    else
        vf_store_n(c, y, count);
}

// The epilogue for sums [rows, columns] of rows r.., columns j..; what lies beyond n_end is
// dropped. columns is a multiple of 16.
static __attribute__((noinline, unused)) void int_finish(const int_out *o, const int32_t *sums,
                                                         int r, int rows, int j, int columns)
{
    for (int i = 0; i < rows; i++, r++, sums += columns)
        for (int t = 0; t < columns && j + t < o->n_end; t += 16)
            int_finish_16(o, sums + t, r, j + t, o->n_end - j - t);
}

#endif
