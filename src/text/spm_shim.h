// SPDX-License-Identifier: MIT
// The C face of libsentencepiece. spm_shim.cc catches every
// exception and turns it into a status. vocab.c calls it, and imports to see whether a model opens.
//
// The model bytes are checked here before libsentencepiece sees them (spm_check.h): some
// damaged models would make it abort or read out of bounds.
#ifndef DGM_TEXT_SPM_SHIM_H
#define DGM_TEXT_SPM_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dgm_spm dgm_spm;

// Called once per token, in order; begin and end are byte offsets (of the input when encoding, of
// the output when decoding). Anything but DGM_OK stops and is returned.
typedef dgm_status (*dgm_spm_token_fn)(void *arg, int32_t piece, uint32_t begin, uint32_t end);

dgm_status dgm_spm_open(dgm_spm **spm, const void *model, size_t size, dgm_error *err);
void dgm_spm_close(dgm_spm **spm);
int32_t dgm_spm_size(const dgm_spm *spm);
const char *dgm_spm_piece(const dgm_spm *spm, int32_t id, size_t *size); // id in range
int32_t dgm_spm_id(const dgm_spm *spm, const char *piece, size_t size);  // -1: no such piece
int32_t dgm_spm_unk(const dgm_spm *spm);
bool dgm_spm_is_control(const dgm_spm *spm, int32_t id);
bool dgm_spm_is_byte(const dgm_spm *spm, int32_t id);
float dgm_spm_score(const dgm_spm *spm, int32_t id); // of a unigram model: its log-probability

dgm_status dgm_spm_encode(const dgm_spm *spm, const char *text, size_t size, dgm_spm_token_fn fn,
                          void *arg, dgm_error *err);
// No piece is a control token. *text is the decoded text, valid during the calls to `text_fn` and `fn` only:
// text_fn gets it first, then fn every token.
typedef dgm_status (*dgm_spm_text_fn)(void *arg, const char *text, size_t size);
dgm_status dgm_spm_decode(const dgm_spm *spm, const int32_t *pieces, size_t count,
                          dgm_spm_text_fn text_fn, dgm_spm_token_fn fn, void *arg, dgm_error *err);

#ifdef __cplusplus
}
#endif
#endif
