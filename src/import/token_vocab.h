// SPDX-License-Identifier: MIT
// A vocabulary that is a list of tokens, as checkpoints of fairseq and OpenNMT-py have it, and what cuts text into
// these tokens, which they do not have: it is looked for beside the checkpoint, under the names that people give it, or
// named by options of the import. Without any, text has to be given as tokens.
#ifndef DGM_IMPORT_TOKEN_VOCAB_H
#define DGM_IMPORT_TOKEN_VOCAB_H

#include "import/import.h"

typedef struct dgm_token_side {
    const char *const *tokens; // [count] spelling of each id
    int count, size;           // size: ids of the model, count or more
    int eos, unk;
    int pad, bos; // -1: none
} dgm_token_side;

typedef struct dgm_token_vocab {
    dgm_import_job *job;
    const char *folder;
    dgm_token_side side[2];
    bool shared; // the target's list is the source's
    // With codes of byte-pair encoding: text is tokenised by Moses' rules first, as sacremoses does, for these
    // languages.
    bool moses;
    const char *language[2]; // NULL: not said
} dgm_token_vocab;

// Sets dragoman.SIDE.vocab.* and the ids of both sides.
dgm_status dgm_token_vocab_set(const dgm_token_vocab *v, dgm_error *err);

#endif
