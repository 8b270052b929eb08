// SPDX-License-Identifier: MIT
// A server for all tests of a program, and requests while memory is short: each allocation fails once, and there is an
// answer all the same, nothing is lost, and nobody touches the request after its answer. Include cmocka.h first.
#ifndef DGM_TESTS_UNIT_SERVER_SCARCE_H
#define DGM_TESTS_UNIT_SERVER_SCARCE_H

#include <malloc.h>

#include "server_test.h"

static dgm_server *server; // of all tests of a program that need no options

static inline int open_server(void **state)
{
    (void)state;
    server = test_server(NULL);
    return 0;
}

static inline int close_server(void **state)
{
    (void)state;
    dgm_server_close(&server);
    return 0;
}

// A server whose threads do nothing by themselves, so that allocations are those of the request alone: files are not
// looked at, and no translation is under way or was.
static inline dgm_server *scarce_server(void)
{
    dgm_server_options o;
    dgm_server_default(&o);
    o.reload_seconds = 0;
    return test_server(&o);
}

typedef struct scarce_state {
    int answers;
    uint64_t sum;
} scarce_state;

static inline uint64_t scarce_add(uint64_t sum, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++) sum = (sum ^ p[i]) * 0x100000001b3u;
    return sum;
}

// Of the request, without its lock, and of its memory.
static inline uint64_t scarce_sum(const dgm_request *q)
{
    const size_t lock = offsetof(dgm_request, lock), behind = lock + sizeof q->lock;
    uint64_t sum = scarce_add(0, q, lock);
    sum = scarce_add(sum, (const char *)q + behind, sizeof *q - behind);
    for (void *b = q->blocks; b; memcpy(&b, b, sizeof b)) // its first member is the next one
        sum = scarce_add(sum, b, malloc_usable_size(b));
    return sum;
}

// From here on the request is nobody's. Its lock is held, in a way that tells whether somebody takes it again.
static inline void scarce_answered(dgm_request *q)
{
    scarce_state *state = q->owner;
    pthread_mutexattr_t how;
    if (state->answers++) return;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_destroy(&q->lock);
    pthread_mutex_init(&q->lock, &how);
    pthread_mutexattr_destroy(&how);
    pthread_mutex_lock(&q->lock);
    state->sum = scarce_sum(q);
}

typedef struct scarce_row {
    const char *method, *path, *type, *body;
} scarce_row;

// One that is answered on this thread, without a task. *failed: as many allocations were made as that one fails.
static inline dgm_request *scarce_ask(dgm_server *s, const scarce_row *row, uint64_t fail_at, bool *failed)
{
    scarce_state state = {0};
    dgm_request *q = test_request(s, row->method, row->path, row->type, row->body);
    q->owner = &state;
    q->wake = scarce_answered;
    if (!dgm_server_admit(q)) fail_msg("%s is not admitted", row->path);
    const uint64_t before = dgm_mem_allocations();
    dgm_mem_inject(fail_at, 1);
    dgm_server_dispatch(q);
    dgm_mem_inject(0, 0);
    *failed = fail_at && dgm_mem_allocations() - before >= fail_at;
    if (state.answers != 1 || scarce_sum(q) != state.sum || pthread_mutex_unlock(&q->lock) != 0)
        fail_msg("%s %s, allocation %d: it was answered %d times, or touched after its answer (%d)", row->method,
                 row->path, (int)fail_at, state.answers, q->status);
    q->wake = NULL;
    return q;
}

// Every allocation of a request fails once. fine: is that what must be answered?
static inline void scarce_try(dgm_server *s, const scarce_row *row, bool (*fine)(const dgm_request *q, bool failed))
{
    bool failed = true;
    for (uint64_t i = 1; failed; i++) {
        const uint64_t live = dgm_mem_live();
        dgm_request *q = scarce_ask(s, row, i, &failed);
        if (!fine(q, failed)) fail_msg("%s %s, allocation %d: %d", row->method, row->path, (int)i, q->status);
        dgm_request_free(q);
        assert_int_equal(dgm_mem_live(), live);
        assert_true(i < 1000);
    }
}

#endif
