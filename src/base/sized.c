// SPDX-License-Identifier: MIT
// Structs with their size; see sized.h.
#include "base/sized.h"

#include <stdio.h>
#include <string.h>

enum { LARGEST = 1 << 16 }; // no struct of any version: the size was never set

static size_t size_of(const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

static dgm_status check_size(size_t size, const char *type, const char *filler, dgm_error *err)
{
    if (size >= sizeof size && size <= LARGEST) return DGM_OK;
    char what[96];
    snprintf(what, sizeof what, size ? "%zu, which no version of the struct has" : "%zu", size);
    return filler ? dgm_fail(err, DGM_ERR_ARGUMENT, "%s.size is %s: fill the struct with %s first",
                             type, what, filler)
                  : dgm_fail(err, DGM_ERR_ARGUMENT, "%s.size is %s: set it to sizeof(%s) first",
                             type, what, type);
}

dgm_status dgm_sized_take(void *own, size_t own_size, const void *given, const char *type,
                          const char *filler, dgm_error *err)
{
    if (!given) return DGM_OK;
    const size_t size = size_of(given);
    DGM_TRY(check_size(size, type, filler, err));
    const unsigned char *bytes = given;
    for (size_t i = own_size; i < size; i++)
        DGM_FAIL_IF(bytes[i], err, DGM_ERR_ARGUMENT,
                    "%s has a field set that this version of the library does not know: the program "
                    "was compiled for a newer one",
                    type);
    memcpy(own, given, size < own_size ? size : own_size);
    memcpy(own, &own_size, sizeof own_size);
    return DGM_OK;
}

void dgm_sized_give(void *given, size_t given_size, const void *own, size_t own_size)
{
    if (given_size < sizeof given_size) return;
    const size_t known = given_size < own_size ? given_size : own_size;
    memcpy(given, own, known);
    memset((char *)given + known, 0, given_size - known);
    memcpy(given, &given_size, sizeof given_size);
}

dgm_status dgm_sized_room(const void *given, const char *type, dgm_error *err)
{
    return given ? check_size(size_of(given), type, NULL, err) : DGM_OK;
}

void dgm_sized_fill(void *given, const void *own, size_t own_size)
{
    if (given) dgm_sized_give(given, size_of(given), own, own_size);
}
