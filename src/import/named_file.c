// SPDX-License-Identifier: MIT
// Files that the settings of a model name; see named_file.h.
#define _GNU_SOURCE
#include "import/named_file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mapfile.h"
#include "base/mem.h"

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Does a plain file lie in the folder or below? What counts is the folder it lies in: a file may itself be a link, as
// in caches of downloads.
static bool lies_in(const char *root, const char *path)
{
    char folder[PATH_MAX], real_root[PATH_MAX], real[PATH_MAX];
    struct stat info;
    const size_t n = (size_t)(last_part(path) - path);
    if (n >= sizeof folder || stat(path, &info) != 0 || S_ISDIR(info.st_mode)) return false;
    memcpy(folder, n ? path : ".", n ? n : 2);
    if (n) folder[n] = 0;
    if (!realpath(root, real_root) || !realpath(folder, real)) return false;
    const size_t size = strcmp(real_root, "/") == 0 ? 0 : strlen(real_root);
    return strncmp(real, real_root, size) == 0 && (real[size] == '/' || !real[size]);
}

// NAME without ".gz" at its end; NULL: no memory.
static char *unpacked_name(const char *name)
{
    const size_t n = strlen(name);
    return dgm_strndup(name, n > 3 && strcmp(name + n - 3, ".gz") == 0 ? n - 3 : n);
}

dgm_status dgm_named_file(const char *root, const char *name, bool relative, char **path, dgm_error *err)
{
    char *plain = unpacked_name(last_part(name));
    char *choices[] = {relative && name[0] != '/' ? dgm_path_in(root, name) : dgm_strdup(name),
                       relative || name[0] == '/' ? dgm_strdup(name) : dgm_path_in(root, name),
                       dgm_path_in(root, last_part(name)), plain ? dgm_path_in(root, plain) : NULL};
    bool memory = true;
    *path = NULL;
    for (int i = 0; i < 4; i++) memory = memory && choices[i];
    for (int i = 0; i < 4 && memory && !*path; i++) {
        if (!lies_in(root, choices[i])) continue;
        *path = choices[i];
        choices[i] = NULL;
    }
    for (int i = 0; i < 4; i++) dgm_free(choices[i]);
    dgm_free(plain);
    return memory ? DGM_OK : dgm_no_memory(err);
}
