// SPDX-License-Identifier: MIT
// Mapped files; see mapfile.h.
#define _GNU_SOURCE
#include "base/mapfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static dgm_status read_all(dgm_mapfile *f, int fd, const char *path, dgm_error *err)
{
    uint8_t *data = NULL;
    size_t cap = 0, size = 0;
    for (;;) {
        dgm_status st = dgm_grow(&data, &cap, size + 65536, 1, err);
        if (st != DGM_OK) {
            dgm_free(data);
            return st;
        }
        ssize_t n = read(fd, data + size, cap - size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN && fcntl(fd, F_SETFL, 0) == 0) continue; // slow: from now on wait
        if (n < 0) {
            int code = errno;
            dgm_free(data);
            return dgm_fail(err, DGM_ERR_IO, "cannot read '%s': %s", path, strerror(code));
        }
        if (n == 0) break;
        size += (size_t)n;
    }
    f->data = data;
    f->size = size;
    f->mapped = false;
    return DGM_OK;
}

enum { PIPE_WAIT_MS = 500 };

// /dev/zero never ends; /dev/null does.
static dgm_status check_device(int fd, const char *path, dgm_error *err)
{
    char first;
    DGM_FAIL_IF(read(fd, &first, 1) != 0, err, DGM_ERR_IO, "cannot read '%s': it is a device", path);
    return DGM_OK;
}

// What is no plain file is read to its end. Who is just about to open a pipe for writing gets a moment; one
// that nobody writes to has its end at once, and is not waited for.
static dgm_status read_special(dgm_mapfile *f, int fd, const struct stat *info, const char *path,
                               dgm_error *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (S_ISCHR(info->st_mode) || S_ISBLK(info->st_mode)) return check_device(fd, path, err);
    if (S_ISFIFO(info->st_mode)) poll(&p, 1, PIPE_WAIT_MS);
    DGM_TRY(read_all(f, fd, path, err));
    if (f->size > 0 || !S_ISFIFO(info->st_mode)) return DGM_OK;
    dgm_mapfile_close(f);
    return dgm_fail(err, DGM_ERR_IO, "cannot read '%s': it is a pipe that nobody writes to", path);
}

dgm_status dgm_mapfile_open(dgm_mapfile *f, const char *path, dgm_error *err)
{
    memset(f, 0, sizeof *f);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // opening a pipe must not wait
    if (fd < 0) return dgm_fail(err, DGM_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    struct stat info;
    dgm_status st = DGM_OK;
    if (fstat(fd, &info) != 0) {
        st = dgm_fail(err, DGM_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    } else if (S_ISDIR(info.st_mode)) {
        st = dgm_fail(err, DGM_ERR_IO, "cannot read '%s': it is a folder", path);
    } else if (S_ISREG(info.st_mode) && info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            st = read_all(f, fd, path, err);
        } else {
            f->data = data;
            f->size = (size_t)info.st_size;
            f->mapped = true;
        }
    } else if (!S_ISREG(info.st_mode)) {
        st = read_special(f, fd, &info, path, err);
    }
    close(fd);
    return st;
}

// A file beside `near` that has lost its name.
static dgm_status unnamed_file(const char *near, int *fd, dgm_error *err)
{
    const char *slash = strrchr(near, '/');
    const int folder = slash ? (int)(slash - near) + 1 : 0;
    const size_t room = (size_t)folder + 32;
    char *path = dgm_malloc(room);
    if (!path) return dgm_no_memory(err);
    snprintf(path, room, "%.*s.dragoman-XXXXXX", folder, near);
    *fd = mkostemp(path, O_CLOEXEC);
    const int code = errno;
    if (*fd >= 0) unlink(path);
    dgm_free(path);
    DGM_FAIL_IF(*fd < 0, err, DGM_ERR_IO, "cannot write beside '%s': %s", near, strerror(code));
    return DGM_OK;
}

dgm_status dgm_mapfile_scratch(dgm_mapfile *f, const char *near, size_t size, uint8_t **data, dgm_error *err)
{
    memset(f, 0, sizeof *f);
    int fd = -1;
    DGM_TRY(unnamed_file(near, &fd, err));
    const size_t room = size ? size : 1;
    const int full = posix_fallocate(fd, 0, (off_t)room); // so that a full disk is noticed here
    void *map = full ? MAP_FAILED : mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int code = full ? full : errno;
    close(fd);
    DGM_FAIL_IF(map == MAP_FAILED, err, DGM_ERR_IO, "cannot write %zu bytes beside '%s': %s", size, near,
                strerror(code));
    *f = (dgm_mapfile){.data = map, .size = room, .mapped = true};
    *data = map;
    return DGM_OK;
}

void dgm_mapfile_close(dgm_mapfile *f)
{
    if (f->data && f->mapped) munmap((void *)f->data, f->size);
    if (f->data && !f->mapped) dgm_free((void *)f->data);
    memset(f, 0, sizeof *f);
}

void dgm_mapfile_forget(const dgm_mapfile *f)
{
    if (f->data && f->mapped) madvise((void *)f->data, f->size, MADV_DONTNEED);
}

void dgm_mapfile_forget_part(const dgm_mapfile *f, const void *data, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)data + size) / page * page;
    if (f->data && f->mapped && begin < end)
        madvise((void *)begin, (size_t)(end - begin), MADV_DONTNEED);
}

bool dgm_file_exists(const char *path)
{
    return access(path, R_OK) == 0;
}

// Without a path that would need memory: what is not there is told from what could not be looked for.
bool dgm_file_exists_in(const char *folder, const char *name)
{
    const int at = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const bool yes = at >= 0 && faccessat(at, name, R_OK, 0) == 0;
    if (at >= 0) close(at);
    return yes;
}

char *dgm_path_in(const char *folder, const char *name)
{
    const size_t room = strlen(folder) + strlen(name) + 2;
    char *path = dgm_malloc(room);
    if (path) snprintf(path, room, "%s/%s", folder, name);
    return path;
}

bool dgm_file_is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}
