// SPDX-License-Identifier: MIT
// CPU backend: counters of a worker.
//
// Nothing here runs unless a meter or an observer was set (dgm_exec_meter, dgm_exec_observe):
// operations test the pointer before they read the clock. `bench/roofline` reads the meter through
// tools/profile.c, `dragoman quantize --calibrate` is the observer.
#include "backend/cpu/cpu_private.h"

// The row of this kind of work; the last one when there are too many kinds.
static dgm_meter_row *meter_row(dgm_meter *m, const dgm_meter_row *what)
{
    for (int i = 0; i < m->count; i++) {
        dgm_meter_row *r = &m->rows[i];
        if (r->phase == m->phase && r->work == what->work && r->precision == what->precision &&
            r->n == what->n && r->k == what->k)
            return r;
    }
    if (m->count == DGM_METER_ROWS) return &m->rows[DGM_METER_ROWS - 1];
    dgm_meter_row *r = &m->rows[m->count++];
    *r = (dgm_meter_row){.phase = m->phase,
                         .work = what->work,
                         .precision = what->precision,
                         .n = what->n,
                         .k = what->k};
    return r;
}

void cpu_count(dgm_exec *x, const dgm_meter_row *what, double begin)
{
    double end = dgm_thread_time();
    dgm_meter_row *r = meter_row(x->meter, what);
    r->calls++;
    r->rows += what->rows;
    r->madds += what->madds;
    r->weight_bytes += what->weight_bytes;
    r->other_bytes += what->other_bytes;
    r->seconds += end - begin;
}

void cpu_count_moved(dgm_exec *x, double begin, dgm_work work, dgm_mat y, int inputs)
{
    uint64_t elements = (uint64_t)y.rows * (uint64_t)y.cols;
    dgm_meter_row what = {.work = work,
                          .rows = (uint64_t)y.rows,
                          .other_bytes = elements * sizeof(float) * (uint64_t)(1 + inputs)};
    cpu_count(x, &what, begin);
}

void cpu_count_product(dgm_exec *x, const dgm_linear *w, int m, int columns, int walked,
                       double begin)
{
    static const uint64_t sizes[DGM_PRECISION_COUNT] = {
        [DGM_PRECISION_F32] = 4, [DGM_PRECISION_I16] = 2,  [DGM_PRECISION_I8] = 1,
        [DGM_PRECISION_F16] = 2, [DGM_PRECISION_BF16] = 2,
    };
    uint64_t rows = (uint64_t)m, n = (uint64_t)columns, k = (uint64_t)w->cols;
    // Weights as a share of the packed copy, C as it is read and written.
    double share = (double)walked / (double)w->rows;
    dgm_meter_row what = {.work = DGM_WORK_LINEAR,
                          .precision = w->precision,
                          .n = w->rows,
                          .k = w->cols,
                          .rows = rows,
                          .madds = rows * n * k,
                          .weight_bytes = (uint64_t)(share * (double)w->packed_bytes),
                          .other_bytes = rows * (k * sizes[w->precision] + 2 * n * sizeof(float))};
    cpu_count(x, &what, begin);
}

// Workers are all there is.
dgm_status cpu_clock(dgm_exec *x, dgm_error *err)
{
    (void)x;
    (void)err;
    return DGM_OK;
}

double cpu_busy(dgm_backend *b)
{
    (void)b;
    return -1;
}
