// SPDX-License-Identifier: MIT
// The thread that runs libmicrohttpd: waits for its events and lets it look at them.
//
// libmicrohttpd has threads of its own, but up to 1.0.1 at least they go to sleep with 128 events in their hands: when
// a call brings as many as it has room for, they wait for more before they look at any. As many clients as that, all
// of whom wait for answers, wait until somebody else comes. Here the wait is ours, and its own calls do not wait.
//
// Its own signal for connections that go on (MHD_resume_connection) may be taken by a call that looked for them
// already: ours is taken before the call.
#define _GNU_SOURCE
#include "server/http_loop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"

struct dgm_http_loop {
    struct MHD_Daemon *daemon;
    int events; // the daemon's epoll
    int wake;
    atomic_bool quit;
    pthread_t thread;
};

static void *loop_main(void *arg)
{
    dgm_http_loop *loop = arg;
    enum { LONGEST_MS = 1000 };
    while (!atomic_load(&loop->quit)) {
        struct pollfd p[2] = {{.fd = loop->events, .events = POLLIN}, {.fd = loop->wake, .events = POLLIN}};
        MHD_UNSIGNED_LONG_LONG ms = LONGEST_MS;
        if (MHD_get_timeout(loop->daemon, &ms) != MHD_YES || ms > LONGEST_MS) ms = LONGEST_MS;
        uint64_t count;
        if (ms) (void)poll(p, 2, (int)ms);
        if (p[1].revents && read(loop->wake, &count, sizeof count) < 0) errno = 0;
        MHD_run(loop->daemon);
    }
    return NULL;
}

dgm_status dgm_http_loop_start(struct MHD_Daemon *daemon, dgm_http_loop **out, dgm_error *err)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    dgm_http_loop *loop = info ? dgm_calloc(1, sizeof *loop) : NULL;
    *out = loop; // before its thread, which may bring a request, and need its answer, before pthread_create returns
    if (!loop) return dgm_no_memory(err);
    loop->daemon = daemon;
    loop->events = info->epoll_fd;
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake < 0 || pthread_create(&loop->thread, NULL, loop_main, loop) != 0) {
        if (loop->wake >= 0) close(loop->wake);
        dgm_free(loop);
        *out = NULL;
        return dgm_no_memory(err);
    }
    return DGM_OK;
}

void dgm_http_loop_wake(dgm_http_loop *loop)
{
    const uint64_t one = 1;
    if (write(loop->wake, &one, sizeof one) < 0) errno = 0; // full: it will wake up anyhow
}

void dgm_http_loop_stop(dgm_http_loop **at)
{
    dgm_http_loop *loop = *at;
    if (!loop) return;
    *at = NULL;
    atomic_store(&loop->quit, true);
    dgm_http_loop_wake(loop);
    pthread_join(loop->thread, NULL);
    close(loop->wake);
    dgm_free(loop);
}
