// SPDX-License-Identifier: MIT
// Imports M2M100, NLLB and mBART folders of Hugging Face transformers, dense and with experts. Called by
// huggingface.c, which looks at "model_type".
//
//     config.json, generation_config.json, tokenizer_config.json, special_tokens_map.json
//     model.safetensors, or shards with an index
//     sentencepiece.bpe.model, and for M2M100 vocab.json (piece -> id)
//
// The model: pre-norm Transformer with final norms, positions from padding + 1 = 2 on with frequencies
// 10000^(-i/(D/2-1)), one embedding for both sides and the output, biases everywhere. mBART has learned positions
// and a norm of embeddings.
//
// Ids. M2M100: what vocab.json says, then the languages in the order of their list, "__de__". NLLB:
// <s> 0, <pad> 1, </s> 2, <unk> 3, pieces at their number + 1, then the languages, "deu_Latn". Source:
// [language] text </s> (tokenisers with "legacy_behaviour": text </s> [language]); the decoder begins
// with </s> and the target's language. mBART-50 is the same as NLLB, with "de_DE"; mBART's source is
// text </s> [language], and its decoder begins with the language itself: config.json has the target's.
//
// Experts as NllbMoeSparseMLP defines them: the two largest of softmax(W x), weights over their sum,
// results times 1 - moe_token_dropout. At evaluation an expert has room for moe_eval_capacity_token_
// fraction of the tokens; at 1, its default, nobody is ever dropped, which is what we do.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "import/bart.h"
#include "import/checkpoint.h"
#include "import/import.h"
#include "import/m2m.h"
#include "import/marian_config.h"
#include "import/spm_list.h"
#include "import/spm_paths.h"

enum { MAX_LANGUAGES = 4096, MAX_EXPERTS = 1024, NAME = 160 };

typedef struct reading {
    dgm_import_job *job;
    dgm_marian_config c; // what both families share
    bool moe, legacy;    // legacy: the language stands behind the source
    dgm_m2m_style style;
    int experts, encoder_every, decoder_every;
    double dropout;
    json_t *config, *generation, *tokenizer, *special, *vocab;
    dgm_mapfile spm;
    dgm_spm_list pieces;
    dgm_m2m_languages languages;
    dgm_checkpoint weights;
} reading;

// ---- files ------------------------------------------------------------------------------------

