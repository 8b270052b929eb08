// SPDX-License-Identifier: MIT
// model.bin of CTranslate2, binary versions 1 to 6: named variables and aliases of them, as a store.
//
//     u32 version; from 2 on: string specification, u32 revision
//     u32 count, variables: string name, u8 rank, u32 dims[rank], then
//         from 4 on: u8 type (0 f32, 1 i8, 2 i16, 3 i32, 4 f16, 5 bf16), u32 bytes
//         before:    u8 bytes of an element (4 f32, 2 i16, 1 i8), u32 elements
//       and the values, not aligned
//     from 3 on: u32 count, aliases: string alias, string name
//
// A string is its size with a final NUL in u16, and the bytes. Revision 1 has the names that OpenNMT-tf gave its
// variables; they get those of later revisions here.
#ifndef DGM_IMPORT_CT2_MODEL_H
#define DGM_IMPORT_CT2_MODEL_H

#include "base/mapfile.h"
#include "import/store.h"

enum { DGM_CT2_VERSION = 6, DGM_CT2_REVISION = 7 }; // the latest that are known

typedef struct dgm_ct2_head {
    int version, revision;
    char specification[64]; // "TransformerSpec"; "" in version 1
} dgm_ct2_head;

// Aliases share their variable's data; the scale of a variable ("NAME_scale") goes with its alias. Messages name
// variable and byte, not the file. The store takes the mapped file over, and closes it also when this fails.
dgm_status dgm_ct2_open_file(dgm_store **s, dgm_ct2_head *head, dgm_mapfile *file, dgm_error *err);
// data must outlive the store.
dgm_status dgm_ct2_open_memory(dgm_store **s, dgm_ct2_head *head, const void *data, size_t size,
                               dgm_error *err);

#endif
