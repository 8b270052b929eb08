// SPDX-License-Identifier: MIT
// `dragoman quantize --packed`: layers packed in the file, used by programs as they lie there.
#ifndef DGM_TOOLS_PACKED_H
#define DGM_TOOLS_PACKED_H

#include <stdint.h>

#include "base/status.h"

// Is there such a level, and has it packed layers? (DGM_ERR_ARGUMENT)
dgm_status dgm_packed_check(const char *level, dgm_error *err);
// Writes the model file again with its i8 layers packed for this level beside its tensors. *bytes: of what was added.
dgm_status dgm_packed_write(const char *path, const char *level, uint64_t *bytes, dgm_error *err);

#endif
