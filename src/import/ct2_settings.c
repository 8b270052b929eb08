// SPDX-License-Identifier: MIT
// Settings of a CTranslate2 model (ct2.h): numbers among its variables, config.json, and the keys that they become.
//
// Up to revision 4 one number served both sides, and the names TransformerBase and TransformerBig said how many
// heads there are. Up to version 5 the special tokens were variables, later config.json has them.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "import/ct2.h"

enum { NAME = 160, LAYERS_MAX = 1024 };

static const char *const activations[] = {"relu", "gelu_tanh", "swish", "gelu", "gelu_sigmoid", "tanh", "sigmoid"};

// ---- numbers -------------------------------------------------------------------------------------

static const dgm_stored *find(const dgm_ct2 *in, const char *name)
{
    const int at = dgm_store_find(in->weights.tensors, name);
    return at < 0 ? NULL : dgm_store_get(in->weights.tensors, (size_t)at);
}

dgm_status dgm_ct2_number(dgm_ct2 *in, const char *name, double *out, bool *found, dgm_error *err)
{
    const dgm_stored *t = find(in, name);
    if (found) *found = t != NULL;
    if (!t) return DGM_OK;
    dgm_checkpoint_take(&in->weights, name);
    DGM_FAIL_IF(t->rows != 1 || t->cols != 1, err, DGM_ERR_FORMAT, "variable '%s' is not one number", name);
    const dgm_view v = dgm_view_whole(in->weights.tensors, t);
    float x = 0;
    DGM_TRY(dgm_view_read(&v, 0, 1, &x, err));
    DGM_FAIL_IF(!isfinite(x), err, DGM_ERR_FORMAT, "variable '%s' is not a finite number", name);
    *out = (double)x;
    return DGM_OK;
}

// A number of a side, or the one that both have up to revision 4.
static dgm_status side_number(dgm_ct2 *in, int side, const char *rest, double min, double max, double *out,
                              dgm_error *err)
{
    char name[NAME];
    bool found = false;
    snprintf(name, sizeof name, "%s/%s", in->side[side].scope, rest);
    DGM_TRY(dgm_ct2_number(in, name, out, &found, err));
    if (!found && in->head.revision < 5) DGM_TRY(dgm_ct2_number(in, rest, out, NULL, err));
    DGM_FAIL_IF(*out < min || *out > max, err, DGM_ERR_FORMAT, "variable '%s' is %g, expected %g to %g", name, *out,
                min, max);
    return DGM_OK;
}

static dgm_status side_flag(dgm_ct2 *in, int side, const char *rest, bool *out, dgm_error *err)
{
    double v = *out;
    DGM_TRY(side_number(in, side, rest, -128, 127, &v, err));
    *out = v != 0;
    return DGM_OK;
}

// ---- the network ---------------------------------------------------------------------------------

// What changes the computation and has no counterpart here, by the end of its variable's name.
static dgm_status refuse_variants(const dgm_ct2 *in, dgm_error *err)
{
    static const char *const parts[][2] = {
        {"/embeddings_1/", "several inputs for each word (source features)"},
        {"rotary_", "rotary positions"},
        {"relative_position_", "relative positions as vectors"},
        {"relative_asymmetric_", "relative positions as vectors"},
        {"sliding_window", "a window of attention"},
        {"project_in/", "a projection of the embeddings"},
        {"q_norm/", "normalised queries"},
        {"v_norm/", "normalised values"},
        {"shared_layer_norm/", "parallel layers"},
        {"input_layer_norm/", "parallel layers or norms on both sides of a layer"},
        {"merged_encoder_attention", "merged attention"},
        {"final_logit_softcapping", "capped scores"},
        {"weight_zero", "weights of less than 8 bits (AWQ)"},
        {"num_heads_kv", "heads that share keys and values"},
    };
    for (size_t i = 0; i < dgm_store_count(in->weights.tensors); i++) {
        const char *name = dgm_store_get(in->weights.tensors, i)->name;
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            DGM_FAIL_IF(strstr(name, parts[k][0]), err, DGM_ERR_UNSUPPORTED,
                        "variable '%.100s': a model with %s is not supported", name, parts[k][1]);
    }
    return DGM_OK;
}

