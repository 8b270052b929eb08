// SPDX-License-Identifier: MIT
// Private to unfolding and shrinking: a recurrent model (decoder bahdanau, one encoder layer of
// GRUs) as plain matrices of floats.
//
// Every matrix has rows and columns of some dimension, in one or more parts: gates of H units are
// three parts of H rows, the encoder's output is two parts (directions) of He columns. The context
// is one part: [f_1 b_1 | f_2 b_2 | ...], head by head.
#ifndef DGM_SHRINK_RNN_NET_H
#define DGM_SHRINK_RNN_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "format/gguf.h"
#include "shrink/shrink.h"

typedef enum net_dim {
    DIM_SOURCE, // source vocabulary
    DIM_TARGET,
    DIM_EMBED,
    DIM_ENCODER, // units of one direction
    DIM_CONTEXT, // directions * DIM_ENCODER
    DIM_HIDDEN,
    DIM_ATTENTION,
    DIM_READOUT, // units of the read-out; of the hidden state without one
    DIM_ROWS,    // rows below the read-out: 2 per unit with maxout
    DIM_ONE,
    DIM_COUNT
} net_dim;

typedef enum net_id {
    NET_SOURCE,
    NET_TARGET, // rows 0: tied to NET_SOURCE
    NET_OUT,
    NET_FWD_W,
    NET_FWD_H,
    NET_BWD_W,
    NET_BWD_H,
    NET_INIT,
    NET_QUERY,
    NET_KEY,
    NET_V, // [1, A]
    NET_X,
    NET_C,
    NET_H,
    NET_READ_X,
    NET_READ_H,
    NET_READ_C,
    NET_COUNT
} net_id;

typedef struct net_matrix {
    int rows, cols;
    float *w;    // [rows, cols]; NULL: the network has none
    float *bias; // [rows] or NULL
} net_matrix;

typedef enum net_readout {
    NET_READ_NONE,
    NET_READ_LINEAR,
    NET_READ_TANH,
    NET_READ_MAXOUT
} net_readout;

typedef struct rnn_net {
    net_matrix m[NET_COUNT];
    int size[DIM_COUNT];
    int directions, heads;
    int part[DIM_COUNT][DGM_SHRINK_MEMBERS]; // units of each head; sum size[]
    // Reduced to a lower rank over all heads: embeddings and a linear read-out no longer have units of
    // heads then.
    bool joint_embed, joint_readout;
    net_readout readout;
} rnn_net;

// Where a matrix belongs: its name in the file, its dimensions and their parts.
typedef struct net_shape {
    const char *weight, *bias; // tensors; NULL: none
    net_dim row, col;
    int row_parts, col_parts; // 0: one for each direction
} net_shape;

extern const net_shape dgm_net_shapes[NET_COUNT];

// rnn_unfold.c
void dgm_net_free(rnn_net *n);
dgm_status dgm_net_read(rnn_net *n, const dgm_gguf *g, dgm_error *err);
dgm_status dgm_net_unfold(rnn_net *out, const rnn_net *members, const double *weights, int count,
                          dgm_error *err);
// keep [NET_COUNT]: NULLs at first; memory that must live until the writer has written, to be freed.
dgm_status dgm_net_write(const rnn_net *n, dgm_gguf_writer *out, float **keep, dgm_error *err);
uint64_t dgm_net_parameters(const rnn_net *n);
uint64_t dgm_net_weights(const rnn_net *n, int id); // of a matrix with the network's sizes
int dgm_net_extent(const rnn_net *n, net_dim dim, int parts); // rows or columns of a matrix

// rnn_shrink.c: neurons away until the sizes are those of `to` (head by head), then SVD.
dgm_status dgm_net_shrink(rnn_net *n, const rnn_net *to, const dgm_shrink_plan *plan,
                          dgm_error *err);

// shrink_algebra.c; all matrices are [n, n] of doubles, row by row.
double dgm_algebra_dot(const float *x, const float *y, int n); // sums in double precision
// The inverse of a symmetric positive matrix, which is overwritten. False: it is not positive.
bool dgm_algebra_invert(double *a, double *out, int n);
// The best product of rank k for left right^T, left [rows, d] a table of words by falling
// frequency, right [other, d]: writes new_left [rows, k] and new_right [other, k]. DGM_ERR_MEMORY,
// or DGM_ERR_FORMAT for numbers that are not finite.
dgm_status dgm_algebra_reduce(const float *left, int rows, const float *right, int other, int d,
                              int k, float *new_left, float *new_right, dgm_error *err);

#endif
