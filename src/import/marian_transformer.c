// SPDX-License-Identifier: MIT
// Keys and weights of Marian's Transformers; see marian_model.h.
//
// Marian's matrices are [in, out], ours [out, in]. Its sinusoids have a denominator of their own, its
// decoder starts from a zero vector, embeddings are scaled where positions are sinusoids (not learned, Wpos, and not
// none), and layer normalisation adds 1e-6. Where a file holds integers for intgemm, they are kept: one multiplier
// for a whole matrix is a scale of each of its rows. Multipliers of activations (NAME_QuantMultA) become static
// scales.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "import/marian_bin.h"
#include "import/marian_model.h"

#define KEY "dragoman.transformer."

enum { NAME = 128 };

typedef struct part_name {
    char text[NAME];
} part_name;

static part_name name_of(const char *fmt, ...) DGM_PRINTF(1, 2);
static part_name name_of(const char *fmt, ...)
{
    part_name n;
    va_list args;
    va_start(args, fmt);
    vsnprintf(n.text, sizeof n.text, fmt, args);
    va_end(args);
    return n;
}

// ---- numbers that no tensor holds as they are ----------------------------------------------------

struct dgm_marian_source {
    dgm_marian_source *next;
    float number; // a vector of `size` times this number
    int size;
    dgm_view gates[2]; // or two gates that become one, or one that becomes two
};

static dgm_status new_source(dgm_marian_weights *w, dgm_marian_source **out, dgm_error *err)
{
    *out = dgm_calloc(1, sizeof **out);
    if (!*out) return dgm_no_memory(err);
    (*out)->next = w->sources;
    w->sources = *out;
    return DGM_OK;
}

void dgm_marian_weights_close(dgm_marian_weights *w)
{
    while (w->sources) {
        dgm_marian_source *next = w->sources->next;
        dgm_free(w->sources);
        w->sources = next;
    }
    *w = (dgm_marian_weights){0};
}

static dgm_status fetch_constant(const void *source, int first, int rows, float *out,
                                 dgm_error *err)
{
    const dgm_marian_source *s = source;
    (void)first, (void)rows, (void)err;
    for (int i = 0; i < s->size; i++) out[i] = s->number;
    return DGM_OK;
}

static dgm_status add_constant(dgm_marian_weights *w, const char *ours, float number, int size,
                               dgm_error *err)
{
    dgm_marian_source *s;
    DGM_TRY(new_source(w, &s, err));
    s->number = number;
    s->size = size;
    return dgm_import_vector(w->from->job, ours, size, fetch_constant, s, err);
}

// Two matrices [D, D] on the diagonal of a matrix of zeros.
static dgm_status fetch_gates(const void *source, int first, int rows, float *out, dgm_error *err)
{
    const dgm_marian_source *s = source;
    const int d = s->gates[0].rows;
    memset(out, 0, (size_t)rows * 2 * (size_t)d * sizeof *out);
    for (int r = first; r < first + rows; r++, out += 2 * d) {
        const int second = r >= d;
        DGM_TRY(
            dgm_view_read(&s->gates[second], second ? r - d : r, 1, out + (second ? d : 0), err));
    }
    return DGM_OK;
}

// Two vectors, one behind the other.
static dgm_status fetch_both(const void *source, int first, int rows, float *out, dgm_error *err)
{
    const dgm_marian_source *s = source;
    (void)first, (void)rows;
    DGM_TRY(dgm_view_read(&s->gates[0], 0, 1, out, err));
    return dgm_view_read(&s->gates[1], 0, 1, out + s->gates[0].cols, err);
}

