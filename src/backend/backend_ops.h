// SPDX-License-Identifier: MIT
// What a device implements. Seen by backend/ and its devices alone; everybody else calls the
// functions of device.h, ops.h, rank.h and meter.h, which forward.c sends to the device's table.
//
// A device is three things:
//   - a table: one function per row of DGM_BACKEND_OPS, declared and filled in by the macro,
//   - the structures behind dgm_backend, dgm_linear, dgm_embedding, dgm_vector, dgm_experts,
//     dgm_gathered, dgm_paths and dgm_centroids, each of which begins with a pointer to that table,
//   - a dgm_device_driver, which says what devices there are and opens one. Built in, it is a row of
//     registry.c; in a shared object, what its entry function returns.
// docs/internals/ADDING_A_DEVICE.md goes through the steps.
#ifndef DGM_BACKEND_BACKEND_OPS_H
#define DGM_BACKEND_BACKEND_OPS_H

#include "backend/meter.h"
#include "backend/ops.h"
#include "base/team.h"

// Every function of a device: OP(result, name, parameters). Comments stand where callers look.
#define DGM_BACKEND_OPS(OP)                                                                        \
    /* device.h: device */                                                                         \
    OP(void, close, (dgm_backend **b))                                                             \
    OP(const dgm_backend_props *, properties, (const dgm_backend *b))                              \
    OP(const char *, describe, (const dgm_backend *b, char *buffer, size_t size))                  \
    OP(const char *, variants, (dgm_backend *b, char *buffer, size_t size))                        \
    OP(void, static_scales, (dgm_backend *b, bool on))                                             \
    OP(void, activations, (dgm_backend *b, dgm_activations how))                                   \
    /* device.h: weights */                                                                        \
    OP(dgm_status, linear_load, (dgm_backend *b, const dgm_linear_part *parts, int count,          \
                                 dgm_precision precision, dgm_linear **out, dgm_error *err))       \
    OP(void, linear_free, (dgm_backend *b, dgm_linear **l))                                        \
    OP(int, linear_rows, (const dgm_linear *l))                                                    \
    OP(int, linear_cols, (const dgm_linear *l))                                                    \
    OP(size_t, linear_bytes, (const dgm_linear *l))                                                \
    OP(dgm_status, linear_by_rows, (dgm_backend *b, dgm_linear *l, dgm_error *err))                \
    OP(const dgm_tensor *, linear_tensor, (const dgm_linear *l, int part))                         \
    OP(dgm_status, embedding_load, (dgm_backend *b, const dgm_tensor *table,                       \
                                    dgm_embedding **out, dgm_error *err))                          \
    OP(void, embedding_free, (dgm_backend *b, dgm_embedding **e))                                  \
    OP(dgm_status, vector_from, (dgm_backend *b, const float *data, int rows, int cols,            \
                                 dgm_vector **out, dgm_error *err))                                \
    OP(void, vector_free, (dgm_backend *b, dgm_vector **v))                                        \
    OP(dgm_status, experts_load, (dgm_backend *b, const dgm_gguf *file,                            \
                                  const dgm_expert_part *parts, int count,                         \
                                  dgm_precision precision, dgm_experts **out, dgm_error *err))     \
    OP(void, experts_free, (dgm_backend *b, dgm_experts **e))                                      \
    OP(void, experts_count, (const dgm_experts *e, dgm_experts_use *add))                          \
    OP(dgm_status, centroids_load, (dgm_backend *b, const dgm_tensor *centroids,                   \
                                    dgm_centroids **out, dgm_error *err))                          \
    OP(void, centroids_free, (dgm_backend *b, dgm_centroids **c))                                  \
    OP(size_t, centroids_bytes, (const dgm_centroids *c))                                          \
    OP(dgm_status, centroids_lists, (dgm_backend *b, dgm_centroids *c, const uint64_t *bits,       \
                                     int vocabulary, dgm_error *err))                              \
    /* device.h: memory of a worker */                                                             \
    OP(dgm_status, exec_open, (dgm_exec *x, size_t device_bytes, dgm_error *err))                  \
    OP(void, start, (dgm_exec *x, int rows))                                                       \
    OP(void, sync, (dgm_exec *x))                                                                  \
    OP(void, exec_close, (dgm_exec *x))                                                            \
    OP(dgm_status, clock, (dgm_exec *x, dgm_error *err))                                           \
    OP(double, busy, (dgm_backend *b))                                                             \
    OP(dgm_mat, mat, (dgm_exec *x, int rows, int cols))                                            \
    OP(size_t, mat_bytes, (const dgm_backend *b, int rows, int cols))                              \
    OP(dgm_mat, cache, (dgm_exec *x, int rows, int cols, dgm_precision precision))                 \
    OP(size_t, cache_bytes, (const dgm_backend *b, int rows, int cols, dgm_precision precision))   \
    OP(dgm_blocks, blocks, (dgm_exec *x, int count, int heads, int dk, int dv,                     \
                            dgm_precision precision))                                              \
    OP(size_t, blocks_bytes, (const dgm_backend *b, int count, int heads, int dk, int dv,          \
                              dgm_precision precision))                                            \
    /* ops.h */                                                                                    \
    OP(void, linear, (dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_linear *w, dgm_act act,        \
                      const dgm_mat *residual))                                                    \
    OP(void, feed_forward, (dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_linear *v, dgm_act act,  \
                            dgm_mat inner, const dgm_linear *w, const dgm_mat *residual))          \
    OP(void, experts, (dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_experts *e,                   \
                       const dgm_mixture *how, dgm_mat inner))                                     \
    OP(dgm_bytes, experts_bytes, (const dgm_backend *b, int rows, int width, int experts))         \
    OP(void, embed, (dgm_exec *x, dgm_mat y, const dgm_embedding *table, const int32_t *ids,       \
                     float scale, const dgm_vector *start, const dgm_vector *positions,            \
                     const int32_t *pos))                                                          \
    OP(void, norm, (dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_vector *gamma,                   \
                    const dgm_vector *beta, float eps))                                            \
    OP(void, rms_norm, (dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_vector *gamma, float eps))   \
    OP(void, norm_for, (dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_mat *add,                    \
                        const dgm_norm *how, const dgm_linear *reader))                            \
    OP(void, act, (dgm_exec *x, dgm_mat y, dgm_mat in, dgm_act act))                               \
    OP(void, add, (dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b))                                  \
    OP(void, add_vector, (dgm_exec *x, dgm_mat y, dgm_mat a, const dgm_vector *v))                 \
    OP(void, maxout, (dgm_exec *x, dgm_mat y, dgm_mat in))                                         \
    OP(void, zero, (dgm_exec *x, dgm_mat y))                                                       \
    OP(void, gather, (dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *index))                   \
    OP(void, scatter, (dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *index))                  \
    OP(void, copy, (dgm_exec *x, dgm_mat y, const int32_t *to, dgm_mat in, const int32_t *from,    \
                    int count))                                                                    \
    OP(void, zero_rows, (dgm_exec *x, const dgm_mat *y, int matrices, const int32_t *rows,         \
                         int count))                                                               \
    OP(void, mean, (dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *first,                      \
                    const int32_t *count))                                                         \
    OP(const dgm_paths *, paths, (dgm_exec *x, int rows, const int32_t *first,                     \
                                  const int32_t *length, const int32_t *entries,                   \
                                  int entry_count))                                                \
    OP(dgm_bytes, paths_bytes, (const dgm_backend *b, int rows, size_t entry_count))               \
    OP(dgm_bytes, attend_bytes, (const dgm_backend *b, int heads, int keys))                       \
    OP(void, attend, (dgm_exec *x, dgm_mat out, dgm_mat q, dgm_mat k, dgm_mat v,                   \
                      const dgm_heads *heads, const dgm_paths *paths, const dgm_align_list *align))     \
    OP(void, attend_add, (dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_vector *w, dgm_mat k,     \
                          dgm_mat v, const dgm_paths *paths, const dgm_align_list *align))              \
    OP(void, blocks_put, (dgm_exec *x, const dgm_blocks *memories, int layers, dgm_mat kv,         \
                          const dgm_block_span *spans, int count))                                 \
    OP(void, attend_blocks, (dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_blocks *blocks,        \
                             float scale, const dgm_paths *paths, const dgm_align_list *align))         \
    OP(void, gru, (dgm_exec *x, dgm_mat out, dgm_mat state, dgm_mat gx, dgm_mat gh))               \
    OP(void, lstm, (dgm_exec *x, dgm_mat out, dgm_mat cell_out, dgm_mat cell, dgm_mat gx,          \
                    dgm_mat gh))                                                                   \
    OP(void, ssru, (dgm_exec *x, dgm_mat out, dgm_mat cell_out, dgm_mat cell, dgm_mat in,          \
                    dgm_mat f))                                                                    \
    OP(void, scale, (dgm_exec *x, dgm_mat y, dgm_mat in, const float *factor))                     \
    OP(void, gated_sum, (dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b, dgm_mat g))                 \
    OP(void, gated, (dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b, dgm_act act))                   \
    OP(void, read, (dgm_exec *x, float *host, dgm_mat in))                                         \
    OP(void, write, (dgm_exec *x, dgm_mat y, const float *host))                                   \
    /* rank.h */                                                                                   \
    OP(void, set, (dgm_exec *x, dgm_mat tables, int row, const int32_t *ids, const float *values,  \
                   int count))                                                                     \
    OP(dgm_gathered *, gathered_open, (dgm_exec *x, const dgm_linear *w, int capacity))            \
    OP(dgm_bytes, gathered_bytes, (const dgm_backend *b, const dgm_linear *w, int capacity,        \
                                int count))                                                        \
    OP(void, gather_columns, (dgm_exec *x, dgm_gathered *g, const int32_t *ids, int count))        \
    OP(void, rank, (dgm_exec *x, const dgm_rank *r))                                               \
    OP(dgm_bytes, rank_bytes, (const dgm_backend *b, int rows, int parts, int vocabulary))         \
    OP(void, closest, (dgm_exec *x, const dgm_centroids *c, dgm_mat rows, int32_t *found))         \
    OP(dgm_bytes, closest_bytes, (const dgm_backend *b, int rows, int centroids))                  \
    OP(void, distances, (dgm_exec *x, dgm_mat rows, const int32_t *one, const int32_t *two,        \
                         int count, dgm_distance *out))                                            \
    OP(dgm_bytes, rank_more_bytes, (const dgm_backend *b, const dgm_linear *out))                  \
    OP(dgm_bytes, rank_joint_bytes, (const dgm_backend *b, int rows, int vocabulary))

