// SPDX-License-Identifier: MIT
// A server without sockets, and requests made by hand: what tests of handlers share. Include cmocka.h first.
#ifndef DGM_TESTS_UNIT_SERVER_TEST_H
#define DGM_TESTS_UNIT_SERVER_TEST_H

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "server/server_private.h"

// Port -1: it does not listen. The shipped models unless options say otherwise.
static inline dgm_server *test_server(const dgm_server_options *given)
{
    dgm_server_options o;
    dgm_server *s = NULL;
    dgm_error error;
    dgm_server_default(&o);
    if (given) o = *given;
    o.port = -1;
    if (!o.models[0] && !o.models_dir) {
        o.models[0] = "models/en-de.gguf";
        o.models[1] = "models/de-en.gguf";
    }
    if (dgm_server_open(&s, &o, &error) != DGM_OK) fail_msg("%s", error.text);
    return s;
}

typedef struct test_wait {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool answered;
} test_wait;

static inline void test_woken(dgm_request *q)
{
    test_wait *w = q->owner;
    pthread_mutex_lock(&w->lock);
    w->answered = !q->streams || q->ended;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

// A request with a body of this type (NULL: none). Headers by dgm_field_add(q, &q->headers, ...).
static inline dgm_request *test_request(dgm_server *s, const char *method, const char *path, const char *type,
                                        const char *body)
{
    dgm_request *q = dgm_request_new(s);
    assert_non_null(q);
    q->method = method;
    q->path = path;
    q->address = "192.0.2.1";
    if (type) dgm_field_add(q, &q->headers, "Content-Type", type, strlen(type));
    if (body) {
        q->body = dgm_strdup(body);
        q->body_size = strlen(body);
    }
    return q;
}

// Waits for its answer; q->status, q->out hold it. The body ends with NUL.
static inline void test_ask(dgm_request *q)
{
    test_wait w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    q->owner = &w;
    q->wake = test_woken;
    dgm_server_handle(q);
    pthread_mutex_lock(&w.lock);
    while (!w.answered) pthread_cond_wait(&w.wake, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_mutex_lock(&q->lock);
    dgm_write_u8(&q->out, 0);
    pthread_mutex_unlock(&q->lock);
}

static inline const char *test_body(const dgm_request *q)
{
    return (const char *)q->out.data;
}

// Asks, and compares the status and the body, or what it begins with ("..." at its end).
static inline void test_expect(dgm_server *s, const char *method, const char *path, const char *type,
                               const char *body, int status, const char *answer)
{
    dgm_request *q = test_request(s, method, path, type, body);
    test_ask(q);
    const size_t n = strlen(answer);
    const bool begins = n > 3 && strcmp(answer + n - 3, "...") == 0;
    if (q->status != status || (begins ? strncmp(test_body(q), answer, n - 3) : strcmp(test_body(q), answer)) != 0)
        fail_msg("%s %s %s: %d %s, expected %d %s", method, path, body ? body : "", q->status, test_body(q), status,
                 answer);
    dgm_request_free(q);
}

#define JSON_TYPE "application/json"
#define FORM_TYPE "application/x-www-form-urlencoded"

#endif
