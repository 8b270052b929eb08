// SPDX-License-Identifier: MIT
// Lines of text wrapped again, tags and escapes in one: for subtitles, PO and Markdown.
#ifndef DGM_DOCUMENT_WRAP_H
#define DGM_DOCUMENT_WRAP_H

#include "base/bytes.h"

// Columns that text takes without its tags ("<i>").
size_t dgm_wrap_columns(dgm_text text);
// Where the line that begins at pos ends: at a space outside of tags, so that it has at most `width` columns, or one
// word. *next is where the line behind it begins.
size_t dgm_wrap_line(dgm_text text, size_t pos, size_t width, size_t *next);

#endif
