// SPDX-License-Identifier: MIT
// Weights of an exported folder; see export.h. What has the right type is copied as it lies in the model file.
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "export/export.h"

void dgm_export_list_free(dgm_export_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].owned) dgm_free((void *)l->items[i].values);
    dgm_free(l->items);
    *l = (dgm_export_list){0};
}

static int common_type(const dgm_export_tensor *t, bool keep_i8)
{
    const int type = t->count ? t->parts[0]->type : DGM_TYPE_F32;
    for (int i = 1; i < t->count; i++)
        if (t->parts[i]->type != type) return DGM_TYPE_F32;
    if (type == DGM_TYPE_F16 || type == DGM_TYPE_BF16) return type;
    return type == DGM_TYPE_I8 && keep_i8 ? type : DGM_TYPE_F32;
}

dgm_status dgm_export_add(dgm_export_list *l, dgm_export_tensor t, bool keep_i8, dgm_error *err)
{
    t.type = common_type(&t, keep_i8);
    for (int i = 0; i < t.count; i++) {
        t.rows += t.n_dims == 1 ? 0 : t.parts[i]->rows;
        t.cols = t.n_dims == 1 ? t.cols + t.parts[i]->cols : t.parts[i]->cols;
    }
    t.rows = t.n_dims == 1 ? 1 : t.rows + t.zero_rows - t.skip;
    if (t.n_dims == 1) t.cols += t.zero_rows;
    const dgm_status st = dgm_grow(&l->items, &l->cap, l->count + 1, sizeof *l->items, err);
    if (st != DGM_OK && t.owned) dgm_free((void *)t.values);
    if (st == DGM_OK) l->items[l->count++] = t;
    return st;
}

uint64_t dgm_export_bytes(const dgm_export_tensor *t)
{
    return (uint64_t)t->rows * (uint64_t)t->cols * dgm_tensor_type_size(t->type);
}

static bool put(FILE *f, const void *data, size_t size)
{
    return size == 0 || fwrite(data, 1, size, f) == size;
}

static bool put_rows(const dgm_tensor *t, int first, float *row, FILE *f)
{
    bool fine = true;
    for (int r = first; r < t->rows && fine; r++) {
        dgm_tensor_row_f32(t, r, row);
        fine = put(f, row, (size_t)t->cols * sizeof *row);
    }
    return fine;
}

static bool put_zeros(size_t bytes, FILE *f)
{
    static const uint8_t zeros[4096];
    bool fine = true;
    for (; bytes > 0 && fine; bytes -= bytes < sizeof zeros ? bytes : sizeof zeros)
        fine = put(f, zeros, bytes < sizeof zeros ? bytes : sizeof zeros);
    return fine;
}

dgm_status dgm_export_write(const dgm_export_tensor *t, FILE *f, dgm_error *err)
{
    const size_t element = dgm_tensor_type_size(t->type);
    const size_t zeros = (size_t)t->zero_rows * (t->n_dims == 1 ? 1 : (size_t)t->cols) * element;
    bool fine = true;
    if (t->values) fine = put(f, t->values, (size_t)dgm_export_bytes(t) - zeros);
    float *row = dgm_malloc((size_t)(t->cols ? t->cols : 1) * sizeof *row);
    if (!row) return dgm_no_memory(err);
    for (int i = 0; i < t->count && fine; i++) {
        const dgm_tensor *part = t->parts[i];
        const int first = i == 0 ? t->skip : 0;
        const size_t left_out = (size_t)first * (size_t)part->cols * element;
        fine = part->type == t->type ? put(f, (const uint8_t *)part->data + left_out, part->bytes - left_out)
                                     : put_rows(part, first, row, f);
    }
    fine = fine && put_zeros(zeros, f);
    const int code = errno;
    dgm_free(row);
    DGM_FAIL_IF(!fine, err, DGM_ERR_IO, "cannot write tensor '%s': %s", t->name, strerror(code));
    return DGM_OK;
}
