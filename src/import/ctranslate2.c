// SPDX-License-Identifier: MIT
// Imports CTranslate2 folders: Transformers that translate, from any of its converters (Marian, OpenNMT-py,
// OpenNMT-tf, fairseq, Hugging Face transformers).
//
//     model.bin                    weights and most settings (ct2_model.c, ct2_settings.c, ct2_weights.c)
//     config.json                  special tokens, from binary version 6 on
//     shared_vocabulary.json, or source_vocabulary.json and target_vocabulary.json; older: .txt (ct2_vocab.c)
//     vmap.txt                     which target tokens a source token may become (ct2_vmap.c)
//     source.spm, target.spm, sentencepiece.model, ...     put there by people; such a folder has no tokeniser
//
// CTranslate2 leaves the end symbol of the source to who calls it, unless config.json has add_source_eos: models of
// the converter for transformers were trained with one, and it is theirs that say the scale of embeddings as a number.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "import/ct2.h"

// ---- specifications ------------------------------------------------------------------------------

// What is no translator, by the name of its specification.
static dgm_status check_specification(const dgm_ct2 *in, dgm_error *err)
{
    static const char *const translators[] = {"", "TransformerBase", "TransformerBig", "TransformerSpec"};
    static const char *const others[][2] = {
        {"WhisperSpec", "Whisper, which recognises speech"},
        {"Wav2Vec2Spec", "Wav2Vec2, which recognises speech"},
        {"Wav2Vec2BertSpec", "Wav2Vec2-BERT, which recognises speech"},
        {"TransformerDecoderSpec", "a decoder without an encoder, which continues a text"},
        {"TransformerEncoderSpec", "an encoder without a decoder, which writes no text"},
    };
    const char *label = in->files->label, *name = in->head.specification;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        DGM_FAIL_IF(strcmp(name, others[i][0]) == 0, err, DGM_ERR_UNSUPPORTED,
                    "'%s/model.bin' is %s (%s): no model that translates", label, others[i][1], name);
    for (size_t i = 0; i < sizeof translators / sizeof *translators; i++)
        if (strcmp(name, translators[i]) == 0) {
            DGM_FAIL_IF(in->head.revision > DGM_CT2_REVISION, err, DGM_ERR_UNSUPPORTED,
                        "'%s/model.bin': revision %d of %s is not known (1 to %d are)", label, in->head.revision, name,
                        DGM_CT2_REVISION);
            return DGM_OK;
        }
    return dgm_fail(err, DGM_ERR_UNSUPPORTED, "'%s/model.bin': the specification '%.60s' is not known", label, name);
}

// ---- files ---------------------------------------------------------------------------------------

static dgm_status read_config(dgm_ct2 *in, dgm_error *err)
{
    dgm_mapfile f = {0};
    DGM_TRY(in->files->open(in->files->self, "config.json", false, &f, err));
    dgm_status st = f.data ? dgm_json_parse(&in->config, f.data, f.size, err) : DGM_OK;
    if (st == DGM_OK && f.data && !json_is_object(in->config))
        st = dgm_fail(err, DGM_ERR_FORMAT, "not a JSON object");
    if (st != DGM_OK) dgm_error_prefix(err, "'%s/config.json'", in->files->label);
    if (st == DGM_OK && !f.data && in->head.version >= 6)
        st = dgm_fail(err, DGM_ERR_IO, "'%s' has no config.json", in->files->label);
    dgm_mapfile_close(&f);
    return st;
}

static dgm_status open_model(dgm_ct2 *in, dgm_error *err)
{
    dgm_mapfile f = {0};
    dgm_store *store = NULL;
    DGM_TRY(in->files->open(in->files->self, "model.bin", false, &f, err));
    DGM_FAIL_IF(!f.data, err, DGM_ERR_IO, "'%s' has no model.bin, or an empty one", in->files->label);
    const dgm_status st = dgm_ct2_open_file(&store, &in->head, &f, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s/model.bin'", in->files->label);
        return st;
    }
    DGM_TRY(dgm_checkpoint_open(&in->weights, in->job, store, err));
    return check_specification(in, err);
}

