// SPDX-License-Identifier: MIT
// Sockets: libmicrohttpd in front of dgm_server_handle. One thread moves bytes (http_loop.c); requests are suspended
// while they are answered elsewhere.
//
// Connections have clocks (http_connections.c). Who goes away while a request is being answered is seen by an epoll of
// our own, since libmicrohttpd does not look at suspended connections.
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
#include <sys/socket.h>
#include <unistd.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "server/form.h"
#include "server/http_connections.h"
#include "server/http_loop.h"
#include "server/server_private.h"

// Memory of a connection, for its headers. More than 32 KiB: libmicrohttpd maps that much by itself and gives it back
// when the connection ends. Less would come from malloc, where ten thousand connections leave pages behind that stay
// touched, others every time.
enum { POOL_BYTES = 36 << 10 };

// A request on its way.
typedef struct exchange {
    dgm_http *http;
    struct MHD_Connection *mhd;
    dgm_connection *connection;
    dgm_request *q;
    char *uri;
    bool begun, handed, too_large;
    bool parked; // suspended; changed under q->lock once it streams
    size_t body_cap, dropped, sent;
} exchange;

struct dgm_http {
    dgm_server *s;
    struct MHD_Daemon *daemon;
    dgm_http_loop *loop;
    atomic_int answering; // threads that wake the loop
    int epoll;
    int fd; // that listens, until libmicrohttpd has it; -1 then
    dgm_connections connections;
    char *certificate, *key;
    atomic_bool started;
    char trouble[256]; // what libmicrohttpd said before; the first of it says why it did not start
};

// ---- connections ----------------------------------------------------------------------------------

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    dgm_http *h = cls;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context) dgm_connections_remove(&h->connections, *context);
        *context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    const int on = 1;
    if (!info) return; // without clocks; libmicrohttpd's own remain
    setsockopt(info->connect_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *context = dgm_connections_add(&h->connections, info->connect_fd);
}

// ---- answers --------------------------------------------------------------------------------------

