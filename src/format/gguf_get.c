// SPDX-License-Identifier: MIT
// Look-ups in an open GGUF file: typed metadata, tensors of an expected shape, real values.
// Lengths were all checked by gguf_read.c; here only meaning is checked.
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/lower_bound.h"
#include "base/mem.h"
#include "format/gguf_private.h"

void dgm_gguf_forget(const dgm_gguf *g)
{
    dgm_mapfile_forget(&g->file);
}

void dgm_gguf_forget_tensor(const dgm_gguf *g, const dgm_tensor *t)
{
    dgm_mapfile_forget_part(&g->file, t->data, t->bytes);
}

const char *dgm_gguf_path(const dgm_gguf *g)
{
    return g->path ? g->path : "the model in memory";
}

size_t dgm_gguf_size(const dgm_gguf *g)
{
    return g->size;
}

uint32_t dgm_gguf_alignment(const dgm_gguf *g)
{
    return g->alignment;
}

int dgm_gguf_meta_count(const dgm_gguf *g)
{
    return g->n_meta;
}

const dgm_meta *dgm_gguf_meta(const dgm_gguf *g, int i)
{
    return &g->meta[i];
}

int dgm_gguf_tensor_count(const dgm_gguf *g)
{
    return g->n_tensors;
}

const dgm_tensor *dgm_gguf_tensor(const dgm_gguf *g, int i)
{
    return &g->tensors[i];
}

const dgm_meta *dgm_gguf_find(const dgm_gguf *g, const char *key)
{
    int at;
    DGM_LOWER_BOUND(int, at, 0, g->n_meta, strcmp(g->meta[g->meta_order[at]].key, key) < 0);
    if (at == g->n_meta) return NULL;
    const dgm_meta *m = &g->meta[g->meta_order[at]];
    return strcmp(m->key, key) == 0 ? m : NULL;
}

const dgm_tensor *dgm_gguf_find_tensor(const dgm_gguf *g, const char *name)
{
    int at;
    DGM_LOWER_BOUND(int, at, 0, g->n_tensors,
                    strcmp(g->tensors[g->tensor_order[at]].name, name) < 0);
    if (at == g->n_tensors) return NULL;
    const dgm_tensor *t = &g->tensors[g->tensor_order[at]];
    return strcmp(t->name, name) == 0 ? t : NULL;
}

// ---- metadata ---------------------------------------------------------------------------------

// elem -1: a single value of `type`; otherwise an array of elem.
static dgm_status find_typed(const dgm_gguf *g, const char *key, dgm_need need, int type, int elem,
                             const dgm_meta **out, dgm_error *err)
{
    const dgm_meta *m = dgm_gguf_find(g, key);
    *out = m;
    if (!m) {
        DGM_FAIL_IF(need == DGM_REQUIRED, err, DGM_ERR_FORMAT, "key '%s' is missing", key);
        return DGM_OK;
    }
    if (m->type == type && (elem < 0 || m->elem_type == elem)) return DGM_OK;
    bool array = m->type == DGM_META_ARRAY;
    return dgm_fail(err, DGM_ERR_FORMAT, "key '%s' is %s%s, expected %s%s", key,
                    dgm_meta_type_name(array ? m->elem_type : m->type), array ? " array" : "",
                    dgm_meta_type_name(elem < 0 ? type : elem), elem < 0 ? "" : " array");
}

dgm_status dgm_gguf_get_u32(const dgm_gguf *g, const char *key, dgm_need need, uint32_t min,
                            uint32_t max, uint32_t *out, dgm_error *err)
{
    const dgm_meta *m;
    DGM_TRY(find_typed(g, key, need, DGM_META_U32, -1, &m, err));
    if (!m) return DGM_OK;
    dgm_reader r = dgm_reader_over(m->raw, m->raw_size);
    uint32_t v = dgm_read_u32(&r);
    DGM_FAIL_IF(v < min || v > max, err, DGM_ERR_FORMAT, "key '%s' is %u, expected %u to %u", key,
                v, min, max);
    *out = v;
    return DGM_OK;
}

