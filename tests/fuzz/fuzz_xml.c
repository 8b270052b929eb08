// SPDX-License-Identifier: MIT
// Fuzz target: XML. Events stand in the order of the source and inside it, open and close in turn, and cover all of an
// accepted document but its type; what is refused has a message of one line.
// Parsers: src/base/xml.c
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct seen {
    size_t size, end;
    int depth;
} seen;

static void require(bool what)
{
    if (!what) abort();
}

static dgm_status look(void *cookie, const dgm_xml_event *e, dgm_error *err)
{
    (void)err;
    seen *s = cookie;
    require(e->begin <= e->end && e->end <= s->size);
    require(s->depth == 0 || e->begin == s->end || e->kind == DGM_XML_OTHER);
    s->end = e->end;
    if (e->kind == DGM_XML_OPEN) s->depth++;
    if (e->kind == DGM_XML_CLOSE) require(s->depth-- > 0);
    if (e->kind == DGM_XML_TEXT) require(e->text.size <= e->end - e->begin);
    return DGM_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    seen s = {.size = size};
    dgm_error err;
    const dgm_status st = dgm_xml_walk((dgm_text){(const char *)data, size}, look, &s, &err);
    if (st == DGM_OK) require(s.depth == 0);
    else require(strlen(err.text) > 0 && !strchr(err.text, '\n'));
    return 0;
}
