// SPDX-License-Identifier: MIT
// The thread that runs libmicrohttpd (http_loop.c).
#ifndef DGM_SERVER_HTTP_LOOP_H
#define DGM_SERVER_HTTP_LOOP_H

#include <microhttpd.h>

#include "base/status.h"

typedef struct dgm_http_loop dgm_http_loop;

// Of a daemon that uses epoll and has no thread; it may be stopped when its loop was.
dgm_status dgm_http_loop_start(struct MHD_Daemon *daemon, dgm_http_loop **loop, dgm_error *err);
void dgm_http_loop_wake(dgm_http_loop *loop); // after MHD_resume_connection
void dgm_http_loop_stop(dgm_http_loop **loop); // accepts NULL inside

#endif
