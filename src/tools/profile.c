// SPDX-License-Identifier: MIT
// The profile of a translator: the workers' counters (backend/meter.h) with names, summed over
// the workers and sorted, for `bench/roofline` and whoever else asks through dragoman/tools.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/ops.h"
#include "base/clock.h"
#include "base/mem.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"
#include "format/modelfile.h"

static const char *const phase_names[DGM_PHASE_COUNT] = {"encode", "step", "readout",
                                                          "rank"};
static const char *const work_names[DGM_WORK_COUNT] = {
    [DGM_WORK_LINEAR] = "linear",
    [DGM_WORK_QUANTIZE] = "quantise",
    [DGM_WORK_ATTEND] = "cross attention",
    [DGM_WORK_ATTEND_PATH] = "self attention",
    [DGM_WORK_NORM] = "norm",
    [DGM_WORK_EMBED] = "embed",
    [DGM_WORK_GATES] = "gates",
    [DGM_WORK_ROWS] = "sums and copies",
    [DGM_WORK_TOPK] = "softmax and top-k",
};

dgm_status dgm_profile_start(dgm_translator *t, dgm_error *err)
{
    DGM_FAIL_IF(!t, err, DGM_ERR_ARGUMENT, "a profile needs a translator");
    return dgm_workers_meter(t, true, err);
}

void dgm_profile_stop(dgm_translator *t)
{
    if (t) dgm_workers_meter(t, false, NULL);
}

static dgm_profile_row named(const dgm_meter_row *r)
{
    bool product = r->work == DGM_WORK_LINEAR || r->work == DGM_WORK_QUANTIZE;
    dgm_profile_row out = {
        .size = sizeof out,
        .phase = phase_names[r->phase],
        .operation = work_names[r->work],
        .precision = product ? dgm_precision_names[r->precision] : "",
        .inputs = r->k,
        .outputs = r->n,
        .calls = r->calls,
        .rows = r->rows,
        .multiply_adds = r->madds,
        .weight_bytes = r->weight_bytes,
        .other_bytes = r->other_bytes,
        .seconds = r->seconds,
    };
    if (r->work == DGM_WORK_ATTEND && r->phase == DGM_PHASE_ENCODE)
        out.operation = "encoder attention";
    return out;
}

static int by_phase_and_time(const void *a, const void *b)
{
    const dgm_meter_row *x = a, *y = b;
    if (x->phase != y->phase) return x->phase < y->phase ? -1 : 1;
    return x->seconds > y->seconds ? -1 : x->seconds < y->seconds;
}

// Seconds that reading the clock takes: least of a few rounds.
static double clock_cost(void)
{
    enum { READS = 200 };
    double least = 1;
    for (int round = 0; round < 5; round++) {
        double begin = dgm_thread_time(), end = begin;
        for (int i = 0; i < READS; i++) end = dgm_thread_time();
        if ((end - begin) / READS < least) least = (end - begin) / READS;
    }
    return least;
}

dgm_status dgm_profile_read(dgm_translator *t, dgm_profile **out, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(!t || !t->profiling, err, DGM_ERR_ARGUMENT, "no profile was started");
    dgm_meter *sum = dgm_calloc(1, sizeof *sum);
    if (!sum) return dgm_no_memory(err);
    double busy = 0, operations = 0, counting = 0, cost = clock_cost();
    dgm_workers_read(t, sum, &busy);
    size_t n = (size_t)sum->count;
    dgm_profile *p =
        dgm_malloc(sizeof *p + n * (sizeof(dgm_profile_row) + sizeof(dgm_profile_row *)));
    if (!p) {
        dgm_free(sum);
        return dgm_no_memory(err);
    }
    dgm_profile_row *rows = (dgm_profile_row *)(void *)(p + 1);
    const dgm_profile_row **list = (const dgm_profile_row **)(void *)(rows + n);
    if (n) qsort(sum->rows, n, sizeof sum->rows[0], by_phase_and_time);
    for (size_t i = 0; i < n; i++) {
        // Every operation reads the clock twice; one reading lies within its time.
        double reading = (double)sum->rows[i].calls * cost;
        rows[i] = named(&sum->rows[i]);
        list[i] = &rows[i];
        rows[i].seconds = fmax(rows[i].seconds - reading, 0.1 * rows[i].seconds);
        operations += rows[i].seconds;
        counting += 2 * reading;
    }
    *p = (dgm_profile){
        .size = sizeof *p,
        .rows = list,
        .count = n,
        .elapsed = dgm_now() - t->profile_begin,
        .busy = busy,
        .search = fmax(busy - operations - counting, 0),
        .counting = counting,
        .text = t->text_seconds,
        .encodes = sum->phases[DGM_PHASE_ENCODE],
        .steps = sum->phases[DGM_PHASE_STEP],
        .ranks = sum->phases[DGM_PHASE_RANK],
    };
    dgm_free(sum);
    *out = p;
    return DGM_OK;
}

void dgm_profile_free(dgm_profile **profile)
{
    if (!profile) return;
    dgm_free(*profile);
    *profile = NULL;
}
