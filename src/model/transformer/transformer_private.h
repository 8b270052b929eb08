// SPDX-License-Identifier: MIT
// Private to the Transformer and its relatives: weights and settings as loaded from the file, a
// worker's storage, and the parts of a layer (transformer_layer.c) that transformer.c,
// transformer_recurrent.c (SSRU and average attention) and cmlm.c share.
#ifndef DGM_MODEL_TRANSFORMER_TRANSFORMER_PRIVATE_H
#define DGM_MODEL_TRANSFORMER_TRANSFORMER_PRIVATE_H

#include "model/model_private.h"

typedef struct norm {
    dgm_vector *gamma, *beta; // gamma NULL: there is none
    const dgm_linear *reader; // the layer that multiplies its rows in the very next operation; NULL: none does
} norm;

// Of a sub-layer: of what it reads, and behind it (`residual`). Most models have one of the two.
typedef struct norms {
    norm before, behind;
    dgm_linear *gates; // [2D, D] with a gated residual, else NULL
} norms;

// A feed-forward layer is one network, or a gate and experts (transformer_moe.c).
typedef struct feed_forward {
    dgm_linear *in, *out;         // [F, D], gated [2F, D]; [D, F]; NULL with experts
    dgm_linear **more;            // [depth - 2] between them, [F, F] each; NULL: none
    dgm_experts *experts;         // NULL: a plain layer
    dgm_vector *gate, *gate_bias; // [experts, D], [1, experts]; the bias may be NULL
    norms norms;
} feed_forward;

// Which layers have experts and how rows choose among them (docs/internals/FORMAT.md, 2.4).
typedef struct mixture {
    int experts, top; // 0: no layer has
    int encoder_every,
        decoder_every; // layers every, 2 every, ... of a side, counted from 1; 0: none
    bool normalise;
    float scale;
} mixture;

typedef struct encoder_layer {
    dgm_linear *qkv, *o; // [3 inner, D], [D, inner] or NULL
    dgm_vector *bias;    // of relative positions, or NULL; may be the layer's before
    norms norms;
    feed_forward ffn;
} encoder_layer;

typedef enum decoder_kind { DECODER_ATTENTION = 0, DECODER_SSRU, DECODER_AAN } decoder_kind;

typedef struct decoder_layer {
    dgm_linear *qkv, *o; // self-attention; with SSRU qkv is [2D, D]: W and the forget gate
    dgm_linear *aan_in, *aan_out, *gate; // average attention: [F, D], [D, F], [2D, 2D] or NULL
    dgm_vector *bias;
    norms norms;
    dgm_linear *cross_q, *cross_o;
    norms cross_norms;
    feed_forward ffn;
} decoder_layer;

typedef enum norm_place { NORM_POST = 0, NORM_PRE, NORM_BOTH, NORM_NONE } norm_place;

// What a layer makes of x and a sub-layer's result u, where there is a norm behind it.
typedef enum residual_kind {
    RESIDUAL_SUM = 0, // norm(x + u)
    RESIDUAL_APART,   // x + norm(u)
    RESIDUAL_NONE,    // norm(u)
    RESIDUAL_GATED,   // norm(a * u + b * x), [a; b] = sigmoid(gates x)
    RESIDUAL_GATED_APART // a * norm(u) + b * x
} residual_kind;

// One side: encoder or decoder.
typedef struct stack {
    int layers, ffn;
    int depth; // layers of a feed-forward network, 2 unless a file says
    int heads, dk, inner; // of attention: heads, their width, and both multiplied
    float query_scale;
    norm_place place;
    residual_kind residual;
    bool final;              // it has a norm behind the last layer
    norm embed_norm, final_norm;
    dgm_vector *positions; // the decoder's may be NULL: the encoder's
    int position_offset;
    const int32_t *tensors_of; // [layers] whose tensors a layer has; NULL: its own
} stack;

