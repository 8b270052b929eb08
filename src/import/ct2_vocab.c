// SPDX-License-Identifier: MIT
// Vocabularies of a CTranslate2 model (ct2.h): lists of tokens, in JSON or one a line; and the tokeniser, which
// such a folder does not have: it is looked for beside the model under the names that people give it.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "import/ct2.h"
#include "import/spm_vocab.h"

enum { VOCAB_MAX = 1 << 24 };

static const char *const sides[2] = {"source", "target"};

int dgm_ct2_id(const dgm_ct2 *in, int side, const char *token)
{
    const json_t *id = token ? json_object_get(in->ids[side], token) : NULL;
    return id ? (int)json_integer_value(id) : -1;
}

// ---- lists of tokens -----------------------------------------------------------------------------

static dgm_status add_token(json_t *list, const char *text, size_t size, dgm_error *err)
{
    DGM_FAIL_IF(memchr(text, 0, size), err, DGM_ERR_FORMAT, "token %zu has a NUL byte", json_array_size(list));
    DGM_FAIL_IF(json_array_size(list) >= VOCAB_MAX, err, DGM_ERR_FORMAT, "more than %d tokens", VOCAB_MAX);
    json_t *token = json_stringn_nocheck(text, size);
    return token && json_array_append_new(list, token) == 0 ? DGM_OK : dgm_no_memory(err);
}

// A carriage return belongs to a token unless all lines have one.
static bool all_lines_crlf(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) return false;
    return size > 1 && text[size - 1] == '\n';
}

static dgm_status read_lines(const dgm_mapfile *f, json_t *list, dgm_error *err)
{
    const char *text = (const char *)f->data;
    const size_t drop = all_lines_crlf(text, f->size) ? 1 : 0;
    for (size_t at = 0; at < f->size;) {
        const char *end = memchr(text + at, '\n', f->size - at);
        const size_t n = end ? (size_t)(end - text) - at : f->size - at;
        DGM_TRY(add_token(list, text + at, end && n >= drop ? n - drop : n, err));
        at += n + 1;
    }
    return DGM_OK;
}

static dgm_status read_json(const dgm_mapfile *f, json_t *list, dgm_error *err)
{
    json_t *found = NULL;
    DGM_TRY(dgm_json_parse(&found, f->data, f->size, err));
    dgm_status st = json_is_array(found) ? DGM_OK : dgm_fail(err, DGM_ERR_FORMAT, "not a list of tokens");
    for (size_t i = 0; i < json_array_size(found) && st == DGM_OK; i++) {
        const json_t *token = json_array_get(found, i);
        st = json_is_string(token)
                 ? add_token(list, json_string_value(token), json_string_length(token), err)
                 : dgm_fail(err, DGM_ERR_FORMAT, "element %zu is not a string", i);
    }
    json_decref(found);
    return st;
}

// Not there: *out stays NULL.
static dgm_status read_list(dgm_ct2 *in, const char *name, json_t **out, dgm_error *err)
{
    static const char *const ends[2] = {"json", "txt"};
    for (int i = 0; i < 2 && !*out; i++) {
        char file[64];
        dgm_mapfile f = {0};
        snprintf(file, sizeof file, "%s.%s", name, ends[i]);
        DGM_TRY(in->files->open(in->files->self, file, false, &f, err));
        if (!f.data) continue;
        *out = json_array();
        dgm_status st = !*out ? dgm_no_memory(err) : i == 0 ? read_json(&f, *out, err) : read_lines(&f, *out, err);
        if (st != DGM_OK) dgm_error_prefix(err, "'%s/%s'", in->files->label, file);
        dgm_mapfile_close(&f);
        if (st != DGM_OK) return st;
    }
    return DGM_OK;
}

