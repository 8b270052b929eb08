// SPDX-License-Identifier: MIT
// Private to backend/cuda: the structures behind the opaque types of backend/types.h, and how
// operations send what the host gives them.
//
// Activations are f32 rows in device memory, whatever the precision: tensor products round them as
// they are loaded. Caches of keys and values are halves except in f32.
#ifndef DGM_BACKEND_CUDA_CUDA_PRIVATE_H
#define DGM_BACKEND_CUDA_CUDA_PRIVATE_H

#include "backend/backend_ops.h"
#include "backend/cuda/kernels_cuda.h"
#include "backend/spans.h"

// device_cuda.c: the table, and a declaration of every function in it.
#define CUDA_OP(result, name, parameters) result cuda_##name parameters;
DGM_BACKEND_OPS(CUDA_OP)
#undef CUDA_OP
extern const dgm_backend_ops cuda_ops;

struct dgm_backend {
    const dgm_backend_ops *ops;
    dgm_backend_props props;
    int device;     // CUDA's number
    int capability; // 90: 9.0
    int processors, shared; // shared: the most memory of a block
    bool static_scales;
    cudaEvent_t epoch; // timer_cuda.c: what times are measured from; NULL: nobody asked
    dgm_spans busy;    // in seconds
};

struct dgm_linear {
    const dgm_backend_ops *ops;
    dgm_precision precision;
    cuda_type type;
    int rows, cols, stride; // [rows, stride] = [out, in], zeros behind cols
    void *data;             // device
    size_t bytes;
    float *bias;       // device, [rows] or NULL
    float *scales;     // device, i8: [rows]
    float input_scale; // i8: of all input rows; 0: each row has its own
    const dgm_tensor **tensors;
};

// The tokens of a list, resident: products read the layer's own rows.
struct dgm_gathered {
    const dgm_backend_ops *ops;
    int32_t *ids; // device
    int capacity, count;
};

struct dgm_paths {
    const dgm_backend_ops *ops;
    const int32_t *first, *length, *entries; // device; entries NULL: rows themselves
    const int32_t *groups;                   // device, without entries: of queries with the same keys
    int rows, group_count;
    bool near; // most rows share keys with the one before
    const int32_t *host_length; // for the sizes of alignments
};

struct dgm_embedding {
    const dgm_backend_ops *ops;
    cuda_table table;
    void *owned[2]; // device
};

struct dgm_vector {
    const dgm_backend_ops *ops;
    int rows, cols;
    float *data; // device
};

struct dgm_centroids {
    const dgm_backend_ops *ops;
    void *rows;         // device: halves [count, width]
    float *half_square; // device: |C|^2 / 2
    int count, width;
    uint32_t *lists; // device: bits [count, list_words], or NULL
    int list_words;
};

// Alignments that were asked for and are delivered by sync.
typedef struct cuda_wanted {
    float *to;
    int at, count; // in cuda_exec.weights
} cuda_wanted;

// Page-locked memory of the host and its copy on the device: `at` bytes are in use, `sent` of them under way.
typedef struct cuda_ring {
    char *host, *device;
    size_t size, at, sent;
} cuda_ring;

typedef struct cuda_timer cuda_timer;

// A worker's own: its stream, what is to be played on it, and the memory by which numbers travel.
typedef struct cuda_exec_own {
    cudaStream_t stream;
    cuda_tape *tape;
    cuda_timer *clock; // NULL: nobody asked
    cuda_ring ring;
    char *back, *device_back; // host, device: results
    size_t back_size;
    float *weights, *device_weights; // host, device: alignments
    size_t weights_size, weights_used;
    cuda_wanted *wanted;
    int wanted_count, wanted_room;
    int32_t *starts; // host scratch of alignments
} cuda_exec_own;

static inline cuda_exec_own *cuda_own(dgm_exec *x)
{
    return x->own;
}

// device_cuda.c. Makes the device the calling thread's: CUDA keeps one for each thread, which whoever else uses CUDA in
// this thread may have changed. `still`: not since.
cudaError_t cuda_use(const dgm_backend *b);
cudaError_t cuda_use_still(const dgm_backend *b);

static inline cuda_tape *cuda_tape_of(dgm_exec *x)
{
    return cuda_own(x)->tape;
}

static inline cuda_rows cuda_view(dgm_mat m)
{
    return (cuda_rows){m.data, m.rows, m.cols, m.stride};
}

// device_cuda.c. False, with the reason in err (its status) or in the worker.
dgm_status cuda_status(cudaError_t e, const char *what, dgm_error *err);
// Memory of the device; where it does not suffice the message says how much there is, and what helps.
dgm_status cuda_take(dgm_backend *b, void **p, size_t bytes, const char *what, const char *helps,
                     dgm_error *err);
void cuda_count_free(dgm_backend *b); // when some was given back
bool cuda_fine(dgm_exec *x, cudaError_t e, const char *what);

