// SPDX-License-Identifier: MIT
// A client of our own API: lines to a server, results as the engine's (dragoman/server.h).
//
// Plain sockets, HTTP/1.1, one connection that is kept: what is asked and what comes back is known on both sides, and a
// library for all of HTTP would cost every start of the program its loading. TLS is a proxy's work on either side.
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "engine/engine_private.h"
#include "server/json_out.h"

enum { ANSWER_MAX = 256 << 20, HEAD_MAX = 65536 };

struct dgm_client {
    char *host, *port, *path, *key; // path: of the Unix socket; NULL: TCP
    char *prefix;                   // of paths
    int fd;
};

// ---- connections ----------------------------------------------------------------------------------

// "http://HOST[:PORT][/PREFIX]", "unix:PATH".
static dgm_status read_url(dgm_client *c, const char *url, dgm_error *err)
{
    c->host = dgm_strdup("localhost");
    if (strncmp(url, "unix:", 5) == 0) {
        c->path = dgm_strdup(url + 5);
        return c->path && c->host ? DGM_OK : dgm_no_memory(err);
    }
    DGM_FAIL_IF(strncmp(url, "https://", 8) == 0, err, DGM_ERR_UNSUPPORTED,
                "'%.100s': TLS is not spoken here; use a tunnel or proxy, and http:// or unix:PATH", url);
    DGM_FAIL_IF(strncmp(url, "http://", 7) != 0, err, DGM_ERR_ARGUMENT,
                "'%.100s' is no address of a server: http://HOST:PORT or unix:PATH", url);
    const char *host = url + 7, *slash = strchr(host, '/');
    const char *end = slash ? slash : host + strlen(host);
    const char *open = host[0] == '[' ? memchr(host, ']', (size_t)(end - host)) : NULL; // [::1]:5000
    const char *colon = memchr(open ? open : host, ':', (size_t)(end - (open ? open : host)));
    const char *from = open ? host + 1 : host, *to = open ? open : colon ? colon : end;
    dgm_free(c->host);
    c->host = dgm_strndup(from, (size_t)(to - from));
    c->port = colon ? dgm_strndup(colon + 1, (size_t)(end - colon - 1)) : dgm_strdup("80");
    size_t n = slash ? strlen(slash) : 0;
    while (n && slash[n - 1] == '/') n--;
    c->prefix = dgm_strndup(slash ? slash : "", n);
    return c->host && c->port && c->prefix ? DGM_OK : dgm_no_memory(err);
}

