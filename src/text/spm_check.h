// SPDX-License-Identifier: MIT
// Checks a serialised SentencePiece model before libsentencepiece reads it. Called by spm_shim.cc.
#ifndef DGM_TEXT_SPM_CHECK_H
#define DGM_TEXT_SPM_CHECK_H

#include <stddef.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// DGM_OK when no content of the model can lead libsentencepiece out of its bounds.
dgm_status dgm_spm_check(const void *model, size_t size, dgm_error *err);

#ifdef __cplusplus
}
#endif
#endif
