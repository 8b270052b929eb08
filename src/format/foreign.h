// SPDX-License-Identifier: MIT
// Models of other programs, recognised by their files: a message can then say what a path holds, and
// 'dragoman import' finds the importer. Recognising is cheap and trusts nothing; reading is import/'s.
//
// A kind is one row in each of the two tables of foreign.c: what it is called, and which files show it.
#ifndef DGM_FORMAT_FOREIGN_H
#define DGM_FORMAT_FOREIGN_H

#include <stdbool.h>

#include "base/status.h"

typedef enum dgm_foreign {
    DGM_FOREIGN_NONE = 0,    // nothing that is known
    DGM_FOREIGN_HUGGINGFACE, // folder: config.json, and weights as safetensors or as PyTorch writes them
    DGM_FOREIGN_CTRANSLATE2, // folder with model.bin, or that file
    DGM_FOREIGN_ARGOS,       // package of Argos Translate: a zip, or the folder that was made of it
    DGM_FOREIGN_MARIAN,      // folder, .npz or .bin
    DGM_FOREIGN_BERGAMOT,    // the same with weights of 8 bits (Firefox, Bergamot)
    DGM_FOREIGN_OPUS,        // zip of an OPUS-MT release: Marian
    DGM_FOREIGN_NEMATUS,     // .npz with its .json, or the folder
    DGM_FOREIGN_FAIRSEQ,     // .pt with dict.*.txt beside it, or the folder
    DGM_FOREIGN_OPENNMT,     // .pt alone
    DGM_FOREIGN_PART,        // one file of a Hugging Face model
    DGM_FOREIGN_MODELS,      // folder of our own model files
    DGM_FOREIGN_NAME,        // no file at all, but it looks like a name of the Hugging Face hub
    DGM_FOREIGN_COUNT
} dgm_foreign;

dgm_foreign dgm_foreign_kind(const char *path);
// The importer of a kind ("ctranslate2"); NULL: there is nothing to import.
const char *dgm_foreign_importer(dgm_foreign kind);
// "a model of CTranslate2"; NULL: NONE.
const char *dgm_foreign_what(dgm_foreign kind);
// Replaces the message of a path that could not be opened as a model file by one that says what it is and
// what to do. False: nothing is known about it, the message stays.
bool dgm_foreign_explain(const char *path, dgm_error *err);

#endif