// A gate of d rows and, behind it, the same with the other sign: sigmoid(-x) = 1 - sigmoid(x).
static dgm_status fetch_signs(const void *source, int first, int rows, float *out, dgm_error *err)
{
    const dgm_view *gate = &((const dgm_marian_source *)source)->gates[0];
    for (int r = first; r < first + rows; r++, out += gate->cols) {
        DGM_TRY(dgm_view_read(gate, r % gate->rows, 1, out, err));
        for (int i = 0; r >= gate->rows && i < gate->cols; i++) out[i] = -out[i];
    }
    return DGM_OK;
}

static dgm_status fetch_signed_bias(const void *source, int first, int rows, float *out, dgm_error *err)
{
    const dgm_view *bias = &((const dgm_marian_source *)source)->gates[0];
    (void)first, (void)rows;
    DGM_TRY(dgm_view_read(bias, 0, 1, out, err));
    for (int i = 0; i < bias->cols; i++) out[bias->cols + i] = -out[i];
    return DGM_OK;
}

// ---- taking tensors ------------------------------------------------------------------------------

// A tensor [rows, cols], or a vector [1, cols] or [cols]; quantised ones, too.
static dgm_status take(dgm_marian_weights *w, const char *name, int rows, int cols,
                       const dgm_stored **out, dgm_error *err)
{
    const char *dir = w->from->job->dir;
    DGM_FAIL_IF(!dgm_checkpoint_take(w->from, name), err, DGM_ERR_FORMAT,
                "'%s': tensor '%s' is missing", dir, name);
    dgm_store *s = w->from->tensors;
    const dgm_stored *t = dgm_store_get(s, (size_t)dgm_store_find(s, name));
    DGM_FAIL_IF(!dgm_stored_is_real(t->type) && !dgm_marian_quantised(t), err, DGM_ERR_UNSUPPORTED,
                "'%s': tensor '%s' is %s, expected real numbers", dir, name, t->dtype);
    DGM_FAIL_IF(t->rows != rows || t->cols != cols, err, DGM_ERR_FORMAT,
                "'%s': tensor '%s' has %d rows and %d columns, expected %d and %d", dir, name,
                t->rows, t->cols, rows, cols);
    *out = t;
    return DGM_OK;
}

static bool has(const dgm_marian_weights *w, const char *name)
{
    return dgm_checkpoint_has(w->from, name);
}

static dgm_status add_vector(dgm_marian_weights *w, const char *ours, const char *theirs, int size,
                             dgm_error *err)
{
    const dgm_stored *t;
    DGM_TRY(take(w, theirs, 1, size, &t, err));
    return dgm_checkpoint_view(w->from, ours, dgm_view_whole(w->from->tensors, t), true, err);
}

static dgm_status add_optional(dgm_marian_weights *w, const char *ours, const char *theirs,
                               int size, dgm_error *err)
{
    return has(w, theirs) ? add_vector(w, ours, theirs, size, err) : DGM_OK;
}

// NAME_QuantMultA: inputs are multiplied by it and rounded to 127 steps.
static dgm_status add_input_scale(dgm_marian_weights *w, const char *ours, const char *theirs,
                                  dgm_error *err)
{
    const part_name name = name_of("%s_QuantMultA", theirs),
                    scale = name_of("%s.input_scale", ours);
    const dgm_stored *t;
    if (!has(w, name.text)) return DGM_OK;
    DGM_TRY(take(w, name.text, 1, 1, &t, err));
    const dgm_view v = dgm_view_whole(w->from->tensors, t);
    float multiplier;
    DGM_TRY(dgm_view_read(&v, 0, 1, &multiplier, err));
    DGM_FAIL_IF(!(multiplier > 1e-6f && multiplier < 1e9f), err, DGM_ERR_FORMAT,
                "'%s': tensor '%s' is %g", w->from->job->dir, name.text, (double)multiplier);
    w->scales++;
    return add_constant(w, scale.text, 1 / multiplier, 1, err);
}

