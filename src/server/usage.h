// SPDX-License-Identifier: MIT
// Characters that keys have had translated in this calendar month (UTC), against their char_quota. The counts live as
// long as the server. Any number of threads.
#ifndef DGM_SERVER_USAGE_H
#define DGM_SERVER_USAGE_H

#include "server/request.h"

typedef struct dgm_usage dgm_usage;

dgm_status dgm_usage_open(dgm_usage **usage, dgm_error *err);
void dgm_usage_close(dgm_usage **usage); // accepts NULL inside
// Adds characters; false: that would be more than the quota (-1: there is none), and nothing was added. month: as
// dgm_usage_month; a new one begins at 0. key "": all who have none.
bool dgm_usage_take(dgm_usage *usage, const char *key, uint64_t characters, int64_t quota, int month);
void dgm_usage_give(dgm_usage *usage, const char *key, uint64_t characters); // they were not translated after all
uint64_t dgm_usage_count(dgm_usage *usage, const char *key);
int dgm_usage_month(void); // months since 1900

// Takes q->characters from the quota of the request's key; DGM_ERR_UNSUPPORTED: it does not suffice.
dgm_status dgm_request_charge(dgm_request *q, dgm_error *err);
// The same; false: it was answered: 456 in DeepL's API, else 429.
bool dgm_request_bill(dgm_request *q);
void dgm_request_refund(dgm_request *q); // what it took goes back
// Before a request is freed: what failed costs nothing.
void dgm_request_settle(dgm_request *q);

#endif
