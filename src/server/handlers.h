// SPDX-License-Identifier: MIT
// Handler threads: a few, that run what is posted, first come, first served. Items are parts of requests and tasks,
// so that posting cannot fail.
#ifndef DGM_SERVER_HANDLERS_H
#define DGM_SERVER_HANDLERS_H

#include <stdbool.h>

#include "base/status.h"

typedef struct dgm_handlers dgm_handlers;

typedef struct dgm_handler_item {
    struct dgm_handler_item *next;
    void (*run)(void *arg);
    void *arg;
} dgm_handler_item;

dgm_status dgm_handlers_open(dgm_handlers **work, int threads, dgm_error *err);
void dgm_handlers_close(dgm_handlers **work); // runs what was posted first; accepts NULL inside
void dgm_handlers_post(dgm_handlers *work, dgm_handler_item *item, void (*run)(void *arg), void *arg);

#endif
