// SPDX-License-Identifier: MIT
// Files that the settings of a model name. A model comes from strangers: its settings may name files of its own folder,
// none elsewhere. Whoever imports names others by options.
#ifndef DGM_IMPORT_NAMED_FILE_H
#define DGM_IMPORT_NAMED_FILE_H

#include <stdbool.h>

#include "base/status.h"

// The file in the folder `root` or below that `name` means: a path as it stands, from the folder on (first, if
// `relative`) or from where the program runs; else, since names often belong to the machine of the training, the file
// of the same last part in the folder, also where packed files (.gz) were unpacked there. *path is to be freed with
// dgm_free; NULL: there is none.
dgm_status dgm_named_file(const char *root, const char *name, bool relative, char **path, dgm_error *err);

#endif
