// SPDX-License-Identifier: MIT
// CPU backend: the worker and the coarse operations, each a loop over rows of one kernel.
//
// Scratch that an operation needs is taken from the worker's device memory, above everything else,
// and given back before it returns.
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu_private.h"

// Rows of one product: their quantised form then stays in the cache, and its scratch is bounded.
enum { LINEAR_ROWS = 256 };
// Rows that pass through both layers of a feed-forward network at a time.
enum { FFN_ROWS = 64 };

// Scratch for attention weights; states and rank bring their own sizes.
enum { ATTEND_SCRATCH = 8 << 20 };

dgm_status cpu_exec_open(dgm_exec *x, size_t device_bytes, dgm_error *err)
{
    DGM_TRY(dgm_arena_init(&x->device,
                           device_bytes + ATTEND_SCRATCH + cpu_prepare_bytes(LINEAR_ROWS), err));
    return cpu_ready_open(x, err);
}

// Operations are done when they return.
void cpu_start(dgm_exec *x, int rows)
{
    (void)x;
    (void)rows;
}

void cpu_sync(dgm_exec *x)
{
    (void)x;
}

void cpu_exec_close(dgm_exec *x)
{
    cpu_ready_close(x);
    dgm_arena_free(&x->device);
}

// Rows are padded to whole cache lines, and never a multiple of 1 KiB apart: columns of many rows
// would otherwise fall into the same few cache sets.
static int row_stride(int cols)
{
    int stride = (cols + 15) / 16 * 16;
    return stride % 256 == 0 ? stride + 16 : stride;
}

size_t cpu_mat_bytes(const dgm_backend *b, int rows, int cols)
{
    (void)b;
    return dgm_arena_cost((size_t)rows * (size_t)row_stride(cols) * sizeof(float));
}

dgm_mat cpu_mat(dgm_exec *x, int rows, int cols)
{
    dgm_mat m = {NULL, rows, cols, row_stride(cols), sizeof(float)};
    m.data = dgm_arena_array(&x->device, (size_t)rows * (size_t)m.stride, sizeof(float));
    return m;
}

int cpu_cache_elem(dgm_precision precision)
{
    // Of bf16, halves would lack the range.
    return precision == DGM_PRECISION_F32 || precision == DGM_PRECISION_BF16 ? sizeof(float) : sizeof(uint16_t);
}

size_t cpu_cache_bytes(const dgm_backend *b, int rows, int cols, dgm_precision precision)
{
    (void)b;
    return dgm_arena_cost((size_t)rows * (size_t)row_stride(cols) * (size_t)cpu_cache_elem(precision));
}

dgm_mat cpu_cache(dgm_exec *x, int rows, int cols, dgm_precision precision)
{
    dgm_mat m = {NULL, rows, cols, row_stride(cols), cpu_cache_elem(precision)};
    m.data = dgm_arena_array(&x->device, (size_t)rows * (size_t)m.stride, (size_t)m.elem);
    return m;
}

static cpu_product product_of(dgm_mat y, const dgm_mat *residual, int row, int m,
                              const dgm_linear *w)
{
    return (cpu_product){
        .c = cpu_row(y, row),
        .ldc = y.stride,
        .residual = residual ? cpu_row(*residual, row) : NULL,
        .ldr = residual ? residual->stride : 0,
        .m = m,
        .n_end = w->rows,
    };
}

// again: more rows of an operation whose first ones have brought W into a near cache; its bytes count once.
static void multiply_counted(dgm_exec *x, const dgm_linear *w, const cpu_input *in,
                             const cpu_product *p, bool again)
{
    double begin = cpu_begin(x);
    cpu_multiply_shared(x, w, in, p);
    if (x->meter) cpu_count_product(x, w, p->m, w->rows, again ? 0 : w->rows, begin);
}

// Rows that were made for a product are as good as gone once it is done: what they were made of may change.
static void forget_ready(const dgm_exec *x)
{
    ((cpu_ready *)x->ready)->reader = NULL;
}

static void linear(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_linear *w, dgm_act act,
                   const dgm_mat *residual, bool again)
{
    for (int row = 0; row < in.rows; row += LINEAR_ROWS) {
        int m = in.rows - row < LINEAR_ROWS ? in.rows - row : LINEAR_ROWS;
        size_t mark = dgm_arena_mark(&x->device);
        cpu_input input = cpu_prepare(x, w, dgm_mat_rows(in, row, m));
        cpu_product p = product_of(y, residual, row, m, w);
        p.act = act;
        multiply_counted(x, w, &input, &p, again || row > 0);
        dgm_arena_reset(&x->device, mark);
    }
}

