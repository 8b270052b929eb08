// SPDX-License-Identifier: MIT
// Whose sentence is next: clients share by tokens, and within a client its tasks do.
//
// Self-clocked fair queueing on both levels. A sentence begins where the one before it of its task ended, or, where
// none waited, at the time of the clock; it ends its tokens later; what ends first is next, and the clock goes on to
// its end. So a request of one sentence passes texts of any length, and whoever waits, waits in proportion to what was
// asked for: a sentence of five words not as long as one of fifty. Nobody waits for ever, as the clock passes every
// end. Nothing here knows of threads or engines: the lane holds its lock around all of it.
#ifndef DGM_SERVER_TURNS_H
#define DGM_SERVER_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct dgm_turn_client dgm_turn_client;

typedef struct dgm_turn_task {
    const uint32_t *costs; // [count] tokens of each sentence
    size_t count;
    size_t taken;      // sentences that were handed out
    int64_t in_flight; // tokens of those that are not done
    // of turns.c
    struct dgm_turn_task *before, *after;
    dgm_turn_client *client;
    int64_t begin; // of its next sentence, on the clock of its client
} dgm_turn_task;

typedef struct dgm_turns {
    dgm_turn_client *at; // ring, the oldest first; NULL: nobody is there
    size_t clients, tasks;
    size_t waiting; // sentences that were not handed out
    int64_t clock;  // tokens
} dgm_turns;

dgm_status dgm_turns_add(dgm_turns *t, const char *client, dgm_turn_task *task, dgm_error *err);
// The task whose next sentence (task->taken - 1 afterwards) is handed out now; its in_flight has grown. most: a task
// that has so
// many tokens in flight waits, unless it has none. NULL: nobody has anything to hand out.
dgm_turn_task *dgm_turns_next(dgm_turns *t, int64_t most);
void dgm_turns_remove(dgm_turns *t, dgm_turn_task *task); // one that is not there: nothing happens
void dgm_turns_free(dgm_turns *t);

#endif
