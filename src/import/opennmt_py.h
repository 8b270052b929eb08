// SPDX-License-Identifier: MIT
// Private to the importer of OpenNMT-py's checkpoints: what their settings say.
#ifndef DGM_IMPORT_OPENNMT_PY_H
#define DGM_IMPORT_OPENNMT_PY_H

#include "import/pickle.h"
#include "import/store.h"

#define DGM_ONMT_EMBEDDING(side) side ".embeddings.make_embedding.emb_luts.0.weight"

typedef struct dgm_onmt_settings {
    int d_model, heads, ffn, encoder_layers, decoder_layers;
    int source_size, target_size; // rows of the embeddings
    const char *activation;       // our name of it; static
    bool gated, rms, positions;
    double eps;
    char start[40]; // the decoder's first token
} dgm_onmt_settings;

// root: of the checkpoint. Sizes are those of the tensors. What is no such Transformer is refused by its name.
dgm_status dgm_onmt_settings_read(dgm_onmt_settings *s, const dgm_py *root,
                                  const dgm_store *tensors, dgm_error *err);

#endif
