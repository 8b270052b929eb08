// SPDX-License-Identifier: MIT
// The Transformer's metadata (docs/internals/FORMAT.md, 2.4).
#include <math.h>
#include <string.h>

#include "model/transformer/transformer_private.h"

enum { MAX_WIDTH = 1 << 16, MAX_LAYERS = 1024, MAX_DEPTH = 64, MAX_BUCKETS = 1 << 16, MAX_DISTANCE = 1 << 20 };

#define KEY(name) "dragoman.transformer." name

static const char *const place_names[] = {"post", "pre", "both", "none", NULL}; // norm_place
static const char *const residual_names[] = {"sum",   "apart",       "none",
                                             "gated", "gated_apart", NULL}; // residual_kind
static const char *const norm_kinds[] = {"layer", "rms", NULL};
static const char *const decoder_names[] = {"self_attention", "ssru", "aan", NULL}; // decoder_kind
static const char *const aan_norms[] = {"input", "average", NULL};
static const char *const start_names[] = {"zero", "learned", NULL};
static const char *const position_names[] = {"sinusoid", "sinusoid_marian", "learned",
                                             "none",     "relative",        NULL}; // position_kind
static const char *const activation_names[] = {
    "relu", "relu10", "swish", "gelu", "gelu_tanh", "tanh", "sigmoid", "gelu_sigmoid", NULL};
static const dgm_act activations[] = {DGM_ACT_RELU,      DGM_ACT_RELU10, DGM_ACT_SWISH,
                                      DGM_ACT_GELU,      DGM_ACT_GELU_TANH, DGM_ACT_TANH,
                                      DGM_ACT_SIGMOID,   DGM_ACT_GELU_SIGMOID};

// *out is the default where the key may be absent.
static dgm_status get_size(const dgm_gguf *g, const char *key, dgm_need need, int max, int *out,
                           dgm_error *err)
{
    uint32_t v = (uint32_t)*out;
    DGM_TRY(dgm_gguf_get_u32(g, key, need, 1, (uint32_t)max, &v, err));
    *out = (int)v;
    return DGM_OK;
}

static dgm_status get_act(const dgm_gguf *g, const char *key, dgm_need need, dgm_act *out,
                          dgm_error *err)
{
    int act = -1;
    DGM_TRY(dgm_gguf_get_enum(g, key, need, activation_names, &act, err));
    if (act >= 0) *out = activations[act];
    return DGM_OK;
}

// Layers that share tensors: of each the layer whose tensors it has.
static dgm_status get_tied(const dgm_gguf *g, const char *key, stack *side, dgm_error *err)
{
    const int32_t *of = NULL;
    size_t count = 0;
    DGM_TRY(dgm_gguf_get_i32s(g, key, DGM_OPTIONAL, 0, side->layers - 1, &of, &count, err));
    DGM_FAIL_IF(of && count != (size_t)side->layers, err, DGM_ERR_FORMAT,
                "metadata key '%s' has %zu layers, but the side has %d", key, count, side->layers);
    side->tensors_of = of;
    return DGM_OK;
}

static dgm_status get_sizes(const dgm_gguf *g, transformer *t, dgm_error *err)
{
    stack *enc = &t->enc, *dec = &t->dec;
    DGM_TRY(get_size(g, KEY("d_model"), DGM_REQUIRED, MAX_WIDTH, &t->d, err));
    DGM_TRY(get_size(g, KEY("heads"), DGM_REQUIRED, MAX_WIDTH, &enc->heads, err));
    dec->heads = enc->heads;
    DGM_TRY(get_size(g, KEY("decoder_heads"), DGM_OPTIONAL, MAX_WIDTH, &dec->heads, err));
    DGM_TRY(get_size(g, KEY("ffn"), DGM_REQUIRED, MAX_WIDTH, &enc->ffn, err));
    dec->ffn = enc->ffn;
    DGM_TRY(get_size(g, KEY("decoder_ffn"), DGM_OPTIONAL, MAX_WIDTH, &dec->ffn, err));
    enc->depth = 2;
    DGM_TRY(get_size(g, KEY("ffn_depth"), DGM_OPTIONAL, MAX_DEPTH, &enc->depth, err));
    dec->depth = enc->depth;
    DGM_TRY(get_size(g, KEY("decoder_ffn_depth"), DGM_OPTIONAL, MAX_DEPTH, &dec->depth, err));
    t->aan_ffn = dec->ffn;
    DGM_TRY(get_size(g, KEY("aan_ffn"), DGM_OPTIONAL, MAX_WIDTH, &t->aan_ffn, err));
    DGM_TRY(get_size(g, KEY("encoder_layers"), DGM_REQUIRED, MAX_LAYERS, &enc->layers, err));
    DGM_TRY(get_size(g, KEY("decoder_layers"), DGM_REQUIRED, MAX_LAYERS, &dec->layers, err));
    DGM_TRY(get_tied(g, KEY("encoder_tied"), enc, err));
    DGM_TRY(get_tied(g, KEY("decoder_tied"), dec, err));
    DGM_FAIL_IF(t->d % 2 != 0, err, DGM_ERR_FORMAT, "dragoman.transformer.d_model is odd: %d",
                t->d);
    return DGM_OK;
}

