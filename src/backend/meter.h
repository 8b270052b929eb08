// SPDX-License-Identifier: MIT
// Watching a worker: what its operations cost, and what its products see.
#ifndef DGM_BACKEND_METER_H
#define DGM_BACKEND_METER_H

#include "backend/rank.h"

// Both are off (NULL) until set, and an operation then pays for one look at a pointer. Set them
// while the worker does nothing.

// Which part of decoding the worker is in: model/ says so.
typedef enum dgm_phase {
    DGM_PHASE_ENCODE = 0,
    DGM_PHASE_STEP,
    DGM_PHASE_READOUT, // of a recurrent decoder, where it has a layer for it
    DGM_PHASE_RANK,
    DGM_PHASE_COUNT
} dgm_phase;

typedef enum dgm_work {
    DGM_WORK_LINEAR = 0,  // products, one row of the meter per shape
    DGM_WORK_QUANTIZE,    // input rows to integers
    DGM_WORK_ATTEND,      // over neighbouring rows: encoder, cross
    DGM_WORK_ATTEND_PATH, // over a list of rows: self-attention of a decoder
    DGM_WORK_NORM,
    DGM_WORK_EMBED,
    DGM_WORK_GATES,
    DGM_WORK_ROWS, // sums, activations and copies of rows
    DGM_WORK_TOPK, // softmax sums, terms and lists of rank
    DGM_WORK_COUNT
} dgm_work;

typedef struct dgm_meter_row {
    dgm_phase phase;
    dgm_work work;
    dgm_precision precision; // of LINEAR and QUANTIZE
    int n, k;                // outputs and inputs of LINEAR; 0 elsewhere
    uint64_t calls, rows;
    uint64_t madds;        // multiply-adds of real rows and wanted columns, without padding
    uint64_t weight_bytes; // packed weights that were walked over
    uint64_t other_bytes;  // activations read and written
    double seconds;        // CPU time of the worker
} dgm_meter_row;

enum { DGM_METER_ROWS = 128 };

typedef struct dgm_meter {
    dgm_meter_row rows[DGM_METER_ROWS]; // what does not fit is added to the last one
    int count;
    dgm_phase phase;
    uint64_t phases[DGM_PHASE_COUNT]; // calls of each
} dgm_meter;

void dgm_meter_add(dgm_meter *sum, const dgm_meter *m); // rows of the same work become one
void dgm_exec_meter(dgm_exec *x, dgm_meter *meter);
void dgm_exec_phase(dgm_exec *x, dgm_phase phase);

// From now on the device measures when it is busy with what the worker asks of it. Before the worker's first operation.
dgm_status dgm_exec_clock(dgm_exec *x, dgm_error *err);
// Seconds in which it was, for any of the workers with a clock, until each of them waited last. Negative: the
// workers' threads are all that could be busy (a CPU).
double dgm_backend_busy(dgm_backend *b);

// Told of the inputs of every product: max |x| of each of the rows; and of every rank when it is
// done. Either may be NULL.
typedef struct dgm_observer {
    void (*inputs)(void *cookie, const dgm_linear *w, const float *largest, int rows);
    void (*ranked)(void *cookie, dgm_exec *x, const dgm_rank *rank);
    void *cookie;
} dgm_observer;

void dgm_exec_observe(dgm_exec *x, const dgm_observer *observer);

#endif
