// SPDX-License-Identifier: MIT
// Sockets: libmicrohttpd in front of dgm_server_handle. One thread of it moves bytes; requests are suspended while
// they are
// answered elsewhere.
//
// Clocks: what a connection may take is counted from its last answer (headers) or its headers (body), not from its last
// byte, so that one byte now and then does not keep it. Who goes away while a request is being answered is seen by
// an epoll
// of our own, since libmicrohttpd does not look at suspended connections.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "server/form.h"
#include "server/server_private.h"

typedef enum phase { PHASE_HEADERS, PHASE_BODY, PHASE_ANSWER } phase;

typedef struct connection {
    struct connection *before, *after;
    int fd;
    phase phase;
    double since;
    bool closed; // by us
} connection;

// A request on its way.
typedef struct exchange {
    dgm_http *http;
    struct MHD_Connection *mhd;
    connection *connection;
    dgm_request *q;
    char *uri;
    bool begun, handed, too_large;
    bool parked; // suspended; changed under q->lock once it streams
    size_t body_cap, dropped, sent;
} exchange;

struct dgm_http {
    dgm_server *s;
    struct MHD_Daemon *daemon;
    int epoll;
    pthread_mutex_t lock;
    connection *first, *last; // the ones that wait longest first, by phase mixed
    size_t count, most;
    double swept;
    char *certificate, *key;
};

// ---- connections ----------------------------------------------------------------------------------

static void list_add(dgm_http *h, connection *c)
{
    c->after = NULL;
    c->before = h->last;
    if (h->last)
        h->last->after = c;
    else
        h->first = c;
    h->last = c;
}

static void list_remove(dgm_http *h, connection *c)
{
    if (c->before)
        c->before->after = c->after;
    else
        h->first = c->after;
    if (c->after)
        c->after->before = c->before;
    else
        h->last = c->before;
}

// Lock held.
static void kick(connection *c)
{
    if (!c->closed) shutdown(c->fd, SHUT_RDWR);
    c->closed = true;
}

// The list is in the order of `since`.
static void enter_phase(dgm_http *h, connection *c, phase p)
{
    if (!c) return;
    pthread_mutex_lock(&h->lock);
    c->phase = p;
    c->since = dgm_now();
    list_remove(h, c);
    list_add(h, c);
    pthread_mutex_unlock(&h->lock);
}

// Too many connections: the one that has been without a request for the longest time makes room. Lock held.
static void make_room(dgm_http *h)
{
    connection *c = h->first;
    while (c && (c->phase != PHASE_HEADERS || c->closed)) c = c->after;
    if (c) kick(c);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    dgm_http *h = cls;
    connection *c = *context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (!c) return;
        pthread_mutex_lock(&h->lock);
        list_remove(h, c);
        h->count--;
        pthread_mutex_unlock(&h->lock);
        dgm_free(c);
        *context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    c = info ? dgm_calloc(1, sizeof *c) : NULL;
    if (!c) return; // without clocks; libmicrohttpd's own remain
    const int on = 1;
    c->fd = info->connect_fd;
    c->since = dgm_now();
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *context = c;
    pthread_mutex_lock(&h->lock);
    if (h->count >= h->most) make_room(h);
    h->count++;
    list_add(h, c);
    pthread_mutex_unlock(&h->lock);
}

// ---- answers --------------------------------------------------------------------------------------

static void on_answer(dgm_request *q)
{
    exchange *x = q->owner;
    if (!x->parked) return;
    x->parked = false;
    MHD_resume_connection(x->mhd); // q may be gone afterwards
}

// The next bytes of a stream.
static ssize_t read_stream(void *cls, uint64_t at, char *to, size_t room)
{
    exchange *x = cls;
    dgm_request *q = x->q;
    ssize_t n = 0;
    (void)at;
    pthread_mutex_lock(&q->lock);
    const size_t left = q->out.size - x->sent;
    if (left) {
        n = (ssize_t)(left < room ? left : room);
        memcpy(to, q->out.data + x->sent, (size_t)n);
        x->sent += (size_t)n;
        if (x->sent == q->out.size) x->sent = q->out.size = 0;
    } else if (q->ended || q->out.failed) {
        n = q->out.failed ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        x->parked = true;
        MHD_suspend_connection(x->mhd);
    }
    pthread_mutex_unlock(&q->lock);
    return n;
}

