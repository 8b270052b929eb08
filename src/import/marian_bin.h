// SPDX-License-Identifier: MIT
// Marian's binary model files (.bin), little-endian:
//
//     u64 version = 1, u64 n
//     n times: u64 bytes of the name with its NUL, u64 type, u64 dimensions, u64 bytes of the data
//     names, each with a NUL; i32 shapes; u64 bytes of padding, padding; data
//
// Types are those of marian-dev and of the fork that Bergamot and Firefox use. A matrix for intgemm is
// integers and, behind them, one f32: real = integer / f32. Matrices that are packed for one kind of
// processor are refused.
#ifndef DGM_IMPORT_MARIAN_BIN_H
#define DGM_IMPORT_MARIAN_BIN_H

#include "import/store.h"

dgm_status dgm_marian_bin_open(dgm_store **s, const char *path, dgm_error *err);
dgm_status dgm_marian_bin_open_memory(dgm_store **s, const void *data, size_t size, dgm_error *err);

// A matrix of Marian's, from a .bin or .npz file, as our files hold it, [out, in]. weight: Marian calls it
// [in, out]; rows: Marian calls it [out, in], too (Wemb, and names that end in _Wt).
dgm_view dgm_marian_weight(dgm_store *s, const dgm_stored *t);
dgm_view dgm_marian_rows(dgm_store *s, const dgm_stored *t);
bool dgm_marian_quantised(const dgm_stored *t); // for intgemm

#endif
