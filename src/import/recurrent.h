// SPDX-License-Identifier: MIT
// Recurrent models of Marian (types s2s, amun and nematus), Nematus, Amun and dl4mt: the conditional decoder
// over a bidirectional encoder, in all depths. Marian and Nematus name the same tensors differently and
// files of Marian mix both, so every tensor is looked up by either name.
#ifndef DGM_IMPORT_RECURRENT_H
#define DGM_IMPORT_RECURRENT_H

#include "import/compose.h"

typedef enum dgm_recurrent_cell {
    DGM_CELL_GRU,
    DGM_CELL_GRU_NEMATUS, // differs in its layer norms only
    DGM_CELL_LSTM
} dgm_recurrent_cell;

// Upper layers of the encoder: each direction by itself; each over the other direction, as Marian names
// them (by stacks) and as Nematus does (by directions); forward only.
typedef enum dgm_recurrent_encoder {
    DGM_ENCODER_SEPARATE,
    DGM_ENCODER_ALTERNATING,
    DGM_ENCODER_CROSSED,
    DGM_ENCODER_FORWARD
} dgm_recurrent_encoder;

typedef struct dgm_recurrent {
    int embed, hidden, source_vocab, target_vocab;
    dgm_recurrent_encoder encoder;
    dgm_recurrent_cell encoder_cell, decoder_cell;
    int encoder_layers, encoder_cells;          // cells: of a layer, one behind the other
    int decoder_layers, base_cells, high_cells; // of the attentional layer and of those above it
    bool norm;
    bool nematus_norm; // of start, attention and read-out, as Nematus has it
    bool skip;         // residuals
    bool deep_context; // layers above the attentional one see the context
    // What the versions of Nematus have differently: layers above the attentional one have their biases on the
    // side of the state, and transitions of the encoder have none.
    bool tensorflow;
    bool tied_source,
        tied_output; // the target's embeddings are the source's; the output is the target's
    bool output_bias;
    const char *readout; // "tanh" or "linear"
} dgm_recurrent;

// What the tensors themselves say: embed, hidden, the sizes of the vocabularies. Messages name tensors.
dgm_status dgm_recurrent_sizes(const dgm_composer *c, dgm_recurrent *m, dgm_error *err);
// All keys of dragoman.rnn.* and all weights.
dgm_status dgm_recurrent_add(dgm_composer *c, const dgm_recurrent *m, dgm_error *err);

#endif
