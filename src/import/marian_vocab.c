// SPDX-License-Identifier: MIT
// Vocabularies of Marian; see marian_model.h.
//
//     .spm                 a SentencePiece model; ids are its own
//     .yml, .yaml, .json   a mapping of words to ids
//     anything else        a word a line, ids from 0 on
//
// Lists of words that are pieces of SentencePiece models (source.spm, target.spm of OPUS-MT) number those, and lists
// of subwords go with codes of byte-pair encoding (source.bpe, target.bpe); other words are split at spaces, as Marian
// does. Text is tokenised by Moses' rules before where preprocess.sh says so. Files that end in .fsv are factored and
// refused.
#include <string.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "format/modelfile.h"
#include "import/bpe_codes.h"
#include "import/marian_config.h"
#include "import/marian_model.h"
#include "import/spm_list.h"
#include "import/spm_vocab.h"
#include "import/yaml.h"

enum { NEVER_MAX = 4096 };

// One side: its file, as a mapping and, with SentencePiece, the model.
typedef struct vocabulary {
    dgm_side side;
    const char *path, *model_path; // model_path NULL: words
    json_t *ids;
    dgm_mapfile model;
    dgm_bpe_codes codes; // without merges: none
    int size;
    int eos, unk;
    int32_t never[NEVER_MAX]; // control pieces
    int never_count;
} vocabulary;

