// SPDX-License-Identifier: MIT
// Packages that models are published in, as a folder of our own beside the output.
#ifndef DGM_IMPORT_UNPACK_H
#define DGM_IMPORT_UNPACK_H

#include "base/status.h"

// Makes a folder beside `output` and unpacks the files of a zip archive into it, without their folders.
dgm_status dgm_unpack_zip(const char *path, const char *output, char **folder, dgm_error *err);
// The same for a folder with .gz files: those are unpacked, links lead to the others.
dgm_status dgm_unpack_gz(const char *path, const char *output, char **folder, dgm_error *err);
void dgm_unpack_remove(char **folder); // with everything in it; sets NULL, accepts NULL inside

#endif
