// SPDX-License-Identifier: MIT
// Tensors of the recurrent models (docs/internals/FORMAT.md, 2.5); rnn_settings.c reads their keys.
//
// Called by dgm_model_load through the table of architectures. Which tensors a decoder has is its
// own file's business (rnn_devlin.c, rnn_conditional.c, rnn_bahdanau.c); encoder, embeddings and
// read-out are the same for all and are read here.
#include <stdio.h>

#include "base/mem.h"
#include "model/rnn/rnn_private.h"

dgm_status dgm_rnn_load_additive(dgm_model *m, rnn *r, dgm_error *err)
{
    const rnn_matrix key = {"dec.att.key", r->attention, true, r->norm};
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
    const rnn_chain chain = {rows, r->encoder_hidden, r->encoder_norm, r->lstm};
    rnn_matrix x[2];
    l->directions = i < r->both_layers ? 2 : 1;
    for (int d = 0; d < l->directions; d++) {
        char name[32];
        snprintf(name, sizeof name, "enc.%d.%s", i, ways[d]);
        DGM_TRY(
            dgm_rnn_transitions_load(m, name, &chain, r->encoder_transitions, &l->next[d], err));
        snprintf(name, sizeof name, "enc.%d.%s.h", i, ways[d]);
        const rnn_matrix h = {name, rows, true, r->encoder_norm};
        DGM_TRY(dgm_rnn_load_product(m, &h, 1, r->encoder_hidden, &l->h[d], err));
        snprintf(names[d], sizeof names[d], "enc.%d.%s.w", i, ways[d]);
        x[d] = (rnn_matrix){names[d], rows, true, r->encoder_norm};
    }
    if (i > 0 && l->directions == 2 && r->stacks != STACKS_JOINED)
        return dgm_rnn_load_pair(m, x, r->encoder_hidden, r->stacks == STACKS_CROSSED, &l->x, err);
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
    DGM_TRY(dgm_rnn_settings(m, r, err));
    r->layers = dgm_calloc((size_t)r->encoder_layers, sizeof *r->layers);
    if (!r->layers) return dgm_no_memory(err);
    DGM_TRY(load_embeddings(m, r, err));
    for (int i = 0; i < r->encoder_layers; i++) DGM_TRY(load_encoder_layer(m, r, i, err));
    const rnn_matrix init = {"dec.init", r->hidden, true, r->norm};
    DGM_TRY(dgm_rnn_load_product(m, &init, 1, r->width, &r->init, err));
    DGM_TRY(r->decoder->load(m, r, err));
    DGM_TRY(dgm_rnn_source_load(m, r, err));
    DGM_TRY(dgm_rnn_stack_load(m, r, err));
    const rnn_matrix readout = {"dec.readout.h", r->readout_rows, r->norm != NORM_NONE, r->norm};
    if (r->readout != READOUT_NONE)
        DGM_TRY(dgm_rnn_load_product(m, &readout, 1, r->stack_width, &r->readout_h, err));
    m->info.hidden = r->readout == READOUT_NONE ? r->stack_width : r->readout_size;
    m->info.layers = m->info.heads = 1;
    m->info.plain_attention = r->plain = r->value_norms.count > 0;
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
        dgm_rnn_transitions_free(b, &r->layers[i].next[0]);
        dgm_rnn_transitions_free(b, &r->layers[i].next[1]);
    }
    dgm_rnn_transitions_free(b, &r->next);
    dgm_rnn_norms_free(b, &r->value_norms);
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
