// SPDX-License-Identifier: MIT
// Vocabularies of a CTranslate2 model (ct2.h): lists of tokens, in JSON or one a line, and what they become with the
// tokeniser that was found (ct2_tokenizer.c).
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "import/ct2.h"
#include "import/spm_vocab.h"
#include "import/tokenizer_json.h"

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
    // Rows without a column take no bytes, so the file's size does not bound them.
    DGM_FAIL_IF(in->size[side] > DGM_SPEC_VOCAB_MAX, err, DGM_ERR_FORMAT,
                "'%s/model.bin': the %s's embeddings have %d rows, at most %d", in->files->label, sides[side],
                in->size[side], DGM_SPEC_VOCAB_MAX);
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

static dgm_status set_bpe(dgm_ct2 *in, int side, dgm_error *err)
{
    const size_t size = (size_t)in->size[side], count = json_array_size(in->tokens[side]);
    const char **tokens = dgm_calloc(size, sizeof *tokens);
    if (!tokens) return dgm_no_memory(err);
    for (size_t i = 0; i < size; i++)
        tokens[i] = i < count ? json_string_value(json_array_get(in->tokens[side], i)) : "";
    const int unk = dgm_ct2_id(in, side, in->unk);
    if ((size_t)unk >= count) tokens[unk] = in->unk;
    enum { ESCAPE = 1 << 1, PUNCTUATION = 1 << 2 }; // of dgm_moses_flag_names
    const bool moses = in->about->moses;
    const dgm_bpe_keys k = {.tokens = tokens,
                            .size = (int)size,
                            .eos = dgm_ct2_id(in, side, in->eos),
                            .unk = unk,
                            .pad = -1,
                            .bos = dgm_ct2_id(in, side, in->bos),
                            .style = DGM_SPEC_BPE_SUBWORD_NMT,
                            .flags = in->codes.end_apart ? DGM_SPEC_BPE_END_APART : 0,
                            .merges = in->codes.merges.items,
                            .merge_count = in->codes.merges.count,
                            .tokenizer = moses ? DGM_SPEC_TOKENIZER_SACREMOSES : DGM_SPEC_TOKENIZER_NONE,
                            .moses = moses ? ESCAPE | PUNCTUATION : 0,
                            .language = side ? in->about->target : in->about->source};
    dgm_bpe_keys_set(in->job->w, (dgm_side)side, &k);
    dgm_free(tokens);
    return DGM_OK;
}

static dgm_status set_json(dgm_ct2 *in, int side, dgm_error *err)
{
    dgm_tokenizer_info info;
    const dgm_status st =
        dgm_vocab_from_tokenizer_json(in->job->w, (dgm_side)side, in->tokenizer, in->size[side], &info, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s': tokenizer.json", in->files->label);
    return st;
}

static dgm_status set_vocabulary(dgm_ct2 *in, int side, dgm_error *err)
{
    dgm_gguf_writer *w = in->job->w;
    const dgm_spm_vocab v = {.path = in->spm_name[side],
                             .model = in->spm[side].data,
                             .model_size = in->spm[side].size,
                             .ids = in->ids[side],
                             .size = in->size[side],
                             .decoded = side == 1 || in->shared};
    DGM_TRY(v.model                   ? dgm_spm_vocab_set(w, (dgm_side)side, &v, err)
            : in->codes.merges.count  ? set_bpe(in, side, err)
            : in->tokenizer           ? set_json(in, side, err)
                                      : set_words(in, side, err));
    dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "eos").text, dgm_ct2_id(in, side, in->eos));
    dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "unk").text, dgm_ct2_id(in, side, in->unk));
    const int bos = dgm_ct2_id(in, side, in->bos);
    if (bos >= 0) dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "bos").text, bos);
    return DGM_OK;
}

dgm_status dgm_ct2_set_vocabularies(dgm_ct2 *in, dgm_error *err)
{
    bool alike = false;
    DGM_TRY(dgm_ct2_open_tokenisers(in, &alike, err));
    DGM_TRY(set_vocabulary(in, 0, err));
    if (!in->shared || in->size[0] != in->size[1] || !alike) DGM_TRY(set_vocabulary(in, 1, err));
    return DGM_OK;
}
