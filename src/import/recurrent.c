// SPDX-License-Identifier: MIT
// Recurrent models of Marian and Nematus as ours: decoder `conditional` (docs/internals/FORMAT.md, 2.5).
//
//   encoder    stacks of two directions, or one layer of two and the others forward; transitions
//   start      h_0 = tanh(mean(s) W + b) for every layer of the decoder, LSTM cells too
//   decoder    cell 1 over the word, attention, cell 2 over the context, transitions; layers above it
//   read-out   tanh(x W0 + b0 + h W1 + b1 + c W2 + b2)
//
// Marian's alternating encoder puts its first stack first, whose top layer runs backward if their number is
// even; ours has the forward direction first. What reads the encoder's output is then stored with the two
// halves of its columns swapped.
#include "import/recurrent.h"

#include <stdio.h>
#include <string.h>

#include "import/marian_bin.h"
#include "import/recurrent_private.h"

// ---- tensors -----------------------------------------------------------------------------------

// The tensor of a model, by either name; NULL: there is none.
static const dgm_stored *find(const dgm_composer *c, const tensor_names *n)
{
    const char *const names[] = {n->marian, n->nematus};
    for (int i = 0; i < 2; i++) {
        const int at = names[i][0] ? dgm_store_find(c->weights->tensors, names[i]) : -1;
        if (at >= 0) return dgm_store_get(c->weights->tensors, (size_t)at);
    }
    return NULL;
}

dgm_status dgm_recurrent_take(dgm_composer *c, const tensor_names *n, int rows, int cols,
                              dgm_need need, const dgm_stored **t, dgm_error *err)
{
    const bool nematus = n->nematus[0] && dgm_checkpoint_has(c->weights, "decoder_U");
    *t = find(c, n);
    DGM_FAIL_IF(!*t && need == DGM_REQUIRED, err, DGM_ERR_FORMAT, "tensor '%s' is missing",
                nematus || !n->marian[0] ? n->nematus : n->marian);
    if (!*t) return DGM_OK;
    dgm_checkpoint_take(c->weights, (*t)->name);
    DGM_FAIL_IF(!dgm_stored_is_real((*t)->type) && !dgm_marian_quantised(*t), err,
                DGM_ERR_UNSUPPORTED, "tensor '%s' is %s, expected real numbers", (*t)->name,
                (*t)->dtype);
    DGM_FAIL_IF((*t)->rows != rows || (*t)->cols != cols, err, DGM_ERR_FORMAT,
                "tensor '%s' has %d rows and %d columns, expected %d and %d", (*t)->name,
                (*t)->rows, (*t)->cols, rows, cols);
    return DGM_OK;
}

dgm_status dgm_recurrent_matrix(dgm_composer *c, const char *ours, const tensor_names *n, int rows,
                                int cols, bool swap, dgm_error *err)
{
    const dgm_stored *t;
    DGM_TRY(dgm_recurrent_take(c, n, cols, rows, DGM_REQUIRED, &t, err)); // theirs is [in, out]
    const dgm_view v = dgm_marian_weight(c->weights->tensors, t);
    return dgm_compose_matrix(c, ours, &v, 1, swap, err);
}

dgm_status dgm_recurrent_vector(dgm_composer *c, const char *ours, const tensor_names *n, int size,
                                dgm_error *err)
{
    const dgm_stored *t;
    DGM_TRY(dgm_recurrent_take(c, n, 1, size, DGM_REQUIRED, &t, err));
    const dgm_vector_term term = {t, 0, size, 0};
    return dgm_compose_vector(c, ours, size, &term, 1, err);
}

// ---- embeddings --------------------------------------------------------------------------------

static tensor_names source_embedding(const dgm_composer *c)
{
    tensor_names n = {"encoder_Wemb", "Wemb"};
    if (!dgm_checkpoint_has(c->weights, n.marian)) n.marian[0] = 0;
    return n;
}

