// SPDX-License-Identifier: MIT
// Files that are for lines of one direction: "SOURCE-TARGET=NAME", or "NAME" for all of them.
//
// Languages are names as dgm_language_matches takes them, also with "-" inside ("zh-Hans-en=..."): the direction fits
// where some cut of it does. A file that has the whole text for its name is meant as that.
#ifndef DGM_FORMAT_DIRECTED_H
#define DGM_FORMAT_DIRECTED_H

#include <stdbool.h>

#include "base/bytes.h"

typedef struct dgm_directed {
    dgm_text direction; // size 0: all
    const char *name;   // of the file, behind it
} dgm_directed;

dgm_directed dgm_directed_read(const char *text);
// Is it for this direction? NULL or "": a language that nobody knows, which a named one is not.
bool dgm_directed_fits(const char *text, const char *source, const char *target);
bool dgm_direction_means(dgm_text direction, const char *source, const char *target); // "en-de" alone
// Items of "A-B=NAME,C-D=NAME"; a comma is one between items only where a direction follows. The next one from *list
// on, which moves; size 0 at the end.
dgm_text dgm_directed_next(const char **list);

#endif
