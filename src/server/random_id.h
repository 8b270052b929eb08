// SPDX-License-Identifier: MIT
// Random names that nobody can find by trying: of files, documents and glossaries.
#ifndef DGM_SERVER_RANDOM_ID_H
#define DGM_SERVER_RANDOM_ID_H

#include <stddef.h>

enum { DGM_UUID = 36 };

void dgm_random_uuid(char out[DGM_UUID + 1]); // "0b7e8a6e-..."
void dgm_random_hex(char *out, size_t digits); // capitals, and a NUL behind them; an even number, at most 64

#endif
