// SPDX-License-Identifier: MIT
// Private to the lattice files: fields and numbers of text lines.
#ifndef DGM_LATTICE_LATTICE_PRIVATE_H
#define DGM_LATTICE_LATTICE_PRIVATE_H

#include "lattice/lattice.h"

static inline bool dgm_lattice_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

// Cuts the next field off a line; empty at its end.
static inline dgm_text dgm_lattice_field(dgm_text *line)
{
    while (line->size && dgm_lattice_blank(line->data[0])) line->data++, line->size--;
    dgm_text field = {line->data, 0};
    while (field.size < line->size && !dgm_lattice_blank(field.data[field.size])) field.size++;
    line->data += field.size;
    line->size -= field.size;
    return field;
}

// Digits only, 0 to `most`.
static inline bool dgm_lattice_integer(dgm_text t, int64_t most, int64_t *value)
{
    int64_t v = 0;
    if (t.size == 0) return false;
    for (size_t i = 0; i < t.size; i++) {
        if (t.data[i] < '0' || t.data[i] > '9') return false;
        v = v * 10 + (t.data[i] - '0');
        if (v > most) return false;
    }
    *value = v;
    return true;
}

#endif
