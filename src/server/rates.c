// SPDX-License-Identifier: MIT
// Limits of requests; see rates.h.
#include "server/rates.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum { WINDOWS = 3, BUCKETS = 4096, CLIENTS_MAX = 100000 };

static const double lengths[WINDOWS] = {60, 3600, 86400};
static const char *const names[WINDOWS] = {"minute", "hour", "day"};

typedef struct client {
    struct client *next;
    double since[WINDOWS]; // when the window began
    int64_t used[WINDOWS];
    double last, flood_since;
    int64_t refused;
    char name[];
} client;

struct dgm_rates {
    pthread_mutex_t lock;
    client *buckets[BUCKETS];
    size_t count;
};

dgm_status dgm_rates_open(dgm_rates **out, dgm_error *err)
{
    *out = dgm_calloc(1, sizeof **out);
    if (!*out) return dgm_no_memory(err);
    pthread_mutex_init(&(*out)->lock, NULL);
    return DGM_OK;
}

static void forget(dgm_rates *r, double before)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (client **at = &r->buckets[i]; *at;) {
            client *c = *at;
            if (c->last >= before) {
                at = &c->next;
                continue;
            }
            *at = c->next;
            dgm_free(c);
            r->count--;
        }
}

void dgm_rates_close(dgm_rates **at)
{
    dgm_rates *r = *at;
    if (!r) return;
    *at = NULL;
    forget(r, 1e300);
    pthread_mutex_destroy(&r->lock);
    dgm_free(r);
}

void dgm_rates_expire(dgm_rates *r, double now)
{
    pthread_mutex_lock(&r->lock);
    forget(r, now - lengths[WINDOWS - 1]);
    pthread_mutex_unlock(&r->lock);
}

static client *find(dgm_rates *r, const char *name)
{
    client **bucket = &r->buckets[dgm_hash_text(dgm_text_of(name)) % BUCKETS];
    for (client *c = *bucket; c; c = c->next)
        if (strcmp(c->name, name) == 0) return c;
    if (r->count >= CLIENTS_MAX) return NULL;
    const size_t n = strlen(name) + 1;
    client *c = dgm_calloc(1, sizeof *c + n);
    if (!c) return NULL;
    memcpy(c->name, name, n);
    for (int i = 0; i < WINDOWS; i++) c->since[i] = -1e300;
    c->flood_since = -1e300;
    c->next = *bucket;
    *bucket = c;
    r->count++;
    return c;
}

static dgm_rate_answer refuse(client *c, const dgm_rate_limits *limits, int window, double now, int64_t limit,
                              char *which, size_t size)
{
    if (now - c->flood_since >= lengths[WINDOWS - 1]) {
        c->flood_since = now;
        c->refused = 0;
    }
    c->refused++;
    snprintf(which, size, "%lld per 1 %s", (long long)limit, names[window]);
    return limits->flood >= 0 && c->refused > limits->flood ? DGM_RATE_BANNED : DGM_RATE_SLOW;
}

dgm_rate_answer dgm_rates_take(dgm_rates *r, const char *name, int64_t cost, const dgm_rate_limits *limits,
                               double now, char *which, size_t size)
{
    const int64_t most[WINDOWS] = {limits->minute, limits->hour, limits->day};
    dgm_rate_answer answer = DGM_RATE_FINE;
    which[0] = 0;
    if (most[0] < 0 && most[1] < 0 && most[2] < 0) return answer;
    pthread_mutex_lock(&r->lock);
    client *c = find(r, name);
    if (!c) { // full of clients, or no memory: strangers wait
        snprintf(which, size, "too many clients");
        pthread_mutex_unlock(&r->lock);
        return DGM_RATE_SLOW;
    }
    c->last = now;
    if (limits->flood >= 0 && c->refused > limits->flood && now - c->flood_since < lengths[WINDOWS - 1])
        answer = DGM_RATE_BANNED;
    for (int i = 0; i < WINDOWS && answer == DGM_RATE_FINE; i++) {
        if (most[i] < 0) continue;
        if (now - c->since[i] >= lengths[i]) {
            c->since[i] = now;
            c->used[i] = 0;
        }
        if (c->used[i] + cost > most[i]) answer = refuse(c, limits, i, now, most[i], which, size);
    }
    for (int i = 0; i < WINDOWS && answer == DGM_RATE_FINE; i++)
        if (most[i] >= 0) c->used[i] += cost;
    pthread_mutex_unlock(&r->lock);
    return answer;
}
