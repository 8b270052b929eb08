// SPDX-License-Identifier: MIT
// Other programs' models as model files: imported once into the user's cache; see models.h.
//
// The name of a cached file is a hash of what it was made of: names and contents of the folder's files (those
// of the folders in it, too, where a package has some) or of the file, and the version that imported them. So
// a changed model is imported again, and a moved one is not. A
// file comes into being whole (base/outfile.h); one that cannot be opened is made again.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "dragoman/tools.h"
#include "format/foreign.h"
#include "format/modelfile.h"

enum { PATH_SIZE = PATH_MAX };

// ---- the folder -------------------------------------------------------------------------------

// What an import may depend on; other files of a folder (texts, pictures) may be large and many.
static bool counts(const char *name)
{
    static const char *const ends[] = {".json", ".safetensors", ".spm", ".model", ".bin",   ".npz",
                                       ".yml",  ".yaml",        ".pt",  ".bpe",   ".codes", ".gz"};
    static const char *const texts[] = {"vocab", "dict.", "merges", "vmap", "bpe", "lex", "code"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strstr(name, texts[i])) return true;
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t m = strlen(ends[i]);
        if (n > m && strcmp(name + n - m, ends[i]) == 0) return true;
    }
    return false;
}

// Eight bytes at a time in two lanes: weights are gigabytes.
static void hash_data(uint64_t hash[2], const uint8_t *data, size_t size)
{
    size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        uint64_t v;
        memcpy(&v, data + at, 8);
        hash[0] = dgm_hash_number(hash[0], v);
        hash[0] ^= hash[0] >> 29;
        hash[1] = dgm_hash_number(hash[1], v ^ hash[0]);
    }
    for (int lane = 0; lane < 2; lane++)
        hash[lane] = dgm_hash_number(dgm_hash_bytes(hash[lane], data + at, size - at), size);
}

static dgm_status hash_file(const char *path, const char *name, uint64_t sum[2], dgm_error *err)
{
    dgm_mapfile file;
    DGM_TRY(dgm_mapfile_open(&file, path, err));
    uint64_t hash[2] = {dgm_hash_bytes(DGM_HASH_START, name, strlen(name)), strlen(name)};
    hash_data(hash, file.data ? file.data : (const uint8_t *)"", file.size);
    dgm_mapfile_close(&file);
    sum[0] += hash[0];
    sum[1] += hash[1];
    return DGM_OK;
}

static dgm_status hash_folder(const char *folder, int depth, uint64_t sum[2], dgm_error *err);

// Added up over the files, so that the order of the folder does not matter.
static dgm_status hash_entry(const char *folder, const char *name, int depth, uint64_t sum[2], dgm_error *err)
{
    char path[PATH_SIZE];
    struct stat st;
    if (name[0] == '.') return DGM_OK;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= PATH_SIZE)
        return dgm_fail(err, DGM_ERR_ARGUMENT, "the path of '%.80s' is too long", name);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return depth > 0 ? hash_folder(path, depth - 1, sum, err) : DGM_OK;
    return counts(name) ? hash_file(path, name, sum, err) : DGM_OK;
}

static dgm_status hash_folder(const char *folder, int depth, uint64_t sum[2], dgm_error *err)
{
    DIR *dir = opendir(folder);
    if (!dir) return dgm_fail(err, DGM_ERR_IO, "cannot open '%s': %s", folder, strerror(errno));
    dgm_status st = DGM_OK;
    for (struct dirent *d; st == DGM_OK && (d = readdir(dir)) != NULL;)
        st = hash_entry(folder, d->d_name, depth, sum, err);
    closedir(dir);
    return st;
}

static dgm_status hash_model(const char *path, dgm_foreign kind, uint64_t sum[2], dgm_error *err)
{
    struct stat st;
    sum[0] = dgm_hash_bytes(DGM_HASH_START, dgm_version(), strlen(dgm_version()));
    sum[1] = DGM_FORMAT_VERSION;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return hash_folder(path, kind == DGM_FOREIGN_ARGOS, sum, err);
    DGM_TRY(hash_file(path, "", sum, err));
    if (kind == DGM_FOREIGN_ARGOS || kind == DGM_FOREIGN_OPUS) return DGM_OK; // all in one file
    char beside[PATH_SIZE];
    const char *slash = strrchr(path, '/');
    snprintf(beside, sizeof beside, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return hash_folder(beside, 0, sum, err);
}

// ---- the cache --------------------------------------------------------------------------------

static dgm_status make_folders(char *path, dgm_error *err)
{
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash) *slash = 0;
        const int failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        const int code = errno;
        if (slash) *slash = '/';
        DGM_FAIL_IF(failed, err, DGM_ERR_IO, "cannot make the folder '%s': %s", path, strerror(code));
        if (!slash) return DGM_OK;
    }
}

// False: the system does not say where.
static bool cache_folder(char out[PATH_SIZE])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache && cache[0] == '/')
        n = snprintf(out, PATH_SIZE, "%s/dragoman", cache);
    else if (home && home[0])
        n = snprintf(out, PATH_SIZE, "%s/.cache/dragoman", home);
    return n > 0 && n < PATH_SIZE - 64;
}

static bool can_be_opened(const char *path)
{
    dgm_gguf *file = NULL;
    const bool fine = dgm_file_exists(path) && dgm_modelfile_open(&file, path, NULL) == DGM_OK;
    dgm_gguf_close(&file);
    return fine;
}

static dgm_status import_once(const char *path, const char *cached, int *made, dgm_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // temporary files are named by the process
    dgm_status st = DGM_OK;
    pthread_mutex_lock(&lock);
    if (!can_be_opened(cached)) {
        st = dgm_import("auto", path, cached, NULL, err);
        *made = st == DGM_OK;
    }
    pthread_mutex_unlock(&lock);
    return st;
}

dgm_status dgm_models_cached(const char *path, char **file, int *made, dgm_error *err)
{
    int ignored;
    DGM_FAIL_IF(!path || !file, err, DGM_ERR_ARGUMENT, "dgm_models_cached needs a path and where to put another");
    if (!made) made = &ignored;
    *file = NULL;
    *made = 0;
    char cached[PATH_SIZE];
    if (dgm_import_recognise(path, NULL) && cache_folder(cached)) {
        uint64_t hash[2];
        DGM_TRY(hash_model(path, dgm_foreign_kind(path), hash, err));
        DGM_TRY(make_folders(cached, err));
        const size_t n = strlen(cached);
        snprintf(cached + n, sizeof cached - n, "/%016llx%016llx.gguf", (unsigned long long)hash[0],
                 (unsigned long long)hash[1]);
        DGM_TRY(import_once(path, cached, made, err));
        path = cached;
    }
    *file = dgm_strdup(path);
    return *file ? DGM_OK : dgm_no_memory(err);
}