dgm_status dgm_gguf_get_i32(const dgm_gguf *g, const char *key, dgm_need need, int32_t min,
                            int32_t max, int32_t *out, dgm_error *err)
{
    const dgm_meta *m;
    DGM_TRY(find_typed(g, key, need, DGM_META_I32, -1, &m, err));
    if (!m) return DGM_OK;
    dgm_reader r = dgm_reader_over(m->raw, m->raw_size);
    int32_t v = (int32_t)dgm_read_u32(&r);
    DGM_FAIL_IF(v < min || v > max, err, DGM_ERR_FORMAT, "key '%s' is %d, expected %d to %d", key,
                v, min, max);
    *out = v;
    return DGM_OK;
}

dgm_status dgm_gguf_get_f32(const dgm_gguf *g, const char *key, dgm_need need, float min, float max,
                            float *out, dgm_error *err)
{
    const dgm_meta *m;
    DGM_TRY(find_typed(g, key, need, DGM_META_F32, -1, &m, err));
    if (!m) return DGM_OK;
    dgm_reader r = dgm_reader_over(m->raw, m->raw_size);
    float v = dgm_read_f32(&r);
    DGM_FAIL_IF(!isfinite(v) || v < min || v > max, err, DGM_ERR_FORMAT,
                "key '%s' is %g, expected %g to %g", key, (double)v, (double)min, (double)max);
    *out = v;
    return DGM_OK;
}

dgm_status dgm_gguf_get_bool(const dgm_gguf *g, const char *key, dgm_need need, bool *out,
                             dgm_error *err)
{
    const dgm_meta *m;
    DGM_TRY(find_typed(g, key, need, DGM_META_BOOL, -1, &m, err));
    if (m) *out = m->raw[0] != 0;
    return DGM_OK;
}

dgm_status dgm_gguf_get_string(const dgm_gguf *g, const char *key, dgm_need need, const char **out,
                               dgm_error *err)
{
    const dgm_meta *m;
    DGM_TRY(find_typed(g, key, need, DGM_META_STRING, -1, &m, err));
    if (!m) return DGM_OK;
    DGM_FAIL_IF(memchr(m->values, 0, m->raw_size), err, DGM_ERR_FORMAT,
                "key '%s' contains a NUL byte", key);
    *out = m->values;
    return DGM_OK;
}

dgm_status dgm_gguf_get_enum(const dgm_gguf *g, const char *key, dgm_need need,
                             const char *const *names, int *out, dgm_error *err)
{
    const char *v = NULL;
    DGM_TRY(dgm_gguf_get_string(g, key, need, &v, err));
    if (!v) return DGM_OK;
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], v) == 0) {
            *out = i;
            return DGM_OK;
        }
    }
    char list[256] = "";
    for (int i = 0; names[i] && strlen(list) + strlen(names[i]) + 3 < sizeof list; i++) {
        if (i) strcat(list, ", ");
        strcat(list, names[i]);
    }
    return dgm_fail(err, DGM_ERR_FORMAT, "key '%s' is '%.60s', expected one of: %s", key, v, list);
}

dgm_status dgm_gguf_get_i32s(const dgm_gguf *g, const char *key, dgm_need need, int32_t min,
                             int32_t max, const int32_t **out, size_t *count, dgm_error *err)
{
    const dgm_meta *m;
    DGM_TRY(find_typed(g, key, need, DGM_META_ARRAY, DGM_META_I32, &m, err));
    if (!m) return DGM_OK;
    const int32_t *v = m->values;
    for (size_t i = 0; i < m->count; i++)
        DGM_FAIL_IF(v[i] < min || v[i] > max, err, DGM_ERR_FORMAT,
                    "key '%s': element %zu is %d, expected %d to %d", key, i, v[i], min, max);
    *out = v;
    *count = (size_t)m->count;
    return DGM_OK;
}

dgm_status dgm_gguf_get_u32s(const dgm_gguf *g, const char *key, dgm_need need, uint32_t min,
                             uint32_t max, const uint32_t **out, size_t *count, dgm_error *err)
{
    const dgm_meta *m;
    DGM_TRY(find_typed(g, key, need, DGM_META_ARRAY, DGM_META_U32, &m, err));
    if (!m) return DGM_OK;
    const uint32_t *v = m->values;
    for (size_t i = 0; i < m->count; i++)
        DGM_FAIL_IF(v[i] < min || v[i] > max, err, DGM_ERR_FORMAT,
                    "key '%s': element %zu is %u, expected %u to %u", key, i, v[i], min, max);
    *out = v;
    *count = (size_t)m->count;
    return DGM_OK;
}

