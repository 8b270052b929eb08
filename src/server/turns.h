// SPDX-License-Identifier: MIT
// Whose sentence is next: clients take turns, within a client its tasks do, and a turn is worth a number of tokens.
//
// Surplus round robin on both levels: who is visited and has no credit gets QUANTUM tokens of it, takes sentences while
// it lasts (the last one may cost more, which the next turn pays for), and then the next one is visited. So a
// request of
// one sentence waits for one turn of everybody else, however long their texts are. Nothing here knows of threads or
// engines: the lane holds its lock around all of it.
#ifndef DGM_SERVER_TURNS_H
#define DGM_SERVER_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { DGM_TURN_TOKENS = 64 }; // a turn's worth

typedef struct dgm_turn_client dgm_turn_client;

typedef struct dgm_turn_task {
    const uint32_t *costs; // [count] tokens of each sentence
    size_t count;
    size_t taken;      // sentences that were handed out
    int64_t in_flight; // tokens of those that are not done
    // of turns.c
    struct dgm_turn_task *before, *after;
    dgm_turn_client *client;
    int64_t credit;
} dgm_turn_task;

typedef struct dgm_turns {
    dgm_turn_client *at; // ring; NULL: nobody is there
    size_t clients, tasks;
    size_t waiting; // sentences that were not handed out
} dgm_turns;

dgm_status dgm_turns_add(dgm_turns *t, const char *client, dgm_turn_task *task, dgm_error *err);
// The task whose next sentence (task->taken - 1 afterwards) is handed out now; its in_flight has grown. most: a task
// that has so
// many tokens in flight waits, unless it has none. NULL: nobody has anything to hand out.
dgm_turn_task *dgm_turns_next(dgm_turns *t, int64_t most);
void dgm_turns_remove(dgm_turns *t, dgm_turn_task *task); // one that is not there: nothing happens
void dgm_turns_free(dgm_turns *t);

#endif