// Flags that must be off; heads as the name of the specification says them where no variable does.
static dgm_status read_switches(dgm_ct2 *in, int side, dgm_error *err)
{
    static const char *const off[] = {"alibi", "multi_query_attention"};
    static const char *const unused[] = {"embeddings_merge", "alibi_use_positive_positions", "scale_alibi"};
    dgm_ct2_side *s = &in->side[side];
    double heads = strcmp(in->head.specification, "TransformerBig") == 0 ? 16 : 8, activation = 0, ignored = 0;
    s->pre_norm = true;
    DGM_TRY(side_number(in, side, "num_heads", 1, 4096, &heads, err));
    DGM_TRY(side_number(in, side, "activation", 0, 6, &activation, err));
    DGM_TRY(side_flag(in, side, "pre_norm", &s->pre_norm, err));
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
        bool on = false;
        DGM_TRY(side_flag(in, side, off[i], &on, err));
        DGM_FAIL_IF(on, err, DGM_ERR_UNSUPPORTED, "variable '%s/%s': not supported", s->scope, off[i]);
    }
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        DGM_TRY(side_number(in, side, unused[i], -128, 127, &ignored, err));
    s->heads = (int)heads;
    s->activation = (int)activation;
    return DGM_OK;
}

// A flag says whether embeddings are multiplied by sqrt(d), a number by what. Nothing said: they are.
static dgm_status read_scale(dgm_ct2 *in, int side, dgm_error *err)
{
    dgm_ct2_side *s = &in->side[side];
    char name[2][NAME];
    snprintf(name[0], NAME, "%s/scale_embeddings", s->scope);
    snprintf(name[1], NAME, "%s/embeddings/multiply_by_sqrt_depth", s->scope);
    const char *which = find(in, name[0]) ? name[0] : name[1];
    const dgm_stored *t = find(in, which);
    double v = 1;
    DGM_TRY(dgm_ct2_number(in, which, &v, NULL, err));
    s->scale_is_number = t && t->type != DGM_STORED_I8;
    s->scale = v != 0;
    if (!s->scale_is_number) return DGM_OK;
    const double root = sqrt((double)in->d);
    DGM_FAIL_IF(fabs(v - 1) > 1e-6 && fabs(v - root) > 1e-3 * root, err, DGM_ERR_UNSUPPORTED,
                "variable '%s' is %g; 1 and the root of the width %d, %g, are supported", which, v, in->d, root);
    s->scale = fabs(v - 1) > 1e-6;
    return DGM_OK;
}

static bool has(const dgm_ct2 *in, int side, const char *rest)
{
    char name[NAME];
    snprintf(name, sizeof name, "%s/%s", in->side[side].scope, rest);
    return find(in, name) != NULL;
}

static dgm_status count_layers(dgm_ct2 *in, int side, dgm_error *err)
{
    dgm_ct2_side *s = &in->side[side];
    char name[NAME];
    const dgm_stored *ffn = NULL;
    for (;; s->layers++) {
        snprintf(name, sizeof name, "%s/layer_%d/ffn/linear_0/weight", s->scope, s->layers);
        const dgm_stored *t = find(in, name);
        if (!t) break;
        if (!ffn) ffn = t;
        DGM_FAIL_IF(s->layers >= LAYERS_MAX, err, DGM_ERR_FORMAT, "more than %d layers", LAYERS_MAX);
    }
    DGM_FAIL_IF(s->layers == 0, err, DGM_ERR_FORMAT, "variable '%s' is missing", name);
    s->ffn = ffn->rows;
    snprintf(name, sizeof name, "%s/layer_0/self_attention/linear_0/weight", s->scope);
    const dgm_stored *attention = find(in, name);
    DGM_FAIL_IF(!attention || attention->rows % 3 || attention->rows / 3 % s->heads, err, DGM_ERR_FORMAT,
                "variable '%s' is missing, or its rows are not those of three times %d heads", name, s->heads);
    s->inner = attention->rows / 3;
    s->gated = has(in, side, "layer_0/ffn/linear_0_noact/weight");
    s->embedding_norm = has(in, side, "layernorm_embedding/gamma");
    s->final_norm = has(in, side, "layer_norm/gamma");
    snprintf(name, sizeof name, "%s/position_encodings/encodings", s->scope);
    s->positions = find(in, name);
    dgm_checkpoint_take(&in->weights, name);
    return DGM_OK;
}