// A matrix [out, in] of ours, and how its inputs are rounded.
static dgm_status add_view(dgm_marian_weights *w, const char *ours, const char *theirs, dgm_view v,
                           dgm_error *err)
{
    const int storage = w->from->job->storage;
    if (dgm_marian_quantised(v.t)) {
        const float divisor = dgm_view_divisor(&v, 0);
        DGM_FAIL_IF(!(divisor > 1e-9f && divisor < 1e9f), err, DGM_ERR_FORMAT,
                    "'%s': the multiplier of tensor '%s' is %g", w->from->job->dir, theirs,
                    (double)divisor);
        const bool kept = v.t->type == DGM_STORED_I8 && (storage < 0 || storage == DGM_TYPE_I8);
        w->kept += kept;
        w->rounded += !kept;
    }
    DGM_TRY(dgm_checkpoint_view(w->from, ours, v, false, err));
    return add_input_scale(w, ours, theirs, err);
}

static dgm_status add_weight(dgm_marian_weights *w, const char *ours, const char *theirs, int in,
                             int out, dgm_error *err)
{
    const dgm_stored *t;
    DGM_TRY(take(w, theirs, in, out, &t, err));
    return add_view(w, ours, theirs, dgm_marian_weight(w->from->tensors, t), err);
}

// PREFIX_W<end>, PREFIX_b<end> as our NAME.weight, NAME.bias.
static dgm_status add_linear(dgm_marian_weights *w, const char *ours, const char *prefix,
                             const char *end, int in, int out, dgm_error *err)
{
    DGM_TRY(add_weight(w, name_of("%s.weight", ours).text, name_of("%s_W%s", prefix, end).text, in,
                       out, err));
    return add_optional(w, name_of("%s.bias", ours).text, name_of("%s_b%s", prefix, end).text, out,
                        err);
}

// ---- norms ---------------------------------------------------------------------------------------

// PREFIX_ln_scale<end>, PREFIX_ln_bias<end>, or PREFIX_rms_scale<end>; ones with --transformer-no-affine.
static dgm_status add_norm(dgm_marian_weights *w, const dgm_marian_transformer *t, const char *ours,
                           const char *prefix, const char *end, dgm_error *err)
{
    static const char *const kinds[] = {"ln", "rms"};
    const part_name weight = name_of("%s.weight", ours), bias = name_of("%s.bias", ours);
    const part_name scale = name_of("%s_%s_scale%s", prefix, kinds[t->rms], end);
    if (!t->affine && !has(w, scale.text)) return add_constant(w, weight.text, 1, t->d, err);
    DGM_TRY(add_vector(w, weight.text, scale.text, t->d, err));
    if (t->rms) return DGM_OK;
    return add_optional(w, bias.text, name_of("%s_ln_bias%s", prefix, end).text, t->d, err);
}

// Marian mixes u and x by g = sigmoid(Wh x + bh) and 1 - g; ours has a gate for each.
static dgm_status add_highway(dgm_marian_weights *w, const char *ours, const char *theirs, int d, dgm_error *err)
{
    const dgm_stored *weight, *bias;
    dgm_marian_source *matrix, *vector;
    dgm_store *s = w->from->tensors;
    DGM_TRY(new_source(w, &matrix, err));
    DGM_TRY(new_source(w, &vector, err));
    DGM_TRY(take(w, name_of("%s_Wh", theirs).text, d, d, &weight, err));
    matrix->gates[0] = dgm_marian_weight(s, weight);
    dgm_checkpoint_take(w->from, name_of("%s_Wh_QuantMultA", theirs).text);
    const bool quantised = dgm_marian_quantised(weight);
    w->rounded += quantised;
    DGM_TRY(dgm_import_matrix(w->from->job, name_of("%s.residual.weight", ours).text, 2 * d, d,
                              quantised ? DGM_TYPE_I8 : DGM_TYPE_F32, fetch_signs, matrix, err));
    if (!has(w, name_of("%s_bh", theirs).text)) return DGM_OK;
    DGM_TRY(take(w, name_of("%s_bh", theirs).text, 1, d, &bias, err));
    vector->gates[0] = dgm_view_whole(s, bias);
    return dgm_import_vector(w->from->job, name_of("%s.residual.bias", ours).text, 2 * d, fetch_signed_bias,
                             vector, err);
}

