// SPDX-License-Identifier: MIT
// What the parts of the tables of integers and bf16 share (gemm_int*.c): a cell, its data, its rivals.
#ifndef DGM_BENCH_PROGRAMS_GEMM_INT_H
#define DGM_BENCH_PROGRAMS_GEMM_INT_H

#include <oneapi/dnnl/dnnl.h>

#include "gemm.h"

typedef struct packed {
    float *w, *wt; // [n, k], [k, n]
    void *own_f32; // packed by our f32 kernels
    void *ints;    // packed by our integer kernels
} packed;

typedef struct cell {
    int m, k, n;
    bool is_i8, is_bf16; // neither: i16
    const dgm_kernels *kernels;
    float *a, *c;    // [m, k], [m, n]
    void *q;         // quantised or rounded rows
    float *a_scale;  // [m]
    void *wq;        // [n, k] quantised weights
    float *w_scale;  // [n]; i16: all the same
    float *bias;     // [n]
    float *dnn_bias; // bias / scale: oneDNN scales after adding
    int copies, copy;
    packed weights[MAX_COPIES];
    size_t packed_size;
    double stream_ops; // of one call of the instruction stream
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct matmul {
        dnnl_primitive_desc_t desc;
        dnnl_primitive_t primitive;
        dnnl_memory_t a, c, bias, w[MAX_COPIES]; // made once: only execution is timed
        void *data[MAX_COPIES];                  // of w
    } f32, u8s8;
} cell;

// gemm_int_data.c: weights, rows and our own products.
void gemm_int_make_data(cell *c);
void gemm_int_free_data(cell *c);
void gemm_int_ours(cell *c);
void gemm_int_own_f32(cell *c);

// gemm_int_rivals.c: engine and stream; the primitives of a number of rows (c->m); products.
void gemm_int_open_rivals(cell *c);
void gemm_int_close_rivals(cell *c);
void gemm_int_make_matmul(cell *c, struct matmul *p, bool ints);
void gemm_int_free_matmul(const cell *c, struct matmul *p);
void gemm_int_openblas_nt(cell *c);
void gemm_int_openblas_nn(cell *c);
void gemm_int_onednn_nt(cell *c);
void gemm_int_onednn_nn(cell *c);
void gemm_int_onednn_packed(cell *c);
void gemm_int_onednn_u8s8(cell *c);

// gemm_int_bounds.c: what no product can be faster than.
void gemm_int_read(cell *c);
void gemm_int_write(cell *c);
void gemm_int_stream(cell *c); // sets c->stream_ops
bool gemm_int_has_stream(const cell *c);

#endif
