// SPDX-License-Identifier: MIT
// Packages into a folder of our own; see unpack.h. The folder lies beside the output, where there is room
// for a model, and everything in it is a plain file of a plain name: no path of an archive is followed.
#define _GNU_SOURCE
#include "import/unpack.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "base/zip.h"

#define TOTAL_MAX ((uint64_t)32 << 30) // bytes that a package may unpack to

enum { STEP = 1 << 16, FILES_MAX = 1000 };

static dgm_status make_folder(const char *output, char **folder, dgm_error *err)
{
    const size_t room = strlen(output) + 32;
    char *path = dgm_malloc(room);
    *folder = NULL;
    if (!path) return dgm_no_memory(err);
    snprintf(path, room, "%s.unpacked-XXXXXX", output);
    if (!mkdtemp(path)) {
        const dgm_status st = dgm_fail(err, DGM_ERR_IO, "cannot make a folder beside '%s': %s",
                                       output, strerror(errno));
        dgm_free(path);
        return st;
    }
    *folder = path;
    return DGM_OK;
}

void dgm_unpack_remove(char **folder)
{
    char path[PATH_MAX];
    if (!*folder) return;
    DIR *dir = opendir(*folder);
    for (struct dirent *d; dir && (d = readdir(dir)) != NULL;)
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
            snprintf(path, sizeof path, "%s/%s", *folder, d->d_name) < (int)sizeof path)
            unlink(path);
    if (dir) closedir(dir);
    rmdir(*folder);
    dgm_free(*folder);
    *folder = NULL;
}

// FOLDER/NAME, of a name without folders.
static dgm_status inside(char path[PATH_MAX], const char *folder, const char *name, dgm_error *err)
{
    const int n = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    DGM_FAIL_IF(n < 0 || n >= PATH_MAX || !name[0] || name[0] == '.' || strchr(name, '/'), err,
                DGM_ERR_FORMAT, "'%.100s' is no plain name of a file", name);
    return DGM_OK;
}

// ---- zip -----------------------------------------------------------------------------------------

static dgm_status write_part(void *file, const void *data, size_t size, dgm_error *err)
{
    DGM_FAIL_IF(fwrite(data, 1, size, file) != size, err, DGM_ERR_IO, "cannot write: %s",
                strerror(errno));
    return DGM_OK;
}

