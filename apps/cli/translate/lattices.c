// SPDX-License-Identifier: MIT
// Lattices beside the lines of a text; see lattices.h. They are passed on as they are: what is
// wrong with one is found when its line is submitted, and is that line's failure alone.
#include "translate/lattices.h"

#include <stdlib.h>
#include <string.h>

#include "io/lineio.h"
#include "options.h"

dgm_lattices *lattices_open(const char *path)
{
    dgm_lattices *file = NULL;
    dgm_error error;
    if (dgm_lattices_open(&file, path, &error) != DGM_OK) fail(EXIT_RUNTIME, "%s", error.text);
    return file;
}

bool lattices_add(lattice_window *w, uint32_t *sum)
{
    dgm_lattice_text l = {0};
    dgm_error error;
    if (!w->file) return true;
    if (!w->ended && dgm_lattices_next(w->file, &l, &error) != DGM_OK) {
        fail(EXIT_RUNTIME, "%s", error.text);
        return false;
    }
    if (!w->ended && !l.text) {
        w->ended = true;
        fail(EXIT_RUNTIME, "there are fewer lattices than lines of input: the rest goes without");
    }
    if (w->count == w->cap) {
        w->cap = w->cap ? w->cap * 2 : 256;
        w->lines = need(realloc(w->lines, w->cap * sizeof *w->lines));
    }
    if (w->text_used + l.size > w->text_cap) {
        w->text_cap = (w->text_used + l.size) * 2;
        w->text = need(realloc(w->text, w->text_cap));
    }
    if (l.size) memcpy(w->text + w->text_used, l.text, l.size);
    w->text_used += l.size;
    *sum = checksum(*sum, l.text ? l.text : "", l.size);
    w->lines[w->count++] = l; // where its text will lie is not known yet
    return true;
}

void lattices_skip(lattice_window *w)
{
    w->text_used = w->count = 0;
}

void lattices_attach(lattice_window *w, dgm_input *inputs, size_t count)
{
    const char *at = w->text;
    for (size_t i = 0; w->file && i < count; i++) {
        if (!w->lines[i].text) continue;
        w->lines[i].text = at;
        inputs[i].lattice = &w->lines[i];
        at += w->lines[i].size;
    }
}

bool lattices_complete(lattice_window *w, bool quiet)
{
    dgm_lattice_text l = {0};
    dgm_error error;
    if (!w->file) return true;
    if (w->ended) return false;
    if (dgm_lattices_next(w->file, &l, &error) != DGM_OK) {
        fail(EXIT_RUNTIME, "%s", error.text);
        return false;
    }
    if (l.text && !quiet) warn("there are more lattices than lines of input: the rest is not used");
    return true;
}

void lattices_free(lattice_window *w)
{
    dgm_lattices_close(&w->file);
    free(w->text);
    free(w->lines);
}
