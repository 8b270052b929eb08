// SPDX-License-Identifier: MIT
// Private to the recurrent models: weights as loaded, a worker's storage, and what the three
// decoders implement.
//
// Every use of a context c = sum_j p_j s_j is linear (gates, read-out), so their products with s_j
// are made once per sentence and attention adds up those instead: value_j = [gates | read-out] s_j;
// c itself exists only for layers that join it with other inputs, or when dgm_tuning asks for the
// plain path. Likewise everything that multiplies the old state is one product over the distinct
// parents of a step's rows, and everything that multiplies the new word is one product.
//
//   word   x_i    -> [att A (devlin) | gates G | read-out R']     per row, or from a table
//   old    h_p    -> [att A (not conditional) | gates G]          per distinct parent p
//   key    s_j    -> [A]                                          per source position
//   value  s_j    -> [gates G | read-out R']                      per source position (plain: row)
//   middle h~_i   -> [att A | gates G] (conditional)              per row
//
// A product may be normalised, whole or gate by gate (rnn_norm.c). Of a context this is no longer linear:
// such a model always takes the plain path. Behind a cell there may be others without an input
// (rnn_transition.c), which turn its state over again.
//
// With several heads (an unfolded ensemble) units of one head are neighbours everywhere, gates too: G
// = [r z g of head 0 | r z g of head 1 | ...]. Keys, values and recurrent cells are the heads' own.
//
// A decoder row's state is one vector: [h | cell (LSTM) | states of upper layers | top's (GRU)].
#ifndef DGM_MODEL_RNN_RNN_PRIVATE_H
#define DGM_MODEL_RNN_RNN_PRIVATE_H

#include "model/model_private.h"

enum { DGM_RNN_HEADS_MAX = 8, DGM_RNN_BLOCKS_MAX = 2 * DGM_RNN_HEADS_MAX };

// How a product is normalised: not at all, over all of its outputs, or over the two gates and the
// candidate of a GRU apart.
typedef enum rnn_norm { NORM_NONE, NORM_WHOLE, NORM_GATES } rnn_norm;

enum { DGM_RNN_NORMS_MAX = 6 };

// Layer norms of columns of a product's output.
typedef struct rnn_norms {
    int count;
    struct {
        int first, cols;
        dgm_vector *gamma, *beta;
        float eps;
    } part[DGM_RNN_NORMS_MAX];
} rnn_norms;

// A product, whole or in blocks with zeros between them that are never multiplied (rnn_blocks.c).
typedef struct rnn_product {
    int rows, cols; // of the whole
    int count;
    struct {
        dgm_linear *w;
        int row, col; // its first output and its first input
    } block[DGM_RNN_BLOCKS_MAX];
    rnn_norms norms;
} rnn_product;

// A cell without an input behind another one.
typedef struct rnn_transition {
    rnn_product h;
    dgm_vector *x; // [gates]: what stands in for the gates of an input; NULL: zeros
} rnn_transition;

typedef struct rnn_transitions {
    int count;
    bool lstm;
    rnn_transition *cell; // [count]
} rnn_transitions;

typedef struct rnn_layer {
    int directions;
    rnn_product x;    // both directions' gates of the input: [directions * gates * He, input]
    rnn_product h[2]; // gates of the state, forward and backward: [gates * He, He]
    rnn_transitions next[2];
} rnn_layer;

// A recurrent layer above the attentional one: gates of the input and of the state.
typedef struct rnn_cell {
    rnn_product x, h;
    rnn_transitions next;
} rnn_cell;

// Fully connected layers with skips: [width, input], [width, width], ...
typedef struct rnn_fc {
    int count, width;
    dgm_linear **layers; // [count]
    dgm_linear *top;     // tanh layer above them, or NULL
} rnn_fc;

// Products of one matrix with the embeddings of the most frequent words (rnn_precompute.c).
typedef struct rnn_table {
    int32_t *slot;    // [vocabulary]: row of `products`, or -1; NULL: there is no table
    int32_t start;    // row for ids below 0, whose embedding is a zero vector
    dgm_exec *memory; // owns the products
    dgm_mat products; // [words + 1, outputs]
} rnn_table;

