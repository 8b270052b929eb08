// SPDX-License-Identifier: MIT
// Imports FSMT folders of Hugging Face transformers: fairseq's models of WMT 2019. Called by huggingface.c.
//
//     config.json, generation_config.json, tokenizer_config.json   settings
//     safetensors or pytorch_model.bin
//     vocab-src.json, vocab-tgt.json                               token -> id, "er</w>" ends a word
//     merges.txt                                                   "e r</w>" a line, first learnt first
//
// The model: post-norm Transformer, positions from padding + 1 = 2 on with frequencies 10000^(-i/(D/2-1)), an embedding
// for each side and an output layer that may be the target's. Text: Moses' rules as sacremoses has them, punctuation
// made plain before, then byte-pair encoding.
#include <string.h>

#include "base/mem.h"
#include "import/bart.h"
#include "import/bpe_codes.h"
#include "import/checkpoint.h"
#include "import/fsmt.h"

// Of dgm_moses_flag_names: all four.
enum { MOSES = 1 | 2 | 4 | 8 };

typedef struct reading {
    dgm_import_job *job;
    dgm_marian_config c;
    json_t *config, *generation, *vocab[2];
    const char *language[2]; // NULL: not said
    dgm_bpe_codes codes;
    dgm_checkpoint weights;
} reading;

static const char *const files[2] = {"vocab-src.json", "vocab-tgt.json"};

// ---- files -------------------------------------------------------------------------------------

static dgm_status read_codes(reading *in, dgm_error *err)
{
    char *path = dgm_malloc(strlen(in->job->dir) + sizeof "/merges.txt");
    if (!path) return dgm_no_memory(err);
    strcpy(path, in->job->dir);
    strcat(path, "/merges.txt");
    const dgm_status st = dgm_bpe_codes_read(&in->codes, path, err);
    dgm_free(path);
    return st;
}

static dgm_status open_files(reading *in, dgm_error *err)
{
    const char *dir = in->job->dir;
    DGM_TRY(dgm_checkpoint_json(dir, "config.json", DGM_REQUIRED, &in->config, err));
    DGM_TRY(dgm_checkpoint_json(dir, "generation_config.json", DGM_OPTIONAL, &in->generation, err));
    for (int side = 0; side < 2; side++) {
        DGM_TRY(dgm_checkpoint_json(dir, files[side], DGM_REQUIRED, &in->vocab[side], err));
        const json_t *language = json_array_get(json_object_get(in->config, "langs"), (size_t)side);
        in->language[side] = json_string_value(language);
    }
    const dgm_status st = dgm_fsmt_config_read(&in->c, in->config, in->generation, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s'", dir);
        return st;
    }
    DGM_TRY(read_codes(in, err));
    return dgm_checkpoint_open_folder(&in->weights, in->job, err);
}

static void close_files(reading *in)
{
    dgm_checkpoint_close(&in->weights);
    dgm_bpe_codes_free(&in->codes);
    json_decref(in->config);
    json_decref(in->generation);
    for (int side = 0; side < 2; side++) json_decref(in->vocab[side]);
}

// ---- vocabulary --------------------------------------------------------------------------------

// tokens [size]: spelling of each id; special [size]: stands for no text.
static dgm_status list_tokens(json_t *vocab, const char **tokens, bool *special, int size,
                              dgm_error *err)
{
    static const char *const names[] = {"<s>", "<pad>", "</s>", "<unk>"};
    const char *token;
    json_t *value;
    for (int i = 0; i < size; i++) tokens[i] = "";
    json_object_foreach(vocab, token, value)
    {
        const int64_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        DGM_FAIL_IF(id < 0 || id >= size, err, DGM_ERR_FORMAT,
                    "token '%.60s' has no id from 0 to %d", token, size - 1);
        DGM_FAIL_IF(tokens[id][0], err, DGM_ERR_FORMAT, "tokens '%.60s' and '%.60s' have one id",
                    tokens[id], token);
        tokens[id] = token;
        for (int i = 0; i < 4; i++) special[id] = special[id] || strcmp(token, names[i]) == 0;
    }
    return DGM_OK;
}

