// SPDX-License-Identifier: MIT
// Metadata and tensors of the recurrent models (docs/internals/FORMAT.md, 2.5).
//
// Called by dgm_model_load through the table of architectures. Which tensors a decoder has is its
// own file's business (rnn_devlin.c, rnn_conditional.c, rnn_bahdanau.c); encoder, embeddings and
// read-out are the same for all and are read here.
#include <stdio.h>

#include "base/mem.h"
#include "model/rnn/rnn_private.h"

enum { MAX_WIDTH = 1 << 16, MAX_LAYERS = 256 };

// Values of dragoman.rnn.decoder, and what they mean.
static const char *const decoder_names[] = {"devlin", "conditional", "bahdanau", NULL};
static const rnn_decoder *const decoders[] = {&dgm_rnn_devlin, &dgm_rnn_conditional,
                                              &dgm_rnn_bahdanau};
static const char *const cell_names[] = {"gru", "lstm", NULL};
static const char *const readout_names[] = {"none", "linear", "tanh", "maxout", NULL};
static const char *const top_names[] = {"none", "tanh", "gru", NULL};

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
    DGM_TRY(dgm_gguf_get_bool(g, "dragoman.rnn.encoder_bidirectional", DGM_OPTIONAL, &both, err));
    DGM_TRY(dgm_gguf_get_bool(g, "dragoman.rnn.encoder_residual", DGM_OPTIONAL,
                              &r->encoder_residual, err));
    r->both_layers = both ? r->encoder_layers : 0;
    DGM_TRY(get_optional(g, "dragoman.rnn.encoder_bidirectional_layers", r->encoder_layers,
                         &r->both_layers, err));
    DGM_FAIL_IF(!both && r->both_layers > 0, err, DGM_ERR_FORMAT,
                "an encoder of one direction has no bidirectional layers");
    DGM_FAIL_IF(r->encoder_residual && r->both_layers >= 2 && r->both_layers < r->encoder_layers,
                err, DGM_ERR_FORMAT, "encoder layers with residuals must be of one width");
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
    DGM_FAIL_IF(r->cell_lstm && r->decoder != &dgm_rnn_devlin, err, DGM_ERR_UNSUPPORTED,
                "only the decoder 'devlin' may have LSTM cells");
    DGM_TRY(get_optional(g, "dragoman.rnn.upper_layers", MAX_LAYERS, &r->upper_layers, err));
    DGM_TRY(
        dgm_gguf_get_bool(g, "dragoman.rnn.upper_context", DGM_OPTIONAL, &r->upper_context, err));
    DGM_TRY(
        dgm_gguf_get_bool(g, "dragoman.rnn.upper_residual", DGM_OPTIONAL, &r->upper_residual, err));
    if (r->upper_layers == 0) r->upper_context = false;
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

static dgm_status load_settings(dgm_model *m, rnn *r, dgm_error *err)
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
    return dgm_rnn_heads_settings(g, r, err);
}

dgm_status dgm_rnn_load_additive(dgm_model *m, rnn *r, dgm_error *err)
{
    const rnn_matrix key = {"dec.att.key", r->attention, true};
    const float *v = NULL;
    DGM_TRY(dgm_rnn_load_product(m, &key, 1, r->width, &r->key, err));
    DGM_TRY(dgm_gguf_vector(m->file, "dec.att.v", r->attention, DGM_REQUIRED, &v, err));
    for (int i = 0; i < r->heads; v += r->head[i++].units.attention)
        DGM_TRY(dgm_vector_from(m->backend, v, 1, r->head[i].units.attention, &r->head[i].v, err));
    return DGM_OK;
}