// Units of one head, or the first of them in the whole network.
typedef struct rnn_units {
    int embed;                     // columns of the embeddings (0: not divided)
    int attention, encoder, width; // of attention, of each direction of the encoder, of both
    int hidden, readout;           // of the decoder; rows below its read-out (0: not divided)
} rnn_units;

// One head of attention with what reads its context. Most models have one, which is all of them;
// an unfolded ensemble has one for each of its members (rnn_heads.c).
typedef struct rnn_head {
    rnn_units units, first;
    dgm_vector *v;     // [attention], additive attention
    dgm_linear *value; // [value_gates + value_readout, width]
    int value_gates, value_readout;
} rnn_head;

// A matrix cut from one of the file, or in another order; lives as long as the model.
typedef struct rnn_cut rnn_cut;

typedef enum rnn_readout { READOUT_NONE, READOUT_LINEAR, READOUT_TANH, READOUT_MAXOUT } rnn_readout;
typedef enum rnn_top { TOP_NONE, TOP_TANH, TOP_GRU } rnn_top;
// What a direction of the encoder sees of the layer below: both directions, its own or the other.
typedef enum rnn_stacks { STACKS_JOINED, STACKS_SEPARATE, STACKS_CROSSED } rnn_stacks;

typedef struct rnn_decoder rnn_decoder;

typedef struct rnn {
    int embed, encoder_hidden, encoder_layers, both_layers, gates; // gates: 3 (GRU), 4 (LSTM)
    int width;                                                     // of the encoder's output
    int hidden, attention;                                         // H, A
    int cell_gates; // of the decoder's cell and its upper layers: 3 or 4
    int upper_layers;
    int stack_width;                // of the vector above all layers
    int top_size;                   // 0 without one
    int bottom_width, state_width;  // numbers of one recurrent layer's state, of a row's
    int readout_size, readout_rows; // R and R': 2R with maxout; 0 without read-out
    bool lstm, cell_lstm;           // encoder, decoder
    bool encoder_residual, upper_context, upper_residual;
    int encoder_residual_from, upper_residual_from; // the first layer with one
    rnn_stacks stacks;
    rnn_norm encoder_norm, cell_norm, norm; // of the cells of both sides, of all other products
    float norm_eps, gate_norm_eps;          // of NORM_WHOLE and of NORM_GATES
    int encoder_transitions, cell_transitions, upper_transitions;
    bool start_all;       // h_0 is every layer's first state and cell
    bool plain, separate; // dgm_tuning: contexts before products; no sharing of parents
    rnn_readout readout;
    rnn_top top;
    const rnn_decoder *decoder;
    dgm_embedding *source, *target;
    rnn_layer *layers;
    rnn_fc source_fc, fc;
    rnn_cell *upper; // [upper_layers]
    rnn_cell top_cell;
    dgm_linear *top_tanh;
    rnn_product init; // [H, W]
    rnn_product word, old, middle, key;
    rnn_norms value_norms; // of products with the context
    rnn_transitions next;  // behind the decoder's second cell
    rnn_product readout_h; // [R', stack width]
    int heads;             // at least 1
    bool divided;          // the file says which units belong to which head
    rnn_head head[DGM_RNN_HEADS_MAX];
    rnn_cut *cuts; // list
    rnn_table source_table, target_table;
} rnn;

typedef struct rnn_state {
    // Of each head: [slots * source, A], [slots * source, memory width].
    dgm_mat keys[DGM_RNN_HEADS_MAX], values[DGM_RNN_HEADS_MAX];
    dgm_mat initial;      // [slots, H]: h_0
    dgm_mat states;       // [pool rows, state width]
    dgm_mat hidden;       // [rows, R or stack width]: the last step's
    int32_t *mark;        // [pool rows]: -1, or the parent's number among the distinct ones
    dgm_model_counts counts;
} rnn_state;

