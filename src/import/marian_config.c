// SPDX-License-Identifier: MIT
// Reads the settings of a MarianMT model; see marian_config.h. Hugging Face leaves values out of
// config.json that equal the defaults of its class, so the defaults here are that class's.
//
// Variants. "normalize_before", "add_final_layer_norm", "normalize_embedding" and "static_position_embeddings"
// are settings of BART that MarianMT inherited: files of transformers 3 have them, and tensors to match.
#include "import/marian_config.h"

#include <string.h>

#define DIM_MAX 65536
#define LAYERS_MAX 1024
#define VOCAB_MAX (1 << 24)

static const struct {
    const char *theirs, *ours;
} activations[] = {
    {"relu", "relu"}, {"swish", "swish"},        {"silu", "swish"},
    {"gelu", "gelu"}, {"gelu_new", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"},
    {"tanh", "tanh"}, {"sigmoid", "sigmoid"},    {"quick_gelu", "gelu_sigmoid"},
};

static dgm_status get_int(const json_t *o, const char *key, int64_t min, int64_t max, int *out,
                          dgm_error *err)
{
    int64_t v = *out;
    DGM_TRY(dgm_json_int(o, key, min, max, &v, err));
    *out = (int)v;
    return DGM_OK;
}

static dgm_status read_activation(dgm_marian_config *c, const json_t *o, const char *usual,
                                  dgm_error *err)
{
    const char *name = usual;
    DGM_TRY(dgm_json_string(o, "activation_function", &name, err));
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strcmp(activations[i].theirs, name) == 0) c->activation = activations[i].ours;
    DGM_FAIL_IF(!c->activation, err, DGM_ERR_UNSUPPORTED,
                "\"activation_function\" '%.60s' is not supported", name);
    return DGM_OK;
}

static dgm_status read_variants(dgm_marian_config *c, const json_t *o, dgm_error *err)
{
    bool fixed = true, encoder_decoder = true, bias = false;
    DGM_TRY(dgm_json_bool(o, "normalize_before", &c->pre_norm, err));
    c->final_norm = c->pre_norm;
    DGM_TRY(dgm_json_bool(o, "add_final_layer_norm", &c->final_norm, err));
    DGM_TRY(dgm_json_bool(o, "normalize_embedding", &c->embed_norm, err));
    DGM_TRY(dgm_json_bool(o, "static_position_embeddings", &fixed, err));
    DGM_TRY(dgm_json_bool(o, "is_encoder_decoder", &encoder_decoder, err));
    DGM_TRY(dgm_json_bool(o, "add_bias_logits", &bias, err));
    c->learned = !fixed;
    DGM_FAIL_IF(!encoder_decoder, err, DGM_ERR_UNSUPPORTED,
                "\"is_encoder_decoder\": false is not supported: not a translation model");
    DGM_FAIL_IF(bias, err, DGM_ERR_UNSUPPORTED, "\"add_bias_logits\": true is not supported");
    return DGM_OK;
}

static dgm_status read_shape(dgm_marian_config *c, const json_t *o, dgm_error *err)
{
    c->d_model = 1024;
    c->encoder_layers = c->decoder_layers = 12;
    c->encoder_ffn = c->decoder_ffn = 4096;
    c->heads = c->decoder_heads = 16;
    c->max_positions = 1024;
    DGM_TRY(get_int(o, "d_model", 1, DIM_MAX, &c->d_model, err));
    DGM_TRY(get_int(o, "encoder_layers", 1, LAYERS_MAX, &c->encoder_layers, err));
    DGM_TRY(get_int(o, "decoder_layers", 1, LAYERS_MAX, &c->decoder_layers, err));
    DGM_TRY(get_int(o, "encoder_ffn_dim", 1, DIM_MAX, &c->encoder_ffn, err));
    DGM_TRY(get_int(o, "decoder_ffn_dim", 1, DIM_MAX, &c->decoder_ffn, err));
    DGM_TRY(get_int(o, "encoder_attention_heads", 1, DIM_MAX, &c->heads, err));
    DGM_TRY(get_int(o, "decoder_attention_heads", 1, DIM_MAX, &c->decoder_heads, err));
    DGM_TRY(get_int(o, "max_position_embeddings", 4, DIM_MAX, &c->max_positions, err));
    for (int side = 0; side < 2; side++) {
        const int heads = side ? c->decoder_heads : c->heads;
        DGM_FAIL_IF(c->d_model % heads, err, DGM_ERR_FORMAT,
                    "\"d_model\" %d is not a multiple of %d heads", c->d_model, heads);
    }
    return DGM_OK;
}

