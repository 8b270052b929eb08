// SPDX-License-Identifier: MIT
// The index of weights in several files; see shards.h.
#include "import/shards.h"

#include <string.h>

#include "base/mem.h"

enum { SHARDS_MAX = 4096 };

static bool plain_name(const char *name)
{
    return name[0] && name[0] != '.' && !strchr(name, '/') && !strchr(name, '\\');
}

static dgm_status list_names(const json_t *map, json_t *names, dgm_error *err)
{
    DGM_FAIL_IF(!json_is_object(map), err, DGM_ERR_FORMAT, "no \"weight_map\"");
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)map, tensor, value)
    {
        const char *file = json_string_value(value);
        DGM_FAIL_IF(!file || !plain_name(file), err, DGM_ERR_FORMAT,
                    "tensor '%s' names no plain file", tensor);
        if (json_object_get(names, file)) continue;
        if (json_object_set_new(names, file, json_true()) != 0) return dgm_no_memory(err);
        DGM_FAIL_IF(json_object_size(names) > SHARDS_MAX, err, DGM_ERR_FORMAT,
                    "more than %d shards", SHARDS_MAX);
    }
    DGM_FAIL_IF(json_object_size(names) == 0, err, DGM_ERR_FORMAT, "\"weight_map\" is empty");
    return DGM_OK;
}

dgm_status dgm_shards_read(dgm_shards *s, const char *path, dgm_error *err)
{
    *s = (dgm_shards){0};
    DGM_TRY(dgm_json_read(&s->index, path, err));
    s->names = json_object();
    dgm_status st = s->names
                        ? list_names(json_object_get(s->index, "weight_map"), s->names, err)
                        : dgm_no_memory(err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s'", path);
        dgm_shards_free(s);
    }
    return st;
}

dgm_status dgm_shards_check(const dgm_shards *s, const dgm_store *tensors, dgm_error *err)
{
    const char *tensor;
    json_t *value;
    json_object_foreach(json_object_get(s->index, "weight_map"), tensor, value)
    {
        DGM_FAIL_IF(dgm_store_find(tensors, tensor) < 0, err, DGM_ERR_FORMAT,
                    "tensor '%s' is in the index but in no shard", tensor);
    }
    return DGM_OK;
}

void dgm_shards_free(dgm_shards *s)
{
    json_decref(s->names);
    json_decref(s->index);
    *s = (dgm_shards){0};
}
