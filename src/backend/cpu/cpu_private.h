// SPDX-License-Identifier: MIT
// Private to backend/cpu: the structures behind the opaque types of backend/types.h, and products in
// every precision behind one pair of functions.
#ifndef DGM_BACKEND_CPU_CPU_PRIVATE_H
#define DGM_BACKEND_CPU_CPU_PRIVATE_H

#include <pthread.h>

#include "backend/backend_ops.h"
#include "base/clock.h"
#include "kernel/kernels.h"

// device_cpu.c: the table, and a declaration of every function in it.
#define CPU_OP(result, name, parameters) result cpu_##name parameters;
DGM_BACKEND_OPS(CPU_OP)
#undef CPU_OP
extern const dgm_backend_ops cpu_ops;

// Layers that are loaded, by what decides which kernel they take.
typedef struct cpu_shape {
    dgm_precision precision;
    int rows, cols;
    int layers; // 0: they are gone
} cpu_shape;

enum { CPU_SHAPES = 64 };

struct dgm_backend {
    const dgm_backend_ops *ops;
    dgm_backend_props props;
    dgm_kernels k;
    unsigned flags;
    bool static_scales;
    pthread_mutex_t lock; // of shapes
    cpu_shape shapes[CPU_SHAPES];
    int shape_count; // CPU_SHAPES: there may be more
};

struct dgm_linear {
    const dgm_backend_ops *ops;
    dgm_precision precision;
    int rows, cols; // [rows, cols] = [out, in]
    bool cold;      // one of many that take turns: it will come from memory, not from a cache
    void *packed;
    bool in_file; // packed is the mapped file's
    size_t packed_bytes;
    float *bias;     // [rows] or NULL
    float *scales;   // i8: [rows]
    float scale;     // i16: of the whole matrix
    int input_limit; // i16: largest |q| of an input row
    float stored_scale; // of the input rows, in 127 steps; 0: none, each row has its own
    float input_scale;  // what is made of it when the layer is packed; i16: a power of two
    const dgm_tensor **tensors; // of the parts, NULL at the end
    // cpu_linear_by_rows: [rows, cols] in the layer's precision; copy is what was allocated for it,
    // NULL where it lies in the file. packed is NULL with a copy.
    const void *by_rows;
    void *copy;
    bool counted; // among the backend's shapes
};

struct dgm_gathered {
    const dgm_backend_ops *ops;
    const dgm_linear *from;
    int capacity;
    int32_t *ids;       // [capacity]
    bool made;          // columns are those of ids
    dgm_linear columns; // rows of it are the columns wanted; memory is the arena's
};

struct dgm_paths {
    const dgm_backend_ops *ops;
    const int32_t *first, *length; // [rows]
    const int32_t *entries;        // NULL: rows themselves
};

struct dgm_embedding {
    const dgm_backend_ops *ops;
    const dgm_tensor *table;
};

struct dgm_vector {
    const dgm_backend_ops *ops;
    int rows, cols;
    float *data;
};

// variants_cpu.c: a layer comes, or goes if it had come.
void cpu_count_layer(dgm_backend *b, dgm_linear *l, bool comes);

static inline float *cpu_row(dgm_mat m, int row)
{
    return (float *)m.data + (size_t)row * (size_t)m.stride;
}

// Bytes of a number in a cache of keys and values.
int cpu_cache_elem(dgm_precision precision);

// One panel of a layer in f32 and, for integers, quantised: what packing needs beside the layer.
typedef struct cpu_panel {
    float *real;     // [CPU_PANEL, cols]
    void *quantised; // [CPU_PANEL, cols] of int8_t or int16_t, of bf16 [CPU_PANEL, depth(cols)]
} cpu_panel;

enum { CPU_PANEL = DGM_GEMM_COLUMNS };

// Numbers in either buffer, whatever the precision.
static inline size_t cpu_panel_elements(int cols)
{
    return (size_t)CPU_PANEL * (size_t)dgm_gemm_bf16_depth(cols);
}

// The layer as its file holds it packed (packed_cpu.c); NULL: it does not, or not in this layout, or not these numbers.
// l->scales are filled then.
const void *cpu_packed_in_file(const dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts, int count);

// Rows first .. first + n - 1 of the parts to `to`; false: not finite. Stored i8 is taken as it is, every other type is
// quantised row by row, by way of `real`.
bool cpu_pack_panel_i8(const dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts, int first, int n,
                       const cpu_panel *buffers, void *to);
