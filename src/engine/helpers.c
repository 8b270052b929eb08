// SPDX-License-Identifier: MIT
// Help for a worker that has much to do: with single operations of the CPU, and with what the host does between the
// operations of any device (search/share.c).
//
// A worker without a sentence helps one that has some, as long as there are cores for both; it goes when pieces come,
// and sleeps when it is not needed for a moment. The next step calls it again.
//
// A device with memory of its own has one or two workers and leaves the other cores alone; while these workers see to
// their sentences it has nothing to do. So they get threads that do nothing but help, EACH for a worker, of the cores
// that neither workers nor text threads (text_stage.c) have. They are called where a step has many rows, and then look
// out for work as long as a step takes, as the worker itself does when it waits for its device.
#include <stdlib.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/threads.h"
#include "engine/worker_private.h"

enum {
    EACH = 3,    // a fourth thread gains less than what it looks out for costs
    MANY = 2048, // rows of a step that are worth it: with 1,024 the threads cost what they take (docs/results/GPU.md)
    MOST = 256
};

static const double step_most = 3e-3; // seconds; a step that takes longer hides what the host does

// ---- who helps whom -------------------------------------------------------------------------------

static bool is_apart(const dgm_worker *w)
{
    return !dgm_backend_properties(w->home->backend)->host_memory;
}

// Threads that have something to do. Lock held.
static int awake(const dgm_translator *t)
{
    return t->threads + t->helper_count - t->asleep;
}

static bool has_enough(const dgm_worker *w)
{
    return is_apart(w) && w->helpers >= EACH;
}

// Who has the fewest helpers of those that want some; NULL: nobody, or all cores are busy. Lock held.
static dgm_worker *find_leader(const dgm_translator *t)
{
    dgm_worker *best = NULL;
    if (awake(t) > t->cores) return NULL;
    for (int i = 0; i < t->threads; i++) {
        dgm_worker *w = &t->workers[i];
        if (w->leads && !has_enough(w) && (!best || w->helpers < best->helpers)) best = w;
    }
    return best;
}

void dgm_helpers_call(dgm_worker *w)
{
    dgm_translator *t = w->t;
    const bool much = !is_apart(w) || dgm_search_step_rows(w->search) >= MANY;
    w->leads = much && !w->meter && dgm_team_wants(dgm_exec_team(w->exec));
    if (w->leads && t->asleep > 0 && !has_enough(w) && awake(t) < t->cores) pthread_cond_signal(&t->wake);
}

void dgm_helpers_wait(dgm_translator *t, const atomic_uint *alarm, bool *rested)
{
    dgm_worker *leader = *rested ? find_leader(t) : NULL;
    if (!leader) {
        t->asleep++;
        pthread_cond_wait(&t->wake, &t->lock);
        t->asleep--;
        *rested = true;
        return;
    }
    const unsigned seen = atomic_load(alarm);
    leader->helpers++;
    pthread_mutex_unlock(&t->lock);
    dgm_team_help(dgm_exec_team(leader->exec), alarm, seen, is_apart(leader) ? step_most : dgm_team_patience);
    pthread_mutex_lock(&t->lock);
    leader->helpers--;
    *rested = false;
}

// ---- threads that do nothing else -----------------------------------------------------------------

int dgm_helpers_suit(int workers, int cores, bool device)
{
    const int left = cores - workers - dgm_text_suits(workers, cores, device), most = EACH * workers;
    return !device || left < 0 ? 0 : left < most ? left : most;
}

static dgm_status choose_count(dgm_translator *t, int *count, dgm_error *err)
{
    const char *asked = getenv("DRAGOMAN_HELPERS");
    const bool device = !dgm_backend_properties(t->backend)->host_memory;
    uint64_t number = 0;
    *count = dgm_helpers_suit(t->threads, t->cores, device);
    if (!asked || !*asked) return DGM_OK;
    DGM_FAIL_IF(!dgm_number_u64(dgm_text_of(asked), MOST, &number), err, DGM_ERR_ARGUMENT,
                "DRAGOMAN_HELPERS must be 0 to %d, not '%.80s'", MOST, asked);
    *count = (int)number;
    return DGM_OK;
}

static void *helper_main(void *arg)
{
    dgm_translator *t = arg;
    bool rested = true;
    pthread_mutex_lock(&t->lock);
    while (!t->quit) dgm_helpers_wait(t, &t->over, &rested);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

dgm_status dgm_helpers_start(dgm_translator *t, dgm_error *err)
{
    int count = 0;
    DGM_TRY(choose_count(t, &count, err));
    if (count == 0) return DGM_OK;
    t->helpers = dgm_calloc((size_t)count, sizeof *t->helpers);
    if (!t->helpers) return dgm_no_memory(err);
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, helper_main, t) != 0)
            return dgm_fail(err, DGM_ERR_MEMORY, "cannot start helper thread %d of %d", i + 1, count);
        t->helpers[i] = thread;
        pthread_mutex_lock(&t->lock);
        t->helper_count++;
        pthread_mutex_unlock(&t->lock);
    }
    return DGM_OK;
}

void dgm_helpers_stop(dgm_translator *t)
{
    for (int i = 0; i < t->helper_count; i++) pthread_join(t->helpers[i], NULL);
    dgm_free(t->helpers);
    t->helpers = NULL;
    t->helper_count = 0;
}
