// SPDX-License-Identifier: MIT
// CPU backend: layers that lie packed in the model file (docs/internals/FORMAT.md, 1.3), which are used where they are.
//
// Pages of a mapped file are shared by all processes that use it, and nothing is read before it is multiplied with.
// What is packed must be what is stored: that the sizes agree, and the panels in which the parts begin and end, is seen
// here, at little cost. A file whose layers do not agree, e.g. because another program changed some weights, is packed
// as if it had none.
#include <string.h>

#include "backend/cpu/cpu_private.h"
#include "base/mem.h"

enum { PANEL = CPU_PANEL, ALIGNED = 64 };

static bool all_i8(const dgm_linear_part *parts, int count)
{
    for (int i = 0; i < count; i++)
        if (parts[i].weight->type != DGM_TYPE_I8 || !parts[i].weight->scale) return false;
    return true;
}

// Is the panel of this row as it is packed in the file?
static bool same_panel(const dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts, int row,
                       const cpu_panel *buffers, void *spare, const char *packed)
{
    const size_t bytes = b->k.gemm_i8.packed_size(PANEL, l->cols);
    const int first = row / PANEL * PANEL, n = l->rows - first < PANEL ? l->rows - first : PANEL;
    return cpu_pack_panel_i8(b, l, parts, first, n, buffers, spare) &&
           memcmp(spare, packed + (size_t)(row / PANEL) * bytes, bytes) == 0;
}

static bool same_numbers(const dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts, int count,
                         const char *packed)
{
    const cpu_panel buffers = {.quantised = dgm_malloc((size_t)PANEL * (size_t)l->cols)};
    void *spare = dgm_malloc(b->k.gemm_i8.packed_size(PANEL, l->cols));
    bool same = buffers.quantised && spare;
    for (int i = 0, row = 0; same && i < count; row += parts[i++].weight->rows)
        same = same_panel(b, l, parts, row, &buffers, spare, packed) &&
               same_panel(b, l, parts, row + parts[i].weight->rows - 1, &buffers, spare, packed);
    dgm_free(buffers.quantised);
    dgm_free(spare);
    return same;
}

const void *cpu_packed_in_file(const dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts, int count)
{
    const dgm_tensor *t = parts[0].packed;
    if (!t || !parts[0].layout || l->precision != DGM_PRECISION_I8 || !all_i8(parts, count)) return NULL;
    if (strcmp(parts[0].layout, b->k.gemm_i8.layout) != 0 || t->bytes != l->packed_bytes) return NULL;
    if ((uintptr_t)t->data % ALIGNED != 0 || !same_numbers(b, l, parts, count, t->data)) return NULL;
    float *scale = l->scales;
    for (int i = 0; i < count; scale += parts[i++].weight->rows)
        memcpy(scale, parts[i].weight->scale->data, (size_t)parts[i].weight->rows * sizeof *scale);
    return t->data;
}

// ---- for files ------------------------------------------------------------------------------------

const char *dgm_packed_layout(const char *level, dgm_error *err)
{
    unsigned flags = 0;
    dgm_kernels k;
    dgm_error other;
    const dgm_status st = dgm_cpu_limit(level, &flags, &other);
    if (st == DGM_ERR_ARGUMENT) {
        dgm_fail(err, st, "%s", other.text);
        return NULL;
    }
    dgm_kernels_init(&k, st == DGM_OK ? flags : DGM_CPU_C); // what this CPU lacks has the layout of the others
    return k.gemm_i8.layout;
}

size_t dgm_packed_size(int rows, int cols)
{
    dgm_kernels k;
    dgm_kernels_init(&k, DGM_CPU_C);
    return k.gemm_i8.packed_size(rows, cols);
}

dgm_status dgm_packed_fill(const dgm_linear_part *parts, int count, void *out, dgm_error *err)
{
    dgm_backend b = {.ops = &cpu_ops};
    dgm_linear l = {.precision = DGM_PRECISION_I8, .cols = parts[0].weight->cols, .packed = out};
    dgm_kernels_init(&b.k, DGM_CPU_C);
    for (int i = 0; i < count; i++) l.rows += parts[i].weight->rows;
    const size_t panel = cpu_panel_elements(l.cols);
    l.scales = dgm_malloc((size_t)l.rows * sizeof(float));
    const cpu_panel buffers = {dgm_malloc(panel * sizeof(float)), dgm_malloc(panel * sizeof(int16_t))};
    dgm_status st = l.scales && buffers.real && buffers.quantised ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) st = cpu_pack_layer(&b, &l, parts, count, &buffers, err);
    dgm_free(l.scales);
    dgm_free(buffers.real);
    dgm_free(buffers.quantised);
    return st;
}