// The norms of a sub-layer OURS. before, behind: their prefixes.
static dgm_status add_norms(dgm_marian_weights *w, const dgm_marian_transformer *t,
                            const char *ours, const char *before, const char *behind,
                            dgm_error *err)
{
    const part_name one = name_of("%s.norm", ours), other = name_of("%s.post_norm", ours);
    if (t->highway) DGM_TRY(add_highway(w, ours, behind, t->d, err));
    if (t->norm_before) DGM_TRY(add_norm(w, t, one.text, before, "_pre", err));
    if (!t->norm_behind) return DGM_OK;
    return add_norm(w, t, t->norm_before ? other.text : one.text, behind, "", err);
}

// ---- sub-layers ----------------------------------------------------------------------------------

static dgm_status add_attention(dgm_marian_weights *w, const dgm_marian_transformer *t,
                                const char *ours, const char *theirs, dgm_error *err)
{
    static const char *const parts[] = {"q", "k", "v", "o"};
    for (int i = 0; i < (t->projection ? 4 : 3); i++)
        DGM_TRY(add_linear(w, name_of("%s.%s", ours, parts[i]).text, theirs, parts[i], t->d, t->d,
                           err));
    const part_name norm = name_of("%s_Wo", theirs);
    return add_norms(w, t, ours, norm.text, norm.text, err);
}

static dgm_status add_ffn(dgm_marian_weights *w, const dgm_marian_transformer *t, const char *ours,
                          const char *theirs, bool decoder, dgm_error *err)
{
    const part_name norm = name_of("%s_ffn", theirs);
    const int d = t->d, f = decoder ? t->decoder_ffn : t->ffn, depth = t->ffn_depth[decoder];
    for (int i = 1; i <= depth; i++) {
        const part_name name = i == depth ? name_of("%s.out", ours)
                               : i == 1   ? name_of("%s.in", ours)
                                          : name_of("%s.more.%d", ours, i - 2);
        DGM_TRY(add_linear(w, name.text, theirs, name_of("%d", i).text, i == 1 ? d : f, i == depth ? d : f, err));
    }
    return add_norms(w, t, ours, norm.text, norm.text, err);
}

static dgm_status add_ssru(dgm_marian_weights *w, const dgm_marian_transformer *t, const char *ours,
                           const char *theirs, dgm_error *err)
{
    DGM_TRY(add_weight(w, name_of("%s.w.weight", ours).text, name_of("%s_W", theirs).text, t->d,
                       t->d, err));
    DGM_TRY(add_linear(w, name_of("%s.f", ours).text, theirs, "f", t->d, t->d, err));
    if (t->rnn_projection)
        DGM_TRY(add_linear(w, name_of("%s.o", ours).text, theirs, "o", t->d, t->d, err));
    return add_norms(w, t, ours, theirs, name_of("%s_ffn", theirs).text, err);
}

