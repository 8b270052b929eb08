// SPDX-License-Identifier: MIT
// Models of other programs, recognised by their files: a message can then say what a path holds and how
// a model file is made of it. Recognising is cheap and trusts nothing; reading is import/'s.
#ifndef DGM_FORMAT_FOREIGN_H
#define DGM_FORMAT_FOREIGN_H

#include <stdbool.h>

#include "base/status.h"

typedef enum dgm_foreign {
    DGM_FOREIGN_NONE = 0,    // nothing that is known
    DGM_FOREIGN_HUGGINGFACE, // folder: config.json and safetensors
    DGM_FOREIGN_PICKLES,     // the same with PyTorch's own files
    DGM_FOREIGN_CTRANSLATE2, // folder, or its model.bin
    DGM_FOREIGN_MARIAN,      // folder, or a .npz
    DGM_FOREIGN_SAFETENSORS, // one such file
    DGM_FOREIGN_MODELS,      // folder of our own model files
    DGM_FOREIGN_NAME         // no file at all, but it looks like a name of the Hugging Face hub
} dgm_foreign;

dgm_foreign dgm_foreign_kind(const char *path);
// Replaces the message of a path that could not be opened as a model file by one that says what it is and
// what to do. False: nothing is known about it, the message stays.
bool dgm_foreign_explain(const char *path, dgm_error *err);

#endif
