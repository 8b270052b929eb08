// SPDX-License-Identifier: MIT
// Imports models of Nematus, Amun and dl4mt: model.npz with its settings in JSON.
//
//     MODEL.npz                                weights (npz.c, recurrent.c)
//     MODEL.npz.json, MODEL.json or --config   settings; old ones have other names of the same keys
//     dictionaries                             JSON, word -> id; paths are in the settings, or --vocabs
//
// Depths, norms and ties follow from the tensors, and settings that say something else are refused: so a
// file of dl4mt needs no more than its dictionaries. Text is split at spaces: these programs read words or subwords
// that others made. Where preprocess.sh lies beside the weights, its tokeniser and its codes are used, or those of
// --bpe.
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/mem.h"
#include "format/modelfile.h"
#include "import/bpe_codes.h"
#include "import/named_file.h"
#include "import/npz.h"
#include "import/recurrent.h"
#include "import/release.h"

typedef struct reading {
    dgm_import_job *job;
    char path[PATH_MAX]; // of the weights
    json_t *config;      // an empty object: there is none
    char config_path[PATH_MAX];
    json_t *words[2];
    dgm_bpe_codes codes; // of subword-nmt; without merges: none
    dgm_release release;
    char language[2][8]; // that Moses' rules are for; "": not said
    dgm_checkpoint weights;
    dgm_composer parts;
    dgm_recurrent model;
} reading;

// ---- files -------------------------------------------------------------------------------------

static bool is_file(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static dgm_status join_path(char *out, size_t size, const char *a, const char *between,
                            const char *b, dgm_error *err)
{
    const int n = snprintf(out, size, "%s%s%s", a, between, b);
    DGM_FAIL_IF(n < 0 || (size_t)n >= size, err, DGM_ERR_ARGUMENT,
                "'%.60s...': the path is too long", a);
    return DGM_OK;
}

// The settings beside the weights: MODEL.npz.json or MODEL.json. None are needed where --vocabs says what the
// tensors do not.
static dgm_status find_config(reading *in, dgm_error *err)
{
    char *path = in->config_path;
    if (in->job->options.config)
        return join_path(path, sizeof in->config_path, in->job->options.config, "", "", err);
    DGM_TRY(join_path(path, sizeof in->config_path, in->path, ".json", "", err));
    if (is_file(path)) return DGM_OK;
    const size_t size = strlen(in->path), end = strlen(".npz"), stem = size > end ? size - end : 0;
    if (strcmp(in->path + stem, ".npz") == 0) {
        snprintf(path, sizeof in->config_path, "%.*s.json", (int)stem, in->path);
        if (is_file(path)) return DGM_OK;
    }
    path[0] = 0;
    DGM_FAIL_IF(!in->job->options.vocabs, err, DGM_ERR_ARGUMENT,
                "'%s' has no settings beside it: --config FILE names them, or --vocabs "
                "SOURCE.json,TARGET.json its dictionaries",
                in->path);
    return DGM_OK;
}

// The only file *.bpe of a folder; out "": there is none, or several.
static dgm_status find_codes(const char *folder, char *out, size_t size, dgm_error *err)
{
    char name[NAME_MAX + 1] = "";
    int found = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *d; dir && (d = readdir(dir)) != NULL;) {
        const char *end = strrchr(d->d_name, '.');
        if (!end || strcmp(end, ".bpe") != 0) continue;
        found++;
        snprintf(name, sizeof name, "%s", d->d_name);
    }
    if (dir) closedir(dir);
    out[0] = 0;
    return found == 1 ? join_path(out, size, folder, "/", name, err) : DGM_OK;
}

