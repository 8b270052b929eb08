// SPDX-License-Identifier: MIT
// CUDA backend: weights on the device.
//
// A layer is [outputs, inputs] as models store it, each row padded with zeros to a multiple of what
// one tensor instruction takes: that is the order in which products read it, and rows of a list are
// read where they lie. Weights of 8 bits are those that a CPU would have, or halves of the same (ways_cuda.c).
#include <math.h>
#include <string.h>

#include "backend/cuda/cuda_private.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "format/quantize.h"

enum { WIDEST = 1 << 16, STEP = 64 };

dgm_status cuda_upload(dgm_backend *b, void **device, const void *host, size_t bytes, dgm_error *err)
{
    *device = NULL;
    DGM_TRY(cuda_take(b, device, bytes ? bytes : 1, "weights", "a smaller precision", err));
    DGM_TRY(cuda_status(cudaMemcpy(*device, host, bytes, cudaMemcpyHostToDevice), "weights", err));
    // The copy may still be under way, and workers' streams do not wait for it.
    return cuda_status(cudaStreamSynchronize(0), "weights", err);
}

cuda_type cuda_type_of(dgm_precision p)
{
    return p == DGM_PRECISION_F16    ? CUDA_F16
           : p == DGM_PRECISION_BF16 ? CUDA_BF16
           : p == DGM_PRECISION_I8   ? CUDA_I8
                                     : CUDA_F32;
}

int cuda_stride_of(int cols)
{
    return (cols + STEP - 1) / STEP * STEP;
}

static size_t elem_of(cuda_type t)
{
    return t == CUDA_F32 ? sizeof(float) : t == CUDA_I8 ? 1 : sizeof(uint16_t);
}

// ---- rounding on the host -----------------------------------------------------------------------

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

// To nearest even; too large becomes infinity, which the caller refuses.
static uint16_t to_f16(float x)
{
    const uint32_t u = bits_of(x), sign = u >> 16 & 0x8000u;
    const float size = fabsf(x);
    if (!(size < 65520.0f)) return (uint16_t)(sign | (size >= 65520.0f ? 0x7c00u : 0x7e00u));
    if (size < 0x1p-14f) return (uint16_t)(sign | (uint32_t)lrintf(size * 0x1p24f));
    const uint32_t r = (u & 0x7fffffffu) + 0xfffu + (u >> 13 & 1);
    return (uint16_t)(sign | ((r - (112u << 23)) >> 13));
}

// A row in 8 bits; real [cols] is scratch.
static bool put_i8(const dgm_tensor *t, int row, float *real, int8_t *to, float *scale)
{
    const size_t cols = (size_t)t->cols;
    if (t->type == DGM_TYPE_I8) {
        const int8_t *from = (const int8_t *)t->data + (size_t)row * cols;
        for (size_t j = 0; j < cols; j++) to[j] = from[j] < -127 ? -127 : from[j];
        *scale = ((const float *)t->scale->data)[row];
        return true;
    }
    dgm_tensor_row_f32(t, row, real);
    return dgm_quantize_i8(real, 1, t->cols, to, scale);
}

// What 8 bits make of a row, in f32; q [cols] is scratch.
static bool round_row(const dgm_tensor *t, int row, float *real, int8_t *q)
{
    float scale;
    if (!put_i8(t, row, real, q, &scale)) return false;
    for (int j = 0; j < t->cols; j++) real[j] = scale * (float)q[j];
    return true;
}

static bool put_real(const float *real, int cols, cuda_type type, void *to)
{
    for (int j = 0; j < cols; j++) {
        if (!isfinite(real[j])) return false;
        if (type == CUDA_F32) {
            ((float *)to)[j] = real[j];
        } else if (type == CUDA_BF16) {
            ((uint16_t *)to)[j] = dgm_float_to_bf16(real[j]);
        } else {
            if (fabsf(real[j]) >= 65520.0f) return false;
            ((uint16_t *)to)[j] = to_f16(real[j]);
        }
    }
    return true;
}

