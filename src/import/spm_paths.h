// SPDX-License-Identifier: MIT
// A SentencePiece model remembers which files it was made of: names of folders of the machine that trained it. No
// model file of ours and no folder that we export repeats them.
#ifndef DGM_IMPORT_SPM_PATHS_H
#define DGM_IMPORT_SPM_PATHS_H

#include <stddef.h>

#include "base/bytes.h"
#include "format/gguf.h"
#include "format/modelfile.h"

// Appends the model to out without those names; everything else byte for byte.
dgm_status dgm_spm_without_paths(dgm_writer *out, const void *model, size_t size, dgm_error *err);

// Sets the key `vocab.sentencepiece` of a side to such a copy.
dgm_status dgm_spm_set(dgm_gguf_writer *w, dgm_side side, const void *model, size_t size, dgm_error *err);

#endif
