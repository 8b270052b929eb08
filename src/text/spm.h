// SPDX-License-Identifier: MIT
// SentencePiece models: text to pieces and back, as libsentencepiece 0.1.97 does it, to the id and the byte.
// tests/oracle/check_spm.py compares the two. It is ours because a model must be there at once: that library builds
// its tries while it loads, which took longer than translating a sentence.
//
//     spm_model.c      the file (ModelProto): read, checked, indexed
//     spm_charsmap.c   the map of characters inside it
//     spm_normalize.c  text as the pieces spell it, and where each of its bytes came from
//     spm_unigram.c    the most probable pieces, spm_bpe.c those of merges, spm_encode.c words, characters and spans
//     spm_decode.c     ids to text
//
// A model is read-only once it is open: threads share it. Nothing is kept between calls.
#ifndef DGM_TEXT_SPM_H
#define DGM_TEXT_SPM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct dgm_spm dgm_spm;

// Called once per token, in order; begin and end are byte offsets (of the input when encoding, of
// the output when decoding). Anything but DGM_OK stops and is returned.
typedef dgm_status (*dgm_spm_token_fn)(void *arg, int32_t piece, uint32_t begin, uint32_t end);

// The bytes of the model are copied. Whatever they hold, what opens can be used.
dgm_status dgm_spm_open(dgm_spm **spm, const void *model, size_t size, dgm_error *err);
void dgm_spm_close(dgm_spm **spm);
int32_t dgm_spm_size(const dgm_spm *spm);
const char *dgm_spm_piece(const dgm_spm *spm, int32_t id,
                          size_t *size); // id in range; borrowed, no NUL at its end
int32_t dgm_spm_id(const dgm_spm *spm, const char *piece, size_t size); // -1: no such piece
int32_t dgm_spm_unk(const dgm_spm *spm);
bool dgm_spm_is_control(const dgm_spm *spm, int32_t id);
bool dgm_spm_is_byte(const dgm_spm *spm, int32_t id);
float dgm_spm_score(const dgm_spm *spm, int32_t id); // of a unigram model: its log-probability

// text may hold any bytes, at most INT32_MAX of them.
dgm_status dgm_spm_encode(const dgm_spm *spm, const char *text, size_t size, dgm_spm_token_fn fn,
                          void *arg, dgm_error *err);
// *text is the decoded text, valid during the calls to `text_fn` and `fn` only: text_fn gets it first, then fn every
// token. With a denormaliser the spans are those of the text before it, as the library has them.
typedef dgm_status (*dgm_spm_text_fn)(void *arg, const char *text, size_t size);
dgm_status dgm_spm_decode(const dgm_spm *spm, const int32_t *pieces, size_t count,
                          dgm_spm_text_fn text_fn, dgm_spm_token_fn fn, void *arg, dgm_error *err);

#endif
