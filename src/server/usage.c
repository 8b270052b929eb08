// SPDX-License-Identifier: MIT
// Characters by key; see usage.h.
#define _GNU_SOURCE // gmtime_r
#include "server/usage.h"

#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "server/server_private.h"

typedef struct account {
    char key[DGM_KEY_MAX];
    uint64_t characters;
    int month;
} account;

struct dgm_usage {
    pthread_mutex_t lock;
    account *items;
    size_t count, cap;
};

void dgm_usage_close(dgm_usage **usage)
{
    if (!*usage) return;
    pthread_mutex_destroy(&(*usage)->lock);
    dgm_free((*usage)->items);
    dgm_free(*usage);
    *usage = NULL;
}

int dgm_usage_month(void)
{
    const time_t now = time(NULL);
    struct tm t;
    return gmtime_r(&now, &t) ? t.tm_year * 12 + t.tm_mon : 0;
}

// Lock held. NULL: it has none, and there is no memory for one (add) or nobody wants it.
static account *find(dgm_usage *u, const char *key, bool add)
{
    for (size_t i = 0; i < u->count; i++)
        if (strcmp(u->items[i].key, key) == 0) return &u->items[i];
    const size_t n = strlen(key);
    if (!add || n >= DGM_KEY_MAX || dgm_grow(&u->items, &u->cap, u->count + 1, sizeof *u->items, NULL) != DGM_OK)
        return NULL;
    account *a = &u->items[u->count++];
    *a = (account){.month = -1};
    memcpy(a->key, key, n);
    return a;
}

dgm_status dgm_usage_open(dgm_usage **out, dgm_error *err)
{
    *out = dgm_calloc(1, sizeof **out);
    if (!*out) return dgm_no_memory(err);
    pthread_mutex_init(&(*out)->lock, NULL);
    if (find(*out, "", true)) return DGM_OK; // that of all who have no key is there from the start
    dgm_usage_close(out);
    return dgm_no_memory(err);
}

bool dgm_usage_take(dgm_usage *u, const char *key, uint64_t characters, int64_t quota, int month)
{
    pthread_mutex_lock(&u->lock);
    account *a = find(u, key, true);
    if (a && a->month != month) {
        a->month = month;
        a->characters = 0;
    }
    const bool fine = quota < 0 || (a && a->characters + characters <= (uint64_t)quota);
    if (a && fine) a->characters += characters;
    pthread_mutex_unlock(&u->lock);
    return fine;
}

void dgm_usage_give(dgm_usage *u, const char *key, uint64_t characters)
{
    pthread_mutex_lock(&u->lock);
    account *a = find(u, key, false);
    if (a) a->characters -= characters < a->characters ? characters : a->characters;
    pthread_mutex_unlock(&u->lock);
}

uint64_t dgm_usage_count(dgm_usage *u, const char *key)
{
    pthread_mutex_lock(&u->lock);
    const account *a = find(u, key, false);
    const uint64_t count = a && a->month == dgm_usage_month() ? a->characters : 0;
    pthread_mutex_unlock(&u->lock);
    return count;
}

dgm_status dgm_request_charge(dgm_request *q, dgm_error *err)
{
    const char *key = q->key ? q->key->key : "";
    const int64_t quota = q->key ? q->key->char_quota : -1;
    DGM_FAIL_IF(!dgm_usage_take(q->server->usage, key, q->characters, quota, dgm_usage_month()), err,
                DGM_ERR_UNSUPPORTED, "The key's quota of %lld characters a month is used up.", (long long)quota);
    q->billed += q->characters;
    return DGM_OK;
}

bool dgm_request_bill(dgm_request *q)
{
    dgm_error err;
    if (dgm_request_charge(q, &err) == DGM_OK) return true;
    const bool deepl = q->route && q->route->api == DGM_API_DEEPL;
    dgm_answer_error(q, deepl ? 456 : 429, "%s",
                     deepl ? "Quota for this billing period has been exceeded." : err.text);
    return false;
}

void dgm_request_refund(dgm_request *q)
{
    if (q->billed) dgm_usage_give(q->server->usage, q->key ? q->key->key : "", q->billed);
    q->billed = 0;
}

void dgm_request_settle(dgm_request *q)
{
    if (q->status >= 400) dgm_request_refund(q);
}
