// SPDX-License-Identifier: MIT
// CPU backend: columns of an output layer for one sentence's candidates.
//
// A gathered block is a layer of its own, as wide as the list of candidates, whose rows are made from
// the stored tensors in the very way that loading makes them (weights_cpu.c), so that the packed
// numbers are the layer's. Rows are read where they lie by rows: taking them out of the packed
// layer would touch a cache line for every four bytes, sixteen times as many.
//
//     packed   panels of DGM_GEMM_COLUMNS columns
//     bias     [capacity], as the layer has it
//     scales   [capacity], i8
//
// vocabsel/ opens one block per sentence that may be inside and names its candidates when a sentence enters. rank_cpu.c
// has the block filled (cpu_gathered_make) when it first multiplies with it: among many sentences that is seldom the
// best way (rank_lists_cpu.c).
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu_private.h"
#include "format/quantize.h"

enum { PANEL = DGM_GEMM_COLUMNS };

static size_t panel_bytes(const dgm_backend *b, const dgm_linear *w)
{
    return cpu_packed_size(b, w->precision, PANEL, w->cols);
}

static size_t packed_bytes(const dgm_backend *b, const dgm_linear *w, int columns)
{
    return ((size_t)columns + PANEL - 1) / PANEL * panel_bytes(b, w);
}

// One panel of rows, real and quantised, while it is packed.
static size_t scratch_elements(const dgm_linear *w)
{
    return cpu_panel_elements(w->cols);
}

dgm_bytes cpu_gathered_bytes(const dgm_backend *b, const dgm_linear *w, int capacity, int count)
{
    size_t one = dgm_arena_cost(packed_bytes(b, w, capacity)) +
                 2 * dgm_arena_cost((size_t)capacity * sizeof(float)) +
                 dgm_arena_cost((size_t)capacity * sizeof(int32_t));
    return (dgm_bytes){.host = (size_t)count * dgm_arena_cost(sizeof(dgm_gathered)),
                       .device = (size_t)count * one +
                                 dgm_arena_cost(scratch_elements(w) * sizeof(float)) +
                                 dgm_arena_cost(scratch_elements(w) * sizeof(int16_t))};
}

// What says where a block lies is kept apart from it: nothing touches the pages of a block before a sentence fills it.
dgm_gathered *cpu_gathered_open(dgm_exec *x, const dgm_linear *w, int capacity)
{
    dgm_arena *a = &x->device;
    dgm_gathered *g = dgm_arena_alloc(&x->host, sizeof *g);
    if (!g) return NULL;
    *g = (dgm_gathered){.ops = &cpu_ops, .from = w, .capacity = capacity, .columns = *w};
    dgm_linear *c = &g->columns;
    c->rows = 0;
    g->ids = DGM_ARENA_ARRAY(a, int32_t, (size_t)capacity);
    c->packed = dgm_arena_alloc(a, packed_bytes(x->backend, w, capacity));
    if (w->bias) c->bias = DGM_ARENA_ARRAY(a, float, (size_t)capacity);
    if (w->scales) c->scales = DGM_ARENA_ARRAY(a, float, (size_t)capacity);
    return g->ids && c->packed && (!w->bias || c->bias) && (!w->scales || c->scales) ? g : NULL;
}

// The tensor that holds an output, and its row there.
static const dgm_tensor *find_row(const dgm_linear *w, int *row)
{
    const dgm_tensor *const *t = w->tensors;
    while (*row >= (*t)->rows) *row -= (*t++)->rows;
    return *t;
}

static void take_row(const dgm_linear *w, int row, float *out)
{
    const dgm_tensor *t = find_row(w, &row);
    dgm_tensor_row_f32(t, row, out);
}

static void take_row_i8(const dgm_linear *w, int row, float *real, int8_t *out)
{
    const dgm_tensor *t = find_row(w, &row);
    float scale; // the layer's: a row's scale is found in the same way
    if (t->type == DGM_TYPE_I8) {
        memcpy(out, (const int8_t *)t->data + (size_t)row * (size_t)t->cols, (size_t)t->cols);
        return;
    }
    dgm_tensor_row_f32(t, row, real);
    dgm_quantize_i8(real, 1, w->cols, out, &scale);
}

