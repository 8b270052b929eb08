// SPDX-License-Identifier: MIT
// Private to the recurrent models: weights as loaded, a worker's storage, and what the three
// decoders implement.
//
// Every use of a context c = sum_j p_j s_j is linear (gates, read-out), so their products with s_j
// are made once per sentence and attention adds up those instead: value_j = [gates | read-out] s_j;
// c itself never exists. Likewise everything that multiplies the old state is one product over the
// distinct parents of a step's rows, and everything that multiplies the new word is one product.
//
//   word   x_i    -> [att A (devlin) | gates 3H | read-out R']     per row
//   old    h_p    -> [att A (not conditional) | gates 3H]          per distinct parent p
//   key    s_j    -> [A]                                           per source position
//   value  s_j    -> [gates 3H | read-out R']                      per source position
//   middle h~_i   -> [att A | gates 3H] (conditional)              per row
#ifndef DGM_MODEL_RNN_INT_H
#define DGM_MODEL_RNN_INT_H

#include "model/model_int.h"

typedef struct rnn_layer {
    dgm_linear *x;    // both directions' gates of the input: [directions * gates * He, input]
    dgm_linear *h[2]; // gates of the state, forward and backward: [gates * He, He]
} rnn_layer;

typedef enum rnn_readout { READOUT_NONE, READOUT_LINEAR, READOUT_TANH, READOUT_MAXOUT } rnn_readout;

typedef struct rnn_decoder rnn_decoder;

typedef struct rnn {
    int embed, encoder_hidden, encoder_layers, directions, gates; // gates: 3 (GRU), 4 (LSTM)
    int width;                      // of the encoder's output: directions * encoder_hidden
    int hidden, attention;          // H, A
    int readout_size, readout_rows; // R and R': 2R with maxout; 0 without read-out
    bool lstm;
    rnn_readout readout;
    const rnn_decoder *decoder;
    dgm_embedding *source, *target;
    rnn_layer *layers;
    dgm_linear *init; // [H, W]
    dgm_linear *word, *old, *middle, *key, *value;
    dgm_linear *readout_h; // [R', H]
    dgm_vector *v;         // [A], additive attention
} rnn;

typedef struct rnn_state {
    dgm_mat keys, values;       // [slots * source, A], [slots * source, 3H + R']
    dgm_mat initial;            // [slots, H]: h_0
    dgm_mat states;             // [pool rows, H]
    dgm_mat hidden;             // [rows, R or H]: the last step's
    int32_t *mark;              // [pool rows]: -1, or the parent's number among the distinct ones
    uint64_t stepped, distinct; // rows and distinct parents of all steps so far
} rnn_state;

// One call of step, as the decoders see it.
typedef struct rnn_step {
    dgm_state *s;
    const rnn *r;
    rnn_state *rs;
    int count, distinct;
    const int32_t *rows;    // [count]: the new rows
    int32_t *parents;       // [count]
    int32_t *unique;        // [distinct]: rows that are parents
    int32_t *which;         // [count]: index into unique
    dgm_attend_row *attend; // [count]: room for dgm_attend.rows
    float *const *align;    // as in dgm_step_result
    dgm_mat word;           // [count, ...]: products with the new word
    dgm_mat old;            // [distinct, ...]: products with the parents' states
    dgm_mat state;          // [count, H]: the parents' states
    dgm_mat context;        // [count, 3H + R']: out, attention's sum of values
    dgm_mat next;           // [count, H]: out, the new states
} rnn_step;

// Tensor dec.NAME with its number of rows; 0 rows: the model has none.
typedef struct rnn_piece {
    const char *name;
    int rows;
    bool bias; // a `linear` of the format; without it a bias in the file means nothing
} rnn_piece;

struct rnn_decoder {
    bool product;    // product attention (keys beside values), else additive
    dgm_act key_act; // applied to the keys when they are made
    dgm_status (*load)(dgm_model *m, rnn *r, dgm_error *err);
    size_t (*scratch)(const dgm_model *m, int rows); // of step, beyond rnn_step's own matrices
    void (*step)(rnn_step *c);
};

extern const rnn_decoder dgm_rnn_devlin, dgm_rnn_conditional, dgm_rnn_bahdanau;

// rnn_load.c
dgm_status dgm_rnn_load(dgm_model *m, dgm_error *err);
void dgm_rnn_unload(dgm_model *m);
dgm_status dgm_rnn_load_stack(dgm_model *m, const rnn_piece *pieces, int count, int cols,
                              dgm_linear **out, dgm_error *err);

// rnn_encoder.c
size_t dgm_rnn_encode_scratch(const dgm_model *m, const dgm_limits *l);
void dgm_rnn_encode(dgm_state *s, int count, const dgm_source *sources, const int32_t *slots);

// rnn.c: sets attend[i] to the slot of rows[i], for i < n.
void dgm_rnn_attend_slots(rnn_step *c, const int32_t *rows, int n);

#endif