static bool put_row(const dgm_tensor *t, int row, dgm_precision precision, cuda_type type, float *real, void *to,
                    float *scale)
{
    if (type == CUDA_I8) return put_i8(t, row, real, to, scale);
    if (precision == DGM_PRECISION_I8) {
        int8_t *q = (int8_t *)(void *)(real + t->cols);
        return round_row(t, row, real, q) && put_real(real, t->cols, type, to);
    }
    dgm_tensor_row_f32(t, row, real);
    return put_real(real, t->cols, type, to);
}

dgm_status cuda_make_rows(const dgm_linear_part *parts, int count, dgm_precision precision, cuda_type type,
                          int cols, void *data, float *scales, dgm_error *err)
{
    const size_t stride = (size_t)cuda_stride_of(cols) * elem_of(type);
    float *real = dgm_malloc((size_t)cols * (sizeof *real + 1)); // and bytes of put_row
    if (!real) return dgm_no_memory(err);
    char *to = data;
    dgm_status st = DGM_OK;
    for (int p = 0; p < count && st == DGM_OK; p++)
        for (int i = 0; i < parts[p].weight->rows && st == DGM_OK; i++, to += stride) {
            memset(to, 0, stride);
            if (!put_row(parts[p].weight, i, precision, type, real, to, scales ? scales++ : NULL))
                st = dgm_fail(err, DGM_ERR_FORMAT,
                              "tensor '%s' holds numbers that %s cannot: use --precision f32",
                              parts[p].weight->name, dgm_precision_names[precision]);
        }
    dgm_free(real);
    return st;
}

// ---- layers -------------------------------------------------------------------------------------

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
    return *cols <= WIDEST;
}

static float stacked_input_scale(const dgm_linear_part *parts, int count)
{
    float scale = 0;
    for (int i = 0; i < count; i++) {
        if (!(parts[i].input_scale > 0)) return 0;
        scale = fmaxf(scale, parts[i].input_scale);
    }
    return scale;
}

static dgm_status load_bias(dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts, int count, dgm_error *err)
{
    bool any = false;
    for (int i = 0; i < count; i++) any = any || parts[i].bias;
    if (!any) return DGM_OK;
    float *bias = dgm_calloc((size_t)l->rows, sizeof *bias), *to = bias;
    if (!bias) return dgm_no_memory(err);
    for (int i = 0; i < count; to += parts[i++].weight->rows)
        if (parts[i].bias)
            memcpy(to, parts[i].bias, (size_t)parts[i].weight->rows * sizeof *to);
    const dgm_status st =
        cuda_upload(b, (void **)&l->bias, bias, (size_t)l->rows * sizeof *bias, err);
    dgm_free(bias);
    return st;
}

static dgm_status load_layer(dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts, int count,
                             dgm_error *err)
{
    l->tensors = dgm_calloc((size_t)count + 1, sizeof *l->tensors);
    l->bytes = (size_t)l->rows * (size_t)l->stride * elem_of(l->type);
    void *data = dgm_malloc(l->bytes);
    float *scales = l->type == CUDA_I8 ? dgm_malloc((size_t)l->rows * sizeof *scales) : NULL;
    dgm_status st = l->tensors && data && (scales || l->type != CUDA_I8) ? DGM_OK : dgm_no_memory(err);
    for (int i = 0; st == DGM_OK && i < count; i++) l->tensors[i] = parts[i].weight;
    if (st == DGM_OK) st = cuda_make_rows(parts, count, l->precision, l->type, l->cols, data, scales, err);
    if (st == DGM_OK) st = cuda_upload(b, &l->data, data, l->bytes, err);
    if (st == DGM_OK && scales)
        st = cuda_upload(b, (void **)&l->scales, scales, (size_t)l->rows * sizeof *scales, err);
    if (st == DGM_OK) st = load_bias(b, l, parts, count, err);
    if (b->static_scales) l->input_scale = stacked_input_scale(parts, count);
    dgm_free(data);
    dgm_free(scales);
    return st;
}