static dgm_status read_relative(dgm_ct2 *in, int side, dgm_error *err)
{
    dgm_ct2_side *s = &in->side[side];
    char name[NAME];
    double distance = 0;
    snprintf(name, sizeof name, "%s/layer_0/self_attention/relative_attention_bias", s->scope);
    const dgm_stored *t = find(in, name);
    if (!t) return DGM_OK;
    s->relative = true;
    s->buckets = t->rows;
    for (int i = 0; i < s->layers; i++) {
        snprintf(name, sizeof name, "%s/layer_%d/self_attention/relative_attention_max_distance", s->scope, i);
        DGM_TRY(dgm_ct2_number(in, name, &distance, NULL, err));
    }
    DGM_FAIL_IF(distance < 2 || distance > 65536, err, DGM_ERR_FORMAT, "variable '%s' is %g, expected 2 to 65536",
                name, distance);
    s->distance = (int)distance;
    return DGM_OK;
}

// One number for all attentions, or none.
static dgm_status read_query_scale(dgm_ct2 *in, int side, dgm_error *err)
{
    static const char *const kinds[2] = {"self_attention", "attention"};
    for (int i = 0; i < in->side[side].layers; i++)
        for (int kind = 0; kind <= side; kind++) {
            char name[NAME];
            double scale = in->query_scale;
            snprintf(name, sizeof name, "%s/layer_%d/%s/queries_scale", in->side[side].scope, i, kinds[kind]);
            DGM_TRY(dgm_ct2_number(in, name, &scale, NULL, err));
            const bool first = i == 0 && kind == 0 && side == 0;
            DGM_FAIL_IF(scale < 0 || scale > 1000 || (!first && scale != in->query_scale), err, DGM_ERR_UNSUPPORTED,
                        "variable '%s' is %g, and another attention has %g", name, scale, in->query_scale);
            in->query_scale = scale;
        }
    return DGM_OK;
}

static dgm_status read_network(dgm_ct2 *in, dgm_error *err)
{
    const dgm_stored *embed = find(in, "decoder/embeddings/weight");
    DGM_FAIL_IF(!embed || embed->n_dims != 2, err, DGM_ERR_FORMAT,
                "variable 'decoder/embeddings/weight' is missing or no matrix");
    in->d = embed->cols;
    DGM_FAIL_IF(in->d < 2 || in->d > 65536, err, DGM_ERR_FORMAT, "embeddings of %d numbers", in->d);
    DGM_TRY(refuse_variants(in, err));
    for (int side = 0; side < 2; side++) {
        DGM_TRY(read_switches(in, side, err));
        DGM_TRY(read_scale(in, side, err));
        DGM_TRY(count_layers(in, side, err));
        DGM_TRY(read_relative(in, side, err));
        DGM_TRY(read_query_scale(in, side, err));
    }
    const dgm_ct2_side *e = &in->side[0], *d = &in->side[1];
    DGM_FAIL_IF(e->scale != d->scale || e->activation != d->activation || e->gated != d->gated ||
                    e->relative != d->relative || e->buckets != d->buckets || e->distance != d->distance,
                err, DGM_ERR_UNSUPPORTED,
                "encoder and decoder differ in scale_embeddings, activation, gates or relative positions");
    DGM_FAIL_IF(e->inner / e->heads != d->inner / d->heads && (e->inner != in->d || d->inner != in->d), err,
                DGM_ERR_UNSUPPORTED, "heads of encoder and decoder are %d and %d wide", e->inner / e->heads,
                d->inner / d->heads);
    double scale = 1;
    DGM_TRY(side_flag(in, 1, "start_from_zero_embedding", &in->zero_start, err));
    DGM_TRY(side_number(in, 1, "scale_outputs", 1e-6, 1e6, &scale, err));
    in->output_scale = (float)scale;
    DGM_FAIL_IF(scale != 1 && !d->final_norm, err, DGM_ERR_UNSUPPORTED, "scaled outputs without a last norm");
    in->style = has(in, 0, "layer_0/ffn/layer_norm/beta") ? DGM_CT2_LAYER_NORM : DGM_CT2_RMS_NORM;
    return DGM_OK;
}

