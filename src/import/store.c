// SPDX-License-Identifier: MIT
// Named tensors of any container; see store.h. Names are looked up in a jansson object, whose hash is
// seeded, so that hostile names cannot make it slow.
#include "import/store.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

#define TENSORS_MAX 1000000

struct dgm_store {
    dgm_store_container container;
    dgm_stored *tensors;
    size_t count, cap;
    json_t *index; // name -> position
    uint8_t *loaded;
    const dgm_stored *loaded_tensor;
};

// ---- the list ----------------------------------------------------------------------------------

dgm_status dgm_store_open(dgm_store **s, dgm_store_container container, dgm_error *err)
{
    dgm_json_init();
    *s = dgm_calloc(1, sizeof **s);
    if (!*s) {
        if (container.close) container.close(container.self);
        return dgm_no_memory(err);
    }
    (*s)->container = container;
    (*s)->index = json_object();
    if ((*s)->index) return DGM_OK;
    dgm_store_close(s);
    return dgm_no_memory(err);
}

void dgm_store_close(dgm_store **s)
{
    if (!*s) return;
    json_decref((*s)->index);
    dgm_free((*s)->tensors);
    dgm_free((*s)->loaded);
    if ((*s)->container.close) (*s)->container.close((*s)->container.self);
    dgm_free(*s);
    *s = NULL;
}

// Fills rows, cols and bytes from the shape.
static dgm_status measure(dgm_stored *t, size_t element, dgm_error *err)
{
    uint64_t rows = 1, bytes;
    t->cols = 1;
    for (int d = 0; d < t->n_dims; d++) {
        const int n = t->shape[d];
        DGM_FAIL_IF(n < 0, err, DGM_ERR_FORMAT, "negative number in the shape");
        if (d == t->n_dims - 1)
            t->cols = n;
        else
            rows *= (uint64_t)n;
        DGM_FAIL_IF(rows > INT32_MAX, err, DGM_ERR_FORMAT, "the shape is too large");
    }
    t->rows = (int)rows;
    DGM_FAIL_IF(!dgm_mul_size(rows * (uint64_t)t->cols, element, &bytes) || bytes > SIZE_MAX / 4,
                err, DGM_ERR_FORMAT, "the shape is too large");
    t->bytes = (size_t)bytes;
    if (t->row_step == 0 && t->col_step == 0) {
        t->row_step = (size_t)t->cols;
        t->col_step = 1;
    }
    return DGM_OK;
}

dgm_status dgm_store_add(dgm_store *s, dgm_stored t, size_t element, dgm_error *err)
{
    DGM_FAIL_IF(s->count >= TENSORS_MAX, err, DGM_ERR_FORMAT, "more than %d tensors", TENSORS_MAX);
    DGM_FAIL_IF(dgm_store_find(s, t.name) >= 0, err, DGM_ERR_FORMAT,
                "tensor '%.100s' is there twice", t.name);
    const dgm_status st = measure(&t, element, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "tensor '%.100s'", t.name);
        return st;
    }
    DGM_TRY(dgm_grow(&s->tensors, &s->cap, s->count + 1, sizeof *s->tensors, err));
    if (json_object_set_new_nocheck(s->index, t.name, json_integer((json_int_t)s->count)) != 0)
        return dgm_no_memory(err);
    s->tensors[s->count++] = t;
    return DGM_OK;
}

size_t dgm_store_count(const dgm_store *s)
{
    return s->count;
}

const dgm_stored *dgm_store_get(const dgm_store *s, size_t i)
{
    return &s->tensors[i];
}

int dgm_store_find(const dgm_store *s, const char *name)
{
    const json_t *at = json_object_get(s->index, name);
    return at ? (int)json_integer_value(at) : -1;
}

dgm_status dgm_store_data(dgm_store *s, const dgm_stored *t, const uint8_t **data, dgm_error *err)
{
    *data = t->data ? t->data : s->loaded;
    if (t->data || s->loaded_tensor == t) return DGM_OK;
    s->loaded_tensor = NULL;
    dgm_free(s->loaded);
    s->loaded = dgm_malloc(t->bytes ? t->bytes : 1);
    if (!s->loaded) return dgm_no_memory(err);
    DGM_TRY(s->container.load(s->container.self, t, s->loaded, err));
    s->loaded_tensor = t;
    *data = s->loaded;
    return DGM_OK;
}

// ---- views -------------------------------------------------------------------------------------

