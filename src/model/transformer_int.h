// SPDX-License-Identifier: MIT
// Private to the Transformer: its weights and settings, as loaded from the file.
#ifndef DGM_MODEL_TRANSFORMER_INT_H
#define DGM_MODEL_TRANSFORMER_INT_H

#include "model/model_int.h"

typedef struct norm {
    dgm_vector *gamma, *beta;
} norm;

typedef struct feed_forward {
    dgm_linear *in, *out; // [F, D], [D, F]
    norm norm;
} feed_forward;

typedef struct encoder_layer {
    dgm_linear *qkv, *o; // [3D, D], [D, D]
    norm norm;
    feed_forward ffn;
} encoder_layer;

typedef struct decoder_layer {
    dgm_linear *qkv, *o; // self-attention; with SSRU qkv is [2D, D]: W and the forget gate
    norm norm;
    dgm_linear *cross_q, *cross_o;
    norm cross_norm;
    feed_forward ffn;
} decoder_layer;

typedef struct transformer {
    int d, heads, encoder_layers, decoder_layers, ffn, decoder_ffn;
    bool pre_norm, ssru, scale_embedding;
    float eps;
    dgm_act act;
    int position_offset;
    dgm_embedding *source, *target; // target may be source
    dgm_vector *encoder_positions, *decoder_positions; // decoder's may be the encoder's; may be NULL
    dgm_vector *start;
    norm encoder_embed_norm, decoder_embed_norm; // optional
    norm encoder_norm, decoder_norm;             // pre-norm
    encoder_layer *encoder;
    decoder_layer *decoder;
    dgm_linear *cross_kv; // all decoder layers' keys and values: [layers * 2D, D]
} transformer;

dgm_status dgm_transformer_load(dgm_model *m, dgm_error *err);
void dgm_transformer_unload(dgm_model *m);

#endif
