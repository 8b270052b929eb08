// SPDX-License-Identifier: MIT
// CPU backend: products in f32, i16 and i8 behind one pair of functions.
//
// An integer product quantises its input rows first, each by itself (so that a row's result does
// not depend on its neighbours), then runs the exact integer kernel with its f32 epilogue.
#include <math.h>

#include "backend/cpu/cpu_private.h"

size_t cpu_prepare_bytes(int rows)
{
    return dgm_arena_cost((size_t)rows * CPU_MAX_WIDTH * sizeof(int16_t)) +
           dgm_arena_cost((size_t)rows * sizeof(float));
}

int cpu_stride_i8(int cols)
{
    int depth = dgm_gemm_i8_depth(cols);
    return depth % 512 == 0 ? depth + DGM_GEMM_I8_DEPTH : depth;
}

static cpu_input prepare_i8(dgm_exec *x, const dgm_linear *w, dgm_mat in)
{
    int stride = cpu_stride_i8(w->cols);
    uint8_t *q = dgm_arena_array(&x->device, (size_t)in.rows, (size_t)stride);
    float *scale = DGM_ARENA_ARRAY(&x->device, float, (size_t)in.rows);
    const dgm_kernels *k = &x->backend->k;
    for (int i = 0; i < in.rows; i++) {
        uint8_t *to = q + (size_t)i * (size_t)stride;
        if (w->input_scale > 0) {
            k->quantize_i8_static(to, cpu_row(in, i), w->cols, w->input_scale);
            scale[i] = w->input_scale;
        } else {
            k->quantize_i8(to, &scale[i], cpu_row(in, i), w->cols);
        }
    }
    return (cpu_input){q, stride, scale, in.rows};
}

static cpu_input prepare_i16(dgm_exec *x, const dgm_linear *w, dgm_mat in)
{
    int depth = dgm_gemm_i16_depth(w->cols);
    int16_t *q = DGM_ARENA_ARRAY(&x->device, int16_t, (size_t)in.rows * (size_t)depth);
    float *scale = DGM_ARENA_ARRAY(&x->device, float, (size_t)in.rows);
    const dgm_kernels *k = &x->backend->k;
    for (int i = 0; i < in.rows; i++) {
        int16_t *to = q + (size_t)i * (size_t)depth;
        if (w->input_scale > 0) {
            k->quantize_i16_static(to, cpu_row(in, i), w->cols, w->input_scale, w->input_limit);
            scale[i] = w->input_scale;
        } else {
            k->quantize_i16(to, &scale[i], cpu_row(in, i), w->cols, w->input_limit);
        }
    }
    return (cpu_input){q, depth, scale, in.rows};
}

// Shows max |x| of the rows to whoever watches.
static void show_inputs(const dgm_exec *x, const dgm_linear *w, dgm_mat in)
{
    float largest[64];
    for (int first = 0; first < in.rows; first += 64) {
        int n = in.rows - first < 64 ? in.rows - first : 64;
        for (int i = 0; i < n; i++) {
            const float *row = cpu_row(in, first + i);
            largest[i] = 0;
            for (int j = 0; j < w->cols; j++) largest[i] = fmaxf(largest[i], fabsf(row[j]));
        }
        x->observer->inputs(x->observer->cookie, w, largest, n);
    }
}

cpu_input cpu_prepare(dgm_exec *x, const dgm_linear *w, dgm_mat in)
{
    if (x->observer && x->observer->inputs) show_inputs(x, w, in);
    if (w->precision == DGM_PRECISION_F32) return (cpu_input){in.data, in.stride, NULL, in.rows};
    double begin = cpu_begin(x);
    bool i8 = w->precision == DGM_PRECISION_I8;
    cpu_input input = i8 ? prepare_i8(x, w, in) : prepare_i16(x, w, in);
    if (x->meter) {
        uint64_t elements = (uint64_t)in.rows * (uint64_t)w->cols;
        dgm_meter_row what = {.work = DGM_WORK_QUANTIZE,
                              .precision = w->precision,
                              .rows = (uint64_t)in.rows,
                              .other_bytes = elements * (sizeof(float) + (i8 ? 1 : 2))};
        cpu_count(x, &what, begin);
    }
    return input;
}

// What the arguments of the three families share; their structs differ in a and the scales.
#define PRODUCT(w, in, p, type)                                                                    \
    .c = (p)->c, .a = (const type *)(in)->rows + (size_t)(p)->first * (size_t)(in)->stride,        \
    .packed = (w)->packed, .bias = (w)->bias, .residual = (p)->residual, .m = (p)->m,              \
    .n = (w)->rows, .k = (w)->cols, .n_begin = (p)->n_begin, .n_end = (p)->n_end,                  \
    .lda = (in)->stride, .ldc = (p)->ldc, .ldr = (p)->ldr, .act = (p)->act

static void multiply_f32(const dgm_backend *b, const dgm_linear *w, const cpu_input *in,
                         const cpu_product *p)
{
    dgm_gemm_f32_args args = {PRODUCT(w, in, p, float)};
    b->k.gemm_f32.run(&args);
}

static void multiply_i8(const dgm_backend *b, const dgm_linear *w, const cpu_input *in,
                        const cpu_product *p)
{
    dgm_gemm_i8_args args = {PRODUCT(w, in, p, uint8_t),
                             .a_scale = in->scale + p->first,
                             .w_scale = w->scales,
                             .cold = w->cold,
                             .q = p->q,
                             .ldq = p->ldq,
                             .q_scale = p->q_scale};
    b->k.gemm_i8.run(&args);
}

static void multiply_i16(const dgm_backend *b, const dgm_linear *w, const cpu_input *in,
                         const cpu_product *p)
{
    dgm_gemm_i16_args args = {PRODUCT(w, in, p, int16_t),
                              .a_scale = in->scale + p->first,
                              .w_scale = w->scale,
                              .cold = w->cold};
    b->k.gemm_i16.run(&args);
}

void cpu_multiply(const dgm_backend *b, const dgm_linear *w, const cpu_input *in,
                  const cpu_product *p)
{
    if (w->precision == DGM_PRECISION_I8)
        multiply_i8(b, w, in, p);
    else if (w->precision == DGM_PRECISION_I16)
        multiply_i16(b, w, in, p);
    else
        multiply_f32(b, w, in, p);
}

void cpu_multiply_listed(const dgm_backend *b, const dgm_linear *w, const cpu_input *in,
                         const cpu_product *p, const int32_t *ids, int count)
{
    const size_t first = (size_t)p->first * (size_t)in->stride;
    dgm_dots_args args = {.c = p->c,
                          .w = w->by_rows,
                          .w_scale = w->scales,
                          .w_scale_all = w->scale,
                          .bias = w->bias,
                          .ids = ids,
                          .m = p->m,
                          .k = w->cols,
                          .count = count,
                          .lda = in->stride,
                          .ldc = p->ldc};
    if (in->scale) args.a_scale = in->scale + p->first;
    if (w->precision == DGM_PRECISION_I8) {
        args.a = (const uint8_t *)in->rows + first;
        b->k.dots_i8(&args);
    } else if (w->precision == DGM_PRECISION_I16) {
        args.a = (const int16_t *)in->rows + first;
        b->k.dots_i16(&args);
    } else {
        args.a = (const float *)in->rows + first;
        b->k.dots_f32(&args);
    }
}
