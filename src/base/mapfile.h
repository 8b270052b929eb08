// SPDX-License-Identifier: MIT
// Read-only files: mapped where possible, read into memory otherwise (pipes, special files).
#ifndef DGM_BASE_MAPFILE_H
#define DGM_BASE_MAPFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct dgm_mapfile {
    const uint8_t *data;
    size_t size;
    bool mapped;
} dgm_mapfile;

// The message names the path. An empty file has size 0 and data NULL. A pipe is read to its end; one that
// nobody writes to is an error, not waited for.
dgm_status dgm_mapfile_open(dgm_mapfile *f, const char *path, dgm_error *err);
// Memory on disk: a file without a name in the folder of `near`, of zeros at first, that is gone when it is closed.
// *data: to write to; f->data is the same memory.
dgm_status dgm_mapfile_scratch(dgm_mapfile *f, const char *near, size_t size, uint8_t **data, dgm_error *err);
void dgm_mapfile_close(dgm_mapfile *f); // accepts a zeroed or closed file
// Gives the pages that were read so far back to the system; they come again when touched. Nothing
// happens to a file that was read into memory.
void dgm_mapfile_forget(const dgm_mapfile *f);
// The same for the whole pages of a part of it.
void dgm_mapfile_forget_part(const dgm_mapfile *f, const void *data, size_t size);

// Writes a whole file through a temporary neighbour and rename, so that a reader never sees half.
dgm_status dgm_file_write(const char *path, const void *data, size_t size, dgm_error *err);

bool dgm_file_exists(const char *path);
bool dgm_file_exists_in(const char *folder, const char *name);
// FOLDER/NAME, to be freed with dgm_free; NULL: no memory.
char *dgm_path_in(const char *folder, const char *name);
// A device, pipe or folder: a file must never be renamed onto one.
bool dgm_file_is_special(const char *path);

#endif
