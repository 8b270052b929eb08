// SPDX-License-Identifier: MIT
// A vocabulary that numbers the pieces of a SentencePiece model in its own way, as folders of MarianMT and
// OPUS-MT's releases have it: a piece's spelling is looked up, so ids do not follow the model's.
#ifndef DGM_IMPORT_SPM_VOCAB_H
#define DGM_IMPORT_SPM_VOCAB_H

#include "base/json.h"
#include "format/gguf.h"
#include "format/modelfile.h"

typedef struct dgm_spm_vocab {
    const char *path; // of the SentencePiece model, for messages
    const void *model;
    size_t model_size;
    json_t *ids;  // spelling -> id, below size
    int size;     // number of ids
    bool decoded; // the decoder writes them: ids that only another model spells are appended
} dgm_spm_vocab;

// Sets kind, size, the model, its map and extra spellings of one side (docs/internals/FORMAT.md, section 2.2).
dgm_status dgm_spm_vocab_set(dgm_gguf_writer *w, dgm_side side, const dgm_spm_vocab *v,
                             dgm_error *err);

#endif
