// SPDX-License-Identifier: MIT
// Mixtures of experts in the Transformer: settings, tensors and the feed-forward layer they replace.
//
// With experts in every n-th layer of a side, layers n, 2n, ... (counted from 1) hold a gate and E
// networks of the shape of the plain layer, PREFIX.moe.gate, PREFIX.moe.J.in and .out. A row x goes
// to the top 1 or 2 of softmax(G x): y = scale * sum of w_j out_j(act(in_j(x))). There is no limit on
// the rows of an expert: dropping some, as training does, would make a sentence depend on its
// neighbours. Packing on first use and the grouping of rows are the backend's (dgm_op_experts).
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/transformer/transformer_private.h"

enum { MAX_EXPERTS = 1024, MAX_TOP = 2, MAX_EVERY = 1024, NAME = 128 };

static dgm_status get_count(const dgm_gguf *g, const char *key, uint32_t min, uint32_t max, int *out,
                            dgm_error *err)
{
    uint32_t v = (uint32_t)*out;
    DGM_TRY(dgm_gguf_get_u32(g, key, DGM_OPTIONAL, min, max, &v, err));
    *out = (int)v;
    return DGM_OK;
}

dgm_status dgm_transformer_moe_settings(const dgm_gguf *g, mixture *moe, dgm_error *err)
{
    *moe = (mixture){.scale = 1, .top = 1};
    DGM_TRY(get_count(g, "dragoman.transformer.moe.experts", 2, MAX_EXPERTS, &moe->experts, err));
    DGM_TRY(get_count(g, "dragoman.transformer.moe.top", 1, MAX_TOP, &moe->top, err));
    DGM_TRY(get_count(g, "dragoman.transformer.moe.encoder_every", 0, MAX_EVERY,
                      &moe->encoder_every, err));
    DGM_TRY(get_count(g, "dragoman.transformer.moe.decoder_every", 0, MAX_EVERY,
                      &moe->decoder_every, err));
    DGM_TRY(dgm_gguf_get_bool(g, "dragoman.transformer.moe.normalise", DGM_OPTIONAL,
                              &moe->normalise, err));
    DGM_TRY(dgm_gguf_get_f32(g, "dragoman.transformer.moe.scale", DGM_OPTIONAL, 0, 1000, &moe->scale,
                             err));
    DGM_FAIL_IF(!moe->experts && (moe->encoder_every || moe->decoder_every), err, DGM_ERR_FORMAT,
                "metadata key 'dragoman.transformer.moe.experts' is missing");
    return DGM_OK;
}

bool dgm_transformer_moe_at(int every, int i)
{
    return every > 0 && (i + 1) % every == 0;
}

static dgm_status find_part(dgm_model *m, const char *name, int rows, int cols, dgm_linear_part *part,
                            dgm_error *err)
{
    char tensor[NAME];
    snprintf(tensor, sizeof tensor, "%s.weight", name);
    DGM_TRY(dgm_gguf_matrix(m->file, tensor, rows, cols, DGM_REQUIRED, &part->weight, err));
    snprintf(tensor, sizeof tensor, "%s.bias", name);
    DGM_TRY(dgm_gguf_vector(m->file, tensor, rows, DGM_OPTIONAL, &part->bias, err));
    return dgm_model_input_scale(m, part, err);
}

static dgm_status load_gate(dgm_model *m, const char *prefix, int experts, int d, feed_forward *out,
                            dgm_error *err)
{
    char name[NAME];
    const dgm_tensor *weight = NULL;
    const float *bias = NULL;
    snprintf(name, sizeof name, "%s.moe.gate.weight", prefix);
    DGM_TRY(dgm_gguf_matrix(m->file, name, experts, d, DGM_REQUIRED, &weight, err));
    snprintf(name, sizeof name, "%s.moe.gate.bias", prefix);
    DGM_TRY(dgm_gguf_vector(m->file, name, experts, DGM_OPTIONAL, &bias, err));
    float *table = dgm_malloc((size_t)experts * (size_t)d * sizeof(float));
    if (!table) return dgm_no_memory(err);
    dgm_tensor_to_f32(weight, table);
    dgm_status st = dgm_vector_from(m->backend, table, experts, d, &out->gate, err);
    dgm_free(table);
    if (st == DGM_OK && bias)
        st = dgm_vector_from(m->backend, bias, 1, experts, &out->gate_bias, err);
    return st;
}

dgm_status dgm_transformer_moe_load(dgm_model *m, const mixture *moe, const char *prefix, int d,
                                    int f, feed_forward *out, dgm_error *err)
{
    char name[NAME];
    DGM_TRY(load_gate(m, prefix, moe->experts, d, out, err));
    dgm_expert_part *parts = dgm_calloc((size_t)moe->experts, sizeof *parts);
    if (!parts) return dgm_no_memory(err);
    dgm_status st = DGM_OK;
    for (int j = 0; j < moe->experts && st == DGM_OK; j++) {
        snprintf(name, sizeof name, "%s.moe.%d.in", prefix, j);
        st = find_part(m, name, f, d, &parts[j].in, err);
        snprintf(name, sizeof name, "%s.moe.%d.out", prefix, j);
        if (st == DGM_OK) st = find_part(m, name, d, f, &parts[j].out, err);
    }
    if (st == DGM_OK)
        st = dgm_experts_load(m->backend, m->file, parts, moe->experts, m->precision, &out->experts,
                              err);
    dgm_free(parts);
    return st;
}

void dgm_transformer_moe_free(dgm_backend *b, feed_forward *f)
{
    dgm_experts_free(b, &f->experts);
    dgm_vector_free(b, &f->gate);
    dgm_vector_free(b, &f->gate_bias);
}

void dgm_transformer_moe_run(dgm_exec *e, const transformer *t, const feed_forward *f, dgm_mat y,
                             dgm_mat in, dgm_mat inner)
{
    dgm_mixture how = {
        .gate = f->gate,
        .gate_bias = f->gate_bias,
        .top = t->moe.top,
        .normalise = t->moe.normalise,
        .scale = t->moe.scale,
        .act = t->act,
    };
    dgm_op_experts(e, y, in, f->experts, &how, inner);
}

void dgm_transformer_experts(const dgm_model *m, dgm_experts_use *out)
{
    const transformer *t = m->weights;
    for (int i = 0; i < t->enc.layers; i++)
        if (t->encoder[i].ffn.experts) dgm_experts_count(t->encoder[i].ffn.experts, out);
    for (int i = 0; i < t->dec.layers; i++)
        if (t->decoder[i].ffn.experts) dgm_experts_count(t->decoder[i].ffn.experts, out);
}
