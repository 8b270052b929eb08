// SPDX-License-Identifier: MIT
// Reader of safetensors files, whole or in shards, for the importers.
//
//     | u64 N | N bytes of JSON: {"name": {"dtype", "shape", "data_offsets": [begin, end]}} | data
//     |
//
// Opening checks everything the file controls: N against the file and 100 MB, ranges against the
// file, size = product of the shape times the element, no overlap, unique names over all shards,
// shard names without folders. Tensors are views into the mapped files; they are not aligned.
#ifndef DGM_IMPORT_SAFETENSORS_H
#define DGM_IMPORT_SAFETENSORS_H

#include "import/store.h"

// Folder with model.safetensors, or with model.safetensors.index.json and the shards it names.
bool dgm_safetensors_is_there(const char *dir);
dgm_status dgm_safetensors_open(dgm_store **s, const char *dir, dgm_error *err);
// One whole file in memory, which stays the caller's and must outlive *s.
dgm_status dgm_safetensors_open_memory(dgm_store **s, const void *data, size_t size,
                                       dgm_error *err);

#endif
