// SPDX-License-Identifier: MIT
// Requests and their answers, without sockets; see request.h.
#include "server/request.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "server/form.h"
#include "server/json_out.h"
#include "server/route.h"
#include "server/task.h"
#include "server/usage.h"

struct dgm_request_block {
    struct dgm_request_block *next;
    max_align_t data[];
};

dgm_request *dgm_request_new(dgm_server *server)
{
    dgm_request *q = dgm_calloc(1, sizeof *q);
    if (!q) return NULL;
    q->server = server;
    q->method = q->path = q->address = q->rest = q->route_mark = "";
    q->client = "";
    q->begin = dgm_now();
    pthread_mutex_init(&q->lock, NULL);
    return q;
}

void dgm_request_free(dgm_request *q)
{
    if (!q) return;
    pthread_mutex_lock(&q->lock); // whoever ended a stream has let go of it
    pthread_mutex_unlock(&q->lock);
    if (q->user && q->user_free) q->user_free(q->user);
    dgm_request_settle(q);
    json_decref(q->json);
    dgm_free(q->body);
    dgm_writer_free(&q->out);
    dgm_free(q->headers.items);
    dgm_free(q->query.items);
    dgm_free(q->form.items);
    dgm_free(q->answer_headers.items);
    for (size_t i = 0; i < q->book_count; i++) dgm_termbook_drop(&q->books[i]);
    dgm_free(q->books);
    for (struct dgm_request_block *b = q->blocks, *next; b; b = next) {
        next = b->next;
        dgm_free(b);
    }
    pthread_mutex_destroy(&q->lock);
    dgm_free(q);
}

void *dgm_request_memory(dgm_request *q, size_t size)
{
    struct dgm_request_block *b = dgm_calloc(1, sizeof *b + size);
    if (!b) return NULL;
    b->next = q->blocks;
    q->blocks = b;
    return b->data;
}

char *dgm_request_copy(dgm_request *q, const char *text, size_t size)
{
    char *copy = dgm_request_memory(q, size + 1);
    if (copy && size) memcpy(copy, text, size);
    return copy;
}

bool dgm_request_book(dgm_request *q, dgm_termbook *book)
{
    const bool room = dgm_grow(&q->books, &q->book_cap, q->book_count + 1, sizeof *q->books, NULL) == DGM_OK;
    if (room)
        q->books[q->book_count++] = book;
    else
        dgm_termbook_drop(&book);
    return room;
}

bool dgm_field_add(dgm_request *q, dgm_field_list *list, const char *name, const char *value, size_t size)
{
    char *own = dgm_request_copy(q, name, strlen(name)), *text = dgm_request_copy(q, value, size);
    if (!own || !text || list->count >= DGM_FIELDS_MAX ||
        dgm_grow(&list->items, &list->cap, list->count + 1, sizeof *list->items, NULL) != DGM_OK)
        return false;
    list->items[list->count++] = (dgm_field){own, text, size};
    return true;
}

const char *dgm_fields_find(const dgm_field_list *list, const char *name, size_t *size)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, name) != 0) continue;
        if (size) *size = list->items[i].size;
        return list->items[i].value;
    }
    return NULL;
}

const char *dgm_request_header(const dgm_request *q, const char *name)
{
    for (size_t i = 0; i < q->headers.count; i++)
        if (strcasecmp(q->headers.items[i].name, name) == 0) return q->headers.items[i].value;
    return NULL;
}

bool dgm_request_is(const dgm_request *q, const char *type)
{
    const char *given = dgm_request_header(q, "Content-Type");
    const size_t n = strlen(type);
    if (!given || strncasecmp(given, type, n) != 0) return false;
    return given[n] == 0 || given[n] == ';' || given[n] == ' ' || given[n] == '\t';
}

// ---- reading --------------------------------------------------------------------------------------