static void take_row_i16(const dgm_linear *w, int row, float *real, int16_t *out)
{
    take_row(w, row, real);
    for (int j = 0; j < w->cols; j++) out[j] = (int16_t)lrintf(real[j] / w->scale);
}

static void take_row_bf16(const dgm_kernels *k, const dgm_linear *w, int row, float *real, uint16_t *out)
{
    take_row(w, row, real);
    k->round_bf16(out, real, w->cols);
}

// Panels of n columns each, by way of scratch rows.
static void pack_panels(dgm_exec *x, dgm_gathered *g, const int32_t *ids, int count)
{
    const dgm_linear *w = g->from;
    const dgm_kernels *k = &x->backend->k;
    const size_t cols = (size_t)w->cols, bytes = panel_bytes(x->backend, w);
    float *real = DGM_ARENA_ARRAY(&x->device, float, scratch_elements(w));
    int16_t *quantised = DGM_ARENA_ARRAY(&x->device, int16_t, scratch_elements(w));
    const int depth = dgm_gemm_bf16_depth(w->cols);
    char *to = g->columns.packed;
    for (int first = 0; first < count; first += PANEL, to += bytes) {
        int n = count - first < PANEL ? count - first : PANEL;
        for (int i = 0; i < n; i++) {
            if (w->precision == DGM_PRECISION_I8)
                take_row_i8(w, ids[first + i], real, (int8_t *)quantised + (size_t)i * cols);
            else if (w->precision == DGM_PRECISION_I16)
                take_row_i16(w, ids[first + i], real, quantised + (size_t)i * cols);
            else if (w->precision == DGM_PRECISION_BF16)
                take_row_bf16(k, w, ids[first + i], real, (uint16_t *)quantised + i * depth);
            else
                take_row(w, ids[first + i], real + (size_t)i * cols);
        }
        if (w->precision == DGM_PRECISION_I8)
            k->gemm_i8.pack(to, (int8_t *)quantised, NULL, n, w->cols, w->cols);
        else if (w->precision == DGM_PRECISION_I16)
            k->gemm_i16.pack(to, quantised, NULL, n, w->cols, w->cols);
        else if (w->precision == DGM_PRECISION_BF16)
            k->gemm_bf16.pack(to, (uint16_t *)quantised, NULL, n, w->cols, depth);
        else
            k->gemm_f32.pack(to, real, n, w->cols, w->cols);
    }
}

void cpu_gather_columns(dgm_exec *x, dgm_gathered *g, const int32_t *ids, int count)
{
    (void)x;
    memcpy(g->ids, ids, (size_t)count * sizeof *ids);
    g->columns.rows = count;
    g->made = false;
}

void cpu_gathered_make(dgm_exec *x, dgm_gathered *g)
{
    if (g->made) return;
    const dgm_linear *w = g->from;
    const dgm_tensor *only = w->tensors[1] ? NULL : w->tensors[0];
    const int32_t *ids = g->ids;
    const int count = g->columns.rows;
    double begin = cpu_begin(x);
    g->made = true;
    for (int i = 0; w->bias && i < count; i++) g->columns.bias[i] = w->bias[ids[i]];
    for (int i = 0; w->scales && i < count; i++) g->columns.scales[i] = w->scales[ids[i]];
    if (w->precision == DGM_PRECISION_I8 && only && only->type == DGM_TYPE_I8) {
        x->backend->k.gemm_i8.pack(g->columns.packed, only->data, ids, count, w->cols, w->cols);
    } else if (w->precision == DGM_PRECISION_BF16 && only && only->type == DGM_TYPE_BF16) {
        x->backend->k.gemm_bf16.pack(g->columns.packed, only->data, ids, count, w->cols, w->cols);
    } else {
        size_t mark = dgm_arena_mark(&x->device);
        pack_panels(x, g, ids, count);
        dgm_arena_reset(&x->device, mark);
    }
    if (x->meter) {
        dgm_meter_row what = {.work = DGM_WORK_ROWS,
                              .rows = (uint64_t)count,
                              .other_bytes = 2 * packed_bytes(x->backend, w, count)};
        cpu_count(x, &what, begin);
    }
}