dgm_status dgm_recurrent_sizes(const dgm_composer *c, dgm_recurrent *m, dgm_error *err)
{
    static const tensor_names state = {"decoder_ff_state_W", "ff_state_W"},
                              target = {"decoder_Wemb", "Wemb_dec"};
    const tensor_names source = source_embedding(c);
    const dgm_stored *s = find(c, &source), *h = find(c, &state), *t = find(c, &target);
    DGM_FAIL_IF(!s, err, DGM_ERR_FORMAT, "tensor 'Wemb' is missing");
    DGM_FAIL_IF(!h, err, DGM_ERR_FORMAT, "tensor 'ff_state_W' is missing");
    m->embed = s->cols;
    m->source_vocab = s->rows;
    m->target_vocab = t ? t->rows : s->rows;
    m->hidden = h->cols;
    return DGM_OK;
}

static dgm_status add_rows(dgm_composer *c, const char *ours, const tensor_names *n, int rows,
                           int cols, dgm_error *err)
{
    const dgm_stored *t;
    DGM_TRY(dgm_recurrent_take(c, n, rows, cols, DGM_REQUIRED, &t, err));
    return dgm_checkpoint_view(c->weights, ours, dgm_marian_rows(c->weights->tensors, t), false,
                               err);
}

static dgm_status add_embeddings(dgm_composer *c, const dgm_recurrent *m, dgm_error *err)
{
    static const tensor_names target = {"decoder_Wemb", "Wemb_dec"},
                              out = {"decoder_ff_logit_l2_W", "ff_logit_W"},
                              out_rows = {"decoder_ff_logit_l2_Wt", ""},
                              bias = {"decoder_ff_logit_l2_b", "ff_logit_b"};
    const tensor_names source = source_embedding(c);
    DGM_TRY(add_rows(c, "src.embed", &source, m->source_vocab, m->embed, err));
    if (!m->tied_source) DGM_TRY(add_rows(c, "tgt.embed", &target, m->target_vocab, m->embed, err));
    if (!m->tied_output && dgm_checkpoint_has(c->weights, out_rows.marian))
        DGM_TRY(add_rows(c, "out.weight", &out_rows, m->target_vocab, m->embed, err));
    else if (!m->tied_output)
        DGM_TRY(dgm_recurrent_matrix(c, "out.weight", &out, m->target_vocab, m->embed, false, err));
    return m->output_bias ? dgm_recurrent_vector(c, "out.bias", &bias, m->target_vocab, err)
                          : DGM_OK;
}

// ---- layers with norms of their own ------------------------------------------------------------

// A layer besides the cells, with the names of its parts.
typedef struct dense {
    const char *ours;
    tensor_names weight, bias; // bias.marian "": it has none
    tensor_names gamma;        // Marian's norm
    tensor_names scale, shift; // Nematus'
    int rows, cols;
    bool swap;
} dense;

static dgm_status add_dense(dgm_composer *c, const dgm_recurrent *m, const dense *d, dgm_error *err)
{
    char weight[48], bias[48], norm[48], shift[48];
    snprintf(weight, sizeof weight, "%s.weight", d->ours);
    snprintf(bias, sizeof bias, "%s.bias", d->ours);
    snprintf(norm, sizeof norm, "%s.norm.weight", d->ours);
    snprintf(shift, sizeof shift, "%s.norm.bias", d->ours);
    const bool biased = d->bias.marian[0] != 0;
    DGM_TRY(dgm_recurrent_matrix(c, weight, &d->weight, d->rows, d->cols, d->swap, err));
    if (!m->norm || m->nematus_norm) {
        if (biased) DGM_TRY(dgm_recurrent_vector(c, bias, &d->bias, d->rows, err));
        if (!m->norm) return DGM_OK;
        DGM_TRY(dgm_recurrent_vector(c, norm, &d->scale, d->rows, err));
        return dgm_recurrent_vector(c, shift, &d->shift, d->rows, err);
    }
    DGM_TRY(dgm_recurrent_vector(c, norm, &d->gamma, d->rows, err));
    if (biased) return dgm_recurrent_vector(c, shift, &d->bias, d->rows, err);
    return dgm_compose_vector(c, shift, d->rows, NULL, 0, err); // zeros
}

