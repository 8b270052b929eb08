// SPDX-License-Identifier: MIT
// bench/gemm, narrow types: the numbers of a cell, packed for us, and our products of them.
#define _GNU_SOURCE
#include <math.h>

#include "base/clock.h"
#include "gemm_int.h"

// ---- products --------------------------------------------------------------------------------

void gemm_int_ours(cell *c)
{
    if (c->is_i8) {
        const dgm_gemm_i8_args args = {.c = c->c,
                                       .a = c->q,
                                       .a_scale = c->a_scale,
                                       .packed = c->weights[c->copy].ints,
                                       .w_scale = c->w_scale,
                                       .bias = c->bias,
                                       .m = c->m,
                                       .n = c->n,
                                       .k = c->k,
                                       .n_end = c->n,
                                       .lda = dgm_gemm_i8_depth(c->k),
                                       .ldc = c->n};
        c->kernels->gemm_i8.run(&args);
    } else if (c->is_bf16) {
        const dgm_gemm_bf16_args args = {.c = c->c,
                                         .a = c->q,
                                         .packed = c->weights[c->copy].ints,
                                         .bias = c->bias,
                                         .m = c->m,
                                         .n = c->n,
                                         .k = c->k,
                                         .n_end = c->n,
                                         .lda = dgm_gemm_bf16_depth(c->k),
                                         .ldc = c->n};
        c->kernels->gemm_bf16.run(&args);
    } else {
        const dgm_gemm_i16_args args = {.c = c->c,
                                        .a = c->q,
                                        .a_scale = c->a_scale,
                                        .packed = c->weights[c->copy].ints,
                                        .w_scale = c->w_scale[0],
                                        .bias = c->bias,
                                        .m = c->m,
                                        .n = c->n,
                                        .k = c->k,
                                        .n_end = c->n,
                                        .lda = dgm_gemm_i16_depth(c->k),
                                        .ldc = c->n};
        c->kernels->gemm_i16.run(&args);
    }
}

void gemm_int_own_f32(cell *c)
{
    const dgm_gemm_f32_args args = {.c = c->c,
                                    .a = c->a,
                                    .packed = c->weights[c->copy].own_f32,
                                    .m = c->m,
                                    .n = c->n,
                                    .k = c->k,
                                    .n_end = c->n,
                                    .lda = c->k,
                                    .ldc = c->n};
    c->kernels->gemm_f32.run(&args);
}

// ---- data ------------------------------------------------------------------------------------

static void round_all(cell *c)
{
    const size_t k = (size_t)c->k, depth = (size_t)dgm_gemm_bf16_depth(c->k);
    uint16_t *row = allocate(depth * sizeof *row);
    for (size_t j = 0; j < (size_t)c->n; j++) {
        c->kernels->round_bf16(row, c->weights[0].w + j * k, c->k);
        memcpy((uint16_t *)c->wq + j * k, row, k * sizeof *row);
        c->bias[j] = 0.01f * (float)(j % 100);
    }
    free(row);
    for (int i = 0; i < c->copies; i++) {
        c->kernels->gemm_bf16.pack(c->weights[i].ints, c->wq, NULL, c->n, c->k, c->k);
        c->kernels->gemm_f32.pack(c->weights[i].own_f32, c->weights[i].w, c->n, c->k, c->k);
    }
    for (size_t r = 0; r < (size_t)c->m; r++)
        c->kernels->round_bf16((uint16_t *)c->q + r * depth, c->a + r * k, c->k);
}

