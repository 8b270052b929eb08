// SPDX-License-Identifier: MIT
// The allocator: nobody else calls malloc. Counts allocations (a test shows that the decode loop makes none)
// and can be told to fail the n-th one (a test loops over all of them).
//
// All functions are thread-safe. dgm_free accepts NULL. Memory is 64-byte aligned.
#ifndef DGM_BASE_MEM_H
#define DGM_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

void *dgm_malloc(size_t size);
void *dgm_calloc(size_t count, size_t size); // zeroed; NULL on overflow of count * size
void *dgm_realloc(void *ptr, size_t old_size, size_t new_size); // old block stays valid on failure
void dgm_free(void *ptr);
char *dgm_strdup(const char *text);
char *dgm_strndup(const char *text, size_t n);

// Grows *ptr (an array of elements of elem bytes with capacity *cap) so that at least need
// elements fit; doubles. The old array stays valid on failure.
dgm_status dgm_grow(void *ptr, size_t *cap, size_t need, size_t elem, dgm_error *err);

// DGM_ERR_MEMORY with the usual message.
dgm_status dgm_no_memory(dgm_error *err);

// Address space without a heap allocation: reserved at once, paid for page by page when touched.
// NULL on failure. size is rounded up to whole pages.
void *dgm_pages_reserve(size_t size);
// The same in small pages: for space of which scattered parts are used, so that they alone cost.
void *dgm_pages_reserve_sparse(size_t size);
// Asks for large pages where they lie wholly inside [ptr, ptr + size) of reserved space: reading it from
// end to end then needs fewer look-ups, and nothing around it is paid for.
enum { DGM_PAGES_LARGE = 2 << 20 };
void dgm_pages_large(void *ptr, size_t size);
void dgm_pages_release(void *ptr, size_t size);

// Bytes of memory that this process can have: of the machine, or of its control group if less.
uint64_t dgm_memory_physical(void);
// How much of it nobody uses now; all of it where the system does not say.
uint64_t dgm_memory_available(void);

// Test hooks. fail_at = 1 fails the next allocation, 2 the one after, ...; 0 switches it off.
// The injection is sticky for `count` allocations (usually 1).
void dgm_mem_inject(uint64_t fail_at, uint64_t count);
uint64_t dgm_mem_allocations(void); // successful and failed calls since the program began
uint64_t dgm_mem_live(void);        // blocks not yet freed

#endif
