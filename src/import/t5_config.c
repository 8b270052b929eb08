// SPDX-License-Identifier: MIT
// Settings of a T5 folder; see t5.h.
//
// Scale of the decoder's output. T5 of 2019 has one embedding for everything and multiplies by 1 / sqrt(d_model);
// T5 1.1, mT5 and MADLAD have a separate output layer and do not. The folder says which by
// "tie_word_embeddings" (transformers 4), or, where newer versions wrote it, by "scale_decoder_outputs".
#include <string.h>

#include "import/t5.h"

enum { MAX_WIDTH = 1 << 16, MAX_LAYERS = 1024, MAX_VOCABULARY = 1 << 24, LENGTH = 256 };

static dgm_status get_size(const json_t *o, const char *key, int64_t max, int *out, dgm_error *err)
{
    int64_t v = *out;
    DGM_FAIL_IF(v == 0 && !dgm_json_has(o, key), err, DGM_ERR_FORMAT, "\"%s\" is missing", key);
    DGM_TRY(dgm_json_int(o, key, 1, max, &v, err));
    *out = (int)v;
    return DGM_OK;
}

// "relu", "gated-gelu": the activation, and whether its result is multiplied with a second product.
static dgm_status read_network(dgm_t5_config *t, const char *text, dgm_error *err)
{
    static const char *const names[][2] = {
        {"relu", "relu"},         {"gelu", "gelu"},
        {"gelu_new", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"},
        {"silu", "swish"},        {"swish", "swish"},
        {"tanh", "tanh"},         {"quick_gelu", "gelu_sigmoid"},
    };
    t->gated = strncmp(text, "gated-", 6) == 0;
    const char *name = t->gated ? text + 6 : text;
    if (t->gated && strcmp(name, "gelu") == 0) name = "gelu_new"; // as transformers reads it
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], name) == 0) t->c.activation = names[i][1];
    DGM_FAIL_IF(!t->c.activation, err, DGM_ERR_UNSUPPORTED,
                "\"feed_forward_proj\" '%.40s' is not supported: relu, gelu, gelu_new, silu and tanh "
                "are, also with 'gated-' before them",
                text);
    return DGM_OK;
}

static dgm_status read_scale(dgm_t5_config *t, const json_t *o, const char *type, dgm_error *err)
{
    bool tied = true;
    DGM_TRY(dgm_json_bool(o, "tie_word_embeddings", &tied, err));
    t->scaled = tied && strcmp(type, "mt5") != 0;
    return dgm_json_bool(o, "scale_decoder_outputs", &t->scaled, err);
}

static dgm_status read_sizes(dgm_t5_config *t, const json_t *o, dgm_error *err)
{
    dgm_marian_config *c = &t->c;
    DGM_TRY(get_size(o, "d_model", MAX_WIDTH, &c->d_model, err));
    DGM_TRY(get_size(o, "d_ff", MAX_WIDTH, &c->encoder_ffn, err));
    DGM_TRY(get_size(o, "num_heads", MAX_WIDTH, &c->heads, err));
    DGM_TRY(get_size(o, "num_layers", MAX_LAYERS, &c->encoder_layers, err));
    c->decoder_layers = c->encoder_layers;
    DGM_TRY(get_size(o, "num_decoder_layers", MAX_LAYERS, &c->decoder_layers, err));
    DGM_TRY(get_size(o, "vocab_size", MAX_VOCABULARY, &c->vocab_size, err));
    t->head_width = 64;
    t->buckets = 32;
    t->distance = 128;
    c->max_positions = 512;
    DGM_TRY(get_size(o, "d_kv", MAX_WIDTH, &t->head_width, err));
    DGM_TRY(get_size(o, "relative_attention_num_buckets", MAX_WIDTH, &t->buckets, err));
    DGM_TRY(get_size(o, "relative_attention_max_distance", 1 << 20, &t->distance, err));
    DGM_TRY(get_size(o, "n_positions", 1 << 20, &c->max_positions, err));
    DGM_FAIL_IF(t->buckets < 4 || t->buckets % 2 != 0 || t->distance <= t->buckets / 2, err,
                DGM_ERR_UNSUPPORTED,
                "\"relative_attention_num_buckets\": %d up to a distance of %d is not supported",
                t->buckets, t->distance);
    DGM_FAIL_IF((int64_t)c->heads * t->head_width > MAX_WIDTH, err, DGM_ERR_UNSUPPORTED,
                "\"num_heads\" %d times \"d_kv\" %d is more than %d", c->heads, t->head_width,
                MAX_WIDTH);
    DGM_FAIL_IF(c->d_model % 2 != 0, err, DGM_ERR_UNSUPPORTED, "\"d_model\" is odd: %d", c->d_model);
    c->decoder_heads = c->heads;
    c->decoder_ffn = c->encoder_ffn;
    c->decoder_vocab_size = c->vocab_size;
    return DGM_OK;
}

static dgm_status read_ids(dgm_marian_config *c, const json_t *o, dgm_error *err)
{
    int64_t eos = 1, pad = 0, start;
    DGM_TRY(dgm_json_int(o, "eos_token_id", 0, c->vocab_size - 1, &eos, err));
    DGM_TRY(dgm_json_int(o, "pad_token_id", 0, c->vocab_size - 1, &pad, err));
    start = pad;
    DGM_TRY(dgm_json_int(o, "decoder_start_token_id", 0, c->vocab_size - 1, &start, err));
    c->eos = (int)eos;
    c->pad = (int)pad;
    c->start = (int)start;
    return DGM_OK;
}

dgm_status dgm_t5_config_read(dgm_t5_config *out, const json_t *config, const json_t *generation,
                              dgm_error *err)
{
    const char *type = "", *network = NULL;
    dgm_marian_config *c = &out->c;
    *out = (dgm_t5_config){.eps = 1e-6, .c = {.shared_embedding = true, .pre_norm = true, .final_norm = true}};
    DGM_TRY(dgm_json_string(config, "model_type", &type, err));
    network = strcmp(type, "t5") == 0 ? "relu" : "gated-gelu";
    DGM_TRY(dgm_json_string(config, "feed_forward_proj", &network, err));
    DGM_TRY(read_network(out, network, err));
    DGM_TRY(read_sizes(out, config, err));
    DGM_TRY(read_scale(out, config, type, err));
    DGM_TRY(dgm_json_real(config, "layer_norm_epsilon", 0, 1, &out->eps, err));
    DGM_TRY(read_ids(c, config, err));
    DGM_TRY(dgm_generation_read(c, config, generation, 1, err));
    // Their default of 20 tokens is no translation's length.
    const json_t *search = generation ? generation : config;
    const bool said = dgm_json_has(search, "max_length") || dgm_json_has(search, "max_new_tokens");
    if (!said && c->max_length > LENGTH) c->max_length = LENGTH;
    return DGM_OK;
}
