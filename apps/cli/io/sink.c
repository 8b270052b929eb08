// SPDX-License-Identifier: MIT
// Where a tool of the library writes its text; see sink.h.
#include "io/sink.h"

#include <string.h>

#include "options.h"
#include "translate/setup.h"

bool sink_open(text_sink *s, const char *output)
{
    *s = (text_sink){.file = output};
    if (output && strcmp(output, "-") != 0) return true;
    s->file = NULL;
    s->out = writer_open(NULL);
    return s->out != NULL;
}

int sink_put(void *out, const char *text, size_t size)
{
    writer_put(out, text, size);
    return writer_failed(out);
}

int sink_close(text_sink *s, dgm_status status, const dgm_error *error)
{
    const bool failed = s->out && writer_failed(s->out); // then closing says why
    int code = EXIT_FINE;
    if (status != DGM_OK && !failed) code = fail(exit_code(status), "%s", error->text);
    if (s->out && !writer_close(s->out)) code = EXIT_RUNTIME;
    s->out = NULL;
    return code;
}