typedef struct transformer {
    int d;
    int widest; // of D and the inner widths of attention
    stack enc, dec;
    int tokens; // of a step: 2 in a decoder of pairs
    dgm_precision precision;
    decoder_kind cell;
    bool scale_embedding;
    bool rms;   // norms are RMS norms
    bool gated; // feed-forward layers are gated
    bool no_output; // attention has no output layer
    float eps;
    dgm_act act;
    int aan_ffn; // average attention's own
    dgm_act aan_act;
    bool aan_gate, rnn_output;
    bool aan_norm_average; // the norm before average attention is one of the average
    int buckets, distance; // of relative positions; 0: there are none
    int reach;             // positions that their tables have
    mixture moe;
    dgm_embedding *source, *target; // target may be source
    dgm_vector *start;
    encoder_layer *encoder;
    decoder_layer *decoder;
    dgm_linear *cross_kv; // all decoder layers' keys and values: [layers * 2 inner, D]
    // A masked language model's: the encoder's first input, and the classifier of lengths on its
    // output [lengths, D].
    dgm_vector *length_input;
    dgm_linear *length;
    int lengths;
} transformer;

typedef struct transformer_state {
    dgm_blocks *cross; // [layers]
    // [layers] of the pool's rows: with attention [tokens * rows, 2 inner], else one cell [rows, D].
    // NULL in a masked language model.
    dgm_mat *kv;
    dgm_mat hidden;  // [tokens * rows, D]
    dgm_mat lengths; // [slots, lengths] logits
} transformer_state;

// Buffers of one call, all with the call's number of rows.
typedef struct buffers {
    dgm_mat x, normed; // [rows, D]
    dgm_mat att;       // [rows, widest]
    dgm_mat qkv;       // [rows, 3 widest]
    dgm_mat wide;      // [rows, F], or all layers' keys and values
} buffers;

// Everything one step call looks up once and every layer uses. n rows make n * tokens vectors:
// those of a row are neighbours.
typedef struct step_call {
    dgm_state *s;
    const transformer *t;
    transformer_state *ts;
    buffers b;
    const int32_t *rows;   // [n] the new rows
    int32_t *parents;      // [n] of the new rows
    int32_t *owner;        // [n * tokens] of a vector: its row's place among the n
    int32_t *entries;      // [n * tokens] where its keys and values go
    const dgm_paths *self;  // of the vectors: their ancestors; NULL without self-attention
    const dgm_paths *cross; // and the blocks of their slots
    const dgm_align_list *align; // NULL: nobody wants any
} step_call;

// Tensor names are short and made from a pattern and a layer number.
typedef struct tensor_name {
    char text[96];
} tensor_name;

tensor_name dgm_transformer_name(const char *fmt, ...) DGM_PRINTF(1, 2);

// transformer_settings.c: the metadata.
typedef enum position_kind {
    SINUSOID,
    SINUSOID_MARIAN,
    LEARNED,
    NO_POSITIONS,
    RELATIVE
} position_kind;

typedef struct settings {
    position_kind positions;
    int start;
} settings;

dgm_status dgm_transformer_settings(dgm_model *m, transformer *t, settings *s, dgm_error *err);

// transformer_positions.c: tables of positions, and those of how far apart two positions are.
dgm_status dgm_transformer_positions(dgm_model *m, transformer *t, const settings *s, dgm_error *err);
// The bucket of a key `ahead` places behind (negative: before) its query.
int dgm_transformer_bucket(int ahead, bool both_ways, int buckets, int distance);
// [rows, d] of (float)sin(p * rate), then (float)cos(p * rate), to the bit; d is even.
dgm_status dgm_transformer_sinusoids(float *table, int rows, int d, bool marian, dgm_error *err);
// Tensor PREFIX.self.rel [buckets, heads] as a table of biases; *out stays where it is absent.
dgm_status dgm_transformer_relative(dgm_model *m, const char *prefix, bool both_ways, dgm_need need,
                                    dgm_vector **out, dgm_error *err);

