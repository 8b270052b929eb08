// SPDX-License-Identifier: MIT
// `translate --lattice`: the lattices of the lines of a window, kept until it is submitted.
#ifndef DGM_APPS_CLI_TRANSLATE_LATTICES_H
#define DGM_APPS_CLI_TRANSLATE_LATTICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dragoman/tools.h"

// Start with all zero but file.
typedef struct lattice_window {
    dgm_lattices *file; // NULL: there are none
    bool ended;         // before the input: the rest is translated without
    char *text;         // of all lattices, back to back
    size_t text_used, text_cap;
    dgm_lattice_text *lines;
    size_t count, cap;
} lattice_window;

// NULL after a message.
dgm_lattices *lattices_open(const char *path);
// The lattice of the window's next line. Adds it to the checksum. False after a message.
bool lattices_add(lattice_window *w, uint32_t *sum);
void lattices_skip(lattice_window *w); // forgets the lines added
// Points inputs[i] at the lattice of the window's i-th line, until the next lattices_add.
void lattices_attach(lattice_window *w, dgm_input *inputs, size_t count);
// Are there as many lattices as lines? False after a message.
bool lattices_complete(lattice_window *w, bool quiet);
void lattices_free(lattice_window *w);

#endif
