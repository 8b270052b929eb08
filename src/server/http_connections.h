// SPDX-License-Identifier: MIT
// Connections of the server and their clocks: what each may take, and who makes room when there are too many.
#ifndef DGM_SERVER_HTTP_CONNECTIONS_H
#define DGM_SERVER_HTTP_CONNECTIONS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef enum dgm_phase { DGM_PHASE_HEADERS, DGM_PHASE_BODY, DGM_PHASE_ANSWER } dgm_phase;

typedef struct dgm_connection {
    struct dgm_connection *before, *after;
    int fd;
    dgm_phase phase;
    double since;
    bool closed; // by us
    bool half;   // by the client, for its part
} dgm_connection;

typedef struct dgm_connections {
    pthread_mutex_t lock;
    dgm_connection *first, *last; // the ones that wait longest first, by phase mixed
    size_t count, most;
    int halves; // epoll of those that the client may close for its part
    double swept;
} dgm_connections;

dgm_status dgm_connections_open(dgm_connections *t, size_t most, dgm_error *err);
void dgm_connections_close(dgm_connections *t); // all have ended
dgm_connection *dgm_connections_add(dgm_connections *t, int fd); // NULL: no memory, it has no clock
void dgm_connections_remove(dgm_connections *t, dgm_connection *c);
void dgm_connections_enter(dgm_connections *t, dgm_connection *c, dgm_phase phase); // accepts NULL
// Lock held: closes those that have taken longer, at most once a second; all that are being answered.
void dgm_connections_sweep(dgm_connections *t, double header_seconds, double body_seconds);
void dgm_connections_give_up(dgm_connections *t);

#endif
