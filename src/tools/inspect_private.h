// SPDX-License-Identifier: MIT
// Private to inspect.c and its helpers: parts of the description of a model file.
#ifndef DGM_TOOLS_INSPECT_PRIVATE_H
#define DGM_TOOLS_INSPECT_PRIVATE_H

#include "base/bytes.h"
#include "format/gguf.h"

// Each adds a line, or nothing where the model has no more than one direction, or no experts.
dgm_status dgm_inspect_directions(dgm_writer *w, const dgm_gguf *file, dgm_error *err);
void dgm_inspect_experts(dgm_writer *w, const dgm_gguf *file);

#endif