dgm_status dgm_gguf_get_f32s(const dgm_gguf *g, const char *key, dgm_need need, const float **out,
                             size_t *count, dgm_error *err)
{
    const dgm_meta *m;
    DGM_TRY(find_typed(g, key, need, DGM_META_ARRAY, DGM_META_F32, &m, err));
    if (!m) return DGM_OK;
    const float *v = m->values;
    for (size_t i = 0; i < m->count; i++)
        DGM_FAIL_IF(!isfinite(v[i]), err, DGM_ERR_FORMAT, "key '%s': element %zu is not finite",
                    key, i);
    *out = v;
    *count = (size_t)m->count;
    return DGM_OK;
}

dgm_status dgm_gguf_get_bytes(const dgm_gguf *g, const char *key, dgm_need need,
                              const uint8_t **out, size_t *count, dgm_error *err)
{
    const dgm_meta *m;
    DGM_TRY(find_typed(g, key, need, DGM_META_ARRAY, DGM_META_U8, &m, err));
    if (!m) return DGM_OK;
    *out = m->raw;
    *count = m->raw_size;
    return DGM_OK;
}

dgm_status dgm_gguf_get_strings(const dgm_gguf *g, const char *key, dgm_need need,
                                dgm_gguf_strings *out, dgm_error *err)
{
    const dgm_meta *m;
    DGM_TRY(find_typed(g, key, need, DGM_META_ARRAY, DGM_META_STRING, &m, err));
    if (!m) return DGM_OK;
    out->pos = m->raw;
    out->count = m->count;
    return DGM_OK;
}

bool dgm_gguf_strings_next(dgm_gguf_strings *it, dgm_gguf_text *out)
{
    if (it->count == 0) return false;
    dgm_reader r = dgm_reader_over(it->pos, 8);
    out->size = (size_t)dgm_read_u64(&r);
    out->data = (const char *)it->pos + 8;
    it->pos += 8 + out->size;
    it->count--;
    return true;
}

// ---- tensors ----------------------------------------------------------------------------------

// "[8, 4]", with "any" for -1.
static void describe_shape(dgm_writer *w, const int *shape, int n)
{
    dgm_write_text(w, "[");
    for (int i = 0; i < n; i++) {
        if (i) dgm_write_text(w, ", ");
        if (shape[i] < 0)
            dgm_write_text(w, "any");
        else
            dgm_write_format(w, "%d", shape[i]);
    }
    dgm_write_text(w, "]");
}

static dgm_status wrong_shape(const dgm_tensor *t, const int *shape, int n, dgm_error *err)
{
    dgm_writer w = {0};
    dgm_write_text(&w, "has shape ");
    describe_shape(&w, t->shape, t->n_dims);
    dgm_write_text(&w, ", expected ");
    describe_shape(&w, shape, n);
    char *text = dgm_writer_take(&w, NULL);
    dgm_status st = dgm_fail(err, DGM_ERR_FORMAT, "tensor '%s' %s", t->name,
                             text ? text : "has the wrong shape");
    dgm_free(text);
    return st;
}

static dgm_status find_shaped(const dgm_gguf *g, const char *name, int n, const int *shape,
                              dgm_need need, const dgm_tensor **out, dgm_error *err)
{
    const dgm_tensor *t = dgm_gguf_find_tensor(g, name);
    *out = NULL;
    if (!t) {
        DGM_FAIL_IF(need == DGM_REQUIRED, err, DGM_ERR_FORMAT, "tensor '%s' is missing", name);
        return DGM_OK;
    }
    DGM_FAIL_IF(!t->data, err, DGM_ERR_UNSUPPORTED,
                "tensor '%s' has type %d, which this program cannot read", name, t->type);
    if (t->n_dims != n) return wrong_shape(t, shape, n, err);
    for (int i = 0; i < n; i++)
        if (shape[i] >= 0 && shape[i] != t->shape[i]) return wrong_shape(t, shape, n, err);
    *out = t;
    return DGM_OK;
}

