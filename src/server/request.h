// SPDX-License-Identifier: MIT
// A request and its answer, without sockets: what handlers see, and what tests make by hand.
//
// Life of a request:
//     http.c (or a test) fills it in -> dgm_server_handle: route, key, limits -> handler, on a handler thread
//     handler: reads it, answers at once; or starts a task (task.h) and returns; the task's `done` answers
//     answered: `finish` is told, once; then nobody but its owner touches the request
//
// A handler must not wait for translations. Memory that dgm_request_memory gives lives as long as the request.
#ifndef DGM_SERVER_REQUEST_H
#define DGM_SERVER_REQUEST_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "dragoman/server.h"
#include "server/handlers.h"
#include "server/termbook.h"

typedef struct dgm_request dgm_request;
typedef struct dgm_route dgm_route;
typedef struct dgm_key dgm_key;
typedef struct dgm_task dgm_task;

// A header, or a value of a query or form. Values may hold any byte; a NUL follows them.
typedef struct dgm_field {
    const char *name, *value;
    size_t size;
} dgm_field;

typedef struct dgm_field_list {
    dgm_field *items;
    size_t count, cap;
} dgm_field_list;

// A file of a form (multipart/form-data).
typedef struct dgm_upload {
    const char *name, *file, *type; // of the field, of the file (its last component), its type or ""
    const char *data;
    size_t size;
} dgm_upload;

enum { DGM_UPLOADS_MAX = 8, DGM_FIELDS_MAX = 256 };

struct dgm_request {
    dgm_server *server;
    // -- what was asked --
    const char *method, *path; // path: decoded, valid UTF-8 without NUL, without prefix and query
    const char *address;       // of the client, for logs
    dgm_field_list headers, query;
    char *body; // the request's to free (dgm_free); NULL: none
    size_t body_size;
    const dgm_route *route; // NULL: none fits, and errors look as `fallback` says
    int fallback;           // dgm_api
    const char *rest;       // what stands in the path for the route's "*"
    // -- filled by dgm_request_read --
    json_t *json; // an object, where the body is JSON
    dgm_field_list form;
    dgm_upload uploads[DGM_UPLOADS_MAX];
    size_t upload_count;
    // -- filled by dgm_server_handle --
    const dgm_key *key;     // NULL: none
    const char *client;     // whose turns in the queue it takes: key, else address
    const char *route_mark; // for logs and metrics: the route's pattern, "" where none fits
    double begin;           // dgm_now
    // -- the answer --
    int status; // 0: none yet
    const char *type;
    dgm_field_list answer_headers;
    dgm_writer out; // the body; of a stream what was not sent yet
    bool streams;   // more may follow until `ended`
    bool ended;
    pthread_mutex_t lock; // of the answer, and of `task`
    // Called by whoever answers: once when an answer is there (of a stream, its beginning), then, of a stream, whenever
    // there is more to send, and at its end. NULL: nobody listens. The lock is held while it streams, else not.
    void (*wake)(dgm_request *q);
    void *owner; // of `wake`
    // -- tasks --
    atomic_bool gone;              // nobody waits for the answer any more
    dgm_task *task;                // to be cancelled then (lock); NULL: none
    dgm_handler_item work;            // its place in the list of the handler threads
    void *user;                    // a handler's own, between its parts
    void (*user_free)(void *user); // when the request ends; NULL: nothing
    dgm_termbook **books;          // glossaries of the request, which hold for its tasks
    size_t book_count, book_cap;
    // -- for logs --
    size_t characters, texts; // of what was translated
    size_t billed;            // characters that count against the quota of its key (usage.h)
    const char *source, *target;
    char reason[160]; // of an error, "" otherwise
    struct dgm_request_block *blocks;
};

// An empty request, to be filled in; NULL: no memory. free accepts NULL.
dgm_request *dgm_request_new(dgm_server *server);
void dgm_request_free(dgm_request *q);

// Memory of the request; NULL: there is none. copy: ends with NUL.
void *dgm_request_memory(dgm_request *q, size_t size);
char *dgm_request_copy(dgm_request *q, const char *text, size_t size);
bool dgm_field_add(dgm_request *q, dgm_field_list *list, const char *name, const char *value, size_t size);

// One more glossary, taken over; false: no memory, and it was dropped.
bool dgm_request_book(dgm_request *q, dgm_termbook *book);

// The first one of this name, in any case for headers; NULL: there is none. size may be NULL.
const char *dgm_request_header(const dgm_request *q, const char *name);
const char *dgm_fields_find(const dgm_field_list *list, const char *name, size_t *size);
// Is this the type of the body? ("application/json")
bool dgm_request_is(const dgm_request *q, const char *type);

// Reads the body by its type: JSON (an object; depth at most 32, no key twice) into `json`, forms into `form` and
// `uploads`. Bodies of other types are left alone. DGM_ERR_FORMAT: what is wrong with it.
dgm_status dgm_request_read(dgm_request *q, dgm_error *err);
// After it: a text of this name, from the JSON object, else from form and query; NULL: there is none. *wrong: it is
// there in JSON, and is no string.
const char *dgm_request_text(const dgm_request *q, const char *name, size_t *size, bool *wrong);

// ---- answers --------------------------------------------------------------------------------------
// Each of them ends the handler's part. What is answered after the first time is dropped.

// type: static memory, as are names of headers.
void dgm_answer(dgm_request *q, int status, const char *type, const void *data, size_t size);
// The bytes of a writer, which is taken over; one that failed is answered with 500.
void dgm_answer_writer(dgm_request *q, int status, const char *type, dgm_writer *w);
// An error in the words of the route's API (route.h): {"error": ...} and so on.
void dgm_answer_error(dgm_request *q, int status, const char *fmt, ...) DGM_PRINTF(3, 4);
// Of a status of the library: 400 for what the request is to blame for, 503 for what was cancelled, 500.
void dgm_answer_failure(dgm_request *q, dgm_status status, const dgm_error *err);
// Before one of the above. Control characters in the value are left out.
void dgm_answer_header(dgm_request *q, const char *name, const char *value);

// Answers that come bit by bit; from any thread, one at a time. put: false where nobody reads any more.
void dgm_stream_begin(dgm_request *q, int status, const char *type);
bool dgm_stream_put(dgm_request *q, const void *data, size_t size);
void dgm_stream_end(dgm_request *q);

// The client is gone: its task is cancelled, its answer will be dropped. Any thread.
void dgm_request_gone(dgm_request *q);

#endif
