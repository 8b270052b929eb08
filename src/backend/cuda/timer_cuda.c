// SPDX-License-Identifier: MIT
// CUDA backend: how long the device was busy, by its own clock.
//
//     worker's stream    anchor ... begin play end ... begin play end ... wait
//
// An event is recorded before and after every play of the tape, and asked for its time when the worker has
// waited. CUDA tells times as the distance of two events in a float of milliseconds: so each worker measures from
// an anchor in its own stream, which moves on before distances get coarse, and the first anchors of all workers
// are measured from one event of the device's. What several workers' spans cover together is the device's.
#include <pthread.h>

#include "backend/cuda/cuda_private.h"
#include "base/mem.h"

enum {
    PLAYS = 16,   // between two waits that are told apart; further ones make the last one longer
    COARSE = 2000 // milliseconds: there a float still tells a tenth of a microsecond
};

struct cuda_timer {
    dgm_backend *backend;
    cudaStream_t stream;
    cudaEvent_t anchor, spare;
    cudaEvent_t begin[PLAYS], end[PLAYS];
    int count;
    double anchored; // seconds from the device's first event to the anchor
};

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; // of every device's epoch and spans

static cudaError_t open_events(cuda_timer *c)
{
    cudaError_t e = cudaEventCreate(&c->anchor);
    if (e == cudaSuccess) e = cudaEventCreate(&c->spare);
    for (int i = 0; i < PLAYS && e == cudaSuccess; i++) {
        e = cudaEventCreate(&c->begin[i]);
        if (e == cudaSuccess) e = cudaEventCreate(&c->end[i]);
    }
    return e;
}

// The anchor of a new clock; gate held.
static cudaError_t set_anchor(cuda_timer *c)
{
    cudaEvent_t *epoch = &c->backend->epoch;
    cudaError_t e = cudaSuccess;
    float since = 0;
    if (!*epoch) {
        e = cudaEventCreate(epoch);
        if (e == cudaSuccess) e = cudaEventRecord(*epoch, c->stream);
    }
    if (e == cudaSuccess) e = cudaEventRecord(c->anchor, c->stream);
    if (e == cudaSuccess) e = cudaStreamSynchronize(c->stream);
    if (e == cudaSuccess) e = cudaEventElapsedTime(&since, *epoch, c->anchor);
    c->anchored = (double)since / 1000;
    return e;
}

dgm_status cuda_clock(dgm_exec *x, dgm_error *err)
{
    cuda_exec_own *o = x->own;
    if (o->clock) return DGM_OK;
    DGM_TRY(cuda_status(cuda_use(x->backend), "opening it", err));
    cuda_timer *c = o->clock = dgm_calloc(1, sizeof *c);
    if (!c) return dgm_no_memory(err);
    c->backend = x->backend;
    c->stream = o->stream;
    DGM_TRY(cuda_status(open_events(c), "events", err));
    pthread_mutex_lock(&gate);
    const cudaError_t e = set_anchor(c);
    pthread_mutex_unlock(&gate);
    DGM_TRY(cuda_status(e, "events", err));
    cuda_tape_time(o->tape, c);
    return DGM_OK;
}

static void close_event(cudaEvent_t e)
{
    if (e) cudaEventDestroy(e);
}

void cuda_timer_close(cuda_timer **clock)
{
    cuda_timer *c = *clock;
    if (!c) return;
    close_event(c->anchor);
    close_event(c->spare);
    for (int i = 0; i < PLAYS; i++) {
        close_event(c->begin[i]);
        close_event(c->end[i]);
    }
    dgm_free(c);
    *clock = NULL;
}

cudaError_t cuda_timer_begin(cuda_timer *c)
{
    if (!c || c->count == PLAYS) return cudaSuccess;
    return cudaEventRecord(c->begin[c->count++], c->stream);
}

cudaError_t cuda_timer_end(cuda_timer *c)
{
    return c ? cudaEventRecord(c->end[c->count - 1], c->stream) : cudaSuccess;
}

static void move_anchor(cuda_timer *c)
{
    float since = 0;
    if (cudaEventRecord(c->spare, c->stream) != cudaSuccess || cudaStreamSynchronize(c->stream) != cudaSuccess ||
        cudaEventElapsedTime(&since, c->anchor, c->spare) != cudaSuccess)
        return;
    const cudaEvent_t old = c->anchor;
    c->anchor = c->spare;
    c->spare = old;
    c->anchored += (double)since / 1000;
}

void cuda_timer_take(cuda_timer *c)
{
    if (!c) return;
    float begin = 0, end = 0;
    pthread_mutex_lock(&gate);
    for (int i = 0; i < c->count; i++) {
        if (cudaEventElapsedTime(&begin, c->anchor, c->begin[i]) == cudaSuccess &&
            cudaEventElapsedTime(&end, c->begin[i], c->end[i]) == cudaSuccess) {
            const double at = c->anchored + (double)begin / 1000;
            dgm_spans_add(&c->backend->busy, at, at + (double)end / 1000);
        } else {
            cudaGetLastError(); // a play that failed has no end, and that was said
        }
    }
    pthread_mutex_unlock(&gate);
    c->count = 0;
    if (begin > COARSE) move_anchor(c);
}

double cuda_busy(dgm_backend *b)
{
    pthread_mutex_lock(&gate);
    const double sum = dgm_spans_sum(&b->busy);
    pthread_mutex_unlock(&gate);
    return sum;
}