dgm_status cuda_linear_load(dgm_backend *b, const dgm_linear_part *parts, int count,
                            dgm_precision precision, dgm_linear **out, dgm_error *err)
{
    int rows, cols;
    *out = NULL;
    DGM_FAIL_IF(!stacked_shape(parts, count, &rows, &cols), err, DGM_ERR_FORMAT,
                "the shape of tensor '%s' does not fit the tensors stacked with it",
                parts[0].weight->name);
    DGM_TRY(cuda_status(cuda_use(b), "opening it", err));
    dgm_linear *l = dgm_calloc(1, sizeof *l);
    if (!l) return dgm_no_memory(err);
    l->ops = &cuda_ops;
    l->precision = precision;
    l->type = cuda_way(b->capability, precision, rows, cols);
    l->rows = rows;
    l->cols = cols;
    l->stride = cuda_stride_of(cols);
    const dgm_status st = load_layer(b, l, parts, count, err);
    if (st != DGM_OK)
        cuda_linear_free(b, &l);
    else
        *out = l;
    return st;
}

void cuda_linear_free(dgm_backend *b, dgm_linear **l)
{
    (void)b;
    if (!*l) return;
    cudaFree((*l)->data);
    cudaFree((*l)->bias);
    cudaFree((*l)->scales);
    dgm_free((*l)->tensors);
    dgm_free(*l);
    *l = NULL;
}

int cuda_linear_rows(const dgm_linear *l)
{
    return l->rows;
}

int cuda_linear_cols(const dgm_linear *l)
{
    return l->cols;
}

size_t cuda_linear_bytes(const dgm_linear *l)
{
    const size_t vectors = (size_t)((l->bias != NULL) + (l->scales != NULL));
    return l->bytes + vectors * (size_t)l->rows * sizeof(float);
}

// Layers always lie by rows.
dgm_status cuda_linear_by_rows(dgm_backend *b, dgm_linear *l, dgm_error *err)
{
    (void)b;
    (void)l;
    (void)err;
    return DGM_OK;
}

const dgm_tensor *cuda_linear_tensor(const dgm_linear *l, int part)
{
    for (int i = 0; i < part; i++)
        if (!l->tensors[i]) return NULL;
    return l->tensors[part];
}

// ---- tables and vectors -------------------------------------------------------------------------

dgm_status cuda_embedding_load(dgm_backend *b, const dgm_tensor *table, dgm_embedding **out,
                               dgm_error *err)
{
    *out = NULL;
    DGM_TRY(cuda_status(cuda_use(b), "opening it", err));
    dgm_embedding *e = dgm_calloc(1, sizeof *e);
    if (!e) return dgm_no_memory(err);
    e->ops = &cuda_ops;
    e->table = (cuda_table){.type = table->type, .cols = table->cols};
    dgm_status st = cuda_upload(b, &e->owned[0], table->data, table->bytes, err);
    if (st == DGM_OK && table->scale)
        st = cuda_upload(b, &e->owned[1], table->scale->data, table->scale->bytes, err);
    e->table.data = e->owned[0];
    e->table.scale = e->owned[1];
    if (st != DGM_OK)
        cuda_embedding_free(b, &e);
    else
        *out = e;
    return st;
}

void cuda_embedding_free(dgm_backend *b, dgm_embedding **e)
{
    (void)b;
    if (!*e) return;
    cudaFree((*e)->owned[0]);
    cudaFree((*e)->owned[1]);
    dgm_free(*e);
    *e = NULL;
}

dgm_status cuda_vector_from(dgm_backend *b, const float *data, int rows, int cols, dgm_vector **out,
                            dgm_error *err)
{
    *out = NULL;
    DGM_TRY(cuda_status(cuda_use(b), "opening it", err));
    dgm_vector *v = dgm_calloc(1, sizeof *v);
    if (!v) return dgm_no_memory(err);
    v->ops = &cuda_ops;
    v->rows = rows;
    v->cols = cols;
    const dgm_status st = cuda_upload(b, (void **)&v->data, data,
                                      (size_t)rows * (size_t)cols * sizeof(float), err);
    if (st != DGM_OK)
        cuda_vector_free(b, &v);
    else
        *out = v;
    return st;
}

void cuda_vector_free(dgm_backend *b, dgm_vector **v)
{
    (void)b;
    if (!*v) return;
    cudaFree((*v)->data);
    dgm_free(*v);
    *v = NULL;
}