// Spelling -> id; of a token that is there twice the first counts, as in CTranslate2.
static dgm_status number_tokens(dgm_ct2 *in, int side, dgm_error *err)
{
    json_t *ids = json_object();
    in->ids[side] = ids;
    if (!ids) return dgm_no_memory(err);
    for (size_t i = 0; i < json_array_size(in->tokens[side]); i++) {
        const char *token = json_string_value(json_array_get(in->tokens[side], i));
        if (json_object_get(ids, token)) continue;
        if (json_object_set_new_nocheck(ids, token, json_integer((json_int_t)i)) != 0) return dgm_no_memory(err);
    }
    if (json_object_get(ids, in->unk)) return DGM_OK;
    const int last = (int)json_array_size(in->tokens[side]); // appended where a list has none
    return json_object_set_new_nocheck(ids, in->unk, json_integer(last)) == 0 ? DGM_OK : dgm_no_memory(err);
}

static int embedding_rows(const dgm_ct2 *in, const char *name)
{
    const int at = dgm_store_find(in->weights.tensors, name);
    return at < 0 ? -1 : dgm_store_get(in->weights.tensors, (size_t)at)->rows;
}

static dgm_status check_vocabulary(dgm_ct2 *in, int side, dgm_error *err)
{
    const int count = (int)json_array_size(in->tokens[side]);
    const char *const needed[] = {in->unk, in->eos, side && !in->zero_start ? in->start : NULL,
                                  side == 0 && in->source_bos ? in->bos : NULL};
    DGM_FAIL_IF(in->size[side] < 2, err, DGM_ERR_FORMAT, "'%s/model.bin': the %s's embeddings are missing",
                in->files->label, sides[side]);
    DGM_FAIL_IF(count > in->size[side], err, DGM_ERR_FORMAT,
                "'%s': the %s's vocabulary has %d tokens, its embeddings have %d rows", in->files->label, sides[side],
                count, in->size[side]);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        DGM_FAIL_IF(needed[i] && (dgm_ct2_id(in, side, needed[i]) < 0 ||
                                  dgm_ct2_id(in, side, needed[i]) >= in->size[side]),
                    err, DGM_ERR_FORMAT, "'%s': the %s's vocabulary has no '%.60s'", in->files->label, sides[side],
                    needed[i]);
    return DGM_OK;
}

dgm_status dgm_ct2_read_vocabularies(dgm_ct2 *in, dgm_error *err)
{
    static const char *const names[2] = {"source_vocabulary", "target_vocabulary"};
    DGM_TRY(read_list(in, "shared_vocabulary", &in->tokens[0], err));
    in->shared = in->tokens[0] != NULL;
    if (in->shared) in->tokens[1] = json_incref(in->tokens[0]);
    for (int side = 0; side < 2 && !in->shared; side++) {
        DGM_TRY(read_list(in, names[side], &in->tokens[side], err));
        DGM_FAIL_IF(!in->tokens[side], err, DGM_ERR_IO, "'%s' has neither shared_vocabulary nor %s (.json or .txt)",
                    in->files->label, names[side]);
    }
    in->size[0] = embedding_rows(in, "encoder/embeddings_0/weight");
    if (in->size[0] < 0) in->size[0] = embedding_rows(in, "encoder/embeddings/weight");
    in->size[1] = embedding_rows(in, "decoder/embeddings/weight");
    for (int side = 0; side < 2; side++) {
        if (side && in->shared && in->size[0] == in->size[1])
            in->ids[1] = json_incref(in->ids[0]);
        else
            DGM_TRY(number_tokens(in, side, err));
        DGM_TRY(check_vocabulary(in, side, err));
    }
    return DGM_OK;
}

// ---- tokenisers ----------------------------------------------------------------------------------