static enum MHD_Result send_answer(exchange *x)
{
    dgm_request *q = x->q;
    struct MHD_Response *r =
        q->streams
            ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream, x, NULL)
            : MHD_create_response_from_buffer(q->out.size, q->out.data ? (void *)q->out.data : (void *)(uintptr_t) "",
                                              MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    if (q->type) MHD_add_response_header(r, "Content-Type", q->type);
    for (size_t i = 0; i < q->answer_headers.count; i++)
        MHD_add_response_header(r, q->answer_headers.items[i].name, q->answer_headers.items[i].value);
    if (q->server->closing) MHD_add_response_header(r, "Connection", "close");
    const enum MHD_Result result = MHD_queue_response(x->mhd, (unsigned)q->status, r);
    MHD_destroy_response(r);
    return result;
}

// ---- requests -------------------------------------------------------------------------------------

static void *on_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    exchange *x = dgm_calloc(1, sizeof *x);
    if (!x) return NULL;
    x->http = cls;
    x->mhd = mhd;
    x->uri = dgm_strdup(uri);
    x->q = dgm_request_new(x->http->s);
    return x;
}

static enum MHD_Result add_header(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
    dgm_request *q = cls;
    (void)kind;
    return dgm_field_add(q, &q->headers, name, value ? value : "", value ? strlen(value) : 0) ? MHD_YES : MHD_NO;
}

static void set_address(exchange *x)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    char text[INET6_ADDRSTRLEN] = "unix";
    const struct sockaddr *a = info ? info->client_addr : NULL;
    if (a && a->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, text, sizeof text);
    if (a && a->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, text, sizeof text);
    const char *own = dgm_request_copy(x->q, text, strlen(text));
    if (own) x->q->address = own;
}

// Path and query of the URI. False: it is none that anything can stand for.
static bool set_path(exchange *x)
{
    dgm_request *q = x->q;
    const char *prefix = q->server->options.url_prefix;
    char *query = strchr(x->uri, '?');
    if (query) *query++ = 0;
    char *path = dgm_request_copy(q, x->uri, strlen(x->uri));
    if (!path || !dgm_path_decode(path)) return false;
    const size_t n = prefix ? strlen(prefix) : 0;
    if (n && (strncmp(path, prefix, n) != 0 || (path[n] && path[n] != '/'))) {
        q->path = path;
        dgm_answer_error(q, 404, "Everything here is below %s.", prefix);
        return true;
    }
    q->path = path[n] ? path + n : "/";
    return !query || dgm_form_urlencoded(q, query, strlen(query), &q->query, NULL) == DGM_OK;
}

// Before the body is read: everything that can be refused without it.
static void begin(exchange *x, const char *method)
{
    dgm_request *q = x->q;
    dgm_server *s = q->server;
    x->begun = true;
    q->owner = x;
    q->wake = on_answer;
    const char *own = dgm_request_copy(q, method, strlen(method));
    if (own) q->method = own;
    set_address(x);
    const int wanted = MHD_get_connection_values(x->mhd, MHD_HEADER_KIND, NULL, NULL);
    MHD_get_connection_values(x->mhd, MHD_HEADER_KIND, add_header, q);
    if ((size_t)wanted != q->headers.count || !set_path(x)) {
        const bool file = strstr(x->uri, "/download_file/") != NULL;
        dgm_answer_error(q, 400, "%s",
                         file ? "Invalid filename"
                              : "The browser (or proxy) sent a request that this server "
                                "could not understand.");
        return;
    }
    if (q->status) return;
    if (s->closing) {
        dgm_answer_error(q, 503, "the server is about to stop");
        return;
    }
    if (!dgm_server_admit(q)) return;
    const char *length = dgm_request_header(q, "Content-Length");
    const int64_t limit = dgm_server_body_limit(s, q->route);
    if (length && strtoll(length, NULL, 10) > limit)
        dgm_answer_error(q, 413, "The data value transmitted exceeds the capacity limit (%lld bytes).",
                         (long long)limit);
}

