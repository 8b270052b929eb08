// SPDX-License-Identifier: MIT
// Devices: opening one, what it can do, weights on it, and the memory of its workers.
//
// Operations are in ops.h and rank.h, counters in meter.h; what a device implements is in
// backend_ops.h. Devices are found by name in registry.c:
//
//   cpu[:LEVEL]   this machine, with at most the named instruction set (c, avx2, ...)
//   cuda[:N]      a GPU; the code is a shared object, libdragoman-cuda.so, opened when asked for
//   NAME[:UNIT]   any other shared object libdragoman-NAME.so
#ifndef DGM_BACKEND_DEVICE_H
#define DGM_BACKEND_DEVICE_H

#include "backend/types.h"
#include "format/gguf.h"

// ---- device -----------------------------------------------------------------------------------

enum { DGM_DEVICE_NAME = 64 };

// What callers choose their sizes by.
typedef struct dgm_backend_props {
    char name[DGM_DEVICE_NAME]; // as dgm_backend_open takes it: "cpu:avx2", "cuda:0"
    char title[128];            // what people call it
    uint64_t memory;            // bytes that weights and workers can live in,
    uint64_t memory_free;       // and how much of it is free now
    bool host_memory;           // it is the host's: what workers take of both comes out of one
    unsigned precisions;        // of products: bits 1 << dgm_precision; 0: it cannot be used, opening it says why
    bool i8_as_f16;             // layers of i8 may be multiplied as f16: what they multiply has to fit
    // Tokens that an encoder takes in one go, so that activations stay close: with attention (and a
    // decoder that fills in whole sentences), and word by word over many sentences at once.
    int encode_tokens, encode_tokens_recurrent;
    // Longest list of candidates whose columns are worth gathering (dgm_op_gather_columns); longer
    // ones are picked out of the whole layer, with the same bits.
    int gather_max;
    bool keeps_lists; // of centroids (dgm_centroids_lists)
    // What suits the device where nobody asks for anything.
    dgm_precision usual; // of products; DGM_PRECISION_COUNT: what the model's file recommends
    int workers;         // that keep it busy; 0: one for each core
    int batch_tokens, batch_sentences; // of each of them (engine/budget.c)
    uint64_t worker_bytes; // of its memory that a worker takes beside what it is opened with
} dgm_backend_props;

// unit: what may also stand behind the colon of the name; NULL: that, else the best.
dgm_status dgm_backend_open(dgm_backend **b, const char *name, const char *unit, dgm_error *err);
void dgm_backend_close(dgm_backend **b); // sets NULL; accepts NULL inside
const dgm_backend_props *dgm_backend_properties(const dgm_backend *b);
// DGM_ERR_UNSUPPORTED with a sentence that names what the device has, where it lacks a precision.
dgm_status dgm_backend_supports(const dgm_backend *b, dgm_precision precision, dgm_error *err);
// "cpu avx512: gemm_f32_avx512 ..." into buffer.
const char *dgm_backend_describe(const dgm_backend *b, char *buffer, size_t size);
// Which variant of its kernel each shape (inputs x outputs) of the layers that are loaded takes for how many rows:
// "i8 512x512 512x2048: vnni to 3 rows, amx from 4". "" on a device that has no such table.
const char *dgm_backend_variants(dgm_backend *b, char *buffer, size_t size);

// Device number `index` of this machine: false behind the last. *broken: there is a shared object
// for it that cannot be used, `why` says the reason, and of the properties only the name is set.
bool dgm_backend_probe(int index, dgm_backend_props *props, bool *broken, dgm_error *why);
// Opens what settings name. device: NULL or "" is the CPU, "auto" the first device beside it with
// `need` bytes free beside what its workers take, else the CPU. level: of the CPU; NULL: DRAGOMAN_CPU, else the best.
dgm_status dgm_device_open(dgm_backend **b, const char *device, const char *level, uint64_t need,
                           dgm_error *err);

// ---- weights ----------------------------------------------------------------------------------

// One linear layer, or several of equal input width stacked into one product (q, k, v).
typedef struct dgm_linear_part {
    const dgm_tensor *weight; // [rows, cols]
    const float *bias;        // [rows] or NULL
    float input_scale; // with dgm_backend_static: scale of the input rows in 127 steps; 0: none known
    // Of the first part: what all of them together are packed to in the file, and in which layout; NULL: nothing is. A
    // device takes it for the weights where layout and numbers agree, and packs them itself where not. The file must
    // then outlive the layer.
    const dgm_tensor *packed;
    const char *layout;
} dgm_linear_part;

// Layers of i8 as a CPU of this level packs them, for files (docs/internals/FORMAT.md, 1.3): the layout's name (NULL:
// there is no such level), the bytes of a layer, and a layer. All levels have one layout so far.
const char *dgm_packed_layout(const char *level, dgm_error *err);
size_t dgm_packed_size(int rows, int cols);
dgm_status dgm_packed_fill(const dgm_linear_part *parts, int count, void *out, dgm_error *err);

// From now on layers are loaded with the static scales of their parts, where all have one: i8 and
// i16 products then round their input by it instead of by each row's maximum. Off at first.
void dgm_backend_static(dgm_backend *b, bool on);

// How sigmoid and tanh of gates and of dgm_op_act are computed; products' own activations stay
// polynomials. Before a worker is opened. DGM_ACTIVATIONS_LIBM is scalar: a benchmark's baseline.
typedef enum dgm_activations {
    DGM_ACTIVATIONS_POLYNOMIAL = 0, // the first state
    DGM_ACTIVATIONS_TABLE,
    DGM_ACTIVATIONS_LIBM
} dgm_activations;