#define DGM_BACKEND_FIELD(result, name, parameters) result(*name) parameters; // NOLINT(bugprone-macro-parentheses)
typedef struct dgm_backend_ops {
    DGM_BACKEND_OPS(DGM_BACKEND_FIELD)
} dgm_backend_ops;
#undef DGM_BACKEND_FIELD

// A worker is the same for every device but for `own` and `ready`. forward.c makes it with its host memory;
// exec_open fills in the device memory (base may be any address, as long as nothing but the device
// looks behind it) and own, exec_close gives them back and accepts what a failed exec_open left.
struct dgm_exec {
    const dgm_backend_ops *ops;
    dgm_backend *backend;
    dgm_arena host, device;
    dgm_meter *meter;             // NULL: nobody counts
    const dgm_observer *observer; // NULL: nobody looks
    dgm_status failed;            // of an operation, until dgm_exec_status is asked
    dgm_error why;
    dgm_team *team; // threads that may share its operations, and what the host does for them
    void *own; // the device's
    void *ready; // the device's: rows that norm_for made for their reader
};

// ---- finding devices ----------------------------------------------------------------------------

// Changes whenever a row of the table, its meaning or a structure in it does.
enum { DGM_DEVICE_INTERFACE = 11 };

typedef struct dgm_device_driver {
    uint32_t interface; // DGM_DEVICE_INTERFACE
    uint32_t ops_size;  // sizeof(dgm_backend_ops)
    const char *name;   // "cuda", as in the name of its shared object
    // Device number `index` of this kind; false behind the last.
    bool (*probe)(int index, dgm_backend_props *props);
    // unit: what stands behind the colon, NULL: nothing.
    dgm_status (*open)(dgm_backend **b, const char *unit, dgm_error *err);
} dgm_device_driver;

// The one symbol that a shared object libdragoman-NAME.so exports:
//     const dgm_device_driver *dragoman_device(void);
// It is linked with libdragoman.a for whatever it needs of base/ and format/: nothing else is shared
// with the program that opens it.
#define DGM_DEVICE_ENTRY "dragoman_device"
typedef const dgm_device_driver *(*dgm_device_entry)(void);

extern const dgm_device_driver dgm_cpu_driver;

#endif