// False: it goes on too long after it was too large.
static bool take_body(exchange *x, const char *data, size_t size)
{
    dgm_request *q = x->q;
    const size_t limit = (size_t)dgm_server_body_limit(q->server, q->route);
    if (!x->too_large && q->body_size + size <= limit &&
        dgm_grow(&q->body, &x->body_cap, q->body_size + size + 1, 1, NULL) == DGM_OK) {
        memcpy(q->body + q->body_size, data, size);
        q->body_size += size;
        q->body[q->body_size] = 0;
        return true;
    }
    x->too_large = true;
    x->dropped += size;
    return x->dropped <= 2 * limit;
}

static void run_handler(void *arg)
{
    dgm_server_dispatch(arg);
}

static void hand_over(exchange *x)
{
    dgm_request *q = x->q;
    dgm_server *s = q->server;
    dgm_http *h = x->http;
    x->handed = true;
    x->parked = true;
    pthread_mutex_lock(&s->lock);
    s->in_flight++;
    pthread_mutex_unlock(&s->lock);
    enter_phase(h, x->connection, PHASE_ANSWER);
    if (x->connection) {
        struct epoll_event e = {.events = EPOLLRDHUP | EPOLLHUP | EPOLLERR, .data.ptr = x};
        epoll_ctl(h->epoll, EPOLL_CTL_ADD, x->connection->fd, &e);
    }
    MHD_suspend_connection(x->mhd);
    dgm_handlers_post(s->handlers, &q->work, run_handler, q);
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                 const char *version, const char *data, size_t *size, void **context)
{
    exchange *x = *context;
    (void)cls, (void)url, (void)version;
    if (!x || !x->q || !x->uri) return MHD_NO; // no memory: closed
    dgm_request *q = x->q;
    if (!x->begun) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        x->connection = info ? info->socket_context : NULL;
        enter_phase(x->http, x->connection, PHASE_BODY);
        begin(x, method);
        return q->status ? send_answer(x) : MHD_YES;
    }
    if (*size) {
        const bool fine = take_body(x, data, *size);
        *size = 0;
        return fine ? MHD_YES : MHD_NO;
    }
    if (x->too_large && !q->status)
        dgm_answer_error(q, 413, "The data value transmitted exceeds the capacity limit.");
    if (q->status) return send_answer(x);
    hand_over(x);
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode why)
{
    dgm_http *h = cls;
    exchange *x = *context;
    (void)mhd;
    if (!x) return;
    *context = NULL;
    dgm_request *q = x->q;
    if (x->handed && x->connection) {
        pthread_mutex_lock(&h->lock); // nobody looks at it any more
        epoll_ctl(h->epoll, EPOLL_CTL_DEL, x->connection->fd, NULL);
        pthread_mutex_unlock(&h->lock);
    }
    if (q && x->begun) {
        if (why != MHD_REQUEST_TERMINATED_COMPLETED_OK || q->status == 0) atomic_store(&q->gone, true);
        dgm_server_answered(q);
    }
    enter_phase(h, x->connection, PHASE_HEADERS);
    if (x->handed) {
        pthread_mutex_lock(&h->s->lock);
        h->s->in_flight--;
        pthread_cond_broadcast(&h->s->idle);
        pthread_mutex_unlock(&h->s->lock);
    }
    dgm_request_free(q);
    dgm_free(x->uri);
    dgm_free(x);
}

// ---- clocks ---------------------------------------------------------------------------------------

// Lock held: exchanges do not end meanwhile.
static void find_gone(dgm_http *h)
{
    struct epoll_event events[64];
    int n;
    while ((n = epoll_wait(h->epoll, events, 64, 0)) > 0) {
        for (int i = 0; i < n; i++) {
            exchange *x = events[i].data.ptr;
            epoll_ctl(h->epoll, EPOLL_CTL_DEL, x->connection->fd, NULL);
            dgm_request_gone(x->q);
        }
        if (n < 64) break;
    }
}

void dgm_http_tick(dgm_http *h)
{
    const dgm_server_options *o = &h->s->options;
    const double now = dgm_now();
    pthread_mutex_lock(&h->lock);
    find_gone(h);
    if (now - h->swept >= 1) {
        h->swept = now;
        for (connection *c = h->first; c; c = c->after) {
            const double most = c->phase == PHASE_HEADERS ? o->header_seconds
                                : c->phase == PHASE_BODY  ? o->body_seconds
                                                          : 1e9;
            if (now - c->since > most) kick(c);
        }
    }
    pthread_mutex_unlock(&h->lock);
}

