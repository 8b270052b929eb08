// SPDX-License-Identifier: MIT
// `translate --directions FILE`: the direction of every line, "SOURCE TARGET" as text.
#ifndef DGM_APPS_CLI_TRANSLATE_DIRECTIONS_H
#define DGM_APPS_CLI_TRANSLATE_DIRECTIONS_H

#include <stddef.h>

#include "dragoman/dragoman.h"

// Directions of one window, with the strings they point to.
typedef struct direction_window {
    dgm_direction *items;
    char *text;
    size_t item_cap, text_cap, text_used;
} direction_window;

// Room for the lines of a window; forgets those of the last one. bytes: of all their texts.
void directions_begin(direction_window *w, size_t lines, size_t bytes);
// Line `index` of the window is `text`: two languages between spaces, one (of the target; "auto": the source), or none.
// More than two become a source that no model has, so that the line fails with its name.
void directions_add(direction_window *w, size_t index, const char *text, size_t size,
                    dgm_input *input);
void directions_free(direction_window *w);

#endif
