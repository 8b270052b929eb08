// SPDX-License-Identifier: MIT
// Turns of clients and their tasks; see turns.h.
#include "server/turns.h"

#include <string.h>

#include "base/mem.h"

struct dgm_turn_client {
    dgm_turn_client *before, *after;
    dgm_turn_task *at; // ring; never empty
    size_t tasks;
    size_t waiting;    // sentences that were not handed out
    int64_t begin;     // when its next sentence begins, on the clock of all clients
    int64_t clock;     // of its tasks
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

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

dgm_status dgm_turns_add(dgm_turns *t, const char *client, dgm_turn_task *task, dgm_error *err)
{
    dgm_turn_client *c = find(t, client);
    if (!c) c = add_client(t, client);
    if (!c) return dgm_no_memory(err);
    // Who had nothing to say saves nothing up.
    if (c->waiting == 0) c->begin = later(c->begin, t->clock);
    task->client = c;
    task->begin = c->clock;
    if (!c->at) {
        c->at = task->before = task->after = task;
    } else {
        task->after = c->at;
        task->before = c->at->before;
        task->before->after = task->after->before = task;
    }
    c->tasks++;
    t->tasks++;
    c->waiting += task->count - task->taken;
    t->waiting += task->count - task->taken;
    return DGM_OK;
}

static bool may_take(const dgm_turn_task *task, int64_t most)
{
    return task->in_flight == 0 || task->in_flight + task->costs[task->taken] <= most;
}

static int64_t end_of(int64_t begin, const dgm_turn_task *task)
{
    return begin + task->costs[task->taken];
}

// The task of a client whose next sentence ends first; the older one of two. NULL: none may take one.
static dgm_turn_task *first_task(const dgm_turn_client *c, int64_t most)
{
    dgm_turn_task *best = NULL, *task = c->at;
    for (size_t i = 0; i < c->tasks; i++, task = task->after) {
        if (task->taken == task->count) continue;
        if (!may_take(task, most))
            task->begin = later(task->begin, c->clock); // nor does who has to wait for its own
        else if (!best || end_of(task->begin, task) < end_of(best->begin, best))
            best = task;
    }
    return best;
}

dgm_turn_task *dgm_turns_next(dgm_turns *t, int64_t most)
{
    dgm_turn_client *client = NULL, *c = t->at;
    dgm_turn_task *task = NULL;
    for (size_t i = 0; i < t->clients; i++, c = c->after) {
        dgm_turn_task *first = c->waiting ? first_task(c, most) : NULL;
        if (c->waiting && !first) c->begin = later(c->begin, t->clock);
        if (!first || (task && end_of(c->begin, first) >= end_of(client->begin, task))) continue;
        client = c;
        task = first;
    }
    if (!task) return NULL;
    const uint32_t cost = task->costs[task->taken++];
    task->in_flight += cost;
    task->begin += cost;
    client->begin += cost;
    client->clock = later(client->clock, task->begin);
    t->clock = later(t->clock, client->begin);
    client->waiting--;
    t->waiting--;
    return task;
}

void dgm_turns_remove(dgm_turns *t, dgm_turn_task *task)
{
    dgm_turn_client *c = task->client;
    if (!c) return;
    task->client = NULL;
    c->waiting -= task->count - task->taken;
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
