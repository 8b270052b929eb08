// SPDX-License-Identifier: MIT
// The keys of the recurrent models (docs/internals/FORMAT.md, 2.5): which parts there are, how wide they
// are, and that they go together.
#include <stdio.h>

#include "model/rnn/rnn_private.h"

enum { MAX_WIDTH = 1 << 16, MAX_LAYERS = 256 };

// Values of dragoman.rnn.decoder, and what they mean.
static const char *const decoder_names[] = {"devlin", "conditional", "bahdanau", NULL};
static const rnn_decoder *const decoders[] = {&dgm_rnn_devlin, &dgm_rnn_conditional,
                                              &dgm_rnn_bahdanau};
static const char *const cell_names[] = {"gru", "lstm", NULL};
static const char *const readout_names[] = {"none", "linear", "tanh", "maxout", NULL};
static const char *const top_names[] = {"none", "tanh", "gru", NULL};
static const char *const stack_names[] = {"joined", "separate", "crossed", NULL};
static const char *const norm_names[] = {"none", "whole", "gates", NULL};
static const char *const start_names[] = {"first", "all", NULL};

static dgm_status get_size(const dgm_gguf *g, const char *key, int max, int *out, dgm_error *err)
{
    uint32_t v = 0;
    DGM_TRY(dgm_gguf_get_u32(g, key, DGM_REQUIRED, 1, (uint32_t)max, &v, err));
    *out = (int)v;
    return DGM_OK;
}

static dgm_status get_optional(const dgm_gguf *g, const char *key, int max, int *out,
                               dgm_error *err)
{
    uint32_t v = (uint32_t)*out;
    DGM_TRY(dgm_gguf_get_u32(g, key, DGM_OPTIONAL, 0, (uint32_t)max, &v, err));
    *out = (int)v;
    return DGM_OK;
}

// PREFIX_layers, an odd number, and PREFIX_size.
static dgm_status load_fc_settings(const dgm_gguf *g, const char *prefix, rnn_fc *fc,
                                   dgm_error *err)
{
    char key[64];
    snprintf(key, sizeof key, "dragoman.rnn.%s_layers", prefix);
    DGM_TRY(get_optional(g, key, MAX_LAYERS, &fc->count, err));
    if (fc->count == 0) return DGM_OK;
    DGM_FAIL_IF(fc->count % 2 == 0, err, DGM_ERR_FORMAT, "key '%s' is %d, not an odd number", key,
                fc->count);
    snprintf(key, sizeof key, "dragoman.rnn.%s_size", prefix);
    return get_size(g, key, MAX_WIDTH, &fc->width, err);
}

// Directions and residuals of the encoder. r->encoder_layers and encoder_hidden are known.
static dgm_status load_encoder_settings(const dgm_gguf *g, rnn *r, dgm_error *err)
{
    bool both = true;
    int stacks = STACKS_JOINED;
    DGM_TRY(dgm_gguf_get_bool(g, "dragoman.rnn.encoder_bidirectional", DGM_OPTIONAL, &both, err));
    DGM_TRY(dgm_gguf_get_bool(g, "dragoman.rnn.encoder_residual", DGM_OPTIONAL,
                              &r->encoder_residual, err));
    r->both_layers = both ? r->encoder_layers : 0;
    DGM_TRY(get_optional(g, "dragoman.rnn.encoder_bidirectional_layers", r->encoder_layers,
                         &r->both_layers, err));
    DGM_FAIL_IF(!both && r->both_layers > 0, err, DGM_ERR_FORMAT,
                "an encoder of one direction has no bidirectional layers");
    r->encoder_residual_from = 2;
    DGM_TRY(get_optional(g, "dragoman.rnn.encoder_residual_from", MAX_LAYERS,
                         &r->encoder_residual_from, err));
    DGM_FAIL_IF(
        r->encoder_residual_from == 0, err, DGM_ERR_FORMAT,
        "key 'dragoman.rnn.encoder_residual_from' is 0: embeddings are not added to states");
    const bool narrows = r->both_layers > 0 && r->both_layers < r->encoder_layers;
    DGM_FAIL_IF(r->encoder_residual && narrows && r->both_layers >= r->encoder_residual_from, err,
                DGM_ERR_FORMAT, "encoder layers with residuals must be of one width");
    DGM_TRY(dgm_gguf_get_enum(g, "dragoman.rnn.encoder_stacks", DGM_OPTIONAL, stack_names, &stacks,
                              err));
    r->stacks = (rnn_stacks)stacks;
    r->width = (r->both_layers == r->encoder_layers ? 2 : 1) * r->encoder_hidden;
    return load_fc_settings(g, "encoder_fc", &r->source_fc, err);
}

