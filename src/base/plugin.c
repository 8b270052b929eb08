// SPDX-License-Identifier: MIT
// Shared objects beside the library; see plugin.h.
#define _GNU_SOURCE // dladdr
#include "base/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char here; // an address of this code

// The folder that this code was loaded from, without a slash at its end.
static bool own_folder(char *out, size_t size)
{
    Dl_info info;
    if (!dladdr((const void *)&here, &info) || !info.dli_fname) return false;
    const char *path = info.dli_fname;
    char self[PATH_MAX];
    if (!strchr(path, '/')) { // a program that was found in $PATH
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        if (n <= 0) return false;
        self[n] = '\0';
        path = self;
    }
    const char *slash = strrchr(path, '/');
    if (!slash) return false;
    return (size_t)snprintf(out, size, "%.*s", (int)(slash - path), path) < size;
}

static bool is_plugin(char *path, size_t size, const char *folder, size_t length, const char *kind)
{
    if (length == 0) return false;
    int n = snprintf(path, size, "%.*s/libdragoman-%s.so", (int)length, folder, kind);
    return n > 0 && (size_t)n < size && access(path, R_OK) == 0;
}

bool dgm_plugin_find(const char *kind, char *path, size_t size)
{
    const char *folders = getenv("DRAGOMAN_PLUGINS");
    while (folders && *folders) {
        size_t n = strcspn(folders, ":");
        if (is_plugin(path, size, folders, n, kind)) return true;
        folders += n + (folders[n] == ':');
    }
    if (folders) return false;
    char own[PATH_MAX], beside[PATH_MAX + 8];
    if (own_folder(own, sizeof own)) {
        if (is_plugin(path, size, own, strlen(own), kind)) return true;
        snprintf(beside, sizeof beside, "%s/../lib", own);
        if (is_plugin(path, size, beside, strlen(beside), kind)) return true;
    }
    return is_plugin(path, size, DGM_LIB_DIR, strlen(DGM_LIB_DIR), kind);
}

const char *dgm_plugin_where(void)
{
    return getenv("DRAGOMAN_PLUGINS") ? "in the folders of DRAGOMAN_PLUGINS"
                                      : "beside the program, nor in " DGM_LIB_DIR;
}

dgm_status dgm_plugin_load(const char *path, const char *function, const char *noun, const char *kind, void **symbol,
                           dgm_error *err)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = object ? NULL : dlerror();
    DGM_FAIL_IF(!object, err, DGM_ERR_UNSUPPORTED, "%s %s: cannot load its code: %s", noun, kind, why ? why : path);
    *symbol = dlsym(object, function);
    DGM_FAIL_IF(!*symbol, err, DGM_ERR_UNSUPPORTED, "%s %s: %s is no %s (it has no %s)", noun, kind, path, noun,
                function);
    return DGM_OK;
}
