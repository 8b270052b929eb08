// SPDX-License-Identifier: MIT
// A fixed set of worker threads with one shared counter of work items.
//
// dgm_pool_run calls fn(arg, worker, item) for every item in [0, items), items taken in order by
// whichever worker is free; the calling thread works too (as worker 0). It returns when all items
// are done. With one thread nothing is started and everything runs in the caller. Calls to one
// pool must not overlap.
#ifndef DGM_BASE_THREADS_H
#define DGM_BASE_THREADS_H

#include "base/status.h"

typedef struct dgm_pool dgm_pool;
typedef void (*dgm_pool_fn)(void *arg, int worker, int item);

dgm_status dgm_pool_open(dgm_pool **pool, int threads, dgm_error *err);
void dgm_pool_close(dgm_pool **pool); // sets *pool to NULL; accepts NULL inside
int dgm_pool_threads(const dgm_pool *pool);
void dgm_pool_run(dgm_pool *pool, dgm_pool_fn fn, void *arg, int items);

int dgm_cpu_count(void); // cores this process may use

#endif