// Objects and arrays inside each other, at most; before jansson reads it, so that nesting costs nothing.
static bool too_deep(const char *text, size_t size)
{
    enum { DEEPEST = 32 };
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        if (quoted) {
            if (c == '\\') i++;
            quoted = c != '"';
            continue;
        }
        quoted = c == '"';
        if (c == '[' || c == '{') depth++;
        if (c == ']' || c == '}') depth--;
        if (depth > DEEPEST) return true;
    }
    return false;
}

static dgm_status read_json(dgm_request *q, dgm_error *err)
{
    DGM_FAIL_IF(too_deep(q->body, q->body_size), err, DGM_ERR_FORMAT, "JSON is nested too deeply");
    DGM_TRY(dgm_json_parse(&q->json, q->body, q->body_size, err));
    DGM_FAIL_IF(!json_is_object(q->json), err, DGM_ERR_FORMAT, "Invalid JSON format");
    return DGM_OK;
}

dgm_status dgm_request_read(dgm_request *q, dgm_error *err)
{
    if (q->json || q->form.count || q->upload_count) return DGM_OK;
    if (dgm_request_is(q, "application/json")) return read_json(q, err);
    if (dgm_request_is(q, "application/x-www-form-urlencoded"))
        return dgm_form_urlencoded(q, q->body, q->body_size, &q->form, err);
    if (dgm_request_is(q, "multipart/form-data")) return dgm_form_multipart(q, err);
    return DGM_OK;
}

const char *dgm_request_text(const dgm_request *q, const char *name, size_t *size, bool *wrong)
{
    if (wrong) *wrong = false;
    if (q->json) {
        const json_t *v = json_object_get(q->json, name);
        if (wrong) *wrong = v && !json_is_null(v) && !json_is_string(v);
        if (!v || !json_is_string(v)) return NULL;
        if (size) *size = json_string_length(v);
        return json_string_value(v);
    }
    const char *value = dgm_fields_find(&q->query, name, size);
    return value ? value : dgm_fields_find(&q->form, name, size);
}

// ---- answering ------------------------------------------------------------------------------------

void dgm_answer_header(dgm_request *q, const char *name, const char *value)
{
    char *clean = dgm_request_copy(q, value, strlen(value));
    if (!clean) return;
    char *to = clean;
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p >= 0x20 && *p != 0x7f) *to++ = *p;
    *to = 0;
    if (dgm_grow(&q->answer_headers.items, &q->answer_headers.cap, q->answer_headers.count + 1,
                 sizeof *q->answer_headers.items, NULL) != DGM_OK)
        return;
    q->answer_headers.items[q->answer_headers.count++] = (dgm_field){name, clean, (size_t)(to - clean)};
}

// The first answer counts: true, and the request is this caller's to fill.
static bool take_answer(dgm_request *q, int status, const char *type)
{
    pthread_mutex_lock(&q->lock);
    const bool first = q->status == 0;
    if (first) {
        q->status = status;
        q->type = type;
    }
    pthread_mutex_unlock(&q->lock);
    return first;
}

void dgm_answer_writer(dgm_request *q, int status, const char *type, dgm_writer *w)
{
    if (w->failed) {
        dgm_writer_free(w);
        dgm_answer(q, 500, "text/plain", "out of memory\n", 14);
        return;
    }
    if (!take_answer(q, status, type)) {
        dgm_writer_free(w);
        return;
    }
    dgm_writer_free(&q->out);
    q->out = *w;
    *w = (dgm_writer){0};
    if (q->wake) q->wake(q);
}

void dgm_answer(dgm_request *q, int status, const char *type, const void *data, size_t size)
{
    if (!take_answer(q, status, type)) return;
    dgm_write_bytes(&q->out, data, size);
    if (q->wake) q->wake(q);
}

static const char *reason_of(int status)
{
    switch (status) {
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 413:
        return "Content Too Large";
    case 415:
        return "Unsupported Media Type";
    case 429:
        return "Too Many Requests";
    case 456:
        return "Quota Exceeded";
    case 503:
        return "Service Unavailable";
    default:
        return "Internal Server Error";
    }
}

