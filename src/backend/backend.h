// SPDX-License-Identifier: MIT
// A device and the coarse operations that models are written in.
//
//   dgm_backend   a device: kernels, packing rules. Immutable after open, shared by all threads.
//   dgm_linear    a weight matrix with its bias, resident and packed for that device.
//   dgm_embedding a table whose rows are gathered by token id.
//   dgm_vector    norms, biases and other f32 vectors on the device.
//   dgm_experts   feed-forward networks of a mixture, each packed by the first row that needs it.
//   dgm_exec      one worker's stream of operations with its scratch memory and counters.
//   dgm_mat       a view of activations on the device: address arithmetic through helpers only,
//                 since the element type is the backend's business.
//
// Operations take host arrays for everything that is bookkeeping (token ids, row numbers, lengths)
// and device views for everything that is arithmetic. They do not fail: capacities are fixed when a
// worker is opened, and a device error sticks in the exec until dgm_exec_status is asked.
// A row's result depends on that row alone (docs/internals/ARCHITECTURE.md, "Batch invariance").
#ifndef DGM_BACKEND_BACKEND_H
#define DGM_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "format/gguf.h"
#include "kernel/act.h"

// In the order of dgm_precision_names (format/modelfile.h).
typedef enum dgm_precision {
    DGM_PRECISION_F32 = 0,
    DGM_PRECISION_I16,
    DGM_PRECISION_I8,
    DGM_PRECISION_COUNT
} dgm_precision;

typedef struct dgm_backend dgm_backend;
typedef struct dgm_linear dgm_linear;
typedef struct dgm_embedding dgm_embedding;
typedef struct dgm_vector dgm_vector;
typedef struct dgm_experts dgm_experts;
typedef struct dgm_exec dgm_exec;

// ---- device -----------------------------------------------------------------------------------

// name: "cpu". level: highest ISA to use ("c", "avx2", ...), NULL = the best.
dgm_status dgm_backend_open(dgm_backend **b, const char *name, const char *level, dgm_error *err);
void dgm_backend_close(dgm_backend **b);
// "cpu avx512: gemm_f32_avx512 ..." into buffer.
const char *dgm_backend_describe(const dgm_backend *b, char *buffer, size_t size);

// ---- weights ----------------------------------------------------------------------------------

// One linear layer, or several of equal input width stacked into one product (q, k, v).
typedef struct dgm_linear_part {
    const dgm_tensor *weight; // [rows, cols]
    const float *bias;        // [rows] or NULL
    float input_scale;        // i8 with dgm_backend_static: scale of the input rows; 0: none known
} dgm_linear_part;

// From now on layers are loaded with the static scales of their parts, where all have one: i8
// products then round their input by it instead of by each row's maximum. Off at first.
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

typedef struct dgm_experts_use {
    int experts, packed;   // all, and those that have seen a row
    uint64_t bytes;        // of the packed ones
    uint64_t largest;      // bytes if all were packed
} dgm_experts_use;

void dgm_experts_count(const dgm_experts *e, dgm_experts_use *add); // adds to *add

// ---- activations ------------------------------------------------------------------------------

typedef struct dgm_mat {
    void *data;
    int rows, cols;
    int stride; // elements between rows
    int elem;   // bytes of an element
} dgm_mat;

static inline dgm_mat dgm_mat_rows(dgm_mat m, int first, int count)
{
    m.data = (char *)m.data + (size_t)first * (size_t)m.stride * (size_t)m.elem;
    m.rows = count;
    return m;
}

static inline dgm_mat dgm_mat_cols(dgm_mat m, int first, int count)
{
    m.data = (char *)m.data + (size_t)first * (size_t)m.elem;
    m.cols = count;
    return m;
}

// A worker. scratch_bytes: what all the operations and the model states opened on it may take
// (address space; touched pages only cost memory).
dgm_status dgm_exec_open(dgm_backend *b, size_t scratch_bytes, dgm_exec **x, dgm_error *err);
void dgm_exec_close(dgm_exec **x);
dgm_status dgm_exec_status(dgm_exec *x, dgm_error *err);
dgm_backend *dgm_exec_backend(dgm_exec *x);