static dgm_status take_spm(dgm_ct2 *in, int side, const char *name, dgm_error *err)
{
    in->spm_name[side] = dgm_strdup(name);
    if (!in->spm_name[side]) return dgm_no_memory(err);
    if (!in->job->opens) return DGM_OK;
    const dgm_status st = in->job->opens(in->spm[side].data, in->spm[side].size, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", name);
    return st;
}

// A SentencePiece model among the files, in the model's folder first.
static dgm_status look_for_spm(dgm_ct2 *in, int side, dgm_error *err)
{
    static const char *const own[2] = {"source.spm", "target.spm"};
    static const char *const both[] = {"sentencepiece.model", "sentencepiece.bpe.model", "spiece.model", "spm.model",
                                       "tokenizer.model",     "source.spm"};
    for (int beside = 0; beside < 2; beside++)
        for (size_t i = 0; i <= sizeof both / sizeof *both; i++) {
            const char *name = i == 0 ? own[side] : both[i - 1];
            DGM_TRY(in->files->open(in->files->self, name, beside, &in->spm[side], err));
            if (in->spm[side].data) return take_spm(in, side, name, err);
        }
    return DGM_OK;
}

static dgm_status open_spm(dgm_ct2 *in, int side, dgm_error *err)
{
    const dgm_import_options *o = &in->job->options;
    const char *named = side && o->target_spm ? o->target_spm : o->source_spm;
    if (!named) return look_for_spm(in, side, err);
    DGM_TRY(dgm_mapfile_open(&in->spm[side], named, err));
    DGM_FAIL_IF(!in->spm[side].data, err, DGM_ERR_FORMAT, "'%s' is empty", named);
    return take_spm(in, side, named, err);
}

static bool same_spm(const dgm_ct2 *in)
{
    return in->spm[0].size == in->spm[1].size &&
           (!in->spm[0].data || memcmp(in->spm[0].data, in->spm[1].data, in->spm[0].size) == 0);
}

// ---- keys ----------------------------------------------------------------------------------------

// Tokens are words of a text that was tokenised before.
static dgm_status set_words(dgm_ct2 *in, int side, dgm_error *err)
{
    dgm_gguf_writer *w = in->job->w;
    const size_t size = (size_t)in->size[side], count = json_array_size(in->tokens[side]);
    const char **words = dgm_calloc(size, sizeof *words);
    if (!words) return dgm_no_memory(err);
    for (size_t i = 0; i < size; i++)
        words[i] = i < count ? json_string_value(json_array_get(in->tokens[side], i)) : "";
    const int unk = dgm_ct2_id(in, side, in->unk);
    if ((size_t)unk >= count) words[unk] = in->unk;
    dgm_gguf_set_string(w, dgm_side_key((dgm_side)side, "vocab.kind").text, "words");
    dgm_gguf_set_u32(w, dgm_side_key((dgm_side)side, "vocab.size").text, (uint32_t)size);
    dgm_gguf_set_string(w, dgm_side_key((dgm_side)side, "vocab.tokenizer").text, "none");
    dgm_gguf_set_strings(w, dgm_side_key((dgm_side)side, "vocab.words").text, words, size);
    dgm_free(words);
    return DGM_OK;
}

static dgm_status set_vocabulary(dgm_ct2 *in, int side, dgm_error *err)
{
    const dgm_spm_vocab v = {.path = in->spm_name[side],
                             .model = in->spm[side].data,
                             .model_size = in->spm[side].size,
                             .ids = in->ids[side],
                             .size = in->size[side],
                             .decoded = side == 1 || in->shared};
    DGM_TRY(v.model ? dgm_spm_vocab_set(in->job->w, (dgm_side)side, &v, err) : set_words(in, side, err));
    dgm_gguf_writer *w = in->job->w;
    dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "eos").text, dgm_ct2_id(in, side, in->eos));
    dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "unk").text, dgm_ct2_id(in, side, in->unk));
    const int bos = dgm_ct2_id(in, side, in->bos);
    if (bos >= 0) dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "bos").text, bos);
    return DGM_OK;
}

dgm_status dgm_ct2_set_vocabularies(dgm_ct2 *in, dgm_error *err)
{
    DGM_TRY(open_spm(in, 0, err));
    DGM_TRY(open_spm(in, 1, err));
    DGM_FAIL_IF(!in->spm[0].data != !in->spm[1].data, err, DGM_ERR_ARGUMENT,
                "'%s': a SentencePiece model for one side only; --source-spm and --target-spm name both",
                in->files->label);
    if (!in->spm[0].data)
        dgm_import_note(in->job,
                        "'%s' has no tokeniser (source.spm and target.spm, sentencepiece.model): text must be given as "
                        "tokens with spaces between them; --source-spm and --target-spm name one",
                        in->files->label);
    DGM_TRY(set_vocabulary(in, 0, err));
    if (!in->shared || in->size[0] != in->size[1] || !same_spm(in)) DGM_TRY(set_vocabulary(in, 1, err));
    return DGM_OK;
}