// What the folder of the weights says about text, and the codes that go with it.
static dgm_status open_release(reading *in, dgm_error *err)
{
    const char *slash = strrchr(in->path, '/'), *bpe = in->job->options.bpe;
    char folder[PATH_MAX], codes[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - in->path) + 1 : 1, slash ? in->path : ".");
    DGM_TRY(dgm_release_read(&in->release, folder, err));
    if (!bpe && in->release.bpe) {
        DGM_TRY(find_codes(folder, codes, sizeof codes, err));
        if (codes[0]) bpe = codes;
    }
    if (bpe) return dgm_bpe_codes_read(&in->codes, bpe, err);
    if (in->release.bpe) in->release.tokenized = false; // subwords come from outside, and so do tokens
    return DGM_OK;
}

static dgm_status open_files(reading *in, dgm_error *err)
{
    dgm_store *tensors;
    const char *dir = in->job->dir;
    DGM_TRY(is_folder(dir) ? join_path(in->path, sizeof in->path, dir, "/model.npz", "", err)
                           : join_path(in->path, sizeof in->path, dir, "", "", err));
    DGM_TRY(dgm_npz_open(&tensors, in->path, err));
    in->job->dir = in->path; // what messages name
    DGM_TRY(dgm_checkpoint_open(&in->weights, in->job, tensors, err));
    in->parts.weights = &in->weights;
    DGM_FAIL_IF(dgm_checkpoint_has(&in->weights, "special:model.yml"), err, DGM_ERR_UNSUPPORTED,
                "'%s' is a model of Marian, which 'import marian' reads", in->path);
    DGM_TRY(open_release(in, err));
    DGM_TRY(find_config(in, err));
    if (!in->config_path[0]) {
        in->config = json_object();
        return in->config ? DGM_OK : dgm_no_memory(err);
    }
    DGM_TRY(dgm_json_read(&in->config, in->config_path, err));
    DGM_FAIL_IF(!json_is_object(in->config), err, DGM_ERR_FORMAT, "'%s' has no settings",
                in->config_path);
    return DGM_OK;
}

static void close_files(reading *in)
{
    json_decref(in->config);
    json_decref(in->words[0]);
    json_decref(in->words[1]);
    dgm_bpe_codes_free(&in->codes);
    dgm_composer_close(&in->parts);
    dgm_checkpoint_close(&in->weights);
}

// ---- settings ----------------------------------------------------------------------------------

static bool is_said(const reading *in, const char *key)
{
    const json_t *value = json_object_get(in->config, key);
    return value && !json_is_null(value);
}

// A setting that may have an old name. Absent or null: *out keeps its value.
static dgm_status get_number(const reading *in, const char *key, const char *old, int *out,
                             dgm_error *err)
{
    int64_t v = *out;
    if (!is_said(in, key)) key = old;
    if (is_said(in, key)) DGM_TRY(dgm_json_int(in->config, key, 0, INT32_MAX, &v, err));
    *out = (int)v;
    return DGM_OK;
}

static dgm_status get_bool(const reading *in, const char *key, const char *old, bool *out,
                           dgm_error *err)
{
    if (!is_said(in, key)) key = old;
    return is_said(in, key) ? dgm_json_bool(in->config, key, out, err) : DGM_OK;
}

static dgm_status get_name(const reading *in, const char *key, const char **out, dgm_error *err)
{
    return is_said(in, key) ? dgm_json_string(in->config, key, out, err) : DGM_OK;
}

