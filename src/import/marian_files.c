// SPDX-License-Identifier: MIT
// Where the files of a model of Marian are; see marian_model.h.
//
//     decoder.yml, config.yml, NAME.decoder.yml   settings of the decoder, which name all others
//     *.npz, *.bin                                the model, if no settings say
//     vocab*.spm, srcvocab*, trgvocab*, ...       vocabularies, if no settings say
//     source.spm, target.spm                      beside a list of pieces (OPUS-MT),
//     source.bpe, target.bpe, preprocess.sh       or beside a list of subwords
//     lex*.bin, lex*.s2t                          shortlist
//
// Names in settings are relative to their folder with "relative-paths". Without, they belonged to the
// training's machine: what is not there is looked up by its last part in the same folder. Files elsewhere are never
// read (named_file.h).
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "import/marian_model.h"
#include "import/named_file.h"
#include "import/unpack.h"
#include "import/yaml.h"
#include "base/zip.h"

static bool begins(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

static bool ends(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_kind(const char *path, mode_t kind)
{
    struct stat s;
    return stat(path, &s) == 0 && (s.st_mode & S_IFMT) == kind;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void dgm_marian_files_close(dgm_marian_files *f)
{
    dgm_unpack_remove(&f->unpacked);
    dgm_free(f->root);
    dgm_free(f->model);
    for (int side = 0; side < 2; side++) {
        dgm_free(f->vocab[side]);
        dgm_free(f->spm[side]);
        dgm_free(f->bpe[side]);
    }
    dgm_free(f->shortlist);
    dgm_free(f->settings_path);
    json_decref(f->settings);
    *f = (dgm_marian_files){0};
}

// ---- looking around in the folder ----------------------------------------------------------------

typedef bool (*name_test)(const char *name);

// The only file of the folder whose name passes; *out stays NULL where there is none.
static dgm_status find_only(const dgm_marian_files *f, name_test passes, const char *what,
                            char **out, dgm_error *err)
{
    char found[NAME_MAX + 1] = "";
    DIR *dir = opendir(f->root);
    dgm_status st = DGM_OK;
    if (!dir) return DGM_OK;
    for (struct dirent *d; st == DGM_OK && (d = readdir(dir)) != NULL;) {
        if (!passes(d->d_name)) continue;
        if (found[0])
            st = dgm_fail(err, DGM_ERR_FORMAT, "'%s' has more than one %s: '%s' and '%s'", f->root,
                          what, found, d->d_name);
        snprintf(found, sizeof found, "%s", d->d_name);
    }
    closedir(dir);
    if (st != DGM_OK || !found[0]) return st;
    *out = dgm_path_in(f->root, found);
    return *out ? DGM_OK : dgm_no_memory(err);
}

static bool is_model(const char *n)
{
    return (ends(n, ".npz") && !ends(n, ".optimizer.npz")) ||
           (ends(n, ".bin") && !begins(n, "lex"));
}

static bool is_shortlist(const char *n)
{
    return begins(n, "lex") && ends(n, ".bin");
}

static bool is_text_shortlist(const char *n)
{
    return begins(n, "lex") && (ends(n, ".s2t") || ends(n, ".s2t.gz"));
}

static bool is_vocabulary(const char *n)
{
    return strstr(n, "vocab") && (ends(n, ".spm") || ends(n, ".yml") || ends(n, ".yaml") ||
                                  ends(n, ".json") || ends(n, ".txt") || ends(n, ".fsv"));
}

static bool is_source_vocabulary(const char *n)
{
    return is_vocabulary(n) && (begins(n, "src") || strstr(n, ".src."));
}

static bool is_target_vocabulary(const char *n)
{
    return is_vocabulary(n) && (begins(n, "trg") || begins(n, "tgt") || strstr(n, ".trg."));
}

static bool is_shared_vocabulary(const char *n)
{
    return is_vocabulary(n) && !is_source_vocabulary(n) && !is_target_vocabulary(n);
}

static bool is_decoder_yml(const char *n)
{
    return ends(n, ".decoder.yml");
}

// A file that must be there, or NULL.
static dgm_status find_named(const dgm_marian_files *f, const char *name, char **out,
                             dgm_error *err)
{
    char *path = dgm_path_in(f->root, name);
    if (!path) return dgm_no_memory(err);
    if (dgm_file_exists(path))
        *out = path;
    else
        dgm_free(path);
    return DGM_OK;
}

// ---- settings ------------------------------------------------------------------------------------

static dgm_status find_settings(dgm_marian_files *f, const dgm_import_job *job, dgm_error *err)
{
    static const char *const names[] = {"decoder.yml", "config.yml", "config.yaml",
                                        "config.intgemm8bitalpha.yml", "config.bergamot.yml"};
    if (job->options.config) {
        f->settings_path = dgm_strdup(job->options.config);
        return f->settings_path ? DGM_OK : dgm_no_memory(err);
    }
    if (f->model) DGM_TRY(find_named(f, last_part(f->model), &f->settings_path, err));
    if (f->settings_path) { // NAME.npz.decoder.yml
        const size_t room = strlen(f->settings_path) + 16;
        char *path = dgm_malloc(room);
        if (!path) return dgm_no_memory(err);
        snprintf(path, room, "%s.decoder.yml", f->settings_path);
        dgm_free(f->settings_path);
        f->settings_path = dgm_file_exists(path) ? path : NULL;
        if (!f->settings_path) dgm_free(path);
    }
    for (size_t i = 0; !f->settings_path && i < sizeof names / sizeof *names; i++)
        DGM_TRY(find_named(f, names[i], &f->settings_path, err));
    if (f->settings_path || f->model) return DGM_OK;
    return find_only(f, is_decoder_yml, "file of decoder settings", &f->settings_path, err);
}

static dgm_status read_settings(dgm_marian_files *f, dgm_error *err)
{
    dgm_json_init();
    if (f->settings_path) DGM_TRY(dgm_yaml_read(&f->settings, f->settings_path, err));
    if (!f->settings || json_is_null(f->settings)) f->settings = json_object(); // an empty file
    if (!f->settings) return dgm_no_memory(err);
    DGM_FAIL_IF(!json_is_object(f->settings), err, DGM_ERR_FORMAT, "'%s' holds no settings",
                f->settings_path);
    return DGM_OK;
}

// A name that the settings give, as a path.
static dgm_status resolve(const dgm_marian_files *f, const json_t *name, const char *key,
                          char **out, dgm_error *err)
{
    const char *text = json_string_value(name);
    bool relative = false;
    DGM_FAIL_IF(!text || !text[0], err, DGM_ERR_FORMAT, "'%s': \"%s\" holds no name of a file",
                f->settings_path, key);
    const dgm_status st = dgm_json_bool(f->settings, "relative-paths", &relative, err);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", f->settings_path);
    if (st != DGM_OK) return st;
    DGM_TRY(dgm_named_file(f->root, text, relative, out, err));
    DGM_FAIL_IF(!*out, err, DGM_ERR_IO,
                "'%s': \"%s\" names '%.200s', which is not in the model's folder; settings can name no other",
                f->settings_path, key, text);
    return DGM_OK;
}

// ---- the files -----------------------------------------------------------------------------------

static dgm_status find_model(dgm_marian_files *f, dgm_error *err)
{
    const json_t *list = json_object_get(f->settings, "models");
    if (!f->model && json_array_size(list) > 0) {
        DGM_FAIL_IF(
            json_array_size(list) > 1, err, DGM_ERR_UNSUPPORTED,
            "'%s' names %zu models that translate together: import each by its own path and "
            "translate with several -m",
            f->settings_path, json_array_size(list));
        return resolve(f, json_array_get(list, 0), "models", &f->model, err);
    }
    if (!f->model) DGM_TRY(find_only(f, is_model, "model; name one of them", &f->model, err));
    DGM_FAIL_IF(!f->model, err, DGM_ERR_IO, "'%s' has no .npz or .bin file", f->root);
    return DGM_OK;
}

// FILE or FILE,FILE
static dgm_status vocabularies_asked(dgm_marian_files *f, const char *text, dgm_error *err)
{
    const char *comma = strchr(text, ',');
    f->vocab[0] = dgm_strndup(text, comma ? (size_t)(comma - text) : strlen(text));
    f->vocab[1] = dgm_strdup(comma ? comma + 1 : text);
    return f->vocab[0] && f->vocab[1] ? DGM_OK : dgm_no_memory(err);
}

static dgm_status find_vocabularies(dgm_marian_files *f, const dgm_import_job *job, dgm_error *err)
{
    const json_t *list = json_object_get(f->settings, "vocabs");
    const size_t n = json_array_size(list);
    if (job->options.vocabs) return vocabularies_asked(f, job->options.vocabs, err);
    DGM_FAIL_IF(n > 2, err, DGM_ERR_UNSUPPORTED,
                "'%s' names %zu vocabularies: models with several sources are not supported",
                f->settings_path, n);
    for (size_t side = 0; n > 0 && side < 2; side++)
        DGM_TRY(
            resolve(f, json_array_get(list, n == 2 ? side : 0), "vocabs", &f->vocab[side], err));
    if (n > 0) return DGM_OK;
    DGM_TRY(find_only(f, is_source_vocabulary, "vocabulary of the source", &f->vocab[0], err));
    DGM_TRY(find_only(f, is_target_vocabulary, "vocabulary of the target", &f->vocab[1], err));
    if (f->vocab[0] && f->vocab[1]) return DGM_OK;
    for (int side = 0; side < 2; side++)
        if (!f->vocab[side])
            DGM_TRY(find_only(f, is_shared_vocabulary, "vocabulary; --vocabs names them",
                              &f->vocab[side], err));
    DGM_FAIL_IF(!f->vocab[0] || !f->vocab[1], err, DGM_ERR_IO,
                "'%s' has no vocabulary; --vocabs FILE,FILE names those of source and target",
                f->root);
    return DGM_OK;
}

static dgm_status find_spm(dgm_marian_files *f, dgm_error *err)
{
    if (ends(f->vocab[0], ".spm") && ends(f->vocab[1], ".spm")) return DGM_OK;
    DGM_TRY(find_named(f, "source.spm", &f->spm[0], err));
    return find_named(f, "target.spm", &f->spm[1], err);
}

// One file of codes for both sides, or what lies there.
static dgm_status find_bpe(dgm_marian_files *f, const dgm_import_job *job, dgm_error *err)
{
    static const char *const names[] = {"source.bpe", "target.bpe"};
    if (f->spm[0] || ends(f->vocab[0], ".spm") || ends(f->vocab[1], ".spm")) return DGM_OK;
    for (int side = 0; side < 2; side++) {
        if (!job->options.bpe)
            DGM_TRY(find_named(f, names[side], &f->bpe[side], err));
        else if (!(f->bpe[side] = dgm_strdup(job->options.bpe)))
            return dgm_no_memory(err);
    }
    DGM_FAIL_IF(!f->bpe[0] != !f->bpe[1], err, DGM_ERR_IO,
                "'%s' has one of '%s' and '%s' only; --bpe names codes of byte-pair encoding for both sides",
                f->root, names[0], names[1]);
    return DGM_OK;
}

static dgm_status find_shortlist(dgm_marian_files *f, dgm_error *err)
{
    const json_t *v = json_object_get(f->settings, "shortlist");
    const json_t *name = json_is_array(v) ? json_array_get(v, 0) : v;
    if (name && json_is_string(name)) return resolve(f, name, "shortlist", &f->shortlist, err);
    DGM_TRY(find_only(f, is_shortlist, "shortlist", &f->shortlist, err));
    if (f->shortlist) return DGM_OK;
    return find_only(f, is_text_shortlist, "shortlist", &f->shortlist, err);
}

// ---- the path ------------------------------------------------------------------------------------

static bool has_gz(const char *root)
{
    bool found = false;
    DIR *dir = opendir(root);
    for (struct dirent *d; dir && (d = readdir(dir)) != NULL;)
        found = found || ends(d->d_name, ".gz");
    if (dir) closedir(dir);
    return found;
}

static dgm_status set_root(dgm_marian_files *f, const dgm_import_job *job, dgm_error *err)
{
    const char *path = job->dir;
    const bool folder = is_kind(path, S_IFDIR);
    if (folder && has_gz(path)) DGM_TRY(dgm_unpack_gz(path, job->output, &f->unpacked, err));
    if (!folder && !ends(path, ".npz") && !ends(path, ".bin") && dgm_zip_is(path))
        DGM_TRY(dgm_unpack_zip(path, job->output, &f->unpacked, err));
    if (f->unpacked || folder) {
        f->root = dgm_strdup(f->unpacked ? f->unpacked : path);
        return f->root ? DGM_OK : dgm_no_memory(err);
    }
    DGM_FAIL_IF(!is_kind(path, S_IFREG), err, DGM_ERR_IO, "cannot open '%s': no file or folder",
                path);
    const char *last = last_part(path);
    f->root = last == path ? dgm_strdup(".")
                           : dgm_strndup(path, (size_t)(last - path - 1) + (last - path == 1));
    char **own = ends(path, ".yml") || ends(path, ".yaml") ? &f->settings_path : &f->model;
    *own = dgm_strdup(path);
    return f->root && *own ? DGM_OK : dgm_no_memory(err);
}

dgm_status dgm_marian_files_find(dgm_marian_files *f, const dgm_import_job *job, dgm_error *err)
{
    DGM_TRY(set_root(f, job, err));
    if (!f->settings_path) DGM_TRY(find_settings(f, job, err));
    DGM_TRY(read_settings(f, err));
    DGM_TRY(find_model(f, err));
    DGM_TRY(find_vocabularies(f, job, err));
    DGM_TRY(find_spm(f, err));
    DGM_TRY(find_bpe(f, job, err));
    DGM_TRY(dgm_release_read(&f->release, f->root, err));
    if (f->release.bpe && !f->bpe[0]) f->release.tokenized = false; // subwords come from outside, and so do tokens
    return find_shortlist(f, err);
}
