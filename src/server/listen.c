// SPDX-License-Identifier: MIT
// Sockets that a server listens on: TCP, Unix, or one that was handed over.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/server_private.h"

enum { BACKLOG = 1024 };

static dgm_status start(int fd, const char *what, dgm_error *err)
{
    if (listen(fd, BACKLOG) == 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0) return DGM_OK;
    return dgm_fail(err, DGM_ERR_IO, "cannot listen on %s: %s", what, strerror(errno));
}

// A socket of a server that has ended is in the way; one that somebody answers on is not ours.
static void remove_stale(const struct sockaddr_un *at)
{
    struct stat st;
    if (stat(at->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode)) return;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    if (connect(fd, (const struct sockaddr *)at, sizeof *at) != 0 && errno == ECONNREFUSED) unlink(at->sun_path);
    close(fd);
}

static dgm_status open_unix(const char *path, int *out, dgm_error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    DGM_FAIL_IF(strlen(path) >= sizeof at.sun_path, err, DGM_ERR_ARGUMENT, "socket '%.60s...': the path is too long",
                path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    remove_stale(&at);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    dgm_status st = DGM_OK;
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) != 0)
        st = dgm_fail(err, DGM_ERR_IO, "cannot listen on '%s': %s", path, strerror(errno));
    if (st == DGM_OK) st = start(fd, path, err);
    if (st != DGM_OK && fd >= 0)
        close(fd);
    else
        *out = fd;
    return st;
}

static int open_address(const struct addrinfo *a)
{
    const int on = 1, fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0) return fd;
    const int code = errno;
    close(fd);
    errno = code;
    return -1;
}

static dgm_status open_tcp(const dgm_server_options *o, int *out, dgm_error *err)
{
    char port[16], what[300];
    struct addrinfo *list = NULL;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    snprintf(port, sizeof port, "%d", (int)o->port);
    snprintf(what, sizeof what, "%.200s port %s", o->host, port);
    const int code = getaddrinfo(o->host, port, &hints, &list);
    DGM_FAIL_IF(code != 0, err, DGM_ERR_ARGUMENT, "host '%.100s': %s", o->host, gai_strerror(code));
    int fd = -1;
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) fd = open_address(a);
    const int why = errno;
    freeaddrinfo(list);
    DGM_FAIL_IF(fd < 0, err, DGM_ERR_IO, "cannot listen on %s: %s", what, strerror(why));
    const dgm_status st = start(fd, what, err);
    if (st != DGM_OK)
        close(fd);
    else
        *out = fd;
    return st;
}

static int port_of(int fd)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &size) != 0) return 0;
    if (a.ss_family == AF_INET) return ntohs(((const struct sockaddr_in *)(const void *)&a)->sin_port);
    if (a.ss_family == AF_INET6) return ntohs(((const struct sockaddr_in6 *)(const void *)&a)->sin6_port);
    return 0;
}

dgm_status dgm_listen_open(const dgm_server_options *o, int *fd, int *port, dgm_error *err)
{
    if (o->listen_fd >= 0) {
        *fd = o->listen_fd;
        DGM_TRY(start(*fd, "the socket that was handed over", err));
    } else if (o->socket) {
        DGM_TRY(open_unix(o->socket, fd, err));
    } else {
        DGM_TRY(open_tcp(o, fd, err));
    }
    *port = port_of(*fd);
    return DGM_OK;
}

void dgm_listen_url(dgm_server *s, int port)
{
    const dgm_server_options *o = &s->options;
    const char *scheme = o->certificate ? "https" : "http";
    const char *prefix = o->url_prefix ? o->url_prefix : "";
    if (o->socket)
        snprintf(s->url, sizeof s->url, "unix:%s", o->socket);
    else if (strchr(o->host, ':'))
        snprintf(s->url, sizeof s->url, "%s://[%s]:%d%s", scheme, o->host, port, prefix);
    else
        snprintf(s->url, sizeof s->url, "%s://%s:%d%s", scheme, o->host, port, prefix);
}

// How many connections there may be: what was asked for, and what the system allows.
size_t dgm_listen_most(const dgm_server_options *o)
{
    enum { OTHERS = 128, USUAL = 16384 };
    struct rlimit files;
    const size_t wanted = o->connections > 0 ? (size_t)o->connections : USUAL;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return wanted;
    if (files.rlim_cur < wanted + OTHERS && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max < wanted + OTHERS ? files.rlim_max : wanted + OTHERS;
        setrlimit(RLIMIT_NOFILE, &files);
        getrlimit(RLIMIT_NOFILE, &files);
    }
    const size_t room = files.rlim_cur > 2 * OTHERS ? (size_t)files.rlim_cur - OTHERS : OTHERS;
    return wanted < room ? wanted : room;
}
