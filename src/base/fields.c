// SPDX-License-Identifier: MIT
// Fields of text lines; see fields.h.
#include "base/fields.h"

#include "base/number.h"

static bool is_edge(char c)
{
    return dgm_is_blank(c) || c == '\r';
}

dgm_text dgm_field_trim(dgm_text t)
{
    while (t.size && is_edge(t.data[0])) t.data++, t.size--;
    while (t.size && is_edge(t.data[t.size - 1])) t.size--;
    return t;
}

bool dgm_field_column(dgm_text *line, dgm_text *column)
{
    if (!line->data) return false;
    for (size_t i = 0; i + 3 <= line->size; i++) {
        if (memcmp(line->data + i, "|||", 3) != 0) continue;
        if (i > 0 && !dgm_is_blank(line->data[i - 1])) continue;
        if (i + 3 < line->size && !dgm_is_blank(line->data[i + 3])) continue;
        *column = (dgm_text){line->data, i};
        line->data += i + 3;
        line->size -= i + 3;
        return true;
    }
    *column = *line;
    *line = (dgm_text){NULL, 0};
    return true;
}

bool dgm_field_link(dgm_text field, uint64_t most, uint64_t *source, uint64_t *target)
{
    return dgm_number_take_u64(&field, most, source) && dgm_field_skip(&field, "-") &&
           dgm_number_u64(field, most, target);
}
