// SPDX-License-Identifier: MIT
// Which files of a folder are a checkpoint: pytorch_model.bin of Hugging Face, whole or in shards, or one that ends in
// .pt; see torch_file.h.
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

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

// ---- one checkpoint ----------------------------------------------------------------------------

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static dgm_status find_checkpoint(const char *folder, char **path, dgm_error *err)
{
    static const char *const usual[] = {"checkpoint_best.pt", "model.pt", "checkpoint_last.pt"};
    char name[256] = "";
    int count = 0;
    DIR *dir = opendir(folder);
    DGM_FAIL_IF(!dir, err, DGM_ERR_IO, "cannot open '%s'", folder);
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        const size_t n = strlen(d->d_name);
        if (n < 4 || n >= sizeof name || strcmp(d->d_name + n - 3, ".pt") != 0) continue;
        if (count++ == 0) strcpy(name, d->d_name);
    }
    closedir(dir);
    const char *chosen = name;
    for (size_t i = 3; count > 1 && i-- > 0;)
        if (dgm_file_exists_in(folder, usual[i])) chosen = usual[i];
    DGM_FAIL_IF(count != 1 && chosen == name, err, DGM_ERR_ARGUMENT, "'%s' has %d files that end in .pt: name one",
                folder, count);
    *path = dgm_path_in(folder, chosen);
    return *path ? DGM_OK : dgm_no_memory(err);
}

dgm_status dgm_torch_find(const char *given, char **folder, char **path, dgm_error *err)
{
    const char *slash = strrchr(given, '/');
    if (is_folder(given)) {
        *folder = dgm_strdup(given);
        return *folder ? find_checkpoint(given, path, err) : dgm_no_memory(err);
    }
    *path = dgm_strdup(given);
    *folder = slash ? dgm_strndup(given, (size_t)(slash - given) + (slash == given)) : dgm_strdup(".");
    return *path && *folder ? DGM_OK : dgm_no_memory(err);
}
