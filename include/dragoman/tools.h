// SPDX-License-Identifier: MIT
// Dragoman: functions behind the tool commands (import, inspect, eval, ...). Same conventions as
// dragoman.h, but without its promise of a stable ABI: a tool's struct may change with a release.
#ifndef DRAGOMAN_TOOLS_H
#define DRAGOMAN_TOOLS_H

#include <stddef.h>
#include <stdint.h>

#include "dragoman/dragoman.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- common -----------------------------------------------------------------------------------

// Texts that functions below return belong to the caller.
DGM_API void dgm_string_free(char **text);

// A line of a file: bytes without its line break, not terminated by NUL.
typedef struct dgm_line {
    const char *data;
    size_t size;
} dgm_line;

// "cpu avx2: gemm_f32_avx2 ...", what dgm_open would use. cpu as in dgm_settings.
DGM_API dgm_status dgm_device(const char *cpu, char *buffer, size_t size, dgm_error *error);

// ---- models -----------------------------------------------------------------------------------

// Model files are looked for, in this order, in
//     $DRAGOMAN_MODEL            a file, or a folder
//     $XDG_DATA_HOME/dragoman    (else ~/.local/share/dragoman)
//     the share folder of the installation, share/dragoman/models
//     models/                    of the checkout that the program lies in
// The default model is the first one found; in a folder, default.gguf comes before all others,
// which follow by name.
typedef struct dgm_model_entry {
    const char *path, *name;
    const char *source, *target; // languages, "" if the file does not say; several: "en,de"
    uint64_t bytes, parameters;
    const char *problem; // NULL, or why it cannot be used
    int is_default;
} dgm_model_entry;

typedef struct dgm_model_list {
    const dgm_model_entry *items;
    size_t count;
} dgm_model_list;

DGM_API dgm_status dgm_models_find(dgm_model_list **list, dgm_error *error);
DGM_API void dgm_models_free(dgm_model_list **list);
// Path of the first model for this pair; NULL: any language. Both NULL: the default model.
DGM_API dgm_status dgm_models_choose(const char *source, const char *target, char **path,
                                     dgm_error *error);

typedef struct dgm_inspect_options {
    int json;
    int tensors; // list them
    int card;    // print the model card in full
    void *reserved[4];
} dgm_inspect_options;

// A model file described for people, or as a JSON object. options NULL: none of them.
DGM_API dgm_status dgm_inspect(const char *path, const dgm_inspect_options *options, char **text,
                               dgm_error *error);

// ---- scoring ----------------------------------------------------------------------------------

typedef struct dgm_pair {
    dgm_line source, target;
} dgm_pair;

typedef struct dgm_pair_score {
    dgm_status status;   // DGM_ERR_TEXT: longer than the model can take, ...
    const char *message; // "" when the status is DGM_OK
    float sum;           // log-probability of the target with its end symbol
    float score;         // normalised by length, as in dgm_translation
    size_t token_count;  // with the end symbol
    const char *const *tokens;
    const float *token_scores;
} dgm_pair_score;

typedef struct dgm_pair_scores {
    const dgm_pair_score *items;
    size_t count, failed;
} dgm_pair_scores;

// What the translator's models think of given translations (forced decoding). Long lines are not
// split: they fail.
DGM_API dgm_status dgm_score_pairs(dgm_translator *t, const dgm_pair *pairs, size_t count,
                                   dgm_pair_scores **scores, dgm_error *error);
DGM_API void dgm_pair_scores_free(dgm_pair_scores **scores);

// ---- evaluation -------------------------------------------------------------------------------

typedef struct dgm_eval_options {
    const char *metric;   // "bleu", "chrf" or "chrf++"; default "bleu"
    const char *tokenize; // "13a", "intl", "char", "zh", "none"; NULL: "13a"
    const char *smooth;   // "exp", "floor", "add-k", "none"; NULL: "exp"
    double smooth_value;  // < 0: the usual one; default -1
    int lowercase;
    int max_order;              // of BLEU, default 4
    int char_order, word_order; // of chrF, default 6 and 0 (chrf++: 2)
    double beta;                // of chrF, default 2
    int samples;                // bootstrap samples, 0 (default): none
    uint64_t seed;              // default 12345
    void *reserved[4];
} dgm_eval_options;

DGM_API void dgm_eval_default(dgm_eval_options *options);

typedef struct dgm_eval_score {
    double score;                   // 0 to 100
    double mean, half;              // with samples: 95 % interval, mean +- half
    double p, wins;                 // against the first system: p-value, share of samples won
    double brevity;                 // BLEU
    double precisions[8];           // BLEU, percent
    int64_t hyp_length, ref_length; // BLEU
} dgm_eval_score;

// Scores every system against the references, all of `lines` lines: systems[s][i], refs[r][i].
// scores [system_count]. sentences: NULL, or [system_count * lines] for the score of each line.
DGM_API dgm_status dgm_evaluate(const dgm_eval_options *options, const dgm_line *const *systems,
                                size_t system_count, const dgm_line *const *refs, size_t ref_count,
                                size_t lines, dgm_eval_score *scores, double *sentences,
                                dgm_error *error);
// "BLEU" and "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:..."; each buffer may be NULL.
DGM_API dgm_status dgm_eval_describe(const dgm_eval_options *options, size_t ref_count, char *name,
                                     size_t name_size, char *signature, size_t signature_size,
                                     dgm_error *error);

// ---- import -----------------------------------------------------------------------------------

// Zero or NULL is the default of every field.
typedef struct dgm_import_options {
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
    void *reserved[8];     // NULL
} dgm_import_options;

// Reads a model of another program from folder `dir` and writes it as a Dragoman model file.
// format: a name from dgm_import_format_at. options NULL: defaults. An existing output is replaced
// at the end, in one step, and left alone on failure.
DGM_API dgm_status dgm_import(const char *format, const char *dir, const char *output,
                              const dgm_import_options *options, dgm_error *err);

typedef struct dgm_import_format {
    const char *name;    // "huggingface"
    const char *summary; // for a help text
} dgm_import_format;

// The formats that dgm_import knows, one after the other; NULL behind the last. Static memory.
DGM_API const dgm_import_format *dgm_import_format_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
