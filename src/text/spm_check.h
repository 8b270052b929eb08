// SPDX-License-Identifier: MIT
// Checks a serialised SentencePiece model before libsentencepiece reads it. Called by spm_shim.cc.
#ifndef DGM_TEXT_SPM_CHECK_H
#define DGM_TEXT_SPM_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// What decoding has to know of a model.
typedef struct dgm_spm_traits {
    bool joins; // ordinary pieces are joined as they are, without the space before the first word
    bool bytes; // there are pieces for single bytes
} dgm_spm_traits;

// DGM_OK when no content of the model can lead libsentencepiece out of its bounds.
dgm_status dgm_spm_check(const void *model, size_t size, dgm_spm_traits *traits, dgm_error *err);

#ifdef __cplusplus
}
#endif
#endif
