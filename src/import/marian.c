// SPDX-License-Identifier: MIT
// Imports models of Marian: folders, .npz and .bin files, releases of OPUS-MT, and the students of Bergamot and
// Firefox. marian_files.c finds the files, marian_vocab.c reads vocabularies, marian_shortlist.c the shortlist,
// marian_transformer.c and marian_rnn.c the model.
//
// Decoding is Marian's: a hypothesis that ends gives up its place in the beam, scores are divided by
// length^normalize, and a translation has at most three tokens for one of the source unless settings say.
#include <string.h>

#include "base/zip.h"
#include "import/marian_bin.h"
#include "import/marian_model.h"
#include "import/marian_rnn.h"
#include "import/npz.h"
#include "import/yaml.h"

typedef struct reading {
    dgm_import_job *job;
    dgm_marian_files files;
    json_t *config; // of the model
    dgm_checkpoint tensors;
    dgm_marian_weights weights;
    dgm_composer parts; // of a recurrent model
    dgm_marian_words words;
    bool student; // of Bergamot
} reading;

static bool ends(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

// ---- the model -----------------------------------------------------------------------------------

static dgm_status open_model(reading *in, dgm_error *err)
{
    dgm_store *s = NULL;
    const char *path = in->files.model;
    const bool npz = ends(path, ".npz") || dgm_zip_is(path); // whatever it is called
    DGM_TRY(npz ? dgm_npz_open(&s, path, err) : dgm_marian_bin_open(&s, path, err));
    return dgm_checkpoint_open(&in->tensors, in->job, s, err);
}

// special:model.yml, a text that ends with NULs; without it the decoder's settings, or --config.
static dgm_status read_config(reading *in, dgm_error *err)
{
    static const char name[] = "special:model.yml";
    dgm_store *s = in->tensors.tensors;
    const uint8_t *data;
    if (!dgm_checkpoint_take(&in->tensors, name)) {
        DGM_FAIL_IF(!dgm_json_has(in->files.settings, "dim-emb"), err, DGM_ERR_FORMAT,
                    "'%s' does not hold its settings (%s); --config names a file of the training's",
                    in->files.model, name);
        in->config = json_incref(in->files.settings);
        return DGM_OK;
    }
    const dgm_stored *t = dgm_store_get(s, (size_t)dgm_store_find(s, name));
    DGM_TRY(dgm_store_data(s, t, &data, err));
    const uint8_t *end = memchr(data, 0, t->bytes);
    const dgm_status st =
        dgm_yaml_parse(&in->config, data, end ? (size_t)(end - data) : t->bytes, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s': %s", in->files.model, name);
    if (st != DGM_OK) return st;
    DGM_FAIL_IF(!json_is_object(in->config), err, DGM_ERR_FORMAT, "'%s': %s holds no settings",
                in->files.model, name);
    return DGM_OK;
}

static dgm_status add_transformer(reading *in, dgm_error *err)
{
    dgm_marian_transformer t;
    const dgm_status st = dgm_marian_transformer_read(&t, in->config, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s'", in->files.model);
        return st;
    }
    in->weights.from = &in->tensors;
    return dgm_marian_transformer_add(&in->weights, &t, in->words.sizes, err);
}

static dgm_status add_recurrent(reading *in, dgm_error *err)
{
    dgm_recurrent m;
    in->parts.weights = &in->tensors;
    const dgm_status st = dgm_marian_recurrent(&in->parts, in->config, &m, err);
    if (st != DGM_OK) {
        if (st != DGM_ERR_MEMORY) dgm_error_prefix(err, "'%s'", in->files.model);
        return st;
    }
    in->words.sizes[0] = m.source_vocab;
    in->words.sizes[1] = m.target_vocab;
    return dgm_checkpoint_end(&in->tensors, "a recurrent model of Marian", err);
}

// --right-left: its training turns both sides round, and so does its decoder.
static dgm_status set_order(const reading *in, dgm_error *err)
{
    bool right_to_left = false;
    DGM_TRY(dgm_json_bool(in->config, "right-left", &right_to_left, err));
    if (!right_to_left) return DGM_OK;
    dgm_gguf_set_string(in->job->w, "dragoman.source.order", "r2l");
    dgm_gguf_set_string(in->job->w, "dragoman.target.order", "r2l");
    return DGM_OK;
}

static dgm_status add_model(reading *in, const char **architecture, dgm_error *err)
{
    const char *type = "amun"; // Marian's default
    DGM_TRY(dgm_json_string(in->config, "type", &type, err));
    DGM_TRY(set_order(in, err));
    *architecture = dgm_marian_is_recurrent(type) ? "rnn" : "transformer";
    if (dgm_marian_is_recurrent(type)) return add_recurrent(in, err);
    if (strcmp(type, "transformer") == 0) return add_transformer(in, err);
    DGM_FAIL_IF(strncmp(type, "multi-", 6) == 0 || strncmp(type, "shared-multi-", 13) == 0, err,
                DGM_ERR_UNSUPPORTED,
                "'%s' is of type '%.40s': models with several sources are not supported",
                in->files.model, type);
    return dgm_fail(err, DGM_ERR_UNSUPPORTED,
                    "'%s' is of type '%.40s'; types transformer, s2s, amun and nematus can be imported",
                    in->files.model, type);
}

// ---- decoding ------------------------------------------------------------------------------------

static dgm_status set_decoding(const reading *in, dgm_error *err)
{
    const json_t *s = in->files.settings;
    dgm_gguf_writer *w = in->job->w;
    int64_t beam = in->student ? 1 : 6, longest = 512;
    double normalize = in->student ? 1 : 0.6, penalty = 0, factor = 3;
    bool unk = false;
    if (json_is_true(json_object_get(s, "normalize"))) normalize = 1; // a flag without a number
    DGM_TRY(dgm_json_int(s, "beam-size", 1, 256, &beam, err));
    if (!json_is_boolean(json_object_get(s, "normalize")))
        DGM_TRY(dgm_json_real(s, "normalize", 0, 10, &normalize, err));
    DGM_TRY(dgm_json_real(s, "word-penalty", -100, 100, &penalty, err));
    DGM_TRY(dgm_json_real(s, "max-length-factor", 0.1, 100, &factor, err));
    DGM_TRY(dgm_json_bool(s, "allow-unk", &unk, err));
    dgm_gguf_set_u32(w, "dragoman.decode.beam", (uint32_t)beam);
    dgm_gguf_set_string(w, "dragoman.decode.finish", "marian");
    dgm_gguf_set_f32(w, "dragoman.decode.length_penalty", (float)normalize);
    dgm_gguf_set_f32(w, "dragoman.decode.word_penalty", (float)penalty);
    dgm_gguf_set_f32(w, "dragoman.decode.max_length_factor", (float)factor);
    dgm_gguf_set_u32(w, "dragoman.decode.max_length", (uint32_t)longest);
    dgm_gguf_set_u32(w, "dragoman.decode.max_source", (uint32_t)longest);
    dgm_gguf_set_bool(w, "dragoman.decode.allow_unk", unk);
    return DGM_OK;
}

// ---- languages and notes -------------------------------------------------------------------------

// "model.ende.intgemm.alphas.bin": four letters between dots are two languages.
static bool languages_of(const char *path, char codes[2][3])
{
    const char *slash = strrchr(path, '/');
    for (const char *at = strchr(slash ? slash : path, '.'); at; at = strchr(at + 1, '.')) {
        if (strspn(at + 1, "abcdefghijklmnopqrstuvwxyz") != 4 || at[5] != '.') continue;
        for (int i = 0; i < 2; i++) {
            memcpy(codes[i], at + 1 + 2 * i, 2);
            codes[i][2] = 0;
        }
        return true;
    }
    return false;
}

static void say_what_was_done(const reading *in)
{
    const dgm_marian_weights *w = &in->weights;
    if (w->kept)
        dgm_import_note(in->job, "%d matrices of 8-bit integers are kept as they are stored",
                        w->kept);
    if (w->rounded) dgm_import_note(in->job, "%d matrices of integers are converted", w->rounded);
    if (w->scales)
        dgm_import_note(in->job,
                        "%d multipliers of activations are kept as static scales (--static-scales)",
                        w->scales);
    if (in->files.shortlist)
        dgm_import_note(in->job, "the shortlist '%s' is part of the model", in->files.shortlist);
}

// ---- the import ----------------------------------------------------------------------------------

static dgm_status import_all(reading *in, dgm_error *err)
{
    const char *architecture = NULL;
    char codes[2][3];
    DGM_TRY(dgm_marian_files_find(&in->files, in->job, err));
    if (!in->files.unpacked) in->job->file = in->files.model;
    DGM_TRY(open_model(in, err));
    DGM_TRY(read_config(in, err));
    DGM_TRY(add_model(in, &architecture, err));
    const bool named = languages_of(in->files.model, codes);
    dgm_import_general(in->job, architecture, named ? codes[0] : in->files.release.language[0],
                       named ? codes[1] : in->files.release.language[1]);
    DGM_TRY(dgm_marian_vocabularies(in->job, &in->files, &in->words, err));
    const dgm_status st = set_decoding(in, err);
    if (st != DGM_OK) {
        dgm_error_prefix(err, "'%s'", in->files.settings_path);
        return st;
    }
    DGM_TRY(dgm_marian_shortlist(in->job, &in->files, &in->words, err));
    say_what_was_done(in);
    return dgm_import_write(in->job, err);
}

static dgm_status import_model(dgm_import_job *job, bool student, dgm_error *err)
{
    reading in = {.job = job, .student = student};
    const dgm_status st = import_all(&in, err);
    dgm_marian_weights_close(&in.weights);
    dgm_composer_close(&in.parts);
    dgm_checkpoint_close(&in.tensors);
    dgm_marian_words_free(&in.words);
    job->file = NULL;
    dgm_marian_files_close(&in.files);
    json_decref(in.config);
    return st;
}

dgm_status dgm_import_marian(dgm_import_job *job, dgm_error *err)
{
    return import_model(job, false, err);
}

dgm_status dgm_import_bergamot(dgm_import_job *job, dgm_error *err)
{
    return import_model(job, true, err);
}
