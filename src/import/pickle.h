// SPDX-License-Identifier: MIT
// Python's pickles, read without running anything.
//
// A pickle is a program for a small stack machine that may name any function of any module and have it called. This
// reader knows the machine's instructions of protocols 2 to 5 but calls nothing: what a pickle would make by a call
// becomes a record of the name and its arguments, and only names of the list in pickle_names.c are accepted. Any
// other name is refused with that name. Values live until the pickle is freed; strings are views into the input.
#ifndef DGM_IMPORT_PICKLE_H
#define DGM_IMPORT_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "import/store.h"

typedef enum dgm_py_role {
    DGM_PY_RECORD = 0, // only carried along
    DGM_PY_TENSOR,     // torch's function that makes one: storage, offset, sizes, strides, ...
    DGM_PY_PARAMETER,  // wraps a tensor
    DGM_PY_STORAGE,    // a type of storage
    DGM_PY_MAPPING,    // a dictionary by another name
    DGM_PY_NAMESPACE,  // its state is a dictionary of settings
    DGM_PY_CONTAINER,  // of omegaconf: its state has "_content"
    DGM_PY_NODE        // of omegaconf: its state has "_val"
} dgm_py_role;

// A row of the list of names.
typedef struct dgm_py_name {
    const char *module, *name;
    dgm_py_role role;
    dgm_stored_type type; // of a storage
    const char *dtype;    // its name
    size_t element;       // bytes of one
} dgm_py_name;

const dgm_py_name *dgm_py_name_find(dgm_text module, dgm_text name); // NULL: not on the list

typedef enum dgm_py_kind {
    DGM_PY_NONE,
    DGM_PY_BOOL,
    DGM_PY_INT,
    DGM_PY_BIG, // an integer of more than 64 bits: its bytes
    DGM_PY_REAL,
    DGM_PY_TEXT,
    DGM_PY_BYTES,
    DGM_PY_LIST,
    DGM_PY_TUPLE,
    DGM_PY_SET,
    DGM_PY_DICT, // keys and values in turn
    DGM_PY_NAME,
    DGM_PY_OBJECT,
    DGM_PY_PERSISTENT
} dgm_py_kind;

typedef struct dgm_py dgm_py;
struct dgm_py {
    dgm_py_kind kind;
    union {
        int64_t integer;
        double real;
        dgm_text text;
        struct {
            dgm_py **items;
            size_t count, cap;
        } list;
        const dgm_py_name *name;
        struct {
            const dgm_py_name *name; // what would have been called
            dgm_py *args, *state, *items;
        } object;
        dgm_py *id; // of something that is stored elsewhere
    } as;
};

typedef struct dgm_pickle {
    struct dgm_pickle_block *blocks;
    size_t bytes;
    dgm_py **persistent; // every id that was met
    size_t persistent_count, persistent_cap;
} dgm_pickle;

// One pickle at the beginning of data; *used: its bytes. May be called again for another with the same memory.
// Messages say at which byte.
dgm_status dgm_pickle_read(dgm_pickle *p, const void *data, size_t size, size_t *used,
                           const dgm_py **root, dgm_error *err);
void dgm_pickle_free(dgm_pickle *p); // accepts all zero
// Memory that lives as long as the values. NULL: none left, or more than a pickle may have.
void *dgm_pickle_alloc(dgm_pickle *p, size_t bytes);

// ---- looking at values -------------------------------------------------------------------------

// Entries of a dictionary, an OrderedDict, a Namespace, a container of omegaconf; 0 for anything else.
size_t dgm_py_pairs(const dgm_py *v);
bool dgm_py_pair(const dgm_py *v, size_t i, const dgm_py **key, const dgm_py **value);
const dgm_py *dgm_py_get(const dgm_py *v, const char *key); // NULL: absent, None, or v holds nothing
size_t dgm_py_count(const dgm_py *v);                       // of a list or tuple, else 0
const dgm_py *dgm_py_item(const dgm_py *v, size_t i);       // NULL behind the end
bool dgm_py_is_text(const dgm_py *v, const char *text);
// Settings, in the manner of dgm_json_int: absent keeps *out; another type is an error that names the key.
dgm_status dgm_py_int(const dgm_py *v, const char *key, int64_t min, int64_t max, int64_t *out,
                      dgm_error *err);
dgm_status dgm_py_bool(const dgm_py *v, const char *key, bool *out, dgm_error *err);
dgm_status dgm_py_string(const dgm_py *v, const char *key, dgm_text *out, dgm_error *err);

#endif