static dgm_status read_vocabulary(dgm_marian_config *c, const json_t *o, dgm_error *err)
{
    c->vocab_size = 58101;
    c->pad = c->start = 58100;
    c->shared_embedding = c->tied_output = true;
    DGM_TRY(get_int(o, "vocab_size", 2, VOCAB_MAX, &c->vocab_size, err));
    c->decoder_vocab_size = c->vocab_size;
    DGM_TRY(get_int(o, "decoder_vocab_size", 2, VOCAB_MAX, &c->decoder_vocab_size, err));
    DGM_TRY(dgm_json_bool(o, "share_encoder_decoder_embeddings", &c->shared_embedding, err));
    DGM_TRY(dgm_json_bool(o, "tie_word_embeddings", &c->tied_output, err));
    DGM_TRY(dgm_json_bool(o, "scale_embedding", &c->scale_embedding, err));
    DGM_FAIL_IF(c->shared_embedding && c->decoder_vocab_size != c->vocab_size, err, DGM_ERR_FORMAT,
                "\"decoder_vocab_size\" %d differs from \"vocab_size\" %d of shared embeddings",
                c->decoder_vocab_size, c->vocab_size);
    int last = c->decoder_vocab_size - 1;
    int smaller = c->vocab_size < c->decoder_vocab_size ? c->vocab_size : c->decoder_vocab_size;
    DGM_TRY(get_int(o, "eos_token_id", 0, smaller - 1, &c->eos, err));
    DGM_TRY(get_int(o, "pad_token_id", 0, last, &c->pad, err));
    DGM_TRY(get_int(o, "decoder_start_token_id", 0, last, &c->start, err));
    DGM_FAIL_IF(c->pad > last || c->start > last, err, DGM_ERR_FORMAT,
                "\"pad_token_id\" or \"decoder_start_token_id\" is missing");
    return DGM_OK;
}

dgm_status dgm_marian_config_read(dgm_marian_config *out, const json_t *config,
                                  const json_t *generation, dgm_error *err)
{
    memset(out, 0, sizeof *out);
    DGM_FAIL_IF(!json_is_object(config) || (generation && !json_is_object(generation)), err,
                DGM_ERR_FORMAT, "not a JSON object");
    DGM_TRY(read_variants(out, config, err));
    DGM_TRY(read_shape(out, config, err));
    DGM_TRY(read_activation(out, config, "gelu", err));
    DGM_TRY(read_vocabulary(out, config, err));
    DGM_TRY(dgm_generation_read(out, config, generation, 1, err));
    if (out->forced >= 0 && out->max_length > 1) out->max_length--; // one more that is not ours
    return DGM_OK;
}

// What M2M100 and mBART have in common, once the defaults of the class are set: pad, eos and start.
static dgm_status read_many(dgm_marian_config *out, const json_t *config, dgm_error *err)
{
    out->pre_norm = out->final_norm = out->shared_embedding = out->tied_output = true;
    DGM_TRY(read_shape(out, config, err));
    DGM_TRY(get_int(config, "vocab_size", 8, VOCAB_MAX, &out->vocab_size, err));
    const int last = out->vocab_size - 1;
    out->decoder_vocab_size = out->vocab_size;
    DGM_TRY(dgm_json_bool(config, "tie_word_embeddings", &out->tied_output, err));
    DGM_TRY(dgm_json_bool(config, "scale_embedding", &out->scale_embedding, err));
    DGM_TRY(get_int(config, "eos_token_id", 0, last, &out->eos, err));
    DGM_TRY(get_int(config, "pad_token_id", 0, 1000, &out->pad, err));
    return get_int(config, "decoder_start_token_id", 0, last, &out->start, err);
}

