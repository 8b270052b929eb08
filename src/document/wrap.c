// SPDX-License-Identifier: MIT
// See wrap.h.
#include "document/wrap.h"

#include "document/document.h"
#include "text/unicode.h"

// The character or tag at pos: its bytes; *columns is 0 for a tag.
static size_t step(dgm_text t, size_t pos, size_t *columns)
{
    uint32_t code = 0;
    dgm_tag_kind kind = DGM_TAG_EMPTY;
    dgm_text name = {NULL, 0};
    const size_t tag = t.data[pos] == '<' ? dgm_tag_at(t, pos, &kind, &name) : 0;
    *columns = tag ? 0 : 1;
    return tag ? tag : dgm_utf8_next(t.data + pos, t.size - pos, &code);
}

size_t dgm_wrap_columns(dgm_text t)
{
    size_t sum = 0, columns = 0;
    for (size_t i = 0; i < t.size; sum += columns) i += step(t, i, &columns);
    return sum;
}

size_t dgm_wrap_line(dgm_text t, size_t pos, size_t width, size_t *next)
{
    size_t used = 0, last = t.size;
    for (size_t i = pos; i < t.size;) {
        size_t columns = 0;
        const size_t n = step(t, i, &columns);
        if (t.data[i] == ' ' && i > pos) {
            if (used > width && last < t.size) break;
            last = i;
            if (used >= width) break;
        }
        used += columns;
        i += n;
        if (i >= t.size && used <= width) last = t.size;
    }
    *next = last < t.size ? last + 1 : t.size;
    return last;
}
