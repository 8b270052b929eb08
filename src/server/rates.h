// SPDX-License-Identifier: MIT
// Limits of requests by client, in windows of a minute, an hour and a day that begin with the client's first request;
// refused requests count towards a lock-out. Any number of threads.
#ifndef DGM_SERVER_RATES_H
#define DGM_SERVER_RATES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct dgm_rates dgm_rates;

typedef struct dgm_rate_limits {
    int64_t minute, hour, day; // -1: none
    int64_t flood;             // refusals within a day after which nothing is answered; -1: never
} dgm_rate_limits;

typedef enum dgm_rate_answer { DGM_RATE_FINE = 0, DGM_RATE_SLOW, DGM_RATE_BANNED } dgm_rate_answer;

dgm_status dgm_rates_open(dgm_rates **rates, dgm_error *err);
void dgm_rates_close(dgm_rates **rates); // accepts NULL inside
// A request of a client that counts as `cost`, at `now` seconds. SLOW: which limit is passed, "10 per 1 minute".
dgm_rate_answer dgm_rates_take(dgm_rates *rates, const char *client, int64_t cost, const dgm_rate_limits *limits,
                               double now, char *which, size_t size);
void dgm_rates_expire(dgm_rates *rates, double now); // forgets clients that were away for a day

#endif
