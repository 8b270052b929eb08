// SPDX-License-Identifier: MIT
// bench/gemm, narrow types: products of OpenBLAS and oneDNN.
#define _GNU_SOURCE
#include <cblas.h>

#include "gemm_int.h"

void gemm_int_openblas_nt(cell *c)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, c->m, c->n, c->k, 1.0f, c->a, c->k,
                c->weights[c->copy].w, c->k, 0.0f, c->c, c->n);
}

void gemm_int_openblas_nn(cell *c)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, c->m, c->n, c->k, 1.0f, c->a, c->k,
                c->weights[c->copy].wt, c->n, 0.0f, c->c, c->n);
}

void gemm_int_onednn_nt(cell *c)
{
    dnnl_sgemm('N', 'T', c->m, c->n, c->k, 1.0f, c->a, c->k, c->weights[c->copy].w, c->k, 0.0f,
               c->c, c->n);
}

void gemm_int_onednn_nn(cell *c)
{
    dnnl_sgemm('N', 'N', c->m, c->n, c->k, 1.0f, c->a, c->k, c->weights[c->copy].wt, c->n, 0.0f,
               c->c, c->n);
}

static void need(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success) return;
    fprintf(stderr, "gemm: oneDNN: %s failed (%d)\n", what, (int)status);
    exit(1);
}

static dnnl_memory_t wrap(cell *c, const dnnl_memory_desc_t *desc, void *data)
{
    dnnl_memory_t m;
    need(dnnl_memory_create(&m, desc, c->engine, data), "memory");
    return m;
}

static dnnl_memory_desc_t matrix(int rows, int cols, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    const dnnl_dims_t dims = {rows, cols};
    dnnl_memory_desc_t d;
    need(dnnl_memory_desc_init_by_tag(&d, 2, dims, type, tag), "descriptor");
    return d;
}

// Weights [n, k] into the primitive's own layout.
static void reorder(cell *c, struct matmul *p, int copy, const void *w, bool ints)
{
    const dnnl_memory_desc_t *to = dnnl_primitive_desc_query_md(p->desc, dnnl_query_weights_md, 0);
    const dnnl_memory_desc_t from = matrix(c->k, c->n, ints ? dnnl_s8 : dnnl_f32, dnnl_ba);
    p->data[copy] = allocate(dnnl_memory_desc_get_size(to) + 64);
    p->w[copy] = wrap(c, to, p->data[copy]);
    dnnl_memory_t source = wrap(c, &from, (void *)(uintptr_t)w);
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    need(dnnl_reorder_primitive_desc_create(&desc, &from, c->engine, to, c->engine, NULL),
         "reorder");
    need(dnnl_primitive_create(&primitive, desc), "reorder");
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, p->w[copy]}};
    need(dnnl_primitive_execute(primitive, c->stream, 2, args), "reorder");
    need(dnnl_stream_wait(c->stream), "reorder");
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(desc);
    dnnl_memory_destroy(source);
}

// The primitive for m rows; weights in the layout it likes best.
void gemm_int_make_matmul(cell *c, struct matmul *p, bool ints)
{
    const dnnl_data_type_t in = ints ? dnnl_u8 : dnnl_f32, wt = ints ? dnnl_s8 : dnnl_f32;
    const dnnl_memory_desc_t a = matrix(c->m, c->k, in, dnnl_ab);
    const dnnl_memory_desc_t w = matrix(c->k, c->n, wt, dnnl_format_tag_any);
    const dnnl_memory_desc_t y = matrix(c->m, c->n, dnnl_f32, dnnl_ab);
    const dnnl_memory_desc_t b = matrix(1, c->n, dnnl_f32, dnnl_ab);
    dnnl_matmul_desc_t desc;
    dnnl_primitive_attr_t attr;
    need(dnnl_primitive_attr_create(&attr), "attributes");
    if (ints) need(dnnl_primitive_attr_set_output_scales(attr, c->n, 1 << 1, c->w_scale), "scales");
    need(dnnl_matmul_desc_init(&desc, &a, &w, ints ? &b : NULL, &y), "matmul");
    need(dnnl_primitive_desc_create(&p->desc, &desc, attr, c->engine, NULL), "primitive");
    need(dnnl_primitive_create(&p->primitive, p->desc), "primitive");
    dnnl_primitive_attr_destroy(attr);
    p->a = wrap(c, &a, ints ? c->q : (void *)c->a);
    p->c = wrap(c, &y, c->c);
    p->bias = ints ? wrap(c, &b, c->dnn_bias) : NULL;
    for (int q = 0; q < c->copies; q++) reorder(c, p, q, ints ? c->wq : c->weights[q].w, ints);
}

void gemm_int_free_matmul(const cell *c, struct matmul *p)
{
    for (int q = 0; q < c->copies; q++) {
        dnnl_memory_destroy(p->w[q]);
        free(p->data[q]);
    }
    dnnl_memory_destroy(p->a);
    dnnl_memory_destroy(p->c);
    if (p->bias) dnnl_memory_destroy(p->bias);
    dnnl_primitive_destroy(p->primitive);
    dnnl_primitive_desc_destroy(p->desc);
}

static void execute(cell *c, const struct matmul *p)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->a},
                                    {DNNL_ARG_WEIGHTS, p->w[c->copy]},
                                    {DNNL_ARG_DST, p->c},
                                    {DNNL_ARG_BIAS, p->bias}};
    need(dnnl_primitive_execute(p->primitive, c->stream, p->bias ? 4 : 3, args), "matmul");
}

void gemm_int_onednn_packed(cell *c)
{
    execute(c, &c->f32);
}

void gemm_int_onednn_u8s8(cell *c)
{
    execute(c, &c->u8s8);
}

// ---- from call to call ------------------------------------------------------------------------

void gemm_int_open_rivals(cell *c)
{
    need(dnnl_engine_create(&c->engine, dnnl_cpu, 0), "engine");
    need(dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags), "stream");
}

void gemm_int_close_rivals(cell *c)
{
    dnnl_stream_destroy(c->stream);
    dnnl_engine_destroy(c->engine);
}

static void small_product(bool ints)
{
    static uint8_t q[64 * 64];
    static int8_t wq[64 * 64];
    static float a[64 * 64], w[64 * 64], y[64 * 64], scale[64], bias[64];
    cell c = {.m = 64, .k = 64, .n = 64, .copies = 1};
    c.a = a, c.weights[0].w = w, c.q = q, c.wq = wq, c.c = y, c.w_scale = scale, c.dnn_bias = bias;
    gemm_int_open_rivals(&c);
    gemm_int_make_matmul(&c, ints ? &c.u8s8 : &c.f32, ints);
    execute(&c, ints ? &c.u8s8 : &c.f32);
    need(dnnl_stream_wait(c.stream), "matmul");
    if (!ints) dnnl_sgemm('N', 'T', c.m, c.n, c.k, 1.0f, a, c.k, w, c.k, 0.0f, y, c.n);
}

void gemm_int_rival_f32(void)
{
    small_product(false);
}

void gemm_int_rival(void)
{
    small_product(true);
}
