// SPDX-License-Identifier: MIT
// Turns of clients and their tasks; see turns.h.
#include "server/turns.h"

#include <string.h>

#include "base/mem.h"

struct dgm_turn_client {
    dgm_turn_client *before, *after;
    dgm_turn_task *at; // ring; never empty
    size_t tasks;
    int64_t credit;
    char name[];
};

static dgm_turn_client *find(const dgm_turns *t, const char *name)
{
    dgm_turn_client *c = t->at;
    for (size_t i = 0; i < t->clients; i++, c = c->after)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}

// Behind everybody: just before the one who is next.
static dgm_turn_client *add_client(dgm_turns *t, const char *name)
{
    const size_t n = strlen(name) + 1;
    dgm_turn_client *c = dgm_calloc(1, sizeof *c + n);
    if (!c) return NULL;
    memcpy(c->name, name, n);
    if (!t->at) {
        t->at = c->before = c->after = c;
    } else {
        c->after = t->at;
        c->before = t->at->before;
        c->before->after = c->after->before = c;
    }
    t->clients++;
    return c;
}

dgm_status dgm_turns_add(dgm_turns *t, const char *client, dgm_turn_task *task, dgm_error *err)
{
    dgm_turn_client *c = find(t, client);
    if (!c) c = add_client(t, client);
    if (!c) return dgm_no_memory(err);
    task->client = c;
    task->credit = 0;
    if (!c->at) {
        c->at = task->before = task->after = task;
    } else {
        task->after = c->at;
        task->before = c->at->before;
        task->before->after = task->after->before = task;
    }
    c->tasks++;
    t->tasks++;
    t->waiting += task->count - task->taken;
    return DGM_OK;
}

static bool may_take(const dgm_turn_task *task, int64_t most)
{
    if (task->taken == task->count) return false;
    return task->in_flight == 0 || task->in_flight + task->costs[task->taken] <= most;
}

// The next task of a client that may take a sentence; the ring stands at it then.
static dgm_turn_task *turn_to(dgm_turn_client *c, int64_t most)
{
    for (size_t i = 0; i < c->tasks; i++) {
        dgm_turn_task *task = c->at;
        if (may_take(task, most)) {
            if (task->credit <= 0) task->credit += DGM_TURN_TOKENS;
            if (task->credit > 0) return task;
        }
        c->at = task->after;
    }
    // Everybody who may is in debt: those with the least of it come first as credit grows.
    for (size_t i = 0; i < c->tasks; i++, c->at = c->at->after)
        if (may_take(c->at, most)) return c->at;
    return NULL;
}

dgm_turn_task *dgm_turns_next(dgm_turns *t, int64_t most)
{
    for (size_t idle = 0; t->at && idle < t->clients;) {
        dgm_turn_client *c = t->at;
        dgm_turn_task *task = turn_to(c, most);
        if (!task) {
            c->credit = 0; // who has nothing to say saves nothing up
            idle++;
            t->at = c->after;
            continue;
        }
        idle = 0;
        if (c->credit <= 0) c->credit += DGM_TURN_TOKENS;
        if (c->credit <= 0) { // still paying for a long sentence
            t->at = c->after;
            continue;
        }
        const uint32_t cost = task->costs[task->taken++];
        task->in_flight += cost;
        task->credit -= cost;
        c->credit -= cost;
        t->waiting--;
        if (task->credit <= 0) c->at = task->after;
        if (c->credit <= 0) t->at = c->after;
        return task;
    }
    return NULL;
}

void dgm_turns_remove(dgm_turns *t, dgm_turn_task *task)
{
    dgm_turn_client *c = task->client;
    if (!c) return;
    task->client = NULL;
    t->waiting -= task->count - task->taken;
    t->tasks--;
    task->before->after = task->after;
    task->after->before = task->before;
    if (c->at == task) c->at = task->after;
    if (--c->tasks) return;
    c->before->after = c->after;
    c->after->before = c->before;
    if (t->at == c) t->at = c->after;
    if (--t->clients == 0) t->at = NULL;
    dgm_free(c);
}

void dgm_turns_free(dgm_turns *t)
{
    while (t->at) dgm_turns_remove(t, t->at->at);
}