// Columns of what the encoder leaves.
static int context_width(const dgm_recurrent *m)
{
    const bool one = m->encoder == DGM_ENCODER_FORWARD && m->encoder_layers > 1;
    return (one ? 1 : 2) * m->hidden;
}

static bool swaps(const dgm_recurrent *m)
{
    return m->encoder == DGM_ENCODER_ALTERNATING && m->encoder_layers % 2 == 0;
}

static dgm_status add_attention(dgm_composer *c, const dgm_recurrent *m, dgm_error *err)
{
    const int width = context_width(m);
    static const tensor_names v = {"decoder_U_att", ""};
    const dgm_stored *key = find(c, &(tensor_names){"decoder_Wc_att", ""}), *t;
    const int a = key ? key->cols : width;
    const dense keys = {.ours = "dec.att.key",
                        .weight = {"decoder_Wc_att", ""},
                        .bias = {"decoder_b_att", ""},
                        .gamma = {"decoder_att_gamma1", ""},
                        .scale = {"decoder_Wc_att_lns", ""},
                        .shift = {"decoder_Wc_att_lnb", ""},
                        .rows = a,
                        .cols = width,
                        .swap = swaps(m)};
    const dense query = {.ours = "dec.att.query",
                         .weight = {"decoder_W_comb_att", ""},
                         .gamma = {"decoder_att_gamma2", ""},
                         .scale = {"decoder_W_comb_att_lns", ""},
                         .shift = {"decoder_W_comb_att_lnb", ""},
                         .rows = a,
                         .cols = m->hidden};
    dgm_checkpoint_take(c->weights, "decoder_c_tt"); // [1]: added to every energy, without effect
    dgm_gguf_set_u32(c->weights->job->w, "dragoman.rnn.attention", (uint32_t)a);
    DGM_TRY(add_dense(c, m, &keys, err));
    DGM_TRY(add_dense(c, m, &query, err));
    DGM_TRY(dgm_recurrent_take(c, &v, a, 1, DGM_REQUIRED, &t, err));
    const dgm_vector_term term = {t, 0, a, 0};
    return dgm_compose_vector(c, "dec.att.v", a, &term, 1, err);
}

static dgm_status add_start(dgm_composer *c, const dgm_recurrent *m, dgm_error *err)
{
    const dense start = {.ours = "dec.init",
                         .weight = {"decoder_ff_state_W", "ff_state_W"},
                         .bias = {"decoder_ff_state_b", "ff_state_b"},
                         .gamma = {"decoder_ff_state_gamma", "ff_state_gamma"},
                         .scale = {"decoder_ff_state_ln_s", "ff_state_ln_s"},
                         .shift = {"decoder_ff_state_ln_b", "ff_state_ln_b"},
                         .rows = m->hidden,
                         .cols = context_width(m),
                         .swap = swaps(m)};
    return add_dense(c, m, &start, err);
}

// Three layers that are added up; without norms their biases are one.
static dgm_status add_readout(dgm_composer *c, const dgm_recurrent *m, dgm_error *err)
{
    static const char *const parts[][2] = {
        {"dec.readout.x", "prev"}, {"dec.readout.h", "lstm"}, {"dec.readout.c", "ctx"}};
    const int cols[] = {m->embed, m->hidden, context_width(m)};
    dgm_vector_term biases[3];
    for (int i = 0; i < 3; i++) {
        dense d = {
            .ours = parts[i][0], .rows = m->embed, .cols = cols[i], .swap = i == 2 && swaps(m)};
        tensor_names *const names[] = {&d.weight, &d.bias, &d.scale, &d.shift};
        static const char *const ends[] = {"W", "b", "ln_s", "ln_b"};
        for (int k = 0; k < 4; k++) {
            snprintf(names[k]->marian, sizeof names[k]->marian, "decoder_ff_logit_l1_%s%d", ends[k],
                     i);
            snprintf(names[k]->nematus, sizeof names[k]->nematus, "ff_logit_%s_%s", parts[i][1],
                     ends[k]);
        }
        snprintf(d.gamma.marian, sizeof d.gamma.marian, "decoder_ff_logit_l1_gamma%d", i);
        snprintf(d.gamma.nematus, sizeof d.gamma.nematus, "ff_logit_l1_gamma%d", i);
        if (!m->norm) {
            const dgm_stored *t;
            DGM_TRY(dgm_recurrent_take(c, &d.bias, 1, m->embed, DGM_REQUIRED, &t, err));
            biases[i] = (dgm_vector_term){t, 0, m->embed, 0};
            d.bias.marian[0] = 0;
        }
        DGM_TRY(add_dense(c, m, &d, err));
    }
    return m->norm ? DGM_OK : dgm_compose_vector(c, "dec.readout.x.bias", m->embed, biases, 3, err);
}

