// SPDX-License-Identifier: MIT
// Weights made of several tensors, a few rows at a time while the file is written.
#include "import/compose.h"

#include <string.h>

#include "base/mem.h"

typedef struct dgm_composed {
    struct dgm_composed *next;
    dgm_store *store;
    int count, cols;
    bool swap;
    dgm_view part[DGM_COMPOSE_MAX];        // of a matrix
    dgm_vector_term term[DGM_COMPOSE_MAX]; // of a vector
} dgm_composed;

void dgm_composer_close(dgm_composer *c)
{
    while (c->made) {
        dgm_composed *next = c->made->next;
        dgm_free(c->made);
        c->made = next;
    }
}

static dgm_composed *new_source(dgm_composer *c, int count, int cols)
{
    dgm_composed *s = dgm_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->store = c->weights->tensors;
    s->count = count;
    s->cols = cols;
    s->next = c->made;
    c->made = s;
    return s;
}

static void swap_halves(float *rows, int count, int cols)
{
    const int half = cols / 2;
    for (int r = 0; r < count; r++) {
        float *row = rows + (size_t)r * (size_t)cols;
        for (int i = 0; i < half; i++) {
            const float x = row[i];
            row[i] = row[half + i];
            row[half + i] = x;
        }
    }
}

static dgm_status fetch_matrix(const void *source, int first, int rows, float *out, dgm_error *err)
{
    const dgm_composed *s = source;
    float *to = out;
    int begin = 0; // of the part
    for (int i = 0; i < s->count; begin += s->part[i++].rows) {
        const int from = first > begin ? first - begin : 0;
        const int end =
            first + rows - begin < s->part[i].rows ? first + rows - begin : s->part[i].rows;
        if (from >= end) continue;
        DGM_TRY(dgm_view_read(&s->part[i], from, end - from, to, err));
        to += (size_t)(end - from) * (size_t)s->cols;
    }
    if (s->swap) swap_halves(out, rows, s->cols);
    return DGM_OK;
}

dgm_status dgm_compose_matrix(dgm_composer *c, const char *ours, const dgm_view *parts, int count,
                              bool swap, dgm_error *err)
{
    dgm_composed *s = new_source(c, count, parts[0].cols);
    int rows = 0;
    if (!s) return dgm_no_memory(err);
    s->swap = swap;
    for (int i = 0; i < count; rows += parts[i++].rows) s->part[i] = parts[i];
    const bool half = parts[0].t->type == DGM_STORED_F16;
    return dgm_import_matrix(c->weights->job, ours, rows, s->cols,
                             half ? DGM_TYPE_F16 : DGM_TYPE_F32, fetch_matrix, s, err);
}

static dgm_status add_term(dgm_store *store, const dgm_vector_term *term, float *out,
                           dgm_error *err)
{
    const dgm_view all = dgm_view_whole(store, term->t);
    const size_t size = (size_t)all.rows * (size_t)all.cols;
    float *values = dgm_malloc(size * sizeof *values);
    if (!values) return dgm_no_memory(err);
    const dgm_status st = dgm_view_read(&all, 0, all.rows, values, err);
    for (int i = 0; st == DGM_OK && i < term->count; i++)
        out[term->at + i] += values[term->first + i];
    dgm_free(values);
    return st;
}

static dgm_status fetch_vector(const void *source, int first, int rows, float *out, dgm_error *err)
{
    const dgm_composed *s = source;
    (void)first;
    (void)rows;
    memset(out, 0, (size_t)s->cols * sizeof *out);
    for (int i = 0; i < s->count; i++)
        if (s->term[i].t) DGM_TRY(add_term(s->store, &s->term[i], out, err));
    return DGM_OK;
}

dgm_status dgm_compose_vector(dgm_composer *c, const char *ours, int size,
                              const dgm_vector_term *terms, int count, dgm_error *err)
{
    dgm_composed *s = new_source(c, count, size);
    if (!s) return dgm_no_memory(err);
    for (int i = 0; i < count; i++) s->term[i] = terms[i];
    return dgm_import_vector(c->weights->job, ours, size, fetch_vector, s, err);
}