void dgm_backend_activations(dgm_backend *b, dgm_activations how);

dgm_status dgm_linear_load(dgm_backend *b, const dgm_linear_part *parts, int count,
                           dgm_precision precision, dgm_linear **out, dgm_error *err);
void dgm_linear_free(dgm_backend *b, dgm_linear **l); // accepts NULL inside
int dgm_linear_rows(const dgm_linear *l);             // outputs
int dgm_linear_cols(const dgm_linear *l);             // inputs
size_t dgm_linear_bytes(const dgm_linear *l);         // packed size
// From now on rank takes outputs named by a list that is not gathered from rows of weights that lie
// side by side, not from packed panels: for lists that change from step to step. Stored rows of the
// layer's own precision are used where they are (their file must stay open); else a copy is made
// and the packed form given back. Before a worker is opened.
dgm_status dgm_linear_by_rows(dgm_backend *b, dgm_linear *l, dgm_error *err);
// The tensors that part 0, 1, ... came from, for as long as their file is open; NULL at the end.
const dgm_tensor *dgm_linear_tensor(const dgm_linear *l, int part);

// The tensor's data must outlive the embedding (it stays in the mapped file).
dgm_status dgm_embedding_load(dgm_backend *b, const dgm_tensor *table, dgm_embedding **out,
                              dgm_error *err);
void dgm_embedding_free(dgm_backend *b, dgm_embedding **e);

// A copy of host numbers (norms, computed tables such as sinusoids): [rows, cols] row-major.
dgm_status dgm_vector_from(dgm_backend *b, const float *data, int rows, int cols, dgm_vector **out,
                           dgm_error *err);
void dgm_vector_free(dgm_backend *b, dgm_vector **v);

// Centroids of hidden vectors: f16 [count, width], finite; the tensor's data must outlive them.
dgm_status dgm_centroids_load(dgm_backend *b, const dgm_tensor *centroids, dgm_centroids **out,
                              dgm_error *err);
void dgm_centroids_free(dgm_backend *b, dgm_centroids **c); // accepts NULL inside
size_t dgm_centroids_bytes(const dgm_centroids *c);
// Lists of tokens for the centroids, for devices that keep them (dgm_backend_props.keeps_lists): rank
// then takes them by the centroids' numbers (dgm_joint). bits: for each centroid [(vocabulary + 63) /
// 64]; they may go afterwards.
dgm_status dgm_centroids_lists(dgm_backend *b, dgm_centroids *c, const uint64_t *bits,
                               int vocabulary, dgm_error *err);

// Feed-forward networks of one shape, of which every row is given one or two. Loading reserves
// address space for all of them and packs none: an expert is packed by the first worker that sends
// it a row, while others that want it wait. The tensors must outlive them; pages of `file` (NULL: not
// in a file) are given back.
typedef struct dgm_expert_part {
    dgm_linear_part in, out; // [F, D], [D, F]
} dgm_expert_part;

dgm_status dgm_experts_load(dgm_backend *b, const dgm_gguf *file, const dgm_expert_part *parts,
                            int count, dgm_precision precision, dgm_experts **out, dgm_error *err);
void dgm_experts_free(dgm_backend *b, dgm_experts **e); // accepts NULL inside

struct dgm_experts_use {
    int experts, packed;   // all, and those that have seen a row
    uint64_t bytes;        // of the packed ones
    uint64_t largest;      // bytes if all were packed
};

void dgm_experts_count(const dgm_experts *e, dgm_experts_use *add); // adds to *add

// ---- memory of a worker -------------------------------------------------------------------------

// A worker. bytes: what all the operations and the model states opened on it may take of each memory
// (on a CPU address space; touched pages only cost memory).
dgm_status dgm_exec_open(dgm_backend *b, dgm_bytes bytes, dgm_exec **x, dgm_error *err);
void dgm_exec_close(dgm_exec **x);
dgm_backend *dgm_exec_backend(dgm_exec *x);
// It will have much to do: memory of the host's is to lie on large pages (base/arena.h).
void dgm_exec_large(dgm_exec *x);

// Rows are taken by dgm_exec_mat (types.h); sizes without a second number count device memory.

// Memory for keys and values, which are only scattered to and attended over: integer precisions
// keep them in half precision, since reading them is bound by memory.
dgm_mat dgm_exec_cache(dgm_exec *x, int rows, int cols, dgm_precision precision);
size_t dgm_exec_cache_bytes(const dgm_backend *b, int rows, int cols, dgm_precision precision);

// Keys and values of source sentences, in blocks of DGM_BLOCK_POSITIONS positions that each backend
// lays out as its attention likes to read them. The caller hands out the blocks.
enum { DGM_BLOCK_POSITIONS = 16 };

typedef struct dgm_blocks {
    void *data;   // device; NULL when the arena is full
    size_t block; // elements of one block
    int elem;     // bytes of an element
    int heads, dk, dv;
} dgm_blocks;

dgm_blocks dgm_exec_blocks(dgm_exec *x, int count, int heads, int dk, int dv,
                           dgm_precision precision);
size_t dgm_exec_blocks_bytes(const dgm_backend *b, int count, int heads, int dk, int dv,
                             dgm_precision precision);

// Where both memories stand; a reset gives back what was taken since, of both.
typedef struct dgm_mark {
    size_t host, device;
} dgm_mark;

dgm_mark dgm_exec_mark(dgm_exec *x);
void dgm_exec_reset(dgm_exec *x, dgm_mark mark);
dgm_bytes dgm_exec_peak(const dgm_exec *x);

#endif