dgm_status dgm_m2m_config_read(dgm_marian_config *out, const json_t *config,
                               const json_t *generation, dgm_error *err)
{
    *out = (dgm_marian_config){.vocab_size = 128112,
                               .pad = 1,
                               .eos = 2,
                               .start = 2,
                               .scale_embedding = true,
                               .sinusoid_marian = true};
    DGM_FAIL_IF(!json_is_object(config) || (generation && !json_is_object(generation)), err,
                DGM_ERR_FORMAT, "not a JSON object");
    DGM_TRY(read_many(out, config, err));
    DGM_TRY(read_activation(out, config, "relu", err));
    out->position_offset = out->pad + 1;
    return dgm_generation_read(out, config, generation, 2, err); // start and language
}

dgm_status dgm_mbart_config_read(dgm_marian_config *out, const json_t *config,
                                 const json_t *generation, dgm_error *err)
{
    *out = (dgm_marian_config){.vocab_size = 50265,
                               .pad = 1,
                               .eos = 2,
                               .start = 2,
                               .learned = true,
                               .embed_norm = true,
                               .position_offset = 2};
    DGM_FAIL_IF(!json_is_object(config) || (generation && !json_is_object(generation)), err,
                DGM_ERR_FORMAT, "not a JSON object");
    DGM_TRY(read_many(out, config, err));
    DGM_TRY(read_activation(out, config, "gelu", err));
    DGM_TRY(dgm_generation_read(out, config, generation, 1, err));
    // mBART-50's decoder begins with the end symbol and the language, mBART's with the language.
    if (out->start == out->eos && out->max_length > 1) out->max_length--;
    return DGM_OK;
}

dgm_status dgm_fsmt_config_read(dgm_marian_config *out, const json_t *config,
                                const json_t *generation, dgm_error *err)
{
    *out = (dgm_marian_config){.vocab_size = 42024,
                               .decoder_vocab_size = 42024,
                               .pad = 1,
                               .eos = 2,
                               .start = 2,
                               .scale_embedding = true,
                               .sinusoid_marian = true};
    DGM_FAIL_IF(!json_is_object(config) || (generation && !json_is_object(generation)), err,
                DGM_ERR_FORMAT, "not a JSON object");
    DGM_TRY(read_shape(out, config, err));
    DGM_TRY(read_activation(out, config, "relu", err));
    DGM_TRY(get_int(config, "src_vocab_size", 8, VOCAB_MAX, &out->vocab_size, err));
    DGM_TRY(get_int(config, "tgt_vocab_size", 8, VOCAB_MAX, &out->decoder_vocab_size, err));
    const int smaller =
        out->vocab_size < out->decoder_vocab_size ? out->vocab_size : out->decoder_vocab_size;
    DGM_TRY(dgm_json_bool(config, "tie_word_embeddings", &out->tied_output, err));
    out->shared_embedding = out->tied_output;
    DGM_TRY(dgm_json_bool(config, "scale_embedding", &out->scale_embedding, err));
    DGM_TRY(get_int(config, "eos_token_id", 0, smaller - 1, &out->eos, err));
    DGM_TRY(get_int(config, "pad_token_id", 0, smaller - 1 < 1000 ? smaller - 1 : 1000, &out->pad,
                    err));
    DGM_TRY(get_int(config, "decoder_start_token_id", 0, smaller - 1, &out->start, err));
    out->position_offset = out->pad + 1;
    return dgm_generation_read(out, config, generation, 1, err);
}
