// SPDX-License-Identifier: MIT
// What models of BART's kind share, whoever saved them: MarianMT, M2M100, NLLB, mBART and FSMT of Hugging Face,
// checkpoints of fairseq. Their tensors have the names of fairseq's modules, with "model." before them or not.
#ifndef DGM_IMPORT_BART_H
#define DGM_IMPORT_BART_H

#include "import/checkpoint.h"
#include "import/marian_config.h"

typedef struct dgm_bart {
    dgm_checkpoint *w;
    const dgm_marian_config *c;
    const char *prefix; // before "encoder.": "model." or nothing
    const char *shared; // name of the embedding for both sides
    const char *head;   // name of the output layer
} dgm_bart;

// Finds the prefix and the usual names.
dgm_bart dgm_bart_of(dgm_checkpoint *w, const dgm_marian_config *c);

// src.embed, tgt.embed and out.weight. Names of which the configuration says that they are one matrix must hold the
// same numbers where several are stored; otherwise each side has its own. What equals another is stored once.
dgm_status dgm_bart_embeddings(const dgm_bart *b, dgm_error *err);

// Positions and their keys, behind dgm_bart_keys: a sinusoid that is computed, or a learned table. A stored
// table that is not the sinusoid the configuration means is a learned one.
dgm_status dgm_bart_positions(const dgm_bart *b, dgm_error *err);

// Normalisations that the configuration says: of embeddings, behind the last layer.
dgm_status dgm_bart_norms(const dgm_bart *b, dgm_error *err);

// out.bias from final_logits_bias [1, V], which is usually there and nothing but zeros.
dgm_status dgm_bart_output_bias(const dgm_bart *b, dgm_error *err);

// All layers of both sides.
dgm_status dgm_bart_layers(const dgm_bart *b, dgm_error *err);

// The keys "dragoman.transformer.*", positions as the configuration has them.
void dgm_bart_keys(dgm_gguf_writer *w, const dgm_marian_config *c);
// The keys "dragoman.decode.*" of what generate would do.
void dgm_bart_decoding(dgm_gguf_writer *w, const dgm_marian_config *c);

#endif