// Device memory from the worker's arena: stack discipline with mark and reset. data is NULL when
// the arena is full (only possible while opening a state; see dgm_mat_bytes for sizing).
dgm_mat dgm_exec_mat(dgm_exec *x, int rows, int cols);
size_t dgm_exec_mat_bytes(const dgm_backend *b, int rows, int cols);
// The same for keys and values, which are only scattered to and attended over: integer precisions
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
size_t dgm_exec_mark(dgm_exec *x);
void dgm_exec_reset(dgm_exec *x, size_t mark);
size_t dgm_exec_peak(const dgm_exec *x);
// Host memory with the same life time.
dgm_arena *dgm_exec_host(dgm_exec *x);

// ---- watching a worker ------------------------------------------------------------------------

// Both are off (NULL) until set, and an operation then pays for one look at a pointer. Set them
// while the worker does nothing.

// Which part of decoding the worker is in: model/ says so.
typedef enum dgm_phase {
    DGM_PHASE_ENCODE = 0,
    DGM_PHASE_STEP,
    DGM_PHASE_READOUT, // of a recurrent decoder, where it has a layer for it
    DGM_PHASE_RANK,
    DGM_PHASE_COUNT
} dgm_phase;

typedef enum dgm_work {
    DGM_WORK_LINEAR = 0,  // products, one row of the meter per shape
    DGM_WORK_QUANTIZE,    // input rows to integers
    DGM_WORK_ATTEND,      // over neighbouring rows: encoder, cross
    DGM_WORK_ATTEND_PATH, // over a list of rows: self-attention of a decoder
    DGM_WORK_NORM,
    DGM_WORK_EMBED,
    DGM_WORK_GATES,
    DGM_WORK_ROWS, // sums, activations and copies of rows
    DGM_WORK_TOPK, // softmax sums, terms and lists of rank
    DGM_WORK_COUNT
} dgm_work;

typedef struct dgm_meter_row {
    dgm_phase phase;
    dgm_work work;
    dgm_precision precision; // of LINEAR and QUANTIZE
    int n, k;                // outputs and inputs of LINEAR; 0 elsewhere
    uint64_t calls, rows;
    uint64_t madds;        // multiply-adds of real rows and wanted columns, without padding
    uint64_t weight_bytes; // packed weights that were walked over
    uint64_t other_bytes;  // activations read and written
    double seconds;        // CPU time of the worker
} dgm_meter_row;

enum { DGM_METER_ROWS = 128 };

typedef struct dgm_meter {
    dgm_meter_row rows[DGM_METER_ROWS]; // what does not fit is added to the last one
    int count;
    dgm_phase phase;
    uint64_t phases[DGM_PHASE_COUNT]; // calls of each
} dgm_meter;

void dgm_exec_meter(dgm_exec *x, dgm_meter *meter);
void dgm_exec_phase(dgm_exec *x, dgm_phase phase);

// Told of the inputs of every product: max |x| of each of the rows; and of every rank when it is
// done. Either may be NULL.
typedef struct dgm_rank dgm_rank;
typedef struct dgm_observer {
    void (*inputs)(void *cookie, const dgm_linear *w, const float *largest, int rows);
    void (*ranked)(void *cookie, dgm_exec *x, const dgm_rank *rank);
    void *cookie;
} dgm_observer;

void dgm_exec_observe(dgm_exec *x, const dgm_observer *observer);

// ---- operations -------------------------------------------------------------------------------

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
size_t dgm_experts_bytes(const dgm_backend *b, int rows, int width, int experts);

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
size_t dgm_attend_bytes(const dgm_backend *b, int heads, int keys);
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

// Copies device rows to host floats (tests, tools).
void dgm_op_read(dgm_exec *x, float *host, dgm_mat in);

// ---- rank: projection, normalisation, terms, top-k ---------------------------------------------

