// SPDX-License-Identifier: MIT
// Handler threads; see handlers.h.
#include "server/handlers.h"

#include <pthread.h>

#include "base/mem.h"

struct dgm_handlers {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    dgm_handler_item *first, *last;
    bool quit;
    int started;
    pthread_t threads[];
};

static void *work_main(void *arg)
{
    dgm_handlers *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->first && !w->quit) pthread_cond_wait(&w->wake, &w->lock);
        if (!w->first) break;
        dgm_handler_item *item = w->first;
        w->first = item->next;
        if (!w->first) w->last = NULL;
        pthread_mutex_unlock(&w->lock);
        item->run(item->arg); // the item may be gone afterwards
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

dgm_status dgm_handlers_open(dgm_handlers **out, int threads, dgm_error *err)
{
    *out = NULL;
    dgm_handlers *w = dgm_calloc(1, sizeof *w + (size_t)threads * sizeof(pthread_t));
    if (!w) return dgm_no_memory(err);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    for (; w->started < threads; w->started++)
        if (pthread_create(&w->threads[w->started], NULL, work_main, w) != 0) {
            dgm_handlers_close(&w);
            return dgm_fail(err, DGM_ERR_MEMORY, "cannot start handler thread %d", threads);
        }
    *out = w;
    return DGM_OK;
}

void dgm_handlers_close(dgm_handlers **work)
{
    dgm_handlers *w = *work;
    if (!w) return;
    *work = NULL;
    pthread_mutex_lock(&w->lock);
    w->quit = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->started; i++) pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    dgm_free(w);
}

void dgm_handlers_post(dgm_handlers *w, dgm_handler_item *item, void (*run)(void *arg), void *arg)
{
    *item = (dgm_handler_item){.run = run, .arg = arg};
    pthread_mutex_lock(&w->lock);
    if (w->last)
        w->last->next = item;
    else
        w->first = item;
    w->last = item;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}
