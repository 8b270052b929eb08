// SPDX-License-Identifier: MIT
// The access log: one JSON object a line for every request, with texts only where that was asked for.
#ifndef DGM_SERVER_ACCESS_LOG_H
#define DGM_SERVER_ACCESS_LOG_H

#include "server/api_keys.h"
#include "server/request.h"

typedef struct dgm_access_log dgm_access_log;

// "-": standard error
dgm_status dgm_access_log_open(dgm_access_log **log, const char *path, bool texts, dgm_error *err);
void dgm_access_log_close(dgm_access_log **log); // accepts NULL inside
void dgm_access_log_reopen(dgm_access_log *log); // after the file was moved away
void dgm_access_log_put(dgm_access_log *log, const dgm_request *q, double seconds);

#endif
