// SPDX-License-Identifier: MIT
// The settings of a Hugging Face model of BART's kind (MarianMT, M2M100, mBART, FSMT): config.json and
// generation_config.json.
#ifndef DGM_IMPORT_MARIAN_CONFIG_H
#define DGM_IMPORT_MARIAN_CONFIG_H

#include "base/json.h"
#include "import/import.h"

#define DGM_MARIAN_NEVER_MAX 1024

typedef struct dgm_marian_config {
    int d_model, heads, decoder_heads, encoder_layers, decoder_layers, encoder_ffn, decoder_ffn;
    const char *activation; // our name of it; static
    bool scale_embedding, shared_embedding, tied_output;
    bool pre_norm, final_norm, embed_norm; // norms before sublayers, behind the last, of embeddings
    bool learned;                          // positions: a table of the file
    bool sinusoid_marian;                  // else: frequencies 10000^(-i/(D/2-1))
    int position_offset;                   // what the first token's position is
    int vocab_size, decoder_vocab_size; // equal when embeddings are shared
    int max_positions, decoder_positions; // decoder_positions 0: the same
    int eos, pad, start;
    int forced; // first token of every translation; -1: none
    // generation
    int beam, max_length; // max_length: our meaning, tokens without start and end
    double length_penalty;
    const char *finish; // of dgm_finish_names
    int32_t never[DGM_MARIAN_NEVER_MAX];
    int never_count;
} dgm_marian_config;

// generation NULL: the folder has no generation_config.json, and config says it all.
// A setting that this program cannot follow is DGM_ERR_UNSUPPORTED. Messages name the key.
dgm_status dgm_marian_config_read(dgm_marian_config *out, const json_t *config,
                                  const json_t *generation, dgm_error *err);

// generation_config.c: all that `generate` reads, from generation_config.json where the folder has one. The
// vocabulary's size and max_positions are set. lead: tokens of theirs before the translation.
dgm_status dgm_generation_read(dgm_marian_config *c, const json_t *config, const json_t *generation,
                               int lead, dgm_error *err);

// The same for M2M100 and NLLB (their experts apart).
dgm_status dgm_m2m_config_read(dgm_marian_config *out, const json_t *config,
                               const json_t *generation, dgm_error *err);

// The same for mBART and mBART-50.
dgm_status dgm_mbart_config_read(dgm_marian_config *out, const json_t *config,
                                 const json_t *generation, dgm_error *err);

// The same for FSMT.
dgm_status dgm_fsmt_config_read(dgm_marian_config *out, const json_t *config,
                                const json_t *generation, dgm_error *err);

// marian_languages.c: languages that a model is told by a token before the source.
typedef struct dgm_target_languages {
    char **code; // "deu"
    int32_t *id; // ascending, of ">>deu<<" or "<2de>"
    int count;
} dgm_target_languages;

dgm_status dgm_target_languages_add(dgm_target_languages *l, const char *code, size_t size,
                                    int32_t id, dgm_error *err);
// Their keys. source: NULL where it is any; both_ways: the model also reads all that it writes. What options ask for
// comes first, and must be there.
dgm_status dgm_target_languages_set(dgm_import_job *job, const dgm_target_languages *l,
                                    const char *source, bool both_ways, dgm_error *err);
void dgm_target_languages_free(dgm_target_languages *l); // accepts a zeroed struct

// Keys of the directions of a model to many languages, from the tokens (">>deu<<") of
// its source's vocabulary; nothing where there are none. source: tokenizer_config's, NULL: not said.
dgm_status dgm_marian_languages(dgm_import_job *job, json_t *vocab, const char *source,
                                dgm_error *err);

#endif
