// SPDX-License-Identifier: MIT
// See http_connections.h. What a connection may take is counted from its last answer (headers) or its headers (body),
// not from its last byte, so that one byte now and then does not keep it.
//
// libmicrohttpd is told of bytes and of their end at once, reads the bytes, and then waits for what cannot come: an
// epoll of our own sees who has closed for its part; such a connection is closed unless it is being answered.
#include "server/http_connections.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

static void list_add(dgm_connections *t, dgm_connection *c)
{
    c->after = NULL;
    c->before = t->last;
    if (t->last)
        t->last->after = c;
    else
        t->first = c;
    t->last = c;
}

static void list_remove(dgm_connections *t, dgm_connection *c)
{
    if (c->before)
        c->before->after = c->after;
    else
        t->first = c->after;
    if (c->after)
        c->after->before = c->before;
    else
        t->last = c->before;
}

// Lock held.
static void kick(dgm_connection *c)
{
    if (!c->closed) shutdown(c->fd, SHUT_RDWR);
    c->closed = true;
}

// Too many connections: the one that has been without a request for the longest time makes room. Lock held.
static void make_room(dgm_connections *t)
{
    dgm_connection *c = t->first;
    while (c && (c->phase != DGM_PHASE_HEADERS || c->closed)) c = c->after;
    if (c) kick(c);
}

dgm_connection *dgm_connections_add(dgm_connections *t, int fd)
{
    dgm_connection *c = dgm_calloc(1, sizeof *c);
    if (!c) return NULL;
    struct epoll_event e = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = c};
    c->fd = fd;
    c->since = dgm_now();
    pthread_mutex_lock(&t->lock);
    epoll_ctl(t->halves, EPOLL_CTL_ADD, fd, &e);
    if (t->count >= t->most) make_room(t);
    t->count++;
    list_add(t, c);
    pthread_mutex_unlock(&t->lock);
    return c;
}

void dgm_connections_remove(dgm_connections *t, dgm_connection *c)
{
    pthread_mutex_lock(&t->lock);
    epoll_ctl(t->halves, EPOLL_CTL_DEL, c->fd, NULL);
    list_remove(t, c);
    t->count--;
    pthread_mutex_unlock(&t->lock);
    dgm_free(c);
}

// The list is in the order of `since`.
void dgm_connections_enter(dgm_connections *t, dgm_connection *c, dgm_phase phase)
{
    if (!c) return;
    pthread_mutex_lock(&t->lock);
    c->phase = phase;
    c->since = dgm_now();
    list_remove(t, c);
    list_add(t, c);
    pthread_mutex_unlock(&t->lock);
}

static void find_halves(dgm_connections *t)
{
    struct epoll_event events[64];
    int n;
    while ((n = epoll_wait(t->halves, events, 64, 0)) > 0)
        for (int i = 0; i < n; i++) ((dgm_connection *)events[i].data.ptr)->half = true;
}

// Neither a request nor the rest of one can come any more. Bytes that nobody has read yet may be one.
static bool is_over(const dgm_connection *c, double now)
{
    int unread = 0;
    return c->half && c->phase != DGM_PHASE_ANSWER && now - c->since > 1 && ioctl(c->fd, FIONREAD, &unread) == 0 &&
           unread == 0;
}

void dgm_connections_sweep(dgm_connections *t, double header_seconds, double body_seconds)
{
    const double now = dgm_now();
    if (now - t->swept < 1) return;
    t->swept = now;
    find_halves(t);
    for (dgm_connection *c = t->first; c; c = c->after) {
        const double most = c->phase == DGM_PHASE_HEADERS ? header_seconds
                            : c->phase == DGM_PHASE_BODY  ? body_seconds
                                                          : 1e9;
        if (now - c->since > most || is_over(c, now)) kick(c);
    }
}

void dgm_connections_give_up(dgm_connections *t)
{
    for (dgm_connection *c = t->first; c; c = c->after)
        if (c->phase == DGM_PHASE_ANSWER) kick(c);
}

dgm_status dgm_connections_open(dgm_connections *t, size_t most, dgm_error *err)
{
    pthread_mutex_init(&t->lock, NULL);
    t->most = most;
    t->halves = epoll_create1(EPOLL_CLOEXEC);
    return t->halves < 0 ? dgm_no_memory(err) : DGM_OK;
}

void dgm_connections_close(dgm_connections *t)
{
    if (t->halves >= 0) close(t->halves);
    pthread_mutex_destroy(&t->lock);
}