static dgm_status load_encoder_layer(dgm_model *m, rnn *r, int i, dgm_error *err)
{
    static const char *const ways[] = {"fwd", "bwd"};
    rnn_layer *l = &r->layers[i];
    char names[2][32];
    const int rows = r->gates * r->encoder_hidden;
    const int input = i == 0 ? r->embed : l[-1].directions * r->encoder_hidden;
    rnn_matrix x[2];
    l->directions = i < r->both_layers ? 2 : 1;
    for (int d = 0; d < l->directions; d++) {
        char name[32];
        snprintf(name, sizeof name, "enc.%d.%s.h", i, ways[d]);
        const rnn_matrix h = {name, rows, true};
        DGM_TRY(dgm_rnn_load_product(m, &h, 1, r->encoder_hidden, &l->h[d], err));
        snprintf(names[d], sizeof names[d], "enc.%d.%s.w", i, ways[d]);
        x[d] = (rnn_matrix){names[d], rows, true};
    }
    return dgm_rnn_load_product(m, x, l->directions, input, &l->x, err);
}

static dgm_status load_embeddings(dgm_model *m, rnn *r, dgm_error *err)
{
    const dgm_tensor *source, *target = NULL;
    DGM_TRY(dgm_gguf_matrix(m->file, "src.embed", m->info.source_vocab, r->embed, DGM_REQUIRED,
                            &source, err));
    DGM_TRY(dgm_gguf_matrix(m->file, "tgt.embed", m->info.target_vocab, r->embed, DGM_OPTIONAL,
                            &target, err));
    if (!target) {
        DGM_FAIL_IF(m->info.source_vocab != m->info.target_vocab, err, DGM_ERR_FORMAT,
                    "tensor 'tgt.embed' is missing, and the vocabularies differ in size");
        target = source;
    }
    DGM_TRY(dgm_embedding_load(m->backend, source, &r->source, err));
    return dgm_embedding_load(m->backend, target, &r->target, err);
}

dgm_status dgm_rnn_load(dgm_model *m, dgm_error *err)
{
    rnn *r = dgm_calloc(1, sizeof *r);
    if (!r) return dgm_no_memory(err);
    m->weights = r;
    DGM_TRY(load_settings(m, r, err));
    r->layers = dgm_calloc((size_t)r->encoder_layers, sizeof *r->layers);
    if (!r->layers) return dgm_no_memory(err);
    DGM_TRY(load_embeddings(m, r, err));
    for (int i = 0; i < r->encoder_layers; i++) DGM_TRY(load_encoder_layer(m, r, i, err));
    const rnn_matrix init = {"dec.init", r->hidden, true};
    DGM_TRY(dgm_rnn_load_product(m, &init, 1, r->width, &r->init, err));
    DGM_TRY(r->decoder->load(m, r, err));
    DGM_TRY(dgm_rnn_source_load(m, r, err));
    DGM_TRY(dgm_rnn_stack_load(m, r, err));
    const rnn_matrix readout = {"dec.readout.h", r->readout_rows, false};
    if (r->readout != READOUT_NONE)
        DGM_TRY(dgm_rnn_load_product(m, &readout, 1, r->stack_width, &r->readout_h, err));
    m->info.hidden = r->readout == READOUT_NONE ? r->stack_width : r->readout_size;
    m->info.layers = m->info.heads = 1;
    m->keep_ancestors = false; // a state holds all of its past
    return DGM_OK;
}

void dgm_rnn_unload(dgm_model *m)
{
    rnn *r = m->weights;
    if (!r) return;
    dgm_backend *b = m->backend;
    for (int i = 0; r->layers && i < r->encoder_layers; i++) {
        dgm_rnn_product_free(b, &r->layers[i].x);
        dgm_rnn_product_free(b, &r->layers[i].h[0]);
        dgm_rnn_product_free(b, &r->layers[i].h[1]);
    }
    rnn_product *all[] = {&r->init, &r->word, &r->old, &r->middle, &r->key, &r->readout_h};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) dgm_rnn_product_free(b, all[i]);
    for (int i = 0; i < r->heads; i++) {
        dgm_linear_free(b, &r->head[i].value);
        dgm_vector_free(b, &r->head[i].v);
    }
    dgm_rnn_stack_unload(m, r);
    dgm_rnn_table_free(&r->source_table);
    dgm_rnn_table_free(&r->target_table);
    dgm_embedding_free(b, &r->source);
    dgm_embedding_free(b, &r->target);
    dgm_rnn_cuts_free(r);
    dgm_free(r->layers);
    dgm_free(r);
    m->weights = NULL;
}
