// SPDX-License-Identifier: MIT
// Files that are written whole or not at all: a temporary neighbour takes the file's name when
// everything is on it, so that a reader never sees half a file. Until then it has no name at all where the
// system allows that, so that nothing is left of a process that is killed. What text files (textfile.h), model
// files (format/gguf.h) and dgm_file_write (mapfile.h) are written with. Of several that are written to
// one name at the same time, also by one process, the one that is committed last stays.
#ifndef DGM_BASE_OUTFILE_H
#define DGM_BASE_OUTFILE_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

// errno of a call that has failed, also where the library did not set it.
static inline int dgm_errno(void)
{
    return errno ? errno : EIO;
}

typedef struct dgm_outfile {
    FILE *file;
    char *path, *temporary;
    bool direct; // `temporary` is the file itself: nothing to rename or remove
    bool nameless; // it has no name until it is whole
    bool named;    // it got its own one at once: there was no file of that name
} dgm_outfile;

// A name that exists and is no regular file (a device, a pipe) is refused, or with `direct` written
// to as it is: renaming onto it would replace the device. On failure nothing is open.
dgm_status dgm_outfile_open(dgm_outfile *f, const char *path, bool direct, dgm_error *err);
// Waits until the bytes are on the disk, closes, and gives the file its name. code: errno of a write that failed,
// 0: none did; then, and where syncing or naming fails, the temporary file is removed.
dgm_status dgm_outfile_commit(dgm_outfile *f, int code, dgm_error *err);
void dgm_outfile_discard(dgm_outfile *f); // removes the temporary file; accepts all zero
// Could a regular file of this name be written? Asked before long work.
dgm_status dgm_outfile_probe(const char *path, dgm_error *err);

#endif