static void close_files(dgm_ct2 *in)
{
    json_decref(in->config);
    json_decref(in->tokenizer);
    dgm_bpe_codes_free(&in->codes);
    for (int side = 0; side < 2; side++) {
        json_decref(in->tokens[side]);
        json_decref(in->ids[side]);
        dgm_mapfile_close(&in->spm[side]);
        dgm_free(in->spm_name[side]);
    }
    for (size_t i = 0; i < sizeof in->owned / sizeof *in->owned; i++) dgm_free(in->owned[i]);
    dgm_checkpoint_close(&in->weights);
}

// ---- keys ----------------------------------------------------------------------------------------

// <s>, and what the user or our own exporter says. *more: tokens behind <s>, which settle the direction.
static dgm_status set_source_prefix(dgm_ct2 *in, bool *more, dgm_error *err)
{
    const char *prefix = in->job->options.source_prefix;
    int32_t first[8], *kept = NULL;
    size_t count = 0, keeps = 0;
    if (in->source_bos) first[count++] = dgm_ct2_id(in, 0, in->bos);
    if (prefix) {
        DGM_FAIL_IF(dgm_ct2_id(in, 0, prefix) < 0, err, DGM_ERR_ARGUMENT,
                    "source prefix '%.60s' is not in the vocabulary", prefix);
        first[count++] = dgm_ct2_id(in, 0, prefix);
    } else {
        DGM_TRY(dgm_ct2_kept_tokens(in, 0, "source_prefix", &kept, &keeps, err));
        const bool fits = keeps < sizeof first / sizeof *first;
        for (size_t i = 0; i < keeps && fits; i++) first[count++] = kept[i];
        dgm_free(kept);
        DGM_FAIL_IF(!fits, err, DGM_ERR_FORMAT, "'%s/config.json': \"source_prefix\" has %zu tokens", in->files->label,
                    keeps);
    }
    *more = prefix || keeps;
    if (count) dgm_gguf_set_array(in->job->w, "dragoman.source.prefix", DGM_META_I32, first, count);
    return DGM_OK;
}

// *found: there is one.
static dgm_status set_target_prefix(dgm_ct2 *in, bool *found, dgm_error *err)
{
    const char *begin = in->about->target_prefix;
    int32_t id = begin ? dgm_ct2_id(in, 1, begin) : -1, *kept = NULL;
    size_t count = 0;
    DGM_FAIL_IF(begin && id < 0, err, DGM_ERR_FORMAT,
                "'%s': '%.60s', with which translations begin, is not in the vocabulary", in->files->label, begin);
    if (!begin) DGM_TRY(dgm_ct2_kept_tokens(in, 1, "target_prefix", &kept, &count, err));
    *found = begin || kept;
    in->lead = begin ? 1 : (int)count;
    if (*found)
        dgm_gguf_set_array(in->job->w, "dragoman.target.prefix", DGM_META_I32, begin ? &id : kept, begin ? 1 : count);
    dgm_free(kept);
    return DGM_OK;
}

// Beginning and end of both sides.
static dgm_status set_frame(dgm_ct2 *in, dgm_error *err)
{
    dgm_gguf_writer *w = in->job->w;
    bool prefix = false, begins = false;
    DGM_TRY(set_source_prefix(in, &prefix, err));
    const bool transformers = in->side[0].scale_is_number || in->side[0].relative ||
                              (in->zero_start && in->head.version < 6);
    dgm_gguf_set_bool(w, "dragoman.source.append_eos", in->source_eos || transformers);
    if (!in->zero_start && in->start) dgm_gguf_set_i32(w, "dragoman.target.start", dgm_ct2_id(in, 1, in->start));
    DGM_TRY(set_target_prefix(in, &begins, err));
    if (begins) return DGM_OK;
    bool many = false;
    if (!prefix) DGM_TRY(dgm_ct2_set_languages(in, &many, err)); // a prefix settles the direction
    DGM_FAIL_IF(!in->start && !in->zero_start && !many, err, DGM_ERR_UNSUPPORTED,
                "'%s': config.json has no \"decoder_start_token\", and the vocabulary has no languages",
                in->files->label);
    return DGM_OK;
}

