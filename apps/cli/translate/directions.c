// SPDX-License-Identifier: MIT
// Directions of lines; see directions.h. Called by cmd_translate.c for every window.
#include "translate/directions.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "io/lineio.h"

void directions_begin(direction_window *w, size_t lines, size_t bytes)
{
    size_t text = bytes + 2 * lines;
    if (lines > w->item_cap) {
        w->items = need(realloc(w->items, lines * sizeof *w->items));
        w->item_cap = lines;
    }
    if (text > w->text_cap) {
        w->text = need(realloc(w->text, text));
        w->text_cap = text;
    }
    memset(w->items, 0, lines * sizeof *w->items);
    w->text_used = 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static const char *keep(direction_window *w, const char *text, size_t size)
{
    char *copy = w->text + w->text_used;
    memcpy(copy, text, size);
    copy[size] = 0;
    w->text_used += size + 1;
    return copy;
}

void directions_add(direction_window *w, size_t index, const char *text, size_t size,
                    dgm_input *input)
{
    while (size && is_space(text[size - 1])) size--;
    while (size && is_space(text[0])) text++, size--;
    if (size == 0) return;
    dgm_direction *d = &w->items[index];
    size_t first = 0, second;
    while (first < size && !is_space(text[first])) first++;
    for (second = first; second < size && is_space(text[second]);) second++;
    size_t end = second;
    while (end < size && !is_space(text[end])) end++;
    if (end < size) { // three words and more
        d->source = keep(w, text, size);
    } else if (second < size) {
        d->source = keep(w, text, first);
        d->target = keep(w, text + second, size - second);
    } else if (size == 4 && memcmp(text, "auto", 4) == 0) {
        d->source = keep(w, text, size); // --source auto
    } else {
        d->target = keep(w, text, size);
    }
    input->direction = d;
}

void directions_free(direction_window *w)
{
    free(w->items);
    free(w->text);
    memset(w, 0, sizeof *w);
}