// ---- special tokens ------------------------------------------------------------------------------

// A string among the variables: a vector of bytes.
static dgm_status text_variable(dgm_ct2 *in, const char *name, const char *usual, char **out, dgm_error *err)
{
    const dgm_stored *t = find(in, name);
    DGM_FAIL_IF(t && (t->type != DGM_STORED_I8 || t->bytes > 1024), err, DGM_ERR_FORMAT,
                "variable '%s' is no text", name);
    dgm_checkpoint_take(&in->weights, name);
    *out = t ? dgm_strndup((const char *)t->data, t->bytes) : dgm_strdup(usual);
    return *out ? DGM_OK : dgm_no_memory(err);
}

static dgm_status read_token_variables(dgm_ct2 *in, dgm_error *err)
{
    static const char *const names[3] = {"unk_token", "bos_token", "eos_token"};
    static const char *const usual[3] = {"<unk>", "<s>", "</s>"};
    double flag[4] = {0, 0, 0, 1}; // source_bos, source_eos, user start, target_bos
    static const char *const flags[4] = {"with_source_bos", "with_source_eos", "user_decoder_start_tokens",
                                         "with_target_bos"};
    for (int i = 0; i < 3; i++) DGM_TRY(text_variable(in, names[i], usual[i], &in->owned[i], err));
    for (int i = 0; i < 4; i++) DGM_TRY(dgm_ct2_number(in, flags[i], &flag[i], NULL, err));
    in->unk = in->owned[0];
    in->bos = in->owned[1];
    in->eos = in->owned[2];
    in->source_bos = flag[0] != 0;
    in->source_eos = flag[1] != 0;
    in->start = flag[2] != 0 ? NULL : flag[3] != 0 ? in->bos : in->eos;
    return DGM_OK;
}

static dgm_status read_token_config(dgm_ct2 *in, dgm_error *err)
{
    const json_t *o = in->config;
    in->unk = "<unk>";
    in->bos = "<s>";
    in->eos = "</s>";
    DGM_TRY(dgm_json_string(o, "unk_token", &in->unk, err));
    DGM_TRY(dgm_json_string(o, "bos_token", &in->bos, err));
    DGM_TRY(dgm_json_string(o, "eos_token", &in->eos, err));
    in->start = in->bos;
    if (json_is_null(json_object_get(o, "decoder_start_token")))
        in->start = NULL;
    else
        DGM_TRY(dgm_json_string(o, "decoder_start_token", &in->start, err));
    DGM_TRY(dgm_json_bool(o, "add_source_bos", &in->source_bos, err));
    return dgm_json_bool(o, "add_source_eos", &in->source_eos, err);
}

static dgm_status read_config(dgm_ct2 *in, dgm_error *err)
{
    int64_t quantization = 0;
    in->eps = in->style == DGM_CT2_RMS_NORM ? 1e-6 : 1e-5;
    if (in->config) {
        DGM_TRY(dgm_json_int(in->config, "quantization_type", 0, 100, &quantization, err));
        DGM_FAIL_IF(quantization != 0, err, DGM_ERR_UNSUPPORTED,
                    "\"quantization_type\" %d (AWQ) is not supported (0 is)", (int)quantization);
        if (!json_is_null(json_object_get(in->config, "layer_norm_epsilon")))
            DGM_TRY(dgm_json_real(in->config, "layer_norm_epsilon", 1e-12, 1, &in->eps, err));
    }
    return in->head.version < 6 ? read_token_variables(in, err) : read_token_config(in, err);
}