// A few columns of an output layer, side by side on the device: what a sentence's candidates are
// multiplied with. Its numbers are the layer's own, so a product with it has the same bits as the
// same columns of the whole layer. Opened once and filled again and again, since a sentence's
// columns are gathered once and used in every step.
typedef struct dgm_gathered dgm_gathered;

// Room for up to `capacity` columns of w, from the worker's arena like dgm_exec_mat. NULL: it is
// full. The layer's tensors must stay open.
dgm_gathered *dgm_gathered_open(dgm_exec *x, const dgm_linear *w, int capacity);
// Bytes of the arena for `count` of them, with what filling one needs for a moment.
size_t dgm_gathered_bytes(const dgm_backend *b, const dgm_linear *w, int capacity, int count);
// Column i becomes output ids[i] of the layer; count <= capacity.
void dgm_op_gather_columns(dgm_exec *x, dgm_gathered *g, const int32_t *ids, int count);

// Tokens that may win for one sentence, ascending; NULL in their place means the whole vocabulary.
typedef struct dgm_candidates {
    const int32_t *ids;
    int count;
    // [parts of rank]: the columns of ids in their output layers. NULL: not gathered, rank picks
    // them out of the layers itself (see dgm_linear_by_rows).
    dgm_gathered *const *gathered;
} dgm_candidates;

// What scorers add to one row. The score of token v is
//   base + constant + lambda * log p(v) + table[v] + (value of v in each of the two sparse lists)
// and -inf where v is denied, or where allow is given and does not hold v.
typedef struct dgm_terms {
    float base, constant, lambda; // lambda = 1 without an evidence model
    const float *table;           // host, [vocabulary] or NULL
    const int32_t *add_ids;       // ascending
    const float *add_values;
    int add_count;
    const int32_t *row_ids; // ascending: what the row of an evidence model adds to its table
    const float *row_values;
    int row_count;
    const int32_t *allow; // ascending; NULL: everything
    int allow_count;
    const int32_t *deny; // ascending
    int deny_count;
} dgm_terms;

typedef enum dgm_mix { DGM_MIX_LOG_LINEAR = 0, DGM_MIX_ARITHMETIC, DGM_MIX_COUNT } dgm_mix;

typedef struct dgm_rank_part {
    const dgm_linear *out; // all parts have the same number of outputs
    dgm_mat hidden;        // [rows, inputs of out]
    float weight;          // weights of the parts sum to 1 for a mean
} dgm_rank_part;

struct dgm_rank {
    const dgm_rank_part *parts;
    int part_count;
    dgm_mix mix;
    bool normalise; // false: raw logits are log-probabilities (self-normalised models)
    int rows, k, watch_count;
    const dgm_candidates *const *candidates; // [rows] or NULL; softmax runs over the candidates
    // [rows] or NULL: further candidates of single rows that have a list, at most DGM_MORE_MAX and
    // none of them in that list; not gathered. NULL inside: none.
    const dgm_candidates *const *more;
    const dgm_terms *terms;                  // [rows]
    const int32_t *never; // ascending: counted in the softmax sum, never chosen
    int never_count;
    const int32_t *watch; // [rows, watch_count]; -1: nothing
    // results (host)
    float *score;       // [rows, k], best first; -inf where there are fewer than k
    int32_t *token;     // [rows, k]; -1 where the score is -inf
    float *watch_score; // [rows, watch_count]; never list and allow/deny do not apply to them
    float *log_z;       // [rows, part_count] or NULL
};

enum { DGM_MORE_MAX = 256 };

// Ties: lower token id first. Scratch: dgm_rank_bytes before opening the worker, and where rows have
// more candidates dgm_rank_more_bytes for the widest of the output layers.
void dgm_op_rank(dgm_exec *x, const dgm_rank *r);
size_t dgm_rank_bytes(const dgm_backend *b, int rows, int parts, int vocabulary);
size_t dgm_rank_more_bytes(const dgm_backend *b, const dgm_linear *out);

#endif