static void set_decoding(dgm_gguf_writer *w, const dgm_ct2_about *about)
{
    dgm_gguf_set_u32(w, "dragoman.decode.beam", (uint32_t)about->beam);
    dgm_gguf_set_string(w, "dragoman.decode.finish", "ctranslate2");
    dgm_gguf_set_f32(w, "dragoman.decode.length_penalty", (float)about->length_penalty);
    dgm_gguf_set_bool(w, "dragoman.decode.allow_unk", true);
}

// Of one direction: what an archive says, or our own exporter kept.
static dgm_status read_languages(const dgm_ct2 *in, const char *languages[2], dgm_error *err)
{
    static const char *const keys[2] = {"source_language", "target_language"};
    for (int side = 0; side < 2; side++) {
        if (languages[side]) continue;
        const dgm_status st = dgm_json_string(dgm_ct2_kept(in), keys[side], &languages[side], err);
        if (st != DGM_OK) dgm_error_prefix(err, "'%s/config.json'", in->files->label);
        if (st != DGM_OK) return st;
    }
    return DGM_OK;
}

static dgm_status import_all(dgm_ct2 *in, dgm_error *err)
{
    DGM_TRY(open_model(in, err));
    DGM_TRY(read_config(in, err));
    DGM_TRY(dgm_ct2_read_settings(in, err));
    DGM_TRY(dgm_ct2_read_vocabularies(in, err));
    const char *languages[2] = {in->about->source, in->about->target};
    DGM_TRY(read_languages(in, languages, err));
    dgm_import_general(in->job, "transformer", languages[0], languages[1]);
    DGM_TRY(dgm_ct2_set_vocabularies(in, err));
    DGM_TRY(set_frame(in, err));
    const dgm_status st = dgm_ct2_set_network(in, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s/model.bin'", in->files->label);
    if (st != DGM_OK) return st;
    DGM_TRY(dgm_ct2_add_weights(in, err));
    DGM_TRY(dgm_ct2_set_kept(in, err));
    return dgm_ct2_add_vmap(in, err);
}

dgm_status dgm_ct2_import(dgm_import_job *job, const dgm_ct2_files *files, const dgm_ct2_about *about,
                          dgm_error *err)
{
    dgm_ct2 in = {.job = job, .files = files, .about = about};
    set_decoding(job->w, about);
    dgm_status st = import_all(&in, err);
    if (st == DGM_OK) st = dgm_import_write(job, err);
    close_files(&in);
    return st;
}

// ---- a folder ------------------------------------------------------------------------------------

static dgm_status open_in_folder(void *self, const char *name, bool beside, dgm_mapfile *out, dgm_error *err)
{
    const char *folder = self;
    const size_t room = strlen(folder) + strlen(name) + 8;
    char *path = dgm_malloc(room);
    if (!path) return dgm_no_memory(err);
    snprintf(path, room, "%s/%s%s", folder, beside ? "../" : "", name);
    memset(out, 0, sizeof *out);
    struct stat st;
    const dgm_status result = stat(path, &st) == 0 ? dgm_mapfile_open(out, path, err) : DGM_OK;
    dgm_free(path);
    return result;
}

// The folder, or the one that a named model.bin lies in.
static char *folder_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || S_ISDIR(st.st_mode)) return dgm_strdup(path);
    const char *slash = strrchr(path, '/');
    return slash ? dgm_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : dgm_strdup(".");
}

dgm_status dgm_import_ctranslate2(dgm_import_job *job, dgm_error *err)
{
    char *folder = folder_of(job->dir);
    if (!folder) return dgm_no_memory(err);
    const char *named = job->dir;
    job->dir = folder;
    const dgm_ct2_files files = {.self = folder, .label = folder, .open = open_in_folder};
    const dgm_ct2_about usual = {.beam = 2, .length_penalty = 1}; // what CTranslate2 does unless it is told otherwise
    const dgm_status st = dgm_ct2_import(job, &files, &usual, err);
    job->dir = named;
    dgm_free(folder);
    return st;
}