// Heads of one side: their width and the scale of scores.
static dgm_status get_heads(const dgm_gguf *g, const transformer *t, stack *side, const char *key,
                            dgm_error *err)
{
    int width = 0;
    DGM_TRY(get_size(g, KEY("head_width"), DGM_OPTIONAL, MAX_WIDTH, &width, err));
    DGM_FAIL_IF(width == 0 && t->d % side->heads != 0, err, DGM_ERR_FORMAT,
                "%s is %d, which does not divide d_model %d", key, side->heads, t->d);
    side->dk = width ? width : t->d / side->heads;
    DGM_FAIL_IF((int64_t)side->heads * side->dk > MAX_WIDTH, err, DGM_ERR_FORMAT,
                "%d heads of width %d are more than %d columns", side->heads, side->dk, MAX_WIDTH);
    side->inner = side->heads * side->dk;
    side->query_scale = 1.0f / sqrtf((float)side->dk);
    return dgm_gguf_get_f32(g, KEY("query_scale"), DGM_OPTIONAL, 0, 1000, &side->query_scale, err);
}

static dgm_status get_norms(const dgm_gguf *g, transformer *t, dgm_error *err)
{
    stack *enc = &t->enc, *dec = &t->dec;
    int kind = 0, place = 0, residual = RESIDUAL_SUM;
    DGM_TRY(dgm_gguf_get_enum(g, KEY("norm"), DGM_REQUIRED, place_names, &place, err));
    enc->place = (norm_place)place;
    DGM_TRY(dgm_gguf_get_enum(g, KEY("decoder_norm"), DGM_OPTIONAL, place_names, &place, err));
    dec->place = (norm_place)place;
    DGM_TRY(dgm_gguf_get_enum(g, KEY("norm_kind"), DGM_OPTIONAL, norm_kinds, &kind, err));
    DGM_TRY(dgm_gguf_get_f32(g, KEY("norm_eps"), DGM_OPTIONAL, 0, 1, &t->eps, err));
    DGM_TRY(dgm_gguf_get_enum(g, KEY("residual"), DGM_OPTIONAL, residual_names, &residual, err));
    enc->residual = dec->residual = (residual_kind)residual;
    enc->final = enc->place == NORM_PRE;
    dec->final = dec->place == NORM_PRE;
    DGM_TRY(dgm_gguf_get_bool(g, KEY("encoder_final_norm"), DGM_OPTIONAL, &enc->final, err));
    DGM_TRY(dgm_gguf_get_bool(g, KEY("decoder_final_norm"), DGM_OPTIONAL, &dec->final, err));
    t->rms = kind == 1;
    return DGM_OK;
}

static dgm_status get_positions(const dgm_gguf *g, transformer *t, settings *s, dgm_error *err)
{
    int pos = 0;
    uint32_t offset = 0;
    DGM_TRY(dgm_gguf_get_enum(g, KEY("positions"), DGM_REQUIRED, position_names, &pos, err));
    DGM_TRY(dgm_gguf_get_u32(g, KEY("position_offset"), DGM_OPTIONAL, 0, 1024, &offset, err));
    t->enc.position_offset = (int)offset;
    DGM_TRY(dgm_gguf_get_u32(g, KEY("decoder_position_offset"), DGM_OPTIONAL, 0, 1024, &offset, err));
    t->dec.position_offset = (int)offset;
    s->positions = (position_kind)pos;
    if (s->positions != RELATIVE) return DGM_OK;
    DGM_TRY(get_size(g, KEY("relative_buckets"), DGM_REQUIRED, MAX_BUCKETS, &t->buckets, err));
    DGM_TRY(get_size(g, KEY("relative_distance"), DGM_REQUIRED, MAX_DISTANCE, &t->distance, err));
    DGM_FAIL_IF(t->buckets < 4 || t->buckets % 2 != 0 || t->distance <= t->buckets / 2, err,
                DGM_ERR_FORMAT,
                "%d buckets of relative positions up to a distance of %d: it must be an even number of "
                "at least 4, and a distance of more than half of it",
                t->buckets, t->distance);
    return DGM_OK;
}

