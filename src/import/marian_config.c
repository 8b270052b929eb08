// SPDX-License-Identifier: MIT
// Reads the settings of a MarianMT model; see marian_config.h. Hugging Face leaves values out of
// config.json that equal the defaults of its class, so the defaults here are that class's.
//
// max_length. Theirs counts the start token and the forced end symbol, ours neither, so ours is 2
// less (1 less where no end is forced).
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

// Settings of relatives of this architecture that would change the computation.
static dgm_status refuse_variants(const json_t *o, dgm_error *err)
{
    static const struct {
        const char *key;
        bool expected;
    } fixed[] = {
        {"normalize_before", false},    {"add_final_layer_norm", false},
        {"normalize_embedding", false}, {"static_position_embeddings", true},
        {"is_encoder_decoder", true},   {"add_bias_logits", false},
    };
    const char *type = "";
    DGM_TRY(dgm_json_string(o, "model_type", &type, err));
    DGM_FAIL_IF(strcmp(type, "marian") != 0, err, DGM_ERR_UNSUPPORTED,
                "\"model_type\" '%.60s' is not supported (marian, m2m_100 and nllb-moe are)", type);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        bool v = fixed[i].expected;
        DGM_TRY(dgm_json_bool(o, fixed[i].key, &v, err));
        DGM_FAIL_IF(v != fixed[i].expected, err, DGM_ERR_UNSUPPORTED, "\"%s\": %s is not supported",
                    fixed[i].key, v ? "true" : "false");
    }
    return DGM_OK;
}