// What stands above the attentional cell. r->hidden is known.
static dgm_status load_stack_settings(const dgm_gguf *g, rnn *r, dgm_error *err)
{
    int cell = 0, top = TOP_NONE;
    DGM_TRY(
        dgm_gguf_get_enum(g, "dragoman.rnn.decoder_cell", DGM_OPTIONAL, cell_names, &cell, err));
    r->cell_lstm = cell == 1;
    r->cell_gates = r->cell_lstm ? 4 : 3;
    DGM_FAIL_IF(r->cell_lstm && r->decoder == &dgm_rnn_bahdanau, err, DGM_ERR_UNSUPPORTED,
                "the decoder 'bahdanau' has no LSTM cells");
    DGM_TRY(get_optional(g, "dragoman.rnn.upper_layers", MAX_LAYERS, &r->upper_layers, err));
    DGM_TRY(
        dgm_gguf_get_bool(g, "dragoman.rnn.upper_context", DGM_OPTIONAL, &r->upper_context, err));
    DGM_TRY(
        dgm_gguf_get_bool(g, "dragoman.rnn.upper_residual", DGM_OPTIONAL, &r->upper_residual, err));
    if (r->upper_layers == 0) r->upper_context = false;
    r->upper_residual_from = 1;
    DGM_TRY(get_optional(g, "dragoman.rnn.upper_residual_from", MAX_LAYERS, &r->upper_residual_from,
                         err));
    DGM_TRY(load_fc_settings(g, "fc", &r->fc, err));
    DGM_TRY(dgm_gguf_get_enum(g, "dragoman.rnn.top", DGM_OPTIONAL, top_names, &top, err));
    r->top = (rnn_top)top;
    if (r->top != TOP_NONE)
        DGM_TRY(get_size(g, "dragoman.rnn.top_size", MAX_WIDTH, &r->top_size, err));
    r->bottom_width = (r->cell_lstm ? 2 : 1) * r->hidden;
    r->state_width = r->bottom_width * (1 + r->upper_layers);
    if (r->top == TOP_GRU) r->state_width += r->top_size;
    r->stack_width = r->top != TOP_NONE ? r->top_size : r->fc.count ? r->fc.width : r->hidden;
    return DGM_OK;
}

static dgm_status get_norm(const dgm_gguf *g, const char *key, bool lstm, rnn_norm *out,
                           dgm_error *err)
{
    int kind = NORM_NONE;
    DGM_TRY(dgm_gguf_get_enum(g, key, DGM_OPTIONAL, norm_names, &kind, err));
    DGM_FAIL_IF(kind == NORM_GATES && lstm, err, DGM_ERR_UNSUPPORTED,
                "key '%s' is 'gates', which LSTM cells do not have", key);
    *out = (rnn_norm)kind;
    return DGM_OK;
}