// What this program has not.
static dgm_status refuse_others(const reading *in, dgm_error *err)
{
    int factors = 1, mixture = 1;
    bool lexical = false;
    const char *type = "rnn", *norm = "layernorm";
    DGM_TRY(get_number(in, "factors", "factors", &factors, err));
    DGM_FAIL_IF(factors > 1 || dgm_checkpoint_has(&in->weights, "Wemb1"), err, DGM_ERR_UNSUPPORTED,
                "models with factors cannot be imported");
    DGM_TRY(get_name(in, "model_type", &type, err));
    DGM_FAIL_IF(strcmp(type, "rnn") != 0, err, DGM_ERR_UNSUPPORTED,
                "model_type is '%.40s'; only rnn can be imported", type);
    DGM_TRY(get_name(in, "layer_normalisation_type", &norm, err));
    DGM_FAIL_IF(strcmp(norm, "layernorm") != 0, err, DGM_ERR_UNSUPPORTED,
                "layer_normalisation_type is '%.40s'; only layernorm can be imported", norm);
    DGM_TRY(get_number(in, "softmax_mixture_size", "softmax_mixture_size", &mixture, err));
    DGM_FAIL_IF(mixture > 1, err, DGM_ERR_UNSUPPORTED,
                "softmax_mixture_size is %d; mixtures of softmaxes cannot be imported", mixture);
    DGM_TRY(get_bool(in, "rnn_lexical_model", "lexical_model", &lexical, err));
    DGM_FAIL_IF(lexical, err, DGM_ERR_UNSUPPORTED,
                "models with a lexical model cannot be imported");
    return DGM_OK;
}

static dgm_status get_readout(reading *in, dgm_error *err)
{
    in->model.readout = "tanh";
    const char *name = "tanh";
    DGM_TRY(get_name(in, "output_hidden_activation", &name, err));
    DGM_FAIL_IF(strcmp(name, "tanh") != 0 && strcmp(name, "linear") != 0, err, DGM_ERR_UNSUPPORTED,
                "output_hidden_activation is '%.40s'; tanh and linear can be imported", name);
    in->model.readout = strcmp(name, "tanh") == 0 ? "tanh" : "linear";
    return DGM_OK;
}

// How many tensors there are of a name with numbers from `first` on.
static int count_numbered(const reading *in, const char *pattern_begin, int first,
                          const char *pattern_end)
{
    int n = 0;
    for (char name[64]; n < 256; n++) {
        snprintf(name, sizeof name, "%s%d%s", pattern_begin, first + n, pattern_end);
        if (!dgm_checkpoint_has(&in->weights, name)) break;
    }
    return n;
}

// The depths that the tensors show; they may not contradict the settings.
static dgm_status get_depths(reading *in, dgm_error *err)
{
    dgm_recurrent *m = &in->model;
    m->encoder_layers = 1 + count_numbered(in, "encoder_", 2, "_U");
    m->encoder_cells = 1 + count_numbered(in, "encoder_U_drt_", 1, "");
    m->decoder_layers = 1 + count_numbered(in, "decoder_", 2, "_U");
    m->base_cells = 2 + count_numbered(in, "decoder_U_nl_drt_", 1, "");
    m->high_cells = 1 + count_numbered(in, "decoder_2_U_drt_", 1, "");
    const struct {
        const char *key, *old;
        int found;
    } depths[] = {
        {"rnn_enc_depth", "enc_depth", m->encoder_layers},
        {"enc_depth_bidirectional", "enc_depth_bidirectional", m->encoder_layers},
        {"rnn_enc_transition_depth", "enc_recurrence_transition_depth", m->encoder_cells},
        {"rnn_dec_depth", "dec_depth", m->decoder_layers},
        {"rnn_dec_base_transition_depth", "dec_base_recurrence_transition_depth", m->base_cells},
        {"rnn_dec_high_transition_depth", "dec_high_recurrence_transition_depth",
         m->decoder_layers > 1 ? m->high_cells : -1},
    };
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        int said = depths[i].found;
        if (said < 0) continue;
        DGM_TRY(get_number(in, depths[i].key, depths[i].old, &said, err));
        DGM_FAIL_IF(said != depths[i].found, err, DGM_ERR_FORMAT,
                    "%s is %d, but the weights are those of %d", depths[i].key, said,
                    depths[i].found);
    }
    return DGM_OK;
}

