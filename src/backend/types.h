// SPDX-License-Identifier: MIT
// What the layers above the models may know of a device: names of opaque things, a view of rows,
// and what a worker answers.
//
//   dgm_backend   a device: kernels, packing rules. Immutable after open, shared by all threads.
//   dgm_linear    a weight matrix with its bias, resident and packed for that device.
//   dgm_embedding a table whose rows are gathered by token id.
//   dgm_vector    norms, biases and other f32 vectors on the device.
//   dgm_experts   feed-forward networks of a mixture, each packed by the first row that needs it.
//   dgm_exec      one worker's stream of operations with its scratch memory and counters.
//   dgm_mat       a view of activations on the device: address arithmetic through helpers only,
//                 since the element type is the backend's business.
#ifndef DGM_BACKEND_TYPES_H
#define DGM_BACKEND_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/precision.h"
#include "base/status.h"
#include "base/team.h"

typedef struct dgm_backend dgm_backend;
typedef struct dgm_linear dgm_linear;
typedef struct dgm_embedding dgm_embedding;
typedef struct dgm_vector dgm_vector;
typedef struct dgm_experts dgm_experts;
typedef struct dgm_experts_use dgm_experts_use;
typedef struct dgm_gathered dgm_gathered;
typedef struct dgm_paths dgm_paths;
typedef struct dgm_centroids dgm_centroids;
typedef struct dgm_exec dgm_exec;

typedef struct dgm_mat {
    void *data;
    int rows, cols;
    int stride; // elements between rows
    int elem;   // bytes of an element
} dgm_mat;

static inline dgm_mat dgm_mat_rows(dgm_mat m, int first, int count)
{
    m.data = (char *)m.data + (size_t)first * (size_t)m.stride * (size_t)m.elem;
    m.rows = count;
    return m;
}

static inline dgm_mat dgm_mat_cols(dgm_mat m, int first, int count)
{
    m.data = (char *)m.data + (size_t)first * (size_t)m.elem;
    m.cols = count;
    return m;
}

// Sizes of memory. A worker has two: the host's, for bookkeeping, and the device's, for rows. On a CPU
// both are of the same kind, but they are counted apart all the same.
typedef struct dgm_bytes {
    size_t host, device;
} dgm_bytes;

static inline dgm_bytes dgm_bytes_add(dgm_bytes a, dgm_bytes b)
{
    return (dgm_bytes){a.host + b.host, a.device + b.device};
}

// As much of each.
static inline dgm_bytes dgm_bytes_both(size_t n)
{
    return (dgm_bytes){n, n};
}

// The larger of each: of two things that are never there at the same time.
static inline dgm_bytes dgm_bytes_max(dgm_bytes a, dgm_bytes b)
{
    return (dgm_bytes){a.host > b.host ? a.host : b.host,
                       a.device > b.device ? a.device : b.device};
}

// Device memory from the worker's arena: stack discipline with mark and reset (device.h). data is
// NULL when the arena is full, only possible while something is opened on the worker.
dgm_mat dgm_exec_mat(dgm_exec *x, int rows, int cols);
size_t dgm_exec_mat_bytes(const dgm_backend *b, int rows, int cols); // of device memory

// Operations do not fail by themselves: a device error sticks in the worker until it is asked.
dgm_status dgm_exec_status(dgm_exec *x, dgm_error *err);
// Threads that may share the worker's operations, and what the host does between them, with the same results: who has
// nothing to do helps (base/team.h).
dgm_team *dgm_exec_team(dgm_exec *x);
// What was asked of the worker so far, about `rows` rows, may begin: a device that gathers operations need not wait for
// more of them, where that gains something. Callers go on with what the host has to do.
void dgm_exec_start(dgm_exec *x, int rows);
// Waits until everything that was asked of the worker is done and what the host wants of it is there.
// dgm_op_rank and dgm_op_read wait by themselves.
void dgm_exec_sync(dgm_exec *x);
// Host memory of a worker; it is given back together with its device memory (dgm_exec_reset).
dgm_arena *dgm_exec_host(dgm_exec *x);

#endif
