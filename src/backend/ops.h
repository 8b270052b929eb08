// SPDX-License-Identifier: MIT
// The coarse operations that models are written in; rank is in rank.h.
//
// Operations take host arrays for everything that is bookkeeping (token ids, row numbers, lengths)
// and device views for everything that is arithmetic. They do not fail: capacities are fixed when a
// worker is opened, and a device error sticks in the exec until dgm_exec_status is asked.
//
// Host arrays are read before an operation returns: whoever calls may change or give back what it
// passed, the stack's memory included. Results for the host are there when the operation returns
// (dgm_op_read, and those of rank.h), alignments (dgm_align_list) after dgm_exec_sync; everything else
// may still be under way.
// Rows belong to the worker they were taken on. Others may read them once it was waited for.
// A row's result depends on that row alone (docs/internals/ARCHITECTURE.md, "Batch invariance").
#ifndef DGM_BACKEND_OPS_H
#define DGM_BACKEND_OPS_H

#include "backend/device.h"
#include "backend/rank.h"
#include "kernel/act.h"

// y = act(x W^T + b) + residual. residual may be NULL or equal y. y must not alias x.
void dgm_op_linear(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_linear *w, dgm_act act,
                   const dgm_mat *residual);

// y = act(x V^T + b) W^T + c + residual, aliasing as above. inner [rows of in, outputs of v] is
// scratch; an i8 layer w with a static input scale is fed from registers instead.
void dgm_op_feed_forward(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_linear *v, dgm_act act,
                         dgm_mat inner, const dgm_linear *w, const dgm_mat *residual);

// How rows choose among experts: g = softmax(G x + b) over all of them, the `top` largest win (ties:
// the lower number), and y = scale * sum of w_j expert_j(x), w_j = g_j, or g_j over the winners' sum.
typedef struct dgm_mixture {
    const dgm_vector *gate, *gate_bias; // [experts, D], [1, experts] or NULL: always f32
    int top;                            // 1 or 2
    bool normalise;
    float scale;
    dgm_act act;
} dgm_mixture;

// No row is ever dropped, and a row's result does not depend on who shares its experts. y must not
// alias in; inner [in.rows, F] is scratch, and so are dgm_experts_bytes for rows of `width`.
void dgm_op_experts(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_experts *e, const dgm_mixture *how,
                    dgm_mat inner);
dgm_bytes dgm_experts_bytes(const dgm_backend *b, int rows, int width, int experts);

// y[i] = scale * table[ids[i]] + positions[pos[i]]. ids[i] < 0: `start` (NULL: a zero vector),
// unscaled. positions NULL: nothing is added.
void dgm_op_embed(dgm_exec *x, dgm_mat y, const dgm_embedding *table, const int32_t *ids,
                  float scale, const dgm_vector *start, const dgm_vector *positions,
                  const int32_t *pos);

// Layer norm of every row; y may be in.
void dgm_op_norm(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_vector *gamma,
                 const dgm_vector *beta, float eps);
// RMS norm of every row, without mean and beta: in / sqrt(mean(in^2) + eps) * gamma; y may be in.
void dgm_op_rms_norm(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_vector *gamma, float eps);

typedef struct dgm_norm {
    const dgm_vector *gamma, *beta; // beta NULL: none
    float eps;
    bool rms; // an RMS norm
} dgm_norm;

// y = norm(in), or norm(in + add) with `add` not NULL; y may be in or add. The next operation must be dgm_op_linear or
// dgm_op_feed_forward of y and `reader` as its first layer: a device may make rows in that layer's form at once.
// Otherwise, and with reader NULL, y is all there is; its bits are those of dgm_op_add and the norm either way.
void dgm_op_norm_for(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_mat *add, const dgm_norm *how,
                     const dgm_linear *reader);
void dgm_op_act(dgm_exec *x, dgm_mat y, dgm_mat in, dgm_act act);
void dgm_op_add(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b);          // y may be a or b
void dgm_op_add_vector(dgm_exec *x, dgm_mat y, dgm_mat a, const dgm_vector *v); // to every row
void dgm_op_maxout(dgm_exec *x, dgm_mat y, dgm_mat in); // y[j] = max(in[2j], in[2j+1])
void dgm_op_zero(dgm_exec *x, dgm_mat y);
// y[i] = in[index[i]] (index NULL: i). Rows must not overlap.
void dgm_op_gather(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *index);
// y[index[i]] = in[i] for the rows of in; y may be a cache.
void dgm_op_scatter(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *index);
// y[to[i]] = in[from[i]] for i < count. Rows must not overlap.
void dgm_op_copy(dgm_exec *x, dgm_mat y, const int32_t *to, dgm_mat in, const int32_t *from,
                 int count);