static dgm_status get_layers(const dgm_gguf *g, transformer *t, settings *s, dgm_error *err)
{
    int decoder = 0, aan_norm = 0;
    bool output = true;
    DGM_TRY(get_act(g, KEY("activation"), DGM_REQUIRED, &t->act, err));
    t->aan_act = t->act;
    DGM_TRY(get_act(g, KEY("aan_activation"), DGM_OPTIONAL, &t->aan_act, err));
    DGM_TRY(dgm_gguf_get_bool(g, KEY("scale_embedding"), DGM_OPTIONAL, &t->scale_embedding, err));
    DGM_TRY(dgm_gguf_get_bool(g, KEY("gated"), DGM_OPTIONAL, &t->gated, err));
    DGM_TRY(dgm_gguf_get_bool(g, KEY("attention_output"), DGM_OPTIONAL, &output, err));
    DGM_TRY(dgm_gguf_get_bool(g, KEY("aan_gate"), DGM_OPTIONAL, &t->aan_gate, err));
    DGM_TRY(dgm_gguf_get_enum(g, KEY("aan_norm"), DGM_OPTIONAL, aan_norms, &aan_norm, err));
    t->aan_norm_average = aan_norm == 1;
    DGM_TRY(dgm_gguf_get_bool(g, KEY("rnn_output"), DGM_OPTIONAL, &t->rnn_output, err));
    DGM_TRY(dgm_gguf_get_enum(g, KEY("start"), DGM_OPTIONAL, start_names, &s->start, err));
    DGM_TRY(dgm_gguf_get_enum(g, KEY("decoder"), DGM_OPTIONAL, decoder_names, &decoder, err));
    t->cell = (decoder_kind)decoder;
    t->no_output = !output;
    return dgm_transformer_moe_settings(g, &t->moe, err);
}

// What goes together.
static dgm_status check(const transformer *t, const settings *s, dgm_error *err)
{
    DGM_FAIL_IF(t->no_output && (t->enc.inner != t->d || t->dec.inner != t->d), err, DGM_ERR_FORMAT,
                "attention without an output layer has heads of %d and %d columns together, d_model "
                "is %d",
                t->enc.inner, t->dec.inner, t->d);
    DGM_FAIL_IF(t->gated && t->moe.experts, err, DGM_ERR_FORMAT,
                "dragoman.transformer.gated: experts have no gated networks");
    DGM_FAIL_IF((t->gated || t->moe.experts) && (t->enc.depth != 2 || t->dec.depth != 2), err, DGM_ERR_FORMAT,
                "dragoman.transformer.ffn_depth: gated networks and experts have 2 layers");
    DGM_FAIL_IF(s->positions == RELATIVE && t->cell != DECODER_ATTENTION, err, DGM_ERR_FORMAT,
                "dragoman.transformer.positions: relative ones need a decoder with self_attention");
    return DGM_OK;
}

dgm_status dgm_transformer_settings(dgm_model *m, transformer *t, settings *s, dgm_error *err)
{
    const dgm_gguf *g = m->file;
    t->eps = 1e-5f;
    t->scale_embedding = t->aan_gate = true;
    DGM_TRY(get_sizes(g, t, err));
    DGM_TRY(get_heads(g, t, &t->enc, KEY("heads"), err));
    DGM_TRY(get_heads(g, t, &t->dec, KEY("decoder_heads"), err));
    t->widest = t->d > t->enc.inner ? t->d : t->enc.inner;
    if (t->dec.inner > t->widest) t->widest = t->dec.inner;
    DGM_TRY(get_norms(g, t, err));
    DGM_TRY(get_positions(g, t, s, err));
    DGM_TRY(get_layers(g, t, s, err));
    return check(t, s, err);
}
