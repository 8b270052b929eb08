// SPDX-License-Identifier: MIT
// What the parts of Marian's importer share: where a model's files are, its settings, its vocabularies.
#ifndef DGM_IMPORT_MARIAN_MODEL_H
#define DGM_IMPORT_MARIAN_MODEL_H

#include "base/bytes.h"
#include "base/json.h"
#include "import/checkpoint.h"
#include "import/import.h"
#include "import/release.h"

// ---- files (marian_files.c) --------------------------------------------------------------------

typedef struct dgm_marian_files {
    char *root;     // the folder that names are looked up in
    char *unpacked; // a folder of our own that closing removes; NULL: none
    char *model;    // .npz or .bin
    char *vocab[2];
    char *spm[2]; // SentencePiece models beside a list of pieces (OPUS-MT); NULL: none
    char *bpe[2]; // or codes of byte-pair encoding (subword-nmt); NULL: none
    dgm_release release; // what the folder says about text
    char *shortlist; // binary or text
    json_t *settings; // of the decoder; an empty object where no file has any
    char *settings_path;
} dgm_marian_files;

// Finds everything from the job's path: a folder, a zip archive, a .npz or .bin file, or the decoder's settings.
dgm_status dgm_marian_files_find(dgm_marian_files *f, const dgm_import_job *job, dgm_error *err);
void dgm_marian_files_close(dgm_marian_files *f); // accepts all zero

// ---- vocabularies (marian_vocab.c) -------------------------------------------------------------

// Which number a word has, on both sides.
typedef struct dgm_marian_words {
    json_t *ids[2];
    int unk[2];
    int sizes[2]; // rows of the embeddings
} dgm_marian_words;

// Sets the vocabularies of both sides; w->sizes are given, the rest is filled in.
dgm_status dgm_marian_vocabularies(dgm_import_job *job, const dgm_marian_files *f,
                                   dgm_marian_words *w, dgm_error *err);
int dgm_marian_word(const dgm_marian_words *w, int side, dgm_text word); // the unknown's where it has none
void dgm_marian_words_free(dgm_marian_words *w); // accepts all zero

// ---- the shortlist (marian_shortlist.c) --------------------------------------------------------

// Makes it part of the model file, where there is one.
dgm_status dgm_marian_shortlist(const dgm_import_job *job, const dgm_marian_files *f,
                                const dgm_marian_words *w, dgm_error *err);

// ---- the Transformer (marian_transformer.c, marian_settings.c) ---------------------------------

typedef enum dgm_marian_decoder {
    DGM_MARIAN_ATTENTION,
    DGM_MARIAN_SSRU,
    DGM_MARIAN_AAN
} dgm_marian_decoder;

enum { DGM_MARIAN_LAYERS_MAX = 256 };

// What special:model.yml says about a Transformer.
typedef struct dgm_marian_transformer {
    int d, heads, ffn, decoder_ffn, aan_ffn;
    int ffn_depth[2];                        // of encoder and decoder
    int layers[2];                           // of encoder and decoder
    int tied[DGM_MARIAN_LAYERS_MAX];         // whose parameters a layer has, from 0
    int tied_count;                          // 0: each its own
    const char *activation, *aan_activation; // in our words
    dgm_marian_decoder decoder;
    bool norm_before, norm_behind, rms; // of sub-layers
    const char *residual;               // in our words
    bool highway;                       // it has gates
    bool embed_norm, top_norm;
    bool projection, rnn_projection, aan_gate, affine, positions;
    int align_layer; // from 0; -1: the last
} dgm_marian_transformer;

dgm_status dgm_marian_transformer_read(dgm_marian_transformer *t, const json_t *config,
                                       dgm_error *err);

typedef struct dgm_marian_source dgm_marian_source; // numbers that are computed while writing

typedef struct dgm_marian_weights {
    dgm_checkpoint *from;
    dgm_marian_source *sources; // until the file is written
    int kept, rounded; // matrices whose integers stay as they are, and that are rounded again
    int scales;        // weights with static scales of their inputs
} dgm_marian_weights;

// Keys and weights of a Transformer. sizes: rows of the embeddings.
dgm_status dgm_marian_transformer_add(dgm_marian_weights *w, const dgm_marian_transformer *t,
                                      int sizes[2], dgm_error *err);
void dgm_marian_weights_close(dgm_marian_weights *w); // accepts all zero

#endif