// ---- cells -------------------------------------------------------------------------------------

// A cell and the transitions behind it; names are PLAN.ours and PLAN.ours.t0, .t1, ... bare: the
// transitions may lack biases.
static dgm_status add_chain(dgm_composer *c, cell_plan plan, int cells, bool bare, dgm_error *err)
{
    DGM_TRY(dgm_recurrent_cell_add(c, &plan, err));
    const char *ours = plan.ours;
    for (int i = 1; i < cells; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s.t%d", ours, i - 1);
        plan.ours = name;
        plan.x = "x";
        plan.input = 0;
        plan.at.cell++;
        plan.no_bias = bare;
        DGM_TRY(dgm_recurrent_cell_add(c, &plan, err));
    }
    return DGM_OK;
}

static dgm_status add_encoder_layer(dgm_composer *c, const dgm_recurrent *m, int layer,
                                    dgm_error *err)
{
    static const char *const ways[] = {"fwd", "bwd"};
    const bool forward = m->encoder == DGM_ENCODER_FORWARD && layer > 0;
    // the stacks of an alternating encoder change their directions from layer to layer
    const bool turned = m->encoder == DGM_ENCODER_ALTERNATING && layer % 2 == 1;
    for (int d = 0; d < (forward ? 1 : 2); d++) {
        char ours[32];
        snprintf(ours, sizeof ours, "enc.%d.%s", layer, ways[d]);
        const cell_plan plan = {
            .at = {.forward = forward,
                   .reverse = (d == 1) != turned,
                   .layer = layer + 1,
                   .cell = 1},
            .kind = m->encoder_cell,
            .ours = ours,
            .x = "w",
            .input = layer == 0              ? m->embed
                     : forward && layer == 1 ? 2 * m->hidden
                                             : m->hidden,
            .hidden = m->hidden,
            .norm = m->norm,
        };
        DGM_TRY(add_chain(c, plan, m->encoder_cells, m->tensorflow, err));
    }
    return DGM_OK;
}

static dgm_status add_decoder(dgm_composer *c, const dgm_recurrent *m, dgm_error *err)
{
    cell_plan p = {.at = {.decoder = true, .layer = 1, .cell = 1},
                   .kind = m->decoder_cell,
                   .ours = "dec.gru1",
                   .x = "x",
                   .input = m->embed,
                   .hidden = m->hidden,
                   .norm = m->norm};
    DGM_TRY(dgm_recurrent_cell_add(c, &p, err));
    p.at.cell = 2;
    p.ours = "dec.gru2";
    p.input = context_width(m);
    p.swap = swaps(m);
    p.state_bias = true;
    DGM_TRY(add_chain(c, p, m->base_cells - 1, false, err));
    for (int i = 1; i < m->decoder_layers; i++) {
        char ours[32];
        snprintf(ours, sizeof ours, "dec.upper.%d", i - 1);
        const cell_plan upper = {.at = {.decoder = true, .layer = i + 1, .cell = 1},
                                 .kind = m->decoder_cell,
                                 .ours = ours,
                                 .x = "x",
                                 .input = m->hidden + (m->deep_context ? context_width(m) : 0),
                                 .hidden = m->hidden,
                                 .norm = m->norm,
                                 .state_bias = m->tensorflow};
        DGM_TRY(add_chain(c, upper, m->high_cells, false, err));
    }
    return DGM_OK;
}