// Marian has a gate of the input and one of the average; ours sees both, so the rest of it is zero.
static dgm_status add_gate(dgm_marian_weights *w, const char *ours, const char *theirs, int d,
                           dgm_error *err)
{
    static const char ends[] = "if";
    const dgm_stored *weight[2], *bias[2];
    dgm_marian_source *matrix, *vector;
    dgm_store *s = w->from->tensors;
    DGM_TRY(new_source(w, &matrix, err));
    DGM_TRY(new_source(w, &vector, err));
    for (int i = 0; i < 2; i++) {
        DGM_TRY(take(w, name_of("%s_W%c", theirs, ends[i]).text, d, d, &weight[i], err));
        DGM_TRY(take(w, name_of("%s_b%c", theirs, ends[i]).text, 1, d, &bias[i], err));
        matrix->gates[i] = dgm_marian_weight(s, weight[i]);
        vector->gates[i] = dgm_view_whole(s, bias[i]);
        dgm_checkpoint_take(w->from, name_of("%s_W%c_QuantMultA", theirs, ends[i]).text);
    }
    const bool quantised = dgm_marian_quantised(weight[0]);
    w->rounded += quantised;
    DGM_TRY(dgm_import_matrix(w->from->job, name_of("%s.weight", ours).text, 2 * d, 2 * d,
                              quantised ? DGM_TYPE_I8 : DGM_TYPE_F32, fetch_gates, matrix, err));
    return dgm_import_vector(w->from->job, name_of("%s.bias", ours).text, 2 * d, fetch_both, vector,
                             err);
}

static dgm_status add_average(dgm_marian_weights *w, const dgm_marian_transformer *t,
                              const char *ours, const char *theirs, dgm_error *err)
{
    const part_name norm = name_of("%s_ffn", theirs);
    DGM_TRY(add_linear(w, name_of("%s.in", ours).text, theirs, "1", t->d, t->aan_ffn, err));
    DGM_TRY(add_linear(w, name_of("%s.out", ours).text, theirs, "2", t->aan_ffn, t->d, err));
    if (t->aan_gate) DGM_TRY(add_gate(w, name_of("%s.gate", ours).text, theirs, t->d, err));
    return add_norms(w, t, ours, norm.text, norm.text, err);
}

// ---- layers --------------------------------------------------------------------------------------

static dgm_status add_layer(dgm_marian_weights *w, const dgm_marian_transformer *t, bool decoder,
                            int layer, dgm_error *err)
{
    const part_name ours = name_of("%s.%d", decoder ? "dec" : "enc", layer);
    const part_name theirs = name_of("%s_l%d", decoder ? "decoder" : "encoder", layer + 1);
    const part_name rnn = name_of("%s.rnn", ours.text), aan = name_of("%s.aan", ours.text);
    if (decoder && t->decoder == DGM_MARIAN_SSRU)
        DGM_TRY(add_ssru(w, t, rnn.text, name_of("%s_rnn", theirs.text).text, err));
    else if (decoder && t->decoder == DGM_MARIAN_AAN)
        DGM_TRY(add_average(w, t, aan.text, name_of("%s_aan", theirs.text).text, err));
    else
        DGM_TRY(add_attention(w, t, name_of("%s.self", ours.text).text,
                              name_of("%s_self", theirs.text).text, err));
    if (decoder)
        DGM_TRY(add_attention(w, t, name_of("%s.cross", ours.text).text,
                              name_of("%s_context", theirs.text).text, err));
    return add_ffn(w, t, name_of("%s.ffn", ours.text).text, name_of("%s_ffn", theirs.text).text,
                   decoder, err);
}

// Marian ties layers of the decoder; an encoder that has all of its own is not tied.
static bool is_tied(const dgm_marian_weights *w, const dgm_marian_transformer *t, bool decoder)
{
    if (decoder || t->tied_count == 0) return t->tied_count > 0;
    for (int layer = 1; layer <= t->layers[0]; layer++)
        if (!has(w, name_of("encoder_l%d_self_Wq", layer).text)) return true;
    return false;
}

