// SPDX-License-Identifier: MIT
// CPU backend: loading and packing of weights.
//
// Linear layers are packed panel by panel (DGM_GEMM_COLUMNS outputs at a time), so that loading
// needs one panel beside the packed copy, whatever the stored type and the precision. Embeddings
// stay in the mapped file: only the rows that a text uses are ever touched. So do layers that the file holds packed.
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu_private.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "format/quantize.h"

enum { PANEL = CPU_PANEL, I16_WEIGHT_MAX = 4095 };

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

// Row `row` of the stack as it is stored, if that is i8; *scale is then its scale.
static const int8_t *stacked_row_i8(const dgm_linear_part *parts, int row, float *scale)
{
    while (row >= parts->weight->rows) row -= parts++->weight->rows;
    const dgm_tensor *t = parts->weight;
    if (t->type != DGM_TYPE_I8) return NULL;
    *scale = ((const float *)t->scale->data)[row];
    return (const int8_t *)t->data + (size_t)row * (size_t)t->cols;
}

// ---- packing, one panel of rows at a time --------------------------------------------------------

static void *panel_address(const dgm_linear *l, int first, size_t panel_bytes)
{
    return (char *)l->packed + (size_t)(first / PANEL) * panel_bytes;
}

static void pack_panel_f32(const dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts,
                           int first, int n, const cpu_panel *buffers)
{
    for (int i = 0; i < n; i++)
        stacked_row(parts, first + i, buffers->real + (size_t)i * (size_t)l->cols);
    const dgm_gemm_f32_ops *gemm = &b->k.gemm_f32;
    gemm->pack(panel_address(l, first, gemm->packed_size(PANEL, l->cols)), buffers->real, n, l->cols,
               l->cols);
}

bool cpu_pack_panel_i8(const dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts, int first, int n,
                       const cpu_panel *buffers, void *to)
{
    int8_t *q = buffers->quantised;
    for (int i = 0; i < n; i++, q += l->cols) {
        const int8_t *stored = stacked_row_i8(parts, first + i, &l->scales[first + i]);
        if (stored) {
            memcpy(q, stored, (size_t)l->cols);
            continue;
        }
        stacked_row(parts, first + i, buffers->real);
        if (!dgm_quantize_i8(buffers->real, 1, l->cols, q, &l->scales[first + i])) return false;
    }
    b->k.gemm_i8.pack(to, buffers->quantised, NULL, n, l->cols, l->cols);
    return true;
}

// Fixed point with one scale for the matrix, fixed beforehand (choose_scale_i16).
static void pack_panel_i16(const dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts,
                           int first, int n, const cpu_panel *buffers)
{
    int16_t *q = buffers->quantised;
    for (int i = 0; i < n; i++, q += l->cols) {
        stacked_row(parts, first + i, buffers->real);
        for (int j = 0; j < l->cols; j++) q[j] = (int16_t)lrintf(buffers->real[j] / l->scale);
    }
    const dgm_gemm_i16_ops *gemm = &b->k.gemm_i16;
    int limit = gemm->pack(panel_address(l, first, gemm->packed_size(PANEL, l->cols)),
                           buffers->quantised, NULL, n, l->cols, l->cols);
    if (limit < l->input_limit) l->input_limit = limit;
}

static bool all_finite_bf16(const uint16_t *q, int n)
{
    for (int i = 0; i < n; i++)
        if ((q[i] & 0x7f80) == 0x7f80) return false;
    return true;
}

// Numbers that are stored as bf16 come through as they are; others are rounded. False: not finite, or too large.
static bool pack_panel_bf16(const dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts, int first, int n,
                            const cpu_panel *buffers)
{
    const dgm_gemm_bf16_ops *gemm = &b->k.gemm_bf16;
    const int stride = dgm_gemm_bf16_depth(l->cols);
    uint16_t *q = buffers->quantised;
    for (int i = 0; i < n; i++, q += stride) {
        stacked_row(parts, first + i, buffers->real);
        b->k.round_bf16(q, buffers->real, l->cols);
        if (!all_finite_bf16(q, l->cols)) return false;
    }
    gemm->pack(panel_address(l, first, gemm->packed_size(PANEL, l->cols)), buffers->quantised, NULL, n, l->cols,
               stride);
    return true;
}

