// SPDX-License-Identifier: MIT
// Imports MarianMT folders of Hugging Face transformers (OPUS-MT and relatives).
//
//     config.json, generation_config.json, tokenizer_config.json   settings (marian_config.c)
//     model.safetensors, or shards with an index                    weights (safetensors.c)
//     source.spm, target.spm                                        SentencePiece models
//     vocab.json (and target_vocab.json)                            piece -> id
//     tokenizer.json                                                instead of these and the models
//
// The model: post-norm Transformer, sinusoidal positions 10000^(-2i/D), biases everywhere (bart.c). The
// decoder starts from the embedding of decoder_start_token_id (<pad>), scaled like any token: in
// OPUS-MT that row is zero, elsewhere it may be learned, so it is always kept. All weights are
// [out, in], as ours. Every tensor must have the expected shape and none may be left over.
//
// Their tokeniser looks a piece's spelling up in vocab.json, so ids do not follow the numbers of
// the SentencePiece model: dragoman.SIDE.vocab.map translates. Ids that only the other side's model
// can spell are appended to the stored model as pieces that text is never split into.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "format/modelfile.h"
#include "import/bart.h"
#include "import/checkpoint.h"
#include "import/fsmt.h"
#include "import/import.h"
#include "import/m2m.h"
#include "import/marian_config.h"
#include "import/spm_vocab.h"
#include "import/tokenizer_json.h"
#include "import/t5.h"

typedef struct reading {
    dgm_import_job *job;
    dgm_marian_config config;
    json_t *model_json, *generation_json, *tokenizer_json, *vocab[2];
    dgm_mapfile spm[2];
    json_t *fast;      // tokenizer.json, instead of SentencePiece models
    bool shared_vocab; // one vocabulary and one SentencePiece model for both sides
    dgm_checkpoint weights;
} reading;

static const char *const sides[] = {"source", "target"};

// ---- files ------------------------------------------------------------------------------------

static dgm_status open_spm(reading *in, int side, dgm_error *err)
{
    char name[32];
    snprintf(name, sizeof name, "%s.spm", sides[side]);
    return dgm_checkpoint_spm(in->job, name, &in->spm[side], err);
}

// The pieces of tokenizer.json with their ids, as vocab.json would have them.
static dgm_status list_pieces(reading *in, dgm_error *err)
{
    const json_t *list = json_object_get(json_object_get(in->fast, "model"), "vocab");
    in->vocab[0] = json_is_object(list) ? json_copy((json_t *)list) : json_object();
    if (!in->vocab[0]) return dgm_no_memory(err);
    in->vocab[1] = json_incref(in->vocab[0]);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *piece = json_string_value(json_array_get(json_array_get(list, i), 0));
        if (piece && json_object_set_new(in->vocab[0], piece, json_integer((json_int_t)i)) != 0)
            return dgm_no_memory(err);
    }
    return DGM_OK;
}

// SentencePiece models and vocab.json, or where source.spm is missing tokenizer.json.
static dgm_status open_vocabularies(reading *in, bool separate, dgm_error *err)
{
    const char *dir = in->job->dir;
    if (!dgm_file_exists_in(dir, "source.spm"))
        DGM_TRY(dgm_checkpoint_json(dir, "tokenizer.json", DGM_OPTIONAL, &in->fast, err));
    if (in->fast) {
        in->shared_vocab = in->config.vocab_size == in->config.decoder_vocab_size;
        return list_pieces(in, err);
    }
    DGM_TRY(dgm_checkpoint_json(dir, "vocab.json", DGM_REQUIRED, &in->vocab[0], err));
    if (separate)
        DGM_TRY(dgm_checkpoint_json(dir, "target_vocab.json", DGM_REQUIRED, &in->vocab[1], err));
    else
        in->vocab[1] = json_incref(in->vocab[0]);
    DGM_TRY(open_spm(in, 0, err));
    DGM_TRY(open_spm(in, 1, err));
    in->shared_vocab = !separate && in->config.vocab_size == in->config.decoder_vocab_size &&
                       in->spm[0].size == in->spm[1].size && in->spm[0].size > 0 &&
                       memcmp(in->spm[0].data, in->spm[1].data, in->spm[0].size) == 0;
    return DGM_OK;
}

