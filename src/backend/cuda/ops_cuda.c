// SPDX-License-Identifier: MIT
// CUDA backend: operations on rows. Each sends what the host gave it and launches one kernel.
#include "backend/cuda/cuda_private.h"

void cuda_embed(dgm_exec *x, dgm_mat y, const dgm_embedding *table, const int32_t *ids, float scale,
                const dgm_vector *start, const dgm_vector *positions, const int32_t *pos)
{
    cuda_begin(x);
    const int32_t *tokens = CUDA_SEND(x, int32_t, ids, y.rows);
    const int32_t *at = positions ? CUDA_SEND(x, int32_t, pos, y.rows) : NULL;
    if (!tokens || (positions && !at)) return;
    cuda_run_embed(cuda_tape_of(x), cuda_view(y), table->table, tokens, scale,
                   start ? start->data : NULL, positions ? positions->data : NULL,
                   positions ? positions->cols : 0, at);
}

void cuda_norm(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_vector *gamma, const dgm_vector *beta,
               float eps)
{
    cuda_run_norm(cuda_tape_of(x), cuda_view(y), cuda_view(in), gamma->data, beta ? beta->data : NULL,
                  eps);
}

void cuda_rms_norm(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_vector *gamma, float eps)
{
    cuda_run_rms_norm(cuda_tape_of(x), cuda_view(y), cuda_view(in), gamma->data, eps);
}

// Rows become halves where they are read (the tape sees by whom), so that a reader's name is of no use here.
void cuda_norm_for(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_mat *add, const dgm_norm *how,
                   const dgm_linear *reader)
{
    (void)reader;
    if (add) cuda_add(x, y, in, *add);
    if (how->rms)
        cuda_rms_norm(x, y, add ? y : in, how->gamma, how->eps);
    else
        cuda_norm(x, y, add ? y : in, how->gamma, how->beta, how->eps);
}

void cuda_gated(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b, dgm_act act)
{
    cuda_run_gated(cuda_tape_of(x), cuda_view(y), cuda_view(a), cuda_view(b), (int)act);
}

void cuda_act(dgm_exec *x, dgm_mat y, dgm_mat in, dgm_act act)
{
    cuda_run_act(cuda_tape_of(x), cuda_view(y), cuda_view(in), (int)act);
}

void cuda_add(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b)
{
    cuda_run_add(cuda_tape_of(x), cuda_view(y), cuda_view(a), cuda_view(b));
}

void cuda_add_vector(dgm_exec *x, dgm_mat y, dgm_mat a, const dgm_vector *v)
{
    cuda_run_add_vector(cuda_tape_of(x), cuda_view(y), cuda_view(a), v->data);
}

void cuda_maxout(dgm_exec *x, dgm_mat y, dgm_mat in)
{
    cuda_run_maxout(cuda_tape_of(x), cuda_view(y), cuda_view(in));
}

void cuda_zero(dgm_exec *x, dgm_mat y)
{
    cuda_run_zero_rows(cuda_tape_of(x), cuda_view(y), NULL, y.rows);
}

void cuda_gather(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *index)
{
    cuda_begin(x);
    const int32_t *from = index ? CUDA_SEND(x, int32_t, index, y.rows) : NULL;
    if (index && !from) return;
    cuda_run_copy(cuda_tape_of(x), cuda_view(y), NULL, cuda_view(in), from, y.rows, 0);
}

// If `in` are columns of the product before, that product writes them into the cache itself.
static bool keep_columns(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *to)
{
    cuda_product *p = cuda_last_product(cuda_tape_of(x), 0);
    if (!p || p->keep || !p->paired || p->groups || y.elem != sizeof(uint16_t)) return false;
    const ptrdiff_t first = (const float *)in.data - p->c;
    const bool inside = first >= 0 && first + in.cols <= p->n && in.stride == p->ldc && in.rows == p->m;
    if (!inside || first % 2 || in.cols % 2 || y.stride % 2) return false;
    p->keep = y.data;
    p->keep_rows = to;
    p->keep_stride = y.stride;
    p->keep_first = (int)first;
    p->keep_count = in.cols;
    return true;
}

void cuda_scatter(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *index)
{
    cuda_begin(x);
    const int32_t *to = CUDA_SEND(x, int32_t, index, in.rows);
    if (!to || keep_columns(x, y, in, to)) return;
    y.cols = in.cols;
    cuda_run_copy(cuda_tape_of(x), cuda_view(y), to, cuda_view(in), NULL, in.rows,
                  y.elem == sizeof(uint16_t));
}

