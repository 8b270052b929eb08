// SPDX-License-Identifier: MIT
// Stack-like arena over reserved pages; see arena.h.
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/attr.h"
#include "base/mem.h"

#if DGM_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

enum { ALIGN = 64, RED_ZONE = DGM_ASAN ? 64 : 0 };

size_t dgm_arena_cost(size_t size)
{
    if (size > SIZE_MAX / 4) return SIZE_MAX / 4;
    return (size + ALIGN - 1) / ALIGN * ALIGN + RED_ZONE;
}

dgm_status dgm_arena_init(dgm_arena *a, size_t size, dgm_error *err)
{
    memset(a, 0, sizeof *a);
    a->base = dgm_pages_reserve_sparse(size);
    if (!a->base) return dgm_no_memory(err);
    a->size = size;
    POISON(a->base, size);
    return DGM_OK;
}

void dgm_arena_large(dgm_arena *a)
{
    dgm_pages_large(a->base, a->size);
}

void dgm_arena_free(dgm_arena *a)
{
    if (a->base) {
        UNPOISON(a->base, a->size);
        dgm_pages_release(a->base, a->size);
    }
    memset(a, 0, sizeof *a);
}

void *dgm_arena_alloc(dgm_arena *a, size_t size)
{
    size_t cost = dgm_arena_cost(size);
    if (cost > a->size - a->used) return NULL;
    char *block = a->base + a->used;
    a->used += cost;
    if (a->used > a->peak) a->peak = a->used;
    UNPOISON(block, size);
    return block;
}

void *dgm_arena_array(dgm_arena *a, size_t count, size_t elem)
{
    if (elem && count > SIZE_MAX / 4 / elem) return NULL;
    return dgm_arena_alloc(a, count * elem);
}

size_t dgm_arena_mark(const dgm_arena *a)
{
    return a->used;
}

void dgm_arena_reset(dgm_arena *a, size_t mark)
{
    POISON(a->base + mark, a->used - mark);
    a->used = mark;
}
