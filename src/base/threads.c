// SPDX-License-Identifier: MIT
// Thread pool on pthreads; see threads.h.
//
// Workers sleep on `wake` until `round` changes, take items from an atomic counter, and the last
// one to finish signals `done`.
#define _GNU_SOURCE
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

typedef struct worker {
    dgm_pool *pool;
    pthread_t thread;
    int index;
} worker;

struct dgm_pool {
    int threads, started;
    worker *workers; // [threads - 1]
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    uint64_t round;
    int busy;
    bool quit;
    dgm_pool_fn fn;
    void *arg;
    int items;
    _Atomic int next;
};

static void work(dgm_pool *p, int index)
{
    for (;;) {
        int item = atomic_fetch_add(&p->next, 1);
        if (item >= p->items) return;
        p->fn(p->arg, index, item);
    }
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    dgm_pool *p = w->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->quit && p->round == seen) pthread_cond_wait(&p->wake, &p->lock);
        if (p->quit) break;
        seen = p->round;
        pthread_mutex_unlock(&p->lock);
        work(p, w->index);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0) pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

dgm_status dgm_pool_open(dgm_pool **out, int threads, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(threads < 1 || threads > 4096, err, DGM_ERR_ARGUMENT,
                "the number of threads must be between 1 and 4096, not %d", threads);
    dgm_pool *p = dgm_calloc(1, sizeof *p);
    if (!p) return dgm_no_memory(err);
    p->threads = threads;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    if (threads > 1) {
        p->workers = dgm_calloc((size_t)threads - 1, sizeof *p->workers);
        if (!p->workers) {
            dgm_pool_close(&p);
            return dgm_no_memory(err);
        }
    }
    for (int i = 0; i < threads - 1; i++) {
        worker *w = &p->workers[i];
        w->pool = p;
        w->index = i + 1;
        int code = pthread_create(&w->thread, NULL, worker_main, w);
        if (code != 0) {
            dgm_pool_close(&p);
            return dgm_fail(err, DGM_ERR_MEMORY, "cannot start thread %d: %s", i + 1,
                            strerror(code));
        }
        p->started++;
    }
    *out = p;
    return DGM_OK;
}

void dgm_pool_close(dgm_pool **pool)
{
    dgm_pool *p = *pool;
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started; i++) pthread_join(p->workers[i].thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->done);
    dgm_free(p->workers);
    dgm_free(p);
    *pool = NULL;
}

int dgm_pool_threads(const dgm_pool *pool)
{
    return pool ? pool->threads : 1;
}

void dgm_pool_run(dgm_pool *p, dgm_pool_fn fn, void *arg, int items)
{
    if (!p || p->threads == 1 || items <= 1) {
        for (int i = 0; i < items; i++) fn(arg, 0, i);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->fn = fn;
    p->arg = arg;
    p->items = items;
    atomic_store(&p->next, 0);
    p->busy = p->threads - 1;
    p->round++;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    work(p, 0);
    pthread_mutex_lock(&p->lock);
    while (p->busy > 0) pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

int dgm_cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int n = CPU_COUNT(&set);
        if (n > 0) return n;
    }
    return 1;
}
