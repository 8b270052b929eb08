// SPDX-License-Identifier: MIT
// Lists of tokens and their tokenisers; see token_vocab.h.
#include "import/token_vocab.h"

#include <string.h>

#include "base/json.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "import/bpe_codes.h"
#include "import/spm_vocab.h"

// As fairseq has its tokeniser work: of dgm_moses_flag_names "aggressive" and "escape".
enum { MOSES = 1 | 2 };

typedef struct tokeniser {
    char *path[2]; // of SentencePiece models; NULL: none
    dgm_mapfile spm[2];
    json_t *ids[2]; // spelling -> id
    bool bpe;
    dgm_bpe_codes codes;
} tokeniser;

// ---- looking for files -------------------------------------------------------------------------

// The first of some names in the folder, as a path to be freed; NULL: none is there.
static dgm_status look_for(const char *folder, const char *const *names, char **path,
                           dgm_error *err)
{
    *path = NULL;
    while (*names && !dgm_file_exists_in(folder, *names)) names++;
    if (*names && !(*path = dgm_path_in(folder, *names))) return dgm_no_memory(err);
    return DGM_OK;
}

static dgm_status open_spm(const dgm_token_vocab *v, tokeniser *t, int side, dgm_error *err)
{
    static const char *const names[2][10] = {
        {"source.spm", "spm.source.model", "sentencepiece.model", "sentencepiece.bpe.model",
         "sentence.bpe.model", "spm.model", "spm.bpe.model", "spiece.model", NULL},
        {"target.spm", "spm.target.model", "sentencepiece.model", "sentencepiece.bpe.model",
         "sentence.bpe.model", "spm.model", "spm.bpe.model", "spiece.model", NULL}};
    const dgm_import_options *o = &v->job->options;
    const char *named = side && o->target_spm ? o->target_spm : o->source_spm;
    if (named) {
        t->path[side] = dgm_strdup(named);
        if (!t->path[side]) return dgm_no_memory(err);
    } else {
        DGM_TRY(look_for(v->folder, names[side], &t->path[side], err));
    }
    if (!t->path[side]) return DGM_OK;
    DGM_TRY(dgm_mapfile_open(&t->spm[side], t->path[side], err));
    if (!v->job->opens) return DGM_OK;
    const dgm_status st = v->job->opens(t->spm[side].data, t->spm[side].size, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", t->path[side]);
    return st;
}

static dgm_status open_codes(const dgm_token_vocab *v, tokeniser *t, dgm_error *err)
{
    static const char *const names[] = {"bpecodes", "bpe.codes", "bpe-codes", "codes.bpe", "codes",
                                        "code",     "bpe.code",  "bpe.model", NULL};
    char *path = NULL;
    dgm_status st = DGM_OK;
    if (v->job->options.bpe)
        st = dgm_bpe_codes_read(&t->codes, v->job->options.bpe, err);
    else
        st = look_for(v->folder, names, &path, err);
    if (path) st = dgm_bpe_codes_read(&t->codes, path, err);
    t->bpe = st == DGM_OK && (path || v->job->options.bpe);
    dgm_free(path);
    return st;
}

static bool same_spm(const tokeniser *t)
{
    return t->spm[0].size == t->spm[1].size && t->spm[0].size > 0 &&
           memcmp(t->spm[0].data, t->spm[1].data, t->spm[0].size) == 0;
}

static void close_tokeniser(tokeniser *t)
{
    for (int side = 0; side < 2; side++) {
        dgm_mapfile_close(&t->spm[side]);
        dgm_free(t->path[side]);
        json_decref(t->ids[side]);
    }
    dgm_bpe_codes_free(&t->codes);
}

// ---- keys --------------------------------------------------------------------------------------

static dgm_status set_spm(const dgm_token_vocab *v, tokeniser *t, int side, dgm_error *err)
{
    const dgm_token_side *s = &v->side[side];
    dgm_json_init();
    t->ids[side] = json_object();
    if (!t->ids[side]) return dgm_no_memory(err);
    for (int i = 0; i < s->count; i++) { // of a token that is there twice the first counts
        if (json_object_get(t->ids[side], s->tokens[i])) continue;
        if (json_object_set_new_nocheck(t->ids[side], s->tokens[i], json_integer(i)) != 0)
            return dgm_no_memory(err);
    }
    const dgm_spm_vocab vocab = {.path = t->path[side],
                                 .model = t->spm[side].data,
                                 .model_size = t->spm[side].size,
                                 .ids = t->ids[side],
                                 .size = s->size,
                                 .decoded = side == 1 || v->shared};
    return dgm_spm_vocab_set(v->job->w, (dgm_side)side, &vocab, err);
}

// Words between spaces, or parts of words.
static dgm_status set_tokens(const dgm_token_vocab *v, const tokeniser *t, int side, dgm_error *err)
{
    const dgm_token_side *s = &v->side[side];
    dgm_gguf_writer *w = v->job->w;
    const char **words = dgm_calloc((size_t)s->size, sizeof *words);
    if (!words) return dgm_no_memory(err);
    for (int i = 0; i < s->size; i++) words[i] = i < s->count ? s->tokens[i] : "";
    if (t->bpe) {
        const dgm_bpe_keys k = {.tokens = words,
                                .size = s->size,
                                .eos = s->eos,
                                .unk = s->unk,
                                .pad = s->pad,
                                .bos = s->bos,
                                .style = DGM_SPEC_BPE_SUBWORD_NMT,
                                .flags = t->codes.end_apart ? DGM_SPEC_BPE_END_APART : 0,
                                .merges = t->codes.merges.items,
                                .merge_count = t->codes.merges.count,
                                .tokenizer = v->moses ? DGM_SPEC_TOKENIZER_SACREMOSES : DGM_SPEC_TOKENIZER_NONE,
                                .moses = v->moses ? MOSES : 0,
                                .language = v->language[side]};
        dgm_bpe_keys_set(w, (dgm_side)side, &k);
    } else {
        dgm_gguf_set_string(w, dgm_side_key((dgm_side)side, "vocab.kind").text, "words");
        dgm_gguf_set_u32(w, dgm_side_key((dgm_side)side, "vocab.size").text, (uint32_t)s->size);
        dgm_gguf_set_string(w, dgm_side_key((dgm_side)side, "vocab.tokenizer").text, "none");
        dgm_gguf_set_strings(w, dgm_side_key((dgm_side)side, "vocab.words").text, words,
                             (size_t)s->size);
    }
    dgm_free(words);
    return DGM_OK;
}

static void set_ids(const dgm_token_vocab *v, int side)
{
    const dgm_token_side *s = &v->side[side];
    dgm_gguf_writer *w = v->job->w;
    dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "eos").text, s->eos);
    dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "unk").text, s->unk);
    if (s->pad >= 0) dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "pad").text, s->pad);
    if (s->bos >= 0) dgm_gguf_set_i32(w, dgm_side_key((dgm_side)side, "bos").text, s->bos);
}

