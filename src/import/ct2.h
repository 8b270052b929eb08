// SPDX-License-Identifier: MIT
// Private to the importer of CTranslate2 folders (ctranslate2.c): what its parts share.
#ifndef DGM_IMPORT_CT2_H
#define DGM_IMPORT_CT2_H

#include "base/json.h"
#include "base/mapfile.h"
#include "format/modelfile.h"
#include "import/bpe_codes.h"
#include "import/checkpoint.h"
#include "import/ct2_model.h"
#include "import/import.h"

// Where the files of a model come from: a folder, or an archive.
typedef struct dgm_ct2_files {
    void *self;
    const char *label; // for messages: the folder or archive
    // Maps a file of the model's folder, or (beside) of the one around it. Not there: *out is all zero.
    dgm_status (*open)(void *self, const char *name, bool beside, dgm_mapfile *out, dgm_error *err);
} dgm_ct2_files;

typedef enum dgm_ct2_style { DGM_CT2_LAYER_NORM, DGM_CT2_RMS_NORM } dgm_ct2_style;

// One side of the network; [0] encoder, [1] decoder.
typedef struct dgm_ct2_side {
    const char *scope; // "encoder"
    int layers, heads, ffn;
    int inner; // width of queries, keys and values
    bool pre_norm, embedding_norm, final_norm, gated;
    int activation;
    bool scale; // embeddings times sqrt(d)
    bool scale_is_number; // said as a number, as the converter for transformers does
    const dgm_stored *positions; // NULL: sinusoids that CTranslate2 computes
    bool relative; // biases for relative positions
    int buckets, distance;
} dgm_ct2_side;

typedef struct dgm_ct2_about dgm_ct2_about;

typedef struct dgm_ct2 {
    dgm_import_job *job;
    const dgm_ct2_files *files;
    const dgm_ct2_about *about;
    dgm_ct2_head head;
    json_t *config;
    dgm_checkpoint weights;
    dgm_ct2_side side[2];
    int d;
    double eps;
    dgm_ct2_style style;
    bool zero_start;    // the decoder's first input is a vector of zeros
    int lead;           // tokens that every translation begins with, counted as its length
    float output_scale; // of what the projection multiplies; 1: none. Stored in the last norm
    double query_scale; // 0: as usual, 1 / sqrt(width of a head)
    dgm_view last_norm;
    // vocabularies
    json_t *tokens[2]; // arrays; both the same if shared
    json_t *ids[2];    // spelling -> id
    bool shared;
    int size[2]; // rows of the embeddings
    const char *unk, *bos, *eos, *start; // start NULL: the user's prefix begins with it
    char *owned[4];
    bool source_bos, source_eos;
    // tokenisers
    dgm_mapfile spm[2];
    char *spm_name[2];
    dgm_bpe_codes codes;
    json_t *tokenizer; // tokenizer.json; NULL: none
} dgm_ct2;

// ---- ctranslate2.c -------------------------------------------------------------------------------

// What is known about a model from elsewhere.
struct dgm_ct2_about {
    const char *source, *target; // languages; NULL: unknown
    const char *target_prefix;   // token that every translation begins with; NULL: none
    bool moses;                  // codes of byte-pair encoding follow sacremoses
    int beam;                    // how its own program decodes
    double length_penalty;
};

// A model whose files come from anywhere.
dgm_status dgm_ct2_import(dgm_import_job *job, const dgm_ct2_files *files, const dgm_ct2_about *about,
                          dgm_error *err);

// ---- ct2_settings.c ------------------------------------------------------------------------------

// One number of any type under that name. *found: is it there?
dgm_status dgm_ct2_number(dgm_ct2 *in, const char *name, double *out, bool *found, dgm_error *err);
// What config.json says or, before version 6, variables; and the network's shape.
dgm_status dgm_ct2_read_settings(dgm_ct2 *in, dgm_error *err);
dgm_status dgm_ct2_set_network(dgm_ct2 *in, dgm_error *err);

// ---- ct2_kept.c ----------------------------------------------------------------------------------

// What our own exporter kept in config.json; NULL: it is another program's.
const json_t *dgm_ct2_kept(const dgm_ct2 *in);
// Ids of a list of tokens there, freed by the caller; *ids NULL: there is none.
dgm_status dgm_ct2_kept_tokens(const dgm_ct2 *in, int side, const char *key, int32_t **ids, size_t *count,
                               dgm_error *err);
// Settings of decoding, in place of CTranslate2's.
dgm_status dgm_ct2_set_kept(const dgm_ct2 *in, dgm_error *err);

// ---- ct2_weights.c -------------------------------------------------------------------------------

dgm_status dgm_ct2_add_weights(dgm_ct2 *in, dgm_error *err);

// ---- ct2_vocab.c ---------------------------------------------------------------------------------

dgm_status dgm_ct2_read_vocabularies(dgm_ct2 *in, dgm_error *err);
dgm_status dgm_ct2_set_vocabularies(dgm_ct2 *in, dgm_error *err);
int dgm_ct2_id(const dgm_ct2 *in, int side, const char *token); // -1: none

// ---- ct2_tokenizer.c -----------------------------------------------------------------------------

// What is found; nothing: the user is told. *alike: one for both sides.
dgm_status dgm_ct2_open_tokenisers(dgm_ct2 *in, bool *alike, dgm_error *err);

// ---- ct2_vmap.c ----------------------------------------------------------------------------------

// vmap.txt as a shortlist, where the folder has one.
dgm_status dgm_ct2_add_vmap(dgm_ct2 *in, dgm_error *err);

// ---- ct2_languages.c -----------------------------------------------------------------------------

// Keys of the directions of a model of many languages, by the tokens of its vocabulary. *many: are there any?
dgm_status dgm_ct2_set_languages(dgm_ct2 *in, bool *many, dgm_error *err);

#endif