// Every layer whose parameters some layer has, once.
static dgm_status add_layers(dgm_marian_weights *w, const dgm_marian_transformer *t, bool decoder,
                             dgm_error *err)
{
    const bool tied = is_tied(w, t, decoder);
    for (int layer = 0; layer < t->layers[decoder]; layer++) {
        bool own = !tied;
        for (int i = 0; i < t->tied_count; i++) own = own || t->tied[i] == layer;
        if (own) DGM_TRY(add_layer(w, t, decoder, layer, err));
    }
    if (tied)
        dgm_gguf_set_array(w->from->job->w, decoder ? KEY "decoder_tied" : KEY "encoder_tied",
                           DGM_META_I32, t->tied, (size_t)t->tied_count);
    const char *ours = decoder ? "dec" : "enc", *theirs = decoder ? "decoder" : "encoder";
    if (t->embed_norm)
        DGM_TRY(add_norm(w, t, name_of("%s.embed_norm", ours).text, name_of("%s_emb", theirs).text,
                         "_pre", err));
    if (!t->top_norm) return DGM_OK;
    return add_norm(w, t, name_of("%s.norm", ours).text, name_of("%s_top", theirs).text, "", err);
}

// ---- embeddings and output -----------------------------------------------------------------------

static dgm_status add_rows(dgm_marian_weights *w, const char *ours, const char *theirs, int rows,
                           int cols, dgm_error *err)
{
    const dgm_stored *t;
    DGM_TRY(take(w, theirs, rows, cols, &t, err));
    const bool transposed = dgm_marian_quantised(t) && !strstr(theirs, "Wemb");
    DGM_FAIL_IF(transposed && rows % 16 != 0, err, DGM_ERR_UNSUPPORTED,
                "'%s': tensor '%s' has %d rows: Marian writes such a matrix for intgemm only whole "
                "if they are a multiple of 16; import the .npz file",
                w->from->job->dir, theirs, rows);
    return add_view(w, ours, theirs, dgm_marian_rows(w->from->tensors, t), err);
}

static dgm_status add_embeddings(dgm_marian_weights *w, int d, const int sizes[2], dgm_error *err)
{
    static const char shared[] = "Wemb", out[] = "decoder_ff_logit_out_Wt",
                      legacy[] = "decoder_ff_logit_out_W", unnamed[] = "none_QuantMultA";
    const bool one = has(w, shared);
    DGM_TRY(add_rows(w, "src.embed", one ? shared : "encoder_Wemb", sizes[0], d, err));
    if (!one) DGM_TRY(add_rows(w, "tgt.embed", "decoder_Wemb", sizes[1], d, err));
    if (has(w, out))
        DGM_TRY(add_rows(w, "out.weight", out, sizes[1], d, err));
    else if (has(w, legacy))
        DGM_TRY(add_weight(w, "out.weight", legacy, d, sizes[1], err));
    dgm_checkpoint_take(w->from, unnamed); // a copy of the output's, which Marian gives no name
    return add_optional(w, "out.bias", "decoder_ff_logit_out_b", sizes[1], err);
}

static dgm_status add_positions(dgm_marian_weights *w, int d, dgm_error *err)
{
    static const char name[] = "Wpos";
    if (!has(w, name)) return DGM_OK;
    dgm_store *s = w->from->tensors;
    return add_rows(w, "enc.pos", name, dgm_store_get(s, (size_t)dgm_store_find(s, name))->rows, d,
                    err);
}

// Rows of the embeddings.
static dgm_status measure(const dgm_marian_weights *w, int sizes[2], dgm_error *err)
{
    static const char *const names[] = {"encoder_Wemb", "decoder_Wemb"};
    for (int side = 0; side < 2; side++) {
        const char *name = has(w, "Wemb") ? "Wemb" : names[side];
        const int at = dgm_store_find(w->from->tensors, name);
        DGM_FAIL_IF(at < 0, err, DGM_ERR_FORMAT, "'%s': tensor '%s' is missing", w->from->job->dir,
                    name);
        sizes[side] = dgm_store_get(w->from->tensors, (size_t)at)->rows;
    }
    return DGM_OK;
}

// ---- keys ----------------------------------------------------------------------------------------

static const char *norm_place(const dgm_marian_transformer *t)
{
    static const char *const names[2][2] = {{"none", "post"}, {"pre", "both"}};
    return names[t->norm_before][t->norm_behind];
}

