// SPDX-License-Identifier: MIT
// Fuzz target: requests to a server that has a model, up to four of one client one after the other, with a NUL between
// them. Of each the first byte chooses the endpoint, the second the type of the body and whether it comes with a query;
// the rest is the body. Where an endpoint names a glossary, a document or a file, or a body has "@@", it is the last
// one that was made.
// Parsers: src/server/v1.c src/server/libre.c src/server/deepl_fields.c src/server/deepl_glossaries.c
// Parsers: src/server/glossary_store.c src/server/shape.c src/server/task_text.c
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "server/form.h"
#include "server/server_private.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REQUESTS = 4, MADE = 80 };

static dgm_server *server;
static char made[MADE], key[MADE]; // the last one's name, and what a document is asked for with

static void open_server(void)
{
    static dgm_settings s;
    dgm_server_options o;
    dgm_settings_default(&s);
    s.threads = 1;
    s.beam = 2;
    s.max_length = 6;
    dgm_server_default(&o);
    o.port = -1;
    o.handlers = 1;
    o.reload_seconds = 0;
    o.max_wait = 0;
    o.metrics = 1;
    o.settings = &s;
    o.models[0] = "tests/data/models/transformer-pieces.gguf";
    if (dgm_server_open(&server, &o, NULL) != DGM_OK) abort();
}

typedef struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool answered;
} waiting;

static void woken(dgm_request *q)
{
    waiting *w = q->owner;
    pthread_mutex_lock(&w->lock);
    w->answered = !q->streams || q->ended;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

static void answer(dgm_request *q)
{
    waiting w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    q->owner = &w;
    q->wake = woken;
    dgm_server_handle(q);
    pthread_mutex_lock(&w.lock);
    while (!w.answered) pthread_cond_wait(&w.wake, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_mutex_lock(&q->lock); // whoever woke us has left it
    if (q->status == 0 && !q->streams) abort();
    pthread_mutex_unlock(&q->lock);
}

// The text behind "name":" in an answer.
static void take(const dgm_request *q, const char *name, char out[MADE])
{
    const char *at = q->out.size ? memmem(q->out.data, q->out.size, name, strlen(name)) : NULL;
    if (!at) return;
    at += strlen(name);
    const size_t left = q->out.size - (size_t)(at - (const char *)q->out.data);
    const char *end = memchr(at, '"', left);
    if (end && end - at < MADE) snprintf(out, MADE, "%.*s", (int)(end - at), at);
}

static void ask(const dgm_route *route, uint8_t how, const char *body, size_t size)
{
    static const char *const types[] = {"application/json", "application/x-www-form-urlencoded",
                                        "multipart/form-data; boundary=B", "application/x-ndjson"};
    dgm_request *q = dgm_request_new(server);
    char path[256], query[512] = "source=xx&target=yy&source_lang=xx&target_lang=yy&document_key=";
    const size_t star = strcspn(route->pattern, "*");
    const char *behind = route->pattern + star, *type = types[how & 3];
    if (!q) return;
    while (*behind == '*') behind++;
    snprintf(path, sizeof path, "%.*s%s%s", (int)star, route->pattern, route->pattern[star] ? made : "", behind);
    q->method = route->method;
    q->path = path;
    q->address = "192.0.2.1";
    if (size) dgm_field_add(q, &q->headers, "Content-Type", type, strlen(type));
    const char *accept = how & 8 ? "text/event-stream" : "text/tab-separated-values";
    if (how & 4) dgm_field_add(q, &q->headers, "Accept", accept, strlen(accept));
    strcat(query, key);
    if (how & 16) (void)dgm_form_urlencoded(q, query, strlen(query), &q->query, NULL);
    const char *mark = size ? memmem(body, size, "@@", 2) : NULL;
    const size_t before = mark ? (size_t)(mark - body) : size, named = mark ? strlen(made) : 0;
    q->body = dgm_malloc(size + MADE);
    if (q->body) {
        memcpy(q->body, body, before);
        memcpy(q->body + before, made, named);
        if (mark) memcpy(q->body + before + named, mark + 2, size - before - 2);
        q->body_size = mark ? size - 2 + named : size;
        q->body[q->body_size] = 0;
        answer(q);
        take(q, "glossary_id\":\"", made);
        take(q, "document_id\":\"", made);
        take(q, "document_key\":\"", key);
        take(q, "/download_file/", made);
    }
    dgm_request_free(q);
}

// Of one request; those before and behind it stay.
static size_t mutate(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    static const char *const between[] = {"", "&", "--B", "\n"};
    size_t begin = 0;
    while (begin < size && fuzz_below(r, 2)) {
        const uint8_t *nul = memchr(data + begin, 0, size - begin);
        if (!nul) break;
        begin = (size_t)(nul - data) + 1;
    }
    const uint8_t *nul = begin < size ? memchr(data + begin, 0, size - begin) : NULL;
    const size_t end = nul ? (size_t)(nul - data) : size;
    if (end < begin + 3 || fuzz_below(r, 12) == 0) return LLVMFuzzerMutate(data, size, max);
    const int type = data[begin + 1] & 3;
    const fuzz_span body = {begin + 2, end};
    if (type == 0) return fuzz_inside(data, size, max, body, fuzz_json, r);
    if (end < size) return fuzz_inside(data, size, max, body, NULL, r);
    return begin + 2 + fuzz_fields(data + begin + 2, size - begin - 2, max - begin - 2, between[type], r);
}
FUZZ_MUTATOR(mutate)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t rows = 0;
    if (!server) open_server();
    while (dgm_route_at(rows)) rows++;
    snprintf(made, sizeof made, "x");
    key[0] = 0;
    for (int i = 0; i < REQUESTS && size >= 2; i++) {
        const uint8_t *nul = memchr(data + 2, 0, size - 2);
        const size_t n = nul ? (size_t)(nul - data) : size;
        ask(dgm_route_at(data[0] % rows), data[1], (const char *)data + 2, n - 2);
        data += nul ? n + 1 : n;
        size -= nul ? n + 1 : n;
    }
    for (size_t i = 0; i < rows && strcmp(made, "x") != 0; i++) { // nothing is left for the next
        const dgm_route *route = dgm_route_at(i);
        const bool removes = strcmp(route->method, "DELETE") == 0 && strcmp(route->pattern, "/v3/glossaries/*") == 0;
        if (removes) ask(route, 0, "", 0);
    }
    return 0;
}
