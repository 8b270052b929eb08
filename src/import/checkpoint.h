// SPDX-License-Identifier: MIT
// A folder of Hugging Face transformers: its JSON files and its weights, as the importers of
// Transformers read them. Weights are taken by name; in the end every tensor must have been taken, so
// that no part of a model is left out unnoticed.
#ifndef DGM_IMPORT_CHECKPOINT_H
#define DGM_IMPORT_CHECKPOINT_H

#include "base/json.h"
#include "base/mapfile.h"
#include "import/import.h"
#include "import/safetensors.h"

// An object from a file of the folder. Optional and not there: *out keeps its value.
dgm_status dgm_checkpoint_json(const char *dir, const char *name, dgm_need need, json_t **out,
                               dgm_error *err);

// Maps a SentencePiece model of the folder and lets the job open it. What was mapped is the caller's to
// close, also after a failure.
dgm_status dgm_checkpoint_spm(const dgm_import_job *job, const char *name, dgm_mapfile *f,
                              dgm_error *err);

typedef struct dgm_checkpoint {
    dgm_import_job *job;
    dgm_safetensors *tensors;
    bool *used; // [count of tensors]
} dgm_checkpoint;

dgm_status dgm_checkpoint_open(dgm_checkpoint *c, dgm_import_job *job, dgm_error *err);
void dgm_checkpoint_close(dgm_checkpoint *c); // accepts all zero
// DGM_ERR_UNSUPPORTED names a tensor that is not part of `what` ("a MarianMT model").
dgm_status dgm_checkpoint_end(const dgm_checkpoint *c, const char *what, dgm_error *err);

bool dgm_checkpoint_has(const dgm_checkpoint *c, const char *name);
bool dgm_checkpoint_take(dgm_checkpoint *c, const char *name); // if it is there
// Takes a tensor [rows, cols], or [cols] with rows 0, of real numbers; anything else is an error.
dgm_status dgm_checkpoint_get(dgm_checkpoint *c, const char *name, int rows, int cols,
                              const dgm_safe_tensor **t, dgm_error *err);

// The same, added to the model file under our name.
dgm_status dgm_checkpoint_add(dgm_checkpoint *c, const char *ours, const char *theirs, int rows,
                              int cols, dgm_error *err);
// NAME.weight and NAME.bias of a linear layer, or (rows 0) of a layer normalisation [cols].
dgm_status dgm_checkpoint_layer(dgm_checkpoint *c, const char *ours, const char *theirs, int rows,
                                int cols, dgm_error *err);
// The four projections [d, d] of an attention, and the normalisation beside it.
dgm_status dgm_checkpoint_attention(dgm_checkpoint *c, const char *ours, const char *theirs, int d,
                                    dgm_error *err);
// The two layers of a feed-forward network, d to f and back.
dgm_status dgm_checkpoint_ffn(dgm_checkpoint *c, const char *ours, const char *theirs, int d, int f,
                              dgm_error *err);

#endif