static void on_answer(dgm_request *q)
{
    exchange *x = q->owner;
    dgm_http *h = x->http;
    if (!x->parked) return;
    x->parked = false;
    atomic_fetch_add(&h->answering, 1);
    MHD_resume_connection(x->mhd); // q may be gone afterwards, and in the end the loop
    dgm_http_loop_wake(h->loop);
    atomic_fetch_sub(&h->answering, 1);
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

// False: no memory. What no header can hold is left out.
static bool put_header(struct MHD_Response *r, const char *name, const char *value)
{
    return !value || strpbrk(value, "\r\n\t") || MHD_add_response_header(r, name, value) == MHD_YES;
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
    bool fine = put_header(r, "Content-Type", q->type);
    for (size_t i = 0; i < q->answer_headers.count && fine; i++)
        fine = put_header(r, q->answer_headers.items[i].name, q->answer_headers.items[i].value);
    if (q->server->closing) fine = fine && put_header(r, "Connection", "close");
    const enum MHD_Result result = fine ? MHD_queue_response(x->mhd, (unsigned)q->status, r) : MHD_NO;
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
    dgm_connections_enter(&h->connections, x->connection, DGM_PHASE_ANSWER);
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
        dgm_connections_enter(&x->http->connections, x->connection, DGM_PHASE_BODY);
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

// Nobody will look at the request again.
static void end_request(void *arg)
{
    dgm_request *q = arg;
    dgm_server *s = q->server;
    dgm_server_answered(q);
    dgm_request_free(q);
    pthread_mutex_lock(&s->lock);
    s->in_flight--;
    pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

// A stream whose client is gone has ended: the request goes, when whoever ended it has let go of it.
static void on_orphan(dgm_request *q)
{
    if (q->ended) dgm_handlers_post(q->server->handlers, &q->work, end_request, q);
}

// While it streams, a connection may end before its task does, which still writes to the request. True: it is left to
// the task, which is told to give up.
static bool leave_to_task(dgm_request *q)
{
    pthread_mutex_lock(&q->lock);
    const bool runs = q->streams && !q->ended;
    if (runs) {
        atomic_store(&q->gone, true);
        q->wake = on_orphan;
        q->owner = NULL;
        if (q->task) dgm_task_cancel(q->task);
    }
    pthread_mutex_unlock(&q->lock);
    return runs;
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
        pthread_mutex_lock(&h->connections.lock); // nobody looks at it any more
        epoll_ctl(h->epoll, EPOLL_CTL_DEL, x->connection->fd, NULL);
        pthread_mutex_unlock(&h->connections.lock);
    }
    dgm_connections_enter(&h->connections, x->connection, DGM_PHASE_HEADERS);
    const bool gone = why != MHD_REQUEST_TERMINATED_COMPLETED_OK || (q && q->status == 0);
    if (q && gone) atomic_store(&q->gone, true);
    if (q && x->handed) {
        if (!leave_to_task(q)) end_request(q);
    } else {
        if (q && x->begun) dgm_server_answered(q);
        dgm_request_free(q);
    }
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
    pthread_mutex_lock(&h->connections.lock);
    find_gone(h);
    dgm_connections_sweep(&h->connections, o->header_seconds, o->body_seconds);
    pthread_mutex_unlock(&h->connections.lock);
}

uint64_t dgm_http_connections(const dgm_http *http)
{
    dgm_http *h = (dgm_http *)(uintptr_t)http;
    pthread_mutex_lock(&h->connections.lock);
    const uint64_t count = h->connections.count;
    pthread_mutex_unlock(&h->connections.lock);
    return count;
}

// ---- opening and closing --------------------------------------------------------------------------

// Paths and values are decoded by us, once and in one place.
static size_t keep_escapes(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls, (void)mhd;
    return strlen(text);
}

static void on_log(void *cls, const char *fmt, va_list args)
{
    dgm_http *h = cls;
    char text[512];
    vsnprintf(text, sizeof text, fmt, args);
    text[strcspn(text, "\n")] = 0;
    if (strncmp(text, "Failed to send ", 15) == 0) return; // clients may go when they like
    if (atomic_load(&h->started))
        dgm_server_note(h->s, "%s", text);
    else if (!h->trouble[0])
        snprintf(h->trouble, sizeof h->trouble, "%.255s", text);
}

// Why it did not start, in one line.
static dgm_status refuse_start(const dgm_http *h, dgm_error *err)
{
    const dgm_server_options *o = &h->s->options;
    const char *why = strstr(h->trouble, ": "); // behind the name of the function
    const char *text = h->trouble[0] ? h->trouble : "out of memory";
    if (!o->certificate) return dgm_fail(err, DGM_ERR_IO, "cannot start the HTTP server: %s", text);
    return dgm_fail(err, DGM_ERR_IO, "cannot use certificate '%.200s' with private key '%.200s': %s", o->certificate,
                    o->private_key, why ? why + 2 : text);
}

static dgm_status read_pem(const char *path, char **out, dgm_error *err)
{
    dgm_mapfile f;
    DGM_TRY(dgm_mapfile_open(&f, path, err));
    *out = dgm_strndup((const char *)f.data, f.size);
    dgm_mapfile_close(&f);
    return *out ? DGM_OK : dgm_no_memory(err);
}

dgm_status dgm_http_start(dgm_http *h, dgm_error *err)
{
    const dgm_server_options *o = &h->s->options;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, NULL}, {MHD_OPTION_HTTPS_MEM_KEY, 0, NULL}, {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    if (o->certificate) {
        tls[0].ptr_value = h->certificate;
        tls[1].ptr_value = h->key;
        flags |= MHD_USE_TLS;
    }
    h->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_access, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, h, MHD_OPTION_LISTEN_SOCKET, h->fd,
        MHD_OPTION_URI_LOG_CALLBACK, on_uri, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)(h->connections.most + 64), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)POOL_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)o->header_seconds + 1, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_ARRAY, o->certificate ? tls : none, MHD_OPTION_END);
    atomic_store(&h->started, true);
    if (h->daemon) h->fd = -1; // its own from now on
    return h->daemon ? dgm_http_loop_start(h->daemon, &h->loop, err) : refuse_start(h, err);
}

dgm_status dgm_http_open(dgm_server *s, dgm_http **out, dgm_error *err)
{
    const dgm_server_options *o = &s->options;
    int port = 0;
    dgm_http *h = dgm_calloc(1, sizeof *h);
    if (!h) return dgm_no_memory(err);
    h->s = s;
    h->fd = -1;
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    dgm_status st = dgm_connections_open(&h->connections, dgm_listen_most(o), err);
    if (st == DGM_OK && h->epoll < 0) st = dgm_no_memory(err);
    if (st == DGM_OK) st = dgm_listen_open(o, &h->fd, &port, err);
    if (st == DGM_OK && o->certificate) st = read_pem(o->certificate, &h->certificate, err);
    if (st == DGM_OK && o->certificate) st = read_pem(o->private_key, &h->key, err);
    if (st != DGM_OK) {
        dgm_http_close(&h);
        return st;
    }
    dgm_listen_url(s, port);
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
        pthread_mutex_lock(&h->connections.lock);
        dgm_connections_give_up(&h->connections);
        find_gone(h);
        pthread_mutex_unlock(&h->connections.lock);
        usleep(5000);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    while (atomic_load(&h->answering)) usleep(100);
}

void dgm_http_close(dgm_http **at)
{
    dgm_http *h = *at;
    if (!h) return;
    *at = NULL;
    if (h->loop) give_up_all(h);
    dgm_http_loop_stop(&h->loop);
    if (h->daemon) MHD_stop_daemon(h->daemon);
    if (h->fd >= 0 && h->s->options.socket) unlink(h->s->options.socket);
    if (h->fd >= 0) close(h->fd);
    if (h->epoll >= 0) close(h->epoll);
    dgm_free(h->certificate);
    dgm_free(h->key);
    dgm_connections_close(&h->connections);
    dgm_free(h);
}