dgm_status dgm_gguf_matrix(const dgm_gguf *g, const char *name, int rows, int cols, dgm_need need,
                           const dgm_tensor **out, dgm_error *err)
{
    const int shape[2] = {rows, cols};
    const dgm_tensor *t;
    *out = NULL;
    DGM_TRY(find_shaped(g, name, 2, shape, need, &t, err));
    if (!t) return DGM_OK;
    DGM_FAIL_IF(t->type == DGM_TYPE_I32, err, DGM_ERR_FORMAT, "tensor '%s' is i32, not a weight",
                name);
    bool scaled = t->type == DGM_TYPE_I8 || t->type == DGM_TYPE_I16;
    DGM_FAIL_IF(scaled && !t->scale, err, DGM_ERR_FORMAT, "tensor '%s.scale' is missing", name);
    // Integer kernels rely on the symmetric range; the loader reads these bytes next anyway.
    DGM_FAIL_IF(t->type == DGM_TYPE_I8 && memchr(t->data, 0x80, t->bytes), err, DGM_ERR_FORMAT,
                "tensor '%s' holds -128, allowed are -127 to 127", name);
    *out = t;
    return DGM_OK;
}

dgm_status dgm_gguf_vector(const dgm_gguf *g, const char *name, int size, dgm_need need,
                           const float **out, dgm_error *err)
{
    const dgm_tensor *t;
    *out = NULL;
    DGM_TRY(find_shaped(g, name, 1, &size, need, &t, err));
    if (!t) return DGM_OK;
    DGM_FAIL_IF(t->type != DGM_TYPE_F32, err, DGM_ERR_FORMAT, "tensor '%s' is %s, expected f32",
                name, dgm_tensor_type_name(t->type));
    *out = t->data;
    return DGM_OK;
}

dgm_status dgm_gguf_table(const dgm_gguf *g, const char *name, int size, int32_t min, int32_t max,
                          dgm_need need, const int32_t **out, int *count, dgm_error *err)
{
    const dgm_tensor *t;
    *out = NULL;
    *count = 0;
    DGM_TRY(find_shaped(g, name, 1, &size, need, &t, err));
    if (!t) return DGM_OK;
    DGM_FAIL_IF(t->type != DGM_TYPE_I32, err, DGM_ERR_FORMAT, "tensor '%s' is %s, expected i32",
                name, dgm_tensor_type_name(t->type));
    const int32_t *v = t->data;
    for (int i = 0; i < t->cols; i++)
        DGM_FAIL_IF(v[i] < min || v[i] > max, err, DGM_ERR_FORMAT,
                    "tensor '%s': element %d is %d, expected %d to %d", name, i, v[i], min, max);
    *out = v;
    *count = t->cols;
    return DGM_OK;
}

void dgm_tensor_row_f32(const dgm_tensor *t, int row, float *out)
{
    size_t n = (size_t)t->cols, at = (size_t)row * n;
    switch (t->type) {
    case DGM_TYPE_F32:
        memcpy(out, (const float *)t->data + at, n * sizeof *out);
        break;
    case DGM_TYPE_F16:
        for (size_t i = 0; i < n; i++)
            out[i] = dgm_half_to_float(((const uint16_t *)t->data)[at + i]);
        break;
    case DGM_TYPE_BF16:
        for (size_t i = 0; i < n; i++)
            out[i] = dgm_bf16_to_float(((const uint16_t *)t->data)[at + i]);
        break;
    case DGM_TYPE_I8: {
        float scale = ((const float *)t->scale->data)[row];
        for (size_t i = 0; i < n; i++) out[i] = (float)((const int8_t *)t->data)[at + i] * scale;
        break;
    }
    case DGM_TYPE_I16: {
        float scale = ((const float *)t->scale->data)[0];
        for (size_t i = 0; i < n; i++) out[i] = (float)((const int16_t *)t->data)[at + i] * scale;
        break;
    }
    default:
        for (size_t i = 0; i < n; i++) out[i] = 0; // not accepted by the getters
        break;
    }
}

void dgm_tensor_to_f32(const dgm_tensor *t, float *out)
{
    for (int r = 0; r < t->rows; r++) dgm_tensor_row_f32(t, r, out + (size_t)r * (size_t)t->cols);
}