static dgm_status set_all(const dgm_token_vocab *v, tokeniser *t, dgm_error *err)
{
    DGM_TRY(open_spm(v, t, 0, err));
    DGM_TRY(open_spm(v, t, 1, err));
    DGM_FAIL_IF(
        !t->path[0] != !t->path[1], err, DGM_ERR_ARGUMENT,
        "'%s': a SentencePiece model for one side only; --source-spm and --target-spm name both",
        v->folder);
    if (!t->path[0]) DGM_TRY(open_codes(v, t, err));
    if (!t->path[0] && !t->bpe)
        dgm_import_note(
            v->job,
            "'%s' has no tokeniser beside the checkpoint (source.spm and target.spm, "
            "sentencepiece.model, bpecodes): text must be given as tokens with spaces between "
            "them; --source-spm and --target-spm or --bpe name one",
            v->folder);
    else if (t->bpe && !v->moses)
        dgm_import_note(v->job,
                        "words and marks of the text must be separated by spaces, as the codes of "
                        "byte-pair encoding were learnt");
    for (int side = 0; side < 2; side++) {
        if (side && v->shared && (t->path[0] ? same_spm(t) : !v->moses)) break;
        DGM_TRY(t->path[0] ? set_spm(v, t, side, err) : set_tokens(v, t, side, err));
        set_ids(v, side);
    }
    return DGM_OK;
}

dgm_status dgm_token_vocab_set(const dgm_token_vocab *v, dgm_error *err)
{
    tokeniser t = {0};
    const dgm_status st = set_all(v, &t, err);
    close_tokeniser(&t);
    return st;
}