void cpu_linear(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_linear *w, dgm_act act,
                   const dgm_mat *residual)
{
    linear(x, y, in, w, act, residual, false);
    forget_ready(x);
}

// y = w(act(v(in))) + residual
typedef struct cpu_ffn {
    dgm_mat y, in;
    const dgm_linear *v, *w;
    dgm_act act;
    const dgm_mat *residual;
} cpu_ffn;

// Rows of bytes that a product fills as the input of w: the padding is set here.
static cpu_input rows_for(dgm_exec *x, const dgm_linear *w, int m, uint8_t **q)
{
    int padding = dgm_gemm_i8_depth(w->cols) - w->cols, stride = cpu_stride_i8(w->cols);
    float *scale = DGM_ARENA_ARRAY(&x->device, float, (size_t)m);
    *q = dgm_arena_array(&x->device, (size_t)m, (size_t)stride);
    for (int i = 0; i < m; i++) {
        scale[i] = w->input_scale;
        memset(*q + (size_t)i * (size_t)stride + w->cols, 128, (size_t)padding);
    }
    return (cpu_input){*q, stride, scale, m};
}

// The same m rows through both layers, `between` them in f32.
static void feed_rows(dgm_exec *x, const cpu_ffn *f, int row, int m, dgm_mat between)
{
    const dgm_mat y = dgm_mat_rows(f->y, row, m);
    dgm_mat more = {0};
    if (f->residual) more = dgm_mat_rows(*f->residual, row, m);
    linear(x, between, dgm_mat_rows(f->in, row, m), f->v, f->act, NULL, row > 0);
    linear(x, y, between, f->w, DGM_ACT_NONE, f->residual ? &more : NULL, row > 0);
}

// .. and in bytes.
static void feed_rows_i8(dgm_exec *x, const cpu_ffn *f, int row, int m)
{
    size_t mark = dgm_arena_mark(&x->device);
    cpu_input first = cpu_prepare(x, f->v, dgm_mat_rows(f->in, row, m));
    cpu_product p = {.m = m, .n_end = f->v->rows, .act = f->act, .q_scale = f->w->input_scale};
    cpu_input second = rows_for(x, f->w, m, &p.q);
    p.ldq = second.stride;
    multiply_counted(x, f->v, &first, &p, row > 0);
    p = product_of(f->y, f->residual, row, m, f->w);
    multiply_counted(x, f->w, &second, &p, row > 0);
    dgm_arena_reset(&x->device, mark);
}

// Few rows at a time, in the same memory: what lies between the layers is four to six times as wide as the rows
// and would be written to the third cache and read again.
void cpu_feed_forward(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_linear *v, dgm_act act,
                         dgm_mat inner, const dgm_linear *w, const dgm_mat *residual)
{
    const cpu_ffn f = {y, in, v, w, act, residual};
    bool bytes = v->precision == DGM_PRECISION_I8 && w->precision == DGM_PRECISION_I8 &&
                 w->input_scale > 0 && !x->observer;
    for (int row = 0; row < in.rows; row += FFN_ROWS) {
        int m = in.rows - row < FFN_ROWS ? in.rows - row : FFN_ROWS;
        if (bytes)
            feed_rows_i8(x, &f, row, m);
        else
            feed_rows(x, &f, row, m, dgm_mat_rows(inner, 0, m));
    }
    forget_ready(x);
}

// One token's vector: the table's row in whatever type it is stored.
static void embed_token(const dgm_exec *x, float *y, const dgm_tensor *t, int32_t id, float scale,
                        const float *add, float *row)
{
    const dgm_kernels *k = &x->backend->k;
    size_t first = (size_t)id * (size_t)t->cols;
    if (t->type == DGM_TYPE_F32) {
        k->gather_f32(y, (const float *)t->data + first, add, t->cols, scale);
    } else if (t->type == DGM_TYPE_I8) {
        float row_scale = ((const float *)t->scale->data)[id];
        k->gather_i8(y, (const int8_t *)t->data + first, row_scale, add, t->cols, scale);
    } else {
        dgm_tensor_row_f32(t, id, row);
        k->gather_f32(y, row, add, t->cols, scale);
    }
}