// The largest power of two that keeps every weight within I16_WEIGHT_MAX: about as many bits for
// the weights as the sums leave for the inputs. False: not finite.
static bool choose_scale_i16(dgm_linear *l, const dgm_linear_part *parts, float *row)
{
    float max = 0;
    for (int i = 0; i < l->rows; i++) {
        stacked_row(parts, i, row);
        for (int j = 0; j < l->cols; j++) {
            if (!isfinite(row[j])) return false;
            max = fmaxf(max, fabsf(row[j]));
        }
    }
    int exponent = 0;
    frexpf(max > 0 ? I16_WEIGHT_MAX / max : 1, &exponent);
    l->scale = ldexpf(1, 1 - exponent);
    l->input_limit = INT16_MAX;
    return true;
}

// The scale of all input rows: 8 bits take the stored one as it is; in 16 bits it is the power of two
// whose steps, as many as the packed weights' sums allow, just hold the same range.
static float static_scale(const dgm_linear *l)
{
    if (l->precision != DGM_PRECISION_I16 || !(l->stored_scale > 0)) return l->stored_scale;
    int exponent = 0;
    frexpf((float)l->input_limit / (127 * l->stored_scale), &exponent);
    return ldexpf(1, 1 - exponent);
}

dgm_status cpu_pack_layer(const dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts,
                          int count, const cpu_panel *buffers, dgm_error *err)
{
    if (l->bias) copy_bias(l, parts, count);
    bool finite = l->precision != DGM_PRECISION_I16 || choose_scale_i16(l, parts, buffers->real);
    for (int first = 0; finite && first < l->rows; first += PANEL) {
        int n = l->rows - first < PANEL ? l->rows - first : PANEL;
        if (l->precision == DGM_PRECISION_I8)
            finite = cpu_pack_panel_i8(b, l, parts, first, n, buffers,
                                       panel_address(l, first, b->k.gemm_i8.packed_size(PANEL, l->cols)));
        else if (l->precision == DGM_PRECISION_I16)
            pack_panel_i16(b, l, parts, first, n, buffers);
        else if (l->precision == DGM_PRECISION_BF16)
            finite = pack_panel_bf16(b, l, parts, first, n, buffers);
        else
            pack_panel_f32(b, l, parts, first, n, buffers);
    }
    DGM_FAIL_IF(!finite, err, DGM_ERR_FORMAT, "tensor '%s' holds numbers that are not finite",
                parts[0].weight->name);
    DGM_FAIL_IF(l->precision == DGM_PRECISION_I16 && l->input_limit < 1, err, DGM_ERR_UNSUPPORTED,
                "tensor '%s' is too wide for 16-bit sums", parts[0].weight->name);
    l->input_scale = static_scale(l);
    return DGM_OK;
}

size_t cpu_packed_size(const dgm_backend *b, dgm_precision precision, int rows, int cols)
{
    if (precision == DGM_PRECISION_I8) return b->k.gemm_i8.packed_size(rows, cols);
    if (precision == DGM_PRECISION_I16) return b->k.gemm_i16.packed_size(rows, cols);
    if (precision == DGM_PRECISION_BF16) return b->k.gemm_bf16.packed_size(rows, cols);
    return b->k.gemm_f32.packed_size(rows, cols);
}

// Parts of one layer read the same rows: their scales differ only if they were made by different
// texts, and the largest is then the safe one. One part without a scale: none.
static float stacked_input_scale(const dgm_linear_part *parts, int count)
{
    float scale = 0;
    for (int i = 0; i < count; i++) {
        if (!(parts[i].input_scale > 0)) return 0;
        scale = fmaxf(scale, parts[i].input_scale);
    }
    return scale;
}