dgm_status dgm_ct2_read_settings(dgm_ct2 *in, dgm_error *err)
{
    in->side[0].scope = "encoder";
    in->side[1].scope = "decoder";
    dgm_status st = read_network(in, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s/model.bin'", in->files->label);
    if (st != DGM_OK) return st;
    st = read_config(in, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s/config.json'", in->files->label);
    return st;
}

// ---- keys ----------------------------------------------------------------------------------------

static void set_alignment(dgm_ct2 *in, double layer, double heads)
{
    dgm_gguf_set_i32(in->job->w, "dragoman.align.layer", (int32_t)layer);
    if (heads == 1) dgm_gguf_set_i32(in->job->w, "dragoman.align.head", 0); // else the mean of all
}

// What T5 and its kin have: keys that are left out where they say the usual.
static void set_variants(dgm_ct2 *in)
{
    dgm_gguf_writer *w = in->job->w;
    const dgm_ct2_side *e = &in->side[0], *d = &in->side[1];
    if (d->heads != e->heads) dgm_gguf_set_u32(w, "dragoman.transformer.decoder_heads", (uint32_t)d->heads);
    if (e->inner != in->d || d->inner != in->d)
        dgm_gguf_set_u32(w, "dragoman.transformer.head_width", (uint32_t)(e->inner / e->heads));
    if (in->query_scale > 0) dgm_gguf_set_f32(w, "dragoman.transformer.query_scale", (float)in->query_scale);
    if (in->style == DGM_CT2_RMS_NORM) dgm_gguf_set_string(w, "dragoman.transformer.norm_kind", "rms");
    if (e->gated) dgm_gguf_set_bool(w, "dragoman.transformer.gated", true);
    if (d->pre_norm != e->pre_norm)
        dgm_gguf_set_string(w, "dragoman.transformer.decoder_norm", d->pre_norm ? "pre" : "post");
    if (e->final_norm != e->pre_norm)
        dgm_gguf_set_bool(w, "dragoman.transformer.encoder_final_norm", e->final_norm);
    if (d->final_norm != d->pre_norm)
        dgm_gguf_set_bool(w, "dragoman.transformer.decoder_final_norm", d->final_norm);
    if (!e->relative) return;
    dgm_gguf_set_string(w, "dragoman.transformer.positions", "relative");
    dgm_gguf_set_u32(w, "dragoman.transformer.relative_buckets", (uint32_t)e->buckets);
    dgm_gguf_set_u32(w, "dragoman.transformer.relative_distance", (uint32_t)e->distance);
}

dgm_status dgm_ct2_set_network(dgm_ct2 *in, dgm_error *err)
{
    dgm_gguf_writer *w = in->job->w;
    const dgm_ct2_side *e = &in->side[0], *d = &in->side[1];
    double layer = -1, heads = 1;
    dgm_gguf_set_u32(w, "dragoman.transformer.d_model", (uint32_t)in->d);
    dgm_gguf_set_u32(w, "dragoman.transformer.heads", (uint32_t)e->heads);
    dgm_gguf_set_u32(w, "dragoman.transformer.ffn", (uint32_t)e->ffn);
    if (d->ffn != e->ffn) dgm_gguf_set_u32(w, "dragoman.transformer.decoder_ffn", (uint32_t)d->ffn);
    dgm_gguf_set_u32(w, "dragoman.transformer.encoder_layers", (uint32_t)e->layers);
    dgm_gguf_set_u32(w, "dragoman.transformer.decoder_layers", (uint32_t)d->layers);
    dgm_gguf_set_string(w, "dragoman.transformer.norm", e->pre_norm ? "pre" : "post");
    dgm_gguf_set_f32(w, "dragoman.transformer.norm_eps", (float)in->eps);
    dgm_gguf_set_string(w, "dragoman.transformer.activation", activations[e->activation]);
    dgm_gguf_set_bool(w, "dragoman.transformer.scale_embedding", e->scale);
    set_variants(in);
    DGM_TRY(side_number(in, 1, "alignment_layer", -1024, 1023, &layer, err));
    DGM_TRY(side_number(in, 1, "alignment_heads", 0, 4096, &heads, err));
    if (layer >= -d->layers && layer < d->layers) set_alignment(in, layer, heads);
    return DGM_OK;
}
