// SPDX-License-Identifier: MIT
// pytorch_model.bin of a Hugging Face folder, whole or in shards; see torch_file.h.
#include <string.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "import/shards.h"
#include "import/torch_file.h"

static const char whole[] = "pytorch_model.bin", indexed[] = "pytorch_model.bin.index.json";

typedef struct files {
    dgm_torch **list;
    size_t count;
} files;

static void close_files(void *self)
{
    files *f = self;
    for (size_t i = 0; i < f->count; i++) dgm_torch_close(&f->list[i]);
    dgm_free(f->list);
    dgm_free(f);
}

static dgm_status make_store(dgm_store **s, files **out, size_t n, dgm_error *err)
{
    files *f = dgm_calloc(1, sizeof *f);
    if (!f) return dgm_no_memory(err);
    f->list = dgm_calloc(n, sizeof(dgm_torch *));
    if (!f->list) {
        dgm_free(f);
        return dgm_no_memory(err);
    }
    *out = f;
    return dgm_store_open(s, (dgm_store_container){.self = f, .close = close_files}, err);
}

static dgm_status add_file(dgm_store *s, files *f, const char *dir, const char *name,
                           dgm_error *err)
{
    char *path = dgm_path_in(dir, name);
    if (!path) return dgm_no_memory(err);
    dgm_status st = dgm_torch_open(&f->list[f->count], path, err);
    dgm_free(path);
    if (st != DGM_OK) return st;
    dgm_torch *t = f->list[f->count++];
    return dgm_torch_tensors(t, dgm_torch_root(t), "", s, err);
}

static dgm_status open_shards(dgm_store **s, const char *dir, const char *path, dgm_error *err)
{
    dgm_shards list;
    files *f = NULL;
    DGM_TRY(dgm_shards_read(&list, path, err));
    dgm_status st = make_store(s, &f, json_object_size(list.names), err);
    const char *name;
    json_t *value;
    if (st == DGM_OK) json_object_foreach(list.names, name, value)
        {
            st = add_file(*s, f, dir, name, err);
            if (st != DGM_OK) break;
        }
    if (st == DGM_OK) st = dgm_shards_check(&list, *s, err);
    dgm_shards_free(&list);
    return st;
}

bool dgm_pytorch_is_there(const char *dir)
{
    return dgm_file_exists_in(dir, whole) || dgm_file_exists_in(dir, indexed);
}

dgm_status dgm_pytorch_open(dgm_store **s, const char *dir, dgm_error *err)
{
    *s = NULL;
    dgm_status st;
    if (dgm_file_exists_in(dir, indexed)) {
        char *path = dgm_path_in(dir, indexed);
        if (!path) return dgm_no_memory(err);
        st = open_shards(s, dir, path, err);
        dgm_free(path);
    } else {
        files *f = NULL;
        st = make_store(s, &f, 1, err);
        if (st == DGM_OK) st = add_file(*s, f, dir, whole, err);
    }
    if (st != DGM_OK) dgm_store_close(s);
    return st;
}
