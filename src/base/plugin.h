// SPDX-License-Identifier: MIT
// Shared objects libdragoman-KIND.so with what not every machine has: devices, readers. The library itself needs
// nothing of theirs. They are looked for in
//
//     $DRAGOMAN_PLUGINS                  folders with a colon between them; nowhere else if it is set
//     the folder of this library or program, and ../lib from there
//     the folder that `make install` puts libraries into
#ifndef DGM_BASE_PLUGIN_H
#define DGM_BASE_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

// The path of one; false: there is none.
bool dgm_plugin_find(const char *kind, char *path, size_t size);
const char *dgm_plugin_where(void); // "in the folders of DRAGOMAN_PLUGINS": for a message that there is none
// Opens it and finds a function by its name, for memcpy into a pointer to one: ISO C has no cast. It stays open: its
// code may be on some thread's stack. noun: what it is to be, for messages ("device").
dgm_status dgm_plugin_load(const char *path, const char *function, const char *noun, const char *kind, void **symbol,
                           dgm_error *err);

#endif
