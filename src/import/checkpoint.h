// SPDX-License-Identifier: MIT
// The weights of another program's model, taken by name; in the end every tensor must have been taken, so
// that no part of a model is left out unnoticed. And what folders of Hugging Face transformers share:
// JSON files, names of layers.
#ifndef DGM_IMPORT_CHECKPOINT_H
#define DGM_IMPORT_CHECKPOINT_H

#include "base/json.h"
#include "base/mapfile.h"
#include "import/import.h"
#include "import/store.h"


// An object from a file of the folder. Optional and not there: *out keeps its value.
dgm_status dgm_checkpoint_json(const char *dir, const char *name, dgm_need need, json_t **out,
                               dgm_error *err);

// Maps a SentencePiece model of the folder and lets the job open it. What was mapped is the caller's to
// close, also after a failure.
dgm_status dgm_checkpoint_spm(const dgm_import_job *job, const char *name, dgm_mapfile *f,
                              dgm_error *err);

typedef struct dgm_checkpoint {
    dgm_import_job *job;
    dgm_store *tensors;
    bool *used;                  // [count of tensors]
    struct dgm_kept_view *views; // sources of weights until the file is written
} dgm_checkpoint;

// Over an open store, which the checkpoint takes over and closes also when this fails.
dgm_status dgm_checkpoint_open(dgm_checkpoint *c, dgm_import_job *job, dgm_store *tensors,
                               dgm_error *err);
// The weights of a folder of transformers, in whichever kind of file it has.
dgm_status dgm_checkpoint_open_folder(dgm_checkpoint *c, dgm_import_job *job, dgm_error *err);
void dgm_checkpoint_close(dgm_checkpoint *c); // accepts all zero
// DGM_ERR_UNSUPPORTED names a tensor that is not part of `what` ("a MarianMT model").
dgm_status dgm_checkpoint_end(const dgm_checkpoint *c, const char *what, dgm_error *err);

bool dgm_checkpoint_has(const dgm_checkpoint *c, const char *name);
bool dgm_checkpoint_take(dgm_checkpoint *c, const char *name); // if it is there
// Takes a tensor [rows, cols], or [cols] with rows 0, of real numbers; anything else is an error.
dgm_status dgm_checkpoint_get(dgm_checkpoint *c, const char *name, int rows, int cols,
                              const dgm_stored **t, dgm_error *err);

// Adds a matrix or, if vector, its one row under our name. Integers with divisors that are stored in 8 bits stay
// as they are where the job wants 8 bits or the input's own type.
dgm_status dgm_checkpoint_view(dgm_checkpoint *c, const char *ours, dgm_view v, bool vector,
                               dgm_error *err);
// dgm_checkpoint_get, added to the model file under our name.
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
