// SPDX-License-Identifier: MIT
// Where a tool of the library writes its text: to a file by itself, or through us to standard output.
#ifndef DGM_APPS_CLI_IO_SINK_H
#define DGM_APPS_CLI_IO_SINK_H

#include "io/lineio.h"

typedef struct text_sink {
    const char *file; // for the tool to write; NULL: it calls sink_put
    line_writer *out; // cookie of sink_put
} text_sink;

// output NULL or "-": standard output. False after a message.
bool sink_open(text_sink *s, const char *output);
int sink_put(void *out, const char *text, size_t size); // not 0: no more can be written
// Closes; returns the exit code, after a message where the tool or the writing failed.
int sink_close(text_sink *s, dgm_status status, const dgm_error *error);

#endif
