// SPDX-License-Identifier: MIT
// Monotonic time in seconds, and a small seeded generator for tests, sampling and shuffles.
#ifndef DGM_BASE_CLOCK_H
#define DGM_BASE_CLOCK_H

#include <stdint.h>

double dgm_now(void);
double dgm_thread_time(void); // CPU time of the calling thread, in seconds
double dgm_process_time(void); // of all threads together

// splitmix64: the same numbers on every machine.
typedef struct dgm_rng {
    uint64_t state;
} dgm_rng;

uint64_t dgm_rng_next(dgm_rng *r);
uint64_t dgm_rng_below(dgm_rng *r, uint64_t n); // uniform in [0, n), n > 0
double dgm_rng_unit(dgm_rng *r);                // uniform in [0, 1)

#endif