bool dgm_stored_is_real(dgm_stored_type type)
{
    return type == DGM_STORED_F64 || type == DGM_STORED_F32 || type == DGM_STORED_F16 ||
           type == DGM_STORED_BF16;
}

dgm_view dgm_view_whole(dgm_store *s, const dgm_stored *t)
{
    return (dgm_view){.store = s,
                      .t = t,
                      .rows = t->rows,
                      .cols = t->cols,
                      .row_step = t->row_step,
                      .col_step = t->col_step};
}

dgm_view dgm_view_transposed(dgm_view v)
{
    dgm_view out = v;
    out.rows = v.cols;
    out.cols = v.rows;
    out.row_step = v.col_step;
    out.col_step = v.row_step;
    return out;
}

dgm_view dgm_view_rows(dgm_view v, int first, int rows)
{
    v.first += (size_t)first * v.row_step;
    if (v.divisors) v.divisors += (size_t)first * (size_t)v.divisor_step * sizeof(float);
    if (v.factors) v.factors += (size_t)first * sizeof(float);
    v.rows = rows;
    return v;
}

float dgm_view_divisor(const dgm_view *v, int row)
{
    float d = 1;
    if (v->divisors)
        memcpy(&d, v->divisors + (size_t)row * (size_t)v->divisor_step * sizeof d, sizeof d);
    return d;
}

float dgm_view_factor(const dgm_view *v, int row)
{
    float f;
    if (!v->factors) return 1 / dgm_view_divisor(v, row);
    memcpy(&f, v->factors + (size_t)row * sizeof f, sizeof f);
    return f;
}

// One row: element `at` of the tensor and every step-th behind it.
#define READ_ROW(type, size, value)                                                                \
    for (int c = 0; c < cols; c++, at += step) {                                                   \
        type x;                                                                                    \
        memcpy(&x, data + at * (size), sizeof x);                                                  \
        out[c] = (value);                                                                          \
    }

static void read_row(dgm_stored_type type, const uint8_t *data, size_t at, size_t step, int cols,
                     float *out)
{
    switch (type) {
    case DGM_STORED_F64:
        READ_ROW(double, 8, (float)x) return;
    case DGM_STORED_F32:
        READ_ROW(float, 4, x) return;
    case DGM_STORED_F16:
        READ_ROW(uint16_t, 2, dgm_half_to_float(x)) return;
    case DGM_STORED_BF16:
        READ_ROW(uint16_t, 2, dgm_bf16_to_float(x)) return;
    case DGM_STORED_I8:
        READ_ROW(int8_t, 1, (float)x) return;
    case DGM_STORED_I16:
        READ_ROW(int16_t, 2, (float)x) return;
    case DGM_STORED_I32:
        READ_ROW(int32_t, 4, (float)x) return;
    case DGM_STORED_I64:
        READ_ROW(int64_t, 8, (float)x) return;
    case DGM_STORED_OTHER:
        break;
    }
    memset(out, 0, (size_t)cols * sizeof *out);
}

dgm_status dgm_view_read(const dgm_view *v, int first, int rows, float *out, dgm_error *err)
{
    const uint8_t *data;
    DGM_TRY(dgm_store_data(v->store, v->t, &data, err));
    for (int r = 0; r < rows; r++, out += v->cols) {
        read_row(v->t->type, data, v->first + (size_t)(first + r) * v->row_step, v->col_step,
                 v->cols, out);
        if (!v->divisors) continue;
        const float divisor = dgm_view_divisor(v, first + r), factor = dgm_view_factor(v, first + r);
        for (int c = 0; c < v->cols; c++) out[c] = v->factors ? out[c] * factor : out[c] / divisor;
    }
    return DGM_OK;
}

dgm_status dgm_view_read_i8(const dgm_view *v, int first, int rows, int8_t *out, dgm_error *err)
{
    const uint8_t *data;
    DGM_TRY(dgm_store_data(v->store, v->t, &data, err));
    for (int r = 0; r < rows; r++) {
        const uint8_t *row = data + v->first + (size_t)(first + r) * v->row_step;
        for (int c = 0; c < v->cols; c++, row += v->col_step) {
            DGM_FAIL_IF(*row == 0x80, err, DGM_ERR_FORMAT, "tensor '%.100s' has -128 in row %d, expected -127 to 127",
                        v->t->name, first + r);
            *out++ = (int8_t)*row;
        }
    }
    return DGM_OK;
}
