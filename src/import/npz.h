// SPDX-License-Identifier: MIT
// numpy's files: one array with a header (.npy), and zip archives of them (.npz), as Marian and Nematus
// write their models.
//
//     \x93NUMPY, u8 major, u8 minor, header size (u16 in version 1, u32 in 2 and 3), header, data
//     header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
#ifndef DGM_IMPORT_NPZ_H
#define DGM_IMPORT_NPZ_H

#include "import/store.h"

typedef struct dgm_npy {
    char descr[16]; // "<f4"
    dgm_stored_type type;
    size_t element; // bytes of one; 1 where that is not known (objects)
    bool fortran_order;
    int n_dims;
    int shape[DGM_STORE_MAX_DIMS];
    size_t data; // where the data begin
} dgm_npy;

// Parses the beginning of a file: of `have` bytes or, if that is too little, *need are asked for, which is
// 0 otherwise.
dgm_status dgm_npy_header(dgm_npy *out, const void *begin, size_t have, size_t *need,
                          dgm_error *err);

// Tensors are named as the members, without ".npy". Messages name the path.
dgm_status dgm_npz_open(dgm_store **s, const char *path, dgm_error *err);
dgm_status dgm_npz_open_memory(dgm_store **s, const void *data, size_t size, dgm_error *err);

#endif