static void set_variants(dgm_gguf_writer *w, const dgm_marian_transformer *t)
{
    const bool usual_top = t->norm_before && !t->norm_behind;
    if (t->rms) dgm_gguf_set_string(w, KEY "norm_kind", "rms");
    if (strcmp(t->residual, "sum") != 0) dgm_gguf_set_string(w, KEY "residual", t->residual);
    if (t->top_norm != usual_top) {
        dgm_gguf_set_bool(w, KEY "encoder_final_norm", t->top_norm);
        dgm_gguf_set_bool(w, KEY "decoder_final_norm", t->top_norm);
    }
    if (!t->projection) dgm_gguf_set_bool(w, KEY "attention_output", false);
    if (t->decoder == DGM_MARIAN_SSRU && t->rnn_projection)
        dgm_gguf_set_bool(w, KEY "rnn_output", true);
    if (t->decoder != DGM_MARIAN_AAN) return;
    dgm_gguf_set_u32(w, KEY "aan_ffn", (uint32_t)t->aan_ffn);
    dgm_gguf_set_string(w, KEY "aan_activation", t->aan_activation);
    if (!t->aan_gate) dgm_gguf_set_bool(w, KEY "aan_gate", false);
    if (t->norm_before) dgm_gguf_set_string(w, KEY "aan_norm", "average");
}

static void set_keys(dgm_gguf_writer *w, const dgm_marian_transformer *t, bool learned)
{
    static const char *const decoders[] = {"self_attention", "ssru", "aan"};
    dgm_gguf_set_u32(w, KEY "d_model", (uint32_t)t->d);
    dgm_gguf_set_u32(w, KEY "heads", (uint32_t)t->heads);
    dgm_gguf_set_u32(w, KEY "ffn", (uint32_t)t->ffn);
    if (t->ffn_depth[0] != 2) dgm_gguf_set_u32(w, KEY "ffn_depth", (uint32_t)t->ffn_depth[0]);
    if (t->ffn_depth[1] != t->ffn_depth[0])
        dgm_gguf_set_u32(w, KEY "decoder_ffn_depth", (uint32_t)t->ffn_depth[1]);
    if (t->decoder_ffn != t->ffn) dgm_gguf_set_u32(w, KEY "decoder_ffn", (uint32_t)t->decoder_ffn);
    dgm_gguf_set_u32(w, KEY "encoder_layers", (uint32_t)t->layers[0]);
    dgm_gguf_set_u32(w, KEY "decoder_layers", (uint32_t)t->layers[1]);
    dgm_gguf_set_string(w, KEY "norm", norm_place(t));
    dgm_gguf_set_f32(w, KEY "norm_eps", 1e-6f);
    dgm_gguf_set_string(w, KEY "activation", t->activation);
    dgm_gguf_set_string(w, KEY "positions",
                        learned        ? "learned"
                        : t->positions ? "sinusoid_marian"
                                       : "none");
    dgm_gguf_set_bool(w, KEY "scale_embedding", !learned && t->positions);
    dgm_gguf_set_string(w, KEY "decoder", decoders[t->decoder]);
    set_variants(w, t);
    dgm_gguf_set_i32(w, "dragoman.align.layer", t->align_layer);
    dgm_gguf_set_i32(w, "dragoman.align.head", 0);
}

dgm_status dgm_marian_transformer_add(dgm_marian_weights *w, const dgm_marian_transformer *t,
                                      int sizes[2], dgm_error *err)
{
    DGM_TRY(measure(w, sizes, err));
    set_keys(w->from->job->w, t, has(w, "Wpos"));
    DGM_TRY(add_embeddings(w, t->d, sizes, err));
    DGM_TRY(add_positions(w, t->d, err));
    for (int decoder = 0; decoder < 2; decoder++) DGM_TRY(add_layers(w, t, decoder == 1, err));
    return dgm_checkpoint_end(w->from, "a Transformer of Marian", err);
}
