// SPDX-License-Identifier: MIT
// Fields of text lines: what the readers of ARPA files, phrase tables, weights, lexicons, links,
// lattices and n-best lists have in common.
//
// Fields are separated by spaces and tabs. A carriage return inside a line belongs to its field,
// since corpora have such words; at the end of a line it is part of the line break
// (dragoman/common.h, dgm_lines_next).
#ifndef DGM_BASE_FIELDS_H
#define DGM_BASE_FIELDS_H

#include <string.h>

#include "base/bytes.h"

static inline bool dgm_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

// Cuts the next field off a line, without the blanks around it; empty at the end of the line.
static inline dgm_text dgm_field_next(dgm_text *line)
{
    size_t begin = 0;
    while (begin < line->size && dgm_is_blank(line->data[begin])) begin++;
    size_t end = begin;
    while (end < line->size && !dgm_is_blank(line->data[end])) end++;
    if (line->size == 0) return (dgm_text){line->data, 0};
    const dgm_text field = {line->data + begin, end - begin};
    line->data += end;
    line->size -= end;
    return field;
}

// Takes `text` off the beginning of a line; false, and nothing is taken, if it is not there.
static inline bool dgm_field_skip(dgm_text *line, const char *text)
{
    const size_t n = strlen(text);
    if (line->size < n || memcmp(line->data, text, n) != 0) return false;
    line->data += n;
    line->size -= n;
    return true;
}

static inline bool dgm_text_is(dgm_text t, const char *text)
{
    return dgm_text_equal(t, dgm_text_of(text));
}

// For "%.*s" in a message: the beginning of a text that came from outside.
static inline int dgm_shown_size(dgm_text t)
{
    enum { MOST = 60 };
    return (int)(t.size < MOST ? t.size : MOST);
}
#define DGM_SHOWN(t) dgm_shown_size(t), (t).data

// Without spaces, tabs and carriage returns at both ends.
dgm_text dgm_field_trim(dgm_text t);

// Up to the next "|||" between blanks, which is skipped; false behind the last column, whose end
// leaves line->data NULL.
bool dgm_field_column(dgm_text *line, dgm_text *column);
// "SOURCE-TARGET", a link of a word alignment; both at most `most`. The whole text.
bool dgm_field_link(dgm_text field, uint64_t most, uint64_t *source, uint64_t *target);

#endif