void cpu_embed(dgm_exec *x, dgm_mat y, const dgm_embedding *table, const int32_t *ids,
                  float scale, const dgm_vector *start, const dgm_vector *positions,
                  const int32_t *pos)
{
    double begin = cpu_begin(x);
    const dgm_tensor *t = table->table;
    size_t mark = dgm_arena_mark(&x->device);
    float *row = dgm_arena_array(&x->device, (size_t)t->cols, sizeof(float));
    for (int i = 0; i < y.rows; i++) {
        const float *add = NULL;
        float *to = cpu_row(y, i);
        if (positions) add = positions->data + (size_t)pos[i] * (size_t)positions->cols;
        if (ids[i] >= 0) {
            embed_token(x, to, t, ids[i], scale, add, row);
            continue;
        }
        if (start)
            memcpy(to, start->data, (size_t)y.cols * sizeof(float));
        else
            memset(to, 0, (size_t)y.cols * sizeof(float));
        if (add) x->backend->k.add_f32(to, to, add, y.cols);
    }
    dgm_arena_reset(&x->device, mark);
    cpu_moved(x, begin, DGM_WORK_EMBED, y, positions ? 2 : 1);
}

void cpu_norm(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_vector *gamma,
                 const dgm_vector *beta, float eps)
{
    cpu_norm_for(x, y, in, NULL, &(dgm_norm){gamma, beta, eps, false}, NULL);
}

void cpu_rms_norm(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_vector *gamma, float eps)
{
    cpu_norm_for(x, y, in, NULL, &(dgm_norm){gamma, NULL, eps, true}, NULL);
}

void cpu_act(dgm_exec *x, dgm_mat y, dgm_mat in, dgm_act act)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < y.rows; i++)
        x->backend->k.act_f32(cpu_row(y, i), cpu_row(in, i), y.cols, act);
    cpu_moved(x, begin, DGM_WORK_ROWS, y, 1);
}

void cpu_add(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < y.rows; i++)
        x->backend->k.add_f32(cpu_row(y, i), cpu_row(a, i), cpu_row(b, i), y.cols);
    cpu_moved(x, begin, DGM_WORK_ROWS, y, 2);
}

void cpu_add_vector(dgm_exec *x, dgm_mat y, dgm_mat a, const dgm_vector *v)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < y.rows; i++)
        x->backend->k.add_f32(cpu_row(y, i), cpu_row(a, i), v->data, y.cols);
    cpu_moved(x, begin, DGM_WORK_ROWS, y, 1);
}

void cpu_maxout(dgm_exec *x, dgm_mat y, dgm_mat in)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < y.rows; i++) {
        const float *from = cpu_row(in, i);
        float *to = cpu_row(y, i);
        for (int j = 0; j < y.cols; j++)
            to[j] = from[2 * j] > from[2 * j + 1] ? from[2 * j] : from[2 * j + 1];
    }
    cpu_moved(x, begin, DGM_WORK_ROWS, y, 2);
}

void cpu_zero(dgm_exec *x, dgm_mat y)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < y.rows; i++) memset(cpu_row(y, i), 0, (size_t)y.cols * sizeof(float));
    cpu_moved(x, begin, DGM_WORK_ROWS, y, 0);
}

void cpu_gather(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *index)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < y.rows; i++)
        memcpy(cpu_row(y, i), cpu_row(in, index ? index[i] : i), (size_t)y.cols * sizeof(float));
    cpu_moved(x, begin, DGM_WORK_ROWS, y, 1);
}

void cpu_scatter(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *index)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < in.rows; i++) {
        void *to = dgm_mat_rows(y, index[i], 1).data;
        if (y.elem == sizeof(uint16_t))
            x->backend->k.half_f32(to, cpu_row(in, i), in.cols);
        else
            memcpy(to, cpu_row(in, i), (size_t)in.cols * sizeof(float));
    }
    cpu_moved(x, begin, DGM_WORK_ROWS, in, 1);
}

void cpu_copy(dgm_exec *x, dgm_mat y, const int32_t *to, dgm_mat in, const int32_t *from, int count)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < count; i++)
        memcpy(cpu_row(y, to[i]), cpu_row(in, from[i]), (size_t)y.cols * sizeof(float));
    cpu_moved(x, begin, DGM_WORK_ROWS, dgm_mat_rows(y, 0, count), 1);
}

void cpu_zero_rows(dgm_exec *x, const dgm_mat *y, int matrices, const int32_t *rows, int count)
{
    for (int m = 0; m < matrices; m++) {
        double begin = cpu_begin(x);
        for (int i = 0; i < count; i++)
            memset(cpu_row(y[m], rows[i]), 0, (size_t)y[m].cols * sizeof(float));
        cpu_moved(x, begin, DGM_WORK_ROWS, dgm_mat_rows(y[m], 0, count), 0);
    }
}

