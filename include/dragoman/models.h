// SPDX-License-Identifier: MIT
// Dragoman tools: finding model files, looking into them, importing those of other programs.
// Conventions as in tools.h.
#ifndef DRAGOMAN_MODELS_H
#define DRAGOMAN_MODELS_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- models -----------------------------------------------------------------------------------

// Model files are looked for, in this order, in
//     $DRAGOMAN_MODEL            a file, or a folder
//     $XDG_DATA_HOME/dragoman    (else ~/.local/share/dragoman)
//     the share folder of the installation, share/dragoman/models
//     models/                    of the checkout that the program lies in
// In a folder, default.gguf comes before all others, which follow by name; a file that is found in two ways
// is listed once. The default model is the first that can be used of $DRAGOMAN_MODEL, else the first default.gguf,
// else the first of all: a model that is kept in ~/.local/share/dragoman is found by its name and its
// languages, and becomes the default as default.gguf. A file that $DRAGOMAN_MODEL names is the default even
// if it cannot be used: no other one takes its place silently.
typedef struct dgm_model_entry {
    size_t size;
    const char *path, *name;
    const char *source, *target; // languages, "" if the file does not say; several: "en,de"
    uint64_t bytes, parameters;
    const char *problem; // NULL, or why it cannot be used
    int is_default;
} dgm_model_entry;

typedef struct dgm_model_list {
    size_t size;
    const dgm_model_entry *const *items;
    size_t count;
} dgm_model_list;

DGM_API dgm_status dgm_models_find(dgm_model_list **list, dgm_error *error);
DGM_API void dgm_models_free(dgm_model_list **list);
// Path of the model for this pair; NULL: any language. Both NULL: the default model. Of several it is one of
// $DRAGOMAN_MODEL, else the one with the fewest languages, else the first.
DGM_API dgm_status dgm_models_choose(const char *source, const char *target, char **path,
                                     dgm_error *error);

// The languages that models translate from, to `target` where it is not NULL: "de,en,fr". dgm_string_free releases it.
DGM_API dgm_status dgm_models_languages(const char *target, char **languages, dgm_error *error);

// Path of the model that a name means: a path that exists, or that has a folder or ".gguf" in it, is taken
// as it is; else the first model of dgm_models_find whose file ("en-de" for en-de.gguf) or own name it is,
// the default model ("default"), or the model for a direction ("en-de", "eng-deu", "English-German"). DGM_ERR_IO
// with what there is where none is. dgm_open takes such names itself.
DGM_API dgm_status dgm_models_named(const char *name, char **path, dgm_error *error);

// The model file of a path that may hold a model of another program (dgm_import_recognise): such a folder or file
// is imported, with the defaults of dgm_import, into $XDG_CACHE_HOME/dragoman (else ~/.cache/dragoman), once for
// its content; any other path is given back as it is. *made (may be NULL): 1 where a file was made now, else 0.
DGM_API dgm_status dgm_models_cached(const char *path, char **file, int *made, dgm_error *error);

typedef struct dgm_inspect_options {
    size_t size;
    int json;
    int tensors; // list them
    int card;    // print the model card in full
} dgm_inspect_options;

DGM_API void dgm_inspect_init(dgm_inspect_options *options, size_t size);
static inline void dgm_inspect_default(dgm_inspect_options *options)
{
    dgm_inspect_init(options, sizeof *options);
}

// A model file described for people, or as a JSON object; path as dgm_open takes it. options NULL: none of them.
DGM_API dgm_status dgm_inspect(const char *path, const dgm_inspect_options *options, char **text,
                               dgm_error *error);

// ---- import -----------------------------------------------------------------------------------

// Zero or NULL is the default of every field.
typedef struct dgm_import_options {
    size_t size;
    // Storage of the weight matrices: "f32", "f16", "bf16", "i16", "i8". NULL: as in the input.
    // Vectors (biases, norms) are always f32.
    const char *type;
    // BCP 47 codes. NULL: what the model says, if it says anything.
    const char *source_language, *target_language;
    // Token put before every source sentence, e.g. ">>deu<<" of a multilingual model.
    const char *source_prefix;
    // Model card. name NULL: the folder's name. The others: absent.
    const char *name, *description, *license, *author, *url;
    const char *card;      // Markdown
    const char *card_file; // or a file that holds it
    // Tokenisers of a model that comes without any (CTranslate2): SentencePiece models (target_spm NULL: the
    // source's), or codes of byte-pair encoding (subword-nmt). NULL: what lies beside the model.
    const char *source_spm, *target_spm, *bpe;
    // Settings and vocabularies of a model that has none beside it. vocabs: "SOURCE,TARGET", or one for both.
    const char *config, *vocabs;
    dgm_progress progress;
    // Hears remarks for people, e.g. what "auto" found or that text has to be tokenised first. NULL: nobody.
    void (*note)(void *cookie, const char *text);
    void *note_cookie;
} dgm_import_options;

