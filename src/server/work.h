// SPDX-License-Identifier: MIT
// Handler threads: a few, that run what is posted, first come, first served. Items are parts of requests and tasks,
// so that posting cannot fail.
#ifndef DGM_SERVER_WORK_H
#define DGM_SERVER_WORK_H

#include <stdbool.h>

#include "base/status.h"

typedef struct dgm_work dgm_work;

typedef struct dgm_work_item {
    struct dgm_work_item *next;
    void (*run)(void *arg);
    void *arg;
} dgm_work_item;

dgm_status dgm_work_open(dgm_work **work, int threads, dgm_error *err);
void dgm_work_close(dgm_work **work); // runs what was posted first; accepts NULL inside
void dgm_work_post(dgm_work *work, dgm_work_item *item, void (*run)(void *arg), void *arg);

#endif