static dgm_status open_files(reading *in, dgm_error *err)
{
    DGM_TRY(dgm_checkpoint_json(in->job->dir, "config.json", DGM_REQUIRED, &in->model_json, err));
    DGM_TRY(dgm_checkpoint_json(in->job->dir, "generation_config.json", DGM_OPTIONAL,
                                &in->generation_json, err));
    DGM_TRY(dgm_checkpoint_json(in->job->dir, "tokenizer_config.json", DGM_OPTIONAL,
                                &in->tokenizer_json, err));
    dgm_status st = dgm_marian_config_read(&in->config, in->model_json, in->generation_json, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s'", in->job->dir);
        return st;
    }
    bool separate = false;
    st = dgm_json_bool(in->tokenizer_json, "separate_vocabs", &separate, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s/tokenizer_config.json'", in->job->dir);
    if (st != DGM_OK) return st;
    DGM_FAIL_IF(in->config.shared_embedding && separate, err, DGM_ERR_UNSUPPORTED,
                "'%s': separate vocabularies over shared embeddings", in->job->dir);
    DGM_TRY(open_vocabularies(in, separate, err));
    return dgm_checkpoint_open_folder(&in->weights, in->job, err);
}

static void close_files(reading *in)
{
    json_decref(in->model_json);
    json_decref(in->generation_json);
    json_decref(in->tokenizer_json);
    json_decref(in->fast);
    for (int side = 0; side < 2; side++) {
        json_decref(in->vocab[side]);
        dgm_mapfile_close(&in->spm[side]);
    }
    dgm_checkpoint_close(&in->weights);
}

// ---- vocabulary -------------------------------------------------------------------------------

static dgm_status set_vocab(reading *in, int side, dgm_error *err)
{
    dgm_gguf_writer *w = in->job->w;
    const dgm_marian_config *c = &in->config;
    int size = side == 0 ? c->vocab_size : c->decoder_vocab_size;
    const json_t *unk = json_object_get(in->vocab[side], "<unk>");
    DGM_FAIL_IF(!unk, err, DGM_ERR_FORMAT, "'%s': %s has no <unk>", in->job->dir,
                in->fast ? "tokenizer.json" : "vocab.json");
    char path[64];
    snprintf(path, sizeof path, "%s.spm", sides[side]);
    const dgm_spm_vocab vocab = {.path = path,
                                 .model = in->spm[side].data,
                                 .model_size = in->spm[side].size,
                                 .ids = in->vocab[side],
                                 .size = size,
                                 .decoded = side == 1 || in->shared_vocab};
    const dgm_status st =
        in->fast ? dgm_vocab_from_tokenizer_json(w, (dgm_side)side, in->fast, size, NULL, err)
                 : dgm_spm_vocab_set(w, (dgm_side)side, &vocab, err);
    if (st != DGM_OK && in->fast) dgm_error_prefix(err, "tokenizer.json");
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", in->job->dir);
    dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "eos").text, c->eos);
    dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "unk").text, (int32_t)json_integer_value(unk));
    if (c->pad < size) dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "pad").text, c->pad);
    return st;
}

static dgm_status set_vocabularies(reading *in, dgm_error *err)
{
    const dgm_marian_config *c = &in->config;
    dgm_gguf_writer *w = in->job->w;
    DGM_TRY(set_vocab(in, 0, err));
    if (!in->shared_vocab) DGM_TRY(set_vocab(in, 1, err));
    const char *prefix = in->job->options.source_prefix;
    if (prefix) {
        const json_t *id = json_object_get(in->vocab[0], prefix);
        DGM_FAIL_IF(!json_is_integer(id), err, DGM_ERR_ARGUMENT,
                    "source prefix '%.60s' is not in the vocabulary", prefix);
        int32_t value = (int32_t)json_integer_value(id);
        dgm_gguf_set_array(w, "dragoman.source.prefix", DGM_META_I32, &value, 1);
    }
    dgm_gguf_set_i32(w, "dragoman.target.start", c->start);
    if (c->forced >= 0) {
        const int32_t forced = c->forced;
        dgm_gguf_set_array(w, "dragoman.target.prefix", DGM_META_I32, &forced, 1);
    }
    if (c->never_count)
        dgm_gguf_set_array(w, "dragoman.target.never", DGM_META_I32, c->never,
                           (size_t)c->never_count);
    return DGM_OK;
}