// ---- keys --------------------------------------------------------------------------------------

static void set_number(dgm_gguf_writer *w, const char *name, int value)
{
    char key[64];
    snprintf(key, sizeof key, "dragoman.rnn.%s", name);
    if (value) dgm_gguf_set_u32(w, key, (uint32_t)value);
}

static const char *norm_name(dgm_recurrent_cell cell)
{
    return cell == DGM_CELL_GRU_NEMATUS ? "gates" : "whole";
}

static void set_encoder_keys(dgm_gguf_writer *w, const dgm_recurrent *m)
{
    const bool deep = m->encoder_layers > 1, forward = m->encoder == DGM_ENCODER_FORWARD;
    set_number(w, "encoder_hidden", m->hidden);
    set_number(w, "encoder_layers", m->encoder_layers);
    set_number(w, "encoder_transitions", m->encoder_cells - 1);
    dgm_gguf_set_string(w, "dragoman.rnn.encoder_cell",
                        m->encoder_cell == DGM_CELL_LSTM ? "lstm" : "gru");
    if (m->norm) dgm_gguf_set_string(w, "dragoman.rnn.encoder_norm", norm_name(m->encoder_cell));
    dgm_gguf_set_bool(w, "dragoman.rnn.encoder_bidirectional", true);
    if (!deep) return;
    if (forward)
        set_number(w, "encoder_bidirectional_layers", 1);
    else
        dgm_gguf_set_string(w, "dragoman.rnn.encoder_stacks",
                            m->encoder == DGM_ENCODER_SEPARATE ? "separate" : "crossed");
    dgm_gguf_set_bool(w, "dragoman.rnn.encoder_residual", m->skip);
    set_number(w, "encoder_residual_from", forward ? 2 : 1);
}

static void set_decoder_keys(dgm_gguf_writer *w, const dgm_recurrent *m)
{
    dgm_gguf_set_string(w, "dragoman.rnn.decoder", "conditional");
    set_number(w, "decoder_hidden", m->hidden);
    dgm_gguf_set_string(w, "dragoman.rnn.decoder_cell",
                        m->decoder_cell == DGM_CELL_LSTM ? "lstm" : "gru");
    dgm_gguf_set_string(w, "dragoman.rnn.decoder_start", "all");
    if (m->norm) {
        dgm_gguf_set_string(w, "dragoman.rnn.decoder_norm", norm_name(m->decoder_cell));
        dgm_gguf_set_bool(w, "dragoman.rnn.norm", true);
        dgm_gguf_set_f32(w, "dragoman.rnn.norm_eps", m->nematus_norm ? 1e-5f : 1e-9f);
        dgm_gguf_set_f32(w, "dragoman.rnn.gate_norm_eps", 1e-5f);
    }
    set_number(w, "decoder_transitions", m->base_cells - 2);
    dgm_gguf_set_string(w, "dragoman.rnn.readout", m->readout);
    set_number(w, "readout_size", m->embed);
    if (m->decoder_layers == 1) return;
    set_number(w, "upper_layers", m->decoder_layers - 1);
    set_number(w, "upper_transitions", m->high_cells - 1);
    dgm_gguf_set_bool(w, "dragoman.rnn.upper_context", m->deep_context);
    dgm_gguf_set_bool(w, "dragoman.rnn.upper_residual", m->skip);
    dgm_gguf_set_u32(w, "dragoman.rnn.upper_residual_from", 0);
}

dgm_status dgm_recurrent_add(dgm_composer *c, const dgm_recurrent *m, dgm_error *err)
{
    dgm_gguf_writer *w = c->weights->job->w;
    set_number(w, "embed", m->embed);
    set_encoder_keys(w, m);
    set_decoder_keys(w, m);
    DGM_TRY(add_embeddings(c, m, err));
    for (int i = 0; i < m->encoder_layers; i++) DGM_TRY(add_encoder_layer(c, m, i, err));
    DGM_TRY(add_start(c, m, err));
    DGM_TRY(add_attention(c, m, err));
    DGM_TRY(add_decoder(c, m, err));
    return add_readout(c, m, err);
}
