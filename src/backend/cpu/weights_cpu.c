// SPDX-License-Identifier: MIT
// CPU backend: opening, loading and packing of weights.
//
// Linear layers are packed panel by panel (DGM_GEMM_COLUMNS outputs at a time), so that loading
// needs one panel of f32 beside the packed copy, whatever the stored type. Embeddings stay in the
// mapped file: only the rows that a text uses are ever touched.
#include <stdio.h>
#include <string.h>

#include "backend/cpu/cpu_int.h"
#include "base/mem.h"
#include "format/modelfile.h"

dgm_status dgm_backend_open(dgm_backend **out, const char *name, const char *level, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(strcmp(name, "cpu") != 0, err, DGM_ERR_UNSUPPORTED,
                "unknown device '%s': this build has cpu", name);
    unsigned flags = 0;
    DGM_TRY(dgm_cpu_limit(level, &flags, err));
    dgm_backend *b = dgm_calloc(1, sizeof *b);
    if (!b) return dgm_no_memory(err);
    b->flags = flags;
    dgm_kernels_init(&b->k, flags);
    *out = b;
    return DGM_OK;
}

void dgm_backend_close(dgm_backend **b)
{
    dgm_free(*b);
    *b = NULL;
}

const char *dgm_backend_describe(const dgm_backend *b, char *buffer, size_t size)
{
    char kernels[256];
    snprintf(buffer, size, "cpu %s: %s", dgm_cpu_level_name(b->flags),
             dgm_kernels_describe(&b->k, kernels, sizeof kernels));
    return buffer;
}

// Sums up the sizes of the stacked parts; false if their inputs differ or the sum overflows.
static bool stacked_shape(const dgm_linear_part *parts, int count, int *rows, int *cols)
{
    int64_t total = 0;
    for (int i = 0; i < count; i++) {
        if (parts[i].weight->cols != parts[0].weight->cols) return false;
        total += parts[i].weight->rows;
    }
    if (count < 1 || total > INT32_MAX || total < 1 || parts[0].weight->cols < 1) return false;
    *rows = (int)total;
    *cols = parts[0].weight->cols;
    return true;
}

static bool any_bias(const dgm_linear_part *parts, int count)
{
    for (int i = 0; i < count; i++)
        if (parts[i].bias) return true;
    return false;
}

// Row `row` of the stack into out.
static void stacked_row(const dgm_linear_part *parts, int row, float *out)
{
    while (row >= parts->weight->rows) row -= parts++->weight->rows;
    dgm_tensor_row_f32(parts->weight, row, out);
}

static void copy_bias(dgm_linear *l, const dgm_linear_part *parts, int count)
{
    float *to = l->bias;
    for (int i = 0; i < count; i++) {
        size_t bytes = (size_t)parts[i].weight->rows * sizeof(float);
        if (parts[i].bias)
            memcpy(to, parts[i].bias, bytes);
        else
            memset(to, 0, bytes);
        to += parts[i].weight->rows;
    }
}

dgm_status dgm_linear_load(dgm_backend *b, const dgm_linear_part *parts, int count,
                           dgm_precision precision, dgm_linear **out, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(precision != DGM_PRECISION_F32, err, DGM_ERR_UNSUPPORTED,
                "this build computes in f32 only, not %s", dgm_precision_names[precision]);
    int rows, cols;
    DGM_FAIL_IF(!stacked_shape(parts, count, &rows, &cols), err, DGM_ERR_FORMAT,
                "tensor '%s' does not fit its neighbours", parts[0].weight->name);
    const dgm_gemm_f32_ops *gemm = &b->k.gemm_f32;
    size_t panel_bytes = gemm->packed_size(DGM_GEMM_COLUMNS, cols);
    float *panel = dgm_malloc((size_t)DGM_GEMM_COLUMNS * (size_t)cols * sizeof(float));
    dgm_linear *l = dgm_calloc(1, sizeof *l);
    if (!panel || !l) goto no_memory;
    l->rows = rows;
    l->cols = cols;
    l->packed_bytes = gemm->packed_size(rows, cols);
    l->packed = dgm_malloc(l->packed_bytes);
    if (!l->packed) goto no_memory;
    if (any_bias(parts, count)) {
        l->bias = dgm_malloc((size_t)rows * sizeof(float));
        if (!l->bias) goto no_memory;
        copy_bias(l, parts, count);
    }
    for (int first = 0; first < rows; first += DGM_GEMM_COLUMNS) {
        int n = rows - first < DGM_GEMM_COLUMNS ? rows - first : DGM_GEMM_COLUMNS;
        for (int i = 0; i < n; i++) stacked_row(parts, first + i, panel + (size_t)i * (size_t)cols);
        char *to = (char *)l->packed + (size_t)(first / DGM_GEMM_COLUMNS) * panel_bytes;
        gemm->pack(to, panel, n, cols, cols);
    }
    dgm_free(panel);
    *out = l;
    return DGM_OK;

no_memory:
    dgm_free(panel);
    dgm_linear_free(b, &l);
    return dgm_no_memory(err);
}

void dgm_linear_free(dgm_backend *b, dgm_linear **l)
{
    (void)b;
    if (!*l) return;
    dgm_free((*l)->packed);
    dgm_free((*l)->bias);
    dgm_free(*l);
    *l = NULL;
}

int dgm_linear_rows(const dgm_linear *l)
{
    return l->rows;
}

int dgm_linear_cols(const dgm_linear *l)
{
    return l->cols;
}

size_t dgm_linear_bytes(const dgm_linear *l)
{
    return l->packed_bytes + (l->bias ? (size_t)l->rows * sizeof(float) : 0);
}

dgm_status dgm_embedding_load(dgm_backend *b, const dgm_tensor *table, dgm_embedding **out,
                              dgm_error *err)
{
    (void)b;
    *out = dgm_calloc(1, sizeof **out);
    if (!*out) return dgm_no_memory(err);
    (*out)->table = table;
    return DGM_OK;
}

void dgm_embedding_free(dgm_backend *b, dgm_embedding **e)
{
    (void)b;
    dgm_free(*e);
    *e = NULL;
}

dgm_status dgm_vector_from(dgm_backend *b, const float *data, int rows, int cols, dgm_vector **out,
                           dgm_error *err)
{
    (void)b;
    *out = NULL;
    size_t bytes = (size_t)rows * (size_t)cols * sizeof(float);
    dgm_vector *v = dgm_calloc(1, sizeof *v);
    if (v) v->data = dgm_malloc(bytes);
    if (!v || !v->data) {
        dgm_free(v);
        return dgm_no_memory(err);
    }
    memcpy(v->data, data, bytes);
    v->rows = rows;
    v->cols = cols;
    *out = v;
    return DGM_OK;
}

void dgm_vector_free(dgm_backend *b, dgm_vector **v)
{
    (void)b;
    if (*v) dgm_free((*v)->data);
    dgm_free(*v);
    *v = NULL;
}
