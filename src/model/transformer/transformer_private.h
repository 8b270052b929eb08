// SPDX-License-Identifier: MIT
// Private to the Transformer and its relatives: weights and settings as loaded from the file, a
// worker's storage, and the parts of a layer that transformer.c, transformer_recurrent.c (SSRU and
// average attention) and cmlm.c share.
#ifndef DGM_MODEL_TRANSFORMER_TRANSFORMER_PRIVATE_H
#define DGM_MODEL_TRANSFORMER_TRANSFORMER_PRIVATE_H

#include "model/model_private.h"

typedef struct norm {
    dgm_vector *gamma, *beta;
} norm;

// A feed-forward layer is one network, or a gate and experts (transformer_moe.c).
typedef struct feed_forward {
    dgm_linear *in, *out;         // [F, D], [D, F]; NULL with experts
    dgm_experts *experts;         // NULL: a plain layer
    dgm_vector *gate, *gate_bias; // [experts, D], [1, experts]; the bias may be NULL
    norm norm;
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
    dgm_linear *qkv, *o; // [3D, D], [D, D]
    norm norm;
    feed_forward ffn;
} encoder_layer;

typedef enum decoder_kind { DECODER_ATTENTION = 0, DECODER_SSRU, DECODER_AAN } decoder_kind;

typedef struct decoder_layer {
    dgm_linear *qkv, *o; // self-attention; with SSRU qkv is [2D, D]: W and the forget gate
    dgm_linear *aan_in, *aan_out, *gate; // average attention: [F, D], [D, F], [2D, 2D]
    norm norm;
    dgm_linear *cross_q, *cross_o;
    norm cross_norm;
    feed_forward ffn;
} decoder_layer;

typedef struct transformer {
    int d, heads, encoder_layers, decoder_layers, ffn, decoder_ffn;
    int tokens; // of a step: 2 in a decoder of pairs
    decoder_kind cell;
    bool pre_norm, scale_embedding;
    float eps;
    dgm_act act;
    mixture moe;
    int position_offset;
    dgm_embedding *source, *target; // target may be source
    dgm_vector *encoder_positions,
        *decoder_positions; // decoder's may be the encoder's; may be NULL
    dgm_vector *start;
    norm encoder_embed_norm, decoder_embed_norm; // optional
    norm encoder_norm, decoder_norm;             // pre-norm
    encoder_layer *encoder;
    decoder_layer *decoder;
    dgm_linear *cross_kv; // all decoder layers' keys and values: [layers * 2D, D]
    // A masked language model's: the encoder's first input, and the classifier of lengths on its
    // output [lengths, D].
    dgm_vector *length_input;
    dgm_linear *length;
    int lengths;
} transformer;

typedef struct transformer_state {
    dgm_blocks *cross; // [layers]
    // [layers] of the pool's rows: with attention [tokens * rows, 2D], else one cell [rows, D].
    // NULL in a masked language model.
    dgm_mat *kv;
    dgm_mat hidden;  // [tokens * rows, D]
    dgm_mat lengths; // [slots, lengths] logits
} transformer_state;

// Buffers of one call, all with the call's number of rows.
typedef struct buffers {
    dgm_mat x, normed, att; // [rows, D]
    dgm_mat qkv;            // [rows, 3D]
    dgm_mat wide;           // [rows, F], or all layers' keys and values
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

buffers dgm_transformer_buffers(dgm_exec *e, int rows, int d, int wide);
size_t dgm_transformer_buffers_bytes(const dgm_backend *b, int rows, int d, int wide);
void dgm_transformer_norm(dgm_exec *e, const transformer *t, dgm_mat y, dgm_mat x, const norm *n);
// What a sub-layer reads: x itself, or its norm.
dgm_mat dgm_transformer_input(dgm_exec *e, const transformer *t, const buffers *b, const norm *n);
// x = x + W in, and the norm behind it (post-norm).
void dgm_transformer_close(dgm_exec *e, const transformer *t, const buffers *b, dgm_mat in,
                           const dgm_linear *w, const norm *n);
void dgm_transformer_feed_forward(dgm_exec *e, const transformer *t, const buffers *b,
                                  const feed_forward *f);
// att = attention of the queries q over keys and values, the last 2D columns of kv.
void dgm_transformer_attend(dgm_exec *e, const transformer *t, dgm_mat att, dgm_mat q, dgm_mat kv,
                            const dgm_paths *paths);
void dgm_transformer_cross(dgm_state *s, const buffers *b, int layer, const dgm_paths *paths,
                           const dgm_align_list *align);
void dgm_transformer_embed(dgm_state *s, const buffers *b, const int32_t *ids, const int32_t *pos);
int dgm_transformer_block(const dgm_state *s, int32_t slot); // first of a slot's

// transformer_recurrent.c: sub-layers in place of self-attention.
void dgm_transformer_ssru(const step_call *c, int layer);
void dgm_transformer_aan(const step_call *c, int layer);
int dgm_transformer_wide(const transformer *t); // width of a step's widest buffer

#endif