// One call of step, as the decoders see it.
typedef struct rnn_step {
    dgm_state *s;
    const rnn *r;
    rnn_state *rs;
    int count, distinct;    // rows; parents told apart, or rows again (dgm_tuning.separate_rows)
    const int32_t *rows;    // [count]: the new rows
    int32_t *parents;       // [count]
    int32_t *unique;        // [distinct]: rows that are parents
    int32_t *which;         // [count]: index into unique
    int32_t *first, *length; // [count]: room for dgm_op_paths
    float *const *align;    // as in dgm_step_result
    dgm_mat word;           // [count, ...]: products with the new word
    dgm_mat parent;         // [distinct, state width]: the parents' states
    dgm_mat old;            // [distinct, ...]: products with their h
    dgm_mat state;          // [count, H]: the parents' h
    dgm_mat summed;         // [count, memory width]: out, attention's sum of values; of one head
    dgm_mat context;        // [count, G + R']: out, products with the context
    dgm_mat next;           // [count, state width]: out, the new states
} rnn_step;

// Tensor NAME.weight with its number of rows; 0 rows: the model has none.
typedef struct rnn_matrix {
    const char *name;
    int rows;
    bool bias; // a `linear` of the format; without it a bias in the file means nothing
    rnn_norm norm;
} rnn_matrix;

struct rnn_decoder {
    bool product;    // product attention (keys beside values), else additive
    dgm_act key_act; // applied to the keys when they are made
    dgm_status (*load)(dgm_model *m, rnn *r, dgm_error *err);
    dgm_bytes (*scratch)(const dgm_model *m, int rows); // of step, beyond rnn_step's own matrices
    // Fills summed, context (by dgm_rnn_context) and the bottom layer's part of next.
    void (*step)(rnn_step *c);
};

extern const rnn_decoder dgm_rnn_devlin, dgm_rnn_conditional, dgm_rnn_bahdanau;

// rnn_load.c
dgm_status dgm_rnn_load(dgm_model *m, dgm_error *err);
void dgm_rnn_unload(dgm_model *m);
// What additive attention needs of every source position: key and v.
dgm_status dgm_rnn_load_additive(dgm_model *m, rnn *r, dgm_error *err);

// rnn_blocks.c: matrices below each other as one product, and what is made of every context, head by
// head: gates, then read-out.
dgm_status dgm_rnn_load_product(dgm_model *m, const rnn_matrix *matrices, int count, int cols,
                                rnn_product *out, dgm_error *err);
dgm_status dgm_rnn_load_values(dgm_model *m, const rnn_matrix *gates, const rnn_matrix *readout,
                               dgm_error *err);
// Two matrices below each other, each of its own columns: the first ones of the other, or the reverse.
dgm_status dgm_rnn_load_pair(dgm_model *m, const rnn_matrix matrices[2], int cols, bool crossed,
                             rnn_product *out, dgm_error *err);
void dgm_rnn_product_free(dgm_backend *b, rnn_product *p);
void dgm_rnn_cuts_free(rnn *r);
// As dgm_op_linear.
void dgm_rnn_multiply(dgm_exec *e, dgm_mat y, dgm_mat x, const rnn_product *p, dgm_act act,
                      const dgm_mat *residual);

// rnn_norm.c: the norms of matrices that lie below each other. Those of a model with heads are none.
dgm_status dgm_rnn_norms_load(dgm_model *m, const rnn_matrix *matrices, int count, rnn_norms *out,
                              dgm_error *err);
void dgm_rnn_norms_free(dgm_backend *b, rnn_norms *n);
void dgm_rnn_norms_apply(dgm_exec *e, const rnn_norms *n, dgm_mat y); // in place

// rnn_transition.c
typedef struct rnn_chain {
    int gates, hidden;
    rnn_norm norm;
    bool lstm;
} rnn_chain;
// NAME.t0.h, NAME.t0.x, NAME.t1.h, ...
dgm_status dgm_rnn_transitions_load(dgm_model *m, const char *name, const rnn_chain *how, int count,
                                    rnn_transitions *out, dgm_error *err);
void dgm_rnn_transitions_free(dgm_backend *b, rnn_transitions *t);
// What stands in for inputs: gx [count * rows, gates], rows of the first, of the second, ...
void dgm_rnn_transitions_inputs(dgm_exec *e, const rnn_transitions *t, dgm_mat gx);
// Turns states h [n, hidden] (and cells) over. gx as above with gx.rows / count >= n rows of each;
// gh [n, gates] is scratch.
void dgm_rnn_transitions_run(dgm_exec *e, const rnn_transitions *t, dgm_mat h, dgm_mat cell,
                             dgm_mat gx, dgm_mat gh);