static dgm_status get_model(reading *in, dgm_error *err)
{
    dgm_recurrent *m = &in->model;
    const dgm_checkpoint *w = &in->weights;
    bool norm = false, context = false;
    int embed = 0, hidden = 0;
    DGM_TRY(refuse_others(in, err));
    DGM_TRY(get_readout(in, err));
    DGM_TRY(dgm_recurrent_sizes(&in->parts, m, err));
    DGM_TRY(get_depths(in, err));
    m->encoder = DGM_ENCODER_CROSSED;
    m->encoder_cell = m->decoder_cell = DGM_CELL_GRU_NEMATUS;
    m->norm = m->nematus_norm = norm = dgm_checkpoint_has(w, "decoder_U_lns");
    m->skip = true;
    m->tensorflow = is_said(in, "embedding_size");
    m->tied_source = !dgm_checkpoint_has(w, "Wemb_dec");
    m->tied_output = !dgm_checkpoint_has(w, "ff_logit_W");
    m->output_bias = true;
    const int deep = dgm_store_find(w->tensors, "decoder_2_W");
    if (deep >= 0) m->deep_context = dgm_store_get(w->tensors, (size_t)deep)->rows > m->hidden;
    context = m->deep_context;
    DGM_TRY(get_bool(in, "rnn_dec_deep_context", "dec_deep_context", &context, err));
    DGM_FAIL_IF(deep >= 0 && context != m->deep_context, err, DGM_ERR_FORMAT,
                "rnn_dec_deep_context is %s, but tensor 'decoder_2_W' is not",
                context ? "true" : "false");
    DGM_TRY(get_bool(in, "rnn_layer_normalisation",
                     is_said(in, "use_layer_norm") ? "use_layer_norm" : "layer_normalisation",
                     &norm, err));
    DGM_FAIL_IF(norm != m->norm, err, DGM_ERR_FORMAT,
                "rnn_layer_normalisation is %s, but the weights are those of a model with%s",
                norm ? "true" : "false", norm ? "out it" : " it");
    embed = m->embed;
    hidden = m->hidden;
    DGM_TRY(get_number(in, "embedding_size", "dim_word", &embed, err));
    DGM_TRY(get_number(in, "state_size", "dim", &hidden, err));
    DGM_FAIL_IF(embed != m->embed || hidden != m->hidden, err, DGM_ERR_FORMAT,
                "embeddings of %d and states of %d, but the weights have %d and %d", embed, hidden,
                m->embed, m->hidden);
    return DGM_OK;
}

// ---- dictionaries ------------------------------------------------------------------------------

// Where a dictionary lies: beside the settings.
static dgm_status find_dictionary(const reading *in, const char *said, char *out, size_t size,
                                  dgm_error *err)
{
    const char *slash = strrchr(in->config_path, '/');
    char root[PATH_MAX], *found = NULL;
    snprintf(root, sizeof root, "%.*s", slash ? (int)(slash - in->config_path) + 1 : 1,
             slash ? in->config_path : ".");
    DGM_TRY(dgm_named_file(root, said, true, &found, err));
    DGM_FAIL_IF(!found, err, DGM_ERR_IO,
                "'%s': dictionary '%.200s' is not in its folder, and settings can name no other; --vocabs "
                "SOURCE.json,TARGET.json does",
                in->config_path, said);
    const dgm_status st = join_path(out, size, found, "", "", err);
    dgm_free(found);
    return st;
}

// The list of both, or one key for each side.
static const char *dictionary_name(const reading *in, int side)
{
    const json_t *both = json_object_get(in->config, "dictionaries");
    if (json_array_size(both) == 2) return json_string_value(json_array_get(both, (size_t)side));
    if (side == 1) return json_string_value(json_object_get(in->config, "target_dict"));
    const json_t *sources = json_object_get(in->config, "source_dicts");
    return json_array_size(sources) == 1 ? json_string_value(json_array_get(sources, 0)) : NULL;
}

