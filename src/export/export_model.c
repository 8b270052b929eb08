// SPDX-License-Identifier: MIT
// Looks at a model that is to be exported; see export.h.
#include <string.h>

#include "export/export.h"

// Keys that an exporter understands; any other of the network says something that only this program knows.
static dgm_status check_keys(const dgm_gguf *g, dgm_error *err)
{
    static const char begin[] = "dragoman.transformer.";
    static const char *const known[] = {"d_model",        "heads",          "decoder_heads", "ffn", "decoder_ffn",
                                        "encoder_layers", "decoder_layers", "norm",      "norm_eps",
                                        "activation",     "positions",      "position_offset", "scale_embedding",
                                        "start",          "decoder"};
    for (int i = 0; i < dgm_gguf_meta_count(g); i++) {
        const char *key = dgm_gguf_meta(g, i)->key;
        if (strncmp(key, begin, sizeof begin - 1) != 0) continue;
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found |= strcmp(key + sizeof begin - 1, known[k]) == 0;
        DGM_FAIL_IF(!found, err, DGM_ERR_UNSUPPORTED, "a model with '%s' cannot be exported", key);
    }
    return DGM_OK;
}

static dgm_status check_kind(const dgm_gguf *g, dgm_error *err)
{
    static const char *const fixed[][2] = {{"dragoman.architecture", "transformer"},
                                           {"dragoman.transformer.decoder", "self_attention"},
                                           {"dragoman.transformer.start", "zero"},
                                           {"dragoman.source.order", "l2r"},
                                           {"dragoman.target.order", "l2r"}};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        const char *value = fixed[i][1];
        DGM_TRY(dgm_gguf_get_string(g, fixed[i][0], DGM_OPTIONAL, &value, err));
        DGM_FAIL_IF(strcmp(value, fixed[i][1]) != 0, err, DGM_ERR_UNSUPPORTED,
                    "a model whose '%s' is '%.40s' cannot be exported ('%s' can)", fixed[i][0], value, fixed[i][1]);
    }
    return check_keys(g, err);
}

static dgm_status get_count(const dgm_gguf *g, const char *key, dgm_need need, int *out, dgm_error *err)
{
    uint32_t v = (uint32_t)*out;
    DGM_TRY(dgm_gguf_get_u32(g, key, need, 1, 1 << 20, &v, err));
    *out = (int)v;
    return DGM_OK;
}

static dgm_status read_network(dgm_export_model *m, dgm_error *err)
{
    const dgm_gguf *g = m->g;
    const char *norm = "post";
    uint32_t offset = 0;
    DGM_TRY(get_count(g, "dragoman.transformer.d_model", DGM_REQUIRED, &m->d, err));
    DGM_TRY(get_count(g, "dragoman.transformer.heads", DGM_REQUIRED, &m->heads[0], err));
    m->heads[1] = m->heads[0];
    DGM_TRY(get_count(g, "dragoman.transformer.decoder_heads", DGM_OPTIONAL, &m->heads[1], err));
    DGM_TRY(get_count(g, "dragoman.transformer.ffn", DGM_REQUIRED, &m->ffn[0], err));
    m->ffn[1] = m->ffn[0];
    DGM_TRY(get_count(g, "dragoman.transformer.decoder_ffn", DGM_OPTIONAL, &m->ffn[1], err));
    DGM_TRY(get_count(g, "dragoman.transformer.encoder_layers", DGM_REQUIRED, &m->layers[0], err));
    DGM_TRY(get_count(g, "dragoman.transformer.decoder_layers", DGM_REQUIRED, &m->layers[1], err));
    DGM_TRY(dgm_gguf_get_string(g, "dragoman.transformer.norm", DGM_REQUIRED, &norm, err));
    m->pre_norm = strcmp(norm, "pre") == 0;
    m->eps = 1e-5f;
    DGM_TRY(dgm_gguf_get_f32(g, "dragoman.transformer.norm_eps", DGM_OPTIONAL, 0, 1, &m->eps, err));
    DGM_TRY(dgm_gguf_get_string(g, "dragoman.transformer.activation", DGM_REQUIRED, &m->activation, err));
    DGM_TRY(dgm_gguf_get_string(g, "dragoman.transformer.positions", DGM_REQUIRED, &m->positions, err));
    DGM_TRY(dgm_gguf_get_u32(g, "dragoman.transformer.position_offset", DGM_OPTIONAL, 0, 1024, &offset, err));
    m->position_offset = (int)offset;
    m->scale_embedding = true;
    return dgm_gguf_get_bool(g, "dragoman.transformer.scale_embedding", DGM_OPTIONAL, &m->scale_embedding, err);
}

static dgm_status read_embeddings(dgm_export_model *m, dgm_error *err)
{
    const dgm_gguf *g = m->g;
    DGM_TRY(dgm_gguf_matrix(g, "src.embed", m->sizes[0], m->d, DGM_REQUIRED, &m->source, err));
    DGM_TRY(dgm_gguf_matrix(g, "tgt.embed", m->sizes[1], m->d, DGM_OPTIONAL, &m->target, err));
    DGM_TRY(dgm_gguf_matrix(g, "out.weight", m->sizes[1], m->d, DGM_OPTIONAL, &m->output, err));
    if (!m->target) m->target = m->source;
    if (!m->output) m->output = m->target;
    DGM_FAIL_IF(m->target->rows != m->sizes[1], err, DGM_ERR_FORMAT, "the target's embeddings have %d rows, not %d",
                m->target->rows, m->sizes[1]);
    return dgm_gguf_vector(g, "out.bias", m->sizes[1], DGM_OPTIONAL, &m->output_bias, err);
}

dgm_status dgm_export_look(dgm_export_model *m, const dgm_gguf *g, dgm_error *err)
{
    memset(m, 0, sizeof *m);
    m->g = g;
    DGM_TRY(check_kind(g, err));
    DGM_TRY(read_network(m, err));
    for (int side = 0; side < 2; side++) {
        DGM_TRY(dgm_modelfile_vocab(g, (dgm_side)side, &m->vocab[side], err));
        m->sizes[side] = m->vocab[side].size;
    }
    DGM_TRY(dgm_modelfile_decode(g, &m->decode, err));
    return read_embeddings(m, err);
}
