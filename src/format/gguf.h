// SPDX-License-Identifier: MIT
// The GGUF v3 container (docs/internals/FORMAT.md, section 1): reader and writer.
//
//     | magic version counts | metadata: key type value ... | tensor infos | pad | tensor data ...
//     |
//
// Reader. Opening checks everything: every length and offset against the file, names, types,
// alignment, overlap, scales. After that a look-up can only fail because a key or tensor is
// absent, or is not what the caller asks for; the message then names it. An open file is immutable
// and may be used from many threads. Tensor data and byte arrays are views into the mapped file,
// strings and number arrays are copies owned by the dgm_gguf (GGUF does not align them); all
// stay valid until dgm_gguf_close.
//
//     uint32_t beam = 4;                                             // default stays if absent
//     DGM_TRY(dgm_gguf_get_u32(g, "dragoman.decode.beam", DGM_OPTIONAL, 1, 1024, &beam, err));
//     DGM_TRY(dgm_gguf_matrix(g, "enc.0.ffn.in.weight", F, D, DGM_REQUIRED, &t, err));
//
// Writer. Values are copied when they are set, tensor data is borrowed (or produced by a callback)
// while the file is written. Setters remember the first failure; dgm_gguf_write reports it.
//
// What the keys of a translation model mean is modelfile.h's business, not this header's.
#ifndef DGM_FORMAT_GGUF_H
#define DGM_FORMAT_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

#define DGM_GGUF_MAX_ENTRIES 65536 // metadata entries, and tensors
#define DGM_GGUF_MAX_NAME 255      // bytes of a key or tensor name
#define DGM_GGUF_MAX_DIMS 4

// GGUF's own numbers.
typedef enum dgm_meta_type {
    DGM_META_U8 = 0,
    DGM_META_I8 = 1,
    DGM_META_U16 = 2,
    DGM_META_I16 = 3,
    DGM_META_U32 = 4,
    DGM_META_I32 = 5,
    DGM_META_F32 = 6,
    DGM_META_BOOL = 7,
    DGM_META_STRING = 8,
    DGM_META_ARRAY = 9,
    DGM_META_U64 = 10,
    DGM_META_I64 = 11,
    DGM_META_F64 = 12,
    DGM_META_COUNT = 13
} dgm_meta_type;

typedef enum dgm_tensor_type {
    DGM_TYPE_F32 = 0,
    DGM_TYPE_F16 = 1,
    DGM_TYPE_I8 = 24,
    DGM_TYPE_I16 = 25,
    DGM_TYPE_I32 = 26,
    DGM_TYPE_BF16 = 30
} dgm_tensor_type;

const char *dgm_meta_type_name(int type);   // "u32"; "?" if unknown
const char *dgm_tensor_type_name(int type); // "f32", "i8", ...; "?" if unknown
size_t dgm_tensor_type_size(int type);      // bytes of an element; 0 if unknown

// Text that is not NUL-terminated: a view into the file.
typedef struct dgm_gguf_text {
    const char *data;
    size_t size;
} dgm_gguf_text;

// A tensor of an open file. Matrices are [rows, cols], cols contiguous. A vector has n_dims 1,
// rows 1 and cols = its length. With more dimensions rows is the product of all but the last.
typedef struct dgm_tensor {
    const char *name; // NUL-terminated
    int type;         // dgm_tensor_type; another number: a type this program cannot read
    int n_dims;
    int shape[DGM_GGUF_MAX_DIMS]; // slowest first: {rows, cols} of a matrix, {n} of a vector
    int rows, cols;
    const void *data; // aligned to general.alignment (at least 8); NULL if type is unknown
    size_t bytes;
    const struct dgm_tensor *scale; // i8: f32 [rows], i16: f32 [1]; NULL for the other types
} dgm_tensor;

// One metadata entry, for listing (`inspect`). Use the getters for anything else.
typedef struct dgm_meta {
    const char *key;    // NUL-terminated
    int type;           // dgm_meta_type
    int elem_type;      // of an array
    uint64_t count;     // elements of an array; 1 otherwise
    const uint8_t *raw; // the value's bytes in the file; of a string or array: its contents
    size_t raw_size;
    const void *values; // string: NUL-terminated copy; number array: aligned copy; else NULL
} dgm_meta;

typedef struct dgm_gguf dgm_gguf;

typedef enum dgm_need {
    DGM_OPTIONAL = 0, // absent: DGM_OK and the output keeps its old value
    DGM_REQUIRED = 1  // absent: DGM_ERR_FORMAT
} dgm_need;

// ---- reading ----------------------------------------------------------------------------------

