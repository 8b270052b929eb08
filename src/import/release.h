// SPDX-License-Identifier: MIT
// What a release of a model says about its text: files for people that lie beside the weights.
//
//     preprocess.sh   which of Moses' scripts text went through before byte-pair encoding (OPUS-MT, Nematus)
//     README.md       of OPUS-MT: where it was published, ".../OPUS-MT-models/fi-en/NAME.zip", names the languages
//
// Nothing is run; lines are looked for names of scripts and their options.
#ifndef DGM_IMPORT_RELEASE_H
#define DGM_IMPORT_RELEASE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "format/gguf.h"
#include "format/modelfile.h"

typedef struct dgm_release {
    bool tokenized;         // by tokenizer.perl, for
    unsigned moses;         // bits of dgm_moses_flag_names
    bool truecased;         // by truecase.perl, which nothing here does
    bool bpe;               // apply_bpe.py, or subword-nmt apply-bpe
    char language[2][8];    // of source and target: "fi"; "" where nothing says
} dgm_release;

// Absent files say nothing.
dgm_status dgm_release_read(dgm_release *r, const char *folder, dgm_error *err);
// The same of texts in memory.
void dgm_release_script(dgm_release *r, dgm_text text);
void dgm_release_readme(dgm_release *r, dgm_text text);
// The tokeniser of a vocabulary of words: that of the release, for a language that may be NULL.
void dgm_release_set(const dgm_release *r, dgm_gguf_writer *w, dgm_side side, const char *language);

#endif
