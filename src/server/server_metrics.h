// SPDX-License-Identifier: MIT
// Numbers of a server: requests by endpoint and status, latencies, tokens; for /metrics, /v1/stats and the public
// counters.
#ifndef DGM_SERVER_SERVER_METRICS_H
#define DGM_SERVER_SERVER_METRICS_H

#include "server/task.h"

typedef struct dgm_meters dgm_meters;

dgm_status dgm_meters_open(dgm_meters **meters, dgm_error *err);
void dgm_meters_close(dgm_meters **meters); // accepts NULL inside

void dgm_meters_request(dgm_meters *m, const dgm_request *q, double seconds); // it was answered
void dgm_meters_task(dgm_meters *m, const dgm_task_view *view);
void dgm_meters_count(dgm_meters *m, dgm_server_counters *c);

// Of the last 1,024 translations: milliseconds at these shares (0.5, 0.99) of them, by request or by output token.
double dgm_meters_latency(dgm_meters *m, double share, bool by_token);

#endif