// tape_cuda.c. What the ring holds is sent before everything else.
dgm_status cuda_tape_open(cuda_tape **t, dgm_backend *b, cudaStream_t stream, cuda_ring *ring,
                          dgm_error *err);
void cuda_tape_close(cuda_tape **t); // accepts NULL inside
void cuda_tape_copy(cuda_tape *t, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
// Starts what was written; afterwards somebody waits,
cudaError_t cuda_tape_play(cuda_tape *t);
// or more is written that reads what the last launch makes.
cudaError_t cuda_tape_start(cuda_tape *t);
void cuda_tape_time(cuda_tape *t, cuda_timer *c); // plays are timed from now on

// timer_cuda.c. Around a play, and when it was waited for; clocks may be NULL.
cudaError_t cuda_timer_begin(cuda_timer *c);
cudaError_t cuda_timer_end(cuda_timer *c);
void cuda_timer_take(cuda_timer *c);
void cuda_timer_close(cuda_timer **c); // accepts NULL inside

// exec_cuda.c. Operations that send begin with cuda_begin: from then on half of the ring is theirs.
void cuda_begin(dgm_exec *x);
// A copy of host numbers in device memory, for the kernels of this operation. NULL: too large, the worker has
// failed.
void *cuda_send(dgm_exec *x, const void *host, size_t bytes);
// Room in the same memory, for results.
void *cuda_room(dgm_exec *x, size_t bytes);
// Into memory of the caller's, any size: parts one behind the other.
typedef struct cuda_part {
    const void *from;
    size_t bytes;
} cuda_part;

void cuda_send_parts(dgm_exec *x, void *device, const cuda_part *parts, int count);
// Until the device has done everything; alignments that were asked for are there then.
bool cuda_wait(dgm_exec *x, const char *what);
// Device numbers to the host, now.
bool cuda_fetch(dgm_exec *x, void *host, const void *device, size_t bytes);

#define CUDA_SEND(x, type, host, count)                                                            \
    ((const type *)cuda_send((x), (host), (size_t)(count) * sizeof(type)))

// weights_cuda.c
dgm_status cuda_upload(dgm_backend *b, void **device, const void *host, size_t bytes, dgm_error *err);
cuda_type cuda_type_of(dgm_precision p);
int cuda_stride_of(int cols);
// The stack of parts as products of the type read them, into host memory: data [rows, stride], scales [rows].
dgm_status cuda_make_rows(const dgm_linear_part *parts, int count, dgm_precision precision, cuda_type type,
                          int cols, void *data, float *scales, dgm_error *err);
// ways_cuda.c: what a layer of the precision is multiplied as.
cuda_type cuda_way(int capability, dgm_precision precision, int outputs, int inputs);

#ifndef CUDA_RING // a test makes them small
#define CUDA_RING (16 << 20)
#define CUDA_POOL (64 << 20)
#define CUDA_EARLY 256 // rows: see cuda_start
#define CUDA_SPARE (32 << 20) // of the device's memory: left free when others are sized by what is free
#endif
// Device memory of a worker: what operations may take above what was asked for when it was opened, the ways of
// numbers (exec_cuda.c), and CUDA_POOL for rows rounded to halves (tape_cuda.c).
enum {
    CUDA_SCRATCH = 32 << 20,
    CUDA_BACK = 4 << 20,
    CUDA_WEIGHTS = 4 << 20,
    CUDA_WORKER = CUDA_SCRATCH + CUDA_RING + CUDA_BACK + CUDA_WEIGHTS + CUDA_POOL
};

// lists_cuda.c. Lists that are made for the rows of one chunk (dgm_joint).
typedef struct cuda_joined {
    int vocabulary, words, count;
    size_t used, room;         // tokens of the pool
    const dgm_candidates **of; // [count]
    cuda_joint *lists;         // [count + 1]: the last is all of them together
    uint32_t *bits;
    int32_t *ids, *found, *counts;
} cuda_joined;

dgm_bytes cuda_joined_bytes(int rows, int vocabulary);
// Memory is the worker's until the caller gives it back.
cuda_joined cuda_open_joined(dgm_exec *x, int rows, int vocabulary);
void cuda_clear_joined(cuda_joined *j);
// Whether there is room for the list of these candidates, too; where it will lie; and all lists that were asked for
// are made. The last is returned, with `together` that of all of them, which has `most` tokens at most; NULL: the
// worker has failed.
bool cuda_joined_fits(const cuda_joined *j, const dgm_candidates *c);
const cuda_joint *cuda_join(cuda_joined *j, const dgm_candidates *c);
const cuda_joint *cuda_make_joined(dgm_exec *x, cuda_joined *j, bool together, int *most);

// products_cuda.c. Fills in a, a_scale and the types: quantises rows where the layer asks for it, into
// device memory that the caller gives back.
cuda_product cuda_prepare(dgm_exec *x, const dgm_linear *w, dgm_mat in);
// Rows that fit the scratch at a time.
int cuda_prepare_most(const dgm_linear *w);

#endif