// Zeros in rows[0 .. count) of each of the matrices.
void dgm_op_zero_rows(dgm_exec *x, const dgm_mat *y, int matrices, const int32_t *rows, int count);
// y[i] = mean of rows first[i] .. first[i] + count[i] - 1 of in.
void dgm_op_mean(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *first, const int32_t *count);

// ---- attention ----------------------------------------------------------------------------------

// Whose keys and values each of `rows` queries looks at. Query i has n = length[i] >= 1 of them:
// rows entries[first[i]], entries[first[i] + 1], ... of the keys, or, where there are no entries,
// rows first[i], first[i] + 1, ... themselves. The same for every layer, so it is made once a step
// and stays on the device until a reset. Queries may share entries; neighbours that look at the same
// keys are computed together.
const dgm_paths *dgm_op_paths(dgm_exec *x, int rows, const int32_t *first, const int32_t *length,
                              const int32_t *entries, int entry_count);
dgm_bytes dgm_paths_bytes(const dgm_backend *b, int rows, size_t entry_count);

// Attention weights that the host wants: those of query row[i] go to to[i] [its n]. Rows ascend; one
// that is named again is written again. The numbers are there after dgm_exec_sync, not before.
typedef struct dgm_align_list {
    const int32_t *row; // [count]
    float *const *to;   // [count]: host memory that stays until then
    int count;
    int head; // -1: the mean of the heads
} dgm_align_list;

// bias: NULL, or [count, 2 * reach - 1], which is added to the scores by how far apart query and key
// are: bias[h][reach - 1 + j - p] for key j of a path and the query that is its place p. With entries
// that is the last one; without, query i is row i of the keys itself. No path is longer than reach.
// precision: the model's; a device may take numbers of f32 rows for what its caches would have made of them.
typedef struct dgm_heads {
    int count, dk, dv;
    float scale;
    const dgm_vector *bias;
    int reach;
    dgm_precision precision;
} dgm_heads;

// Scratch that attentions over heads need for rows of up to `keys` keys: part of a state's size.
dgm_bytes dgm_attend_bytes(const dgm_backend *b, int heads, int keys);
// out[i] = softmax(scale * q[i] . k + bias) v, per head, over the path of i. k and v have the same stride and
// may be caches. One head and scale 1 is the product attention. align: NULL for none.
void dgm_op_attend(dgm_exec *x, dgm_mat out, dgm_mat q, dgm_mat k, dgm_mat v, const dgm_heads *heads,
                   const dgm_paths *paths, const dgm_align_list *align);
// Additive attention, one head: e_j = w . tanh(q + k_j). Keys are rows of q.cols, values rows of
// out.cols, both without gaps; paths without entries.
void dgm_op_attend_add(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_vector *w, dgm_mat k,
                       dgm_mat v, const dgm_paths *paths, const dgm_align_list *align);

// Rows row .. row + rows - 1 of a matrix, for the blocks from block `first` on.
typedef struct dgm_block_span {
    int row, rows, first;
} dgm_block_span;

// Stores rows of kv in `layers` memories: of memory l its columns from l * heads * (dk + dv) on, heads
// * dk keys, then heads * dv values. All spans of all memories at once. kv is used up: what it holds afterwards is
// not said.
void dgm_op_blocks_put(dgm_exec *x, const dgm_blocks *memories, int layers, dgm_mat kv,
                       const dgm_block_span *spans, int count);
// As dgm_op_attend, over blocks: position j of a path without entries lies in block first + j /
// DGM_BLOCK_POSITIONS.
void dgm_op_attend_blocks(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_blocks *blocks, float scale,
                          const dgm_paths *paths, const dgm_align_list *align);

// ---- gates --------------------------------------------------------------------------------------

// Gates, row by row. x and h hold the gate inputs (kernel/kernels.h); out may be state.
void dgm_op_gru(dgm_exec *x, dgm_mat out, dgm_mat state, dgm_mat gx, dgm_mat gh);
void dgm_op_lstm(dgm_exec *x, dgm_mat out, dgm_mat cell_out, dgm_mat cell, dgm_mat gx, dgm_mat gh);
void dgm_op_ssru(dgm_exec *x, dgm_mat out, dgm_mat cell_out, dgm_mat cell, dgm_mat in, dgm_mat f);

// y[i] = factor[i] * in[i]; y may be in.
void dgm_op_scale(dgm_exec *x, dgm_mat y, dgm_mat in, const float *factor);
// y = sigmoid(g[0 .. n)) * a + sigmoid(g[n .. 2n)) * b, row by row; y may be a or b; g is used up.
void dgm_op_gated_sum(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b, dgm_mat g);
// y = act(a) * b, row by row; y may be a.
void dgm_op_gated(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b, dgm_act act);

// y = host [rows, cols], row by row without gaps: the one way to put numbers of the host into rows.
void dgm_op_write(dgm_exec *x, dgm_mat y, const float *host);

#endif