// rnn_settings.c: the model's keys.
dgm_status dgm_rnn_settings(dgm_model *m, rnn *r, dgm_error *err);

// rnn_encoder.c
dgm_bytes dgm_rnn_encode_scratch(const dgm_model *m, const dgm_limits *l);
void dgm_rnn_encode(dgm_state *s, int count, const dgm_source *sources, const int32_t *slots);

// rnn_stack.c: layers above the cell, and fully connected ones on the source.
dgm_status dgm_rnn_stack_load(dgm_model *m, rnn *r, dgm_error *err);
dgm_status dgm_rnn_source_load(dgm_model *m, rnn *r, dgm_error *err);
void dgm_rnn_stack_unload(dgm_model *m, rnn *r);
size_t dgm_rnn_stack_scratch(const dgm_model *m, int rows);
// Everything above c->next's bottom part; returns the vector for read-out or output [count, ...].
dgm_mat dgm_rnn_stack(rnn_step *c);
size_t dgm_rnn_fc_scratch(const dgm_backend *b, const rnn_fc *fc, int rows, int output);
// All layers of fc on x [n, ...]; with a tanh layer on top the result goes to out [n, output].
dgm_mat dgm_rnn_fc(dgm_exec *e, const rnn_fc *fc, dgm_mat x, dgm_mat out);

// rnn_heads.c: settings, memory of a state and what the encoder leaves in it.
dgm_status dgm_rnn_heads_settings(const dgm_gguf *g, rnn *r, dgm_error *err);
int dgm_rnn_value_rows(const rnn_head *h);
int dgm_rnn_memory_width(const rnn *r, int head); // what attention adds up: products, s_j, or both
size_t dgm_rnn_memory_bytes(const dgm_model *m, int places);
bool dgm_rnn_memory_take(dgm_state *s, rnn_state *rs); // false: there is not enough
// Encoder output in the order of layers [rows, W], direction by direction, to one head by head.
void dgm_rnn_heads_order(dgm_exec *e, const rnn *r, dgm_mat memory, dgm_mat out,
                         const int32_t *index);
// Keys and values of rows of the encoder's output, in that order.
void dgm_rnn_heads_keep(dgm_state *s, dgm_mat memory, const int32_t *place);
size_t dgm_rnn_keep_scratch(const dgm_model *m, int rows);

// rnn_precompute.c
typedef struct rnn_words {
    const dgm_embedding *table;
    const rnn_product *layer;
    const rnn_table *made; // may be empty
} rnn_words;

dgm_status dgm_rnn_tune(dgm_model *m, const dgm_tuning *t, dgm_error *err);
void dgm_rnn_table_free(rnn_table *t);
dgm_bytes dgm_rnn_words_scratch(const dgm_backend *b, int rows, int embed, int outputs);
// y [n, outputs] = products with the embeddings of ids; returns how many came from the table.
int dgm_rnn_word_products(dgm_exec *e, const rnn_words *w, dgm_mat y, const int32_t *ids);

// rnn.c
int dgm_rnn_value_width(const rnn *r); // all products with the context: gates and read-out
// The source positions of rows[0 .. n).
const dgm_paths *dgm_rnn_sources(rnn_step *c, const int32_t *rows, int n);
// What a head makes of a context: products [n, value rows] from what attention added up; both may be
// views of the same rows.
void dgm_rnn_context(const rnn_step *c, const rnn_head *h, dgm_mat products, dgm_mat summed);
// One recurrent cell: next from state (both with the LSTM's cell behind them) and gates.
void dgm_rnn_cell(const rnn_step *c, bool lstm, dgm_mat next, dgm_mat state, dgm_mat gx,
                  dgm_mat gh);
// The cells behind one, in place on its new state. room, gh [count, gates]: scratch.
void dgm_rnn_turn_over(const rnn_step *c, const rnn_transitions *t, dgm_mat next, dgm_mat room,
                       dgm_mat gh);

#endif