static dgm_status set_side(reading *in, int side, const char **tokens, bool *special,
                           dgm_error *err)
{
    const int size = side ? in->c.decoder_vocab_size : in->c.vocab_size;
    const json_t *unk = json_object_get(in->vocab[side], "<unk>");
    dgm_string_list spelled = {0};
    DGM_TRY(list_tokens(in->vocab[side], tokens, special, size, err));
    DGM_FAIL_IF(!json_is_integer(unk), err, DGM_ERR_FORMAT, "no <unk>");
    DGM_TRY(dgm_bpe_respell(&spelled, tokens, special, size, err));
    const dgm_bpe_keys keys = {.tokens = spelled.items,
                               .size = size,
                               .eos = in->c.eos,
                               .unk = (int)json_integer_value(unk),
                               .pad = in->c.pad,
                               .bos = -1,
                               .style = DGM_SPEC_BPE_SUBWORD_NMT,
                               .merges = in->codes.merges.items,
                               .merge_count = in->codes.merges.count,
                               .tokenizer = DGM_SPEC_TOKENIZER_SACREMOSES,
                               .moses = MOSES,
                               .language = in->language[side]};
    dgm_bpe_keys_set(in->job->w, (dgm_side)side, &keys);
    dgm_string_list_free(&spelled);
    return DGM_OK;
}

static dgm_status set_vocabularies(reading *in, dgm_error *err)
{
    const dgm_marian_config *c = &in->c;
    for (int side = 0; side < 2; side++) {
        const size_t size = (size_t)(side ? c->decoder_vocab_size : c->vocab_size);
        const char **tokens = dgm_calloc(size, sizeof *tokens);
        bool *special = dgm_calloc(size, sizeof *special);
        dgm_status st =
            tokens && special ? set_side(in, side, tokens, special, err) : dgm_no_memory(err);
        if (st == DGM_ERR_FORMAT) dgm_error_prefix(err, "'%s/%s'", in->job->dir, files[side]);
        dgm_free(tokens);
        dgm_free(special);
        if (st != DGM_OK) return st;
    }
    dgm_gguf_set_i32(in->job->w, "dragoman.target.start", c->start);
    if (c->never_count)
        dgm_gguf_set_array(in->job->w, "dragoman.target.never", DGM_META_I32, c->never,
                           (size_t)c->never_count);
    return DGM_OK;
}

// ---- the model ---------------------------------------------------------------------------------

static dgm_status add_weights(reading *in, dgm_error *err)
{
    static const char head[] = "model.decoder.output_projection.weight";
    dgm_bart b = dgm_bart_of(&in->weights, &in->c);
    b.head = b.prefix[0] ? head : head + strlen("model.");
    b.shared = b.prefix[0] ? "model.encoder.embed_tokens.weight" : "encoder.embed_tokens.weight";
    if (!dgm_checkpoint_has(&in->weights, b.head))
        in->c.tied_output = true; // transformers 4: always
    DGM_TRY(dgm_bart_embeddings(&b, err));
    DGM_TRY(dgm_bart_positions(&b, err));
    DGM_TRY(dgm_bart_layers(&b, err));
    return dgm_checkpoint_end(&in->weights, "an FSMT model", err);
}

dgm_status dgm_import_fsmt(dgm_import_job *job, dgm_error *err)
{
    reading in = {.job = job};
    dgm_status st;
    DGM_TRY_GOTO(st, open_files(&in, err), done);
    dgm_import_general(job, "transformer", in.language[0], in.language[1]);
    DGM_TRY_GOTO(st, set_vocabularies(&in, err), done);
    dgm_bart_decoding(job->w, &in.c);
    dgm_bart_keys(job->w, &in.c);
    DGM_TRY_GOTO(st, add_weights(&in, err), done);
    st = dgm_import_write(job, err);
done:
    close_files(&in);
    return st;
}