void cpu_mean(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *first, const int32_t *count)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < y.rows; i++) {
        float *to = cpu_row(y, i);
        memset(to, 0, (size_t)y.cols * sizeof(float));
        for (int j = 0; j < count[i]; j++)
            x->backend->k.add_f32(to, to, cpu_row(in, first[i] + j), y.cols);
        float part = 1.0f / (float)(count[i] > 0 ? count[i] : 1);
        for (int j = 0; j < y.cols; j++) to[j] *= part;
    }
    cpu_moved(x, begin, DGM_WORK_ROWS, y, 1);
}

void cpu_gru(dgm_exec *x, dgm_mat out, dgm_mat state, dgm_mat gx, dgm_mat gh)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < out.rows; i++)
        x->backend->k.gru_f32(cpu_row(out, i), cpu_row(state, i), cpu_row(gx, i), cpu_row(gh, i),
                              out.cols);
    cpu_moved(x, begin, DGM_WORK_GATES, out, 7);
}

void cpu_lstm(dgm_exec *x, dgm_mat out, dgm_mat cell_out, dgm_mat cell, dgm_mat gx, dgm_mat gh)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < out.rows; i++)
        x->backend->k.lstm_f32(cpu_row(out, i), cpu_row(cell_out, i), cpu_row(cell, i),
                               cpu_row(gx, i), cpu_row(gh, i), out.cols);
    cpu_moved(x, begin, DGM_WORK_GATES, out, 10);
}

void cpu_ssru(dgm_exec *x, dgm_mat out, dgm_mat cell_out, dgm_mat cell, dgm_mat in, dgm_mat f)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < out.rows; i++)
        x->backend->k.ssru_f32(cpu_row(out, i), cpu_row(cell_out, i), cpu_row(cell, i),
                               cpu_row(in, i), cpu_row(f, i), out.cols);
    cpu_moved(x, begin, DGM_WORK_GATES, out, 4);
}

void cpu_scale(dgm_exec *x, dgm_mat y, dgm_mat in, const float *factor)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < y.rows; i++) {
        const float *from = cpu_row(in, i);
        float *to = cpu_row(y, i);
        for (int j = 0; j < y.cols; j++) to[j] = factor[i] * from[j];
    }
    cpu_moved(x, begin, DGM_WORK_ROWS, y, 1);
}

void cpu_gated_sum(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b, dgm_mat g)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < y.rows; i++) {
        const float *first = cpu_row(a, i), *second = cpu_row(b, i);
        float *gate = cpu_row(g, i), *to = cpu_row(y, i);
        x->backend->k.act_f32(gate, gate, 2 * y.cols, DGM_ACT_SIGMOID);
        for (int j = 0; j < y.cols; j++)
            to[j] = gate[j] * first[j] + gate[y.cols + j] * second[j];
    }
    cpu_moved(x, begin, DGM_WORK_GATES, y, 4);
}

void cpu_gated(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b, dgm_act act)
{
    double begin = cpu_begin(x);
    for (int i = 0; i < y.rows; i++) {
        const float *factor = cpu_row(b, i);
        float *to = cpu_row(y, i);
        x->backend->k.act_f32(to, cpu_row(a, i), y.cols, act);
        for (int j = 0; j < y.cols; j++) to[j] *= factor[j];
    }
    cpu_moved(x, begin, DGM_WORK_GATES, y, 2);
}

void cpu_read(dgm_exec *x, float *host, dgm_mat in)
{
    (void)x;
    for (int i = 0; i < in.rows; i++)
        memcpy(host + (size_t)i * (size_t)in.cols, cpu_row(in, i), (size_t)in.cols * sizeof(float));
}

void cpu_set(dgm_exec *x, dgm_mat tables, int row, const int32_t *ids, const float *values, int count)
{
    (void)x;
    float *to = cpu_row(tables, row);
    for (int i = 0; i < count; i++) to[ids[i]] = values ? values[i] : 0.0f;
}

void cpu_distances(dgm_exec *x, dgm_mat rows, const int32_t *one, const int32_t *two, int count,
                   dgm_distance *out)
{
    (void)x;
    for (int p = 0; p < count; p++) {
        const float *a = cpu_row(rows, one[p]), *b = cpu_row(rows, two[p]);
        dgm_distance sum = {0, 0};
        for (int i = 0; i < rows.cols; i++) {
            const double d = (double)a[i] - (double)b[i];
            sum.apart += d * d;
            sum.length += (double)a[i] * (double)a[i] + (double)b[i] * (double)b[i];
        }
        out[p] = sum;
    }
}

void cpu_write(dgm_exec *x, dgm_mat y, const float *host)
{
    (void)x;
    for (int i = 0; i < y.rows; i++)
        memcpy(cpu_row(y, i), host + (size_t)i * (size_t)y.cols, (size_t)y.cols * sizeof(float));
}