// Norms and transitions, which came with the models of Marian and Nematus. Cells of both sides and the
// decoder are known.
static dgm_status load_depth_settings(const dgm_gguf *g, rnn *r, dgm_error *err)
{
    bool norm = false;
    int start = 0;
    r->norm_eps = r->gate_norm_eps = 1e-5f;
    DGM_TRY(get_norm(g, "dragoman.rnn.encoder_norm", r->lstm, &r->encoder_norm, err));
    DGM_TRY(get_norm(g, "dragoman.rnn.decoder_norm", r->cell_lstm, &r->cell_norm, err));
    DGM_TRY(dgm_gguf_get_bool(g, "dragoman.rnn.norm", DGM_OPTIONAL, &norm, err));
    r->norm = norm ? NORM_WHOLE : NORM_NONE;
    DGM_TRY(
        dgm_gguf_get_f32(g, "dragoman.rnn.norm_eps", DGM_OPTIONAL, 0.0f, 1.0f, &r->norm_eps, err));
    DGM_TRY(dgm_gguf_get_f32(g, "dragoman.rnn.gate_norm_eps", DGM_OPTIONAL, 0.0f, 1.0f,
                             &r->gate_norm_eps, err));
    DGM_TRY(get_optional(g, "dragoman.rnn.encoder_transitions", MAX_LAYERS, &r->encoder_transitions,
                         err));
    DGM_TRY(
        get_optional(g, "dragoman.rnn.decoder_transitions", MAX_LAYERS, &r->cell_transitions, err));
    DGM_TRY(
        get_optional(g, "dragoman.rnn.upper_transitions", MAX_LAYERS, &r->upper_transitions, err));
    DGM_TRY(
        dgm_gguf_get_enum(g, "dragoman.rnn.decoder_start", DGM_OPTIONAL, start_names, &start, err));
    r->start_all = start == 1;
    const bool own = r->cell_norm != NORM_NONE || norm || r->cell_transitions > 0;
    DGM_FAIL_IF(own && r->decoder != &dgm_rnn_conditional, err, DGM_ERR_UNSUPPORTED,
                "only the decoder 'conditional' may have normalised products or transitions");
    return DGM_OK;
}

dgm_status dgm_rnn_settings(dgm_model *m, rnn *r, dgm_error *err)
{
    const dgm_gguf *g = m->file;
    int cell = 0, decoder = 0, readout = READOUT_NONE;
    DGM_TRY(get_size(g, "dragoman.rnn.embed", MAX_WIDTH, &r->embed, err));
    DGM_TRY(get_size(g, "dragoman.rnn.encoder_hidden", MAX_WIDTH, &r->encoder_hidden, err));
    DGM_TRY(get_size(g, "dragoman.rnn.encoder_layers", MAX_LAYERS, &r->encoder_layers, err));
    DGM_TRY(get_size(g, "dragoman.rnn.decoder_hidden", MAX_WIDTH, &r->hidden, err));
    DGM_TRY(get_size(g, "dragoman.rnn.attention", MAX_WIDTH, &r->attention, err));
    DGM_TRY(
        dgm_gguf_get_enum(g, "dragoman.rnn.encoder_cell", DGM_REQUIRED, cell_names, &cell, err));
    DGM_TRY(
        dgm_gguf_get_enum(g, "dragoman.rnn.decoder", DGM_REQUIRED, decoder_names, &decoder, err));
    DGM_TRY(
        dgm_gguf_get_enum(g, "dragoman.rnn.readout", DGM_OPTIONAL, readout_names, &readout, err));
    if (readout != READOUT_NONE)
        DGM_TRY(get_size(g, "dragoman.rnn.readout_size", MAX_WIDTH, &r->readout_size, err));
    r->lstm = cell == 1;
    r->gates = r->lstm ? 4 : 3;
    r->decoder = decoders[decoder];
    r->readout = (rnn_readout)readout;
    r->readout_rows = readout == READOUT_MAXOUT ? 2 * r->readout_size : r->readout_size;
    DGM_TRY(load_encoder_settings(g, r, err));
    DGM_TRY(load_stack_settings(g, r, err));
    DGM_TRY(load_depth_settings(g, r, err));
    return dgm_rnn_heads_settings(g, r, err);
}
