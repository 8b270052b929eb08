// SPDX-License-Identifier: MIT
// What the reader (phrase_table.c) and the writer (phrase_build.c) of compact phrase tables agree
// on: the first bytes. The order of the sections is in phrase_table.c.
#ifndef DGM_PHRASE_PHRASE_LAYOUT_H
#define DGM_PHRASE_PHRASE_LAYOUT_H

#include <stdint.h>

static const uint8_t dgm_phrase_magic[8] = {'D', 'G', 'M', 'P', 'T', 0, 1, 0};

#endif
