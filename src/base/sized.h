// SPDX-License-Identifier: MIT
// Public structs that begin with `size_t size`, the size they had when the caller was compiled; the
// rule stands at the head of dragoman/dragoman.h.
#ifndef DGM_BASE_SIZED_H
#define DGM_BASE_SIZED_H

#include <stddef.h>

#include "base/status.h"

// Copies a caller's struct (NULL: none) over `own`, which is whole and holds the defaults: what the
// caller's does not have keeps them. `type` and `filler` name the struct and the function that fills it, for the
// message where the size cannot be, or where fields that this library does not know are set. filler
// NULL: there is no such function, {.size = sizeof x} fills it.
dgm_status dgm_sized_take(void *own, size_t own_size, const void *given, const char *type,
                          const char *filler, dgm_error *err);
// The other way: fills a caller's struct of given_size bytes, zeros behind what this library knows.
void dgm_sized_give(void *given, size_t given_size, const void *own, size_t own_size);

// What a function fills for its caller, who says its size in it (NULL: it is not wanted). Before the
// work: is that a size?
dgm_status dgm_sized_room(const void *given, const char *type, dgm_error *err);
// After it: dgm_sized_give by that size.
void dgm_sized_fill(void *given, const void *own, size_t own_size);

#endif
