// SPDX-License-Identifier: MIT
// CPU backend: products in f32, bf16, i16 and i8 behind one pair of functions, alone or shared by the worker's team.
//
// An integer product quantises its input rows first, each by itself (so that a row's result does
// not depend on its neighbours), then runs the exact integer kernel with its f32 epilogue. A product of
// bf16 numbers rounds its input rows.
#include <math.h>

#include "backend/cpu/cpu_private.h"
#include "base/mem.h"

size_t cpu_prepare_bytes(int rows)
{
    const size_t stride = CPU_MAX_WIDTH + DGM_GEMM_BF16_DEPTH;
    return dgm_arena_cost((size_t)rows * stride * sizeof(int16_t)) +
           dgm_arena_cost((size_t)rows * sizeof(float));
}

int cpu_stride_i8(int cols)
{
    int depth = dgm_gemm_i8_depth(cols);
    return depth % 512 == 0 ? depth + DGM_GEMM_I8_DEPTH : depth;
}

// ---- rows that are ready -------------------------------------------------------------------------

// Memory of its own: it outlives whatever the worker's is reset to.
dgm_status cpu_ready_open(dgm_exec *x, dgm_error *err)
{
    const size_t scales = CPU_READY_ROWS * sizeof(float);
    cpu_ready *r = dgm_calloc(1, sizeof *r);
    if (!r) return dgm_no_memory(err);
    x->ready = r;
    DGM_TRY(dgm_arena_init(&r->memory, dgm_arena_cost(CPU_READY_BYTES) + dgm_arena_cost(scales), err));
    r->q = dgm_arena_alloc(&r->memory, CPU_READY_BYTES);
    r->scale = dgm_arena_alloc(&r->memory, scales);
    return DGM_OK;
}

void cpu_ready_close(dgm_exec *x)
{
    cpu_ready *r = x->ready;
    if (r) dgm_arena_free(&r->memory);
    dgm_free(r);
    x->ready = NULL;
}

// The layer's input, if norm_for has made it of these rows.
static bool take_ready(const dgm_exec *x, const dgm_linear *w, dgm_mat in, cpu_input *out)
{
    const cpu_ready *r = x->ready;
    if (r->reader != w || in.stride != r->y.stride) return false;
    const ptrdiff_t from = (const float *)in.data - (const float *)r->y.data;
    const ptrdiff_t row = from / in.stride;
    if (from < 0 || from % in.stride || row + in.rows > r->y.rows) return false;
    *out = r->bytes;
    out->rows = r->q + (size_t)row * (size_t)r->bytes.stride;
    out->scale += row;
    out->count = in.rows;
    return true;
}

void cpu_norm_for(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_mat *add, const dgm_norm *how,
                  const dgm_linear *reader)
{
    double begin = cpu_begin(x);
    cpu_ready *r = x->ready;
    dgm_norm_args a = {.y = y.data,
                       .x = in.data,
                       .gamma = how->gamma->data,
                       .beta = how->beta && !how->rms ? how->beta->data : NULL,
                       .rows = y.rows,
                       .n = y.cols,
                       .ldy = y.stride,
                       .ldx = in.stride,
                       .eps = how->eps,
                       .rms = how->rms};
    if (add) {
        a.add = add->data;
        a.ld_add = add->stride;
    }
    r->reader = NULL;
    if (reader && reader->precision == DGM_PRECISION_I8 && y.rows <= CPU_READY_ROWS &&
        (size_t)y.rows * (size_t)cpu_stride_i8(y.cols) <= CPU_READY_BYTES) {
        a.q = r->q;
        a.ldq = cpu_stride_i8(y.cols);
        a.scale = r->scale;
        a.given_scale = reader->input_scale;
        r->reader = reader;
        r->y = y;
        r->bytes = (cpu_input){r->q, a.ldq, r->scale, y.rows};
    }
    x->backend->k.norm_rows(&a);
    cpu_moved(x, begin, DGM_WORK_NORM, y, add ? 2 : 1);
}

// ---- input rows ----------------------------------------------------------------------------------

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

