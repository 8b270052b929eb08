// SPDX-License-Identifier: MIT
// Files of fuzz targets that lie in memory. Define _GNU_SOURCE before the first include.
#ifndef DGM_TESTS_FUZZ_MEMORY_FILE_H
#define DGM_TESTS_FUZZ_MEMORY_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FUZZ_PATH = 64 };

// A file without a name, which is read by its number: the caller closes it.
static inline int fuzz_file(const void *data, size_t size, char path[FUZZ_PATH])
{
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, FUZZ_PATH, "/proc/self/fd/%d", fd);
    return fd;
}

// The path of a file that a target writes itself, in the folder of a run, else in memory where there is such a place.
static inline const char *fuzz_written(const char *name)
{
    static char path[FUZZ_PATH];
    const char *own = getenv("FUZZ_SCRATCH");
    const char *folder = own ? own : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/dragoman-fuzz-%d-%s", folder, (int)getpid(), name);
    return path;
}

#endif