// words [size]: spelling of each id; what the dictionary lacks gets one of its own, made in `spare`.
static dgm_status list_words(json_t *words, const char **list, int size, char (*spare)[16],
                             dgm_error *err)
{
    const char *word;
    json_t *value;
    json_object_foreach(words, word, value)
    {
        DGM_FAIL_IF(!json_is_integer(value) || json_integer_value(value) < 0, err, DGM_ERR_FORMAT,
                    "word '%.60s' has no number", word);
        const json_int_t id = json_integer_value(value);
        if (id >= size) continue; // trained with fewer words than the dictionary has
        DGM_FAIL_IF(list[id], err, DGM_ERR_FORMAT, "words '%.60s' and '%.60s' have one number",
                    list[id], word);
        list[id] = word;
    }
    for (int i = 0; i < size; i++) {
        if (list[i]) continue;
        snprintf(spare[i], sizeof spare[i], "<%d>", i);
        list[i] = spare[i];
    }
    return DGM_OK;
}

// Words between spaces, or subwords that text is split into here.
static void set_list(const reading *in, dgm_side side, const char *const *list, int size, int unk)
{
    dgm_gguf_writer *w = in->job->w;
    if (in->codes.merges.count) {
        const dgm_bpe_keys keys = {.tokens = list,
                                   .size = size,
                                   .unk = unk,
                                   .pad = -1,
                                   .bos = -1,
                                   .style = DGM_SPEC_BPE_SUBWORD_NMT,
                                   .flags = in->codes.end_apart ? DGM_SPEC_BPE_END_APART : 0,
                                   .merges = in->codes.merges.items,
                                   .merge_count = in->codes.merges.count};
        dgm_bpe_keys_set(w, side, &keys);
    } else {
        dgm_gguf_set_string(w, dgm_side_key(side, "vocab.kind").text, "words");
        dgm_gguf_set_u32(w, dgm_side_key(side, "vocab.size").text, (uint32_t)size);
        dgm_gguf_set_strings(w, dgm_side_key(side, "vocab.words").text, list, (size_t)size);
        dgm_gguf_set_i32(w, dgm_side_key(side, "eos").text, 0);
        dgm_gguf_set_i32(w, dgm_side_key(side, "unk").text, unk);
    }
    dgm_release_set(&in->release, w, side, in->language[side][0] ? in->language[side] : NULL);
}

static dgm_status set_words(reading *in, int side, int size, dgm_error *err)
{
    const char **list = dgm_calloc((size_t)size, sizeof *list);
    char(*spare)[16] = dgm_calloc((size_t)size, sizeof *spare);
    dgm_status st = list && spare ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) st = list_words(in->words[side], list, size, spare, err);
    if (st == DGM_OK) {
        const json_t *unknown = json_object_get(in->words[side], "<UNK>");
        const bool new_ids = json_is_integer(unknown) && json_integer_value(unknown) == 2;
        set_list(in, (dgm_side)side, list, size, new_ids ? 2 : 1);
    }
    dgm_free(list);
    dgm_free(spare);
    return st;
}

// The path of a side's dictionary: of --vocabs, or what the settings say.
static dgm_status dictionary_path(const reading *in, int side, char *out, size_t size,
                                  dgm_error *err)
{
    const char *both = in->job->options.vocabs, *name = dictionary_name(in, side);
    if (both) {
        const char *comma = strchr(both, ',');
        const char *begin = side && comma ? comma + 1 : both;
        const size_t n = comma && !side ? (size_t)(comma - both) : strlen(begin);
        DGM_FAIL_IF(n == 0 || n >= size, err, DGM_ERR_ARGUMENT,
                    "--vocabs '%.100s' is none of SOURCE,TARGET and BOTH", both);
        memcpy(out, begin, n);
        out[n] = 0;
        return DGM_OK;
    }
    DGM_FAIL_IF(!name, err, DGM_ERR_FORMAT,
                "'%s': dictionaries must be a list of two files, the source's and the target's",
                in->config_path);
    return find_dictionary(in, name, out, size, err);
}