size_t cpu_packed_size(const dgm_backend *b, dgm_precision precision, int rows, int cols);
// Fills l->packed, l->scales and l->bias (where it has one), which lie in memory of the right size;
// precision, rows and cols of l are set.
dgm_status cpu_pack_layer(const dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts,
                          int count, const cpu_panel *panel, dgm_error *err);

// The clock where somebody counts: CPU time of the thread, since machines are shared. An operation is
//     double begin = cpu_begin(x); ... if (x->meter) cpu_count(x, &(dgm_meter_row){...}, begin);
// or, if it only moves rows, cpu_moved at its end.
static inline double cpu_begin(const dgm_exec *x)
{
    return x->meter ? dgm_thread_time() : 0;
}

// Adds one call that began at `begin` and ends now; phase and seconds of `what` are filled in.
void cpu_count(dgm_exec *x, const dgm_meter_row *what, double begin);
void cpu_count_moved(dgm_exec *x, double begin, dgm_work work, dgm_mat y, int inputs);

// `inputs`: rows read for each row of y, for the bytes.
static inline void cpu_moved(dgm_exec *x, double begin, dgm_work work, dgm_mat y, int inputs)
{
    if (x->meter) cpu_count_moved(x, begin, work, y, inputs);
}

// Widest input of a linear layer: bounds the scratch of quantised rows.
enum { CPU_MAX_WIDTH = 1 << 16 };

// Input rows as a layer's precision wants them. f32: the rows themselves.
typedef struct cpu_input {
    const void *rows; // float, uint8_t, int16_t or uint16_t (bf16)
    int stride;       // elements between rows
    const float *scale; // [rows]; integers only
    int count;
} cpu_input;

// Rows that norm_for made in the form of their reader, until the next product: row i of y is row i of `bytes`.
typedef struct cpu_ready {
    const dgm_linear *reader; // NULL: there are none
    dgm_mat y;
    cpu_input bytes;
    dgm_arena memory;
    uint8_t *q;   // [CPU_READY_BYTES]
    float *scale; // [CPU_READY_ROWS]
} cpu_ready;

enum { CPU_READY_BYTES = 1 << 20, CPU_READY_ROWS = 4096 };

dgm_status cpu_ready_open(dgm_exec *x, dgm_error *err);
void cpu_ready_close(dgm_exec *x); // accepts what a failed open left

// Bytes between rows for an i8 product: never a multiple of 512, or the rows of a tile (16, and more than one tile)
// would fall into the same few sets of the first cache.
int cpu_stride_i8(int cols);

// Quantises the rows where the precision asks for it, into the worker's arena (the caller resets).
cpu_input cpu_prepare(dgm_exec *x, const dgm_linear *w, dgm_mat in);
size_t cpu_prepare_bytes(int rows);

// Columns n_begin .. n_end of act(in W^T + b) + residual for rows first .. first + m - 1 of the
// input; c and residual are addressed as in dgm_gemm_f32_args.
typedef struct cpu_product {
    float *c;
    int ldc;
    const float *residual;
    int ldr;
    int first, m, n_begin, n_end;
    dgm_act act;
    uint8_t *q; // i8 alone: rows for another product instead of c, by its scale q_scale
    int ldq;
    float q_scale;
} cpu_product;

void cpu_multiply(const dgm_backend *b, const dgm_linear *w, const cpu_input *in,
                  const cpu_product *p);
// The same, its columns shared with whoever helps: the same bits.
void cpu_multiply_shared(dgm_exec *x, const dgm_linear *w, const cpu_input *in, const cpu_product *p);
// About how many nanoseconds one thread takes for m rows and so many columns: to decide whether to share.
double cpu_product_time(const dgm_linear *w, int m, int columns);
// As cpu_multiply for outputs ids[0 .. count) of a layer with rows (p's columns are not looked at).
void cpu_multiply_listed(const dgm_backend *b, const dgm_linear *w, const cpu_input *in,
                         const cpu_product *p, const int32_t *ids, int count);
// Fills a gathered block with the columns of its candidates, unless it was.
void cpu_gathered_make(dgm_exec *x, dgm_gathered *g);
// One product of m rows and `columns` wanted columns, of which `walked` were multiplied.
void cpu_count_product(dgm_exec *x, const dgm_linear *w, int m, int columns, int walked,
                       double begin);

#endif
