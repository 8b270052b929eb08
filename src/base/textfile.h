// SPDX-License-Identifier: MIT
// Text files, plain or gzip: what the tools that read and write corpora use.
//
// Reading is dgm_lines of dragoman/common.h. A file that is written takes its name when it is
// complete (outfile.h); a name that ends in ".gz" is compressed, a device or pipe written to as it is.
#ifndef DGM_BASE_TEXTFILE_H
#define DGM_BASE_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "dragoman/common.h"

// One line of a file. A failure ends the reading.
typedef dgm_status (*dgm_line_taker)(void *cookie, dgm_text line, dgm_error *err);
// Every line of a file in turn. What `take` finds wrong with one gets "PATH:LINE: " in front.
dgm_status dgm_lines_each(const char *path, dgm_line_taker take, void *cookie, dgm_error *err);
// Puts "PATH:LINE: " of the line last read before a message.
void dgm_lines_blame(const dgm_lines *lines, dgm_error *err);
// All lines of a file, each with "\n" behind it.
dgm_status dgm_lines_collect(const char *path, dgm_writer *text, dgm_error *err);
// Cuts the next line off a text in memory: what dgm_lines_next does for files.
dgm_text dgm_line_cut(dgm_text *text);

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
