// SPDX-License-Identifier: MIT
// Files that are written whole or not at all; see outfile.h.
#define _GNU_SOURCE
#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "dragoman/common.h"

static dgm_status cannot_write(const char *path, int code, dgm_error *err)
{
    return dgm_fail(err, DGM_ERR_IO, "cannot write '%s': %s", path, strerror(code));
}

// A file of the folder without a name, of which nothing stays behind when the process is killed. NULL where the
// system has no such files, or no way to name them later.
static FILE *open_nameless(const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    char folder[PATH_MAX] = ".";
    if (n >= sizeof folder || access("/proc/self/fd", X_OK) != 0) return NULL;
    if (n) {
        memcpy(folder, path, n);
        folder[n] = 0;
    }
    const int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (fd >= 0 && !file) close(fd);
    return file;
}

// What was written is on the disk before it has a name: after a power cut, too, a file is whole. errno, or 0.
static int settle(const dgm_outfile *f)
{
    if (fflush(f->file) != 0) return dgm_errno();
    if (f->direct || fdatasync(fileno(f->file)) == 0) return 0;
    return errno == EINVAL || errno == EROFS ? 0 : dgm_errno(); // there are file systems that know no sync
}

// Gives a nameless file its name, or where there is a file of that name already, the temporary one; errno, or 0.
static int name_it(dgm_outfile *f)
{
    char from[32];
    snprintf(from, sizeof from, "/proc/self/fd/%d", fileno(f->file));
    f->named = linkat(AT_FDCWD, from, AT_FDCWD, f->path, AT_SYMLINK_FOLLOW) == 0;
    if (f->named) return 0;
    if (errno != EEXIST) return dgm_errno();
    return linkat(AT_FDCWD, from, AT_FDCWD, f->temporary, AT_SYMLINK_FOLLOW) == 0 ? 0 : dgm_errno();
}

dgm_status dgm_outfile_open(dgm_outfile *f, const char *path, bool direct, dgm_error *err)
{
    static atomic_uint opened; // files of one name that are written at the same time do not meet
    const size_t n = strlen(path), room = n + 48;
    *f = (dgm_outfile){.direct = dgm_file_is_special(path)};
    DGM_FAIL_IF(f->direct && !direct, err, DGM_ERR_IO, "cannot write '%s': not a regular file",
                path);
    f->path = dgm_strdup(path);
    f->temporary = dgm_malloc(room);
    if (!f->path || !f->temporary) {
        dgm_outfile_discard(f);
        return dgm_no_memory(err);
    }
    if (f->direct)
        memcpy(f->temporary, path, n + 1);
    else
        snprintf(f->temporary, room, "%s.tmp-%ld-%u", path, (long)getpid(),
                 atomic_fetch_add_explicit(&opened, 1, memory_order_relaxed));
    if (!f->direct) f->file = open_nameless(path);
    f->nameless = f->file != NULL;
    if (!f->file) f->file = fopen(f->temporary, "wbe");
    if (f->file) return DGM_OK;
    const dgm_status st = cannot_write(path, dgm_errno(), err);
    dgm_outfile_discard(f);
    return st;
}

void dgm_outfile_discard(dgm_outfile *f)
{
    if (f->file) {
        fclose(f->file);
        if (!f->direct && !f->nameless) unlink(f->temporary);
    }
    dgm_free(f->temporary);
    dgm_free(f->path);
    *f = (dgm_outfile){0};
}

dgm_status dgm_outfile_commit(dgm_outfile *f, int code, dgm_error *err)
{
    if (!code) code = settle(f);
    if (f->nameless && !code) code = name_it(f);
    // Nothing is left to be written: what closing says then is of no weight, but for pipes and devices.
    if (fclose(f->file) != 0 && f->direct && !code) code = dgm_errno();
    f->file = NULL;
    if (!code && !f->direct && !f->named && rename(f->temporary, f->path) != 0) code = dgm_errno();
    const dgm_status st = code ? cannot_write(f->path, code, err) : DGM_OK;
    if (code && !f->direct) unlink(f->temporary);
    dgm_outfile_discard(f);
    return st;
}

dgm_status dgm_file_write(const char *path, const void *data, size_t size, dgm_error *err)
{
    dgm_outfile f;
    DGM_TRY(dgm_outfile_open(&f, path, false, err));
    const bool good = size == 0 || fwrite(data, 1, size, f.file) == size;
    return dgm_outfile_commit(&f, good ? 0 : dgm_errno(), err);
}

dgm_status dgm_outfile_probe(const char *path, dgm_error *err)
{
    dgm_outfile f;
    DGM_TRY(dgm_outfile_open(&f, path, false, err));
    dgm_outfile_discard(&f);
    return DGM_OK;
}

// ---- for programs ------------------------------------------------------------------------------

struct dgm_output {
    dgm_outfile f;
};

dgm_status dgm_output_open(dgm_output **output, const char *path, dgm_error *err)
{
    *output = NULL;
    dgm_output *o = dgm_calloc(1, sizeof *o);
    if (!o) return dgm_no_memory(err);
    const dgm_status st = dgm_outfile_open(&o->f, path, true, err);
    if (st == DGM_OK)
        *output = o;
    else
        dgm_free(o);
    return st;
}

int dgm_output_descriptor(const dgm_output *output)
{
    return fileno(output->f.file);
}

dgm_status dgm_output_commit(dgm_output **output, dgm_error *err)
{
    const dgm_status st = dgm_outfile_commit(&(*output)->f, 0, err);
    dgm_output_discard(output);
    return st;
}

void dgm_output_discard(dgm_output **output)
{
    if (*output) dgm_outfile_discard(&(*output)->f);
    dgm_free(*output);
    *output = NULL;
}