static dgm_status unpack_member(dgm_zip *zip, size_t i, const char *folder, dgm_error *err)
{
    char path[PATH_MAX];
    const char *name = dgm_zip_name(zip, i), *slash = strrchr(name, '/');
    if (slash && !slash[1]) return DGM_OK; // a folder
    if (slash && slash[1] == '.') return DGM_OK;
    DGM_TRY(inside(path, folder, slash ? slash + 1 : name, err));
    DGM_FAIL_IF(dgm_file_exists(path), err, DGM_ERR_UNSUPPORTED, "two files are called '%.100s'",
                slash ? slash + 1 : name);
    FILE *f = fopen(path, "wbe");
    DGM_FAIL_IF(!f, err, DGM_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    dgm_status st = dgm_zip_stream(zip, i, write_part, f, err);
    if (fclose(f) != 0 && st == DGM_OK)
        st = dgm_fail(err, DGM_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    return st;
}

static dgm_status unpack_members(dgm_zip *zip, const char *folder, dgm_error *err)
{
    uint64_t total = 0;
    DGM_FAIL_IF(dgm_zip_count(zip) > FILES_MAX, err, DGM_ERR_FORMAT, "more than %d files",
                FILES_MAX);
    for (size_t i = 0; i < dgm_zip_count(zip); i++) total += dgm_zip_size(zip, i);
    DGM_FAIL_IF(total > TOTAL_MAX, err, DGM_ERR_FORMAT, "unpacks to more than %d GiB",
                (int)(TOTAL_MAX >> 30));
    for (size_t i = 0; i < dgm_zip_count(zip); i++) DGM_TRY(unpack_member(zip, i, folder, err));
    return DGM_OK;
}

dgm_status dgm_unpack_zip(const char *path, const char *output, char **folder, dgm_error *err)
{
    dgm_zip *zip;
    *folder = NULL;
    DGM_TRY(dgm_zip_open(&zip, path, err));
    dgm_status st = make_folder(output, folder, err);
    if (st == DGM_OK && (st = unpack_members(zip, *folder, err)) != DGM_OK)
        dgm_error_prefix(err, "'%s'", path);
    dgm_zip_close(&zip);
    if (st != DGM_OK) dgm_unpack_remove(folder);
    return st;
}

// ---- gzip ----------------------------------------------------------------------------------------

static dgm_status copy_gz(gzFile in, FILE *out, uint64_t *total, dgm_error *err)
{
    uint8_t data[STEP];
    for (int n; (n = gzread(in, data, sizeof data)) != 0; *total += (uint64_t)n) {
        DGM_FAIL_IF(n < 0, err, DGM_ERR_FORMAT, "compressed data are damaged");
        DGM_FAIL_IF(*total > TOTAL_MAX, err, DGM_ERR_FORMAT, "unpacks to more than %d GiB",
                    (int)(TOTAL_MAX >> 30));
        DGM_FAIL_IF(fwrite(data, 1, (size_t)n, out) != (size_t)n, err, DGM_ERR_IO,
                    "cannot write what it holds: %s", strerror(errno));
    }
    int code = 0;
    gzerror(in, &code);
    DGM_FAIL_IF(code != Z_OK && code != Z_STREAM_END, err, DGM_ERR_FORMAT,
                "compressed data end too early");
    return DGM_OK;
}

static dgm_status unpack_gz(const char *from, const char *to, uint64_t *total, dgm_error *err)
{
    gzFile in = gzopen(from, "rbe");
    FILE *out = fopen(to, "wbe");
    dgm_status st = in && out ? copy_gz(in, out, total, err)
                              : dgm_fail(err, DGM_ERR_IO, "cannot unpack: %s", strerror(errno));
    if (in) gzclose(in);
    if (out && fclose(out) != 0 && st == DGM_OK)
        st = dgm_fail(err, DGM_ERR_IO, "cannot write what it holds: %s", strerror(errno));
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", from);
    return st;
}

static dgm_status take_file(const char *from, const char *name, const char *folder, uint64_t *total,
                            dgm_error *err)
{
    char path[PATH_MAX], plain[NAME_MAX + 1];
    const size_t n = strlen(name);
    const bool packed = n > 3 && strcmp(name + n - 3, ".gz") == 0;
    snprintf(plain, sizeof plain, "%.*s", (int)(packed ? n - 3 : n), name);
    DGM_TRY(inside(path, folder, plain, err));
    if (packed) return dgm_file_exists(path) ? DGM_OK : unpack_gz(from, path, total, err);
    unlink(path); // the plain file counts
    DGM_FAIL_IF(symlink(from, path) != 0, err, DGM_ERR_IO, "cannot link to '%s': %s", from,
                strerror(errno));
    return DGM_OK;
}

static dgm_status take_files(const char *root, const char *folder, dgm_error *err)
{
    char path[PATH_MAX];
    struct stat info;
    uint64_t total = 0;
    int count = 0;
    dgm_status st = DGM_OK;
    DIR *dir = opendir(root);
    DGM_FAIL_IF(!dir, err, DGM_ERR_IO, "cannot open '%s': %s", root, strerror(errno));
    for (struct dirent *d; st == DGM_OK && (d = readdir(dir)) != NULL;) {
        if (d->d_name[0] == '.') continue;
        st = count++ < FILES_MAX ? inside(path, root, d->d_name, err)
                                 : dgm_fail(err, DGM_ERR_FORMAT, "'%s' has more than %d files", root, FILES_MAX);
        if (st == DGM_OK && stat(path, &info) == 0 && S_ISREG(info.st_mode))
            st = take_file(path, d->d_name, folder, &total, err);
    }
    closedir(dir);
    return st;
}

dgm_status dgm_unpack_gz(const char *path, const char *output, char **folder, dgm_error *err)
{
    char root[PATH_MAX];
    *folder = NULL;
    DGM_FAIL_IF(!realpath(path, root), err, DGM_ERR_IO, "cannot open '%s': %s", path,
                strerror(errno));
    dgm_status st = make_folder(output, folder, err);
    if (st == DGM_OK) st = take_files(root, *folder, err);
    if (st != DGM_OK) dgm_unpack_remove(folder);
    return st;
}