DGM_API void dgm_import_init(dgm_import_options *options, size_t size);
static inline void dgm_import_default(dgm_import_options *options)
{
    dgm_import_init(options, sizeof *options);
}

// Reads a model of another program, a folder or file, and writes it as a Dragoman model file. format: a name
// from dgm_import_format_at; NULL or "auto": whatever lies there. options NULL: defaults. An existing output
// is replaced at the end, in one step, and left alone on failure.
DGM_API dgm_status dgm_import(const char *format, const char *path, const char *output,
                              const dgm_import_options *options, dgm_error *err);

// The format of what lies at a path, by its files: a name from dgm_import_format_at, or NULL where nothing is
// recognised. *what (may be NULL): in words, "a model of CTranslate2". Static memory.
DGM_API const char *dgm_import_recognise(const char *path, const char **what);

typedef struct dgm_import_format {
    size_t size;
    const char *name;    // "huggingface"
    const char *summary; // for a help text
} dgm_import_format;

// The formats that dgm_import knows, one after the other; NULL behind the last. Static memory.
DGM_API const dgm_import_format *dgm_import_format_at(size_t i);

// ---- check ------------------------------------------------------------------------------------

typedef struct dgm_check_options {
    size_t size;
    int32_t beam;          // 0: the model's
    int32_t threads;       // 0: one for each core
    const char *precision; // "f32" by default, so that nothing but the two programs differs
    const char *source_language, *target_language; // of a model of many; NULL: its own
    size_t differences;    // how many of them are reported, 5 by default
    // Hears every translation, in order; NULL: nobody.
    void (*write)(void *cookie, const char *translation);
    void *write_cookie;
    dgm_progress progress;
} dgm_check_options;

DGM_API void dgm_check_init(dgm_check_options *options, size_t size);
static inline void dgm_check_default(dgm_check_options *options)
{
    dgm_check_init(options, sizeof *options);
}

typedef struct dgm_check_difference {
    size_t size;
    uint64_t line; // from 1
    const char *source, *ours, *theirs;
} dgm_check_difference;

typedef struct dgm_check_report {
    size_t size;
    uint64_t lines, same, failed; // same: as the other program wrote them, 0 without its text
    const dgm_check_difference *const *items; // the first differences
    size_t count;
} dgm_check_report;

// Translates a text with a model, each line as it is, and compares with what the model's own program made of it
// (against, line by line; NULL: nothing). Texts may be gzip.
DGM_API dgm_status dgm_import_check(const char *model, const char *text, const char *against,
                                    const dgm_check_options *options, dgm_check_report **report, dgm_error *error);
DGM_API void dgm_check_report_free(dgm_check_report **report); // sets NULL; accepts NULL inside

// ---- export -----------------------------------------------------------------------------------

// Zero is the default of every field.
typedef struct dgm_export_options {
    size_t size;
    dgm_progress progress;
    void (*note)(void *cookie, const char *text); // hears what the folder cannot hold; NULL: nobody
    void *note_cookie;
} dgm_export_options;

DGM_API void dgm_export_init(dgm_export_options *options, size_t size);
static inline void dgm_export_default(dgm_export_options *options)
{
    dgm_export_init(options, sizeof *options);
}

// Writes a model file as a folder of another program, which must not be there or be empty, and appears whole at the
// end. format: a name from dgm_export_format_at. A model that the other program cannot hold is DGM_ERR_UNSUPPORTED with
// what it lacks. Weights keep their bits where it has their type: importing the folder again gives the same tensors.
DGM_API dgm_status dgm_export(const char *format, const char *model, const char *folder,
                              const dgm_export_options *options, dgm_error *err);

// The formats that dgm_export knows; NULL behind the last. Static memory.
DGM_API const dgm_import_format *dgm_export_format_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
