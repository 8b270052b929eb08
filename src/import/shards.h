// SPDX-License-Identifier: MIT
// The index of weights in several files: {"weight_map": {"tensor": "file", ...}}.
#ifndef DGM_IMPORT_SHARDS_H
#define DGM_IMPORT_SHARDS_H

#include "base/json.h"
#include "import/store.h"

typedef struct dgm_shards {
    json_t *index;
    json_t *names; // keys: the files, each once
} dgm_shards;

// Names of files are plain ones, without folders. Messages name the path.
dgm_status dgm_shards_read(dgm_shards *s, const char *path, dgm_error *err);
// Every tensor of the index must be in some shard.
dgm_status dgm_shards_check(const dgm_shards *s, const dgm_store *tensors, dgm_error *err);
void dgm_shards_free(dgm_shards *s); // accepts all zero

#endif
