// SPDX-License-Identifier: MIT
// Structs with their size; see sized.h.
#include "base/sized.h"

#include <string.h>

enum { LARGEST = 1 << 16 }; // no struct of any version: the size was never set

dgm_status dgm_sized_take(void *own, size_t own_size, const void *given, const char *type,
                          const char *filler, dgm_error *err)
{
    size_t size;
    if (!given) return DGM_OK;
    memcpy(&size, given, sizeof size);
    DGM_FAIL_IF(size == 0, err, DGM_ERR_ARGUMENT, "%s.size is 0: fill the struct with %s first",
                type, filler);
    DGM_FAIL_IF(size < sizeof size || size > LARGEST, err, DGM_ERR_ARGUMENT,
                "%s.size is %zu, which no version of the struct has: fill it with %s first", type,
                size, filler);
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