// Elements between rows, as cpu_stride_i8 has bytes.
static int stride_bf16(int cols)
{
    const int depth = dgm_gemm_bf16_depth(cols);
    return depth % 256 == 0 ? depth + DGM_GEMM_BF16_DEPTH : depth;
}

static cpu_input prepare_bf16(dgm_exec *x, const dgm_linear *w, dgm_mat in)
{
    const int stride = stride_bf16(w->cols);
    uint16_t *q = DGM_ARENA_ARRAY(&x->device, uint16_t, (size_t)in.rows * (size_t)stride);
    for (int i = 0; i < in.rows; i++)
        x->backend->k.round_bf16(q + (size_t)i * (size_t)stride, cpu_row(in, i), w->cols);
    return (cpu_input){q, stride, NULL, in.rows};
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
    cpu_input input;
    if (take_ready(x, w, in, &input)) return input;
    double begin = cpu_begin(x);
    const bool i8 = w->precision == DGM_PRECISION_I8;
    input = i8                                      ? prepare_i8(x, w, in)
            : w->precision == DGM_PRECISION_I16 ? prepare_i16(x, w, in)
                                                : prepare_bf16(x, w, in);
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

// What the arguments of the four families share; their structs differ in a and the scales.
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

static void multiply_bf16(const dgm_backend *b, const dgm_linear *w, const cpu_input *in, const cpu_product *p)
{
    dgm_gemm_bf16_args args = {PRODUCT(w, in, p, uint16_t), .cold = w->cold};
    b->k.gemm_bf16.run(&args);
}

void cpu_multiply(const dgm_backend *b, const dgm_linear *w, const cpu_input *in,
                  const cpu_product *p)
{
    if (w->precision == DGM_PRECISION_I8)
        multiply_i8(b, w, in, p);
    else if (w->precision == DGM_PRECISION_I16)
        multiply_i16(b, w, in, p);
    else if (w->precision == DGM_PRECISION_BF16)
        multiply_bf16(b, w, in, p);
    else
        multiply_f32(b, w, in, p);
}

// ---- shared products ----------------------------------------------------------------------------

// One product, its columns cut into parts of whole panels.
typedef struct shared_product {
    const dgm_backend *b;
    const dgm_linear *w;
    const cpu_input *in;
    const cpu_product *p;
    int panels, parts;
} shared_product;

static void multiply_part(const void *arg, int part)
{
    const shared_product *s = arg;
    const int first = s->panels * part / s->parts * CPU_PANEL, end = s->panels * (part + 1) / s->parts * CPU_PANEL;
    cpu_product p = *s->p;
    p.n_begin += first;
    if (p.n_end > s->p->n_begin + end) p.n_end = s->p->n_begin + end;
    if (p.c) p.c += first;
    if (p.residual) p.residual += first;
    if (p.q) p.q += first;
    cpu_multiply(s->b, s->w, s->in, &p);
}

double cpu_product_time(const dgm_linear *w, int m, int columns)
{
    static const double size[DGM_PRECISION_COUNT] = {sizeof(float), sizeof(int16_t), sizeof(int8_t), 2, 2};
    static const double speed[DGM_PRECISION_COUNT] = {50, 100, 200, 50, 100};
    const double weights = (double)columns * (double)w->cols;
    return fmax(weights * size[w->precision] / 40, weights * m / speed[w->precision]);
}

void cpu_multiply_shared(dgm_exec *x, const dgm_linear *w, const cpu_input *in, const cpu_product *p)
{
    const int columns = p->n_end - p->n_begin, panels = (columns + CPU_PANEL - 1) / CPU_PANEL;
    shared_product s = {x->backend, w, in, p, panels, 1};
    if (panels > 1 && !x->meter) s.parts = dgm_team_parts(x->team, cpu_product_time(w, p->m, columns), panels);
    dgm_team_run(x->team, multiply_part, &s, s.parts);
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
    } else if (w->precision == DGM_PRECISION_BF16) {
        args.a = (const uint16_t *)in->rows + first;
        b->k.dots_bf16(&args);
    } else {
        args.a = (const float *)in->rows + first;
        b->k.dots_f32(&args);
    }
}
