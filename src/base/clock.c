// SPDX-License-Identifier: MIT
// Clock and random numbers; see clock.h.
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"

#include <time.h>

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double dgm_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double dgm_thread_time(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

double dgm_process_time(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t dgm_rng_next(dgm_rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t dgm_rng_below(dgm_rng *r, uint64_t n)
{
    // Rejects the tail that would favour small numbers.
    uint64_t limit = UINT64_MAX - UINT64_MAX % n, v;
    do v = dgm_rng_next(r);
    while (v >= limit);
    return v % n;
}

double dgm_rng_unit(dgm_rng *r)
{
    return (double)(dgm_rng_next(r) >> 11) * 0x1p-53;
}