static dgm_status load_layer(dgm_backend *b, dgm_linear *l, const dgm_linear_part *parts, int count,
                             dgm_error *err)
{
    l->tensors = dgm_calloc((size_t)count + 1, sizeof *l->tensors);
    if (!l->tensors) return dgm_no_memory(err);
    for (int i = 0; i < count; i++) l->tensors[i] = parts[i].weight;
    if (b->static_scales) l->stored_scale = stacked_input_scale(parts, count);
    l->packed_bytes = cpu_packed_size(b, l->precision, l->rows, l->cols);
    if (l->precision == DGM_PRECISION_I8) {
        l->scales = dgm_malloc((size_t)l->rows * sizeof(float));
        if (!l->scales) return dgm_no_memory(err);
    }
    if (any_bias(parts, count)) {
        l->bias = dgm_malloc((size_t)l->rows * sizeof(float));
        if (!l->bias) return dgm_no_memory(err);
    }
    const void *packed = cpu_packed_in_file(b, l, parts, count);
    if (packed) {
        l->packed = (void *)(uintptr_t)packed; // only read
        l->in_file = true;
        if (l->bias) copy_bias(l, parts, count);
        l->input_scale = static_scale(l);
        return DGM_OK;
    }
    l->packed = dgm_malloc(l->packed_bytes);
    if (!l->packed) return dgm_no_memory(err);
    const size_t elements = cpu_panel_elements(l->cols);
    cpu_panel buffers = {dgm_malloc(elements * sizeof(float)), dgm_malloc(elements * sizeof(int16_t))};
    dgm_status st = buffers.real && buffers.quantised ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) st = cpu_pack_layer(b, l, parts, count, &buffers, err);
    dgm_free(buffers.real);
    dgm_free(buffers.quantised);
    return st;
}

dgm_status cpu_linear_load(dgm_backend *b, const dgm_linear_part *parts, int count,
                           dgm_precision precision, dgm_linear **out, dgm_error *err)
{
    *out = NULL;
    int rows, cols;
    DGM_FAIL_IF(!stacked_shape(parts, count, &rows, &cols) || cols > CPU_MAX_WIDTH, err,
                DGM_ERR_FORMAT, "the shape of tensor '%s' does not fit the tensors stacked with it",
                parts[0].weight->name);
    dgm_linear *l = dgm_calloc(1, sizeof *l);
    if (!l) return dgm_no_memory(err);
    l->ops = &cpu_ops;
    l->precision = precision;
    l->rows = rows;
    l->cols = cols;
    dgm_status st = load_layer(b, l, parts, count, err);
    if (st != DGM_OK)
        cpu_linear_free(b, &l);
    else
        *out = l;
    if (*out) cpu_count_layer(b, l, true);
    return st;
}

// ---- by rows -----------------------------------------------------------------------------------

static size_t row_bytes(const dgm_linear *l)
{
    const size_t elem = l->precision == DGM_PRECISION_I8    ? 1
                        : l->precision == DGM_PRECISION_F32 ? sizeof(float)
                                                            : sizeof(int16_t);
    return (size_t)l->cols * elem;
}

// Are the stored numbers those of the layer?
static bool stored_as_is(const dgm_linear *l)
{
    const dgm_tensor *t = l->tensors[0];
    if (l->tensors[1]) return false;
    if (l->precision == DGM_PRECISION_I8) return t->type == DGM_TYPE_I8;
    if (l->precision == DGM_PRECISION_I16)
        return t->type == DGM_TYPE_I16 && *(const float *)t->scale->data == l->scale;
    return t->type == (l->precision == DGM_PRECISION_BF16 ? DGM_TYPE_BF16 : DGM_TYPE_F32);
}

