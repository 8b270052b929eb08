// SPDX-License-Identifier: MIT
// The settings of Marian's recurrent models; see recurrent.c for the model itself.
//
// amun and nematus are s2s under other names of tensors: amun one layer of GRUs, nematus one with Nematus'
// norms (gru-nematus). Any of the three may have Marian's cells or Nematus'; the norms of start, attention
// and read-out follow the type.
#include "import/marian_rnn.h"

#include <string.h>

bool dgm_marian_is_recurrent(const char *type)
{
    return strcmp(type, "s2s") == 0 || strcmp(type, "amun") == 0 || strcmp(type, "nematus") == 0;
}

static dgm_status get_cell(const json_t *config, const char *key, dgm_recurrent_cell *out,
                           dgm_error *err)
{
    static const char *const names[] = {
        [DGM_CELL_GRU] = "gru", [DGM_CELL_GRU_NEMATUS] = "gru-nematus", [DGM_CELL_LSTM] = "lstm"};
    const char *name = "gru";
    DGM_TRY(dgm_json_string(config, key, &name, err));
    for (int i = 0; i < 3; i++) {
        *out = (dgm_recurrent_cell)i;
        if (strcmp(names[i], name) == 0) return DGM_OK;
    }
    return dgm_fail(err, DGM_ERR_UNSUPPORTED,
                    "%s is '%.40s'; gru, gru-nematus and lstm can be imported", key, name);
}

static dgm_status get_encoder(const json_t *config, dgm_recurrent *m, dgm_error *err)
{
    const char *type = "bidirectional";
    DGM_TRY(dgm_json_string(config, "enc-type", &type, err));
    if (strcmp(type, "bidirectional") == 0)
        m->encoder = DGM_ENCODER_SEPARATE;
    else if (strcmp(type, "alternating") == 0)
        m->encoder = DGM_ENCODER_ALTERNATING;
    else if (strcmp(type, "bi-unidirectional") == 0)
        m->encoder = DGM_ENCODER_FORWARD;
    else
        return dgm_fail(err, DGM_ERR_UNSUPPORTED,
                        "enc-type is '%.40s'; bidirectional, bi-unidirectional and alternating can "
                        "be imported",
                        type);
    return get_cell(config, "enc-cell", &m->encoder_cell, err);
}

static dgm_status get_depth(const json_t *config, const char *key, int least, int normal, int *out,
                            dgm_error *err)
{
    int64_t v = normal;
    DGM_TRY(dgm_json_int(config, key, 0, 256, &v, err));
    DGM_FAIL_IF(v < least, err, DGM_ERR_UNSUPPORTED, "%s is %d; %d and more can be imported", key,
                (int)v, least);
    *out = (int)v;
    return DGM_OK;
}

// Marian's cells of this kind ask for an input wherever nobody called them a transition.
static dgm_status check_transitions(const dgm_recurrent *m, dgm_error *err)
{
    DGM_FAIL_IF(
        m->encoder_cell == DGM_CELL_GRU_NEMATUS && m->encoder == DGM_ENCODER_FORWARD &&
            m->encoder_layers > 1 && m->encoder_cells > 1,
        err, DGM_ERR_UNSUPPORTED,
        "enc-cell gru-nematus has no enc-cell-depth above 1 in a bi-unidirectional encoder");
    DGM_FAIL_IF(
        m->decoder_cell == DGM_CELL_GRU_NEMATUS && m->decoder_layers > 1 && m->high_cells > 1, err,
        DGM_ERR_UNSUPPORTED, "dec-cell gru-nematus has no dec-cell-high-depth above 1");
    return DGM_OK;
}

static dgm_status get_depths(const json_t *config, dgm_recurrent *m, dgm_error *err)
{
    DGM_TRY(get_depth(config, "enc-depth", 1, 1, &m->encoder_layers, err));
    DGM_TRY(get_depth(config, "enc-cell-depth", 1, 1, &m->encoder_cells, err));
    DGM_TRY(get_depth(config, "dec-depth", 1, 1, &m->decoder_layers, err));
    DGM_TRY(get_depth(config, "dec-cell-base-depth", 2, 2, &m->base_cells, err));
    DGM_TRY(get_depth(config, "dec-cell-high-depth", 1, 1, &m->high_cells, err));
    return check_transitions(m, err);
}

static dgm_status get_ties(const json_t *config, dgm_recurrent *m, dgm_error *err)
{
    bool target = false, source = false, all = false, no_bias = false;
    DGM_TRY(dgm_json_bool(config, "tied-embeddings", &target, err));
    DGM_TRY(dgm_json_bool(config, "tied-embeddings-src", &source, err));
    DGM_TRY(dgm_json_bool(config, "tied-embeddings-all", &all, err));
    DGM_TRY(dgm_json_bool(config, "output-omit-bias", &no_bias, err));
    m->tied_source = source || all;
    m->tied_output = target || all;
    m->output_bias = !no_bias;
    return DGM_OK;
}

static dgm_status refuse_others(const json_t *config, dgm_error *err)
{
    int64_t factors = 0;
    bool universal = false;
    DGM_TRY(dgm_json_int(config, "lemma-dim-emb", INT32_MIN, INT32_MAX, &factors, err));
    DGM_FAIL_IF(factors != 0, err, DGM_ERR_UNSUPPORTED,
                "lemma-dim-emb is %d: models with factors cannot be imported", (int)factors);
    DGM_TRY(dgm_json_bool(config, "ulr", &universal, err));
    DGM_FAIL_IF(universal, err, DGM_ERR_UNSUPPORTED,
                "ulr is true: models with universal embeddings cannot be imported");
    return DGM_OK;
}

dgm_status dgm_marian_recurrent(dgm_composer *c, const json_t *config, dgm_recurrent *m,
                                dgm_error *err)
{
    const char *type = "amun";
    *m = (dgm_recurrent){.readout = "tanh"};
    DGM_TRY(dgm_json_string(config, "type", &type, err));
    DGM_FAIL_IF(!dgm_marian_is_recurrent(type), err, DGM_ERR_UNSUPPORTED,
                "type '%.40s' is none of s2s, amun and nematus", type);
    DGM_TRY(refuse_others(config, err));
    DGM_TRY(get_encoder(config, m, err));
    DGM_TRY(get_cell(config, "dec-cell", &m->decoder_cell, err));
    DGM_TRY(get_depths(config, m, err));
    DGM_TRY(get_ties(config, m, err));
    DGM_TRY(dgm_json_bool(config, "layer-normalization", &m->norm, err));
    DGM_TRY(dgm_json_bool(config, "skip", &m->skip, err));
    m->nematus_norm = strcmp(type, "nematus") == 0;
    dgm_checkpoint_take(c->weights, "uidx"); // of Nematus' training
    dgm_checkpoint_take(c->weights, "history_errs");
    DGM_TRY(dgm_recurrent_sizes(c, m, err));
    return dgm_recurrent_add(c, m, err);
}
