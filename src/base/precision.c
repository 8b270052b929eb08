// SPDX-License-Identifier: MIT
// Names of precisions: the one table.
#include "base/precision.h"

#include <stdio.h>
#include <string.h>

#define IN_FILES "f32", "i16", "i8"

const char *const dgm_precision_names[] = {IN_FILES, "f16", "bf16", NULL};
const char *const dgm_precision_file_names[] = {IN_FILES, NULL};

_Static_assert(sizeof dgm_precision_names / sizeof *dgm_precision_names == DGM_PRECISION_COUNT + 1,
               "a name for every precision");
_Static_assert(sizeof dgm_precision_file_names / sizeof *dgm_precision_file_names ==
                   DGM_PRECISIONS_IN_FILES + 1,
               "the precisions of files come first");

const char *dgm_precision_list(unsigned set, char *buffer, size_t size)
{
    size_t used = 0;
    if (size) buffer[0] = '\0';
    for (int p = 0; p < DGM_PRECISION_COUNT; p++) {
        const size_t need = strlen(dgm_precision_names[p]) + 2;
        if (!(set & 1u << p) || used + need >= size) continue;
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", used ? ", " : "",
                                 dgm_precision_names[p]);
    }
    return buffer;
}
