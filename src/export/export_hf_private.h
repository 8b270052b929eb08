// SPDX-License-Identifier: MIT
// What folders of Hugging Face transformers share: MarianMT (export_hf.c), and M2M100, NLLB and mBART (export_m2m.c).
// All are kinds of BART, with the same names of tensors.
#ifndef DGM_EXPORT_EXPORT_HF_PRIVATE_H
#define DGM_EXPORT_EXPORT_HF_PRIVATE_H

#include "export/export.h"

typedef struct dgm_hf_folder {
    const dgm_export_job *job;
    const dgm_export_model *m;
    const char *kind;    // in messages: "MarianMT"
    const char *type;    // "model_type" and class
    const char *class;
    bool zero_start;     // one id more: <pad>, whose row is zero
    bool joint;          // both sides have the same ids
    bool one_embedding;  // "model.shared.weight" serves both sides
    bool logits_bias;    // it has "final_logits_bias"
    int size[2];         // of the vocabularies, with <pad>
    int pad, start, bos;
    int lead;            // tokens before a translation that "max_length" counts
    int forced;          // first token of every translation; -1: none
    int positions;       // "max_position_embeddings"
} dgm_hf_folder;

// config.json: what all have in common, and `own` (taken).
dgm_status dgm_hf_config(const dgm_hf_folder *x, json_t *own, dgm_error *err);
// generation_config.json: how this program would search. What transformers has no setting for is told.
dgm_status dgm_hf_generation(const dgm_hf_folder *x, dgm_error *err);
// model.safetensors
dgm_status dgm_hf_weights(const dgm_hf_folder *x, dgm_error *err);

// Of every model: norms with 1e-5, activations that transformers has, a SentencePiece model.
dgm_status dgm_hf_check(const dgm_hf_folder *x, dgm_error *err);

dgm_status dgm_export_marian(const dgm_export_job *job, dgm_error *err);
dgm_status dgm_export_many(const dgm_export_job *job, dgm_error *err); // M2M100, NLLB, mBART

#endif