// On success *g owns the mapping. Messages start with the path.
dgm_status dgm_gguf_open(dgm_gguf **g, const char *path, dgm_error *err);
// data stays the caller's and must outlive *g; aligned to 8 bytes at least.
dgm_status dgm_gguf_open_memory(dgm_gguf **g, const void *data, size_t size, dgm_error *err);
void dgm_gguf_close(dgm_gguf **g); // sets *g to NULL; accepts NULL inside

// Gives the mapped pages that were read so far back to the system, e.g. after packing a tensor: the
// views stay valid and are read again when touched.
void dgm_gguf_forget(const dgm_gguf *g);
void dgm_gguf_forget_tensor(const dgm_gguf *g, const dgm_tensor *t); // the pages of t alone

const char *dgm_gguf_path(const dgm_gguf *g); // or words for messages
size_t dgm_gguf_size(const dgm_gguf *g);      // bytes of the file
uint32_t dgm_gguf_alignment(const dgm_gguf *g);

// Metadata, in file order: 0 <= i < count.
int dgm_gguf_meta_count(const dgm_gguf *g);
const dgm_meta *dgm_gguf_meta(const dgm_gguf *g, int i);
const dgm_meta *dgm_gguf_find(const dgm_gguf *g, const char *key); // NULL if absent

// Typed getters. A wrong type or a value outside [min, max] is DGM_ERR_FORMAT; the message names
// the key, the found and the allowed values. See dgm_need for an absent key.
dgm_status dgm_gguf_get_u32(const dgm_gguf *g, const char *key, dgm_need need, uint32_t min,
                            uint32_t max, uint32_t *out, dgm_error *err);
dgm_status dgm_gguf_get_i32(const dgm_gguf *g, const char *key, dgm_need need, int32_t min,
                            int32_t max, int32_t *out, dgm_error *err);
// NaN and infinities are out of every range.
dgm_status dgm_gguf_get_f32(const dgm_gguf *g, const char *key, dgm_need need, float min, float max,
                            float *out, dgm_error *err);
dgm_status dgm_gguf_get_bool(const dgm_gguf *g, const char *key, dgm_need need, bool *out,
                             dgm_error *err);
// NUL-terminated, owned by g. A string with a NUL inside is an error.
dgm_status dgm_gguf_get_string(const dgm_gguf *g, const char *key, dgm_need need, const char **out,
                               dgm_error *err);
// names: allowed values, NULL-terminated; *out becomes the index of the value.
dgm_status dgm_gguf_get_enum(const dgm_gguf *g, const char *key, dgm_need need,
                             const char *const *names, int *out, dgm_error *err);
// Arrays. Every element is checked against [min, max].
dgm_status dgm_gguf_get_i32s(const dgm_gguf *g, const char *key, dgm_need need, int32_t min,
                             int32_t max, const int32_t **out, size_t *count, dgm_error *err);
dgm_status dgm_gguf_get_u32s(const dgm_gguf *g, const char *key, dgm_need need, uint32_t min,
                             uint32_t max, const uint32_t **out, size_t *count, dgm_error *err);
dgm_status dgm_gguf_get_f32s(const dgm_gguf *g, const char *key, dgm_need need, const float **out,
                             size_t *count, dgm_error *err);
dgm_status dgm_gguf_get_bytes(const dgm_gguf *g, const char *key, dgm_need need,
                              const uint8_t **out, size_t *count, dgm_error *err);

// String arrays are walked:
//     dgm_gguf_strings it = {0};
//     DGM_TRY(dgm_gguf_get_strings(g, key, DGM_OPTIONAL, &it, err));
//     for (dgm_gguf_text s; dgm_gguf_strings_next(&it, &s);) ...
typedef struct dgm_gguf_strings {
    const uint8_t *pos;
    uint64_t count; // elements left
} dgm_gguf_strings;

dgm_status dgm_gguf_get_strings(const dgm_gguf *g, const char *key, dgm_need need,
                                dgm_gguf_strings *out, dgm_error *err);
bool dgm_gguf_strings_next(dgm_gguf_strings *it, dgm_gguf_text *out); // false at the end

// Tensors, in file order: 0 <= i < count.
int dgm_gguf_tensor_count(const dgm_gguf *g);
const dgm_tensor *dgm_gguf_tensor(const dgm_gguf *g, int i);
const dgm_tensor *dgm_gguf_find_tensor(const dgm_gguf *g, const char *name); // NULL if absent

// A weight matrix of two dimensions and type f32, f16, bf16, i8 or i16 (the last two with scale).
// rows or cols -1: any. Absent and optional: *out = NULL.
dgm_status dgm_gguf_matrix(const dgm_gguf *g, const char *name, int rows, int cols, dgm_need need,
                           const dgm_tensor **out, dgm_error *err);
