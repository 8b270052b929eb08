// SPDX-License-Identifier: MIT
// Private to worker.c, helpers.c and api.c: what a worker is made of.
#ifndef DGM_ENGINE_WORKER_PRIVATE_H
#define DGM_ENGINE_WORKER_PRIVATE_H

#include "engine/engine_private.h"

struct dgm_worker {
    dgm_translator *t;
    const dgm_translator *home; // t or its twin: models and budget of the worker's device
    pthread_t thread;
    dgm_exec *exec;
    dgm_state *states[DGM_PARTS_MAX];
    dgm_search *search;
    dgm_vocabsel vocabsel;
    dgm_scorer scorers[DGM_SCORERS_MAX];
    int scorer_count;
    dgm_piece_state **taken;      // [batch] pieces of the next admission
    dgm_piece_state **inside;     // [batch] pieces being decoded, in order of admission
    dgm_piece_state **back;       // [2 * batch] pieces that wait for room in this worker
    dgm_search_request *requests; // [batch]
    int inside_count, back_count;
    int entered;         // pieces so far; not counted any more when its memory lies on large pages
    int64_t inside_cost; // of the pieces inside, in the tokens of the budget
    uint64_t restarts;   // pieces put back when out of memory,
    bool full;           // since when nobody has finished: nobody enters
    uint64_t cancels;    // of the translator's, those that were looked into
    bool leads;          // others may help it; guarded by the translator's lock, as
    int helpers;         // how many do
    dgm_bytes bytes;
    // Totals, guarded by the translator's lock.
    dgm_search_stats stats;
    dgm_model_counts counts;
    uint64_t source_tokens, peak, restarts_seen;
    uint64_t *centroids; // bits of those that were used; NULL without clusters
    // Profile, where one is taken: operations, CPU seconds of work so far, and from when on to
    // count (negative: not yet).
    dgm_meter *meter;
    double busy, since;
};

// helpers.c. Before a worker's step: it may be helped, and somebody who sleeps is woken for it where it has much to do.
// Lock held.
void dgm_helpers_call(dgm_worker *w);
// For whoever has nothing to do: helps a worker until the alarm changes, or sleeps until somebody calls. *rested:
// somebody has called since it last helped. Lock held before and after.
void dgm_helpers_wait(dgm_translator *t, const atomic_uint *alarm, bool *rested);
// Threads that only help. Stop comes when all workers have ended, and before their memory goes.
dgm_status dgm_helpers_start(dgm_translator *t, dgm_error *err);
void dgm_helpers_stop(dgm_translator *t);
// How many suit so many workers.
int dgm_helpers_suit(int workers, int cores, bool device);

#endif