static void quantise(cell *c)
{
    const int depth = c->is_i8 ? dgm_gemm_i8_depth(c->k) : dgm_gemm_i16_depth(c->k);
    int limit = 0;
    for (size_t j = 0; j < (size_t)c->n; j++) {
        c->w_scale[j] = c->is_i8 ? 0.5f / 127 : 0.5f / 4096;
        for (size_t i = 0; i < (size_t)c->k; i++) {
            const size_t at = j * (size_t)c->k + i;
            const long q = lrintf(c->weights[0].w[at] / c->w_scale[j]);
            if (c->is_i8)
                ((int8_t *)c->wq)[at] = (int8_t)q;
            else
                ((int16_t *)c->wq)[at] = (int16_t)q;
        }
        c->bias[j] = 0.01f * (float)(j % 100);
        c->dnn_bias[j] = c->bias[j] / c->w_scale[j];
    }
    for (int i = 0; i < c->copies; i++) {
        if (c->is_i8)
            c->kernels->gemm_i8.pack(c->weights[i].ints, c->wq, NULL, c->n, c->k, c->k);
        else
            limit = c->kernels->gemm_i16.pack(c->weights[i].ints, c->wq, NULL, c->n, c->k, c->k);
        c->kernels->gemm_f32.pack(c->weights[i].own_f32, c->weights[i].w, c->n, c->k, c->k);
    }
    for (int r = 0; r < c->m; r++) {
        const float *row = c->a + (size_t)r * (size_t)c->k;
        const size_t at = (size_t)r * (size_t)depth;
        if (c->is_i8)
            c->kernels->quantize_i8((uint8_t *)c->q + at, c->a_scale + r, row, c->k);
        else
            c->kernels->quantize_i16((int16_t *)c->q + at, c->a_scale + r, row, c->k, limit);
    }
}

void gemm_int_make_data(cell *c)
{
    dgm_rng rng = {2};
    const size_t count = (size_t)c->k * (size_t)(c->n + DGM_GEMM_COLUMNS);
    c->copies = count * sizeof(float) < ((size_t)8 << 20) ? MAX_COPIES : 1;
    c->packed_size = c->is_i8     ? c->kernels->gemm_i8.packed_size(c->n, c->k)
                     : c->is_bf16 ? c->kernels->gemm_bf16.packed_size(c->n, c->k)
                                  : c->kernels->gemm_i16.packed_size(c->n, c->k);
    c->a = allocate((size_t)c->m * (size_t)c->k * sizeof(float));
    c->q = allocate((size_t)c->m * (size_t)(c->k + 64) * 2);
    c->a_scale = allocate((size_t)c->m * sizeof(float));
    c->c = allocate((size_t)c->m * (size_t)c->n * sizeof(float));
    c->w_scale = allocate((size_t)c->n * sizeof(float));
    c->bias = allocate((size_t)c->n * sizeof(float));
    c->dnn_bias = allocate((size_t)c->n * sizeof(float));
    c->wq = allocate(count * 2);
    for (size_t i = 0; i < (size_t)c->m * (size_t)c->k; i++)
        c->a[i] = (float)(dgm_rng_unit(&rng) - 0.5);
    for (int q = 0; q < c->copies; q++)
        c->weights[q] = (packed){.w = allocate(count * sizeof(float)),
                                 .wt = allocate(count * sizeof(float)),
                                 .own_f32 = allocate(count * sizeof(float)),
                                 .ints = allocate(c->packed_size)};
    for (size_t j = 0; j < (size_t)c->n; j++)
        for (size_t i = 0; i < (size_t)c->k; i++) {
            const float x = (float)(dgm_rng_unit(&rng) - 0.5);
            for (int q = 0; q < c->copies; q++) {
                c->weights[q].w[j * (size_t)c->k + i] = x;
                c->weights[q].wt[i * (size_t)c->n + j] = x;
            }
        }
    if (c->is_bf16)
        round_all(c);
    else
        quantise(c);
}

void gemm_int_free_data(cell *c)
{
    void *const all[] = {c->a, c->q, c->a_scale, c->c, c->w_scale, c->bias, c->dnn_bias, c->wq};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    for (int q = 0; q < c->copies; q++) {
        free(c->weights[q].w);
        free(c->weights[q].wt);
        free(c->weights[q].own_f32);
        free(c->weights[q].ints);
    }
}