// ---- weights ----------------------------------------------------------------------------------

// The rows that a learned table has beyond "max_position_embeddings" come before position 0.
static void find_offset(reading *in, const dgm_bart *b)
{
    char name[64];
    snprintf(name, sizeof name, "%sencoder.embed_positions.weight", b->prefix);
    const int at = dgm_store_find(in->weights.tensors, name);
    if (!in->config.learned || at < 0) return;
    const int more =
        dgm_store_get(in->weights.tensors, (size_t)at)->rows - in->config.max_positions;
    if (more == 2) in->config.position_offset = 2; // BART's tables
}

static dgm_status add_weights(reading *in, dgm_error *err)
{
    const dgm_bart b = dgm_bart_of(&in->weights, &in->config);
    find_offset(in, &b);
    DGM_TRY(dgm_bart_embeddings(&b, err));
    DGM_TRY(dgm_bart_output_bias(&b, err));
    DGM_TRY(dgm_bart_positions(&b, err));
    DGM_TRY(dgm_bart_norms(&b, err));
    DGM_TRY(dgm_bart_layers(&b, err));
    return dgm_checkpoint_end(&in->weights, "a MarianMT model", err);
}

static dgm_status import_marian(dgm_import_job *job, dgm_error *err)
{
    reading in = {.job = job};
    const char *source = NULL, *target = NULL;
    dgm_status st;
    DGM_TRY_GOTO(st, open_files(&in, err), done);
    st = dgm_json_string(in.tokenizer_json, "source_lang", &source, err);
    if (st == DGM_OK) st = dgm_json_string(in.tokenizer_json, "target_lang", &target, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s/tokenizer_config.json'", job->dir);
    if (st != DGM_OK) goto done;
    dgm_import_general(job, "transformer", source, target);
    DGM_TRY_GOTO(st, set_vocabularies(&in, err), done);
    if (!job->options.source_prefix) // which settles the direction
        DGM_TRY_GOTO(st, dgm_marian_languages(job, in.vocab[0], source, err), done);
    dgm_bart_decoding(job->w, &in.config);
    dgm_bart_keys(job->w, &in.config);
    DGM_TRY_GOTO(st, add_weights(&in, err), done);
    st = dgm_import_write(job, err);
done:
    close_files(&in);
    return st;
}

// ---- families of models -----------------------------------------------------------------------

static const struct {
    const char *type;
    dgm_import_fn run;
} families[] = {
    {"marian", import_marian}, {"m2m_100", dgm_import_m2m}, {"nllb-moe", dgm_import_m2m},
    {"mbart", dgm_import_m2m}, {"t5", dgm_import_t5},       {"mt5", dgm_import_t5},
    {"umt5", dgm_import_t5},   {"fsmt", dgm_import_fsmt},
};

static dgm_status unknown_family(const char *dir, const char *type, dgm_error *err)
{
    char list[160] = "";
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", families[i].type);
    }
    return dgm_fail(err, DGM_ERR_UNSUPPORTED,
                    "'%s': \"model_type\" '%.60s' is not supported, expected one of: %s", dir, type,
                    list);
}

dgm_status dgm_import_huggingface(dgm_import_job *job, dgm_error *err)
{
    json_t *config = NULL;
    const char *type = "";
    DGM_TRY(dgm_checkpoint_json(job->dir, "config.json", DGM_REQUIRED, &config, err));
    dgm_status st = dgm_json_string(config, "model_type", &type, err);
    dgm_import_fn run = NULL;
    for (size_t i = 0; i < sizeof families / sizeof *families && st == DGM_OK; i++)
        if (strcmp(families[i].type, type) == 0) run = families[i].run;
    if (st != DGM_OK)
        dgm_error_prefix(err, "'%s/config.json'", job->dir);
    else if (!run)
        st = unknown_family(job->dir, type, err);
    json_decref(config);
    return st == DGM_OK ? run(job, err) : st;
}
