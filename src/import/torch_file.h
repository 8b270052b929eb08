// SPDX-License-Identifier: MIT
// What torch.save wrote: a pickle and the storages that its tensors lie in.
//
//   since torch 1.6:  a zip file, nothing compressed: NAME/data.pkl, NAME/data/KEY for each storage, NAME/version,
//                     NAME/byteorder
//   before:           five pickles (magic number, protocol 1001, facts about the system, the object, the storages'
//                     keys), then each storage in the keys' order: u64 number of elements, elements
//
// The file stays mapped, tensors are views into it with their offsets and strides. Storages may be shared.
#ifndef DGM_IMPORT_TORCH_FILE_H
#define DGM_IMPORT_TORCH_FILE_H

#include "import/pickle.h"
#include "import/store.h"

typedef struct dgm_torch dgm_torch;

// A checkpoint that was named, or the only one of a folder that was; of several one with a usual name. The caller
// frees both, also after an error.
dgm_status dgm_torch_find(const char *given, char **folder, char **path, dgm_error *err);
dgm_status dgm_torch_open(dgm_torch **t, const char *path, dgm_error *err);
// The same in memory, which stays the caller's and must outlive *t. name: for messages.
dgm_status dgm_torch_open_memory(dgm_torch **t, const char *name, const void *data, size_t size,
                                 dgm_error *err);
void dgm_torch_close(dgm_torch **t); // sets *t to NULL; accepts NULL inside
const dgm_py *dgm_torch_root(const dgm_torch *t);

// Adds the tensors of a dictionary to a store, which must be closed before the file; `prefix` stands before their
// names. Anything else in the dictionary is an error.
dgm_status dgm_torch_tensors(dgm_torch *t, const dgm_py *dict, const char *prefix, dgm_store *s,
                             dgm_error *err);

// A folder with pytorch_model.bin, or with pytorch_model.bin.index.json and the shards it names.
bool dgm_pytorch_is_there(const char *dir);
dgm_status dgm_pytorch_open(dgm_store **s, const char *dir, dgm_error *err);

#endif