// An f32 vector of one dimension; size -1: any. *out points at its values.
dgm_status dgm_gguf_vector(const dgm_gguf *g, const char *name, int size, dgm_need need,
                           const float **out, dgm_error *err);
// An i32 table of one dimension (size -1: any), elements checked against [min, max].
dgm_status dgm_gguf_table(const dgm_gguf *g, const char *name, int size, int32_t min, int32_t max,
                          dgm_need need, const int32_t **out, int *count, dgm_error *err);

// Real values of one row, or of all rows, of a tensor that dgm_gguf_matrix or _vector accepts.
void dgm_tensor_row_f32(const dgm_tensor *t, int row, float *out); // out [cols]
void dgm_tensor_to_f32(const dgm_tensor *t, float *out);           // out [rows, cols]

// ---- writing ----------------------------------------------------------------------------------

typedef struct dgm_gguf_writer dgm_gguf_writer;

dgm_status dgm_gguf_writer_open(dgm_gguf_writer **w, dgm_error *err);
void dgm_gguf_writer_close(dgm_gguf_writer **w); // sets *w to NULL; accepts NULL inside

// Setting a key a second time replaces the value. general.alignment is the writer's own (64).
void dgm_gguf_set_u8(dgm_gguf_writer *w, const char *key, uint8_t v);
void dgm_gguf_set_i8(dgm_gguf_writer *w, const char *key, int8_t v);
void dgm_gguf_set_u16(dgm_gguf_writer *w, const char *key, uint16_t v);
void dgm_gguf_set_i16(dgm_gguf_writer *w, const char *key, int16_t v);
void dgm_gguf_set_u32(dgm_gguf_writer *w, const char *key, uint32_t v);
void dgm_gguf_set_i32(dgm_gguf_writer *w, const char *key, int32_t v);
void dgm_gguf_set_u64(dgm_gguf_writer *w, const char *key, uint64_t v);
void dgm_gguf_set_i64(dgm_gguf_writer *w, const char *key, int64_t v);
void dgm_gguf_set_f32(dgm_gguf_writer *w, const char *key, float v);
void dgm_gguf_set_f64(dgm_gguf_writer *w, const char *key, double v);
void dgm_gguf_set_bool(dgm_gguf_writer *w, const char *key, bool v);
void dgm_gguf_set_string(dgm_gguf_writer *w, const char *key, const char *v);
// values: native numbers of elem_type (not string, not array); strings have their own function.
void dgm_gguf_set_array(dgm_gguf_writer *w, const char *key, dgm_meta_type elem_type,
                        const void *values, size_t count);
void dgm_gguf_set_strings(dgm_gguf_writer *w, const char *key, const char *const *v, size_t count);
// One entry of an open file, or all of them that are not set yet.
void dgm_gguf_set_copy(dgm_gguf_writer *w, const dgm_meta *meta);
void dgm_gguf_set_copies(dgm_gguf_writer *w, const dgm_gguf *g);
void dgm_gguf_unset(dgm_gguf_writer *w, const char *key);

// shape: slowest first, n_dims numbers. data is borrowed until dgm_gguf_write has returned.
void dgm_gguf_add_tensor(dgm_gguf_writer *w, const char *name, dgm_tensor_type type, int n_dims,
                         const int *shape, const void *data);
// produce is called once while writing and fills all `bytes` of out (64-byte aligned).
typedef dgm_status (*dgm_gguf_produce)(void *arg, void *out, size_t bytes, dgm_error *err);
void dgm_gguf_add_produced(dgm_gguf_writer *w, const char *name, dgm_tensor_type type, int n_dims,
                           const int *shape, dgm_gguf_produce produce, void *arg);
// The same a few rows at a time: a row is the last dimension. out: rows [first, first + rows).
typedef dgm_status (*dgm_gguf_produce_rows)(void *arg, int first, int rows, void *out,
                                            dgm_error *err);
void dgm_gguf_add_rows(dgm_gguf_writer *w, const char *name, dgm_tensor_type type, int n_dims,
                       const int *shape, dgm_gguf_produce_rows produce, void *arg);

// Called while the file is written, with the share of it that is done; a failure ends the writing.
typedef dgm_status (*dgm_gguf_watch)(void *arg, double share, dgm_error *err);
void dgm_gguf_watch_writing(dgm_gguf_writer *w, dgm_gguf_watch watch, void *arg);

// Writes through a temporary neighbour and rename: a reader never sees half a file. Reports the
// first failed setter, too. The same calls give the same bytes.
dgm_status dgm_gguf_write(dgm_gguf_writer *w, const char *path, dgm_error *err);
// What was set so far, without tensors: bytes of a file that dgm_gguf_open_memory reads.
dgm_status dgm_gguf_metadata(const dgm_gguf_writer *w, dgm_writer *out, dgm_error *err);

#endif
