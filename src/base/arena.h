// SPDX-License-Identifier: MIT
// A worker's memory: one reserved range of address space, handed out from the front, 64-byte
// aligned, given back all at once (mark/reset) like a stack. Pages cost memory only once touched,
// so capacities can be sized for the worst case. Under AddressSanitizer every block has a poisoned
// red zone behind it and the unused tail is poisoned.
//
//     |block|rz|block|rz| ... free ... |
//     base             used          size
//
// An arena belongs to one thread at a time.
#ifndef DGM_BASE_ARENA_H
#define DGM_BASE_ARENA_H

#include <stddef.h>

#include "base/status.h"

typedef struct dgm_arena {
    char *base;
    size_t size, used, peak;
} dgm_arena;

dgm_status dgm_arena_init(dgm_arena *a, size_t size, dgm_error *err);
void dgm_arena_free(dgm_arena *a); // accepts a zeroed arena
// Pages are small at first: a short sentence touches a little of many blocks, and the system would clear two megabytes
// for each. Where much will be read in long strides, large ones save look-ups: those that are touched from now on are
// large at once, the others when the system finds the time.
void dgm_arena_large(dgm_arena *a);

// NULL when the arena is full. Contents are undefined after a reset, zero the first time.
void *dgm_arena_alloc(dgm_arena *a, size_t size);
void *dgm_arena_array(dgm_arena *a, size_t count, size_t elem); // NULL on overflow too
size_t dgm_arena_mark(const dgm_arena *a);
void dgm_arena_reset(dgm_arena *a, size_t mark);

// What one block of `size` bytes takes from an arena: for sizing it beforehand.
size_t dgm_arena_cost(size_t size);

#define DGM_ARENA_ARRAY(a, type, count) ((type *)dgm_arena_array((a), (count), sizeof(type)))

#endif
