// SPDX-License-Identifier: MIT
// Named tensors of another program's file, whatever holds them: safetensors, npz, Marian's and
// CTranslate2's files, pickles. A container's reader fills a store; importers look tensors up by name
// and take views of them, so that the rows of an output matrix are made a few at a time.
#ifndef DGM_IMPORT_STORE_H
#define DGM_IMPORT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/status.h"

#define DGM_STORE_MAX_DIMS 8

typedef enum dgm_stored_type {
    DGM_STORED_OTHER = 0, // known by size only
    DGM_STORED_F64,
    DGM_STORED_F32,
    DGM_STORED_F16,
    DGM_STORED_BF16,
    DGM_STORED_I8,
    DGM_STORED_I16,
    DGM_STORED_I32,
    DGM_STORED_I64
} dgm_stored_type;

typedef struct dgm_stored {
    const char *name;
    const char *dtype; // as the file spells it
    dgm_stored_type type;
    int n_dims;
    int shape[DGM_STORE_MAX_DIMS];
    int rows, cols;      // cols: last dimension; rows: product of the others (1 without any)
    // From one row or column to the next, in elements; what lies in order has (cols, 1). When it is added: both 0
    // for that.
    size_t row_step, col_step;
    const uint8_t *data; // unaligned; NULL: dgm_store_data asks the container for it
    size_t bytes;        // of all elements
    uint64_t where; // for the container
} dgm_stored;

typedef struct dgm_store dgm_store;

// What a store needs of its container. load: all bytes of a tensor without data; NULL where all have.
typedef struct dgm_store_container {
    void *self;
    void (*close)(void *self);
    dgm_status (*load)(void *self, const dgm_stored *t, void *out, dgm_error *err);
} dgm_store_container;

// ---- for containers ----------------------------------------------------------------------------

// The store takes over the container, and closes it also when this fails.
dgm_status dgm_store_open(dgm_store **s, dgm_store_container container, dgm_error *err);
void dgm_store_close(dgm_store **s); // sets *s to NULL; accepts NULL inside
// Adds a tensor whose name, dtype, type, n_dims and shape are set: fills rows, cols and bytes (element:
// bytes of one) and checks them, refuses a name that is there. Strings are borrowed from the container.
dgm_status dgm_store_add(dgm_store *s, dgm_stored t, size_t element, dgm_error *err);

// ---- for importers -----------------------------------------------------------------------------

size_t dgm_store_count(const dgm_store *s);
const dgm_stored *dgm_store_get(const dgm_store *s, size_t i);
int dgm_store_find(const dgm_store *s, const char *name); // -1: absent
// The tensor's bytes, unaligned. What the container had to load stays until the next one is loaded.
dgm_status dgm_store_data(dgm_store *s, const dgm_stored *t, const uint8_t **data, dgm_error *err);
bool dgm_stored_is_real(dgm_stored_type type); // f64, f32, f16, bf16

// A matrix inside a tensor: some of its rows, or its transpose. Steps are counted in elements.
typedef struct dgm_view {
    dgm_store *store;
    const dgm_stored *t;
    int rows, cols;
    size_t first, row_step, col_step;
    // Integers that stand for real numbers: real = integer / divisor of its row. f32, unaligned; NULL: none.
    const uint8_t *divisors;
    int divisor_step; // 0: one for all rows, 1: one a row
    // Beside divisors, where 1 / divisor is not the factor that was meant: real = integer * factor of its row.
    const uint8_t *factors; // f32, unaligned, one a row; NULL: none
} dgm_view;

dgm_view dgm_view_whole(dgm_store *s, const dgm_stored *t);
dgm_view dgm_view_transposed(dgm_view v); // without divisors
dgm_view dgm_view_rows(dgm_view v, int first, int rows);
// Row `first` and `rows - 1` behind it. out [rows, cols]
dgm_status dgm_view_read(const dgm_view *v, int first, int rows, float *out, dgm_error *err);
dgm_status dgm_view_read_i8(const dgm_view *v, int first, int rows, int8_t *out, dgm_error *err);
float dgm_view_divisor(const dgm_view *v, int row); // 1 without divisors
float dgm_view_factor(const dgm_view *v, int row);  // what integers of a row are multiplied by

#endif