static int connect_tcp(const dgm_client *c, dgm_error *err)
{
    struct addrinfo *list = NULL;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const int code = getaddrinfo(c->host, c->port, &hints, &list);
    if (code != 0) {
        dgm_fail(err, DGM_ERR_IO, "server '%.100s': %s", c->host, gai_strerror(code));
        return -1;
    }
    int fd = -1;
    const int on = 1;
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0) break;
        if (fd >= 0) close(fd);
        fd = -1;
    }
    freeaddrinfo(list);
    if (fd < 0)
        dgm_fail(err, DGM_ERR_IO, "no server answers at %.100s port %.20s: %s", c->host, c->port, strerror(errno));
    if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static int connect_unix(const dgm_client *c, dgm_error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const size_t n = strlen(c->path);
    if (n >= sizeof at.sun_path) {
        dgm_fail(err, DGM_ERR_ARGUMENT, "socket '%.60s...': the path is too long", c->path);
        return -1;
    }
    memcpy(at.sun_path, c->path, n + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0) return fd;
    dgm_fail(err, DGM_ERR_IO, "no server answers at '%s': %s", c->path, strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}

static void hang_up(dgm_client *c)
{
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
}

dgm_status dgm_client_open(dgm_client **out, const char *url, const char *key, dgm_error *err)
{
    DGM_FAIL_IF(!out || !url, err, DGM_ERR_ARGUMENT, "a client needs a place and the address of a server");
    *out = NULL;
    dgm_client *c = dgm_calloc(1, sizeof *c);
    if (!c) return dgm_no_memory(err);
    c->fd = -1;
    if (key) c->key = dgm_strdup(key);
    const dgm_status st = key && !c->key ? dgm_no_memory(err) : read_url(c, url, err);
    if (st != DGM_OK)
        dgm_client_close(&c);
    else
        *out = c;
    return st;
}

void dgm_client_close(dgm_client **at)
{
    dgm_client *c = at ? *at : NULL;
    if (!c) return;
    *at = NULL;
    hang_up(c);
    dgm_free(c->host);
    dgm_free(c->port);
    dgm_free(c->path);
    dgm_free(c->key);
    dgm_free(c->prefix);
    dgm_free(c);
}

// ---- one request ----------------------------------------------------------------------------------

static bool send_all(int fd, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = send(fd, (const char *)data + done, size - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

// More bytes of the answer; false at its end.
static bool receive(int fd, dgm_writer *w)
{
    char part[16384];
    ssize_t n;
    do n = recv(fd, part, sizeof part, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    dgm_write_bytes(w, part, (size_t)n);
    return !w->failed && w->size < ANSWER_MAX;
}

// Head and body of an answer that has a length, as all of the server's have that are no streams. *body: where it
// begins.
static bool read_answer(int fd, dgm_writer *w, int *status, size_t *body, bool *keep)
{
    const char *end = NULL;
    while (!end) {
        if (w->size > HEAD_MAX || !receive(fd, w)) return false;
        end = memmem(w->data, w->size, "\r\n\r\n", 4);
    }
    *body = (size_t)(end - (const char *)w->data) + 4;
    w->data[*body - 1] = 0; // the head is a string now
    const char *head = (const char *)w->data, *length = strcasestr(head, "\r\nContent-Length:");
    *keep = !strcasestr(head, "\r\nConnection: close");
    if (sscanf(head, "HTTP/1.1 %d", status) != 1 || !length) return false;
    const size_t size = strtoul(length + 17, NULL, 10);
    while (w->size - *body < size)
        if (!receive(fd, w)) return false;
    return true;
}

// A connection that was kept may have been closed meanwhile: then once more with a new one.
static dgm_status post(dgm_client *c, const char *path, const dgm_writer *json, dgm_writer *answer, int *status,
                       size_t *body, dgm_error *err)
{
    dgm_writer w = {0};
    dgm_write_format(&w,
                     "POST %s%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n",
                     c->prefix ? c->prefix : "", path, c->host, json->size);
    if (c->key) dgm_write_format(&w, "Authorization: Bearer %s\r\n", c->key);
    dgm_write_text(&w, "\r\n");
    dgm_write_bytes(&w, json->data, json->size);
    dgm_status st = w.failed || json->failed ? dgm_no_memory(err) : DGM_OK;
    bool done = false, keep = false;
    for (int attempt = 0; attempt < 2 && st == DGM_OK && !done; attempt++) {
        const bool kept = c->fd >= 0;
        if (!kept) c->fd = c->path ? connect_unix(c, err) : connect_tcp(c, err);
        if (c->fd < 0) {
            st = DGM_ERR_IO;
            break;
        }
        answer->size = 0;
        done = send_all(c->fd, w.data, w.size) && read_answer(c->fd, answer, status, body, &keep);
        if (!done || !keep) hang_up(c);
        if (!done && !kept) st = dgm_fail(err, DGM_ERR_IO, "the server closed the connection");
    }
    dgm_writer_free(&w);
    return st == DGM_OK && !done ? dgm_fail(err, DGM_ERR_IO, "the server closed the connection") : st;
}

// ---- what is asked --------------------------------------------------------------------------------

static void put_request(dgm_json_out *j, const char *source, const char *target, const char *const *texts,
                        size_t count, const char *const *settings)
{
    dgm_out_object(j, NULL);
    dgm_out_array(j, "q");
    for (size_t i = 0; i < count; i++) dgm_out_string(j, NULL, texts[i] ? texts[i] : "");
    dgm_out_end(j);
    dgm_out_string(j, "source", source ? source : "auto");
    if (target) dgm_out_string(j, "target", target);
    bool open = false;
    for (size_t i = 0; settings && settings[i] && settings[i + 1]; i += 2) {
        if (strcmp(settings[i], "nbest") == 0) {
            dgm_out_integer(j, "alternatives", strtol(settings[i + 1], NULL, 10) - 1);
            continue;
        }
        if (!open) dgm_out_object(j, "settings");
        open = true;
        dgm_out_string(j, settings[i], settings[i + 1]);
    }
    if (open) dgm_out_end(j);
    dgm_out_end(j);
}

// ---- what comes back ------------------------------------------------------------------------------

static dgm_results_box *new_box(size_t count)
{
    dgm_results_box *box = dgm_calloc(1, sizeof *box);
    if (!box) return NULL;
    box->items = dgm_calloc(count + 1, sizeof *box->items);
    box->list = dgm_calloc(count + 1, sizeof *box->list);
    box->pub = (dgm_results){.size = sizeof box->pub, .items = box->list, .count = count};
    for (size_t i = 0; box->items && box->list && i < count; i++) {
        box->items[i].size = sizeof box->items[i];
        box->items[i].message = "";
        box->list[i] = &box->items[i];
    }
    if (box->items && box->list) return box;
    box->pub.count = 0;
    dgm_results *r = &box->pub;
    dgm_results_free(&r);
    return NULL;
}

// One block: pointers, records; texts are blocks of their own, as the engine's.
static dgm_status put_translations(dgm_result *r, const json_t *text, const json_t *more, dgm_error *err)
{
    const size_t count = 1 + json_array_size(more);
    const dgm_translation **list = dgm_calloc(1, count * (sizeof *list + sizeof(dgm_translation)));
    if (!list) return dgm_no_memory(err);
    dgm_translation *own = (dgm_translation *)(void *)(list + count);
    r->translations = list;
    for (size_t k = 0; k < count; k++) {
        const json_t *from = k ? json_array_get(more, k - 1) : text;
        const json_t *words = json_object_get(from, "text");
        const size_t n = json_string_length(words);
        char *copy = dgm_strndup(json_is_string(words) ? json_string_value(words) : "", n);
        if (!copy) return dgm_no_memory(err);
        own[k] = (dgm_translation){.size = sizeof own[k],
                                   .text = copy,
                                   .text_size = n,
                                   .score = (float)json_number_value(json_object_get(from, "score")),
                                   .finished = 1};
        list[k] = &own[k];
        r->count++;
    }
    return DGM_OK;
}

static dgm_status put_result(dgm_result *r, const json_t *text, dgm_error *err)
{
    const char *problem = json_string_value(json_object_get(text, "error"));
    if (problem) {
        r->status = DGM_ERR_TEXT;
        r->message = dgm_strdup(problem);
        if (!r->message) r->message = "";
        return DGM_OK;
    }
    return put_translations(r, text, json_object_get(text, "alternatives"), err);
}

static dgm_status read_results(const json_t *answer, size_t count, dgm_results **out, dgm_error *err)
{
    const json_t *list = json_object_get(answer, "translations");
    DGM_FAIL_IF(json_array_size(list) != count, err, DGM_ERR_FORMAT, "the server answered with %zu texts, not %zu",
                json_array_size(list), count);
    dgm_results_box *box = new_box(count);
    if (!box) return dgm_no_memory(err);
    dgm_results *r = &box->pub;
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < count && st == DGM_OK; i++) {
        st = put_result(&box->items[i], json_array_get(list, i), err);
        r->failed += box->items[i].status != DGM_OK;
    }
    const json_t *usage = json_object_get(answer, "usage");
    r->source_tokens = (uint64_t)json_integer_value(json_object_get(usage, "source_tokens"));
    r->target_tokens = (uint64_t)json_integer_value(json_object_get(usage, "target_tokens"));
    if (st != DGM_OK)
        dgm_results_free(&r);
    else
        *out = r;
    return st;
}

static dgm_status refused(const json_t *answer, int status, dgm_error *err)
{
    const char *message = json_string_value(json_object_get(answer, "error"));
    const dgm_status st = status == 400 || status == 413 || status == 415 ? DGM_ERR_ARGUMENT
                          : status == 429 || status == 503                ? DGM_ERR_CANCELLED
                                                                          : DGM_ERR_IO;
    return dgm_fail(err, st, "the server says: %.300s (%d)", message ? message : "nothing that can be read", status);
}

dgm_status dgm_client_translate(dgm_client *c, const char *source, const char *target, const char *const *texts,
                                size_t count, const char *const *settings, dgm_results **results, dgm_error *err)
{
    DGM_FAIL_IF(!c || !results || (count && !texts), err, DGM_ERR_ARGUMENT,
                "a client, texts and a place for results");
    *results = NULL;
    dgm_json_out j = {0};
    dgm_writer answer = {0};
    int status = 0;
    size_t body = 0;
    json_t *value = NULL;
    put_request(&j, source, target, texts, count, settings);
    dgm_status st = post(c, "/v1/translate", &j.w, &answer, &status, &body, err);
    if (st == DGM_OK) st = dgm_json_parse(&value, answer.data + body, answer.size - body, err);
    if (st == DGM_OK) st = status == 200 ? read_results(value, count, results, err) : refused(value, status, err);
    json_decref(value);
    dgm_writer_free(&j.w);
    dgm_writer_free(&answer);
    return st;
}
