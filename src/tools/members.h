// SPDX-License-Identifier: MIT
// Several model files that become one (average, shrink): their weights, and whether they belong
// together.
#ifndef DGM_TOOLS_MEMBERS_H
#define DGM_TOOLS_MEMBERS_H

#include <stddef.h>

#include "format/gguf.h"

// Shares that add up to 1 from positive weights (NULL: all the same); names are for the message.
dgm_status dgm_members_weigh(const char *const *names, const double *weights, size_t count,
                             double *shares, dgm_error *err);
// A key that begins with one of the prefixes (NULL-terminated) and is not the same in both files;
// NULL: there is none.
const char *dgm_members_differ(const dgm_gguf *a, const dgm_gguf *b, const char *const *prefixes);

#endif
