// SPDX-License-Identifier: MIT
// The coarse operations that models are written in; rank is in rank.h.
//
// Operations take host arrays for everything that is bookkeeping (token ids, row numbers, lengths)
// and device views for everything that is arithmetic. They do not fail: capacities are fixed when a
// worker is opened, and a device error sticks in the exec until dgm_exec_status is asked.
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
void dgm_op_act(dgm_exec *x, dgm_mat y, dgm_mat in, dgm_act act);
void dgm_op_add(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b);          // y may be a or b
void dgm_op_add_vector(dgm_exec *x, dgm_mat y, dgm_mat a, const dgm_vector *v); // to every row
void dgm_op_maxout(dgm_exec *x, dgm_mat y, dgm_mat in); // y[j] = max(in[2j], in[2j+1])
void dgm_op_zero(dgm_exec *x, dgm_mat y);
// y[i] = in[index[i]] (index NULL: i). Rows must not overlap.
void dgm_op_gather(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *index);
// y[index[i]] = in[i] for the rows of in; y may be a cache.
void dgm_op_scatter(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *index);
// y[i] = mean of rows first[i] .. first[i] + count[i] - 1 of in.
void dgm_op_mean(dgm_exec *x, dgm_mat y, dgm_mat in, const int32_t *first, const int32_t *count);

// Where one query row finds its keys and values: row j lies index[j] (NULL: j) strides behind k and v.
typedef struct dgm_attend_row {
    const void *k, *v;    // device
    const int32_t *index; // host, [n] or NULL
    int n;                // >= 1
} dgm_attend_row;

typedef struct dgm_attend {
    int heads, dk, dv;
    int stride; // elements between rows of k, and of v
    int elem;   // bytes of their elements (dgm_mat)
    float scale;
    const dgm_attend_row *rows; // [q.rows]
    float *const *align;        // host: align[r] NULL or [n] for the weights of align_head; or NULL
    int align_head;             // -1: mean of the heads
} dgm_attend;

// Scratch that both attentions over heads need for rows of up to `keys` keys: part of a state's size.
dgm_bytes dgm_attend_bytes(const dgm_backend *b, int heads, int keys);
// out[r] = softmax(scale * q[r] . k) v, per head. One head and scale 1 is the product attention.
void dgm_op_attend(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_attend *a);

// Stores the rows of kv (heads * dk keys, then heads * dv values) as the first kv.rows positions of
// the blocks first, first + 1, ...
void dgm_op_blocks_put(dgm_exec *x, const dgm_blocks *blocks, int first, dgm_mat kv);

// Where one query row finds its source: position j lies in block first + j / DGM_BLOCK_POSITIONS.
// Neighbouring rows with the same source are computed together.
typedef struct dgm_source_row {
    int first, n; // n positions, >= 1
} dgm_source_row;

// As dgm_op_attend, over blocks. align, align_head as there.
void dgm_op_attend_blocks(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_blocks *blocks,
                          const dgm_source_row *rows, float scale, float *const *align,
                          int align_head);
// Additive attention, one head: e_j = w . tanh(q + k_j). Keys are rows of q.cols, values rows of
// out.cols, both contiguous (a->stride, heads, dk, dv, scale and index are not used).
void dgm_op_attend_add(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_vector *w,
                       const dgm_attend *a);

// Gates, row by row. x and h hold the gate inputs (kernel/kernels.h); out may be state.
void dgm_op_gru(dgm_exec *x, dgm_mat out, dgm_mat state, dgm_mat gx, dgm_mat gh);
void dgm_op_lstm(dgm_exec *x, dgm_mat out, dgm_mat cell_out, dgm_mat cell, dgm_mat gx, dgm_mat gh);
void dgm_op_ssru(dgm_exec *x, dgm_mat out, dgm_mat cell_out, dgm_mat cell, dgm_mat in, dgm_mat f);

// y[i] = factor[i] * in[i]; y may be in.
void dgm_op_scale(dgm_exec *x, dgm_mat y, dgm_mat in, const float *factor);
// y = sigmoid(g[0 .. n)) * a + sigmoid(g[n .. 2n)) * b, row by row; g is used up.
void dgm_op_gated_sum(dgm_exec *x, dgm_mat y, dgm_mat a, dgm_mat b, dgm_mat g);

// y = host [rows, cols], row by row without gaps: the one way to put numbers of the host into rows.
void dgm_op_write(dgm_exec *x, dgm_mat y, const float *host);

#endif