static bool ends(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static void close_vocabulary(vocabulary *v)
{
    json_decref(v->ids);
    dgm_mapfile_close(&v->model);
    dgm_bpe_codes_free(&v->codes);
}

// ---- files -------------------------------------------------------------------------------------

static dgm_status open_model(vocabulary *v, const dgm_import_job *job, dgm_error *err)
{
    DGM_TRY(dgm_mapfile_open(&v->model, v->model_path, err));
    const dgm_status st = job->opens ? job->opens(v->model.data, v->model.size, err) : DGM_OK;
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", v->model_path);
    return st;
}

// Text that is not UTF-8 is found when the model is opened, as in every model file.
static dgm_status add_id(vocabulary *v, const char *word, size_t size, int id, dgm_error *err)
{
    if (json_object_setn_new_nocheck(v->ids, word, size, json_integer(id)) != 0)
        return dgm_no_memory(err);
    return DGM_OK;
}

// The pieces of a model under their own numbers. More of them than the embeddings have rows are another model's.
static dgm_status ids_of_model(vocabulary *v, dgm_error *err)
{
    dgm_spm_list list;
    dgm_status st = dgm_spm_list_read(&list, v->model.data, v->model.size, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s'", v->model_path);
        return st;
    }
    if (list.count > (size_t)v->size)
        st = dgm_fail(err, DGM_ERR_FORMAT, "'%s' has %zu pieces, but the model's %s embeddings have %d rows",
                      v->model_path, list.count, v->side == DGM_SOURCE ? "source" : "target", v->size);
    for (size_t i = 0; i < list.count && st == DGM_OK; i++) {
        const dgm_spm_item *p = &list.items[i];
        st = add_id(v, p->piece, p->size, (int)i, err);
        if (p->kind == DGM_SPM_UNKNOWN) v->unk = (int)i;
        if (p->kind == DGM_SPM_CONTROL && p->size == 4 && memcmp(p->piece, "</s>", 4) == 0)
            v->eos = (int)i;
        else if (p->kind == DGM_SPM_CONTROL && v->never_count < NEVER_MAX)
            v->never[v->never_count++] = (int32_t)i;
    }
    dgm_spm_list_free(&list);
    return st;
}

static dgm_status ids_of_lines(vocabulary *v, dgm_error *err)
{
    dgm_mapfile f;
    DGM_TRY(dgm_mapfile_open(&f, v->path, err));
    const char *at = f.size ? (const char *)f.data : "", *end = at + f.size;
    dgm_status st = DGM_OK;
    for (int id = 0; at < end && st == DGM_OK; id++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        size_t n = (size_t)(stop - at);
        if (n > 0 && at[n - 1] == '\r') n--;
        if (n > 0) st = add_id(v, at, n, id, err);
        at = newline ? newline + 1 : end;
    }
    dgm_mapfile_close(&f);
    if (st == DGM_OK && json_object_size(v->ids) == 0)
        st = dgm_fail(err, DGM_ERR_FORMAT, "'%s' is a vocabulary without words", v->path);
    return st;
}

static dgm_status ids_of_file(vocabulary *v, dgm_error *err)
{
    DGM_FAIL_IF(ends(v->path, ".fsv"), err, DGM_ERR_UNSUPPORTED,
                "'%s' is a factored vocabulary, which is not supported", v->path);
    if (!ends(v->path, ".yml") && !ends(v->path, ".yaml") && !ends(v->path, ".json"))
        return ids_of_lines(v, err);
    json_decref(v->ids);
    v->ids = NULL;
    DGM_TRY(dgm_yaml_read(&v->ids, v->path, err)); // JSON is YAML
    DGM_FAIL_IF(!json_is_object(v->ids), err, DGM_ERR_FORMAT,
                "'%s' is no mapping of words to numbers", v->path);
    return DGM_OK;
}

// -1: not one of the model's.
static int number_of(const vocabulary *v, const json_t *id)
{
    const json_int_t n = json_is_integer(id) ? json_integer_value(id) : -1;
    return n >= 0 && n < v->size ? (int)n : -1;
}

static int id_of(const vocabulary *v, const char *word, const char *other, int usual)
{
    const json_t *id = json_object_get(v->ids, word);
    if (!json_is_integer(id)) id = json_object_get(v->ids, other);
    return json_is_integer(id) ? number_of(v, id) : usual;
}

static dgm_status open_vocabulary(vocabulary *v, const dgm_import_job *job,
                                  const dgm_marian_files *f, int side, dgm_error *err)
{
    v->side = (dgm_side)side;
    v->path = f->vocab[side];
    v->model_path = ends(v->path, ".spm") ? v->path : f->spm[side];
    v->ids = json_object();
    if (!v->ids) return dgm_no_memory(err);
    if (v->model_path) DGM_TRY(open_model(v, job, err));
    v->eos = 0;
    v->unk = 1;
    if (v->model_path == v->path) return ids_of_model(v, err);
    if (f->bpe[side]) DGM_TRY(dgm_bpe_codes_read(&v->codes, f->bpe[side], err));
    DGM_TRY(ids_of_file(v, err));
    v->eos = id_of(v, "</s>", "eos", 0);
    v->unk = id_of(v, "<unk>", "UNK", 1);
    return DGM_OK;
}

// ---- keys --------------------------------------------------------------------------------------

// words [size]: spelling of each id.
static dgm_status list_words(const vocabulary *v, const char **words, dgm_error *err)
{
    const char *word;
    json_t *value;
    for (int i = 0; i < v->size; i++) words[i] = "";
    json_object_foreach(v->ids, word, value)
    {
        const int64_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        DGM_FAIL_IF(id < 0, err, DGM_ERR_FORMAT, "word '%.60s' has no number", word);
        if (id < v->size) words[id] = word; // others are unknown to the model
    }
    return DGM_OK;
}

// The language that Moses' rules are for: of the options, or what the folder says.
static const char *language_of(const dgm_import_job *job, const dgm_marian_files *f, dgm_side side)
{
    const char *asked = side == DGM_SOURCE ? job->options.source_language : job->options.target_language;
    const char *code = dgm_import_language(asked ? asked : f->release.language[side]);
    return code && code[0] ? code : NULL;
}

static dgm_status set_words(const dgm_import_job *job, const dgm_marian_files *f, const vocabulary *v,
                            dgm_error *err)
{
    dgm_gguf_writer *w = job->w;
    const char **words = dgm_calloc((size_t)v->size, sizeof *words);
    dgm_status st = words ? list_words(v, words, err) : dgm_no_memory(err);
    if (st == DGM_OK && v->codes.merges.count) {
        const dgm_bpe_keys keys = {.tokens = words,
                                   .size = v->size,
                                   .eos = v->eos,
                                   .unk = v->unk,
                                   .pad = -1,
                                   .bos = -1,
                                   .style = DGM_SPEC_BPE_SUBWORD_NMT,
                                   .flags = v->codes.end_apart ? DGM_SPEC_BPE_END_APART : 0,
                                   .merges = v->codes.merges.items,
                                   .merge_count = v->codes.merges.count};
        dgm_bpe_keys_set(w, v->side, &keys);
    } else if (st == DGM_OK) {
        dgm_gguf_set_string(w, dgm_side_key(v->side, "vocab.kind").text, "words");
        dgm_gguf_set_u32(w, dgm_side_key(v->side, "vocab.size").text, (uint32_t)v->size);
        dgm_gguf_set_strings(w, dgm_side_key(v->side, "vocab.words").text, words, (size_t)v->size);
    }
    if (st == DGM_OK) dgm_release_set(&f->release, w, v->side, language_of(job, f, v->side));
    dgm_free(words);
    return st;
}

static dgm_status set_vocabulary(const dgm_import_job *job, const dgm_marian_files *f, const vocabulary *v,
                                 bool decoded, dgm_error *err)
{
    dgm_gguf_writer *w = job->w;
    DGM_FAIL_IF(v->eos >= v->size || v->unk >= v->size || v->eos < 0 || v->unk < 0, err,
                DGM_ERR_FORMAT,
                "'%s': end and unknown symbol have no numbers from 0 to %d", v->path, v->size - 1);
    const dgm_spm_vocab pieces = {.path = v->model_path,
                                  .model = v->model.data,
                                  .model_size = v->model.size,
                                  .ids = v->ids,
                                  .size = v->size,
                                  .decoded = decoded};
    const dgm_status st =
        v->model_path ? dgm_spm_vocab_set(w, v->side, &pieces, err) : set_words(job, f, v, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", v->path);
    dgm_gguf_set_i32(w, dgm_side_key(v->side, "eos").text, v->eos);
    dgm_gguf_set_i32(w, dgm_side_key(v->side, "unk").text, v->unk);
    return st;
}

static bool same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static bool same_vocabulary(const vocabulary *a, const vocabulary *b, const dgm_marian_files *f)
{
    if (a->size != b->size || !same_text(a->path, b->path)) return false;
    if (!a->model_path && (a->codes.merges.count || f->release.tokenized))
        return false; // each side has its own codes and language
    if (same_text(a->model_path, b->model_path)) return true;
    return a->model.size == b->model.size && a->model.size > 0 &&
           memcmp(a->model.data, b->model.data, a->model.size) == 0;
}

// language: of the source, "" where nothing says.
static dgm_status set_prefix(dgm_import_job *job, const vocabulary *source, const char *language, dgm_error *err)
{
    const char *prefix = job->options.source_prefix;
    const bool released = (source->model_path && source->model_path != source->path) || source->codes.merges.count;
    if (!prefix && released)
        return dgm_marian_languages(job, source->ids, language[0] ? language : NULL, err);
    if (!prefix) return DGM_OK;
    const int32_t value = number_of(source, json_object_get(source->ids, prefix));
    DGM_FAIL_IF(value < 0, err, DGM_ERR_ARGUMENT, "source prefix '%.60s' is not in the vocabulary", prefix);
    dgm_gguf_set_array(job->w, "dragoman.source.prefix", DGM_META_I32, &value, 1);
    return DGM_OK;
}

static void say_how_text_is_read(dgm_import_job *job, const dgm_marian_files *f, const vocabulary *source)
{
    if (f->release.truecased)
        dgm_import_note(job, "the model was trained on truecased text, which is not made here: first words of "
                             "sentences keep their capitals");
    if (f->release.tokenized) return;
    if (f->bpe[0])
        dgm_import_note(job, "words and marks of the text must be separated by spaces, as the codes of byte-pair "
                             "encoding were learnt");
    else
        dgm_import_note(job, "the model reads words of '%s', split at spaces: tokenise text as for its training",
                        source->path);
}

int dgm_marian_word(const dgm_marian_words *w, int side, dgm_text word)
{
    const json_t *id = json_object_getn(w->ids[side], word.data, word.size);
    const json_int_t n = json_is_integer(id) ? json_integer_value(id) : -1;
    return n >= 0 && n < w->sizes[side] ? (int)n : w->unk[side];
}

void dgm_marian_words_free(dgm_marian_words *w)
{
    for (int side = 0; side < 2; side++) json_decref(w->ids[side]);
    *w = (dgm_marian_words){0};
}

dgm_status dgm_marian_vocabularies(dgm_import_job *job, const dgm_marian_files *f,
                                   dgm_marian_words *w, dgm_error *err)
{
    vocabulary *v = dgm_calloc(2, sizeof *v);
    if (!v) return dgm_no_memory(err);
    dgm_status st = DGM_OK;
    for (int side = 0; side < 2 && st == DGM_OK; side++) {
        v[side].size = w->sizes[side];
        st = open_vocabulary(&v[side], job, f, side, err);
        w->ids[side] = json_incref(v[side].ids);
        w->unk[side] = v[side].unk;
    }
    const bool shared = st == DGM_OK && same_vocabulary(&v[0], &v[1], f);
    if (st == DGM_OK) st = set_vocabulary(job, f, &v[0], shared, err);
    if (st == DGM_OK && !shared) st = set_vocabulary(job, f, &v[1], true, err);
    if (st == DGM_OK && v[1].never_count)
        dgm_gguf_set_array(job->w, "dragoman.target.never", DGM_META_I32, v[1].never,
                           (size_t)v[1].never_count);
    if (st == DGM_OK) st = set_prefix(job, &v[0], f->release.language[0], err);
    if (st == DGM_OK && !v[0].model_path) say_how_text_is_read(job, f, &v[0]);
    for (int side = 0; side < 2; side++) close_vocabulary(&v[side]);
    dgm_free(v);
    return st;
}