static const char *code_of(int status)
{
    switch (status) {
    case 400:
        return "argument";
    case 401:
    case 403:
        return "key";
    case 404:
        return "unknown";
    case 405:
        return "method";
    case 408:
    case 503:
        return "busy";
    case 413:
        return "size";
    case 415:
        return "unsupported";
    case 429:
    case 456:
        return "limit";
    default:
        return "internal";
    }
}

static void put_html(dgm_writer *w, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            dgm_write_text(w, "&lt;");
        else if (*text == '&')
            dgm_write_text(w, "&amp;");
        else
            dgm_write_u8(w, (uint8_t)*text);
    }
}

static void answer_page(dgm_request *q, int status, const char *text)
{
    dgm_writer w = {0};
    dgm_write_format(&w, "<!doctype html>\n<html lang=en>\n<title>%d %s</title>\n<h1>%s</h1>\n<p>", status,
                     reason_of(status), reason_of(status));
    put_html(&w, text);
    dgm_write_text(&w, "</p>\n");
    dgm_answer_writer(q, status, "text/html; charset=utf-8", &w);
}

void dgm_answer_error(dgm_request *q, int status, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(q->reason, sizeof q->reason, "%.*s", (int)sizeof q->reason - 1, text);
    const dgm_api api = q->route ? q->route->api : (dgm_api)q->fallback;
    // What has no handler of its own in LibreTranslate is a page of Flask's.
    const bool flask = status == 404 || status == 405 || status == 401 || status == 413;
    if (api == DGM_API_PAGE && q->route) {
        dgm_page_refuse(q, status, text);
        return;
    }
    if (api == DGM_API_PAGE || (api == DGM_API_LIBRE && flask)) {
        answer_page(q, status, text);
        return;
    }
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_string(&j, api == DGM_API_DEEPL ? "message" : "error", text);
    if (api == DGM_API_V1) dgm_out_string(&j, "code", code_of(status));
    dgm_out_end(&j);
    dgm_answer_json(q, status, &j);
}

void dgm_answer_failure(dgm_request *q, dgm_status status, const dgm_error *err)
{
    const bool theirs = status == DGM_ERR_ARGUMENT || status == DGM_ERR_TEXT || status == DGM_ERR_UNSUPPORTED ||
                        status == DGM_ERR_FORMAT;
    dgm_answer_error(q,
                     theirs                        ? 400
                     : status == DGM_ERR_CANCELLED ? 503
                                                   : 500,
                     "%s", err->text[0] ? err->text : dgm_status_name(status));
}

// ---- streams --------------------------------------------------------------------------------------

void dgm_stream_begin(dgm_request *q, int status, const char *type)
{
    pthread_mutex_lock(&q->lock);
    const bool first = q->status == 0;
    if (first) {
        q->status = status;
        q->type = type;
        q->streams = true;
        if (q->wake) q->wake(q);
    }
    pthread_mutex_unlock(&q->lock);
}

bool dgm_stream_put(dgm_request *q, const void *data, size_t size)
{
    pthread_mutex_lock(&q->lock);
    const bool open = q->streams && !q->ended && !atomic_load(&q->gone);
    if (open) dgm_write_bytes(&q->out, data, size);
    const bool fine = open && !q->out.failed;
    if (fine && q->wake) q->wake(q);
    pthread_mutex_unlock(&q->lock);
    return fine;
}

void dgm_stream_end(dgm_request *q)
{
    pthread_mutex_lock(&q->lock);
    const bool last = !q->ended;
    q->ended = true;
    void (*wake)(dgm_request *) = last ? q->wake : NULL;
    if (wake) wake(q);
    pthread_mutex_unlock(&q->lock);
}

void dgm_request_gone(dgm_request *q)
{
    pthread_mutex_lock(&q->lock);
    // Who closes as soon as the answer is there is not gone: whether all of it was sent is seen when it was.
    const bool answered = q->status != 0 && (!q->streams || q->ended);
    if (!answered) {
        atomic_store(&q->gone, true);
        if (q->task) dgm_task_cancel(q->task);
    }
    pthread_mutex_unlock(&q->lock);
}
