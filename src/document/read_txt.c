// SPDX-License-Identifier: MIT
// Plain text: every line is a segment.
#include <string.h>

#include "document/document.h"

dgm_status dgm_txt_read(dgm_document *d, int source, dgm_error *err)
{
    const dgm_text t = dgm_document_source(d, source);
    for (size_t at = 0; at < t.size;) {
        const char *stop = memchr(t.data + at, '\n', t.size - at);
        const size_t next = stop ? (size_t)(stop - t.data) + 1 : t.size;
        size_t end = stop ? next - 1 : next;
        if (end > at && t.data[end - 1] == '\r') end--;
        const dgm_segment_spec spec = {.source = source, .begin = at, .end = end, .escape = &dgm_escape_none};
        DGM_TRY(dgm_segment_begin(d, &spec, NULL, err));
        DGM_TRY(dgm_segment_text(d, (dgm_text){t.data + at, end - at}, err));
        DGM_TRY(dgm_segment_end(d, err));
        at = next;
    }
    return DGM_OK;
}

static dgm_status read_txt(dgm_document *d, dgm_error *err)
{
    return dgm_txt_read(d, 0, err);
}

const dgm_document_reader dgm_txt_reader = {
    .format = DGM_FORMAT("txt", "txt text", "plain text, line by line"),
    .read = read_txt,
};