uint64_t dgm_http_connections(const dgm_http *http)
{
    dgm_http *h = (dgm_http *)(uintptr_t)http;
    pthread_mutex_lock(&h->lock);
    const uint64_t count = h->count;
    pthread_mutex_unlock(&h->lock);
    return count;
}

// ---- opening and closing --------------------------------------------------------------------------

// How many connections there may be: what was asked for, and what the system allows.
static size_t most_connections(const dgm_server_options *o)
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

// Paths and values are decoded by us, once and in one place.
static size_t keep_escapes(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls, (void)mhd;
    return strlen(text);
}

static void on_log(void *cls, const char *fmt, va_list args)
{
    char text[512];
    vsnprintf(text, sizeof text, fmt, args);
    text[strcspn(text, "\n")] = 0;
    dgm_server_note(cls, "%s", text);
}

static dgm_status read_pem(const char *path, char **out, dgm_error *err)
{
    dgm_mapfile f;
    DGM_TRY(dgm_mapfile_open(&f, path, err));
    *out = dgm_strndup((const char *)f.data, f.size);
    dgm_mapfile_close(&f);
    return *out ? DGM_OK : dgm_no_memory(err);
}

static dgm_status start_daemon(dgm_http *h, int fd, dgm_error *err)
{
    const dgm_server_options *o = &h->s->options;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, NULL}, {MHD_OPTION_HTTPS_MEM_KEY, 0, NULL}, {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    if (o->certificate) {
        DGM_TRY(read_pem(o->certificate, &h->certificate, err));
        DGM_TRY(read_pem(o->private_key, &h->key, err));
        tls[0].ptr_value = h->certificate;
        tls[1].ptr_value = h->key;
        flags |= MHD_USE_TLS;
    }
    h->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_access, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, h->s, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_URI_LOG_CALLBACK, on_uri, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)(h->most + 64), MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32768,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)o->header_seconds + 1, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_ARRAY, o->certificate ? tls : none, MHD_OPTION_END);
    DGM_FAIL_IF(!h->daemon, err, DGM_ERR_IO, "cannot start the HTTP server%s",
                o->certificate ? ": are certificate and private key PEM files that belong together?" : "");
    return DGM_OK;
}

static void name_url(dgm_server *s, int port)
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

dgm_status dgm_http_open(dgm_server *s, dgm_http **out, dgm_error *err)
{
    int fd = -1, port = 0;
    dgm_http *h = dgm_calloc(1, sizeof *h);
    if (!h) return dgm_no_memory(err);
    h->s = s;
    h->most = most_connections(&s->options);
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    pthread_mutex_init(&h->lock, NULL);
    dgm_status st = h->epoll < 0 ? dgm_no_memory(err) : dgm_listen_open(&s->options, &fd, &port, err);
    if (st == DGM_OK) st = start_daemon(h, fd, err);
    if (st != DGM_OK) {
        if (fd >= 0) close(fd);
        dgm_http_close(&h);
        return st;
    }
    name_url(s, port);
    *out = h;
    return DGM_OK;
}

void dgm_http_quiesce(dgm_http *h)
{
    const MHD_socket fd = h->daemon ? MHD_quiesce_daemon(h->daemon) : MHD_INVALID_SOCKET;
    if (fd != MHD_INVALID_SOCKET) close(fd);
    if (fd != MHD_INVALID_SOCKET && h->s->options.socket) unlink(h->s->options.socket);
}

// Clients in flight are given up: libmicrohttpd wants no suspended connection when it stops.
static void give_up_all(dgm_http *h)
{
    dgm_server *s = h->s;
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    while (s->in_flight) {
        pthread_mutex_unlock(&s->lock);
        pthread_mutex_lock(&h->lock);
        for (connection *c = h->first; c; c = c->after)
            if (c->phase == PHASE_ANSWER) kick(c);
        find_gone(h);
        pthread_mutex_unlock(&h->lock);
        usleep(5000);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
}

void dgm_http_close(dgm_http **at)
{
    dgm_http *h = *at;
    if (!h) return;
    *at = NULL;
    if (h->daemon) {
        give_up_all(h);
        MHD_stop_daemon(h->daemon);
    }
    if (h->epoll >= 0) close(h->epoll);
    dgm_free(h->certificate);
    dgm_free(h->key);
    pthread_mutex_destroy(&h->lock);
    dgm_free(h);
}