static dgm_status read_shape(dgm_marian_config *c, const json_t *o, dgm_error *err)
{
    c->d_model = 1024;
    c->encoder_layers = c->decoder_layers = 12;
    c->encoder_ffn = c->decoder_ffn = 4096;
    c->heads = 16;
    c->max_positions = 1024;
    int decoder_heads = 16;
    DGM_TRY(get_int(o, "d_model", 1, DIM_MAX, &c->d_model, err));
    DGM_TRY(get_int(o, "encoder_layers", 1, LAYERS_MAX, &c->encoder_layers, err));
    DGM_TRY(get_int(o, "decoder_layers", 1, LAYERS_MAX, &c->decoder_layers, err));
    DGM_TRY(get_int(o, "encoder_ffn_dim", 1, DIM_MAX, &c->encoder_ffn, err));
    DGM_TRY(get_int(o, "decoder_ffn_dim", 1, DIM_MAX, &c->decoder_ffn, err));
    DGM_TRY(get_int(o, "encoder_attention_heads", 1, DIM_MAX, &c->heads, err));
    DGM_TRY(get_int(o, "decoder_attention_heads", 1, DIM_MAX, &decoder_heads, err));
    DGM_TRY(get_int(o, "max_position_embeddings", 4, DIM_MAX, &c->max_positions, err));
    DGM_FAIL_IF(decoder_heads != c->heads, err, DGM_ERR_UNSUPPORTED,
                "%d encoder heads and %d decoder heads: they must be equal", c->heads,
                decoder_heads);
    DGM_FAIL_IF(c->d_model % c->heads, err, DGM_ERR_FORMAT,
                "\"d_model\" %d is not a multiple of %d heads", c->d_model, c->heads);
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

// [[id], [id], ...]; longer lists would be phrases.
static dgm_status read_never(dgm_marian_config *c, const json_t *o, dgm_error *err)
{
    if (!dgm_json_has(o, "bad_words_ids")) return DGM_OK;
    const json_t *list = json_object_get(o, "bad_words_ids");
    DGM_FAIL_IF(!json_is_array(list) || json_array_size(list) > DGM_MARIAN_NEVER_MAX, err,
                DGM_ERR_FORMAT, "\"bad_words_ids\" is not a list of at most %d lists",
                DGM_MARIAN_NEVER_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *word = json_array_get(list, i), *id = json_array_get(word, 0);
        DGM_FAIL_IF(json_array_size(word) != 1 || !json_is_integer(id), err, DGM_ERR_UNSUPPORTED,
                    "\"bad_words_ids\" holds something else than lists of one id");
        int64_t v = json_integer_value(id);
        DGM_FAIL_IF(v < 0 || v >= c->decoder_vocab_size, err, DGM_ERR_FORMAT,
                    "\"bad_words_ids\" holds %lld, expected 0 to %d", (long long)v,
                    c->decoder_vocab_size - 1);
        c->never[c->never_count++] = (int32_t)v;
    }
    return DGM_OK;
}

// What would change translations and has no counterpart here.
// "renormalize_logits" (OPUS-MT has it) is not among them: it only takes the ids that are never
// chosen out of the sum of the softmax, where a trained model gives them next to nothing.
static dgm_status refuse_generation(const json_t *o, dgm_error *err)
{
    static const struct {
        const char *key;
        double expected;
    } fixed[] = {
        {"repetition_penalty", 1},   {"encoder_repetition_penalty", 1},
        {"no_repeat_ngram_size", 0}, {"encoder_no_repeat_ngram_size", 0},
        {"min_length", 0},           {"num_beam_groups", 1},
        {"diversity_penalty", 0},
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        double v = fixed[i].expected;
        DGM_TRY(dgm_json_real(o, fixed[i].key, -1e9, 1e9, &v, err));
        DGM_FAIL_IF(v < fixed[i].expected || v > fixed[i].expected, err, DGM_ERR_UNSUPPORTED,
                    "\"%s\": %g is not supported; remove it to import the model without",
                    fixed[i].key, v);
    }
    return DGM_OK;
}

// `lead`: tokens of theirs before the translation.
static dgm_status read_generation(dgm_marian_config *c, const json_t *o, int lead, dgm_error *err)
{
    int length = c->max_positions, forced = -1;
    c->beam = 1;
    c->length_penalty = 1;
    DGM_TRY(refuse_generation(o, err));
    DGM_TRY(get_int(o, "num_beams", 1, 256, &c->beam, err));
    DGM_TRY(get_int(o, "max_length", 3, 1 << 30, &length, err));
    DGM_TRY(get_int(o, "forced_eos_token_id", 0, c->decoder_vocab_size - 1, &forced, err));
    DGM_TRY(dgm_json_real(o, "length_penalty", -10, 10, &c->length_penalty, err));
    DGM_TRY(dgm_json_bool(o, "early_stopping", &c->early_stopping, err));
    DGM_FAIL_IF(forced >= 0 && forced != c->eos, err, DGM_ERR_UNSUPPORTED,
                "\"forced_eos_token_id\" %d is not \"eos_token_id\" %d", forced, c->eos);
    if (length > c->max_positions) length = c->max_positions;
    c->max_length = length - lead - (forced >= 0 ? 1 : 0);
    if (c->max_length < 1) c->max_length = 1;
    return read_never(c, o, err);
}

dgm_status dgm_marian_config_read(dgm_marian_config *out, const json_t *config,
                                  const json_t *generation, dgm_error *err)
{
    memset(out, 0, sizeof *out);
    DGM_FAIL_IF(!json_is_object(config) || (generation && !json_is_object(generation)), err,
                DGM_ERR_FORMAT, "not a JSON object");
    DGM_TRY(refuse_variants(config, err));
    DGM_TRY(read_shape(out, config, err));
    DGM_TRY(read_activation(out, config, "gelu", err));
    DGM_TRY(read_vocabulary(out, config, err));
    return read_generation(out, generation ? generation : config, 1, err);
}

dgm_status dgm_m2m_config_read(dgm_marian_config *out, const json_t *config,
                               const json_t *generation, dgm_error *err)
{
    memset(out, 0, sizeof *out);
    DGM_FAIL_IF(!json_is_object(config) || (generation && !json_is_object(generation)), err,
                DGM_ERR_FORMAT, "not a JSON object");
    DGM_TRY(read_shape(out, config, err));
    DGM_TRY(read_activation(out, config, "relu", err));
    out->vocab_size = 128112;
    out->pad = 1;
    out->eos = out->start = 2;
    out->shared_embedding = out->tied_output = out->scale_embedding = true;
    DGM_TRY(get_int(config, "vocab_size", 8, VOCAB_MAX, &out->vocab_size, err));
    int last = out->vocab_size - 1;
    out->decoder_vocab_size = out->vocab_size;
    DGM_TRY(dgm_json_bool(config, "tie_word_embeddings", &out->tied_output, err));
    DGM_TRY(dgm_json_bool(config, "scale_embedding", &out->scale_embedding, err));
    DGM_TRY(get_int(config, "eos_token_id", 0, last, &out->eos, err));
    DGM_TRY(get_int(config, "pad_token_id", 0, 1000, &out->pad, err));
    DGM_TRY(get_int(config, "decoder_start_token_id", 0, last, &out->start, err));
    return read_generation(out, generation ? generation : config, 2, err); // start and language
}
