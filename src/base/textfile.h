// SPDX-License-Identifier: MIT
// Text files line by line, plain or gzip: what the tools that read and write corpora use.
//
// Reading finds gzip by its magic. Writing goes to a temporary neighbour that takes the file's
// name only when everything is on disk (dgm_textout_commit), so that a reader never sees half a
// file; a name that ends in ".gz" is compressed. A name that exists and is no regular file (a
// device, a pipe) is written to directly: renaming onto it would replace the device.
#ifndef DGM_BASE_TEXTFILE_H
#define DGM_BASE_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define DGM_TEXTFILE_LINE_MAX ((size_t)16 << 20) // bytes; longer lines are an error

typedef struct dgm_textin dgm_textin;

// Messages name the file and, from the first line on, the line.
dgm_status dgm_textin_open(dgm_textin **in, const char *path, dgm_error *err);
void dgm_textin_close(dgm_textin **in); // sets *in to NULL; accepts NULL inside
// The next line without its line break ("\n" or "\r\n"), borrowed until the next call. *more is
// false, and nothing else set, at the end of the file.
dgm_status dgm_textin_next(dgm_textin *in, const char **line, size_t *size, bool *more,
                           dgm_error *err);
uint64_t dgm_textin_line(const dgm_textin *in); // number of the line last read, from 1
const char *dgm_textin_path(const dgm_textin *in);
double dgm_textin_share(const dgm_textin *in); // of the file's bytes that have been read, 0 to 1

typedef struct dgm_textout dgm_textout;

dgm_status dgm_textout_open(dgm_textout **out, const char *path, dgm_error *err);
// Failures are remembered and reported by commit.
void dgm_textout_write(dgm_textout *out, const void *data, size_t size);
// Closes and gives the file its name; *out becomes NULL in any case.
dgm_status dgm_textout_commit(dgm_textout **out, dgm_error *err);
void dgm_textout_discard(dgm_textout **out); // removes the temporary file; accepts NULL inside
// Could a file of this name be written? Asked before long work. path NULL: DGM_OK.
dgm_status dgm_textout_probe(const char *path, dgm_error *err);

#endif