// transformer_moe.c: settings; whether layer number `i` has experts; its tensors PREFIX.moe.*; and y,
// the sum of the chosen experts' results for the rows of in.
dgm_status dgm_transformer_moe_settings(const dgm_gguf *g, mixture *moe, dgm_error *err);
bool dgm_transformer_moe_at(int every, int i);
dgm_status dgm_transformer_moe_load(dgm_model *m, const mixture *moe, const char *prefix, int d,
                                    int f, feed_forward *out, dgm_error *err);
void dgm_transformer_moe_free(dgm_backend *b, feed_forward *f);
void dgm_transformer_moe_run(dgm_exec *e, const transformer *t, const feed_forward *f, dgm_mat y,
                             dgm_mat in, dgm_mat inner);
void dgm_transformer_experts(const dgm_model *m, dgm_experts_use *out); // the table's `experts`

dgm_status dgm_transformer_load(dgm_model *m, dgm_error *err);
dgm_status dgm_double_load(dgm_model *m, dgm_error *err);
dgm_status dgm_cmlm_load(dgm_model *m, dgm_error *err);
void dgm_transformer_unload(dgm_model *m);

dgm_bytes dgm_transformer_bytes(const dgm_model *m, const dgm_limits *l);
dgm_status dgm_transformer_open(dgm_state *s, dgm_error *err);
void dgm_transformer_encode(dgm_state *s, int count, const dgm_source *sources,
                            const int32_t *slots);

buffers dgm_transformer_buffers(dgm_exec *e, const transformer *t, int rows, int wide);
size_t dgm_transformer_buffers_bytes(const dgm_backend *b, const transformer *t, int rows, int wide);
// y = norm(x), or norm(x + add), with `add` not NULL.
void dgm_transformer_norm(dgm_exec *e, const transformer *t, dgm_mat y, dgm_mat x, const dgm_mat *add,
                          const norm *n);
// What a sub-layer reads: x itself, or its norm.
dgm_mat dgm_transformer_input(dgm_exec *e, const transformer *t, const buffers *b, const norms *n);
// x becomes what the side makes of x and a sub-layer's result u [rows, D], which is used up.
void dgm_transformer_settle(dgm_exec *e, const transformer *t, const stack *side, const buffers *b,
                            dgm_mat u, const norms *n);
// The same for u = W in; without W, u = in.
void dgm_transformer_close(dgm_exec *e, const transformer *t, const stack *side, const buffers *b,
                           dgm_mat in, const dgm_linear *w, const norms *n);
bool dgm_transformer_is_gated(const stack *side); // its residuals
// Width of the buffer that a side's layers need.
int dgm_transformer_inner(const transformer *t, const stack *side);
void dgm_transformer_feed_forward(dgm_exec *e, const transformer *t, const stack *side,
                                  const buffers *b, const feed_forward *f);
// att = attention of the queries q over keys and values, the last 2 inner columns of kv.
void dgm_transformer_attend(dgm_exec *e, const transformer *t, const stack *side, dgm_mat att,
                            dgm_mat q, dgm_mat kv, const dgm_vector *bias, const dgm_paths *paths);
void dgm_transformer_cross(dgm_state *s, const buffers *b, int layer, const dgm_paths *paths,
                           const dgm_align_list *align);
// y = the decoder's output: x, or its norm.
void dgm_transformer_final(dgm_exec *e, const transformer *t, dgm_mat y, dgm_mat x);
void dgm_transformer_embed(dgm_state *s, const buffers *b, const int32_t *ids, const int32_t *pos);
int dgm_transformer_block(const dgm_state *s, int32_t slot); // first of a slot's

// transformer_recurrent.c: sub-layers in place of self-attention.
void dgm_transformer_ssru(const step_call *c, int layer);
void dgm_transformer_aan(const step_call *c, int layer);
int dgm_transformer_wide(const transformer *t); // width of a step's widest buffer

#endif