static dgm_status open_spm(reading *in, dgm_error *err)
{
    static const char name[] = "sentencepiece.bpe.model";
    DGM_TRY(dgm_checkpoint_spm(in->job, name, &in->spm, err));
    dgm_status st = dgm_spm_list_read(&in->pieces, in->spm.data, in->spm.size, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s/%s'", in->job->dir, name);
    return st;
}

// Settings of mixtures that would change the computation.
static dgm_status read_experts(reading *in, dgm_error *err)
{
    const json_t *o = in->config;
    int64_t experts = 128, encoder = 4, decoder = 4;
    double fraction = 1;
    const char *policy = "all", *type = "float32";
    in->dropout = 0.2;
    DGM_TRY(dgm_json_int(o, "num_experts", 2, MAX_EXPERTS, &experts, err));
    DGM_TRY(dgm_json_int(o, "encoder_sparse_step", 0, 1024, &encoder, err));
    DGM_TRY(dgm_json_int(o, "decoder_sparse_step", 0, 1024, &decoder, err));
    DGM_TRY(dgm_json_real(o, "moe_token_dropout", 0, 0.999, &in->dropout, err));
    DGM_TRY(dgm_json_real(o, "moe_eval_capacity_token_fraction", -1e9, 1e9, &fraction, err));
    DGM_TRY(dgm_json_string(o, "second_expert_policy", &policy, err));
    DGM_TRY(dgm_json_string(o, "router_dtype", &type, err));
    DGM_FAIL_IF(fraction < 1, err, DGM_ERR_UNSUPPORTED,
                "\"moe_eval_capacity_token_fraction\": %g is not supported: experts would drop "
                "tokens, depending on a sentence's neighbours (1 is)",
                fraction);
    DGM_FAIL_IF(strcmp(policy, "all") != 0, err, DGM_ERR_UNSUPPORTED,
                "\"second_expert_policy\" '%.40s' is not supported: it is random (all is)", policy);
    DGM_FAIL_IF(strcmp(type, "float32") != 0, err, DGM_ERR_UNSUPPORTED,
                "\"router_dtype\" '%.40s' is not supported (float32 is)", type);
    in->experts = (int)experts;
    in->encoder_every = (int)encoder;
    in->decoder_every = (int)decoder;
    return DGM_OK;
}

static dgm_status read_settings(reading *in, dgm_error *err)
{
    const char *type = "", *class = "";
    DGM_TRY(dgm_json_string(in->config, "model_type", &type, err));
    DGM_TRY(dgm_json_string(in->tokenizer, "tokenizer_class", &class, err));
    in->moe = strcmp(type, "nllb-moe") == 0;
    if (strcmp(type, "mbart") == 0) {
        in->style = DGM_STYLE_MBART;
        DGM_TRY(dgm_mbart_config_read(&in->c, in->config, in->generation, err));
        in->legacy = class[0] ? strncmp(class, "MBart50", 7) != 0 : in->c.start != in->c.eos;
        return DGM_OK;
    }
    // M2M100 has a vocabulary file; NLLB models have the same type and none.
    const bool nllb = in->moe || strncmp(class, "Nllb", 4) == 0 || !in->vocab;
    in->style = nllb ? DGM_STYLE_NLLB : DGM_STYLE_M2M100;
    DGM_TRY(dgm_m2m_config_read(&in->c, in->config, in->generation, err));
    DGM_TRY(dgm_json_bool(in->tokenizer, "legacy_behaviour", &in->legacy, err));
    return in->moe ? read_experts(in, err) : DGM_OK;
}

static dgm_status open_files(reading *in, dgm_error *err)
{
    DGM_TRY(dgm_checkpoint_json(in->job->dir, "config.json", DGM_REQUIRED, &in->config, err));
    DGM_TRY(dgm_checkpoint_json(in->job->dir, "generation_config.json", DGM_OPTIONAL,
                                &in->generation, err));
    DGM_TRY(dgm_checkpoint_json(in->job->dir, "tokenizer_config.json", DGM_OPTIONAL, &in->tokenizer,
                                err));
    DGM_TRY(dgm_checkpoint_json(in->job->dir, "special_tokens_map.json", DGM_OPTIONAL, &in->special,
                                err));
    DGM_TRY(dgm_checkpoint_json(in->job->dir, "vocab.json", DGM_OPTIONAL, &in->vocab, err));
    dgm_status st = read_settings(in, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s'", in->job->dir);
        return st;
    }
    DGM_TRY(open_spm(in, err));
    const bool listed = in->style == DGM_STYLE_M2M100;
    dgm_m2m_names names = {in->style, in->tokenizer, in->special,
                           listed ? (int)json_object_size(in->vocab) : (int)in->pieces.count + 1,
                           in->c.vocab_size};
    st = dgm_m2m_languages_read(&in->languages, &names, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s'", in->job->dir);
        return st;
    }
    return dgm_checkpoint_open_folder(&in->weights, in->job, err);
}

static void close_files(reading *in)
{
    json_decref(in->config);
    json_decref(in->generation);
    json_decref(in->tokenizer);
    json_decref(in->special);
    json_decref(in->vocab);
    dgm_m2m_languages_free(&in->languages);
    dgm_spm_list_free(&in->pieces);
    dgm_mapfile_close(&in->spm);
    dgm_checkpoint_close(&in->weights);
}

// ---- vocabulary -------------------------------------------------------------------------------

// Id of piece i; -1: it has none.
static int32_t piece_id(const reading *in, size_t i)
{
    const dgm_spm_item *p = &in->pieces.items[i];
    if (in->style == DGM_STYLE_M2M100) {
        const json_t *id = json_object_getn(in->vocab, p->piece, p->size);
        if (!json_is_integer(id)) return -1;
        const json_int_t n = json_integer_value(id);
        return n >= 0 && n < INT32_MAX ? (int32_t)n : INT32_MAX; // too large for any vocabulary
    }
    static const int32_t first[] = {3, 0, 2}; // <unk>, <s>, </s>
    return i < 3 ? first[i] : (int32_t)i + 1;
}

static dgm_status set_pieces(reading *in, int32_t *unk, dgm_error *err)
{
    size_t count = in->pieces.count;
    int size = in->c.vocab_size, top = 3;
    int32_t *map = dgm_malloc(count * sizeof *map);
    if (!map) return dgm_no_memory(err);
    dgm_status st = DGM_OK;
    for (size_t i = 0; i < count && st == DGM_OK; i++) {
        map[i] = piece_id(in, i);
        if (map[i] >= size)
            st = dgm_fail(err, DGM_ERR_FORMAT, "'%s': piece %zu has id %d of %d", in->job->dir, i,
                          (int)map[i], size);
        if (map[i] > top) top = map[i];
        if (in->pieces.items[i].kind == DGM_SPM_UNKNOWN) *unk = map[i];
    }
    if (st == DGM_OK)
        dgm_gguf_set_array(in->job->w, "dragoman.source.vocab.map", DGM_META_I32, map, count);
    dgm_free(map);
    if (st != DGM_OK || top + 1 >= size) return st;
    // What follows has no piece: languages, and rows that nobody uses.
    const char **extra = dgm_calloc((size_t)(size - top - 1), sizeof *extra);
    if (!extra) return dgm_no_memory(err);
    for (int i = top + 1; i < size; i++) extra[i - top - 1] = "";
    for (int i = 0; i < in->languages.count; i++)
        if (in->languages.id[i] > top)
            extra[in->languages.id[i] - top - 1] = in->languages.token[i];
    dgm_gguf_set_strings(in->job->w, "dragoman.source.vocab.extra", extra,
                         (size_t)(size - top - 1));
    dgm_free(extra);
    return DGM_OK;
}

static dgm_status set_vocabulary(reading *in, dgm_error *err)
{
    dgm_gguf_writer *w = in->job->w;
    const dgm_marian_config *c = &in->c;
    int32_t unk = 3;
    dgm_gguf_set_string(w, "dragoman.source.vocab.kind", "sentencepiece");
    dgm_gguf_set_u32(w, "dragoman.source.vocab.size", (uint32_t)c->vocab_size);
    DGM_TRY(dgm_spm_set(w, DGM_SOURCE, in->spm.data, in->spm.size, err));
    DGM_TRY(set_pieces(in, &unk, err));
    DGM_FAIL_IF(unk < 0, err, DGM_ERR_FORMAT, "'%s': the vocabulary has no <unk>", in->job->dir);
    dgm_gguf_set_i32(w, "dragoman.source.eos", c->eos);
    dgm_gguf_set_i32(w, "dragoman.source.unk", unk);
    dgm_gguf_set_i32(w, "dragoman.source.pad", c->pad);
    dgm_gguf_set_i32(w, "dragoman.target.start", c->start);
    if (c->never_count)
        dgm_gguf_set_array(w, "dragoman.target.never", DGM_META_I32, c->never,
                           (size_t)c->never_count);
    return DGM_OK;
}

// The language that all translations are in; -1: any.
static int only_target(const reading *in)
{
    const int32_t id = in->c.forced >= 0 ? in->c.forced : in->c.start;
    for (int i = 0; i < in->languages.count; i++)
        if (in->style == DGM_STYLE_MBART && in->languages.id[i] == id) return i;
    return -1;
}

static void set_languages(reading *in)
{
    static const char *const source[] = {"source"}, *const target[] = {"target"};
    dgm_gguf_writer *w = in->job->w;
    const dgm_m2m_languages *l = &in->languages;
    const int only = only_target(in), first = only < 0 ? 0 : only;
    const size_t n = (size_t)l->count, targets = only < 0 ? n : 1;
    dgm_gguf_set_strings(w, "dragoman.languages.source", (const char *const *)l->code, n);
    dgm_gguf_set_strings(w, "dragoman.languages.target", (const char *const *)l->code + first,
                         targets);
    dgm_gguf_set_array(w, "dragoman.languages.source_tokens", DGM_META_I32, l->id, n);
    dgm_gguf_set_array(w, "dragoman.languages.target_tokens", DGM_META_I32, l->id + first, targets);
    dgm_gguf_set_strings(w, "dragoman.source.tags", source, 1);
    if (only < 0 || in->c.start != l->id[only]) // else the decoder begins with it
        dgm_gguf_set_strings(w, "dragoman.target.tags", target, 1);
    if (in->legacy) dgm_gguf_set_bool(w, "dragoman.source.tags_last", true);
}

static void set_model(reading *in)
{
    const dgm_marian_config *c = &in->c;
    dgm_gguf_writer *w = in->job->w;
    dgm_bart_keys(w, c);
    if (!in->moe) return;
    dgm_gguf_set_u32(w, "dragoman.transformer.moe.experts", (uint32_t)in->experts);
    dgm_gguf_set_u32(w, "dragoman.transformer.moe.top", 2);
    dgm_gguf_set_u32(w, "dragoman.transformer.moe.encoder_every", (uint32_t)in->encoder_every);
    dgm_gguf_set_u32(w, "dragoman.transformer.moe.decoder_every", (uint32_t)in->decoder_every);
    dgm_gguf_set_bool(w, "dragoman.transformer.moe.normalise", true);
    dgm_gguf_set_f32(w, "dragoman.transformer.moe.scale", (float)(1 - in->dropout));
}

// ---- weights ----------------------------------------------------------------------------------

static dgm_status add_experts(reading *in, const char *ours, const char *theirs, int d, int f,
                              dgm_error *err)
{
    dgm_checkpoint *w = &in->weights;
    char a[NAME], b[NAME];
    snprintf(a, sizeof a, "%s.moe.gate.weight", ours);
    snprintf(b, sizeof b, "%s.ffn.router.classifier.weight", theirs);
    int storage = in->job->storage;
    in->job->storage = DGM_TYPE_F32; // it decides, and is small
    dgm_status st = dgm_checkpoint_add(w, a, b, in->experts, d, err);
    in->job->storage = storage;
    if (st != DGM_OK) return st;
    snprintf(a, sizeof a, "%s.moe.gate.bias", ours);
    snprintf(b, sizeof b, "%s.ffn.router.classifier.bias", theirs);
    if (dgm_checkpoint_has(w, b)) DGM_TRY(dgm_checkpoint_add(w, a, b, 0, in->experts, err));
    for (int i = 0; i < in->experts; i++) {
        snprintf(a, sizeof a, "%s.moe.%d", ours, i);
        snprintf(b, sizeof b, "%s.ffn.experts.expert_%d", theirs, i);
        DGM_TRY(dgm_checkpoint_ffn(w, a, b, d, f, err));
    }
    return DGM_OK;
}

static dgm_status add_block(reading *in, const dgm_bart *bart, bool decoder, int layer,
                            dgm_error *err)
{
    int d = in->c.d_model, f = decoder ? in->c.decoder_ffn : in->c.encoder_ffn;
    int every = decoder ? in->decoder_every : in->encoder_every;
    bool sparse = in->moe && every > 0 && (layer + 1) % every == 0;
    char ours[32], theirs[64], a[96], b[96];
    snprintf(ours, sizeof ours, "%s.%d", decoder ? "dec" : "enc", layer);
    snprintf(theirs, sizeof theirs, "%s%s.layers.%d", bart->prefix, decoder ? "decoder" : "encoder",
             layer);
    snprintf(a, sizeof a, "%s.self", ours);
    snprintf(b, sizeof b, "%s.self_attn", theirs);
    DGM_TRY(dgm_checkpoint_attention(&in->weights, a, b, d, err));
    if (decoder) {
        snprintf(a, sizeof a, "%s.cross", ours);
        snprintf(b, sizeof b, "%s.%s", theirs, in->moe ? "cross_attention" : "encoder_attn");
        DGM_TRY(dgm_checkpoint_attention(&in->weights, a, b, d, err));
    }
    snprintf(a, sizeof a, "%s.ffn", ours);
    snprintf(b, sizeof b, "%s%s", theirs, in->moe ? ".ffn" : "");
    DGM_TRY(sparse ? add_experts(in, ours, theirs, d, f, err)
                   : dgm_checkpoint_ffn(&in->weights, a, b, d, f, err));
    snprintf(a, sizeof a, "%s.ffn.norm", ours);
    snprintf(b, sizeof b, "%s.%s", theirs, in->moe ? "ff_layer_norm" : "final_layer_norm");
    return dgm_checkpoint_layer(&in->weights, a, b, 0, d, err);
}

static dgm_status add_weights(reading *in, dgm_error *err)
{
    static const char *const computed[] = {
        "encoder.embed_positions.weights", "decoder.embed_positions.weights",
        "encoder.embed_positions._float_tensor", "decoder.embed_positions._float_tensor"};
    const dgm_marian_config *c = &in->c;
    dgm_checkpoint *w = &in->weights;
    const dgm_bart b = dgm_bart_of(w, c);
    DGM_TRY(dgm_bart_embeddings(&b, err));
    for (int i = 0; i < 4; i++) { // which transformers computes again
        char name[NAME];
        snprintf(name, sizeof name, "%s%s", b.prefix, computed[i]);
        dgm_checkpoint_take(w, name);
    }
    if (in->style == DGM_STYLE_MBART)
        DGM_TRY(dgm_bart_output_bias(&b, err));
    else
        dgm_checkpoint_take(w, "final_logits_bias"); // of their BART, which these models lack
    DGM_TRY(dgm_bart_positions(&b, err));
    for (int i = 0; i < c->encoder_layers; i++) DGM_TRY(add_block(in, &b, false, i, err));
    for (int i = 0; i < c->decoder_layers; i++) DGM_TRY(add_block(in, &b, true, i, err));
    DGM_TRY(dgm_bart_norms(&b, err));
    return dgm_checkpoint_end(
        w, in->style == DGM_STYLE_MBART ? "an mBART model" : "an M2M100 or NLLB model", err);
}

dgm_status dgm_import_m2m(dgm_import_job *job, dgm_error *err)
{
    reading in = {.job = job};
    dgm_status st;
    DGM_TRY_GOTO(st, open_files(&in, err), done);
    dgm_import_general(job, "transformer", NULL, NULL);
    DGM_TRY_GOTO(st, set_vocabulary(&in, err), done);
    set_languages(&in);
    dgm_bart_decoding(job->w, &in.c);
    set_model(&in);
    DGM_TRY_GOTO(st, add_weights(&in, err), done);
    st = dgm_import_write(job, err);
done:
    close_files(&in);
    return st;
}