void cuda_copy(dgm_exec *x, dgm_mat y, const int32_t *to, dgm_mat in, const int32_t *from, int count)
{
    cuda_begin(x);
    const int32_t *targets = CUDA_SEND(x, int32_t, to, count);
    const int32_t *sources = CUDA_SEND(x, int32_t, from, count);
    if (!targets || !sources) return;
    cuda_run_copy(cuda_tape_of(x), cuda_view(y), targets, cuda_view(in), sources, count, 0);
}

void cuda_zero_rows(dgm_exec *x, const dgm_mat *y, int matrices, const int32_t *rows, int count)
{
    cuda_begin(x);
    const int32_t *which = CUDA_SEND(x, int32_t, rows, count);
    if (!which) return;
    for (int m = 0; m < matrices; m++)
        cuda_run_zero_rows(cuda_tape_of(x), cuda_view(y[m]), which, count);
}

void cuda_mean(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *first, const int32_t *count)
{
    cuda_begin(x);
    const int32_t *begin = CUDA_SEND(x, int32_t, first, y.rows);
    const int32_t *n = CUDA_SEND(x, int32_t, count, y.rows);
    if (!begin || !n) return;
    cuda_run_mean(cuda_tape_of(x), cuda_view(y), cuda_view(in), begin, n);
}

void cuda_scale(dgm_exec *x, dgm_mat y, dgm_mat in, const float *factor)
{
    cuda_begin(x);
    const float *by = CUDA_SEND(x, float, factor, y.rows);
    if (!by) return;
    cuda_run_scale(cuda_tape_of(x), cuda_view(y), cuda_view(in), by);
}

void cuda_gru(dgm_exec *x, dgm_mat out, dgm_mat state, dgm_mat gx, dgm_mat gh)
{
    cuda_run_gru(cuda_tape_of(x), cuda_view(out), cuda_view(state), cuda_view(gx), cuda_view(gh));
}

void cuda_lstm(dgm_exec *x, dgm_mat out, dgm_mat cell_out, dgm_mat cell, dgm_mat gx, dgm_mat gh)
{
    cuda_run_lstm(cuda_tape_of(x), cuda_view(out), cuda_view(cell_out), cuda_view(cell),
                  cuda_view(gx), cuda_view(gh));
}

void cuda_ssru(dgm_exec *x, dgm_mat out, dgm_mat cell_out, dgm_mat cell, dgm_mat in, dgm_mat f)
{
    cuda_run_ssru(cuda_tape_of(x), cuda_view(out), cuda_view(cell_out), cuda_view(cell),
                  cuda_view(in), cuda_view(f));
}

void cuda_gated_sum(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b, dgm_mat g)
{
    cuda_run_gated_sum(cuda_tape_of(x), cuda_view(y), cuda_view(a), cuda_view(b), cuda_view(g));
}

void cuda_set(dgm_exec *x, dgm_mat tables, int row, const int32_t *ids, const float *values, int count)
{
    cuda_begin(x);
    const int32_t *tokens = CUDA_SEND(x, int32_t, ids, count);
    const float *numbers = values ? CUDA_SEND(x, float, values, count) : NULL;
    if (!tokens || (values && !numbers)) return;
    cuda_run_set(cuda_tape_of(x), dgm_mat_rows(tables, row, 1).data, tokens, numbers, count);
}

void cuda_distances(dgm_exec *x, dgm_mat rows, const int32_t *one, const int32_t *two, int count,
                    dgm_distance *out)
{
    _Static_assert(sizeof(dgm_distance) == 2 * sizeof(double), "two numbers side by side");
    cuda_exec_own *o = x->own;
    const int most = (int)((o->back_size < o->ring.size / 4 ? o->back_size : o->ring.size / 4) / sizeof *out);
    for (int at = 0; at < count; at += most) {
        const int n = count - at < most ? count - at : most;
        cuda_begin(x);
        const int32_t *a = CUDA_SEND(x, int32_t, one + at, n), *b = CUDA_SEND(x, int32_t, two + at, n);
        dgm_distance *found = cuda_room(x, (size_t)n * sizeof *out);
        if (!a || !b || !found) return;
        cuda_run_distances(cuda_tape_of(x), cuda_view(rows), a, b, n, (double *)(void *)found);
        if (!cuda_fetch(x, out + at, found, (size_t)n * sizeof *out)) return;
    }
}