static void copy_row(const dgm_linear *l, int row, float *real, void *to)
{
    float scale; // the layer's own: found in the same way
    const dgm_tensor *const *t = l->tensors;
    while (row >= (*t)->rows) row -= (*t++)->rows;
    if (l->precision == DGM_PRECISION_I8 && (*t)->type == DGM_TYPE_I8) {
        memcpy(to, (const int8_t *)(*t)->data + (size_t)row * (size_t)l->cols, (size_t)l->cols);
        return;
    }
    dgm_tensor_row_f32(*t, row, real);
    if (l->precision == DGM_PRECISION_I8)
        dgm_quantize_i8(real, 1, l->cols, to, &scale);
    else if (l->precision == DGM_PRECISION_I16)
        for (int j = 0; j < l->cols; j++) ((int16_t *)to)[j] = (int16_t)lrintf(real[j] / l->scale);
    else if (l->precision == DGM_PRECISION_BF16)
        for (int j = 0; j < l->cols; j++) ((uint16_t *)to)[j] = dgm_float_to_bf16(real[j]);
    else
        memcpy(to, real, row_bytes(l));
}

dgm_status cpu_linear_by_rows(dgm_backend *b, dgm_linear *l, dgm_error *err)
{
    if (l->by_rows) return DGM_OK;
    if (stored_as_is(l)) {
        l->by_rows = l->tensors[0]->data;
        return DGM_OK;
    }
    float *real = dgm_malloc((size_t)l->cols * sizeof *real);
    // The packed numbers go first: a large layer is not in memory twice.
    if (!l->in_file) dgm_free(l->packed);
    cpu_count_layer(b, l, false);
    l->packed = NULL;
    l->copy = dgm_malloc(row_bytes(l) * (size_t)l->rows);
    for (int i = 0; real && l->copy && i < l->rows; i++)
        copy_row(l, i, real, (char *)l->copy + (size_t)i * row_bytes(l));
    dgm_free(real);
    l->by_rows = real ? l->copy : NULL;
    return l->by_rows ? DGM_OK : dgm_no_memory(err);
}

void cpu_linear_free(dgm_backend *b, dgm_linear **l)
{
    if (!*l) return;
    cpu_count_layer(b, *l, false);
    if (!(*l)->in_file) dgm_free((*l)->packed);
    dgm_free((*l)->copy);
    dgm_free((*l)->bias);
    dgm_free((*l)->scales);
    dgm_free((*l)->tensors);
    dgm_free(*l);
    *l = NULL;
}

int cpu_linear_rows(const dgm_linear *l)
{
    return l->rows;
}

int cpu_linear_cols(const dgm_linear *l)
{
    return l->cols;
}

size_t cpu_linear_bytes(const dgm_linear *l)
{
    size_t vectors = (l->bias != NULL) + (l->scales != NULL);
    return (l->packed && !l->in_file ? l->packed_bytes : 0) + (l->copy ? row_bytes(l) * (size_t)l->rows : 0) +
           vectors * (size_t)l->rows * sizeof(float);
}

const dgm_tensor *cpu_linear_tensor(const dgm_linear *l, int part)
{
    for (int i = 0; i < part; i++)
        if (!l->tensors[i]) return NULL;
    return l->tensors[part];
}

dgm_status cpu_embedding_load(dgm_backend *b, const dgm_tensor *table, dgm_embedding **out,
                              dgm_error *err)
{
    (void)b;
    *out = dgm_calloc(1, sizeof **out);
    if (!*out) return dgm_no_memory(err);
    (*out)->ops = &cpu_ops;
    (*out)->table = table;
    return DGM_OK;
}

void cpu_embedding_free(dgm_backend *b, dgm_embedding **e)
{
    (void)b;
    dgm_free(*e);
    *e = NULL;
}

dgm_status cpu_vector_from(dgm_backend *b, const float *data, int rows, int cols, dgm_vector **out,
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
    v->ops = &cpu_ops;
    v->rows = rows;
    v->cols = cols;
    *out = v;
    return DGM_OK;
}

void cpu_vector_free(dgm_backend *b, dgm_vector **v)
{
    (void)b;
    if (*v) dgm_free((*v)->data);
    dgm_free(*v);
    *v = NULL;
}