// The language of a side: of the options, of the script, or of the name of its dictionary, "vocab.en.json".
static void find_language(reading *in, int side, const char *path)
{
    const dgm_import_options *o = &in->job->options;
    const char *asked = side ? o->target_language : o->source_language, *code = in->release.language[side];
    const size_t end = strlen(path), json = strlen(".en.json");
    char named[3] = "";
    if (end > json && path[end - json] == '.' && strcmp(path + end - 5, ".json") == 0)
        snprintf(named, sizeof named, "%s", path + end - json + 1);
    const bool letters = named[0] >= 'a' && named[0] <= 'z' && named[1] >= 'a' && named[1] <= 'z';
    snprintf(in->language[side], sizeof in->language[side], "%s",
             dgm_import_language(asked ? asked : code[0] ? code : letters ? named : ""));
}

static dgm_status set_dictionary(reading *in, int side, dgm_error *err)
{
    char path[PATH_MAX];
    DGM_TRY(dictionary_path(in, side, path, sizeof path, err));
    find_language(in, side, path);
    DGM_TRY(dgm_json_read(&in->words[side], path, err));
    dgm_status st = DGM_OK;
    if (!json_is_object(in->words[side]))
        st = dgm_fail(err, DGM_ERR_FORMAT, "not a list of words and their numbers");
    if (st == DGM_OK)
        st = set_words(in, side, side ? in->model.target_vocab : in->model.source_vocab, err);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "'%s'", path);
    return st;
}

// ---- the whole ---------------------------------------------------------------------------------

// What belongs to training, and the settings of its decoder.
static void set_decoding(reading *in)
{
    dgm_gguf_writer *w = in->job->w;
    for (size_t i = 0; i < dgm_store_count(in->weights.tensors); i++) {
        const char *name = dgm_store_get(in->weights.tensors, i)->name;
        if (strncmp(name, "adam", 4) == 0 || strcmp(name, "uidx") == 0 ||
            strcmp(name, "history_errs") == 0 || strcmp(name, "zipped_params") == 0)
            dgm_checkpoint_take(&in->weights, name);
    }
    dgm_gguf_set_u32(w, "dragoman.decode.beam", 5);
    dgm_gguf_set_f32(w, "dragoman.decode.length_penalty", 0.0f);
    dgm_gguf_set_bool(w, "dragoman.decode.allow_unk", true);
}

static dgm_status add_model(reading *in, dgm_error *err)
{
    dgm_status st = get_model(in, err);
    if (st == DGM_OK) st = dgm_recurrent_add(&in->parts, &in->model, err);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "'%s'", in->path);
    return st;
}

static void say_how_text_is_read(const reading *in)
{
    if (in->release.truecased)
        dgm_import_note(in->job, "the model was trained on truecased text, which is not made here: first words of "
                                 "sentences keep their capitals");
    if (in->release.tokenized)
        dgm_import_note(in->job, "text is tokenised by Moses' rules, as preprocess.sh beside the model has it");
    else if (in->codes.merges.count)
        dgm_import_note(in->job, "words are split by the codes of byte-pair encoding; give text the tokens that the "
                                 "model was trained with");
    else
        dgm_import_note(in->job, "text is split at spaces: give it the tokens and subwords that the model was "
                                 "trained with, or --bpe its codes");
}

dgm_status dgm_import_nematus(dgm_import_job *job, dgm_error *err)
{
    reading *in = dgm_calloc(1, sizeof *in);
    dgm_status st;
    if (!in) return dgm_no_memory(err);
    in->job = job;
    const char *dir = job->dir;
    dgm_import_general(job, "rnn", NULL, NULL);
    DGM_TRY_GOTO(st, open_files(in, err), done);
    set_decoding(in);
    DGM_TRY_GOTO(st, add_model(in, err), done);
    for (int side = 0; side < 2; side++) DGM_TRY_GOTO(st, set_dictionary(in, side, err), done);
    DGM_TRY_GOTO(st, dgm_checkpoint_end(&in->weights, "a model of Nematus", err), done);
    say_how_text_is_read(in);
    st = dgm_import_write(job, err);
done:
    job->dir = dir;
    close_files(in);
    dgm_free(in);
    return st;
}
